"""``ragwitness lab``: corpora made to be measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.paths import PathRole


def wiki_pii(
    text: Annotated[
        Path,
        PathRole.READS,
        typer.Option(help="A file of public prose in UTF-8, e.g. of wikitext."),
    ],
    out: Annotated[
        Path, PathRole.WRITES, typer.Option("--out", "-o", help="The JSONL file for the records.")
    ],
    secrets: Annotated[
        Path, PathRole.WRITES, typer.Option(help="The JSONL file for the planted secrets.")
    ],
    decoys: Annotated[
        Path | None,
        PathRole.WRITES,
        typer.Option(help="A JSONL file for as many secrets that are planted nowhere."),
    ] = None,
    characters: Annotated[
        int, typer.Option(help="The most characters of the text of a record.")
    ] = 1500,
    limit: Annotated[
        int | None,
        typer.Option(help="The number of records to keep, drawn at random.", show_default="all"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed that draws the secrets.")] = 0,
) -> None:
    """Plant made-up contact details in a text.

    They stand behind each sentence (SAGE, App. A.9). The e-mail, telephone and web addresses
    belong to nobody: their domains are reserved for examples, their numbers for fiction.
    """
    import json

    from ragwitness.cli.common import console, print_lines, read_text
    from ragwitness.extraction import wiki_pii as planting
    from ragwitness.kit.files import replace_file
    from ragwitness.text.secrets import write_secrets

    prose = read_text(text)
    # Records, the secrets in them, and decoys from the same distribution that stand nowhere: the
    # background of every count of secrets.
    made = planting.wiki_pii(prose, seed=seed, size=characters, most=limit)
    rows = (json.dumps({"id": d.id, "text": d.text}, ensure_ascii=False) for d in made.records)
    replace_file(out, "".join(f"{row}\n" for row in rows))
    write_secrets(secrets, made.secrets)
    if decoys:
        write_secrets(decoys, made.decoys)
    told = f"{len(made.records):,} records with {len(made.secrets):,} planted secrets in {out}"
    print_lines(console(), told)
