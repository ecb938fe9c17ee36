"""A membership audit as evidence: what it commits to, and how its verdicts are recomputed.

Audits are generators without I/O, so their scores are computed again from the answers alone. Where
texts are hidden, the scores stand as they are said, and everything behind them is recomputed: the
classifier, the calibration, each p-value and each verdict.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ragwitness.attest.verdict import NotCheckedError, VerifierStep, refuse
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
from ragwitness.membership.methods.method_registry import AUDITS
from ragwitness.membership.plan import SHADOW_STAGES, Stages, auxiliary_of, choose_reference, learns
from ragwitness.membership.prepared import Order, fitted, order_from, parts_of, stored_settings
from ragwitness.membership.prior_queries import SENT, SENT_BEFORE, Disclosed
from ragwitness.membership.results.assumptions import SetLikeness
from ragwitness.membership.results.audit import RESULT_TYPE
from ragwitness.membership.run import APART, LOOKS, SAME, Effort, Statistic, conclude, trained
from ragwitness.membership.shadow import Shadow, build_shadow
from ragwitness.report import formatting as fmt
from ragwitness.runner.budget import Use
from ragwitness.runner.hash_chain import dense
from ragwitness.runner.score_store import (
    StoredScore,
    outcome_row,
    read_scores,
    stored_score,
)
from ragwitness.runner.worker import Done, Outcome, advance, probe_of

if TYPE_CHECKING:
    from ragwitness.evidence.subject import SealedRun

_STAGES = {"known outside": "known_out", "known inside": "known_in", "documents": "documents"}
"""Which part of the order the documents of a stage are."""

_ROW = {
    "stage",
    "document",
    *outcome_row(StoredScore(Score(None), 0, 0, capped=False, passing=False)),
}

_LOOKS = re.compile(re.escape(LOOKS.partition("{")[0]) + "([0-9]{1,3})")
_SHADOW = re.compile(r"summary\.settings\.(shadow .*|audit classifier|auxiliary documents)")


# Sealed.


def subject_of(order: Order) -> SealSubject:
    """Return what an audit commits to before its first query.

    Raises:
        InputError: The address of the target holds a key, the configuration cannot be written
            down, or there are too few documents.
    """
    stages = order.stages()
    # How many at a time is no part of it: it decides no answer.
    settings = stored_settings(replace(order, plan=replace(order.plan, in_flight=1)))
    seen = PlanLikeness.of(order.plan, stages.reference, order.config)
    texts = tuple(
        SealedText(part, one.id, one.text, one.member)
        for part, documents in parts_of(order).items()
        for one in documents
    )
    units = [(stage, one.id) for stage, part in stages.documents.items() for one in part]
    # Which documents share a group, by number: its name may be anybody's.
    numbers: dict[str, int] = {}
    groups = [
        [part, one.id, numbers.setdefault(one.group, len(numbers))]
        for part, documents in parts_of(order).items()
        for one in documents
        if one.group is not None
    ]
    settings |= {"groups": groups} if groups else {}
    asked = hashlib.sha256(dense(sorted(one.text for one in order.plan.documents))).digest()
    return SealSubject(
        "audit",
        settings | {"likeness": asdict(seen)},
        texts,
        units,
        looks=1,
        series=order.target.encode() + asked,
    )


def rows_of(run: SealedRun) -> list[dict[str, Any]]:
    """Return the outcome of every unit, in the order of the audit.

    Raises:
        InputError: The run is not finished.
    """
    kept = read_scores(run.folder / FINISHED)
    found = []
    try:
        for line in lines_of(run.folder / SCORES):
            row = json.loads(line)
            unit = {"stage": row["stage"], "document": row["document"]}
            found.append(unit | outcome_row(kept[row["unit"]]))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{run.folder / SCORES} is missing or malformed: the audit is not finished.",
            "Issue the command that made the run again: it resumes.",
        ) from error
    return found


# Read again, with hidden texts in the shape of texts.


@dataclass(frozen=True)
class _Recorded:
    """An audit out of a pack.

    Attributes:
        order: With a stand-in for every text that is hidden.
        stages: What was asked about.
        audit: The method.
        found: What the pack says was found, by stage.
        whole: Whether every text is shown.
        replies: The answers that are shown.
        seen: What comparing the texts found, as it was sealed.
    """

    order: Order
    stages: Stages
    audit: Audit
    found: Mapping[str, Sequence[Outcome]]
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
    found: _Recorded = case.kept["audit"]
    return found


def _read(case: PackCase) -> _Recorded:
    pack, settings = case.pack, dict(case.pack.seal.settings)
    likeness = settings.pop("likeness")
    # A method that left since, or another package's, is no lie of whoever sealed the run.
    if settings["method"].partition(":")[0] not in AUDITS.names():
        raise NotCheckedError(
            f"the method {settings['method'][:40]!r} is not in this version: verify with the one"
            " that sealed it",
            needed=True,
        )
    groups = {(part, name): str(group) for part, name, group in settings.pop("groups", ())}
    reference, known_in = (_alike(likeness[name]) for name in ("reference", "known_in"))
    seen = PlanLikeness(reference, known_in, tuple(likeness.get("odd", ())))  # type: ignore[arg-type]
    # 1. The order, as it was sealed.
    parts: dict[str, list[Document]] = {
        name: [] for name in ("documents", "known_out", "known_in", "auxiliary")
    }
    for text in pack.texts:
        # No two hidden texts are alike here, whatever they are.
        shown = f"hidden {text.commitment}" if text.text is None else text.text
        parts[text.part].append(
            Document(text.id, shown, text.member, groups.get((text.part, text.id)))
        )
    order = order_from(settings, parts)
    # 2. What was asked about: from the texts where all are shown, else as the sealed units say.
    whole = not pack.hidden
    stages = order.stages() if whole else _stages(order, pack.rows)
    found: dict[str, list[Outcome]] = {stage: [] for stage in stages.documents}
    documents = {stage: iter(part) for stage, part in stages.documents.items()}
    for row in pack.rows:
        if row.keys() != _ROW:
            raise refuse("rows.form", "A row of what was found lacks a field or has another.")
        document = next(documents[row["stage"]], None)
        if document is None or document.id != row["document"]:
            raise refuse("units.order", f"{row['document']!r} is not asked about in this place.")
        found[row["stage"]].append(stored_score(row).of(document))
    if any(next(rest, None) is not None for rest in documents.values()):
        raise refuse("units.order", "A document was to be asked about, and no row is about it.")
    # 3. The method, as the target's answers allowed it.
    most = pack.manifest.chain.alternatives
    audit, _ = fitted(order.method, order.config, order.proxy, most, order.plan)
    return _Recorded(order, stages, audit, found, whole, Replies(case.exchanges), seen)


def _alike(stored: Mapping[str, Any] | None) -> SetLikeness | None:
    return (
        None
        if stored is None
        else SetLikeness(**{**stored, "differences": tuple(stored["differences"])})
    )


def _stages(order: Order, rows: Sequence[Mapping[str, Any]]) -> Stages:
    """Return the stages of an order whose texts are hidden: which are copies is not known here."""
    plan = order.plan
    documents: dict[str, tuple[Document, ...]] = {}
    for stage in dict.fromkeys(row["stage"] for row in rows):
        name = _STAGES.get(stage, "auxiliary")
        own: Sequence[Document] = getattr(plan, name)
        if stage in SHADOW_STAGES or (stage == "known outside" and not own):
            own = plan.auxiliary or auxiliary_of(plan)
        known = iter(own if stage not in SHADOW_STAGES else ())
        by_id = {one.id: one for one in own}
        picked = []
        for row in (row for row in rows if row["stage"] == stage):
            one = next((one for one in known if one.id == row["document"]), None)
            one = one or by_id.get(row["document"])
            if one is None:
                raise refuse("units.order", f"{row['document']!r} is no sealed document.")
            picked.append(one)
        documents[stage] = tuple(picked)
    for stage in _STAGES:
        documents.setdefault(stage, ())
    known_out = documents["known outside"]
    reference = choose_reference(
        known_out if plan.known_out else (), bool(plan.auxiliary), known_out
    )
    return Stages(documents, reference)


# Recomputed.


def _likeness(case: PackCase) -> str:
    """The comparison of texts, which was sealed before the first answer."""
    it = _recorded(case)
    if not it.whole:
        raise NotCheckedError(
            "whether the documents that calibrate are like those in question was sealed, and not"
            " recomputed: their texts are hidden",
            needed=True,
        )
    mine = PlanLikeness.of(it.order.plan, it.stages.reference, it.order.config)
    if bad := next(differences(asdict(mine), asdict(it.seen)), None):
        raise refuse("likeness", f"The texts compare otherwise than was sealed, at {bad}.")
    return "the texts compare as was sealed"


def _counts(case: PackCase) -> str:
    """As many answers as questions, and none about a document that has no score."""
    it = _recorded(case)
    rows: dict[tuple[str, str], int] = {}
    asked: dict[tuple[str, str], int] = {}
    for one in case.pack.answers:
        if one.asked[3] == "answer":
            place = (one.asked[1], one.asked[2])
            rows[place] = rows.get(place, 0) + 1
    for stage, outcomes in it.found.items():
        for outcome in outcomes:
            place = (stage, outcome.document.id)
            asked[place] = asked.get(place, 0) + outcome.queries
    for place, count in rows.items():
        if count > asked.get(place, 0):
            raise refuse("counts", f"{place[1]!r} has more answers than questions.")
    target = case.pack.result["summary"]["target"]
    names = {one.asked[0] for one in case.pack.answers if one.asked[1] not in SHADOW_STAGES}
    if not names <= {target}:
        raise refuse("counts.target", f"Not every answer is of {target!r}.")
    spent = case.pack.result["summary"]["spent"]
    check_spent(case, spent, target, it.order.budget)
    capped = [one for outcomes in it.found.values() for one in outcomes if one.capped]
    if capped and spent["stopped_by"] is None:
        raise refuse("counts.cap", "Rows were stopped by a cap, and the result names none.")
    if scored := next((one for one in capped if one.score.value is not None), None):
        raise refuse("counts.cap", f"A cap stopped {scored.document.id!r}, which has a score.")
    total = fmt.count(sum(asked.values()))
    return f"{total} questions about {fmt.count(len(asked))} documents, calibration included"


def _scores(case: PackCase) -> str:
    """Every score again, from the answers."""
    it = _recorded(case)
    own = getattr(it.audit, "elsewhere", None) is not None
    total = sum(map(len, it.found.values()))
    replayed: dict[tuple[str, int], Outcome] = {}
    shown = {(one.part, one.id) for one in case.pack.texts if one.text is not None}
    for stage, outcomes in it.found.items():
        for place, outcome in enumerate(outcomes):
            part = _STAGES.get(stage, "auxiliary")
            of_package = part == "auxiliary" and not it.order.plan.auxiliary
            # Which windows a document has follows from all texts, too.
            of_set = own or of_package or "windows" in outcome.score.details
            if not it.whole and (of_set or (part, outcome.document.id) not in shown):
                continue
            replayed[stage, place] = _replayed(it, stage, outcome)
            case.progress("scores", len(replayed), total)
    case.kept["replayed"] = replayed
    for (stage, place), again in replayed.items():
        said = it.found[stage][place]
        one, other = outcome_row(again), outcome_row(said)
        # Words are shown with all texts, or not at all.
        if not it.whole or not other["evidence"]:
            one, other = without_words(one), without_words(other)
        if bad := next(differences(one, other), None):
            raise refuse(
                "scores",
                f"{said.document.id!r}: the answers give another {bad} than the pack says.",
            )
    if len(replayed) < total:
        hidden = total - len(replayed)
        raise NotCheckedError(
            f"the scores of {fmt.count(hidden)} of {fmt.count(total)} documents were not"
            " recomputed from answers: texts are hidden"
            + ("; those of the others agree" if replayed else ""),
            needed=True,
        )
    return f"{fmt.count(total)} scores recomputed from the answers"


def _replayed(it: _Recorded, stage: str, said: Outcome) -> Outcome:
    document = said.document
    steps, answers, queries = probe_of(it.audit, document), None, 0
    while True:
        step = advance(steps, answers)
        if isinstance(step, Done):
            return replace(said, score=step.value, queries=queries)
        queries += len(step)
        answers = []
        for query in step:
            answer = it.replies.get(stage, document.id, query)
            if answer is None and said.capped:
                return said  # a cap refused this question: there is nothing to recompute
            if answer is None:
                raise refuse(
                    "scores.unanswered",
                    f"A question about {document.id!r} ({stage}) has no answer in the pack.",
                )
            answers.append(answer)


def _verdicts(case: PackCase) -> str:
    """Calibration, p-values and verdicts again, from the scores; then all that the result says."""
    it = _recorded(case)
    said = case.pack.result
    if said.get("kind") != "audit":
        raise refuse("result.form", "result.json is no result of an audit.")
    RESULT_TYPE.opened(said)  # every field is there, and of its type
    # 1. Scores as they were recomputed, and as they are said where they could not be.
    again: Mapping[tuple[str, int], Outcome] = case.kept.get("replayed", {})
    found = {
        stage: [again.get((stage, place), one) for place, one in enumerate(outcomes)]
        for stage, outcomes in it.found.items()
    }
    # 2. What is ranked, and the verdicts.
    statistic = _statistic(it, found)
    summary = said["summary"]
    reasons = [one.get("reason") or "" for one in said["documents"]]
    if not it.whole and any(one.startswith(SAME.partition("{")[0]) for one in reasons):
        raise NotCheckedError("which texts share their questions is hidden", needed=True)
    spent = summary["spent"]
    effort = Effort(
        summary["started"],
        summary["seconds"],
        Use(spent["queries"], spent["prompt_tokens"], spent["completion_tokens"]),
        it.order.budget,
        spent["stopped_by"],
    )
    # When it was asked, and how often judged, stands in no answer. To say so only takes verdicts
    # back.
    plan, apart = it.order.plan, APART in summary["warnings"]
    looked = filter(None, map(_LOOKS.match, summary["warnings"]))
    looks = next((int(one[1]) for one in looked), 0)
    its = (plan, it.audit, summary["target"], it.stages, statistic, found, effort)
    sent_told = (
        one for one in summary["warnings"] if one.startswith(SENT_BEFORE.partition("{")[0])
    )
    sent = tuple(one["id"] for one in said["documents"] if (one["reason"] or "").startswith(SENT))
    result = conclude(*its, it.seen, apart, looks, Disclosed(next(sent_told, ""), sent))
    if it.order.why:
        result = replace(result, settings={"chosen": it.order.why} | dict(result.settings))
    mine = json.loads(
        json.dumps(RESULT_TYPE.stored(replace(result, ragwitness=summary["version"])))
    )
    # 3. Compared, place by place.
    for one in (mine, said := json.loads(json.dumps(said))):
        warnings = one["summary"]["warnings"]
        one["summary"]["warnings"] = [line for line in warnings if not KEPT.match(line)]
    if not it.whole:
        mine, said = without_words(mine), without_words(said)
    loose = {f"summary.{name}" for name in TAKEN}
    same_result(case, "verdicts", mine, said, loose, None if it.whole else _SHADOW)
    counts = {name: n for name, n in mine["summary"]["counts"].items() if name != "documents"}
    told = ", ".join(f"{fmt.count(n)} {name}" for name, n in counts.items())
    return f"{fmt.count(len(mine['documents']))} verdicts recomputed ({told}), as the result says"


def _statistic(it: _Recorded, found: Mapping[str, Sequence[Outcome]]) -> Statistic:
    if not learns(it.audit):
        return Statistic()
    shadow: Shadow | None = None
    if it.whole:
        shadow = build_shadow(it.stages.auxiliary, it.order.plan.shadow)
    inside, outside = (found[stage] for stage in SHADOW_STAGES)
    # Without its texts the shadow system cannot be built; its recorded scores train the classifier.
    return trained(it.audit, shadow, inside, outside, automl=it.order.plan.automl)  # type: ignore[arg-type]


TASK = PackTask(
    rows_of,
    (
        VerifierStep("likeness", _likeness),
        VerifierStep("counts", _counts),
        VerifierStep("scores", _scores),
        VerifierStep("verdicts", _verdicts),
    ),
    "every score, p-value and verdict was recomputed",
)
