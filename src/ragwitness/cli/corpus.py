"""``ragwitness corpus``: corpora made to be measured on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.config import Configurable

__all__ = ["app"]

app = typer.Typer(help="Make corpora to measure on.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _corpus() -> None:
    """Keep ``wiki-pii`` a verb of its own."""


@app.command("wiki-pii", cls=Configurable)
def wiki_pii(
    text: Annotated[Path, typer.Option(help="Public prose in UTF-8, e.g. of wikitext.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the records go, as JSONL.")],
    secrets: Annotated[Path, typer.Option(help="Where the planted secrets go, as JSONL.")],
    decoys: Annotated[
        Path | None, typer.Option(help="Where as many more go that are planted nowhere.")
    ] = None,
    characters: Annotated[int, typer.Option(help="Most characters of a record's text.")] = 1500,
    limit: Annotated[int | None, typer.Option(help="Records to keep, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Of the secrets.")] = 0,
) -> None:
    """Plant made-up contact details in a text (SAGE, App. A.9).

    They stand behind each sentence. E-mail, telephone and web addresses are of nobody: domains
    reserved for examples, numbers reserved for fiction.
    """
    import json

    from ragwitness.cli.common import console
    from ragwitness.cli.outputs import check_writable
    from ragwitness.errors import InputError
    from ragwitness.extraction import wiki_pii as planting
    from ragwitness.report.writing import write_text
    from ragwitness.text.secret_files import write_secrets

    wanted = [out, secrets, *([decoys] if decoys else [])]
    if len({path.absolute() for path in (text, *wanted)}) <= len(wanted):
        raise InputError("One file would replace another.", "Give each its own path.")
    for path in wanted:
        check_writable(path)
    try:
        prose = text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{text} cannot be read: {why}.", "Give a file of plain text.") from error
    made = planting.wiki_pii(prose, seed=seed, size=characters, most=limit)
    rows = (json.dumps({"id": d.id, "text": d.text}, ensure_ascii=False) for d in made.records)
    write_text(out, "".join(f"{row}\n" for row in rows))
    write_secrets(secrets, made.secrets)
    if decoys:
        write_secrets(decoys, made.decoys)
    console().print(
        f"{len(made.records):,} records with {len(made.secrets):,} planted secrets in {out}",
        markup=False,
        soft_wrap=True,
    )
