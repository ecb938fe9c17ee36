"""The parts of a verb's help: an example, its options, and verbs to read next.

Options of a verb that has many stand under the question that they answer. The question follows
from the option's name, which has one meaning in all verbs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_MANY = 10
"""Options of a verb from which on they are put under questions."""

_OTHERS = "How is it done?"
_ALWAYS = "In every verb"

QUESTIONS: Mapping[str, frozenset[str]] = {
    question: frozenset(names.split())
    for question, names in {
        "What is it about?": "target documents collection corpus transcripts questions plan"
        " release policy ordinary window tenant database text-field encoding group-field paragraphs"
        " limit public data information topic secrets decoys contacts pii",
        "What is it compared with?": "known-out known-in auxiliary background held-out"
        " control calibration twin",
        "When does it decide?": "alpha account-alpha accept-unlike yes k-max releases",
        _OTHERS: "",
        "Which RAG system?": "retrieval retrieve retrieve-by index metric generator k"
        " template chunk-words defense originals prompt",
        "What is promised?": "epsilon delta delta-prime delta-star queries accounts"
        " sensitivity sigma joint-delta joint-epsilon lifetime-epsilon payer-queries ledger",
        "What may it cost?": "max-queries max-tokens max-cost price-in price-out dry-run",
        "Who can check it?": "seal runs-log timestamp",
        "How is the system reached?": "concurrency timeout retries key-env header host port",
        "Who computes?": "engine workers worker-gpus ray-address questions-to answered",
        "Where does the result go?": "out run json jsonl parquet junit sarif html figure tables"
        " examples fail-on replace",
        _ALWAYS: "config help",
    }.items()
}
"""Options by the question that they answer, in the order of a help text."""

# The options of a verb whose names mean something else there.
_APART = {("synthesize:synthesize", name) for name in ("generator", "k")}


@dataclass(frozen=True, slots=True)
class CommandExample:
    """The example of a help text, and the verbs to read next.

    Attributes:
        line: A command that works where the files that it names are there.
        see: Verbs to read about next, by their words.
    """

    line: str
    see: tuple[str, ...] = ()


@contextmanager
def section(formatter: Any, heading: str) -> Iterator[None]:
    """Write what follows under a heading: with a colon, unless it is a question."""
    formatter.write_paragraph()
    formatter.write(f"{heading}\n" if heading.endswith("?") else f"{heading}:\n")
    with formatter.indentation():
        yield


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a verb's example, arguments and options, and the verbs to read about next."""
    example = EXAMPLES.get(command.home)
    if example is not None:
        with section(formatter, "Example"):
            # Written as it is typed: a line that was wrapped would not be one command.
            for line in example.line.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
    sections = by_question(command, ctx)
    # One width for all headings, so that the eye runs down one column.
    options = [name for heading, rows in sections if heading != "Arguments" for name, _ in rows]
    for heading, rows in sections:
        width = 0 if heading == "Arguments" else max(map(len, options))
        with section(formatter, heading):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows])
    if example is not None and example.see:
        with section(formatter, "See also"):
            formatter.write_text(", ".join(f"ragwitness {words}" for words in example.see))


def by_question(command: Any, ctx: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what a verb takes, name and text, under headings; few options are one list."""
    records = [(param, param.get_help_record(ctx)) for param in command.get_params(ctx)]
    visible = [(param, record) for param, record in records if record is not None]
    options = [(param, record) for param, record in visible if param.param_type_name == "option"]
    rows: dict[str, list[tuple[str, str]]] = {
        "Arguments": [record for param, record in visible if param.param_type_name == "argument"]
    }
    if len(options) <= _MANY:
        rows["Options"] = [record for _, record in options]
    else:
        rows |= {question: [] for question in QUESTIONS}
        for param, record in options:
            rows[question_of(command.home, param)].append(record)
    return [(heading, under) for heading, under in rows.items() if under]


def question_of(home: str, param: Any) -> str:
    """Return the question that an option of a verb answers."""
    name = next(
        (spelling for spelling in param.opts if spelling.startswith("--")), param.opts[0]
    ).lstrip("-")
    if (home, name) in _APART:
        return _OTHERS
    return next((question for question, names in QUESTIONS.items() if name in names), _OTHERS)


_LAB = "lab:corpus.jsonl"
_MINE = "--documents mine.jsonl \\\n    --known-out never-shared.jsonl"
_WINDOW = "W/public --trust trust.json"

EXAMPLES: Mapping[str, CommandExample] = {
    # Start.
    "demo:demo": CommandExample("ragwitness demo", ("view", "audit", "init")),
    "init:init": CommandExample(
        f"ragwitness init --target {_LAB} {_MINE}", ("doctor", "plan", "audit")
    ),
    "doctor:doctor": CommandExample(f"ragwitness doctor {_LAB}", ("plan", "audit")),
    "plan:plan": CommandExample(
        f"ragwitness plan {_MINE} --method mba,rag-mia", ("doctor", "audit", "evaluate")
    ),
    "report:report": CommandExample(
        "ragwitness report first --junit audit.xml --fail-on in:3", ("view", "audit", "leak")
    ),
    "report:view": CommandExample("ragwitness view first", ("report", "init", "audit")),
    # Audit.
    "audit:audit": CommandExample(
        f"ragwitness audit {_LAB} {_MINE} --run first", ("plan", "doctor", "report", "evaluate")
    ),
    "mark:mark": CommandExample(
        "ragwitness mark corpus.jsonl --key marks.json --out copies", ("audit", "verify")
    ),
    "leak:leak": CommandExample(
        f"ragwitness leak {_LAB} --corpus corpus.jsonl \\\n"
        "    --attacks composite,pide --prompts 4",
        ("synthesize", "compare", "report"),
    ),
    "canary:draw": CommandExample(
        "ragwitness canary draw examples.jsonl -o canaries --candidates 20",
        ("canary plant", "canary status"),
    ),
    "canary_plant:plant": CommandExample(
        "ragwitness canary plant canaries", ("canary probe", "canary status")
    ),
    "canary_probe:probe": CommandExample(
        f"ragwitness canary probe {_LAB} --plan canaries \\\n    --release spring --dry-run",
        ("canary status", "report"),
    ),
    "canary:status": CommandExample(
        "ragwitness canary status canaries", ("canary draw", "canary probe")
    ),
    # Protect.
    "synthesize:synthesize": CommandExample(
        "ragwitness synthesize corpus.jsonl --method redact --contacts -o safe.jsonl",
        ("compare", "leak"),
    ),
    "compare:compare": CommandExample(
        "ragwitness compare corpus.jsonl --method redact \\\n"
        "    --prompts 3 --answer-tokens 32 --held-out 3",
        ("synthesize", "leak", "report"),
    ),
    "collusion:bound": CommandExample(
        "ragwitness collusion bound --epsilon 1 --queries 1000 --accounts 16",
        ("collusion calibrate", "collusion estimate"),
    ),
    "collusion:calibrate": CommandExample(
        "ragwitness collusion calibrate --epsilon 1 --queries 1000 --accounts 64",
        ("collusion bound", "service tenants create"),
    ),
    "collusion:estimate": CommandExample(
        "ragwitness collusion estimate log.jsonl --only pairs", ("collusion bound", "attest close")
    ),
    "service:serve": CommandExample(
        "ragwitness service serve --port 8000", ("service tenants create", "attest commit")
    ),
    "service:restored": CommandExample(
        "ragwitness service restored --database copy.db", ("service serve",)
    ),
    "service:create": CommandExample(
        "ragwitness service tenants create clinic --queries 25 --accounts 4 \\\n"
        "    --capacity 1024 --scale 128 --embedder hashing:64",
        ("service tenants add-documents", "service tenants add-account", "collusion calibrate"),
    ),
    "service:list_": CommandExample(
        "ragwitness service tenants list", ("service tenants create", "service tenants budget")
    ),
    "service:policy_": CommandExample(
        "ragwitness service tenants policy clinic", ("attest commit", "service tenants create")
    ),
    "service:add_documents": CommandExample(
        "ragwitness service tenants add-documents clinic corpus.jsonl",
        ("service tenants remove-documents", "service serve"),
    ),
    "service:remove_documents": CommandExample(
        "ragwitness service tenants remove-documents clinic sample-0001",
        ("service tenants add-documents", "service tenants erase"),
    ),
    "service:erase": CommandExample(
        "ragwitness service tenants erase clinic", ("service tenants remove-documents",)
    ),
    "service:add_account": CommandExample(
        "ragwitness service tenants add-account clinic ann",
        ("service tenants rotate-key", "service tenants revoke"),
    ),
    "service:rotate_key": CommandExample(
        "ragwitness service tenants rotate-key clinic ann", ("service tenants revoke",)
    ),
    "service:revoke": CommandExample(
        "ragwitness service tenants revoke clinic ann",
        ("service tenants add-account", "service tenants rotate-key"),
    ),
    "service:budget": CommandExample(
        "ragwitness service tenants budget clinic", ("collusion bound", "service tenants list")
    ),
    # Prove.
    "seal:seal": CommandExample(
        "ragwitness seal first -o pack.zip --hide-texts", ("verify", "audit")
    ),
    "attest:commit": CommandExample(
        "ragwitness attest commit --policy policy.toml --index clinic=docs.jsonl \\\n"
        "    --key log.key --name example.org/log -o W",
        ("attest beacon", "attest begin"),
    ),
    "attest_checks:beacon": CommandExample(
        f"ragwitness attest beacon {_WINDOW} -o beacon.json", ("attest begin", "attest commit")
    ),
    "attest:begin": CommandExample(
        "ragwitness attest begin W beacon.json --key log.key", ("attest beacon", "attest close")
    ),
    "attest:close": CommandExample(
        "ragwitness attest close W --key log.key", ("attest challenge", "attest prove")
    ),
    "attest_checks:pin": CommandExample(
        f"ragwitness attest pin {_WINDOW} --policy", ("attest challenge", "verify")
    ),
    "attest_checks:challenge": CommandExample(
        f"ragwitness attest challenge {_WINDOW} --records 30 \\\n    -o challenge.json",
        ("attest pin", "attest prove"),
    ),
    "attest:prove": CommandExample(
        "ragwitness attest prove W challenge.json --key log.key -o bundle.zip",
        ("verify", "attest challenge"),
    ),
    "attest_checks:monitor": CommandExample(
        f"ragwitness attest monitor {_WINDOW} --state seen", ("attest commit", "verify")
    ),
    "verify:verify": CommandExample(
        "ragwitness verify bundle.zip --trust trust.json", ("seal", "attest pin", "attest prove")
    ),
    "attest_checks:check": CommandExample(
        "ragwitness attest receipt check receipt.json --trust trust.json \\\n"
        "    --query 'which patients had a fever'",
        ("verify", "attest monitor"),
    ),
    # Study.
    "evaluate:evaluate": CommandExample(
        "ragwitness evaluate --corpus corpus.jsonl --audits rag-mia \\\n"
        "    --limit 12 --calibration 20",
        ("audit", "plan", "lab reproduce"),
    ),
    "lab:serve": CommandExample(
        "ragwitness lab serve --corpus corpus.jsonl --port 8000", ("doctor", "audit", "leak")
    ),
    "reproduce:reproduce": CommandExample("ragwitness lab reproduce list", ("evaluate",)),
}
"""By the home of a verb, as the table of ``cli/main.py`` has it."""
