"""Honest evaluation of many audits on one corpus."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from ragwitness.core.errors import InputError
from ragwitness.core.run_files import ANSWERS
from ragwitness.core.types import Answer, Audit, Capability, Document, Query
from ragwitness.membership.measure import (
    CorpusSplit,
    DecisionRule,
    blind_controls,
    divide,
    measure,
    near_duplicates,
    rate_of,
)
from ragwitness.membership.method_registry import AUDITS, build_audit, configure
from ragwitness.membership.plan import AuditPlan, among, learns
from ragwitness.membership.results.evaluation import Battery, Cost, Measured
from ragwitness.membership.run import Statistic, described, learn
from ragwitness.membership.shadow import ShadowConfig
from ragwitness.models.base import LanguageModel
from ragwitness.rag.config import RagConfig
from ragwitness.rag.target import LabTarget
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Progress, Worker
from ragwitness.stats.rates import Rate


@dataclass(frozen=True, slots=True)
class BatteryPlan:
    """Audits, sizes and systems of an evaluation.

    Attributes:
        audits: Registered names.
        members: Audited documents inside.
        non_members: Audited documents outside.
        calibration: Calibration documents, inside and outside each.
        seed: Of the split, and of every order.
        rag: The system under audit.
        shadow: The shadow system's settings; None takes the target's.
        options: Per audit: fields of its configuration.
        thresholds: Per audit: threshold of the decision, where it is given beforehand.
        control: Whether every audit also runs with retrieval switched off.
        in_flight: Documents probed at the same time.
    """

    stored_name: ClassVar[str] = "BatteryPlan"

    audits: tuple[str, ...]
    members: int = 100
    non_members: int = 100
    calibration: int = 100
    seed: int = 0
    rag: RagConfig = field(default_factory=RagConfig)
    shadow: RagConfig | None = None
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    control: bool = True
    benign: int = field(default=100, init=False)  # left: it still names the run folders of 0.3.0
    in_flight: int = 4

    def __post_init__(self) -> None:
        """Refuse what cannot be evaluated."""
        if not self.audits:
            raise InputError("There is no audit to evaluate.", f"Known: {', '.join(AUDITS)}.")
        for name in self.audits:
            configure(name, self.options.get(name))
        if unknown := sorted(set(self.options) - set(self.audits)):
            raise InputError(
                f"There are options for {unknown[0]!r}, which is not evaluated.",
                f"Evaluated: {', '.join(self.audits)}.",
            )
        if min(self.members, self.non_members, self.calibration) < 2:
            raise InputError("Every part of the split needs at least two documents.")


# Reading the outcomes of one audit: variants of its score, named outcomes, costs.

_VARIANT = "score/"

Read = Callable[[Sequence[Outcome]], list[float | None]]
"""Statistic of every outcome, None where there is none."""


@dataclass
class AnswersSeen:
    """Collects tokens and questions of every answer; retrieval is looked up after the timing."""

    target: LabTarget
    tokens: int = 0
    counted: int = 0
    asked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, document: Document, query: Query, answer: Answer) -> None:
        """Note one answer."""
        if answer.prompt_tokens is not None and answer.completion_tokens is not None:
            self.tokens += answer.prompt_tokens + answer.completion_tokens
            self.counted += 1
        self.asked[document.id].append(query.prompt)

    def retrieved(self, documents: Sequence[Document]) -> dict[str, bool]:
        """Whether any of its queries retrieved each document."""
        system = self.target.system
        indexed = {passage.document for passage in system.passages}
        # A model may rewrite a query first, so documents outside the index are not looked up.
        return {
            document.id: document.id in indexed
            and any(
                system.passages[hit.index].document == document.id
                for prompt in self.asked[document.id]
                for hit in system.retrieve(prompt)
            )
            for document in documents
        }


def _variants(statistic: Statistic, outcomes: Sequence[Outcome]) -> dict[str, Read]:
    """The audit's statistic under "", and each further score of the same answers."""
    # Methods put further scores of the same answers among their details.
    keys = {key for o in outcomes for key in o.score.details if key.startswith(_VARIANT)}

    def reader(key: str) -> Read:
        # A variant may score documents that the audit itself does not: a published rule counts
        # silence.
        return lambda outcomes: [o.score.details.get(key) for o in outcomes]

    values = statistic.values(outcomes)
    return {"": statistic.values} | {
        "/" + key.removeprefix(_VARIANT): reader(key)
        for key in sorted(keys)
        if reader(key)(outcomes) != values
    }


def _by_id(outcomes: Sequence[Outcome], read: Read) -> dict[str, float]:
    """Return the statistics of scored documents by their ids."""
    values = read(outcomes)
    return {o.document.id: v for o, v in zip(outcomes, values, strict=True) if v is not None}


def _cost_of(outcomes: Sequence[Outcome], seen: AnswersSeen, seconds: float) -> Cost:
    """Return the average cost of one document."""
    documents = max(1, len(outcomes))
    queries = sum(outcome.queries for outcome in outcomes)
    # Tokens are known if every answer counts them; the time, if no answer is from an earlier start.
    tokens = seen.tokens / documents if seen.counted == queries > 0 else None
    earlier = sum(outcome.sent for outcome in outcomes) < queries
    return Cost(queries / documents, tokens, None if earlier else seconds / documents)


def _main_reason(outcomes: Sequence[Outcome]) -> str:
    """Return the most frequent reason for no score."""
    reasons = Counter(o.score.reason or "no score" for o in outcomes if o.score.value is None)
    return reasons.most_common(1)[0][0] if reasons else "too few documents of one kind"


def _named_outcomes(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Mean per document of every named outcome, and the share of each reason for no score."""
    # Sums over all documents, unscorable ones by reason.
    total: dict[str, float] = defaultdict(float)
    for outcome in outcomes:
        for key, value in outcome.score.details.items():
            if not key.startswith(_VARIANT):
                total[key] += value
        if outcome.score.value is None:
            total[f"unscorable: {outcome.score.reason}"] += 1
    return {key: value / max(1, len(outcomes)) for key, value in sorted(total.items())}


# Evaluate audits on one split of one corpus, with controls that can show them wrong.

_FEWEST_SHADOW = 40  # documents; with fewer the shadow uses the generated corpus


@dataclass
class _Bench:
    """One corpus, one target, one control target: everything the audits share."""

    plan: BatteryPlan
    split: CorpusSplit
    target: LabTarget
    bare: LabTarget
    proxy: LanguageModel
    journal: ResponseStore | None
    progress: Progress | None
    near: frozenset[str]
    auxiliary: tuple[Document, ...]
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def audited(self) -> list[Document]:
        """The audited documents in one random order."""
        # The order must not tell members from others.
        documents = [*self.split.members, *self.split.non_members]
        random.Random(self.plan.seed).shuffle(documents)
        return documents

    async def learn(self, name: str, audit: Audit) -> Statistic:
        """Return the statistic of an audit, trained on a shadow system where it learns."""
        if not learns(audit):
            return Statistic()
        # 1. The shadow's documents: given ones, else the rest of the corpus, else the package's.
        shadow, source = self.auxiliary or self.split.shadow, "given"
        if not self.auxiliary:
            source = "rest of the corpus"
        if len(shadow) < _FEWEST_SHADOW:
            from ragwitness.text.sample import load_sample

            shadow, source = tuple(load_sample()), "generated corpus of the package"
        split = self.split
        taken = {d.text for d in (*split.indexed, *split.non_members, *split.known_out)}
        shadow = tuple(document for document in shadow if document.text not in taken)
        self.settings["shadow documents"] = f"{len(shadow)}, {source}"
        # 2. A classifier of the shadow's answers.
        rag = self.plan.shadow or replace(self.plan.rag, retrieve=True)
        plan = AuditPlan(
            documents=tuple(self.audited),
            shadow=ShadowConfig(rag=rag, seed=self.plan.seed),
            in_flight=self.plan.in_flight,
        )
        statistic = await learn(plan, audit, shadow, self.journal, self.progress)
        if statistic.classifier is not None:
            self.settings[f"{name}: audit classifier"] = statistic.classifier.name
        return statistic


async def run_battery(
    plan: BatteryPlan,
    corpus: Sequence[Document],
    proxy: LanguageModel,
    *,
    auxiliary: Sequence[Document] = (),
    build: Callable[[Sequence[Document], RagConfig], LabTarget],
    run: Path | None = None,
    progress: Progress | None = None,
) -> Battery:
    """Split the corpus, index its half, run every audit and every control.

    Args:
        plan: Audits and sizes.
        corpus: Documents of one source.
        proxy: The auditor's own model.
        auxiliary: Documents for the shadow system; the corpus' own rest where empty.
        build: Makes the system under audit.
        run: Folder of the response store; None keeps nothing.
        progress: Called after each document.

    Raises:
        InputError: The corpus is too small.
    """
    clock = time.monotonic()
    # 1. Divide, index, and measure the controls that ask nobody.
    audits = [
        build_audit(name, proxy, configure(name, plan.options.get(name))) for name in plan.audits
    ]
    split = divide(
        corpus,
        members=plan.members,
        non_members=plan.non_members,
        calibration=plan.calibration,
        seed=plan.seed,
        # Only an audit that learns needs documents of a shadow system, if none are given.
        shadow=not auxiliary and any(map(learns, audits)),
    )
    target = build(split.indexed, plan.rag)
    bare = build(split.indexed, replace(plan.rag, retrieve=False))
    if any(Capability.CONTEXTS in audit.requires for audit in audits):
        target, bare = target.for_owner(), bare.for_owner()
    near, likeness = near_duplicates(split)
    measured: list[Measured] = []
    controls = blind_controls(split)
    skipped: dict[str, str] = {}
    # 2. Every audit, each with its own controls.
    with ResponseStore(run / ANSWERS) if run else nullcontext() as journal:
        bench = _Bench(plan, split, target, bare, proxy, journal, progress, near, tuple(auxiliary))
        for name, audit in zip(plan.audits, audits, strict=True):
            results, own_controls, reason = await _evaluate(bench, name, audit)
            measured += results
            controls |= own_controls
            if not results:
                skipped[name] = f"too few of its documents could be scored ({reason})"
    return Battery(
        audits=tuple(measured),
        controls=controls,
        skipped=skipped,
        sizes={
            "indexed": len(split.indexed),
            "members": len(split.members),
            "non-members": len(split.non_members),
            "calibration inside": len(split.known_in),
            "calibration outside": len(split.known_out),
            "shadow": len(split.shadow),
        },
        likeness=likeness,
        settings={
            "proxy": proxy.name,
            "seed": str(plan.seed),
            "documents in flight": str(plan.in_flight),
            **{key: str(value) for key, value in target.system.describe().items()},
            **bench.settings,
        },
        seconds=time.monotonic() - clock,
    )


def _decision(
    plan: BatteryPlan, audit: Audit, statistic: Statistic, label: str
) -> DecisionRule | None:
    """Return the rule of a decision; None if the calibration documents choose the threshold."""
    if (threshold_given := plan.thresholds.get(label)) is not None:
        return DecisionRule(threshold_given, f"threshold {threshold_given:g}, given")
    # A variant of the score has another scale than the method's own decision.
    if "/" in label:
        return None
    if statistic.classifier:
        return DecisionRule(0.0, "classifier at one half")
    threshold: float | None = getattr(audit, "threshold", None)
    if threshold is None:
        return None
    return DecisionRule(threshold, f"threshold {threshold:g}, the method's own")


async def _evaluate(
    bench: _Bench, name: str, audit: Audit
) -> tuple[list[Measured], dict[str, Rate], str]:
    """Run one audit: one entry per variant of its score, its controls, why scores are missing."""
    plan, split, audited = bench.plan, bench.split, bench.audited
    audit = among(audit, (*audited, *split.known_out, *split.known_in))
    # 1. Train an audit that learns, on its shadow system.
    statistic = await bench.learn(name, audit)
    bench.settings |= {f"{name}: {key}": value for key, value in described(audit).items()}
    answers = AnswersSeen(bench.target)
    worker = Worker(bench.target, bench.journal, plan.in_flight, answers)

    async def ask(documents: Sequence[Document], stage: str) -> list[Outcome]:
        return await worker.run(audit, documents, f"{name}, {stage}", bench.progress)

    # 2. Calibrate outside and inside, then ask about the audited documents; only these are timed.
    outside = await ask(split.known_out, "calibration outside")
    inside = await ask(split.known_in, "calibration inside")
    answers.tokens, answers.counted = 0, 0
    clock = time.monotonic()
    outcomes = await ask(audited, "audited")
    cost = _cost_of(outcomes, answers, time.monotonic() - clock)
    retrieved = answers.retrieved(split.members)
    # 3. The same without retrieval: members found then were never found by the index.
    off: list[Outcome] = []
    if plan.control:
        control = Worker(bench.bare, bench.journal, plan.in_flight)
        off = await control.run(audit, audited, f"{name}, retrieval off", bench.progress)
    # 4. Measure the audit and every further score of the same answers.
    results: list[Measured] = []
    controls: dict[str, Rate] = {}
    truth = {document.id: bool(document.member) for document in audited}
    for variant, read in _variants(statistic, outcomes).items():
        label = name + variant
        scores = _by_id(outcomes, read)
        measured = measure(
            label,
            scores,
            truth,
            known_in=list(_by_id(inside, read).values()),
            known_out=list(_by_id(outside, read).values()),
            retrieved=retrieved,
            outcomes=_named_outcomes(outcomes),
            cost=cost,
            decision=_decision(plan, audit, statistic, label),
        )
        if measured is None:
            continue
        results.append(measured)
        members = [value for key, value in scores.items() if truth[key]]
        twins = [value for key, value in scores.items() if key in bench.near]
        controls[f"near-duplicates: {label}"] = rate_of(members, twins)
        if plan.control:
            bare = _by_id(off, read)
            sides = ([v for key, v in bare.items() if truth[key] is side] for side in (True, False))
            controls[f"retrieval off: {label}"] = rate_of(*sides)
    return results, controls, _main_reason(outcomes)
