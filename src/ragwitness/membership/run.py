"""A whole membership audit in one process: shadow system, calibration, documents, verdicts."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter, ValidationError

from ragwitness.core.errors import InputError
from ragwitness.core.files import replace_file
from ragwitness.core.run_files import LOOK, SCORES
from ragwitness.core.types import (
    Audit,
    Document,
    Score,
    Target,
    Verdict,
    left_out_of,
    notes_of,
)
from ragwitness.membership.assumptions import (
    UNLIKE,
    PlanLikeness,
    calibration_of,
    doubts,
    power_of,
    withheld,
)
from ragwitness.membership.plan import (
    SHADOW_STAGES,
    AuditPlan,
    CalibrationSet,
    Stages,
    Systems,
    at_shadow,
    at_target,
    learns,
    same_questions,
    stages_of,
)
from ragwitness.membership.prior_queries import SENT, Disclosed, sent_before, sent_unkept
from ragwitness.membership.results.audit import AuditResult
from ragwitness.membership.shadow import (
    AuditClassifier,
    Shadow,
    build_shadow,
    train_classifier,
)
from ragwitness.membership.verdicts import Judged, judge
from ragwitness.membership.windows import MOST, SIZE, WindowedAudit, running_scores
from ragwitness.report.spending import answers_kept, spending, unasked
from ragwitness.runner.budget import Budget, Use
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.score_store import IN_TURN, RunFolder, sets_of, start_for, write_scores
from ragwitness.runner.worker import (
    PATIENCE,
    Outcome,
    Progress,
    Worker,
)
from ragwitness.stats.evaluation import Evaluation, evaluate
from ragwitness.stats.p_values import documents_needed
from ragwitness.text.overlap import same_text

if TYPE_CHECKING:
    from ragwitness.runner.rate_limiter import RateLimiter

# What p-values are computed from: an audit's own score, or a classifier trained on a shadow.


@dataclass(frozen=True, slots=True)
class Statistic:
    """Turns scores into the statistic that is ranked.

    Attributes:
        classifier: Trained on a shadow system; None ranks the audit's own score.
        shadow: That system.
        asked: Outcomes at the shadow system.
    """

    classifier: AuditClassifier | None = None
    shadow: Shadow | None = None
    asked: tuple[Outcome, ...] = ()

    def values(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return one statistic per outcome, None where it is unscorable."""
        scores = [o.score for o in outcomes if o.score.value is not None]
        if self.classifier is None or not scores:
            return [o.score.value for o in outcomes]
        p = self.classifier.member_probability([score.features for score in scores])
        clipped = np.clip(p, 1e-6, 1 - 1e-6)
        found = iter(np.log(clipped / (1 - clipped)).tolist())
        return [None if o.score.value is None else next(found) for o in outcomes]

    def judged(self, outcomes: Sequence[Outcome]) -> list[Judged]:
        """Set each outcome beside its statistic."""
        learnt = self.classifier is not None
        return [
            Judged(
                document=outcome.document,
                score=outcome.score,
                statistic=value,
                classifier=1 / (1 + math.exp(-value)) if learnt and value is not None else None,
                queries=outcome.queries,
            )
            for outcome, value in zip(outcomes, self.values(outcomes), strict=True)
        ]


async def learn(
    plan: AuditPlan,
    audit: Audit,
    auxiliary: Sequence[Document],
    journal: ResponseStore | None,
    progress: Progress | None,
) -> Statistic:
    """Ask a shadow system and train the audit classifier on its answers.

    Raises:
        InputError: Too few auxiliary documents, or too few of them can be scored.
    """
    shadow = build_shadow(auxiliary, plan.shadow)
    worker = Worker(shadow.target, journal, plan.in_flight)
    parts = zip(SHADOW_STAGES, (shadow.inside, shadow.outside), strict=True)
    inside, outside = [await worker.run(audit, part, stage, progress) for stage, part in parts]
    return trained(audit, shadow, inside, outside, automl=plan.automl)


def trained(
    audit: Audit,
    shadow: Shadow,
    inside: Sequence[Outcome],
    outside: Sequence[Outcome],
    *,
    automl: bool = False,
) -> Statistic:
    """Train the audit classifier: as the audit itself says, where it has a ``train``.

    Args:
        audit: The method.
        shadow: The system that was asked.
        inside: Outcomes of documents that it holds.
        outside: Outcomes of documents that it does not.
        automl: With AutoGluon.

    Raises:
        InputError: Too few of them can be scored.
    """
    members = [o.score for o in inside if o.score.value is not None]
    scores = members + [o.score for o in outside if o.score.value is not None]
    train = getattr(audit, "train", train_classifier)
    labels = [True] * len(members) + [False] * (len(scores) - len(members))
    classifier = train([score.features for score in scores], labels, automl=automl)
    return Statistic(classifier, shadow, (*inside, *outside))


# What a reader must be told beside the verdicts: what was in use, and what to beware of.

_SHORT = 60  # characters; longer settings are prompts


def in_use(plan: AuditPlan, audit: Audit, statistic: Statistic) -> dict[str, str]:
    """Return everything in use, as label and value."""
    found = {"method": audit.name, **described(audit)}
    if isinstance(audit, WindowedAudit):
        found["text asked about"] = (
            f"what no other document here has, in up to {MOST} windows of {SIZE:,} characters"
        )
    if proxy := getattr(audit, "proxy", None):  # some methods count its tokens alone
        found["difficulty"] = f"{proxy.name}, no context"
    if statistic.classifier and statistic.shadow:
        inside = {
            key: str(value) for key, value in statistic.shadow.target.system.describe().items()
        }
        found["audit classifier"] = statistic.classifier.name
        found["auxiliary documents"] = (
            "given" if plan.auxiliary else "generated corpus of the package"
        )
        found |= {f"shadow {key}": value for key, value in inside.items()}
    return found | {"correction": "Benjamini-Hochberg over all scored documents"}


def described(audit: Audit) -> dict[str, str]:
    """The audit's own words about its parameters, else every field that is short enough."""
    own = getattr(audit, "describe", None)
    if own is not None:
        return dict(own())
    config = getattr(audit, "config", None)
    if config is None:
        return {}
    fields = {field.name: str(getattr(config, field.name)) for field in dataclasses.fields(config)}
    return {name.replace("_", " "): text for name, text in fields.items() if len(text) <= _SHORT}


def words_read(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Say how many probe words could be read, and how many only up to a bound."""
    total = {
        key: int(sum(o.score.details.get(key, 0.0) for o in outcomes))
        for key in ("probes", "unread", "censored")
    }
    if said := sum("said again" in o.score.details for o in outcomes):
        again = sum(o.score.details.get("said again", 0.0) > 0 for o in outcomes)
        return {"documents whose words were said again": f"{again} of {said}"}
    if not total["probes"]:
        return {}
    return {
        "probe words read": f"{total['probes'] - total['unread']} of {total['probes']},"
        f" {total['censored']} of them only as a bound"
    }


LOOKS = (
    "Looks at a part of the documents, left by a cap, so far: {}. Each is a further chance of a"
    " wrong verdict, so these are judged at the level {:g} instead of {:g}."
)


def looks_at(
    run: Path | None, audit: str, found: Mapping[str, Sequence[Outcome]], plan: AuditPlan
) -> int:
    """Count the looks of an ``audit`` at a part of the documents, and remember this one.

    Each spends half of what is left of the level, so that all together never exceed it. Where no
    document could be called in, whatever its score, nothing is spent.
    """
    if run is None:  # nothing can be continued: the first look is the last
        return 0
    asked = [one for part in at_target(found).values() for one in part]
    answered, capped = sum(o.score.value is not None for o in asked), any(o.capped for o in asked)
    looks: dict[str, list[int]] = {}
    with suppress(FileNotFoundError):
        try:
            looks = TypeAdapter(dict[str, list[int]]).validate_json((run / LOOK).read_bytes())
        except ValidationError:  # how often it was judged is not known
            raise InputError(
                f"{run / LOOK} is damaged: it says how often this audit was judged.",
                "Take a fresh --run folder.",
            ) from None
    # To look again at the same answers is no further chance.
    earlier = {n for n in looks.get(audit, ()) if n != answered}
    known = sum(one.score.value is not None for one in found["known outside"])
    capped = capped and plan.alpha * (known + 1) >= 1
    if capped:
        looks[audit] = sorted({*earlier, answered})
        replace_file(run / LOOK, json.dumps(looks) + "\n")
    return sum(n < answered for n in earlier) + capped


def cautions(
    alpha: float, reference: CalibrationSet, known: Sequence[Outcome], lost: tuple[int, int]
) -> list[str]:
    """Say what to beware of before relying on a verdict.

    Args:
        alpha: Level of the verdicts.
        reference: Documents outside.
        known: What was found of them.
        lost: Documents in question without a score, and all in question.
    """
    found = [reference.warning] if reference.warning else []
    calibrated = sum(one.score.value is not None for one in known)
    reasons = Counter(one.score.reason for one in known if one.score.reason)
    why = "".join(f"In most cases: {reason}." for reason, _ in reasons.most_common(1))
    needed, given = documents_needed(alpha), len(reference.documents)
    if calibrated < needed:
        # More documents help only where documents can be scored.
        most = 2 * calibrated < given
        found.append(
            f"Only {calibrated} of {given} known-outside documents could be scored; no p-value can"
            f" reach {alpha:g} with fewer than {needed}."
            + (f" {why} Try another --method." if most else " Give more with --known-out.")
        )
    without, documents = lost
    if without * 5 > documents:
        found.append(f"{without} of {documents} documents could not be scored; see the reasons.")
    return found


SAME = "asks the same question as {}, whose text differs further on"


def drop_duplicate_questions(
    audit: Audit, found: Mapping[str, Sequence[Outcome]]
) -> dict[str, list[Outcome]]:
    """Take the score from documents that ask the very questions of another.

    Where one of them is in question, from all; known ones alone count once.
    """
    every = dict.fromkeys(outcome.document for part in found.values() for outcome in part)
    mine = {outcome.document for outcome in found["documents"]}
    other: dict[Document, str] = {}
    for group in same_questions(audit, every):
        first, lost = group[0], group[mine.isdisjoint(group) :]
        other |= {one: group[one == first].id for one in lost}

    def left(one: Outcome) -> Outcome:
        lost = other.get(one.document)
        return one if lost is None else replace(one, score=Score(None, reason=SAME.format(lost)))

    return {stage: [left(one) for one in part] for stage, part in found.items()}


APART = (
    "Not exact: documents known and in question were not asked about in one random order, but at"
    " starts for other documents or hardly beside each other; a system that changed in between"
    " would look as if it held documents. No verdict says in or out; take a fresh --run folder."
)


def confounded_by_time(
    alpha: float, outcomes: Sequence[Outcome], others: Sequence[Outcome]
) -> bool:
    """Whether a system that changed between starts could decide about documents by that alone."""
    parts = [[one for one in part if one.score.value is not None] for part in (outcomes, others)]
    every = [*parts[0], *parts[1]]
    # Starts for one set of documents share one random order, wherever they were broken off.
    if len(sets := sets_of(every)) > 1 or any(one.startswith(IN_TURN) for one in sets):
        return True
    # And if what was asked at one, or at the others, scores highest, no p-value must be enough.
    asked, known = map(len, parts)
    shares = (
        [sum((start in one.starts) == there for one in part) for part in parts]
        for start in {start for one in every for start in one.starts}
        for there in (True, False)
    )
    return any(n and (beside + 1) * asked <= alpha * (known + 1) * n for n, beside in shares)


# From what was found of every document to verdicts: the end of every audit, whoever asked.

_DECISIVE = 5  # words of evidence kept per document


@dataclass(frozen=True, slots=True)
class Effort:
    """What an audit took.

    Attributes:
        started: When it began, ISO 8601 in UTC.
        seconds: Wall time.
        spent: At the target, all starts together.
        budget: Caps and prices.
        stopped_by: Name of the cap that refused a query; None where none did.
    """

    started: str
    seconds: float
    spent: Use
    budget: Budget
    stopped_by: str | None = None


def conclude(
    plan: AuditPlan,
    audit: Audit,
    target: str,
    stages: Stages,
    statistic: Statistic,
    found: Mapping[str, Sequence[Outcome]],
    effort: Effort,
    seen: PlanLikeness | None = None,
    apart: bool | None = None,
    looks: int = 0,
    before: Disclosed = Disclosed(),  # noqa: B008  # frozen
) -> AuditResult:
    """Calibrate, judge and put together what a reader must be told.

    Args:
        plan: Documents and settings.
        audit: The method.
        target: Name of the system.
        stages: What was asked about.
        statistic: What is ranked.
        found: Outcomes by stage, each in the order of ``stages``.
        effort: What it took.
        seen: What comparing the texts found; None compares them now.
        apart: Whether known documents were asked earlier or later; None says so by their starts.
        looks: At a part of the documents, from :func:`looks_at`.
        before: What earlier runs sent to the target.
    """
    ordered, plan = plan.alpha, replace(plan, alpha=plan.alpha * 0.5**looks) if looks else plan
    seen = seen or PlanLikeness.of(plan, stages.reference, getattr(audit, "config", None))
    found = drop_duplicate_questions(audit, at_target(found))
    known, held, outcomes = (found[s] for s in ("known outside", "known inside", "documents"))
    asked = [*known, *held, *outcomes]
    if apart is None:
        apart = any(confounded_by_time(plan.alpha, outcomes, part) for part in (known, held))
    # 1. What is ranked: one statistic per document, of the calibration documents too.
    ranked, running, by = {}, {}, {}
    for name, part in (("outside", known), ("inside", held)):
        pairs = zip(statistic.values(part), part, strict=True)
        scored = [(value, one) for value, one in pairs if value is not None]
        ranked[name] = [value for value, _ in scored]
        running[name] = [
            [value] if statistic.classifier else running_scores(one.score) for value, one in scored
        ]
        by[name] = [one.document.group for _, one in scored]
    groups = (by["outside"], by["inside"]) if any(map(any, by.values())) else None
    judged = statistic.judged(outcomes)
    # 2. What a reader must be told beside the verdicts.
    lost = sum(one.statistic is None for one in judged)
    spent = spending(effort.spent, effort.budget, effort.stopped_by, asked)
    settings = in_use(plan, audit, statistic) | words_read(outcomes)
    calibration = calibration_of(plan, stages.reference, ranked["outside"], seen, by["outside"])
    scores = {"known-in": ranked["inside"], "audited": _members(judged)}
    power = power_of(plan, calibration, len(judged) - lost, scores)
    power = replace(power, withheld=power.withheld or apart)
    exact = calibration.exact and not apart and not before.told
    calibration = replace(calibration, power=power, exact=exact)
    warnings = (
        *notes_of(plan.left_out),
        *([APART] if apart else []),
        *([before.told] if before.told else []),
        *unasked(spent, len(asked)),
        *([LOOKS.format(looks, plan.alpha, ordered)] if looks else []),
        *doubts(plan, calibration, len(judged) - lost, seen),
        *cautions(plan.alpha, stages.reference, known, (lost, len(judged))),
        *answers_kept([*statistic.asked, *asked]),
    )
    # 3. Conformal p-values, corrected for the number of documents asked about; what rests on
    # documents unlike those in question is taken back.
    odd = dict.fromkeys(before.withheld, SENT) | dict.fromkeys(seen.odd, UNLIKE)
    left = frozenset[str]() if plan.accept_unlike else odd.keys()
    verdicts = judge(judged, **running, alpha=plan.alpha, odd=left, groups=groups)
    verdicts = withheld(plan, seen, verdicts, odd, apart=apart)
    return AuditResult(
        method=audit.name,
        target=target,
        alpha=plan.alpha,
        started=effort.started,
        seconds=effort.seconds,
        queries=sum(outcome.queries for outcome in asked),
        verdicts=_with_copies(
            plan, [replace(v, evidence=v.evidence[:_DECISIVE]) for v in verdicts]
        ),
        calibration=calibration,
        evaluation=_evaluation(verdicts, plan.alpha),
        settings=settings,
        warnings=warnings,
        left_out=left_out_of(plan.left_out),
        ragwitness=version("ragwitness"),
        spent=spent,
    )


def _with_copies(plan: AuditPlan, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Verdicts of all documents: a copy has that of its original, and was no test of its own."""
    by_id = {one.document: one for one in verdicts}
    first = {same_text(one): by_id[one.id] for one in plan.documents if one.id in by_id}
    found = []
    for one in plan.documents:
        own = first[same_text(one)]
        copied = f"a copy of “{own.document}”" + (f": {own.reason}" if own.reason else "")
        copy = replace(own, document=one.id, member=one.member, queries=0, reason=copied)
        found.append(by_id.get(one.id, copy))
    return tuple(found)


def _members(judged: Sequence[Judged]) -> list[float]:
    """Statistics of the documents in question that are said to be inside."""
    return [one.statistic for one in judged if one.document.member and one.statistic is not None]


def _evaluation(verdicts: Sequence[Verdict], alpha: float) -> Evaluation | None:
    """Evaluate where every document's membership is known and both kinds are there."""
    if any(verdict.member is None for verdict in verdicts):
        return None
    scored = [v for v in verdicts if v.score is not None and v.p_value is not None]
    labels = [bool(verdict.member) for verdict in scored]
    if len(set(labels)) < 2:
        return None
    p_values = [1.0 if v.p_value is None else v.p_value for v in scored]
    learnt = all(verdict.classifier is not None for verdict in scored)
    return evaluate(
        [verdict.score or 0.0 for verdict in scored],
        labels,
        decisions=[(v.classifier or 0.0) >= 0.5 for v in scored]
        if learnt
        else [p <= alpha for p in p_values],
        p_values=p_values,
        alpha=alpha,
        unscorable=len(verdicts) - len(scored),
        decided_by="classifier at one half" if learnt else f"p <= {alpha:g}",
    )


async def run_audit(
    plan: AuditPlan,
    target: Target,
    audit: Audit,
    *,
    run: Path | None = None,
    progress: Progress | None = None,
    limiter: RateLimiter | None = None,
    identity: str | None = None,
    ahead: int | None = None,
) -> AuditResult:
    """Run the audit; answers already in ``run`` are not asked for again.

    An audit with the attribute ``learns`` is read by a classifier trained on a shadow system;
    the others' scores are ranked as they are.

    Args:
        plan: Documents and settings.
        target: The system under audit.
        audit: The method with its proxy model.
        run: Folder of the journal; None keeps nothing.
        progress: Called after each document.
        limiter: Lets queries to the target pass; None makes one without caps for ``run``.
        identity: From :func:`~ragwitness.runner.score_store.audit_identity`. With it, scores are
            kept in ``run`` as well as answers; without it they are computed anew from the answers,
            because an audit made by hand may be another one under the same name.
        ahead: How many known-outside documents are asked about before those in question join in
            turns, so that first verdicts can be shown early; None asks about all in a random order.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Too few auxiliary documents can be scored, or no document in question or of
            the calibration could be; then nothing was sent.
    """
    from ragwitness.membership.forecast import refuse_unscorable
    from ragwitness.runner.rate_limiter import Pace, RateLimiter

    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    # 1. Plan: which documents are asked about, and of which system.
    stages = stages_of(plan, learns(audit))
    to_shadow, to_target = at_shadow(stages.documents), at_target(stages.documents)
    parts = {"documents": plan.documents, "known-out documents": stages.reference.documents}
    await refuse_unscorable(audit, parts)
    shadow = build_shadow(stages.auxiliary, plan.shadow) if learns(audit) else None
    asked, known = stages.documents["documents"], stages.reference.documents
    before = (
        sent_unkept(target, asked, known)
        if run is None
        else sent_before(run, target.name, asked, known)
    )
    # 2. Ask: the shadow system of our own first, then the target.
    with ExitStack() as files:
        if limiter is None:
            pace = Pace.at_most(plan.in_flight)
            limiter = files.enter_context(RateLimiter.of_run(run, pace=pace))
        folder = files.enter_context(RunFolder.of_run(run, identity))
        found: dict[str, list[Outcome]] = {}
        if shadow is not None:
            worker = folder.worker(shadow.target, plan.in_flight)
            found |= await worker.run_stages(audit, to_shadow, progress)
        statistic = Statistic()
        if shadow is not None:
            statistic = trained(audit, shadow, *found.values(), automl=plan.automl)
        start = start_for(to_target, *([] if ahead is None else [ahead]))
        worker = folder.worker(target, plan.in_flight, limiter, start)
        found |= await worker.run_stages(
            audit, to_target, progress, ahead, mixed=True, patience=PATIENCE
        )
    if run is not None and identity is not None:
        systems = Systems(target.name, shadow.target.name if shadow else None)
        write_scores(run / SCORES, stages.units(identity, systems), found)
    # 3. Result: calibrate and judge.
    seconds = time.monotonic() - clock
    effort = Effort(started, seconds, limiter.spent, limiter.budget, limiter.cap)
    apart = None if ahead is None else False  # who asks one kind ahead gives that check up
    looks = looks_at(run, identity or audit.name, found, plan)
    its = (plan, audit, target.name, stages, statistic, found, effort)
    return conclude(*its, None, apart, looks, before)
