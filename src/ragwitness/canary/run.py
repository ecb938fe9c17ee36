"""The probe of a deployed model: every slot on every held-out example, and its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.draw import Slot, bits_of
from ragwitness.canary.folder import CanaryPlan, check_traces, read_plan
from ragwitness.canary.looks import (
    Beginning,
    History,
    Look,
    begin_look,
    one_at_a_time,
    read_history,
    record_look,
)
from ragwitness.canary.probe import (
    BARE,
    WAYS,
    CanaryProbe,
    ProbeConfig,
    amplification,
    refuse_markers,
)
from ragwitness.canary.rank_test import Seen
from ragwitness.canary.result import CanaryResult, StoredGain, StoredLook, StoredSlot
from ragwitness.canary.verdict import Finding, ModelVerdict, decide
from ragwitness.core.errors import InputError
from ragwitness.core.files import at_hand, private_folder, read_object, replace_file
from ragwitness.core.run_files import ANSWERS, LOOK
from ragwitness.core.types import Query, Target
from ragwitness.crypto.hashing import canonical
from ragwitness.report.result_type import finite
from ragwitness.report.spending import Spending, answers_kept, spending, unasked
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Progress, Spender, Worker
from ragwitness.stats.rates import Rate

if TYPE_CHECKING:
    from ragwitness.runner.rate_limiter import RateLimiter

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SlotScore:
    """Scores of one slot at one model.

    Attributes:
        number: Of the slot.
        examples: Ids of the examples that could be scored.
        scores: Per example the clean view, then each candidate, shape (n, 1 + M): nats, or
            shares of sampled answers.
        amplification: Eq. 1 over these examples; for samples, a difference of shares.
        censored: Share of the readings that are only upper bounds.
    """

    number: int
    examples: tuple[str, ...]
    scores: NDArray[np.float64]
    amplification: Rate
    censored: float


T = TypeVar("T")

_AT_ONCE = 4  # examples probed at a time; each asks about all candidates together


async def probe_canaries(
    folder: Path,
    target: Target,
    config: ProbeConfig | None = None,
    *,
    release: str = "1",
    run: Path | None = None,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
    anyway: bool = False,
) -> CanaryResult:
    """Probe a target, and record the look in the plan's folder before it is reported.

    Answers that are in ``run`` already are not asked for again, and the same answers are the same
    look, however often they are read. A probe that a cap cut short shows nothing and is no look.

    Args:
        folder: Of the plan, planted; see :mod:`ragwitness.canary.folder`.
        target: The deployed model.
        config: How to ask; None for the defaults.
        release: Name of this release of the model.
        run: Folder of the response store; None keeps no answers.
        progress: Called with slot, examples done and examples in all.
        limiter: Lets queries pass; None makes one without caps.
        anyway: Ask although the journal of planting says that no vote was taken.

    Raises:
        CapabilityError: The target lacks the output that this way reads.
        InputError: The release has no name, or the prompt names a marker. The plan is not drawn or
            not planted, or its draw was opened or its announced looks were taken. No example of a
            slot could be scored, or the look cannot be recorded.
        VerificationError: The folder does not match its commitment, or sent texts were changed.
        CapReachedError: A cap left nothing to show at all.
        TargetUnreachableError: The target cannot be reached.
    """
    from ragwitness.canary.ways import asked_in, best_way, echoes_truly, ways_served
    from ragwitness.runner.capabilities import Recorded
    from ragwitness.runner.rate_limiter import RateLimiter

    started, config = time.monotonic(), config or ProbeConfig()
    if not release.strip():
        raise InputError("A release needs a name.", "Give one: --release spring")

    # 1. The plan is the one committed to, and its canaries were planted.
    plan = read_plan(folder)
    plan.draw()  # before the check: a beacon that is not there yet is no broken commitment
    draw = plan.check()
    refuse_markers(config.prompts, draw)
    recorded = isinstance(target, Recorded)
    protocol = protocol_of(plan, config, release)
    key = "" if recorded else _key_of(run, protocol)
    closed = refuse_look(folder, plan, run, key, recorded=recorded, anyway=anyway)

    # 2. Every slot is asked about on every held-out example, all candidates alike (App. C.3).
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, at_once=_AT_ONCE))
        spender: Spender = _Closed(closed) if closed else limiter
        first = audit_of(plan, draw.slots[0], replace(config, way="sampled"))
        ways = await ways_served(target, first, spender, run)
        store = files.enter_context(ResponseStore(run / ANSWERS)) if run else None

        def worker_of(system: Target) -> Worker:
            return Worker(system, store, _AT_ONCE, limiter=spender)

        # 2a. Log-probabilities of a prompt count only if they are those the target writes by.
        exact = config.way in (None, "exact") and "exact" in ways
        truthful = await echoes_truly(target, worker_of, first.opening) if exact else None
        if truthful is False:
            ways = tuple(way for way in ways if way != "exact")
        way = config.way or best_way(target, ways)
        _log.info("asking %s in the way %r; it serves %s", target.name, way, ", ".join(ways))
        system = asked_in(target, way, ways, untrue=truthful is False)
        if way == "sampled" and not recorded:
            from ragwitness.targets.conversation import in_form

            system = in_form(system, plan.design.shown)
        config, worker = replace(config, way=way), worker_of(system)
        # 2b. From here on triggers are asked about: the look counts, whether it ends or not.
        if not (closed or recorded):
            with one_at_a_time(folder):
                history, releases = read_history(folder), plan.design.releases
                if late := history.refuse_new(releases, key=key):
                    raise late  # another process began meanwhile
                begin_look(folder, Beginning(key, release, target.name))
        by_slot = {}
        for slot in draw.slots:
            # 2c. Example by example: the clean view, then every candidate alike.
            audit, stage = audit_of(plan, slot, config), f"slot {slot.number + 1}"
            regular = len(plan.asked)
            outcomes = await worker.run(audit, audit.documents[:regular], stage, progress)
            # 2d. As many spare ones as could not be scored, whatever their scores would be.
            if missing := missing_of(plan, outcomes):
                _log.info("%s: %d examples without a score, asking spare ones", stage, missing)
                spares = audit.documents[regular:][:missing]
                outcomes += await worker.run(audit, spares, stage, progress)
            by_slot[slot.number] = outcomes
    outcomes = [outcome for slot in by_slot.values() for outcome in slot]
    spent = spending(limiter.spent, limiter.budget, limiter.cap, outcomes)
    if not any(outcome.score.value is not None for outcome in outcomes):
        limiter.refuse_if_capped("held-out examples")

    # 3. A test on the part that a cap let through, and again on more, would be two looks.
    complete = spent.stopped_by is None
    slots = [slot_score(slot, by_slot[slot.number], plan) for slot in draw.slots if complete]

    # 4. The look is decided with the earlier ones and recorded, while no other process can.
    digest = scores_digest(release, slots)
    with one_at_a_time(folder) if complete else nullcontext():
        from ragwitness.canary.plant import planting_of

        history = replace(read_history(folder), planted=planting_of(folder, plan))
        earlier, finding = history.earlier(digest, key), None
        if history.opened and digest not in [look.digest for look in history.looks]:
            raise InputError(
                "These answers were not seen before the draw was opened, so they decide nothing.",
                "Plan anew; the same canaries prove nothing any more.",
            )
        if complete:
            shares = way == "sampled"
            finding = finding_of(plan, slots, earlier, shares=shares)
            look = _look(finding, digest, system.name, release)
            begun = key if key in [item.key for item in history.begun] else ""
            skipped = sum(not item.ranks for item in earlier)
            record_look(folder, replace(look, begun=begun, skipped=skipped))
    return result_of(
        plan,
        config,
        (system.name, release),
        slots,
        finding,
        StoredLook(len(earlier) + 1, digest),
        outcomes,
        protocol=protocol,
        history=history,
        truthful=truthful,
        spent=spent,
        seconds=time.monotonic() - started,
    )


def audit_of(plan: CanaryPlan, slot: Slot, config: ProbeConfig) -> CanaryProbe:
    """Return the probe of a slot, shown in the form in which the plan was planted."""
    return CanaryProbe(slot, plan.held_out, config, plan.wordings, plan.design.shown)


def missing_of(plan: CanaryPlan, outcomes: Sequence[Outcome]) -> int:
    """Return how many spare examples replace those that could not be scored.

    The number depends on which answers came, and on nothing that reveals the planted trigger.
    """
    unscored = sum(outcome.score.value is None and not outcome.capped for outcome in outcomes)
    return min(unscored, len(plan.spares))


def result_of(
    plan: CanaryPlan,
    config: ProbeConfig,
    model: tuple[str, str],
    slots: Sequence[SlotScore],
    finding: Finding | None,
    look: StoredLook,
    outcomes: Sequence[Outcome],
    *,
    protocol: str,
    history: History,
    truthful: bool | None,
    spent: Spending,
    seconds: float,
) -> CanaryResult:
    """Return the result of a probe, with every score, so that others can decide anew.

    Args:
        plan: The canaries.
        config: How the model was asked, with its way.
        model: Name of the system as it was asked, and its release.
        slots: Scores of each slot; none where a cap left examples unasked.
        finding: The decision.
        look: Number of the look and digest of its scores.
        outcomes: Of all examples of all slots.
        protocol: As :func:`protocol_of` gave it beforehand.
        history: Earlier looks at the plan.
        truthful: Whether echoed log-probabilities are those the target writes by; None: unknown.
        spent: Spending of the run folder.
        seconds: Wall time.
    """
    target, release = model
    return CanaryResult(
        target=target,
        release=release,
        way=config.way or "exact",
        finding=finding,
        look=look,
        slots=tuple(stored_slot(slot) for slot in slots),
        settings=_settings(plan, config) | _planted(history) | {"protocol": protocol},
        warnings=(
            *unasked(spent, len(outcomes)),
            *_on_echo(config, truthful),
            *_on_readings(config, slots, outcomes, plan),
            *_on_planting(plan, config, target, finding, history),
        ),
        queries=sum(outcome.queries for outcome in outcomes),
        seconds=round(seconds, 3),
        spent=spent,
    )


def stored_slot(slot: SlotScore) -> StoredSlot:
    """Return a slot as results keep it: six digits, and None where a number is missing."""
    gain = slot.amplification
    return StoredSlot(
        number=slot.number,
        examples=slot.examples,
        scores=tuple(tuple(finite(round(v, 6)) for v in row) for row in slot.scores.tolist()),
        amplification=StoredGain(finite(gain.value), finite(gain.low), finite(gain.high), gain.n),
        censored=slot.censored,
    )


def _key_of(run: Path | None, protocol: str) -> str:
    """Return the key of a look: its run folder, and how it asks.

    A folder that is moved stays the same look. Without a folder no answer is kept, so that every
    call is another look.
    """
    token = secrets.token_hex(16)
    if run is not None:
        path = run / LOOK
        if path.exists():
            token = str(read_object(path, "Take another --run.").get("look"))
        else:
            private_folder(run)
            replace_file(path, json.dumps({"look": token}) + "\n", secret=True)
    return hashlib.sha256(canonical([token, protocol])).hexdigest()


def refuse_look(
    folder: Path,
    plan: CanaryPlan,
    run: Path | None,
    key: str = "",
    *,
    recorded: bool,
    anyway: bool = False,
) -> InputError | None:
    """Refuse a look that would show nothing, before a target is even opened.

    Args:
        folder: Of the plan.
        plan: Read from it.
        run: Folder of the response store.
        key: Of the look's beginning; empty looks it up in ``run`` where one may be there.
        recorded: Whether the target only repeats answers; those may always be read again.
        anyway: Whether to ask although no vote was taken.

    Returns:
        Why no new question may be asked, where only answers kept in ``run`` may be read; or None.

    Raises:
        InputError: Nothing was planted yet, or no vote was taken; or no question may be asked and
            no answer is kept.
        VerificationError: The written traces are not those of the draw.
    """
    if recorded:
        return None
    if not check_traces(folder, plan):
        raise InputError(
            "Nothing was planted yet: the look would be spent on a model that cannot know.",
            f"First: ragwitness canary plant {folder}",
        )
    from ragwitness.canary.plant import late_missing, planting_of

    planted = planting_of(folder, plan)
    if not anyway and (reason := _unplanted(planted)):
        raise InputError(
            f"The look would be spent on a model that cannot know: {reason}.",
            f"First: ragwitness canary plant {folder} SERVICE. Or ask all the same: --anyway",
        )
    if reason := late_missing(planted, plan):
        raise InputError(reason, f"Plant them: ragwitness canary plant {folder} SERVICE --late")
    history = read_history(folder)
    closed = history.refuse_new(plan.design.releases, key=key)
    if closed and not key and history.unfinished and run and (run / LOOK).exists():
        return None  # probe_canaries knows how it asks, and so which look this is
    if closed and not (run and at_hand(run / ANSWERS)):
        raise closed
    return closed


def _unplanted(planted: Mapping[str, Any]) -> str:
    """Say why nothing can have been learned, by the journal of planting; empty where it can."""
    if not planted:
        return ""  # planted by hand, of which the folder knows nothing
    if not planted["answered"]:
        return "the service answered none of the traces"
    if not planted["true"]:
        return (
            "no vote on a trace with the planted trigger was taken, or is due by hand"
            f" ({planted['decoy']} on decoys)"
        )
    return ""


class _Closed:
    """Lets no query pass: only kept answers are read.

    Args:
        why: Raised where a question would be sent.
    """

    def __init__(self, why: InputError) -> None:
        self._why = why

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:  # noqa: ARG002
        """Refuse a query."""
        raise self._why


def _look(finding: Finding, digest: str, target: str, release: str) -> Look:
    ranks = finding.seen or Seen(())
    return Look(
        release=release,
        target=target,
        digest=digest,
        ranks=finding.ranks,
        candidates=finding.candidates,
        statistic=finding.statistic,
        verdict=str(finding.verdict),
        p_value=finding.p_value,
        own=ranks.own,
        called=ranks.called,
    )


def protocol_of(plan: CanaryPlan, config: ProbeConfig, release: str) -> str:
    """Return SHA-256 of how a release is to be asked, in hex.

    The commitment does not hold it. An auditor who publishes it before asking shows that the way
    was not chosen by its outcome.
    """
    fields = dataclasses.asdict(config) | {"commitment": plan.commitment.hex(), "release": release}
    return hashlib.sha256(canonical(fields)).hexdigest()


def scores_digest(release: str, slots: Sequence[SlotScore]) -> str:
    """Return SHA-256 of a release and its scores, as they are stored."""
    # Six digits, as stored: the digest follows from the result alone.
    scores = [[[f"{value:.6f}" for value in row] for row in slot.scores.tolist()] for slot in slots]
    examples = [slot.examples for slot in slots]
    return hashlib.sha256(canonical([release, examples, scores])).hexdigest()


_NO_GAIN = Rate(math.nan, math.nan, math.nan, 0)


def slot_score(slot: Slot, outcomes: Sequence[Outcome], plan: CanaryPlan) -> SlotScore:
    """Return the scores of a slot.

    Raises:
        InputError: Not one example of it could be scored, or a third of the readings is missing.
    """
    scored = [outcome for outcome in outcomes if outcome.score.value is not None]
    reasons = [item.score.reason for item in outcomes if item.score.reason and not item.capped]
    came = sum(not math.isnan(cell) for item in scored for cell in item.score.features[1:])
    expected = len(plan.asked) * len(slot.candidates)
    if 3 * came < 2 * expected:
        # The decision to refuse depends on how much is missing, never on scores or t*.
        raise InputError(
            f"Only {came:,} of {expected:,} readings came in slot"
            f" {slot.number + 1}: {next(iter(reasons), 'the service did not answer')}.",
            "The look is not lost: the same command with the same --run asks again what failed.",
        )
    if not scored:
        # A slot without a score has no rank, neither the first nor the last.
        raise InputError(
            f"No held-out example could be scored in slot {slot.number + 1}:"
            f" {next(iter(reasons), 'a cap was reached')}.",
            "ragwitness doctor TARGET shows what it gives; docs/canary.md names the ways to ask.",
        )
    scores = np.array([outcome.score.features for outcome in scored], dtype=np.float64)
    # Eq. 1 is over the examples of which both views could be read; the test, over all cells.
    pairs = scores[:, [1 + slot.chosen, 0]]
    pairs = pairs[~np.isnan(pairs).any(1)]
    tokens, censored = (
        sum(item.score.details[name] for item in scored) for name in ("tokens", "censored")
    )
    return SlotScore(
        number=slot.number,
        examples=tuple(outcome.document.id for outcome in scored),
        scores=scores,
        amplification=amplification(*pairs.T) if len(pairs) else _NO_GAIN,
        censored=censored / max(1.0, tokens),
    )


def finding_of(
    plan: CanaryPlan,
    slots: Sequence[SlotScore],
    earlier: Sequence[Seen],
    *,
    shares: bool,
) -> Finding:
    """Return the decision on one look.

    Args:
        plan: The canaries.
        slots: Scores of each slot.
        earlier: Earlier looks; a look that is read again keeps the verdict that it had.
        shares: Whether the scores are shares of answers.
    """
    # From the secret: independent of every score, and the same when the draw is opened.
    seed = int.from_bytes(bits_of(plan.secret, plan.beacon, "redraw").take(8), "big")
    return decide(
        plan.design,
        [slot.scores[:, 1:] for slot in slots],
        [slot.chosen for slot in plan.draw().slots],
        earlier=earlier,
        seed=seed,
        shares=shares,
    )


def _planted(history: History) -> dict[str, str]:
    """Return what was planted, where and when, by label; empty without a journal of planting."""
    if not (planted := history.planted):
        return {}
    late = f", {planted['late']:,} on late slots" if planted["late"] else ""
    if late and planted["late_at"]:
        late += f" (the last at {planted['late_at']})"
    when = f", {planted['first']} to {planted['last']}" if planted["first"] else ""
    how = "votes taken" if planted["votes"] else "votes to be given by hand"
    lines = {
        "planted": f"{planted['answered']:,} answers{when}; {how}: {planted['true']:,} on traces"
        f" with the planted trigger, {planted['decoy']:,} on decoys{late}",
        "planted in": planted["service"],
        "permission": planted["permission"],
    }
    return {label: text for label, text in lines.items() if text}


def _settings(plan: CanaryPlan, config: ProbeConfig) -> dict[str, str]:
    way = config.way or "exact"
    design = {name: str(value) for name, value in dataclasses.asdict(plan.design).items()}
    return {
        "commitment": plan.commitment.hex(),
        "beacon": plan.beacon or "none",
        **{label.replace("_", " "): value for label, value in design.items()},
        "way": way,
        "needs": str(WAYS[way]),
        "query": "asks for the canary" if config.instructed else "as it is (Eq. 1)",
        **({"samples": str(config.samples)} if way == "sampled" else {}),
    }


# Warnings, each where it applies.


def _on_echo(config: ProbeConfig, truthful: bool | None) -> list[str]:
    if truthful is False:
        return [
            "The target's log-probabilities of prompts are not those it writes by (some servers"
            " shift them by a token); they were not used."
        ]
    if config.way == "exact" and truthful is None:
        return [
            "Whether the target's log-probabilities of prompts are those it writes by could not be"
            " checked."
        ]
    return []


def _on_readings(
    config: ProbeConfig,
    slots: Sequence[SlotScore],
    outcomes: Sequence[Outcome],
    plan: CanaryPlan,
) -> list[str]:
    warnings = [
        f"{line.partition(';')[0]}; a new folder would make another look at the draw."
        for line in answers_kept(outcomes)
    ]
    # 1. Examples and readings that are missing.
    if unscored := [
        outcome for outcome in outcomes if outcome.score.value is None and not outcome.capped
    ]:
        warnings.append(
            f"{len(unscored)} of {len(outcomes)} examples could not be scored, the first because"
            f" {unscored[0].score.reason}."
        )
    cells = [np.isnan(slot.scores[:, 1:]) for slot in slots]
    if missing := sum(int(cell.sum()) for cell in cells):
        warnings.append(
            f"{missing:,} of {sum(cell.size for cell in cells):,} readings are missing: the service"
            " did not answer. They are predicted from their example and candidate, whichever"
            " trigger was planted."
        )
    for slot, cell in zip(plan.draw().slots, cells, strict=False):
        if cell.size and cell[:, slot.chosen].all():
            warnings.append(
                f"Not one reading of the planted trigger came in slot {slot.number + 1}: the"
                " service refuses it. It ranks last there, whatever the model knows."
            )
    # 2. Readings that say less than they could.
    censored = max((slot.censored for slot in slots), default=0.0)
    if config.way == "forced" and censored:
        warnings.append(
            f"Up to {censored:.0%} of a slot's readings are censored: the piece was not among the"
            f" {config.alternatives} alternatives and counts as the last of them."
        )
    alike = slots and all(set(np.unique(slot.scores)) <= {0.0, 1.0} for slot in slots)
    if config.way == "sampled" and alike:
        warnings.append("All answers to a question were alike: the target may not sample at all.")
    return warnings


def _on_planting(
    plan: CanaryPlan, config: ProbeConfig, target: str, finding: Finding | None, history: History
) -> list[str]:
    """Warn of a plan whose p-value rests on trust, or of a probe that does not fit the plan."""
    warnings, form, planted = [], plan.design.shown, history.planted
    if history.quoted:
        warnings.append(
            f"{history.quoted} of {history.answered} answers to planted traces quoted a trigger."
            " Unless they were deleted, a model trained without documents may have learned it from"
            " them, and the p-value does not hold."
        )
    if not plan.beacon:
        warnings.append(
            "No public randomness was joined to the draw: others must trust that the auditor drew"
            " the seed at random."
        )
    if planted.get("service") and target.partition(" (")[0] != planted["service"]:
        warnings.append(f"Planted in {planted['service']}; this probe asked {target}.")
    if form.kind != "one" and config.way != "sampled" and config.prompts.frame == BARE:
        warnings.append(
            f"Planted as {form.kind} of a chat, and read behind a raw text: most of an effect may"
            " not show. Give the chat format: --frame FILE, with {document} and {question}."
        )
    if finding and finding.verdict is ModelVerdict.TRAINED and plan.design.late and not planted:
        warnings.append(
            "Planted by hand: only the auditor's word says that the late slots were planted"
            f" {plan.design.refresh} hours before the probe, and `trained` rests on it."
        )
    return warnings
