"""Canaries at a deployed model: every slot on every held-out example, then what they show."""

from __future__ import annotations

import dataclasses
import hashlib
import json
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
    Way,
    amplification,
    refuse_markers,
)
from ragwitness.canary.rank_test import Seen
from ragwitness.canary.result import RESULT_TYPE, CanaryReport, further
from ragwitness.canary.traces import worded_by
from ragwitness.canary.verdict import Finding, ModelVerdict, decide
from ragwitness.core.errors import InputError
from ragwitness.core.files import at_hand, private_folder, read_object, replace_file
from ragwitness.core.run_files import ANSWERS, LOOK
from ragwitness.core.types import Query, Shown, Target
from ragwitness.crypto.hashing import canonical
from ragwitness.report.result_type import plain
from ragwitness.report.spending import Spending, answers_kept, spending, unasked
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Progress, Spender, Worker
from ragwitness.stats.evaluation import Rate

if TYPE_CHECKING:
    from ragwitness.runner.rate_limiter import RateLimiter


@dataclass(frozen=True, slots=True)
class SlotResult:
    """One slot at one model.

    Attributes:
        number: Of the slot.
        planted: Whether its traces were sent.
        examples: Ids of the examples that could be scored.
        scores: Per example the clean view, then each candidate, shape (n, 1 + M): nats, or
            shares of sampled answers.
        amplification: Eq. 1 over these examples; for samples, a difference of shares.
        censored: Share of the readings that are only upper bounds.
    """

    number: int
    planted: bool
    examples: tuple[str, ...]
    scores: NDArray[np.float64]
    amplification: Rate
    censored: float


@dataclass(frozen=True, slots=True)
class CanaryResult(Shown):
    """A probe of one release of a model.

    Attributes:
        target: Name of the system, with the way in which it was asked.
        way: How.
        finding: What it shows; None where a cap left examples unasked.
        slots: One per slot; none without a finding, so that nobody goes on, or not, by them.
        digest: Of release and scores.
        look: Number of this look at the draw, from 1.
        settings: Everything in use, as label and value.
        warnings: What a reader must know before relying on it.
        queries: Queries it took, kept answers included.
        seconds: Wall time.
        spent: What the run folder has spent at the target.
    """

    target: str
    way: Way
    finding: Finding | None
    slots: tuple[SlotResult, ...]
    digest: str
    look: int
    settings: dict[str, str]
    warnings: tuple[str, ...]
    queries: int
    seconds: float
    spent: Spending


T = TypeVar("T")

_AT_ONCE = 4  # examples probed at a time; each asks about all candidates together


async def probe_canaries(
    folder: Path,
    target: Target,
    config: ProbeConfig | None = None,
    *,
    release: str = "1",
    twin: bool = False,
    run: Path | None = None,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
    anyway: bool = False,
) -> CanaryResult:
    """Probe a target, and count the look in the plan's folder before it is reported.

    Answers that are in ``run`` already are not asked for again, and the same answers are the same
    look, however often they are read. A probe that a cap cut short shows nothing and is no look.

    Args:
        folder: Of the plan, planted; see :mod:`ragwitness.canary.folder`.
        target: The deployed model.
        config: How to ask; None for the defaults.
        release: What this release of the model is called.
        twin: Whether the model is known not to be trained on documents.
        run: Folder of the journal; None keeps no answers.
        progress: Called with slot, examples done and examples in all.
        limiter: Lets queries pass; None makes one without caps.
        anyway: Ask although the journal of planting says that no vote was taken.

    Raises:
        CapabilityError: The target gives nothing that this way can read.
        InputError: The release has no name, the plan is not drawn or not planted yet, its draw was
            opened or its announced looks were taken, the prompt names a marker, not one example of
            a slot could be scored, or the look cannot be recorded.
        VerificationError: The folder is not the one committed to, or what was sent was changed.
        CapReachedError: A cap left nothing to show at all.
        TargetUnreachableError: The target cannot be reached.
    """
    from ragwitness.canary.ways import asked_in, best_way, echoes_truly, ways_served
    from ragwitness.runner.capabilities import Recorded
    from ragwitness.runner.rate_limiter import Pace, RateLimiter

    clock, config = time.monotonic(), config or ProbeConfig()
    if not release.strip():
        raise InputError("A release needs a name.", "Give one: --release spring")

    # 1. The plan is the one committed to, and its canaries were planted.
    plan = read_plan(folder)
    plan.draw()  # before the check: a beacon that is not there yet is no broken commitment
    draw = plan.check()
    refuse_markers(config.prompts, draw)
    recorded = isinstance(target, Recorded)
    protocol = protocol_of(plan, config, release)
    key = "" if recorded else _key_of(run, protocol, twin=twin)
    closed = refuse_look(
        folder, plan, run, key, twin=twin, recorded=recorded, anyway=anyway or twin
    )

    # 2. Every slot is asked about on every held-out example, all candidates alike (App. C.3).
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, pace=Pace.at_most(_AT_ONCE)))
        spender: Spender = _Closed(closed) if closed else limiter
        first = audit_of(plan, draw.slots[0], replace(config, way="sampled"))
        # 2a. What the target gives, asked once; the best way is taken where none is named.
        ways = await ways_served(target, first, spender, run)
        journal = files.enter_context(ResponseStore(run / ANSWERS)) if run else None

        def worker_of(system: Target) -> Worker:
            return Worker(system, journal, _AT_ONCE, limiter=spender)

        wished = config.way in (None, "exact") and "exact" in ways
        # 2b. Log-probabilities of a prompt count only if they are those the target writes by.
        true = await echoes_truly(target, worker_of, first.opening) if wished else None
        if true is False:
            ways = tuple(way for way in ways if way != "exact")
        way = config.way or best_way(target, ways)
        system = asked_in(target, way, ways, untrue=true is False)
        if way == "sampled" and plan.design.shown and not recorded:
            from ragwitness.targets.conversation import in_form

            system = in_form(system, plan.design.shown)
        asked, worker = replace(config, way=way), worker_of(system)
        # 2b'. From here on triggers are asked about: the look counts, whether it ends or not.
        if not (closed or recorded):
            with one_at_a_time(folder):
                begun = Beginning(key, release, twin, target.name)
                if late := read_history(folder).refuse_new(
                    plan.design.releases, twin=twin, key=key
                ):
                    raise late  # another process began meanwhile
                begin_look(folder, begun)
        found = {}
        for slot in draw.slots:
            # 2c. Example by example: the clean view, then every candidate alike.
            audit, stage = audit_of(plan, slot, asked), f"slot {slot.number + 1}"
            outcomes = await worker.run(audit, audit.documents[: len(plan.asked)], stage, progress)
            # 2d. As many spare ones as could not be scored, whatever their scores would be.
            if missing := missing_of(plan, outcomes):
                spares = audit.documents[len(plan.asked) :][:missing]
                outcomes += await worker.run(audit, spares, stage, progress)
            found[slot.number] = outcomes
    outcomes = [one for slot in found.values() for one in slot]
    spent = spending(limiter.spent, limiter.budget, limiter.cap, outcomes)
    if not any(one.score.value is not None for one in outcomes):
        limiter.refuse_if_capped("held-out examples")

    # 3. A test on whatever a cap let through, and again on more, would be two looks at one draw.
    whole = spent.stopped_by is None
    slots = tuple(slot_result(slot, found[slot.number], plan) for slot in draw.slots if whole)

    # 4. The look is decided with those before it and recorded, while no other process can.
    digest = scores_digest(release, slots)
    with one_at_a_time(folder) if whole else nullcontext():
        from ragwitness.canary.plant import planting_of

        history = replace(read_history(folder), planted=planting_of(folder, plan))
        earlier, finding = history.earlier(digest, key), None
        if history.opened and digest not in [one.digest for one in history.looks]:
            raise InputError(
                "These answers were not seen before the draw was opened, so they decide nothing.",
                "Plan anew; the same canaries prove nothing any more.",
            )
        if whole:
            finding = finding_of(
                plan, draw.slots, slots, history.twins, earlier, shares=way == "sampled"
            )
            look = _look(finding, digest, system.name, release, twin=twin)
            known = key in [one.key for one in history.begun]
            skipped = sum(not one.ranks for one in earlier)
            record_look(folder, replace(look, begun=key if known else "", skipped=skipped))
    return result_of(
        plan,
        asked,
        protocol,
        system.name,
        slots,
        finding,
        (digest, len(earlier) + 1),
        outcomes,
        (history, true),
        (spent, time.monotonic() - clock),
    )


def audit_of(plan: CanaryPlan, slot: Slot, config: ProbeConfig) -> CanaryProbe:
    """Return the probe of a slot, shown in the form in which the plan was planted."""
    words = plan.wordings, worded_by(plan.design, plan.wordings)
    return CanaryProbe(slot, plan.held_out, config, *words, plan.design.shown)


def missing_of(plan: CanaryPlan, outcomes: Sequence[Outcome]) -> int:
    """Return how many spare examples take the place of those that could not be scored.

    It hangs on which answers came, and on nothing that tells which trigger was planted.
    """
    lost = sum(one.score.value is None and not one.capped for one in outcomes)
    return min(lost, len(plan.spares))


def result_of(
    plan: CanaryPlan,
    asked: ProbeConfig,
    protocol: str,
    target: str,
    slots: Sequence[SlotResult],
    finding: Finding | None,
    look: tuple[str, int],
    outcomes: Sequence[Outcome],
    known: tuple[History, bool | None],
    effort: tuple[Spending, float],
) -> CanaryResult:
    """Put together what a probe found and what a reader must be told of it.

    Args:
        plan: The canaries.
        asked: How, with its way.
        protocol: As :func:`protocol_of` gave it beforehand.
        target: Name of the system as it was asked.
        slots: What was found; none where a cap left examples unasked.
        finding: What it shows.
        look: Digest of the scores, and number of the look.
        outcomes: Of all examples of all slots.
        known: What was seen of the plan before, and whether echoed log-probabilities are true.
        effort: What it has spent, and seconds.
    """
    way: Way = asked.way or "exact"
    spent, seconds = effort
    history, true = known
    return CanaryResult(
        target=target,
        way=way,
        finding=finding,
        slots=tuple(slots),
        digest=look[0],
        look=look[1],
        settings=_settings(plan, asked, way) | _planted(history) | {"protocol": protocol},
        warnings=(
            *unasked(spent, len(outcomes)),
            *_on_echo(way, true),
            *_cautions(asked, slots, outcomes, plan, history),
            *_on_planting(plan, asked, target, finding, history),
        ),
        queries=sum(one.queries for one in outcomes),
        seconds=seconds,
        spent=spent,
    )


def _key_of(run: Path | None, protocol: str, *, twin: bool) -> str:
    """Return what tells a look that goes on from another one: its run folder, and how it asks.

    A folder that is moved stays the same look; without a folder no answer is kept, so that every
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
    return hashlib.sha256(canonical([token, protocol, twin])).hexdigest()


def refuse_look(
    folder: Path, plan: CanaryPlan, run: Path | None, key: str = "", *, twin: bool, recorded: bool,
    anyway: bool = False,
) -> InputError | None:  # fmt: skip
    """Refuse a look that would show nothing, before a target is even opened.

    Args:
        folder: Of the plan.
        plan: Read from it.
        run: Folder of the journal.
        key: Of the look's beginning; empty looks it up in ``run`` where one may be there.
        twin: Whether the model is a compliant twin.
        recorded: Whether the target only repeats answers; those may always be read again.
        anyway: Whether to ask although no vote was taken.

    Returns:
        Why no new question may be asked, where only answers kept in ``run`` may be read; or None.

    Raises:
        InputError: Nothing was planted yet, or no vote was taken; or no question may be asked and
            no answer is kept.
        VerificationError: What was written to be sent is not what the draw gives.
    """
    if recorded:
        return None
    if not check_traces(folder, plan):
        raise InputError(
            "Nothing was planted yet: the look would be spent on a model that cannot know.",
            f"First: ragwitness canary plant {folder}",
        )
    from ragwitness.canary.plant import late_missing, planting_of

    planted = {} if twin else planting_of(folder, plan)
    if not anyway and (why := _unplanted(planted)):
        raise InputError(
            f"The look would be spent on a model that cannot know: {why}.",
            f"First: ragwitness canary plant {folder} SERVICE. Or ask all the same: --anyway",
        )
    if why := late_missing(planted, plan):
        raise InputError(why, f"First: ragwitness canary plant {folder} SERVICE --late")
    history = read_history(folder)
    closed = history.refuse_new(plan.design.releases, twin=twin, key=key)
    if closed and not key and history.unfinished and run and (run / LOOK).exists():
        return None  # probe_canaries knows how it asks, and so which look this is
    if closed and not (run and at_hand(run / ANSWERS)):
        raise closed
    return closed


def _unplanted(planted: Mapping[str, Any]) -> str:
    """Say why nothing can have been learned, by what is known of planting; empty where it can."""
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
    """Lets no query pass: only what the journal keeps is read.

    Args:
        why: Raised where a question would be sent.
    """

    def __init__(self, why: InputError) -> None:
        self._why = why

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:  # noqa: ARG002
        """Refuse a query."""
        raise self._why


def _look(finding: Finding, digest: str, target: str, release: str, *, twin: bool) -> Look:
    seen = finding.seen or Seen(())
    return Look(
        release=release,
        twin=twin,
        target=target,
        digest=digest,
        ranks=finding.ranks,
        candidates=finding.candidates,
        statistic=finding.statistic,
        verdict=str(finding.verdict),
        p_value=finding.p_value,
        own=seen.own,
        called=seen.called,
        advice=further(finding),
    )


def protocol_of(plan: CanaryPlan, config: ProbeConfig, release: str) -> str:
    """Return SHA-256 of how a release is to be asked, in hex.

    The commitment does not hold it. Whoever publishes it before asking shows that the way was not
    chosen by what it gave.
    """
    asked = dataclasses.asdict(config) | {"commitment": plan.commitment.hex(), "release": release}
    return hashlib.sha256(canonical(asked)).hexdigest()


def scores_digest(release: str, slots: Sequence[SlotResult]) -> str:
    """Return SHA-256 of a release and its scores, as they are stored."""
    # Six digits, as stored: whoever has the result alone finds the same digest.
    scores = [[[f"{value:.6f}" for value in row] for row in one.scores.tolist()] for one in slots]
    examples = [one.examples for one in slots]
    return hashlib.sha256(canonical([release, examples, scores])).hexdigest()


_NO_GAIN = Rate(math.nan, math.nan, math.nan, 0)


def slot_result(slot: Slot, outcomes: Sequence[Outcome], plan: CanaryPlan) -> SlotResult:
    """Return what was found of a slot.

    Raises:
        InputError: Not one example of it could be scored, or a third of the readings is missing.
    """
    scored = [one for one in outcomes if one.score.value is not None]
    reasons = [one.score.reason for one in outcomes if one.score.reason and not one.capped]
    came = sum(not math.isnan(cell) for one in scored for cell in one.score.features[1:])
    if plan.design.form and 3 * came < 2 * len(plan.asked) * len(slot.candidates):
        # By how much is missing, whatever it would be: no choice of t*, and no end of the look.
        raise InputError(
            f"Only {came:,} of {len(plan.asked) * len(slot.candidates):,} readings came in slot"
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
    scores = np.array([one.score.features for one in scored], dtype=np.float64)
    # Eq. 1 is over the examples of which both views could be read; the test, over all cells.
    pairs = scores[:, [1 + slot.chosen, 0]]
    pairs = pairs[~np.isnan(pairs).any(1)]
    read = sum(one.score.details["tokens"] for one in scored)
    censored = sum(one.score.details["censored"] for one in scored)
    return SlotResult(
        number=slot.number,
        planted=slot.planted,
        examples=tuple(one.document.id for one in scored),
        scores=scores,
        amplification=amplification(*pairs.T) if len(pairs) else _NO_GAIN,
        censored=censored / max(1.0, read),
    )


def finding_of(
    plan: CanaryPlan,
    draws: Sequence[Slot],
    slots: Sequence[SlotResult],
    twins: Sequence[float],
    earlier: Sequence[Seen],
    *,
    shares: bool,
) -> Finding:
    """Return what the slots of one look show.

    Args:
        plan: The canaries.
        draws: Its slots.
        slots: What was found of each.
        twins: W of models known to be compliant.
        earlier: What the looks taken before showed.
        shares: Whether the scores are shares of answers.
    """
    # From the secret: independent of every score, and the same for whoever opens the draw.
    seed = int.from_bytes(bits_of(plan.secret, plan.beacon, "redraw").take(8), "big")
    return decide(
        plan.design,
        [one.scores[:, 1:] for one in slots],
        [one.chosen for one in draws],
        [one.planted for one in draws],
        # Only the looks before this one: read again, a look keeps the verdict that it had.
        earlier=earlier,
        twins=twins,
        seed=seed,
        shares=shares,
    )


_NEWER = ("form", "template", "answer_tokens", "temperature", "spares", "late", "trained_needs")


def _planted(history: History) -> dict[str, str]:
    """Say what was planted, where and when; nothing where no journal says."""
    if not (found := history.planted):
        return {}
    votes = f"{found['true']:,} on traces with the planted trigger, {found['decoy']:,} on decoys"
    late = f", {found['late']:,} on late slots" if found["late"] else ""
    when = f", {found['first']} to {found['last']}" if found["first"] else ""
    how = "votes taken" if found["votes"] else "votes to be given by hand"
    said = f"{found['answered']:,} answers{when}; {how}: {votes}{late}"
    return {
        "planted": said,
        **({"planted in": found["service"]} if found["service"] else {}),
        **({"permission": found["permission"]} if found["permission"] else {}),
    }


def _on_planting(
    plan: CanaryPlan, config: ProbeConfig, target: str, finding: Finding | None, history: History
) -> list[str]:
    """Say where what was probed may not be what was planted in, or not as it was planted."""
    said, form, planted = [], plan.design.shown, history.planted
    if planted.get("service") and target.partition(" (")[0] != planted["service"]:
        said.append(f"Planted in {planted['service']}; this probe asked {target}.")
    if form and form.kind != "one" and config.way != "sampled" and config.prompts.frame == BARE:
        said.append(
            f"Planted as {form.kind} of a chat, and read behind a raw text: most of an effect may"
            " not show. Give the chat format: --frame FILE, with {document} and {question}."
        )
    if finding and finding.verdict is ModelVerdict.TRAINED and plan.design.late and not planted:
        said.append(
            "Planted by hand: that the late slots were planted, and just before the probe, is the"
            " auditor's word, and `trained` rests on it."
        )
    return said


def _settings(plan: CanaryPlan, config: ProbeConfig, way: Way) -> dict[str, str]:
    former = plan.design.former
    design = {
        name: str(value)
        for name, value in dataclasses.asdict(plan.design).items()
        if name not in _NEWER or value != former[name]
    }
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
    plan: CanaryPlan,
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
    cells = [np.isnan(one.scores[:, 1:]) for one in slots]
    if missing := sum(int(one.sum()) for one in cells):
        said.append(
            f"{missing:,} of {sum(one.size for one in cells):,} readings are missing: the service"
            " did not answer. What their example and candidate lead to expect stands in for them,"
            " whichever trigger was planted."
        )
    for one, cell in zip(plan.draw().slots, cells, strict=False):
        if cell.size and cell[:, one.chosen].all():
            said.append(
                f"Not one reading of the planted trigger came in slot {one.number + 1}: the service"
                " refuses it. It stands last there, whatever the model knows."
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


def canary_report(result: CanaryResult, release: str, *, twin: bool = False) -> CanaryReport:
    """Return a probe as it is stored, with every score, so that others can decide anew.

    Args:
        result: The probe.
        release: What the user calls this release of the model.
        twin: Whether the model is known to be compliant.
    """
    stored = {
        "target": result.target,
        "release": release,
        "twin": twin,
        "way": result.way,
        "finding": None if result.finding is None else dataclasses.asdict(result.finding),
        "look": {"number": result.look, "digest": result.digest},
        "slots": [_stored_slot(one) for one in result.slots],
        "settings": dict(result.settings),
        "warnings": list(result.warnings),
        "queries": result.queries,
        "seconds": round(result.seconds, 3),
        "spent": dataclasses.asdict(result.spent),
    }
    return RESULT_TYPE.opened(plain(stored))


def _stored_slot(one: SlotResult) -> dict[str, object]:
    return {
        "number": one.number,
        "planted": one.planted,
        "examples": list(one.examples),
        "scores": [[round(value, 6) for value in row] for row in one.scores.tolist()],
        "amplification": dataclasses.asdict(one.amplification),
        "censored": one.censored,
    }
