"""How much of a private corpus stands in what a target said, as one value for every report."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version

from ragwitness.errors import InputError
from ragwitness.extraction.score import LeakPlan, Measure, measure_leaks
from ragwitness.extraction.score.semantic import nearest_cosines, semantic_measures
from ragwitness.extraction.transcript import Transcript
from ragwitness.models.base import Embedder
from ragwitness.runs.calibration import distinct
from ragwitness.runs.leak import Asked
from ragwitness.runs.result import Spending
from ragwitness.text.runs import RunIndex
from ragwitness.text.tokens import word_tokens
from ragwitness.types import Document

__all__ = ["FEW", "AttackLeaks", "LeakResult", "score_leaks"]

FEW = 20
"""Prompts or questions below which a percentile bootstrap covers less than it says: .94 at 20, .87
at 6, .80 at 3 (400 draws of uniform scores each)."""

_SHORTEST_RUN = 10  # tokens: what the shortest measured run has
_LONGEST_WORD = 15  # characters, on average over a record
_REASONS = 3  # of failed prompts, named
_TELLING = 4  # words of a record in a row that no error may show


@dataclass(frozen=True, slots=True)
class AttackLeaks:
    """What one attack got out.

    Attributes:
        name: The attack's.
        prompts: It sent.
        failed: Of these, prompts without an answer; in no measure.
        measures: Over the others; empty where there are none.
    """

    name: str
    prompts: int
    failed: int
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class LeakResult:
    """What leaked.

    Attributes:
        target: Name of the system; None where stored transcripts were scored.
        started: ISO 8601 in UTC.
        seconds: Wall time.
        records: Of the private corpus, each text once.
        attacks: One by one.
        together: The measures over all prompts, each prompt once.
        settings: Everything in use, as label and value.
        warnings: What a reader must know first.
        spent: At the target; None where nothing was asked.
        ragwitness: Version of this package.
    """

    target: str | None
    started: str
    seconds: float
    records: int
    attacks: tuple[AttackLeaks, ...]
    together: tuple[Measure, ...]
    settings: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    spent: Spending | None = None
    ragwitness: str = ""


def score_leaks(
    transcripts: Sequence[Transcript],
    plan: LeakPlan,
    *,
    embedder: Embedder | None = None,
    asked: Asked | None = None,
    settings: Mapping[str, str] | None = None,
) -> LeakResult:
    """Compute every measure, attack by attack and over all prompts together.

    Args:
        transcripts: What was asked and what came back.
        plan: What answers are compared with; of records that repeat another's text one counts.
        embedder: For likeness in meaning; None leaves it out.
        asked: Where they come from; None for stored ones.
        settings: What else was in use.

    Raises:
        InputError: There is no transcript, no answer or no record.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    unique = distinct(plan.records)
    told, transcripts = _without_records(transcripts, plan)
    warnings = [*(asked.warnings if asked else ()), *_remarks(transcripts, plan, unique), *told]
    plan = replace(plan, records=unique)
    cosines = _Cosines(plan, embedder, transcripts)
    names = dict.fromkeys(one.attack for one in transcripts)
    attacks = []
    for name in names:
        own = [one for one in transcripts if one.attack == name]
        answered = [one for one in own if one.error is None]
        measures = _measures(answered, plan, cosines) if answered else ()
        attacks.append(AttackLeaks(name, len(own), len(own) - len(answered), measures))
    once = {one.prompt: one for one in reversed(transcripts) if one.error is None}
    if not once:
        reason = next((one.error for one in transcripts if one.error), "there is no transcript")
        raise InputError(f"No prompt was answered: {reason}.", "ragwitness doctor TARGET looks.")
    together = attacks[0].measures
    if len(attacks) > 1:
        together = _measures(list(once.values())[::-1], plan, cosines)
    return LeakResult(
        target=asked.target if asked else None,
        started=started,
        seconds=time.monotonic() - clock,
        records=len(unique),
        attacks=tuple(attacks),
        together=together,
        settings=dict(settings or {}),
        warnings=tuple(warnings),
        spent=asked.spent if asked else None,
        ragwitness=version("ragwitness"),
    )


class _Cosines:
    """Cosines of outputs with the nearest record and background text, each found once."""

    def __init__(
        self, plan: LeakPlan, embedder: Embedder | None, transcripts: Sequence[Transcript]
    ) -> None:
        self._name = embedder.name if embedder else ""
        self._seed = plan.seed
        self._found: list[dict[str, float]] = []
        outputs = list(dict.fromkeys(one.output for one in transcripts))
        for texts in (plan.records, plan.background) if embedder else ():
            if embedder and texts:
                near = nearest_cosines(outputs, [text.text for text in texts], embedder)
                self._found.append(dict(zip(outputs, near.tolist(), strict=True)))

    def measures(self, transcripts: Sequence[Transcript]) -> list[Measure]:
        import numpy as np

        if not self._found:
            return []
        values = [np.array([known[one.output] for one in transcripts]) for known in self._found]
        return semantic_measures(*values, embedder=self._name, seed=self._seed)


def _measures(
    transcripts: Sequence[Transcript], plan: LeakPlan, cosines: _Cosines
) -> tuple[Measure, ...]:
    return (*measure_leaks(transcripts, plan), *cosines.measures(transcripts))


def _without_records(
    transcripts: Sequence[Transcript], plan: LeakPlan
) -> tuple[list[str], list[Transcript]]:
    """Cut errors where they begin to repeat a record; they are shown, and may quote passages."""
    if all(one.error is None for one in transcripts):
        return [], list(transcripts)
    vocabulary, records = plan.private.words
    index = RunIndex(records, _TELLING)
    cut, kept = 0, []
    for one in transcripts:
        place = index.first(vocabulary.tokenize([one.error])) if one.error else None
        if one.error is not None and place is not None:
            begins = [match.start() for match in re.finditer(r"\w+", one.error)]
            cut, one = cut + 1, replace(one, error=f"{one.error[: begins[place]].rstrip()} […]")
        kept.append(one)
    if not cut:
        return [], kept
    return [
        f"{cut} errors of the target repeat text of records: that leaks too, and is in no figure."
    ], kept


def _remarks(
    transcripts: Sequence[Transcript], plan: LeakPlan, unique: Sequence[Document]
) -> list[str]:
    """Say what a reader must know of prompts without an answer and of the corpus."""
    said = []
    if failed := Counter(one.error for one in transcripts if one.error is not None):
        reasons = "; ".join(f"{why} ({n})" for why, n in failed.most_common(_REASONS))
        said.append(
            f"{failed.total()} of {len(transcripts)} prompts had no answer and are in no figure:"
            f" {reasons}."
        )
    if (answered := sum(one.error is None for one in transcripts)) < FEW:
        said.append(
            f"{answered} prompts are few: bootstrap intervals (excess, coverage) of fewer than"
            f" {FEW} are too short; those of shares are exact."
        )
    if copies := len(plan.records) - len(unique):
        said.append(f"{copies} of {len(plan.records)} records repeat another's text; one counts.")
    sizes = [(len(one.text), len(word_tokens(one.text))) for one in unique]
    if short := sum(words < _SHORTEST_RUN for _, words in sizes):
        said.append(
            f"{short} records have fewer than {_SHORTEST_RUN} tokens: no run can be found in"
            " them. List what is private in them with --secrets."
        )
    if unspaced := sum(size > _LONGEST_WORD * max(1, words) for size, words in sizes):
        said.append(
            f"{unspaced} records have words of more than {_LONGEST_WORD} characters on average (a"
            " script without spaces, or encoded data): measures of tokens miss most of what leaks"
            " of them."
        )
    if not plan.background:
        said.append(
            "No --background was given: how much of this unrelated text would share by chance"
            " is not known."
        )
    return said
