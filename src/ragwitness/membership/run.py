"""A whole membership audit: shadow system, calibration, documents, verdicts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
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
    Decision,
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
    ranks_decide,
    take_back,
)
from ragwitness.membership.blind_spots import blind_spots
from ragwitness.membership.e_values import Guesser, Guesses, e_value, test_mean_pay
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
from ragwitness.membership.results.assumptions import VerdictPower
from ragwitness.membership.results.audit import AuditResult
from ragwitness.membership.results.odds import OddsScale
from ragwitness.membership.shadow import (
    AuditClassifier,
    Shadow,
    build_shadow,
    train_classifier,
)
from ragwitness.membership.verdicts import Judged, judge, with_odds
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

_log = logging.getLogger(__name__)

# The ranked statistic: an audit's own score, or a classifier trained on a shadow.


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
        log_odds = iter(np.log(clipped / (1 - clipped)).tolist())
        return [None if o.score.value is None else next(log_odds) for o in outcomes]

    def running(self, outcome: Outcome, value: float) -> list[float]:
        """Return the statistic after each window of a document; a classifier reads it whole."""
        return [value] if self.classifier else running_scores(outcome.score)

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
    stages = zip(SHADOW_STAGES, (shadow.inside, shadow.outside), strict=True)
    inside, outside = [
        await worker.run(audit, documents, stage, progress) for stage, documents in stages
    ]
    return trained(audit, shadow, inside, outside, automl=plan.automl)


def trained(
    audit: Audit,
    shadow: Shadow,
    inside: Sequence[Outcome],
    outside: Sequence[Outcome],
    *,
    automl: bool = False,
) -> Statistic:
    """Train the audit classifier, by the audit's own ``train`` if it has one.

    Args:
        audit: The method.
        shadow: The system that was asked.
        inside: Outcomes of documents that it holds.
        outside: Outcomes of documents that it does not.
        automl: With AutoGluon.

    Raises:
        InputError: Too few of them can be scored.
    """
    # Unscorable documents teach nothing.
    members = [o.score for o in inside if o.score.value is not None]
    scores = members + [o.score for o in outside if o.score.value is not None]
    train = getattr(audit, "train", train_classifier)
    labels = [True] * len(members) + [False] * (len(scores) - len(members))
    classifier = train([score.features for score in scores], labels, automl=automl)
    return Statistic(classifier, shadow, (*inside, *outside))


# Remarks beside the verdicts: the settings, and cautions.

_SHORT = 60  # characters; longer settings are prompts


def _in_use(plan: AuditPlan, audit: Audit, statistic: Statistic) -> dict[str, str]:
    """Return everything in use, as label and value."""
    # The method, its windows and its proxy; then the shadow system of a classifier.
    settings = {"method": audit.name, **described(audit)}
    if isinstance(audit, WindowedAudit):
        settings["text asked about"] = (
            f"what no other document here has, in up to {MOST} windows of {SIZE:,} characters"
        )
    if proxy := getattr(audit, "proxy", None):  # some methods count its tokens alone
        settings["difficulty"] = f"{proxy.name}, no context"
    if statistic.classifier and statistic.shadow:
        system = statistic.shadow.target.system.describe()
        settings["audit classifier"] = statistic.classifier.name
        settings["auxiliary documents"] = (
            "given" if plan.auxiliary else "generated corpus of the package"
        )
        settings |= {f"shadow {key}": str(value) for key, value in system.items()}
    return settings | {"correction": "Benjamini-Hochberg over all scored documents"}


def described(audit: Audit) -> dict[str, str]:
    """The audit's own words about its parameters, else every field that is short enough."""
    describe = getattr(audit, "describe", None)
    if describe is not None:
        return dict(describe())
    config = getattr(audit, "config", None)
    if config is None:
        return {}
    fields = {field.name: str(getattr(config, field.name)) for field in dataclasses.fields(config)}
    return {name.replace("_", " "): text for name, text in fields.items() if len(text) <= _SHORT}


def words_read(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Say how many probe words could be read, and how many only up to a bound."""
    # Methods that quote count texts that were continued; others count probe words.
    details = [outcome.score.details for outcome in outcomes]
    if continued := [row["said again"] > 0 for row in details if "said again" in row]:
        return {"documents whose words were said again": f"{sum(continued)} of {len(continued)}"}
    probes, unread, censored = (
        int(sum(row.get(key, 0.0) for row in details)) for key in ("probes", "unread", "censored")
    )
    if not probes:
        return {}
    return {
        "probe words read": f"{probes - unread} of {probes}, {censored} of them only as a bound"
    }


LOOKS = (
    "Looks at a part of the documents, left by a cap, so far: {}. Each is a further chance of a"
    " wrong verdict, so these are judged at the level {:g} instead of {:g}."
)


def _looks_at(
    run: Path | None, audit: str, outcomes: Mapping[str, Sequence[Outcome]], alpha: float
) -> int:
    """Count the interim analyses of an ``audit`` on a part of the documents, and keep this one.

    Each spends half of the remaining level, so that all together never exceed it. Where no
    document could be called in, whatever its score, nothing is spent.
    """
    if run is None:  # nothing can be continued: the first look is the last
        return 0
    every = [outcome for row in at_target(outcomes).values() for outcome in row]
    answered, capped = sum(o.score.value is not None for o in every), any(o.capped for o in every)
    looks: dict[str, list[int]] = {}
    with suppress(FileNotFoundError):
        try:
            looks = TypeAdapter(dict[str, list[int]]).validate_json((run / LOOK).read_bytes())
        except ValidationError:  # the number of looks is lost
            raise InputError(
                f"{run / LOOK} is damaged: it says how often this audit was judged.",
                "Take a fresh --run folder.",
            ) from None
    # Another look at the same answers is no further chance.
    earlier = {n for n in looks.get(audit, ()) if n != answered}
    calibrating = sum(outcome.score.value is not None for outcome in outcomes["known outside"])
    capped = capped and alpha * (calibrating + 1) >= 1
    if capped:
        looks[audit] = sorted({*earlier, answered})
        replace_file(run / LOOK, json.dumps(looks) + "\n")
    return sum(n < answered for n in earlier) + capped


def _cautions(
    alpha: float,
    reference: CalibrationSet,
    known: Sequence[Outcome],
    judged: Sequence[Judged],
    by_ranks: bool,
) -> list[str]:
    """Return warnings about missing scores.

    Args:
        alpha: Level of the verdicts.
        reference: Documents outside.
        known: Their outcomes.
        judged: Documents in question.
        by_ranks: Whether verdicts rest on documents outside.
    """
    cautions = [reference.warning] if reference.warning else []
    calibrated = sum(outcome.score.value is not None for outcome in known)
    needed, given_out = documents_needed(alpha), len(reference.documents)
    if calibrated < needed and by_ranks:
        # More documents help only where documents can be scored.
        hint = " Give more with --known-out."
        if 2 * calibrated < given_out:
            reasons = Counter(o.score.reason for o in known if o.score.reason).most_common(1)
            cause = "".join(f" In most cases: {reason}." for reason, _ in reasons)
            hint = f"{cause} Try another --method."
        cautions.append(
            f"Only {calibrated} of {given_out} known-outside documents could be scored; no p-value"
            f" can reach {alpha:g} with fewer than {needed}.{hint}"
        )
    unscorable, total = sum(document.statistic is None for document in judged), len(judged)
    if unscorable * 5 > total:
        cautions.append(f"{unscorable} of {total} documents could not be scored; see the reasons.")
    return cautions


SAME = "asks the same question as {}, whose text differs further on"


def drop_duplicate_questions(
    audit: Audit, outcomes: Mapping[str, Sequence[Outcome]]
) -> dict[str, list[Outcome]]:
    """Take the score from documents that ask the very questions of another.

    All of them lose it if one of them is in question; known ones alone count once.
    """
    documents = dict.fromkeys(o.document for row in outcomes.values() for o in row)
    in_question = {outcome.document for outcome in outcomes["documents"]}
    reasons: dict[Document, str] = {}
    for group in same_questions(audit, documents):
        first = group[0]
        for document in group[in_question.isdisjoint(group) :]:
            reasons[document] = SAME.format(group[document == first].id)
    return {
        stage: [
            replace(outcome, score=Score(None, reason=reasons[outcome.document]))
            if outcome.document in reasons
            else outcome
            for outcome in row
        ]
        for stage, row in outcomes.items()
    }


APART = (
    "Not exact: documents known and in question were not asked about in one random order, but at"
    " starts for other documents or hardly beside each other; a system that changed in between"
    " would look as if it held documents. No verdict says in or out; take a fresh --run folder."
)


def confounded_by_time(
    alpha: float, outcomes: Sequence[Outcome], others: Sequence[Outcome]
) -> bool:
    """Whether a system that changed between starts could decide about documents by that alone."""
    scored_rows = [[o for o in row if o.score.value is not None] for row in (outcomes, others)]
    scored = [*scored_rows[0], *scored_rows[1]]
    # Starts for one set of documents share one random order, wherever they were broken off.
    if len(sets := sets_of(scored)) > 1 or any(name.startswith(IN_TURN) for name in sets):
        return True
    # If one start's documents, or all others, score highest, no p-value must be small enough.
    items, references = map(len, scored_rows)
    shares = (
        [sum((start in outcome.starts) == within for outcome in row) for row in scored_rows]
        for start in {start for outcome in scored for start in outcome.starts}
        for within in (True, False)
    )
    return any(n and (calib + 1) * items <= alpha * (references + 1) * n for n, calib in shares)


# From outcomes to verdicts: the end of every audit.

_DECISIVE = 5  # words of evidence kept per document


@dataclass(frozen=True, slots=True)
class Effort:
    """Time and spending of an audit.

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
    outcomes: Mapping[str, Sequence[Outcome]],
    effort: Effort,
    seen: PlanLikeness | None = None,
    apart: bool | None = None,
    looks: int = 0,
    before: Disclosed = Disclosed(),  # noqa: B008  # frozen
    guess: Guesser | None = None,
) -> AuditResult:
    """Calibrate, judge, and add the warnings.

    Args:
        plan: Documents and settings.
        audit: The method.
        target: Name of the system.
        stages: Documents by stage.
        statistic: The ranked statistic.
        outcomes: By stage, each in the order of ``stages``.
        effort: Time and spending.
        seen: Comparison of the texts; None compares them now.
        apart: Whether known documents were asked earlier or later; None decides by their starts.
        looks: Interim analyses on a part of the documents.
        before: Documents that earlier runs sent to the target.
        guess: Returns the guesses of reference models; None ranks documents alone.
    """
    ordered, total = plan.alpha, plan.alpha * 0.5**looks
    reference, scaled = stages.reference, guess is not None
    by_ranks = not scaled or ranks_decide(replace(plan, alpha=total), reference)
    # Ranks and e-values share the level, as fixed before any answer.
    alpha = total / 2 if scaled and by_ranks else total
    plan = replace(plan, alpha=alpha)
    seen = seen or PlanLikeness.of(plan, reference, getattr(audit, "config", None))
    outcomes = drop_duplicate_questions(audit, at_target(outcomes))
    calibrating, inside, in_question = (
        outcomes[stage] for stage in ("known outside", "known inside", "documents")
    )
    every = [*calibrating, *inside, *in_question]
    if apart is None:
        apart = any(confounded_by_time(alpha, in_question, row) for row in (calibrating, inside))
    # 1. The ranks: one statistic per document, of the calibration documents too.
    scored = {
        name: [(v, o) for v, o in zip(statistic.values(row), row, strict=True) if v is not None]
        for name, row in (("outside", calibrating), ("inside", inside))
    }
    values = {name: [value for value, _ in pairs] for name, pairs in scored.items()}
    running = {name: [statistic.running(o, v) for v, o in pairs] for name, pairs in scored.items()}
    groups = {name: [o.document.group for _, o in pairs] for name, pairs in scored.items()}
    judged = statistic.judged(in_question)
    # 2. Calibration and power. Nothing is exact if a memory or a change could decide.
    tested = sum(scored_document.statistic is not None for scored_document in judged)
    alike = seen.reference
    calibration = calibration_of(
        plan, reference, values["outside"], alike, seen.odd, groups["outside"]
    )
    scores = calibration.scores
    calibration = replace(
        calibration,
        power=VerdictPower(
            documents=tested,
            known=calibration.votes,
            smallest=1 / (calibration.votes + 1),
            tied=min(calibration.votes, scores.count(max(scores, default=0.0))),
            withheld=apart or (alike.unlike and not plan.accept_unlike),
            ranked_out=len(values["inside"]),
            alpha=alpha,
        ),
        exact=calibration.exact and not apart and not before.told,
    )
    spent = spending(effort.spent, effort.budget, effort.stopped_by, every)
    warnings = (
        *blind_spots(audit, every, inside, calibrating),
        *notes_of(plan.left_out),
        *([APART] if apart else []),
        *([before.told] if before.told else []),
        *unasked(spent, len(every)),
        *([LOOKS.format(looks, alpha, ordered)] if looks else []),
        *(doubts(plan, calibration, tested, seen) if by_ranks else []),
        *_cautions(alpha, reference, calibrating, judged, by_ranks),
        *answers_kept([*statistic.asked, *every]),
    )
    # 3. Conformal p-values, corrected for the number of documents asked about; verdicts that rest
    # on documents unlike those in question are taken back.
    odd = dict.fromkeys(before.withheld, SENT) | dict.fromkeys(seen.odd, UNLIKE)
    verdicts = judge(
        judged,
        **running,
        alpha=alpha,
        odd=frozenset() if plan.accept_unlike else odd.keys(),
        groups=(groups["outside"], groups["inside"]) if any(map(any, groups.values())) else None,
    )
    verdicts = take_back(plan, seen, verdicts, odd, apart=apart)
    # 4. The absolute scale, which needs no other document.
    odds = None
    if guess is not None:
        odds, guesses = _odds(audit, guess, calibrating, in_question, alpha)
        if odds.refused:
            warnings = (odds.refusal, *warnings)
        verdicts = with_odds(
            verdicts if by_ranks else _undecided(verdicts),
            {outcome.document.id: outcome.score for outcome in in_question},
            guesses,
            alpha,
            refused=odds.refused,
            alone=not by_ranks,
            withheld=frozenset(before.withheld),
        )
    return AuditResult(
        method=audit.name,
        target=target,
        alpha=total,
        started=effort.started,
        seconds=effort.seconds,
        queries=sum(outcome.queries for outcome in every),
        verdicts=_with_copies(
            plan.documents, [replace(v, evidence=v.evidence[:_DECISIVE]) for v in verdicts]
        ),
        calibration=calibration,
        evaluation=_evaluation(verdicts, alpha),
        settings=_in_use(plan, audit, statistic) | words_read(in_question),
        warnings=warnings,
        left_out=left_out_of(plan.left_out),
        ragwitness=version("ragwitness"),
        spent=spent,
        odds=odds,
    )


def _undecided(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return verdicts whose ranks decide nothing: the level belongs to e-values alone."""
    return tuple(
        v if v.decision is Decision.INCONCLUSIVE else replace(v, decision=Decision.INCONCLUSIVE)
        for v in verdicts
    )


def _odds(
    audit: Audit,
    guess: Guesser,
    outside: Sequence[Outcome],
    in_question: Sequence[Outcome],
    alpha: float,
) -> tuple[OddsScale, Guesses]:
    """Ask for the guesses, and test the assumption on documents known to be outside."""
    bets = [bet for o in (*outside, *in_question) for bet in o.score.bets if bet.words]
    models, guesses = guess(bets)
    pays = [e_value(outcome.score.bets, guesses) for outcome in outside]
    test = test_mean_pay(pays)
    return OddsScale(
        models,
        alpha,
        tuple(guesses[bet] for bet in bets),
        len(pays),
        test.mean if pays else None,
        test.e_value,
        # A method that shows the text around a word helps a strong target to guess it.
        needs_test=not getattr(audit, "stands_alone", False),
    ), guesses


def _with_copies(documents: Sequence[Document], verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Verdicts of all documents: a copy has that of its original, and was no separate test."""
    # Only originals were judged.
    by_id = {verdict.document: verdict for verdict in verdicts}
    originals = {same_text(d): by_id[d.id] for d in documents if d.id in by_id}
    complete = []
    for document in documents:
        original = originals[same_text(document)]
        reason = f"a copy of “{original.document}”" + (
            f": {original.reason}" if original.reason else ""
        )
        copy = replace(
            original, document=document.id, member=document.member, queries=0, reason=reason
        )
        complete.append(by_id.get(document.id, copy))
    return tuple(complete)


def _evaluation(verdicts: Sequence[Verdict], alpha: float) -> Evaluation | None:
    """Evaluate if every document's membership is known and both kinds are there."""
    if any(verdict.member is None for verdict in verdicts):
        return None
    # Rates are over scored documents; the others are counted as unscorable.
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
) -> AuditResult:
    """Run the audit; answers already in ``run`` are not asked for again.

    An audit with the attribute ``learns`` is read by a classifier trained on a shadow system;
    the others' scores are ranked as they are.

    Args:
        plan: Documents and settings.
        target: The system under audit.
        audit: The method with its proxy model.
        run: Folder of the response store; None keeps nothing.
        progress: Called after each document.
        limiter: Lets queries to the target pass; None makes one without caps for ``run``.
        identity: From :func:`~ragwitness.runner.score_store.audit_identity`. With it, ``run`` keeps
            scores as well as answers. Without it they are computed anew from the answers: an audit
            made by hand may be another one under the same name.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Too few auxiliary documents can be scored, or no document in question or of
            the calibration could be; then nothing was sent.
    """
    from ragwitness.membership.forecast import refuse_unscorable
    from ragwitness.membership.references import references_of
    from ragwitness.runner.rate_limiter import RateLimiter

    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    # 1. Plan: which documents are asked about, and of which system.
    stages = stages_of(plan, learns(audit))
    to_shadow, to_target = at_shadow(stages.documents), at_target(stages.documents)
    in_question, calibrating = stages.documents["documents"], stages.reference.documents
    await refuse_unscorable(audit, plan, calibrating)
    shadow = build_shadow(stages.auxiliary, plan.shadow) if learns(audit) else None
    before = (
        sent_unkept(target, in_question, calibrating)
        if run is None
        else sent_before(run, target.name, in_question, calibrating)
    )
    # Reference models are loaded before anything is sent: without them nothing could be decided.
    guess = await asyncio.to_thread(references_of, plan.references) if plan.references else None
    # 2. Ask: the auditor's own shadow system first, then the target.
    with ExitStack() as files:
        if limiter is None:
            limiter = files.enter_context(RateLimiter.of_run(run, at_once=plan.in_flight))
        folder = files.enter_context(RunFolder.of_run(run, identity))
        outcomes: dict[str, list[Outcome]] = {}
        statistic = Statistic()
        if shadow is not None:
            worker = folder.worker(shadow.target, plan.in_flight)
            outcomes |= await worker.run_stages(audit, to_shadow, progress)
            statistic = trained(audit, shadow, *outcomes.values(), automl=plan.automl)
            _log.info("trained %s on a shadow system", statistic.classifier)
        worker = folder.worker(target, plan.in_flight, limiter, start_for(to_target))
        outcomes |= await worker.run_stages(
            audit, to_target, progress, mixed=True, patience=PATIENCE
        )
    if run is not None and identity is not None:
        systems = Systems(target.name, shadow.target.name if shadow else None)
        write_scores(run / SCORES, stages.units(identity, systems), outcomes)
    # 3. Result: calibrate and judge.
    seconds = time.monotonic() - clock
    effort = Effort(started, seconds, limiter.spent, limiter.budget, limiter.cap)
    looks = _looks_at(run, identity or audit.name, outcomes, plan.alpha)
    return await asyncio.to_thread(
        conclude, plan, audit, target.name, stages, statistic, outcomes, effort,
        looks=looks, before=before, guess=guess,
    )  # fmt: skip
