"""Privacy against usefulness: what stands in a private corpus's place, side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.comparison.result import CORRECTNESS, Compared, Comparison, Usefulness, WorstCase
from ragwitness.comparison.usefulness import (
    Correctness,
    JudgedAnswer,
    answer_lengths,
    measure_utility,
)
from ragwitness.comparison.variants import (
    JUDGED,
    ComparisonPlan,
    Judge,
    UsefulnessQuestion,
    Variant,
)
from ragwitness.core.run_files import ANSWERS, TRANSCRIPTS
from ragwitness.core.types import Document, Query, Target, left_out_of, notes_of
from ragwitness.leakage.attacks.base import Transcript, write_transcripts
from ragwitness.leakage.result import LeakResult
from ragwitness.leakage.run import FEW, AttackRun, ask_attacks, score_leaks
from ragwitness.leakage.score.table import LeakPlan, measure_leaks
from ragwitness.rag.lab import lab_target
from ragwitness.rag.target import LabTarget
from ragwitness.report.spending import spending
from ragwitness.runner.budget import OPTIONS
from ragwitness.runner.rate_limiter import Pace, RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Progress, Worker
from ragwitness.stats.evaluation import at_equal_length, mean_rate, paired_difference
from ragwitness.text.overlap import SubsequenceIndex, Vocabulary, shared_runs
from ragwitness.text.words import canonical_text

# What a comparison found, as one value for every report.


# Texts held against the records themselves: an upper bound of what any attack gets (A.5).


def worst_case(
    texts: Sequence[Document], plan: LeakPlan, originals: Mapping[str, str]
) -> WorstCase:
    """Measure texts as if each were an answer.

    Args:
        texts: What is indexed.
        plan: The records and secrets.
        originals: By id: published counts hold a text against its own original alone.
    """
    said = [
        Transcript("texts", "", one.text, (originals[one.id],) if one.id in originals else None)
        for one in texts
    ]
    known = [one.text for one in plan.records]
    shown = [one.text for one in texts]
    return WorstCase(
        len(texts),
        longest_run(shown, known),
        closest_f1(shown, known),
        tuple(measure_leaks(said, plan)),
    )


def longest_run(texts: Sequence[str], records: Sequence[str]) -> int:
    """Return the tokens of the longest run that any text shares with any record.

    Without regard to case. A shared run of n holds one of n - 1, so the length is searched for by
    halving.
    """
    vocabulary = Vocabulary()
    first, second = (vocabulary.tokenize(map(canonical_text, some)) for some in (texts, records))

    def shared(n: int) -> bool:
        return bool(shared_runs(first, second, n).outputs.any())

    # Doubled until no run is shared, then halved: log n searches instead of n.
    low, high = 0, 1
    while shared(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shared(middle) else (low, middle)
    return low


def closest_f1(texts: Sequence[str], records: Sequence[str]) -> float:
    """Return the highest ROUGE-L F1 of any text with any record."""
    vocabulary = Vocabulary()
    said = vocabulary.tokenize(map(canonical_text, texts))
    index, best = SubsequenceIndex(vocabulary.tokenize(map(canonical_text, records))), 0.0
    for place in range(len(said)):
        # Pairs that cannot beat the best so far are never compared (bound in text/overlap.py).
        for pair in index.above_f1(said[place], best):
            best = max(best, pair.f1)
    return best


# Answers to the questions: asked like any audit, scored against what is right (SAGE §4.2).

MEASURES = (
    "ROUGE-L",
    "BLEU-1 (as published)",
    "token F1",
    "containment (published as exact match)",
    "containment",
)
"""Of every answer, without a model."""

_SHIFTS = 10  # other questions that an answer is held against

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuestionAnswers:
    """What one system said to the questions.

    Attributes:
        answers: One per question; None where there is none.
        scores: By measure, shape (questions,), NaN without a score.
        unjudged: Answers without a judgement, by reason.
        chance: As ``scores``, against the answers to other questions.
    """

    answers: tuple[str | None, ...]
    scores: Mapping[str, Values]
    unjudged: Mapping[str, int] = field(default_factory=dict)
    chance: Mapping[str, Values] = field(default_factory=dict)

    @property
    def lengths(self) -> Values:
        """Words of each answer, shape (questions,)."""
        return answer_lengths([one or "" for one in self.answers])


async def answered(
    questions: Sequence[UsefulnessQuestion],
    target: Target,
    max_tokens: int,
    run: Path,
    progress: Progress | None = None,
) -> QuestionAnswers:
    """Put the questions to a system; answers kept in ``run`` are not asked for again.

    Raises:
        TargetUnreachableError: The system cannot be reached at all.
    """
    asked = [
        (Document(str(n), one.text), Query(one.text, max_tokens=max_tokens))
        for n, one in enumerate(questions)
    ]
    with ResponseStore(run / ANSWERS) as journal:
        found = await Worker(target, journal).put(asked, "questions", progress)
    texts = tuple(None if one is None or one.error is not None else one.text for one in found)
    references = [one.answers for one in questions]
    scores = measure_utility([one or "" for one in texts], references, MEASURES)
    # The same answers against the answers to other questions: what usefulness is by chance alone.
    said = [one or "" for one in texts]
    shifts = range(1, min(_SHIFTS, len(said) - 1) + 1)
    turned = [
        measure_utility(said, [*references[n:], *references[:n]], MEASURES[:1]) for n in shifts
    ]
    chance = {
        name: np.mean([one[name] for one in turned], axis=0) for name in MEASURES[:1] if turned
    }
    # An answer that never came is missing, not worth 0.
    missing = np.array([one is None for one in texts])
    kept = {k: np.where(missing, np.nan, v) for k, v in scores.items()}
    return QuestionAnswers(texts, kept, chance=chance)


async def judged(
    questions: Sequence[UsefulnessQuestion],
    said: QuestionAnswers,
    judge: Judge,
    run: Path,
    limiter: RateLimiter,
    progress: Progress | None = None,
) -> QuestionAnswers:
    """Have the answers judged by a chat model (:mod:`ragwitness.comparison.usefulness`).

    Of several references the first counts.

    Raises:
        TargetUnreachableError: The judge cannot be reached at all.
    """
    pairs = enumerate(zip(questions, said.answers, strict=True))
    cases = {str(n): JudgedAnswer(q.text, a, q.answers[0]) for n, (q, a) in pairs if a is not None}
    audit = Correctness(cases, judge.embedder)
    with ResponseStore(run / ANSWERS) as journal:
        worker = Worker(judge.model, journal, limiter=limiter)
        outcomes = await worker.run(audit, audit.documents(), "judgements", progress)
    values = np.full(len(questions), np.nan)
    reasons = Counter[str]()
    for one in outcomes:
        if one.score.value is None:
            reasons[one.score.reason or "no reason given"] += 1
        else:
            values[int(one.document.id)] = one.score.value
    scores = {**said.scores, CORRECTNESS: values}
    return QuestionAnswers(said.answers, scores, dict(reasons), said.chance)


def usefulness(
    said: QuestionAnswers, base: QuestionAnswers | None, seed: int
) -> dict[str, Usefulness]:
    """Return every measure with its interval, and the paired difference to ``origin``.

    Args:
        said: Of one variant.
        base: Of ``origin``; None where that is the variant.
        seed: Of the resampling.
    """
    found = {}
    for name, values in said.scores.items():
        scored = values[~np.isnan(values)]
        if not len(scored):
            continue
        mean = mean_rate(scored, seed, 0.0)
        theirs = None if base is None else base.scores.get(name)
        lucky = said.chance.get(name)
        above = None if lucky is None else paired_difference(values, lucky, seed=seed)
        if base is None or theirs is None or np.isnan(values - theirs).all():
            found[name] = Usefulness(mean, above=above)
            continue
        # Long answers overlap more with anything: the difference is told at equal length, too.
        held, near = at_equal_length(values, theirs, (said.lengths, base.lengths), seed=seed)
        gain = paired_difference(values, theirs, seed=seed)
        found[name] = Usefulness(mean, gain, held, near, above)
    return found


# Every variant in the same system, under the same attacks, asked the same questions.
#
# Everything that is asked is kept in the run folder, one folder per variant; the same command
# resumes. The systems compared run in this process; caps hold for the chat models alone.

_FEW = 0.5  # of the pairs of answers, of about equal length


async def run_comparison(
    plan: ComparisonPlan,
    variants: Sequence[Variant],
    run: Path,
    *,
    limiter: RateLimiter,
    judge: Judge | None = None,
    settings: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare variants with the first of them.

    Args:
        plan: How.
        variants: What stands in the records' place, ``origin`` first.
        run: Folder in which everything asked is kept.
        limiter: Lets queries to chat models pass.
        judge: Judges answers; None leaves that out.
        settings: What else was in use.
        progress: Called after each answer.

    Raises:
        InputError: A variant cannot be indexed, or no prompt was answered.
        TargetUnreachableError: The judge cannot be reached at all.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    found: list[Compared] = []
    said: list[tuple[str, str]] = []
    base: QuestionAnswers | None = None
    for variant in variants:
        named = _named(progress, variant.name)
        target = _system(plan, variant)
        # 1. Attack the system over it; leaks are counted against the original records.
        leaks = await _attacked(plan, target, run / variant.name, named)
        # 2. Ask it the questions, and have the answers judged.
        told = await _asked(plan, target, run, variant.name, judge, limiter, named)
        # 3. Hold it against the first variant, the records as they are.
        found.append(_compared(plan, variant, target, leaks, told, base))
        warned = (*(leaks.warnings if leaks else ()), *_length_remarks(found[-1]))
        said += [(variant.name, one) for one in warned]
        base = base or told
    spent = spending(limiter.spent, limiter.budget, limiter.cap, ())
    warnings = [
        *notes_of(plan.material.left_out),
        *(one for each in variants for one in each.warnings),
    ]
    if plan.by_original:
        warnings.append(
            "Texts are found by their originals: the index holds the private records, and what is"
            " found tells about them."
        )
    if 0 < (asked := len(plan.material.questions)) < FEW:
        warnings.append(
            f"{asked} questions are few: bootstrap intervals of fewer than {FEW} are too short."
        )
    if limiter.cap:
        warnings.append(
            f"{limiter.cap} cap reached: texts were left unmade or answers unjudged. The same"
            f" command with a higher {OPTIONS[limiter.cap]} resumes; nothing is asked twice."
        )
    return Comparison(
        started=started,
        seconds=time.monotonic() - clock,
        records=len(plan.material.records),
        background=len(plan.material.background),
        questions=len(plan.material.questions),
        variants=tuple(found),
        settings=dict(settings or {}),
        warnings=tuple(dict.fromkeys([*warnings, *_shared(said, len(variants))])),
        spent=spent if limiter.spent.queries else None,
        ragwitness=version("ragwitness"),
        left_out=left_out_of(plan.material.left_out),
    )


def _system(plan: ComparisonPlan, variant: Variant) -> LabTarget:
    """Index a variant."""
    return lab_target(
        variant.documents,
        replace(plan.rag, retrieve=variant.retrieve),
        variant.defense,
        _originals(plan) if plan.by_original else None,
    )


async def _attacked(
    plan: ComparisonPlan, target: LabTarget, folder: Path, progress: Progress | None
) -> LeakResult | None:
    """Attack a system; leaks are counted against the original records."""
    if not plan.attacks:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    asked = await ask_attacks(
        plan.attacks,
        plan.prompts,
        target.for_owner(),
        run=folder,
        progress=progress,
        limiter=RateLimiter(pace=Pace.at_most(4)),
    )
    told = with_originals(asked.transcripts, target, _originals(plan))
    write_transcripts(folder / TRANSCRIPTS, told)
    asked = AttackRun(asked.target, tuple(told), asked.spent)  # kept answers are no news here
    return score_leaks(told, _leak_plan(plan), embedder=plan.embedder, asked=asked)


def _originals(plan: ComparisonPlan) -> dict[str, str]:
    return {one.id: one.text for one in plan.material.records}


def with_originals(
    told: Sequence[Transcript], target: LabTarget, originals: Mapping[str, str]
) -> list[Transcript]:
    """Return transcripts with the original records in the place of the passages.

    As in SAGE's code: whatever was shown, an answer is held against the originals of what was
    retrieved. Passages of no record are left out; where none is of a record, published counts
    have nothing to look at.
    """
    records: dict[str, str] = {}
    for passage in target.system.passages:  # of passages of one text the first is retrieved first
        if passage.document in originals:
            records.setdefault(passage.text, originals[passage.document])
    if not records:
        return [replace(one, contexts=None) for one in told]
    return [
        replace(one, contexts=tuple(records[text] for text in one.contexts if text in records))
        if one.contexts is not None
        else one
        for one in told
    ]


async def _asked(
    plan: ComparisonPlan,
    target: LabTarget,
    run: Path,
    name: str,
    judge: Judge | None,
    limiter: RateLimiter,
    progress: Progress | None,
) -> QuestionAnswers | None:
    questions = plan.material.questions
    if not questions:
        return None
    folder = run / name / "questions"
    said = await answered(questions, target, plan.answer_tokens, folder, progress)
    if judge is None:
        return said
    # One journal for all: two systems may give the same answer.
    return await judged(questions, said, judge, run / JUDGED, limiter, progress)


def _compared(
    plan: ComparisonPlan,
    variant: Variant,
    target: LabTarget,
    leaks: LeakResult | None,
    told: QuestionAnswers | None,
    base: QuestionAnswers | None,
) -> Compared:
    worst, words = None, 0.0
    if variant.retrieve:
        words = float(np.mean([len(one.text.split()) for one in variant.documents]))
        worst = worst_case(variant.documents, _leak_plan(plan), _originals(plan))
    return Compared(
        name=variant.name,
        target=target.name,
        indexed=len(variant.documents) if variant.retrieve else 0,
        words=words,
        attacks=leaks.attacks if leaks else (),
        # Empty answers tell nothing of what they would give away (a warning says so).
        together=leaks.together if leaks and not leaks.silent else (),
        worst=worst,
        usefulness={} if told is None else usefulness(told, base, plan.seed),
        answer_words=None if told is None else _answer_words(told),
        unanswered=0 if told is None else sum(one is None for one in told.answers),
        unjudged={} if told is None else told.unjudged,
        settings=variant.settings,
        cost=variant.cost,
        doubt=leaks.doubt if leaks and not leaks.silent else "",
    )


def _leak_plan(plan: ComparisonPlan) -> LeakPlan:
    material = plan.material
    return LeakPlan(
        material.records, material.background, material.secrets, material.decoys, plan.seed
    )


def _answer_words(told: QuestionAnswers) -> float | None:
    """Mean words of the answers there are; None without one."""
    said = told.lengths[[one is not None for one in told.answers]]
    return float(said.mean()) if len(said) else None


def _named(progress: Progress | None, name: str) -> Progress | None:
    if progress is None:
        return None
    show = progress
    return lambda stage, done, total: show(f"{name}: {stage}", done, total)


def _length_remarks(one: Compared) -> list[str]:
    """Say where a difference at equal length is an extrapolation."""
    few = [m for m in one.usefulness.values() if m.gain and m.near < _FEW * m.gain.n]
    if not few or few[0].gain is None:
        return []
    return [
        f"its answers are mostly of another length than those to the records as they are"
        f" ({few[0].near} of {few[0].gain.n} within a factor of 1.25): the difference at equal"
        " length is an extrapolation"
    ]


def _shared(said: Sequence[tuple[str, str]], variants: int) -> list[str]:
    """Warnings: what all variants share once, the others under their variant's name."""
    times = Counter(text for _, text in said)
    return [text if times[text] == variants else f"{name}: {text}" for name, text in said]
