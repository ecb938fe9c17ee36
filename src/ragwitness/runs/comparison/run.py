"""Every variant in the same system, under the same attacks, asked the same questions.

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

from ragwitness.extraction.score import LeakPlan
from ragwitness.extraction.transcript import Transcript, write_transcripts
from ragwitness.lab import lab_target
from ragwitness.rag import LabTarget
from ragwitness.runs.budget import OPTIONS
from ragwitness.runs.comparison.plan import JUDGED, ComparisonPlan, Judge, Variant
from ragwitness.runs.comparison.result import Compared, Comparison
from ragwitness.runs.comparison.useful import Answered, answered, judged, usefulness
from ragwitness.runs.comparison.worst import worst_case
from ragwitness.runs.governor import Governor
from ragwitness.runs.leak import TRANSCRIPTS, Asked, ask_attacks
from ragwitness.runs.leak_score import FEW, LeakResult, score_leaks
from ragwitness.runs.pace import Pace
from ragwitness.runs.remarks import spending
from ragwitness.runs.worker import Progress
from ragwitness.types import Document

__all__ = ["run_comparison", "with_originals"]

_FEW = 0.5  # of the pairs of answers, of about equal length


async def run_comparison(
    plan: ComparisonPlan,
    variants: Sequence[Variant],
    run: Path,
    *,
    governor: Governor,
    judge: Judge | None = None,
    settings: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare variants with the first of them.

    Args:
        plan: How.
        variants: What stands in the records' place, ``origin`` first.
        run: Folder in which everything asked is kept.
        governor: Lets queries to chat models pass.
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
    base: Answered | None = None
    for variant in variants:
        named = _named(progress, variant.name)
        target = _system(plan, variant)
        leaks = await _attacked(plan, target, run / variant.name, named)
        told = await _asked(plan, target, run, variant.name, judge, governor, named)
        found.append(_compared(plan, variant, target, leaks, told, base))
        warned = (*(leaks.warnings if leaks else ()), *_length_remarks(found[-1]))
        said += [(variant.name, one) for one in warned]
        base = base or told
    spent = spending(governor.spent, governor.budget, governor.cap, ())
    warnings = [one for variant in variants for one in variant.warnings]
    if plan.by_original:
        warnings.append(
            "Texts are found by their originals: the index holds the private records, and what is"
            " found tells about them."
        )
    if 0 < (asked := len(plan.material.questions)) < FEW:
        warnings.append(
            f"{asked} questions are few: bootstrap intervals of fewer than {FEW} are too short."
        )
    if governor.cap:
        warnings.append(
            f"{governor.cap} cap reached: texts were left unmade or answers unjudged. The same"
            f" command with a higher {OPTIONS[governor.cap]} resumes; nothing is asked twice."
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
        spent=spent if governor.spent.queries else None,
        ragwitness=version("ragwitness"),
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
        governor=Governor(pace=Pace.at_most(4)),
    )
    told = with_originals(asked.transcripts, target, _originals(plan))
    write_transcripts(folder / TRANSCRIPTS, told)
    asked = Asked(asked.target, tuple(told), asked.spent)  # kept answers are no news here
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
    governor: Governor,
    progress: Progress | None,
) -> Answered | None:
    questions = plan.material.questions
    if not questions:
        return None
    folder = run / name / "questions"
    said = await answered(questions, target, plan.answer_tokens, folder, progress)
    if judge is None:
        return said
    # One journal for all: two systems may give the same answer.
    return await judged(questions, said, judge, run / JUDGED, governor, progress)


def _compared(
    plan: ComparisonPlan,
    variant: Variant,
    target: LabTarget,
    leaks: LeakResult | None,
    told: Answered | None,
    base: Answered | None,
) -> Compared:
    worst = None
    if variant.retrieve:
        worst = worst_case(variant.documents, _leak_plan(plan), _originals(plan))
    return Compared(
        name=variant.name,
        target=target.name,
        indexed=len(variant.documents) if variant.retrieve else 0,
        words=_mean_words(variant.documents) if variant.retrieve else 0.0,
        attacks=leaks.attacks if leaks else (),
        together=leaks.together if leaks else (),
        worst=worst,
        usefulness={} if told is None else usefulness(told, base, plan.seed),
        answer_words=None if told is None else _answer_words(told),
        unanswered=0 if told is None else sum(one is None for one in told.answers),
        unjudged={} if told is None else told.unjudged,
        settings=variant.settings,
    )


def _leak_plan(plan: ComparisonPlan) -> LeakPlan:
    material = plan.material
    return LeakPlan(
        material.records, material.background, material.secrets, material.decoys, plan.seed
    )


def _mean_words(documents: Sequence[Document]) -> float:
    return float(np.mean([len(one.text.split()) for one in documents]))


def _answer_words(told: Answered) -> float | None:
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
