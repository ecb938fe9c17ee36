"""``ragwitness canary status``: what is planted and was seen, and whether an opened draw holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ragwitness.canary.plant.plan import Plan

__all__ = ["status"]


def status(
    folder: Annotated[Path, typer.Argument(help="Folder of an audit, or an opened draw (JSON).")],
    open_to: Annotated[
        Path | None,
        typer.Option("--open", help="Write the opened draw here, for others to check: no secret."),
    ] = None,
    commitment: Annotated[
        str | None, typer.Option(help="As published; checks an opened draw against it.")
    ] = None,
) -> None:
    """Show an audit and check its draw against the commitment.

    Given an opened draw and --commitment, checks somebody else's: exit code 3 where it does not
    hold. Once opened, a draw is no secret, and the same canaries prove nothing any more.
    """
    from ragwitness.cli.common import console
    from ragwitness.errors import InputError

    screen = console()
    if folder.is_dir():
        if commitment is not None:
            raise InputError("--commitment checks an opened draw.", "Give the file, not a folder.")
        lines = _own(folder, open_to)
    elif open_to is not None:
        raise InputError("--open writes the draw of a folder.", "Give the folder of the audit.")
    else:
        lines = _opened(folder, commitment)
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)


def _own(folder: Path, open_to: Path | None) -> list[str]:
    """What a folder holds; opens its draw where asked to."""
    from ragwitness.canary.plant.folder import read_plan, read_probes, write_opened

    plan = read_plan(folder)
    sent = sum(map(len, plan.pools.values()))
    lines = [
        f"commitment: {plan.commitment.hex()}",
        f"design: {plan.design.name}, {plan.design.family}, {plan.design.slots} slots of"
        f" {plan.design.candidates} candidates, rate {plan.design.rate}",
        f"examples: {sent:,} to send, {len(plan.held_out):,} held out",
    ]
    if not plan.drawn:
        return [*lines, f"beacon: waiting for {plan.beacon_source!r}; nothing is drawn yet"]
    plan.check()
    planted = (folder / "send" / "traces.jsonl").exists()
    lines += [
        f"beacon: {plan.beacon or 'none'}",
        "draw: is the one committed to",
        f"traces: {'written to send/' if planted else 'not written yet: ragwitness canary plant'}",
    ]
    probes = read_probes(folder)
    lines += [
        f"probed: release {one['release']}{' (twin)' if one['twin'] else ''}, ranks"
        f" {', '.join(str(rank) for rank in one['ranks'])}, {one['verdict']}"
        for one in probes
    ]
    lines += _evidence(plan, [one for one in probes if not one["twin"]])
    if open_to is not None:
        write_opened(open_to, plan)
        lines.append(f"opened: {open_to}; from now on the draw is no secret")
    return lines


def _evidence(plan: Plan, probes: list[dict[str, list[int]]]) -> list[str]:
    import math

    from ragwitness.canary.decide.evidence import log_evidence

    if not probes:
        return []
    m = plan.design.candidates
    grown = log_evidence(
        [[(rank, m) for rank in one["ranks"]] for one in probes], plan.design.releases
    )
    return [f"evidence: E = {math.exp(grown):.3g} over {len(probes)} releases; p = min(1, 1 / E)"]


def _opened(path: Path, commitment: str | None) -> list[str]:
    """Check an opened draw."""
    from ragwitness.canary.plant.folder import check_opened
    from ragwitness.errors import InputError

    if commitment is None:
        raise InputError(
            "An opened draw is checked against the commitment that was published before.",
            "Give it: --commitment HEX",
        )
    draw, beacon = check_opened(path, commitment)
    lines = ["draw: is the one committed to"]
    lines += [
        f"slot {one.number + 1}: candidate {one.chosen + 1} of {len(one.candidates)},"
        f" {one.trigger}{'' if one.planted else ' (not planted)'}"
        for one in draw.slots
    ]
    source, value = beacon
    lines.append(
        f"beacon: {value!r}; look up that it is what {source!r} gave after the commitment was"
        " published: then nobody chose the draw"
        if source
        else "beacon: none; that the seed was drawn at random is the auditor's word"
    )
    return lines
