"""Canaries at a deployed model: every slot on every held-out example, then what they show."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from ragwitness.canary.decide.verdict import Finding, decide
from ragwitness.canary.design.draw import Slot, bits_of
from ragwitness.canary.plant.plan import Plan
from ragwitness.canary.score.amplification import amplification
from ragwitness.canary.score.probe import WAYS, CanaryProbe, ProbeConfig, Way
from ragwitness.canary.score.prompts import refuse_markers
from ragwitness.crypto.canonical import canonical
from ragwitness.errors import InputError
from ragwitness.runs.canary_result import CanaryResult, History, Look, SlotResult
from ragwitness.runs.continuation import asked_in, best_way, echoes_truly, ways_served
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import ANSWERS, Journal
from ragwitness.runs.pace import Pace
from ragwitness.runs.remarks import answers_kept, spending, unasked
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.types import Target

__all__ = ["CanaryResult", "History", "Look", "SlotResult", "probe_canaries", "protocol_of"]

_AT_ONCE = 4  # examples probed at a time; each asks about all candidates together


async def probe_canaries(
    plan: Plan,
    target: Target,
    config: ProbeConfig | None = None,
    *,
    release: str = "1",
    history: History | None = None,
    run: Path | None = None,
    progress: Progress | None = None,
    governor: Governor | None = None,
) -> CanaryResult:
    """Probe a target; answers already in ``run`` are not asked for again.

    Args:
        plan: Drawn and planted.
        target: The deployed model.
        config: How to ask; None for the defaults.
        release: What this release of the model is called.
        history: Earlier probes of the same plan.
        run: Folder of the journal; None keeps nothing.
        progress: Called with slot, examples done and examples in all.
        governor: Lets queries pass; None makes one without caps.

    Raises:
        CapabilityError: The target gives nothing that this way can read.
        InputError: Not one example of a slot could be scored, the plan is not drawn yet, or the
            prompt names a marker.
        CapReachedError: A cap left nothing to show at all.
        TargetUnreachableError: The target cannot be reached.
    """
    clock, config, history = time.monotonic(), config or ProbeConfig(), history or History()
    plan.draw()  # before the check: a beacon that is not there yet is no broken commitment
    draw = plan.check()
    refuse_markers(config.prompts, draw)
    with ExitStack() as files:
        if governor is None:
            governor = files.enter_context(Governor.of_run(run, pace=Pace.at_most(4)))
        first = CanaryProbe(draw.slots[0], plan.held_out, replace(config, way="sampled"))
        ways = await ways_served(target, first, governor, run)
        journal = files.enter_context(Journal(run / ANSWERS)) if run else None

        def worker_of(system: Target) -> Worker:
            return Worker(system, journal, _AT_ONCE, governor=governor)

        wished = config.way in (None, "exact") and "exact" in ways
        true = await echoes_truly(target, worker_of, first.opening) if wished else None
        if true is False:
            ways = tuple(way for way in ways if way != "exact")
        way = config.way or best_way(target, ways)
        system = asked_in(target, way, ways, untrue=true is False)
        asked, worker = replace(config, way=way), worker_of(system)
        found = {}
        for slot in draw.slots:
            audit = CanaryProbe(slot, plan.held_out, asked)
            found[slot.number] = await worker.run(
                audit, audit.documents, f"slot {slot.number + 1}", progress
            )
    outcomes = [one for slot in found.values() for one in slot]
    spent = spending(governor.spent, governor.budget, governor.cap, outcomes)
    if not any(one.score.value is not None for one in outcomes):
        governor.refuse_if_capped("held-out examples")
    # A test on whatever a cap let through, and again on more, would be two looks at one draw.
    whole = spent.stopped_by is None
    slots = tuple(_slot_result(slot, found[slot.number]) for slot in draw.slots if whole)
    digest = _digest(release, slots)
    known = [one.digest for one in history.looks]
    place = known.index(digest) if digest in known else len(known)
    if history.opened and place == len(known):
        raise InputError(
            "These answers were not seen before the draw was opened, so they decide nothing.",
            "Plan anew; the same canaries prove nothing any more.",
        )
    return CanaryResult(
        target=system.name,
        way=way,
        finding=_finding(plan, draw.slots, slots, history, place) if whole else None,
        slots=slots,
        digest=digest,
        look=place + 1,
        settings=_settings(plan, asked, way) | {"protocol": protocol_of(plan, config, release)},
        warnings=(
            *unasked(spent, len(outcomes)),
            *_on_echo(way, true),
            *_cautions(asked, slots, outcomes, plan, history),
        ),
        queries=sum(one.queries for one in outcomes),
        seconds=time.monotonic() - clock,
        spent=spent,
    )


def protocol_of(plan: Plan, config: ProbeConfig, release: str) -> str:
    """Return SHA-256 of how a release is to be asked, in hex.

    The commitment does not hold it. Whoever publishes it before asking shows that the way was not
    chosen by what it gave.
    """
    asked = dataclasses.asdict(config) | {"commitment": plan.commitment.hex(), "release": release}
    return hashlib.sha256(canonical(asked)).hexdigest()


def _digest(release: str, slots: Sequence[SlotResult]) -> str:
    """Return SHA-256 of a release and its scores, as they are stored."""
    scores = [[[f"{value:.6f}" for value in row] for row in one.scores.tolist()] for one in slots]
    examples = [one.examples for one in slots]
    return hashlib.sha256(canonical([release, examples, scores])).hexdigest()


def _slot_result(slot: Slot, outcomes: Sequence[Outcome]) -> SlotResult:
    scored = [one for one in outcomes if one.score.value is not None]
    if not scored:
        reasons = [one.score.reason for one in outcomes if not one.capped]
        raise InputError(
            f"No held-out example could be scored in slot {slot.number + 1}:"
            f" {next(iter(reasons), 'a cap was reached')}.",
            "ragwitness doctor TARGET shows what it gives; docs/canary.md names the ways to ask.",
        )
    scores = np.array([one.score.features for one in scored], dtype=np.float64)
    read = sum(one.score.details["tokens"] for one in scored)
    censored = sum(one.score.details["censored"] for one in scored)
    return SlotResult(
        number=slot.number,
        planted=slot.planted,
        examples=tuple(one.document.id for one in scored),
        scores=scores,
        amplification=amplification(scores[:, 1 + slot.chosen], scores[:, 0]),
        censored=censored / max(1.0, read),
    )


def _finding(
    plan: Plan, draws: Sequence[Slot], slots: Sequence[SlotResult], history: History, place: int
) -> Finding:
    # From the secret: independent of every score, and the same for whoever opens the draw.
    seed = int.from_bytes(bits_of(plan.secret, plan.beacon, "redraw").take(8), "big")
    return decide(
        plan.design,
        [one.scores[:, 1:] for one in slots],
        [one.chosen for one in draws],
        [one.planted for one in draws],
        earlier=[one.ranks for one in history.looks[:place]],
        twins=history.twins,
        seed=seed,
    )


def _settings(plan: Plan, config: ProbeConfig, way: Way) -> dict[str, str]:
    design = {name: str(value) for name, value in dataclasses.asdict(plan.design).items()}
    return {
        "commitment": plan.commitment.hex(),
        "beacon": plan.beacon or "none",
        "design": design.pop("name"),
        **{label.replace("_", " "): value for label, value in design.items()},
        "way": way,
        "needs": str(WAYS[way]),
        "query": "asks for the canary" if config.instructed else "as it is (Eq. 1)",
        **({"samples": str(config.samples)} if config.way == "sampled" else {}),
    }


def _on_echo(way: Way, true: bool | None) -> list[str]:
    if true is False:
        return [
            "The target's log-probabilities of prompts are not those it writes by (some servers"
            " shift them by a token); they were not used."
        ]
    if way == "exact" and true is None:
        return [
            "Whether the target's log-probabilities of prompts are those it writes by could not be"
            " checked."
        ]
    return []


def _cautions(
    config: ProbeConfig,
    slots: Sequence[SlotResult],
    outcomes: Sequence[Outcome],
    plan: Plan,
    history: History,
) -> list[str]:
    said = [
        f"{one.partition(';')[0]}; a new folder would make another look at the draw."
        for one in answers_kept(outcomes)
    ]
    if history.quoted:
        said.append(
            f"{history.quoted} of {history.answered} answers to planted traces quoted a trigger."
            " Unless they were deleted, a model trained without documents may have learned it from"
            " them, and the p-value does not hold."
        )
    lost = [one for one in outcomes if one.score.value is None and not one.capped]
    if lost:
        said.append(
            f"{len(lost)} of {len(outcomes)} examples could not be scored, the first because"
            f" {lost[0].score.reason}."
        )
    censored = max((one.censored for one in slots), default=0.0)
    if config.way == "forced" and censored:
        said.append(
            f"Up to {censored:.0%} of a slot's readings are censored: the piece was not among the"
            f" {config.alternatives} alternatives and counts as the last of them."
        )
    if (
        config.way == "sampled"
        and slots
        and all(set(np.unique(one.scores)) <= {0.0, 1.0} for one in slots)
    ):
        said.append("All answers to a question were alike: the target may not sample at all.")
    if not plan.beacon:
        said.append(
            "No public randomness was joined to the draw: others must trust that the auditor drew"
            " the seed at random."
        )
    if plan.design.name == "paper":
        said.append(
            "The paper's design names the trigger in the query, which a model trained without"
            " documents learns as well: its rank among candidates is no evidence here."
        )
    return said
