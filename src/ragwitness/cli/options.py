"""Options that several verbs share and no task has, each with its help text.

A verb that means something else by an option declares it itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ragwitness.core.options import Arg, Opt, PathRole

KnownOutIfAny = Annotated[
    str | None,
    PathRole.DOCUMENTS,
    Opt(
        shown="200 generated ones",
        help="Documents that are known to be outside and are like those in question.",
    ),
]
Embedder = Annotated[
    str,
    PathRole.ADDRESS,
    Opt(help="The embedder: minilm, hf:NAME, URL#MODEL or hashing:DIMENSION."),
]
DryRun = Annotated[
    bool,
    Opt(
        "--dry-run",
        help="Send nothing. Show what would be asked, and what the run folder keeps already.",
    ),
]
JsonPath = Annotated[
    Path | None, PathRole.WRITES, Opt("--json", help="Also write the result to this JSON file.")
]
AsJson = Annotated[bool, Opt("--json", help="Print JSON.")]
FailOn = Annotated[
    list[str] | None,
    Opt(
        "--fail-on",
        metavar="CONDITION",
        help="Exit with 3 if any document is in, out, inconclusive or unscorable. in:3 asks for at"
        " least 3 of them, in:5% for at least 5 %. May be repeated.",
    ),
]
Conditions = Annotated[list[str] | None, Opt(metavar="CONDITION")]
Queries = Annotated[int, Opt(help="The number of queries of each account in a window.")]
Accounts = Annotated[int, Opt(help="The number of accounts that pool their answers, k.")]
Sensitivity = Annotated[
    float,
    Opt(
        help="The largest change of one score: 1 for a document added or removed, 2 for one"
        " replaced (vectors of length 1), B-A for scores clipped to A..B."
    ),
]
Database = Annotated[
    str | None,
    PathRole.KEEPS,
    Opt(
        shown="$RAGWITNESS_DATABASE, then ragwitness-service.db",
        help="The database: a file (SQLite) or postgresql://USER@HOST/NAME.",
    ),
]
Tenant = Annotated[str, Arg(help="The name of the tenant.")]
Account = Annotated[str, Arg(help="The name of the account.")]
Window = Annotated[Path, PathRole.KEEPS, Arg(help="The folder of the window.")]
Key = Annotated[Path, PathRole.READS, Opt("--key", help="The log's private key.")]
Output = Annotated[
    Path, PathRole.WRITES, Opt("--out", short="-o", help="The file to write, which must be new.")
]
Trusted = Annotated[
    Path, PathRole.READS, Opt("--trust", help="Your own trust.json: whose signatures count.")
]
Prompt = Annotated[
    str | None,
    PathRole.ADDRESS,
    Opt(
        help="The prompt template by which the generator sees the documents: its name or its"
        " .toml file. It is committed to with the embedder."
    ),
]
QuestionsTo = Annotated[
    Path | None,
    PathRole.WRITES,
    Opt(
        "--questions-to",
        metavar="FILE",
        help="Write the questions into this file, a lab: target's retrieved passages with them, for"
        " a batch job to answer; send nothing. The same command with replay/ANSWERS as its target"
        " concludes.",
    ),
]
Answered = Annotated[
    Path | None,
    PathRole.READS,
    Opt(
        "--answered",
        metavar="FILE",
        help="With --questions-to: the answers so far; write only what is still to be asked.",
    ),
]
