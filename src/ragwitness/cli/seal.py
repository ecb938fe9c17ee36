"""``ragwitness seal``: a sealed run as one file that somebody else can recompute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from ragwitness.cli.options import Output
from ragwitness.core.options import Arg, Opt, PathRole


def seal(
    run: Annotated[Path, PathRole.READS, Arg()],
    out: Output,
    hide_texts: bool = False,
    open_ids: Annotated[list[str] | None, Opt("--open", metavar="ID")] = None,
    key: Annotated[Path | None, PathRole.READS, Opt(shown="where it was then")] = None,
    form: Annotated[Literal["pack", "dsse"], Opt("--format")] = "pack",
) -> None:
    """Make an evidence pack of a run that was sealed before its first query.

    The receiver of the pack recomputes scores, p-values and verdicts with ragwitness verify,
    offline. --seal of audit, leak and canary probe seals a run; an unsealed run cannot be sealed
    afterwards.

    Args:
        run: The folder of a finished run that was made with --seal.
        hide_texts: Show commitments in place of documents, questions and answers. Scores, p-values
            and verdicts stay in the pack.
        open_ids: With --hide-texts: show this document all the same, with its questions and
            answers. May be repeated.
        key: The key that sealed the run.
        form: With dsse, also write an in-toto Statement over the pack's digest, signed in a DSSE
            envelope, beside the pack: OUT.dsse.json.
    """
    from ragwitness.cli.common import console, print_lines
    from ragwitness.core.errors import InputError
    from ragwitness.core.files import replace_file
    from ragwitness.evidence.sealing import pack_of

    if open_ids and not hide_texts:
        raise InputError("Without --hide-texts everything is open.", "Leave --open out.")
    data, public, draw = pack_of(run, out, hide=hide_texts, opened=open_ids or (), key=key)
    replace_file(out, data)
    if form == "dsse":
        from ragwitness.crypto.keys import read_key
        from ragwitness.evidence.seal import read_sealed
        from ragwitness.evidence.statement import envelope_of, statement_of

        envelope = out.with_name(f"{out.name}.dsse.json")
        signer = read_key(key or read_sealed(run).key)
        replace_file(envelope, envelope_of(statement_of(data, out.name), signer))
    print_lines(
        console(),
        *(["the draw is opened by this pack: no new probe of its plan decides"] if draw else []),
        f"pack: {out}, {len(data):,} bytes",
        *([f"statement: {envelope}"] if form == "dsse" else []),
        f"next: ragwitness verify {out} --key '{public}'",
    )
