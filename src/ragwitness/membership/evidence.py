"""A membership audit as evidence: its commitment, and the recomputation of its verdicts.

Audits are generators without I/O, so their scores are computed again from the answers alone. Where
texts are hidden, the sealed scores are taken as given, and everything behind them is recomputed:
the classifier, the calibration, each p-value and each verdict.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ragwitness.attest.verdict import NotCheckedError, VerifierStep, refuse
from ragwitness.core.bet import Bet
from ragwitness.core.errors import InputError, MissingExtraError, ModelError
from ragwitness.core.files import lines_of
from ragwitness.core.run_files import FINISHED, SCORES
from ragwitness.core.types import Audit, Document, Score
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
from ragwitness.evidence.subject import SealedText, SealSubject, without_words
from ragwitness.membership.assumptions import PlanLikeness
from ragwitness.membership.e_values import Guesser
from ragwitness.membership.method_registry import AUDITS
from ragwitness.membership.plan import SHADOW_STAGES, Stages, auxiliary_of, choose_reference, learns
from ragwitness.membership.prepared import PreparedAudit, trains
from ragwitness.membership.prior_queries import SENT, SENT_BEFORE, Disclosed
from ragwitness.membership.results.assumptions import SetLikeness
from ragwitness.membership.results.audit import RESULT_TYPE
from ragwitness.membership.run import (
    APART,
    LOOKS,
    SAME,
    Effort,
    Statistic,
    conclude,
    drop_duplicate_questions,
    trained,
)
from ragwitness.membership.shadow import Shadow, ShadowConfig, build_shadow
from ragwitness.report import formatting as fmt
from ragwitness.runner.budget import Use
from ragwitness.runner.hash_chain import dense
from ragwitness.runner.score_store import decode_outcome, outcome_row, read_scores
from ragwitness.runner.worker import Outcome, probe_of, replay

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun

_STAGES = {"known outside": "known_out", "known inside": "known_in", "documents": "documents"}
"""Which part of the order the documents of a stage are."""

_ROW = {
    "stage",
    "document",
    *outcome_row(Outcome(Document("", ""), Score(None), 0, 0)),
}

_LOOKS = re.compile(re.escape(LOOKS.partition("{")[0]) + "([0-9]{1,3})")
_SIMULATED = ("found", "low", "high", "inside", "source")
_SHADOW = re.compile(r"summary\.settings\.(shadow .*|audit classifier|auxiliary documents)")


# The seal.


def subject_of(order: PreparedAudit) -> SealSubject:
    """Return the commitment of an audit before its first query.

    Raises:
        InputError: The address of the target holds a key, the configuration cannot be written
            down, or there are too few documents.
    """
    stages, documents_by_part = order.stages(), order.parts()
    # The number of queries at a time decides no answer, so it is no part of the commitment.
    settings = replace(order, plan=replace(order.plan, in_flight=1)).stored()
    comparison = PlanLikeness.of(order.plan, stages.reference, order.config)
    documents = [(name, document) for name, row in documents_by_part.items() for document in row]
    texts = tuple(SealedText(name, d.id, d.text, d.member) for name, d in documents)
    units = [(stage, d.id) for stage, row in stages.documents.items() for d in row]
    # Groups are sealed by number: a name may identify somebody.
    numbers: dict[str, int] = {}
    groups = [
        [name, d.id, numbers.setdefault(d.group, len(numbers))]
        for name, d in documents
        if d.group is not None
    ]
    settings |= {"groups": groups} if groups else {}
    digest = hashlib.sha256(dense(sorted(d.text for d in order.plan.documents))).digest()
    return SealSubject(
        "audit",
        settings | {"likeness": asdict(comparison)},
        texts,
        units,
        looks=1,
        series=order.target.encode() + digest,
    )


def rows_of(run: SealedRun) -> list[dict[str, Any]]:
    """Return the outcome of every unit, in the order of the audit.

    Raises:
        InputError: The run is not finished.
    """
    scores = read_scores(run.folder / FINISHED)
    rows = []
    try:
        for line in lines_of(run.folder / SCORES):
            row = json.loads(line)
            unit = {"stage": row["stage"], "document": row["document"]}
            rows.append(unit | outcome_row(scores[row["unit"]]))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{run.folder / SCORES} is missing or malformed: the audit is not finished.",
            "Issue the command that made the run again: it resumes.",
        ) from error
    return rows


# Reading a pack, with stand-ins for hidden texts.


@dataclass(frozen=True)
class _Recorded:
    """An audit out of a pack.

    Attributes:
        order: With a stand-in for every text that is hidden.
        stages: Documents by stage.
        audit: The method.
        outcomes: By stage, as the pack has them.
        whole: Whether every text is shown.
        replies: The answers that are shown.
        seen: Comparison of the texts, as it was sealed.
    """

    order: PreparedAudit
    stages: Stages
    audit: Audit
    outcomes: Mapping[str, Sequence[Outcome]]
    whole: bool
    replies: Replies
    seen: PlanLikeness


def _recorded(case: PackCase) -> _Recorded:
    if "audit" not in case.kept:
        try:
            case.kept["audit"] = _read(case)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise refuse("settings", f"The settings cannot be read: {error!r}.") from error
        except (MissingExtraError, ModelError) as error:
            raise NotCheckedError(
                f"the scores and verdicts need a model that is not here: {error}", needed=True
            ) from error
    recorded: _Recorded = case.kept["audit"]
    return recorded


def _read(case: PackCase) -> _Recorded:
    pack, settings = case.pack, dict(case.pack.seal.settings)
    likeness = settings.pop("likeness")
    # A method that left since, or another package's, is no lie of the signer.
    if settings["method"].partition(":")[0] not in AUDITS.names():
        raise NotCheckedError(
            f"the method {settings['method'][:40]!r} is not in this version: verify with the one"
            " that sealed it",
            needed=True,
        )
    groups = {
        (row_documents, name): str(group)
        for row_documents, name, group in settings.pop("groups", ())
    }
    reference, known_in = (
        row and SetLikeness(**{**row, "differences": tuple(row["differences"])})
        for row in (likeness["reference"], likeness["known_in"])
    )
    comparison = PlanLikeness(reference, known_in, tuple(likeness.get("odd", ())))
    # 1. The order, as it was sealed.
    documents_by_part: dict[str, list[Document]] = {
        name: [] for name in (*_STAGES.values(), "auxiliary")
    }
    for text in pack.texts:
        # No two hidden texts have the same stand-in.
        content = f"hidden {text.commitment}" if text.text is None else text.text
        group = groups.get((text.part, text.id))
        documents_by_part[text.part].append(Document(text.id, content, text.member, group))
    order = PreparedAudit.from_stored(settings, documents_by_part)
    if "code" not in case.kept:  # other code may know other settings
        again = json.loads(json.dumps(order.stored()))
        if location := next(differences(again, settings), None):
            raise refuse("settings.unread", f"The sealed setting {location} is not read.")
    _refuse_idle(order)
    # 2. The stages: from the texts if all are shown, else from the sealed units.
    complete = not pack.hidden
    stages = order.stages() if complete else _stages(order, pack.rows)
    outcomes: dict[str, list[Outcome]] = {stage: [] for stage in stages.documents}
    documents = {stage: iter(row_documents) for stage, row_documents in stages.documents.items()}
    for row in pack.rows:
        if row.keys() - {"bets"} != _ROW:
            raise refuse("rows.form", "A row of the outcomes lacks a field or has another.")
        document = next(documents[row["stage"]], None)
        if document is None or document.id != row["document"]:
            raise refuse("units.order", f"{row['document']!r} is not asked about in this place.")
        outcomes[row["stage"]].append(decode_outcome(row, document))
    if any(next(rest, None) is not None for rest in documents.values()):
        raise refuse("units.order", "A document was to be asked about, and no row is about it.")
    # 3. The method, as the target's answers allowed it.
    audit, _ = order.fitted(pack.manifest.chain.alternatives)
    return _Recorded(order, stages, audit, outcomes, complete, Replies(case.exchanges), comparison)


def _refuse_idle(order: PreparedAudit) -> None:
    """Refuse sealed settings of a shadow system that is never built, as the command does."""
    plan, usual = order.plan, ShadowConfig()
    if trains(order.method, order.config):
        return
    learning = replace(plan.shadow, seed=usual.seed) != usual or plan.automl
    if learning or (plan.known_out and (plan.auxiliary or plan.shadow.seed != usual.seed)):
        raise refuse("settings.unread", f"{order.method} reads no setting of a shadow system.")


def _stages(order: PreparedAudit, rows: Sequence[Mapping[str, Any]]) -> Stages:
    """Return the stages of an order whose texts are hidden: copies are not known as such."""
    plan = order.plan
    documents: dict[str, tuple[Document, ...]] = dict.fromkeys(_STAGES, ())
    for stage in dict.fromkeys(row["stage"] for row in rows):
        row_documents: Sequence[Document] = getattr(plan, _STAGES.get(stage, "auxiliary"))
        if stage in SHADOW_STAGES or (stage == "known outside" and not row_documents):
            row_documents = plan.auxiliary or auxiliary_of(plan)
        # In the order of the part, as far as the rows keep it; else by id.
        in_order = iter(row_documents if stage not in SHADOW_STAGES else ())
        by_id = {document.id: document for document in row_documents}
        picked = []
        for name in (row["document"] for row in rows if row["stage"] == stage):
            document = next((d for d in in_order if d.id == name), None) or by_id.get(name)
            if document is None:
                raise refuse("units.order", f"{name!r} is no sealed document.")
            picked.append(document)
        documents[stage] = tuple(picked)
    known_out = documents["known outside"]
    reference = choose_reference(
        known_out if plan.known_out else (), bool(plan.auxiliary), known_out
    )
    return Stages(documents, reference)


# The recomputation.


def _check_likeness(case: PackCase) -> str:
    """The comparison of texts, which was sealed before the first answer."""
    it = _recorded(case)
    if not it.whole:
        raise NotCheckedError(
            "whether the documents that calibrate are like those in question was sealed, and not"
            " recomputed: their texts are hidden",
            needed=True,
        )
    recomputed = PlanLikeness.of(it.order.plan, it.stages.reference, it.order.config)
    if field := next(differences(asdict(recomputed), asdict(it.seen)), None):
        raise refuse("likeness", f"The texts compare otherwise than was sealed, at {field}.")
    return "the texts compare as was sealed"


def _check_counts(case: PackCase) -> str:
    """As many answers as questions, and none about a document that has no score."""
    it = _recorded(case)
    answered = Counter(
        (answer.asked[1], answer.asked[2])
        for answer in case.pack.answers
        if answer.asked[3] == "answer"
    )
    queries: Counter[tuple[str, str]] = Counter()
    for stage, outcomes in it.outcomes.items():
        for outcome in outcomes:
            queries[stage, outcome.document.id] += outcome.queries
    if extra := next((pair for pair, n in answered.items() if n > queries[pair]), None):
        raise refuse("counts", f"{extra[1]!r} has more answers than questions.")
    summary = case.pack.result["summary"]
    target, spent = summary["target"], summary["spent"]
    names = {item.asked[0] for item in case.pack.answers if item.asked[1] not in SHADOW_STAGES}
    if not names <= {target}:
        raise refuse("counts.target", f"Not every answer is of {target!r}.")
    check_spent(case, spent, target, it.order.budget)
    capped = [item for outcomes in it.outcomes.values() for item in outcomes if item.capped]
    if capped and spent["stopped_by"] is None:
        raise refuse("counts.cap", "Rows were stopped by a cap, and the result names none.")
    if scored := next((item for item in capped if item.score.value is not None), None):
        raise refuse("counts.cap", f"A cap stopped {scored.document.id!r}, which has a score.")
    total = fmt.count(queries.total())
    return f"{total} questions about {fmt.count(len(queries))} documents, calibration included"


def _check_scores(case: PackCase) -> str:
    """Every score again, from the answers."""
    it = _recorded(case)
    by_other_texts = getattr(it.audit, "elsewhere", None) is not None
    total = sum(map(len, it.outcomes.values()))
    recomputed: dict[tuple[str, int], Outcome] = {}
    visible = {(text.part, text.id) for text in case.pack.texts if text.text is not None}
    for stage, outcomes in it.outcomes.items():
        for number, outcome in enumerate(outcomes):
            section = _STAGES.get(stage, "auxiliary")
            of_package = section == "auxiliary" and not it.order.plan.auxiliary
            # The windows of a document follow from all texts, too.
            of_set = by_other_texts or of_package or "windows" in outcome.score.details
            if not it.whole and (of_set or (section, outcome.document.id) not in visible):
                continue
            recomputed[stage, number] = _replayed(it, stage, outcome)
            case.progress("scores", len(recomputed), total)
    case.kept["replayed"] = recomputed
    for (stage, number), again in recomputed.items():
        outcome = it.outcomes[stage][number]
        recomputed_row, sealed = outcome_row(again), outcome_row(outcome)
        # Words are shown with all texts, or not at all.
        if not it.whole or not sealed["evidence"]:
            recomputed_row, sealed = without_words(recomputed_row), without_words(sealed)
        if field := next(differences(recomputed_row, sealed), None):
            raise refuse(
                "scores",
                f"{outcome.document.id!r}: the answers give another {field} than the pack says.",
            )
    if hidden := total - len(recomputed):
        raise NotCheckedError(
            f"the scores of {fmt.count(hidden)} of {fmt.count(total)} documents were not"
            " recomputed from answers: texts are hidden"
            + ("; those of the others agree" if recomputed else ""),
            needed=True,
        )
    return f"{fmt.count(total)} scores recomputed from the answers"


def _replayed(it: _Recorded, stage: str, sealed: Outcome) -> Outcome:
    document = sealed.document
    end, queries, _ = replay(
        probe_of(it.audit, document), partial(it.replies.get, stage, document.id)
    )
    if end is not None:
        return replace(sealed, score=end.value, queries=queries)
    if not sealed.capped:
        raise refuse(
            "scores.unanswered",
            f"A question about {document.id!r} ({stage}) has no answer in the pack.",
        )
    return sealed  # a cap refused this question: there is nothing to recompute


def _check_verdicts(case: PackCase) -> str:
    """Calibration, p-values and verdicts again, from the scores; then the whole result."""
    it = _recorded(case)
    stored = case.pack.result
    if stored.get("kind") != "audit":
        raise refuse("result.form", "result.json is no result of an audit.")
    RESULT_TYPE.opened(stored)  # every field is there, and of its type
    # 1. Recomputed scores, and sealed ones where texts are hidden.
    again: Mapping[tuple[str, int], Outcome] = case.kept.get("replayed", {})
    outcomes: Mapping[str, Sequence[Outcome]] = {
        stage: [again.get((stage, number), outcome) for number, outcome in enumerate(section)]
        for stage, section in it.outcomes.items()
    }
    # 2. The ranked statistic, and the verdicts.
    summary, documents = stored["summary"], stored["documents"]
    spent, warnings = summary["spent"], summary["warnings"]
    reasons = {row["id"]: row.get("reason") or "" for row in documents}
    if not it.whole and any(r.startswith(SAME.partition("{")[0]) for r in reasons.values()):
        raise NotCheckedError("which texts share their questions is hidden", needed=True)
    effort = Effort(
        summary["started"],
        summary["seconds"],
        Use(spent["queries"], spent["prompt_tokens"], spent["completion_tokens"]),
        it.order.budget,
        spent["stopped_by"],
    )
    # No answer shows when it was asked, how often it was judged, or what was sent before. These
    # remarks only take verdicts back, so the result's own word is taken.
    looks = next((int(form[1]) for form in map(_LOOKS.match, warnings) if form), 0)
    start = SENT_BEFORE.partition("{")[0]
    before = Disclosed(
        next((line for line in warnings if line.startswith(start)), ""),
        tuple(name for name, reason in reasons.items() if reason.startswith(SENT)),
    )
    distinct = drop_duplicate_questions(it.audit, outcomes)
    outcomes, guess = _sealed_guesses(it.order, distinct, summary.get("odds"))
    result = conclude(
        it.order.plan,
        it.audit,
        summary["target"],
        it.stages,
        _statistic(it, outcomes),
        outcomes,
        effort,
        it.seen,
        APART in warnings,
        looks,
        before,
        guess,
    )
    if it.order.why:
        result = replace(result, settings={"chosen": it.order.why} | dict(result.settings))
    result = replace(result, ragwitness=summary["version"])
    # 3. Compared, place by place.
    recomputed, sealed = (
        json.loads(json.dumps(row)) for row in (RESULT_TYPE.stored(result), stored)
    )
    for row in (recomputed, sealed):
        lines = row["summary"]["warnings"]
        row["summary"]["warnings"] = [line for line in lines if not KEPT.match(line)]
        # Version 0.3.0 also simulated the power; no report of this version shows these figures.
        for name in _SIMULATED:
            row["summary"]["calibration"].get("power", {}).pop(name, None)
    if not it.whole:
        recomputed, sealed = without_words(recomputed), without_words(sealed)
    loose = {f"summary.{name}" for name in TAKEN}
    same_result(case, "verdicts", recomputed, sealed, loose, None if it.whole else _SHADOW)
    counts = {name: n for name, n in recomputed["summary"]["counts"].items() if name != "documents"}
    listed = ", ".join(f"{fmt.count(n)} {name}" for name, n in counts.items())
    total = fmt.count(len(recomputed["documents"]))
    # No answer shows what a reference model guesses, so a signer may claim any guess.
    word = "; the guesses of reference models are the signer's word" if guess else ""
    return f"{total} verdicts recomputed ({listed}), as the result says{word}"


def _sealed_guesses(
    order: PreparedAudit, outcomes: Mapping[str, Sequence[Outcome]], odds: Mapping[str, Any] | None
) -> tuple[Mapping[str, Sequence[Outcome]], Guesser | None]:
    """Return the outcomes with numbered bets, and the guesses of a result for them.

    The guesses are the auditor's word: no answer of the target shows them.
    """
    if not order.plan.references:
        return outcomes, None
    guesses: dict[Bet, tuple[float, ...]] = {}
    rows = iter(odds["guesses"] if odds else ())

    def numbered(bet: Bet) -> Bet:
        if not bet.words:
            return bet
        nats = next(rows, None)
        if nats is None or len(nats) != len(bet.words) or min(nats) < 0:
            raise refuse("odds", "The guesses of the reference models do not fit the won bets.")
        # Hidden words are all alike, and their bets are not.
        bet = replace(bet, question=str(len(guesses)))
        guesses[bet] = tuple(nats)
        return bet

    renumbered = {
        stage: [
            replace(o, score=replace(o.score, bets=tuple(map(numbered, o.score.bets))))
            for o in outcomes[stage]
        ]
        for stage in ("known outside", "documents")
    }
    return {**outcomes, **renumbered}, lambda _: (tuple(odds["models"]) if odds else (), guesses)


def _statistic(it: _Recorded, outcomes: Mapping[str, Sequence[Outcome]]) -> Statistic:
    if not learns(it.audit):
        return Statistic()
    shadow: Shadow | None = None
    if it.whole:
        shadow = build_shadow(it.stages.auxiliary, it.order.plan.shadow)
    inside, outside = (outcomes[stage] for stage in SHADOW_STAGES)
    # Without its texts the shadow system cannot be built; its recorded scores train the classifier.
    return trained(it.audit, shadow, inside, outside, automl=it.order.plan.automl)  # type: ignore[arg-type]


TASK = PackTask(
    rows_of,
    (
        VerifierStep("likeness", _check_likeness),
        VerifierStep("counts", _check_counts),
        VerifierStep("scores", _check_scores),
        VerifierStep("verdicts", _check_verdicts),
    ),
    "every score, p-value and verdict was recomputed",
    frozenset("target method config proxy plan budget why likeness groups".split()),
)
