"""``ragwitness canary status``: what is planted and was seen, and whether an opened draw holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
        str | None, typer.Option(help="As published; checks a folder or an opened draw by it.")
    ] = None,
) -> None:
    """Show an audit, and check it. Its draw and what it sent must be as committed to.

    With --commitment checks somebody else's folder or opened draw: exit code 3 where it does not
    hold. Once opened, a draw is no secret, and the same canaries prove nothing any more.
    """
    from ragwitness.cli.common import console
    from ragwitness.errors import InputError

    screen = console()
    if folder.is_dir():
        lines = _own(folder, open_to, commitment)
    elif open_to is not None:
        raise InputError("--open writes the draw of a folder.", "Give the folder of the audit.")
    else:
        lines = _opened(folder, commitment)
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)


def _own(folder: Path, open_to: Path | None, commitment: str | None) -> list[str]:
    """What a folder holds; opens its draw where asked to."""
    from ragwitness.canary.plant.folder import check_traces, read_plan, write_opened
    from ragwitness.canary.plant.looks import mark_opened, read_probes, was_opened

    plan = read_plan(folder)
    _refuse_other(plan, commitment)
    sent = sum(map(len, plan.pools.values()))
    lines = [
        f"commitment: {plan.commitment.hex()}",
        f"design: {plan.design.name}, {plan.design.family}, rate {plan.design.rate}",
        f"slots: {plan.design.slots}, of {plan.design.candidates} candidates each",
        f"examples: {sent:,} to send, {len(plan.held_out):,} held out",
    ]
    if not plan.drawn:
        return [*lines, f"beacon: waiting for {plan.beacon_source!r}; nothing is drawn yet"]
    plan.check()
    planted = check_traces(folder, plan)
    lines += [
        f"beacon: {plan.beacon or 'none'}",
        "draw: is the one committed to",
        "traces: send/traces.jsonl is what the draw gives"
        if planted
        else f"traces: not written yet; run: ragwitness canary plant {folder}",
    ]
    probes = read_probes(folder)
    lines += [f"probed: {_look(one)}" for one in probes]
    lines += _evidence(plan, [one for one in probes if not one["twin"]])
    if open_to is not None:
        mark_opened(folder, open_to)
        write_opened(open_to, plan)
    if was_opened(folder):
        lines.append("opened: the draw is no secret any more, and no new look decides")
    return lines


def _refuse_other(plan: Plan, commitment: str | None) -> None:
    """Refuse a folder with another commitment than the published one."""
    from ragwitness.errors import VerificationError

    if commitment is not None and commitment.strip().lower() != plan.commitment.hex():
        raise VerificationError(
            "commitment.published",
            f"The folder's commitment is {plan.commitment.hex()}, not the one published.",
        )


def _look(row: dict[str, Any]) -> str:
    from ragwitness.report.wording import visible

    model = f"{visible(row['target'], 80)}, release {visible(row['release'], 80)}"
    if row["twin"]:
        return f"{model}: a compliant twin, W = {row['statistic']:.3f}"
    ranks = ", ".join(map(str, row["ranks"]))
    return f"{model}: {row['verdict']} (p = {row['p_value']:.4g}), rank {ranks}"


def _evidence(plan: Plan, looks: list[dict[str, Any]]) -> list[str]:
    import math

    from ragwitness.canary.decide.evidence import log_evidence

    if plan.design.releases == 1:
        return [f"looks: {len(looks)} of the one announced; the first decides"] if looks else []
    m = plan.design.candidates
    ranks = [[(rank, m) for rank in one["ranks"]] for one in looks]
    grown = math.exp(min(700.0, log_evidence(ranks, plan.design.releases)))
    announced = plan.design.releases or "any number of"
    return [
        f"looks: {len(looks)} of {announced} announced; evidence E = {grown:.3g}, p = min(1, 1 / E)"
    ]


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
