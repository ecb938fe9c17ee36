"""A probe of canaries as evidence: one look at a draw, from its answers to its verdict.

The draw was committed to when it was made; a pack that shows it opens it, and no probe decides
after that. Where it is hidden, the scores are taken as stated: with one slot the verdict follows
from them and from the stated rank of the planted trigger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragwitness.attest.verdict import NotCheckedError, VerifierStep, refuse
from ragwitness.canary.draw import settings_of
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import (
    CanaryPlan,
    check_drawn,
    design_of,
    digest_of,
    opened_bytes,
    part_digests,
    plan_of_opened,
)
from ragwitness.canary.looks import History, mark_opened, read_history
from ragwitness.canary.probe import CanaryProbe, ProbeConfig, Prompts
from ragwitness.canary.rank_test import Seen
from ragwitness.canary.result import RESULT_TYPE, CanaryResult, StoredLook
from ragwitness.canary.run import (
    audit_of,
    finding_of,
    missing_of,
    protocol_of,
    result_of,
    scores_digest,
    slot_score,
)
from ragwitness.canary.verdict import Finding, decide
from ragwitness.core.files import parse_json, read_object
from ragwitness.core.quotes import refuse_secrets
from ragwitness.core.run_files import SEAL
from ragwitness.core.types import Document, Score
from ragwitness.evidence.case import (
    KEPT,
    TAKEN,
    PackCase,
    PackTask,
    Replies,
    check_spent,
    differences,
    same_result,
)
from ragwitness.evidence.pack import Pack
from ragwitness.evidence.subject import SealedText, SealSubject
from ragwitness.report import formatting as fmt
from ragwitness.report.result_type import plain
from ragwitness.report.spending import Spending
from ragwitness.runner.budget import Budget
from ragwitness.runner.hash_chain import dense
from ragwitness.runner.worker import Outcome, probe_of, replay

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun

BESIDES = frozenset({("check", "check")})
"""Questions that find out whether log-probabilities are true; they are about no example."""

_ECHO = ("The target's log-probabilities of prompts are", "Whether the target's log-probabilities")
_OPEN = "the draw or an example is hidden"


# Sealed.


def subject_of(
    folder: Path,
    plan: CanaryPlan,
    config: ProbeConfig,
    *,
    target: str,
    release: str,
    budget: Budget,
    run: Path,
) -> SealSubject:
    """Return what a look at a draw commits to before its first query.

    Args:
        folder: Of the plan.
        plan: Read from it.
        config: How to ask.
        target: Address of the model.
        release: Its name.
        budget: Caps and prices.
        run: Folder of the run; one that is sealed already keeps what had been seen by then.

    Raises:
        InputError: The address of the target holds a key, or the plan cannot be read.
    """
    from ragwitness.canary.plant import planting_of

    refuse_secrets(target)
    # Looks that others took before this one: they enter its verdict.
    if (run / SEAL).exists():
        history: dict[str, Any] = read_object(run / SEAL)["settings"]["history"]
    else:
        past = read_history(folder)
        history = {"earlier": [asdict(look) for look in past.earlier("")]}
        history |= {"quoted": past.quoted, "answered": past.answered}
        history |= {"planted": planted} if (planted := planting_of(folder, plan)) else {}
    settings = {
        "target": target,
        "release": release,
        "config": asdict(config),
        "budget": asdict(budget),
        "commitment": plan.commitment.hex(),
        "design": settings_of(plan.design),
        "parts": part_digests(plan.held_out, plan.pools),
        "history": history,
    }
    texts = [SealedText("draw", "draw", opened_bytes(plan).decode())]
    texts += [
        SealedText("held_out", example.id, dense(asdict(example)).decode())
        for example in plan.held_out
    ]
    units = [
        (f"slot {number + 1}", example.id)
        for number in range(plan.design.slots)
        for example in plan.held_out
    ]
    return SealSubject(
        "canary",
        json.loads(json.dumps(settings)),
        tuple(texts),
        units,
        looks=plan.design.releases,
        series=plan.commitment,
        home=folder,
    )


def rows_of(run: SealedRun) -> list[dict[str, Any]]:
    """Return the units that were asked about; the findings are in the result."""
    seal = json.loads(run.seal)
    held_out = [text.id for text in run.texts if text.part == "held_out"]
    slots = int(seal["settings"]["design"]["slots"])
    return [
        {"stage": f"slot {n + 1}", "document": example}
        for n in range(slots)
        for example in held_out
    ]


# Recomputed.


@dataclass(frozen=True)
class _Probe:
    """A probe out of a pack whose draw and examples are shown."""

    plan: CanaryPlan
    config: ProbeConfig
    outcomes: dict[int, list[Outcome]]


def _counts(case: PackCase) -> str:
    """The result's figures agree with the seal and the answers."""
    pack, settings = case.pack, case.pack.seal.settings
    stored = RESULT_TYPE.opened(pack.result)
    if any(row.keys() != {"stage", "document"} for row in pack.rows):
        raise refuse("rows.form", "A row of the pack has another field.")
    wrong = {
        "release": stored.release != settings["release"],
        "design": design_of(settings).releases != pack.seal.looks,
    }
    if named := next((name for name, differs in wrong.items() if differs), None):
        raise refuse(f"counts.{named}", f"The {named} is not the sealed one.")
    names = {answer.asked[0] for answer in pack.answers if answer.asked[1:3] not in BESIDES}
    if not names <= {stored.target}:
        raise refuse("counts.target", f"Not every answer is of {stored.target!r}.")
    check_spent(case, pack.result["spent"], stored.target, Budget(**settings["budget"]))
    _in_turn(case, stored)
    return f"look {stored.look.number} of {pack.seal.looks or 'an open number'}"


def _in_turn(case: PackCase, said: CanaryResult) -> None:
    """Refuse to recompute a verdict that looks enter which were not there when it was sealed."""
    turn = len(case.pack.seal.settings["history"]["earlier"]) + 1
    if said.finding is not None and said.look.number != turn:
        raise NotCheckedError(
            "another look was taken between the seal and the verdict, which depends on it",
            needed=True,
        )


def _draw(case: PackCase) -> str:
    """The draw is the one of its own commitment, and the examples are those that it names."""
    pack, settings = case.pack, case.pack.seal.settings
    if pack.hidden:
        raise NotCheckedError(f"the draw was not opened: {_OPEN}", needed=True)
    plan = _plan(pack)
    check_drawn(plan)
    digests = dict(settings["parts"])
    if digests["held_out"] != part_digests(plan.held_out, {})["held_out"]:
        raise refuse("draw.examples", "The examples are not those that were sealed.")
    if digest_of(digests) != plan.digest:
        raise refuse("draw.examples", "The examples are not those that the draw commits to.")
    if bad := next(differences(settings_of(plan.design), settings["design"]), None):
        raise refuse("draw.design", f"The sealed design differs from that of the draw at {bad}.")
    return f"commitment {plan.commitment.hex()[:16]}…, opened with {len(plan.held_out)} examples"


def _scores(case: PackCase) -> str:
    """Every score again, from the answers."""
    pack, stored = case.pack, RESULT_TYPE.opened(case.pack.result)
    if pack.hidden or pack.silent:
        raise NotCheckedError(f"the scores were not recomputed from answers: {_OPEN}", needed=True)
    plan = _plan(pack)
    config = replace(_config(pack.seal.settings), way=stored.way)  # type: ignore[arg-type]
    replies = Replies(case.exchanges)
    by_slot: dict[int, list[Outcome]] = {}
    for slot in plan.draw().slots:
        audit, stage = audit_of(plan, slot, config), f"slot {slot.number + 1}"

        def driven(
            documents: Sequence[Document], audit: CanaryProbe = audit, stage: str = stage
        ) -> list[Outcome]:
            capped = stored.finding is None
            return [
                _driven(audit, document, stage, replies, capped=capped) for document in documents
            ]

        outcomes = driven(audit.documents[: len(plan.asked)])
        spares = audit.documents[len(plan.asked) :]
        by_slot[slot.number] = outcomes + driven(spares[: missing_of(plan, outcomes)])
        case.progress("scores", len(by_slot), plan.design.slots)
    case.kept["canary"] = _Probe(plan, config, by_slot)
    count = sum(map(len, by_slot.values()))
    return f"{fmt.count(count)} examples scored again from the answers"


def _driven(
    audit: CanaryProbe, document: Any, stage: str, replies: Replies, *, capped: bool
) -> Outcome:
    end, queries, replied = replay(
        probe_of(audit, document), partial(replies.get, stage, document.id)
    )
    if end is not None:
        return Outcome(document, end.value, queries, queries)
    if not capped:
        raise refuse("scores.unanswered", f"A question about {document.id!r} has no answer.")
    sent = queries + sum(reply is not None for reply in replied)
    return Outcome(document, Score(None, reason="a cap"), sent, sent, capped=True)


def _verdict(case: PackCase) -> str:
    """Ranks, p-value and verdict again, and all that the result says."""
    stored = RESULT_TYPE.opened(case.pack.result)
    _in_turn(case, stored)
    probe: _Probe | None = case.kept.get("canary")
    if probe is None:
        return _from_stated_scores(case, stored)
    settings, plan = case.pack.seal.settings, probe.plan
    complete = stored.spent.stopped_by is None
    draws = plan.draw().slots
    slots = [slot_score(slot, probe.outcomes[slot.number], plan) for slot in draws if complete]
    # 1. The decision, with the looks that the seal names.
    sealed, earlier = settings["history"], _earlier(settings)
    shares = probe.config.way == "sampled"
    finding = finding_of(plan, slots, earlier, shares=shares) if complete else None
    # 2. The whole result, with the spending as stated and the caps as sealed.
    outcomes = [outcome for slot in probe.outcomes.values() for outcome in slot]
    budget = Budget(**settings["budget"])
    spent = replace(
        Spending(**case.pack.result["spent"]),
        unasked=sum(outcome.capped for outcome in outcomes),
        max_queries=budget.queries,
        max_tokens=budget.tokens,
        max_cost=budget.cost,
        price_in=budget.price_in,
        price_out=budget.price_out,
    )
    planted = sealed.get("planted", {})
    result = result_of(
        plan,
        probe.config,
        (stored.target, stored.release),
        slots,
        finding,
        StoredLook(len(earlier) + 1, scores_digest(stored.release, slots)),
        outcomes,
        protocol=protocol_of(plan, _config(settings), stored.release),
        history=History((), sealed["quoted"], sealed["answered"], False, planted=planted),
        truthful=True,
        spent=spent,
        seconds=stored.seconds,
    )
    # 3. Compared place by place, but for warnings that no answer settles.
    recomputed = json.loads(json.dumps(RESULT_TYPE.stored(result)))
    claimed = json.loads(json.dumps(case.pack.result))
    for report in (recomputed, claimed):
        lines = report["warnings"]
        report["warnings"] = [w for w in lines if not KEPT.match(w) and not w.startswith(_ECHO)]
    same_result(case, "verdicts", recomputed, claimed, TAKEN)
    return f"{stored.finding.verdict}, as the result says" if stored.finding else _OPEN_BY_CAP


_OPEN_BY_CAP = "left open by a cap"


def _from_stated_scores(case: PackCase, stored: CanaryResult) -> str:
    """Recompute the verdict of one slot from its stated scores and rank."""
    finding, settings = stored.finding, case.pack.seal.settings
    design = design_of(settings)
    if finding is None:
        return _OPEN_BY_CAP
    if design.slots > 1 or len(finding.ranks) != 1:
        raise NotCheckedError(
            f"the verdict of several slots was not recomputed: {_OPEN}", needed=True
        )
    scores = np.array(stored.slots[0].scores, dtype=np.float64)[:, 1:]
    earlier = _earlier(settings)
    claimed = _comparable(finding)
    for candidate in range(scores.shape[1]):
        shares = stored.way == "sampled"
        again = decide(design, [scores], [candidate], earlier=earlier, shares=shares)
        if not list(differences(_comparable(again), claimed)):
            return f"{finding.verdict}: follows from the scores and the rank that are said"
    raise refuse("verdicts.finding", "The verdict does not follow from the scores and the rank.")


def _comparable(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON, without the outcome numbers that only the draw gives."""
    fields: dict[str, Any] = json.loads(json.dumps(plain(asdict(finding))))
    del fields["seen"]
    return fields


def _plan(pack: Pack) -> CanaryPlan:
    opened = {(text.part, text.id): str(text.text) for text in pack.texts}
    held_out = [Example(**parse_json(t)) for (kind, _), t in opened.items() if kind == "held_out"]
    commitment = bytes.fromhex(pack.seal.settings["commitment"])
    return plan_of_opened(parse_json(opened["draw", "draw"]), commitment, held_out)


def _config(settings: Mapping[str, Any]) -> ProbeConfig:
    fields = dict(settings["config"])
    return ProbeConfig(**fields | {"prompts": Prompts(**fields["prompts"])})


def _earlier(settings: Mapping[str, Any]) -> Sequence[Seen]:
    return [
        Seen(tuple((a, b) for a, b in look["ranks"]), look["own"], tuple(look["called"]))
        for look in settings["history"]["earlier"]
    ]


TASK = PackTask(
    rows_of,
    (
        VerifierStep("counts", _counts),
        VerifierStep("draw", _draw),
        VerifierStep("scores", _scores),
        VerifierStep("verdicts", _verdict),
    ),
    "every score, the p-value and the verdict were recomputed",
    frozenset("target release config budget commitment design parts history".split()),
    looks=None,  # the design says it
    besides=BESIDES,
    opened=mark_opened,
)
