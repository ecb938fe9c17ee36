"""``ragwitness canary``: plant canaries, and later ask whether a model was trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.canary.task import DrawTask
from ragwitness.cli.common import console, print_lines
from ragwitness.cli.options import DryRun
from ragwitness.core.errors import InputError, MissingExtraError, VerificationError
from ragwitness.core.options import Arg, Opt, PathRole
from ragwitness.report.formatting import visible

if TYPE_CHECKING:
    from ragwitness.canary.draw import Design
    from ragwitness.canary.folder import CanaryPlan
    from ragwitness.canary.looks import History, Look
    from ragwitness.canary.probe import ProbeConfig

# ``ragwitness canary status``: what is planted and was seen, and whether an opened draw holds.


def status(
    folder: Annotated[Path, PathRole.KEEPS, Arg()],
    open_to: Annotated[Path | None, PathRole.WRITES, Opt("--open")] = None,
    commitment: str | None = None,
    timestamp: str | None = None,
    roots: Annotated[Path | None, PathRole.READS] = None,
    share: float | None = None,
    undo: Annotated[Path | None, PathRole.WRITES] = None,
) -> None:
    """Show an audit, and check it.

    Its draw and what it sent must be as committed to. With --commitment it checks somebody else's
    folder or opened draw, and exits with 3 if it does not hold. Once a draw is opened, the same
    canaries prove nothing any more.

    Args:
        folder: The folder of an audit, or an opened draw (JSON).
        open_to: Open the draw: write it to this file, for others to check. It is then no longer a
            secret.
        commitment: The commitment as published. The folder or the draw is checked by it.
        timestamp: Have the commitment stamped by this timestamp authority (URL, RFC 3161).
        roots: The certificates (PEM) of timestamp authorities that you trust.
        share: The share of the provider's votes that are yours, for the power.
        undo: Write what is left at the service and must be deleted or taken back to this file.
    """
    if folder.is_dir():
        stamped = _stamped(folder, timestamp, roots)
        lines = [*_own(folder, open_to, commitment, share), *stamped]
        if undo is not None:
            lines.append(_left(folder, undo))
    elif timestamp is not None or roots is not None:
        raise InputError("--timestamp and --roots are for a folder.", "Give the folder.")
    elif open_to is not None:
        raise InputError("--open writes the draw of a folder.", "Give the folder of the audit.")
    else:
        lines = _opened(folder, commitment)
    print_lines(console(), *lines)


def _stamped(folder: Path, url: str | None, roots: Path | None) -> list[str]:
    """Have the commitment stamped where that was asked for, and say what its token says."""
    from ragwitness.canary.folder import STAMPED, read_plan
    from ragwitness.core.files import read_file
    from ragwitness.crypto.keys import LARGEST_STAMP, read_stamp
    from ragwitness.evidence.log_client import stamp

    plan, path = read_plan(folder), folder / STAMPED
    again = f"The plan is whole. Try again: ragwitness canary status {folder} --timestamp URL"
    if url is not None:
        stamp(path, plan.commitment, url, again)
    if not path.exists():
        return ["timestamp: none"] if roots else []
    token = read_file(path, LARGEST_STAMP, again)
    try:
        stamped = read_stamp(token, plan.commitment, str(path), roots, "draw.timestamp")
    except MissingExtraError as error:
        return [f"timestamp: {STAMPED} is there; {error.message} {error.hint}"]
    how = (
        "signed by an authority that you trust" if stamped.trusted else "not checked: give --roots"
    )
    return [f"timestamp: {stamped.at.isoformat()}, {how}"]


def _left(folder: Path, path: Path) -> str:
    """Write what an audit leaves at a service, and say how much it is."""
    from ragwitness.canary.folder import read_plan
    from ragwitness.canary.plant import rows_to_undo
    from ragwitness.core.files import write_rows

    rows = list(rows_to_undo(folder, read_plan(folder)))
    write_rows(path, rows)
    votes, quotes = (sum(bool(row[name]) for row in rows) for name in ("vote", "quotes"))
    return (
        f"to undo: {len(rows):,} documents with their conversations, {votes:,} votes, in {path};"
        f" {quotes:,} answers quote a trigger and come first"
    )


def _own(
    folder: Path, open_to: Path | None, commitment: str | None, share: float | None
) -> list[str]:
    """Return lines on the contents of a folder; open its draw on request."""
    from ragwitness.canary.folder import check_traces, read_plan, write_opened
    from ragwitness.canary.looks import mark_opened, read_history

    # Step 1: the plan as it was published.
    plan = read_plan(folder)
    _refuse_other(plan, commitment)
    sent = sum(map(len, plan.pools.values()))
    lines = [
        f"commitment: {plan.commitment.hex()}",
        f"design: {plan.design.family}, rate {plan.design.rate}",
        f"slots: {plan.design.slots}, of {plan.design.candidates} candidates each",
        f"examples: {sent:,} to send, {len(plan.held_out):,} held out",
    ]
    if not plan.drawn:
        return [*lines, f"beacon: waiting for {plan.beacon_source!r}; nothing is drawn yet"]
    # Step 2: seed and commitment belong together; step 3: so do the draw and the traces.
    plan.check()
    planted = check_traces(folder, plan)
    lines += [
        f"beacon: {plan.beacon or 'none'}",
        "draw: is the one committed to",
        "traces: send/traces.jsonl is what the draw gives"
        if planted
        else f"traces: not written yet; run: ragwitness canary plant {folder}",
    ]
    lines += _planted(folder, plan, share)
    # Step 4: the looks so far. The announced number of looks decides.
    history = read_history(folder)
    lines += [f"probed: {_look(look)}" for look in history.looks]
    lines += [
        f"begun, not finished: {visible(look.target, 80)}, release {visible(look.release, 80)}; it"
        " counts as a look"
        for look in history.unfinished
    ]
    lines += _evidence(plan, history)
    # Opening is recorded before the file is written: a draw that may have been read decides nothing
    # more.
    if open_to is not None:
        mark_opened(folder, open_to)
        write_opened(open_to, plan)
    if open_to is not None or history.opened:
        lines.append("opened: the draw is no secret any more, and no new look decides")
    return lines


def _planted(folder: Path, plan: CanaryPlan, share: float | None) -> list[str]:
    """Return lines on the accepted votes of a service, and on the power, where it was measured."""
    from ragwitness.canary.plant import cautions, planted_so_far, read_deliveries, votes_given
    from ragwitness.canary.power import power_lines

    traces, votes_by_trace = plan.traces(), votes_given(folder)
    votes = sum(map(bool, votes_by_trace.values()))
    if not read_deliveries(folder):
        by_hand = (
            [f"planted by hand: {len(votes_by_trace):,} answers, {votes:,} votes due"]
            if votes_by_trace
            else []
        )
        planned = votes if votes_by_trace else sum(trace.slot is not None for trace in traces)
        return [*by_hand, *power_lines(plan.design, planned, share)]
    planted = planted_so_far(folder, plan, traces)
    obeyed = planted.obeyed / planted.asked if planted.asked else None
    return [
        f"planted: {planted.answered:,} of {planted.traces:,} traces answered, {votes:,} votes"
        " taken or due by hand",
        *(f"warning: {caution}" for caution in cautions(planted)),
        *power_lines(plan.design, votes, share, obeyed),
    ]


def _refuse_other(plan: CanaryPlan, commitment: str | None) -> None:
    """Refuse a folder with another commitment than the published one."""
    if commitment is not None and commitment.strip().lower() != plan.commitment.hex():
        raise VerificationError(
            "commitment.published",
            f"The folder's commitment is {plan.commitment.hex()}, not the one published.",
        )


def _look(one: Look) -> str:
    model = f"{visible(one.target, 80)}, release {visible(one.release, 80)}"
    return f"{model}: {one.verdict} (p = {one.p_value:.4g}), rank {', '.join(map(str, one.ranks))}"


def _evidence(plan: CanaryPlan, history: History) -> list[str]:
    # One look announced: the rank test. Several: they share the level.
    looks, announced = history.looks, plan.design.releases
    taken = len(looks) + len(history.unfinished)
    if announced == 1:
        line = f"looks: {taken} of the one announced; the first decides"
        return [line] if taken else []
    p = f"p = {looks[-1].p_value:.4g} over all of them" if looks else "none was taken"
    return [f"looks: {taken} of {announced or 'any number of'} announced; {p}"]


def _opened(path: Path, commitment: str | None) -> list[str]:
    """Check an opened draw."""
    from ragwitness.canary.folder import check_opened

    # Without the published commitment an opened draw proves only that it agrees with itself.
    if commitment is None:
        raise InputError(
            "An opened draw is checked against the commitment that was published before.",
            "Give it: --commitment HEX",
        )
    draw, (source, value) = check_opened(path, commitment)
    lines = ["draw: is the one committed to"]
    lines += [
        f"slot {slot.number + 1}: candidate {slot.chosen + 1} of {len(slot.candidates)},"
        f" {slot.trigger}"
        for slot in draw.slots
    ]
    lines.append(
        f"beacon: {value!r}; look up that it is what {source!r} gave after the commitment was"
        " published: then nobody chose the draw"
        if source
        else "beacon: none; that the seed was drawn at random is the auditor's word"
    )
    return lines


def draw(task: DrawTask, share: float | None = None, dry_run: DryRun = False) -> None:
    """Draw a secret and commit to it.

    It also estimates the share of violating providers that such a plan finds, where that was
    measured; with --dry-run it prints the estimate and draws nothing. Publish commitment.json
    before anything is sent. Keep the folder's secret/ private until you open the draw with
    ragwitness canary status --open.

    Args:
        share: The share of the provider's votes that are yours, for the power.
    """
    from ragwitness.canary.folder import write_plan
    from ragwitness.canary.power import power_lines

    plan, out = task.plan(), Path(task.out)
    # The draw and its best possible outcome are printed before anything is sent.
    traces = (plan if plan.drawn else plan.joined("00")).traces()
    sent = sum(map(len, plan.pools.values()))
    carrying = sum(trace.slot is not None for trace in traces)
    power = power_lines(plan.design, carrying, share)
    foreseen = (at_best(plan.design), *power)
    screen = console()
    if dry_run:
        print_lines(screen, *foreseen, "Nothing was drawn.")
        return
    write_plan(out, plan)
    print_lines(
        screen,
        f"commitment: {plan.commitment.hex()}",
        f"{sent:,} examples to send, {len(plan.held_out):,} held out, in {out}",
        *foreseen,
        f"Publish {out}/commitment.json first. Then: ragwitness canary plant {out}"
        + (" --beacon VALUE" if task.beacon else ""),
    )


# The possible outcomes of a canary audit, printed before anything is sent.


def at_best(design: Design) -> str:
    """Say the least p-value that a design can give."""
    from ragwitness.canary.verdict import best_p_value

    # The rank test cannot go below 1 in the number of candidates, however strong the signal is.
    p = best_p_value(design)
    short = f"; level {design.alpha} cannot be reached" if p > design.level else ""
    if not short and not design.late:
        short = "; without late slots (--late) the verdict is trained-or-remembered at most"
    return f"p-value at best, at the first look: {p:.3g}{short}"


def foretold(design: Design, config: ProbeConfig, examples: int) -> Iterator[str]:
    """Say how much is asked, and what that could decide.

    Args:
        design: Of the plan.
        config: How the model is asked.
        examples: Held-out ones.
    """
    from ragwitness.canary.probe import queries_of

    yield f"slots: {design.slots}, examples: {examples}, candidates: {design.candidates} each"
    # The preview of the probe: queries by way of asking, then the least p-value.
    for name, count in queries_of(config, design.candidates).items():
        yield f"{name}: {count * examples * design.slots:,} queries"
    yield at_best(design)
    decides = design.slots == design.releases == 1 <= design.candidates * design.level
    if config.way in (None, "sampled") and decides:
        yield _by_samples(design, config, examples)


def _by_samples(design: Design, config: ProbeConfig, examples: int) -> str:
    """Return the shares of answers with the canary that the test separates."""
    from ragwitness.canary.rank_test import share_found

    answers = examples * config.samples
    least = partial(share_found, answers, design.candidates, design.level)
    limits = [
        f"no share separates from {share_of_others:.0%} of the others'"
        if (share := least(share_of_others)) is None
        else f"{share:.0%} against {share_of_others:.0%} of the others'"
        for share_of_others in (0.1, 0.5)
    ]
    return (
        f"sampled: {answers:,} answers per candidate; canaries that would be found in 4 of 5"
        f" audits: in {', or '.join(limits)}"
    )
