"""A comparison: every variant in the same system, under the same attacks and questions.

Everything that is asked is kept in the run folder, one folder per variant; the same command
resumes. The systems compared run in this process; caps hold for the chat models alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ragwitness.comparison.result import Compared, Comparison, WorstCase
from ragwitness.comparison.usefulness import QuestionAnswers, answered, judged, usefulness
from ragwitness.comparison.variants import JUDGED, ComparisonPlan, Judge, Variant
from ragwitness.core.types import Document, left_out_of, notes_of
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.leakage.result import LeakResult
from ragwitness.leakage.run import FEW, AttackRun, ask_attacks, score_leaks
from ragwitness.leakage.score.table import LeakPlan, measure_leaks
from ragwitness.rag.lab import lab_target
from ragwitness.rag.target import LabTarget
from ragwitness.report.spending import spending
from ragwitness.runner.budget import OPTIONS
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.worker import Progress
from ragwitness.text.overlap import SubsequenceIndex, Vocabulary, shared_runs
from ragwitness.text.words import canonical_text, split_words

# The texts themselves against the records: an upper bound of every attack (A.5).


def worst_case(texts: Sequence[Document], plan: LeakPlan) -> WorstCase:
    """Measure texts as if each were an answer.

    Args:
        texts: The indexed texts.
        plan: The records and secrets.
    """
    transcripts = [Transcript("texts", "", text.text) for text in texts]
    records = [record.text for record in plan.records]
    indexed = [text.text for text in texts]
    return WorstCase(
        len(texts),
        longest_run(indexed, records),
        closest_f1(indexed, records),
        tuple(measure_leaks(transcripts, plan)),
    )


def longest_run(texts: Sequence[str], records: Sequence[str]) -> int:
    """Return the tokens of the longest run that any text shares with any record.

    Without regard to case. A shared run of n holds one of n - 1, so the length is found by
    bisection.
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
    tokens = vocabulary.tokenize(map(canonical_text, texts))
    index, best = SubsequenceIndex(vocabulary.tokenize(map(canonical_text, records))), 0.0
    for n in range(len(tokens)):
        # Pairs that cannot beat the best so far are never compared (bound in text/overlap.py).
        for pair in index.above_f1(tokens[n], best):
            best = max(best, pair.f1)
    return best


# The comparison.

_FEW = 0.5  # share of the pairs of answers, of about equal length


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
        plan: How they are compared.
        variants: The substitutes of the records, ``origin`` first.
        run: Folder in which everything asked is kept.
        limiter: Lets queries to chat models pass.
        judge: Judges answers; None leaves that out.
        settings: Other settings in use.
        progress: Called after each answer.

    Raises:
        InputError: A variant cannot be indexed, or no prompt was answered.
        TargetUnreachableError: The judge cannot be reached at all.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    material = plan.material
    originals = {record.id: record.text for record in material.records}
    leak_plan = LeakPlan(
        material.records, material.background, material.secrets, material.decoys, plan.seed
    )
    compared: list[Compared] = []
    remarks: list[tuple[str, str]] = []
    base: QuestionAnswers | None = None
    for variant in variants:
        show = _named(progress, variant.name)
        # 1. Index the variant.
        target = lab_target(
            variant.documents,
            replace(plan.rag, retrieve=variant.retrieve),
            variant.defense,
            originals if plan.by_original else None,
        )
        # 2. Attack the system; leaks are counted against the original records.
        folder = run / variant.name
        leaks = await _attacked(plan, leak_plan, target, folder, show)
        # 3. Ask it the questions, and have the answers judged.
        answers = None
        if material.questions:
            tokens = plan.answer_tokens
            answers = await answered(material.questions, target, tokens, folder / "questions", show)
            if judge is not None:
                # One store for all variants: two systems may give the same answer.
                answers = await judged(
                    material.questions, answers, judge, run / JUDGED, limiter, show
                )
        # 4. Compare it with the first variant, the records as they are.
        worst = worst_case(variant.documents, leak_plan) if variant.retrieve else None
        compared.append(_compared(variant, target, worst, leaks, answers, base, plan.seed))
        warnings = [*(leaks.warnings if leaks else ()), *_length_remarks(compared[-1])]
        remarks += [(variant.name, warning) for warning in warnings]
        base = base or answers
    warnings = [
        *notes_of(material.left_out),
        *(w for substitute in variants for w in substitute.warnings),
    ]
    if plan.by_original:
        warnings.append(
            "Texts are found by their originals: the index holds the private records, and what is"
            " found tells about them."
        )
    if 0 < (questions := len(material.questions)) < FEW:
        warnings.append(
            f"{questions} questions are few: bootstrap intervals of fewer than {FEW} are too short."
        )
    if limiter.cap:
        warnings.append(
            f"{limiter.cap} cap reached: texts were left unmade or answers unjudged. The same"
            f" command with a higher {OPTIONS[limiter.cap]} resumes; nothing is asked twice."
        )
    # Remarks on all variants alike stand once, the others under the name of their variant.
    times = Counter(text for _, text in remarks)
    warnings += [
        text if times[text] == len(variants) else f"{name}: {text}" for name, text in remarks
    ]
    spent = spending(limiter.spent, limiter.budget, limiter.cap, ())
    return Comparison(
        started=started,
        seconds=time.monotonic() - clock,
        records=len(material.records),
        background=len(material.background),
        questions=len(material.questions),
        variants=tuple(compared),
        settings=dict(settings or {}),
        warnings=tuple(dict.fromkeys(warnings)),
        spent=spent if limiter.spent.queries else None,
        ragwitness=version("ragwitness"),
        left_out=left_out_of(material.left_out),
    )


async def _attacked(
    plan: ComparisonPlan,
    leak_plan: LeakPlan,
    target: LabTarget,
    folder: Path,
    progress: Progress | None,
) -> LeakResult | None:
    if not plan.attacks:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    attacks = await ask_attacks(
        plan.attacks,
        plan.prompts,
        target.for_owner(),
        run=folder,
        progress=progress,
        limiter=RateLimiter(at_once=4),
    )
    # Without the warnings of the run: answers of an earlier start are no news here.
    attacks = AttackRun(attacks.target, attacks.transcripts, attacks.spent)
    return score_leaks(attacks.transcripts, leak_plan, asked=attacks)


def _compared(
    variant: Variant,
    target: LabTarget,
    worst: WorstCase | None,
    leaks: LeakResult | None,
    answers: QuestionAnswers | None,
    base: QuestionAnswers | None,
    seed: int,
) -> Compared:
    # Empty answers prove nothing about leaks (a warning says so).
    valid = leaks if leaks and not leaks.silent else None
    texts = [len(split_words(document.text)) for document in variant.documents]
    return Compared(
        name=variant.name,
        target=target.name,
        indexed=len(texts) if variant.retrieve else 0,
        words=float(np.mean(texts)) if variant.retrieve else 0.0,
        attacks=leaks.attacks if leaks else (),
        together=valid.together if valid else (),
        worst=worst,
        usefulness=usefulness(answers, base, seed) if answers else {},
        answer_words=answers.mean_length if answers else None,
        unanswered=answers.answers.count(None) if answers else 0,
        unjudged=answers.unjudged if answers else {},
        settings=variant.settings,
        doubt=valid.doubt if valid else "",
    )


def _named(progress: Progress | None, name: str) -> Progress | None:
    if progress is None:
        return None
    show = progress
    return lambda stage, done, total: show(f"{name}: {stage}", done, total)


def _length_remarks(variant: Compared) -> list[str]:
    """Warn where a difference at equal length is an extrapolation."""
    measures = variant.usefulness.values()
    few = [(use.near, use.gain.n) for use in measures if use.gain and use.near < _FEW * use.gain.n]
    return [
        f"its answers are mostly of another length than those to the records as they are"
        f" ({near} of {n} within a factor of 1.25): the difference at equal length is an"
        " extrapolation"
        for near, n in few[:1]
    ]
