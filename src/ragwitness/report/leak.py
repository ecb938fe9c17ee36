"""What every report of a leak measurement says: published counts beside corrected ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.extraction.score import Measure
from ragwitness.extraction.score.hits import Reference, long_runs
from ragwitness.extraction.transcript import Transcript
from ragwitness.report import wording as say
from ragwitness.report.restoring import restored
from ragwitness.runs.leak_score import AttackLeaks, LeakResult
from ragwitness.types import Document

__all__ = [
    "CLAIMED",
    "NOT_CLAIMED",
    "Example",
    "Row",
    "chosen",
    "compact",
    "headline",
    "leak_from_json",
    "leak_json",
    "pick_examples",
    "rows",
]

_COUNTERPARTS = {"repeat contexts": "repeat records", "ROUGE contexts": "ROUGE records"}
_TELLING_RUN = 10  # tokens that an example shares with a record
_RANGES = ("likeness", "coverage")  # means, in no unit of prompts

CLAIMED = (
    "So much came back on these prompts: a lower bound of what the attacks can get, with these"
    " budgets and seeds, from this system as it was.",
    "Corrected measures hold every answer against every record of the corpus given; each share"
    " has its exact or bootstrap 95 % interval.",
    "Excess is what is left when the share on unrelated text is taken off, prompt by prompt.",
)
NOT_CLAIMED = (
    "That nothing else leaks: other attacks, more prompts or another sampling may get more. 0 of n"
    " is compatible with every rate up to the interval's end.",
    "That a short shared run is private: it may be boilerplate. The background says how much is"
    " shared by chance; the ledger of secrets counts what is private for certain.",
    "That other prompts would get the same records: a share of records has the interval of a share,"
    " although records are not drawn and one prompt may reach several.",
    "That a run was not in the prompt: where an attack quotes what it knows, an echo of it counts.",
    "That what is paraphrased is safe: measures of tokens do not see it.",
    "Published counts are for comparison with the papers' tables only: they look at the passages"
    " retrieved for the same prompt alone, a run must be longer than stated, and ROUGE counts where"
    " recall or precision is above .5.",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A published count and its corrected counterpart, formatted.

    Attributes:
        label: E.g. ``"repeat prompts 10"``.
        published: Count; empty where the papers have none.
        corrected: Count and what it is of, or a mean; empty where there is none.
        interval: Of the corrected share, at 95 %.
        background: The same share on texts that the target does not hold.
        excess: Share minus background with its interval.
        definition: What counts, the corrected one first.
        note: Why a count is missing.
        measure: The corrected measure, for figures; None where there is none.
    """

    label: str
    published: str
    corrected: str
    interval: str
    background: str
    excess: str
    definition: str
    note: str
    measure: Measure | None


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt whose answer repeats a record; private text, for those who may see it.

    Attributes:
        attack: That sent it.
        prompt: What was sent.
        output: What came back.
    """

    attack: str
    prompt: str
    output: str


def headline(result: LeakResult) -> tuple[str, str]:
    """Return a title and a sentence."""
    found = chosen(result.together, "repeat records 10")
    prompts = sum(one.prompts for one in result.attacks)
    names = f"{len(result.attacks)} attack{'' if len(result.attacks) == 1 else 's'}"
    title = (
        "No record was repeated"
        if found is None or not found.count
        else f"{say.count(int(found.count))} of {say.count(found.of)} records leaked in part"
    )
    asked = f"{say.count(prompts)} prompts of {names} against {say.count(result.records)} records"
    return title, f"{asked}; in part means a run of 10 or more tokens."


def chosen(measures: Sequence[Measure], label: str) -> Measure | None:
    """Return the corrected measure of a label; None where there is none."""
    return next((one for one in measures if one.label == label and not one.published), None)


def rows(measures: Sequence[Measure]) -> list[Row]:
    """Return one row per measure, published ones beside their corrected counterparts."""
    return [_row(*pair) for pair in _pairs(measures)]


def _pairs(measures: Sequence[Measure]) -> Iterator[tuple[Measure | None, Measure | None]]:
    ours = {one.label: one for one in measures if not one.published}
    paired = set()
    before: dict[str, Measure] = {}
    alone = []
    for one in measures:
        if one.published:
            name = _COUNTERPARTS.get(one.name, one.name)
            label = f"{name} {one.key}".rstrip()
            if label in ours:
                before[label] = one
                paired.add(label)
            else:
                alone.append(one)
    for label, one in ours.items():
        yield before.get(label), one
    for one in alone:
        yield one, None


def _row(published: Measure | None, corrected: Measure | None) -> Row:
    one = corrected or published
    if one is None:
        raise ValueError("a row has at least one measure")
    notes = dict.fromkeys(found.note for found in (corrected, published) if found and found.note)
    said = [found.definition for found in (corrected, published) if found]
    return Row(
        label=one.label,
        published=_published(published),
        corrected=_corrected(corrected),
        interval=say.interval(corrected.rate) if corrected and corrected.rate else "",
        background=_number(corrected.background if corrected else None),
        excess=say.signed(corrected.excess) if corrected and corrected.excess else "",
        definition="; published: ".join(said) if len(said) == 2 else said[0],
        note="; ".join(filter(None, notes)),
        measure=corrected,
    )


def _published(one: Measure | None) -> str:
    if one is None:
        return ""
    return say.MISSING if one.note else say.count(int(one.count))


def _corrected(one: Measure | None) -> str:
    if one is None:
        return ""
    if one.note:
        return say.MISSING
    if one.name in _RANGES or not one.of:
        return _number(one.count)
    return f"{say.count(int(one.count))} of {say.count(one.of)}"


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else say.rate_text(value)


def pick_examples(
    transcripts: Sequence[Transcript], records: Sequence[Document], count: int = 3
) -> tuple[Example, ...]:
    """Return the first answers that repeat a record in a run of ten tokens, one per attack first.

    Args:
        transcripts: What was asked and what came back.
        records: The private corpus.
        count: Most examples.
    """
    if count < 1 or not transcripts:
        return ()
    outputs, private = [t.output for t in transcripts], Reference([d.text for d in records])
    hits = long_runs(_TELLING_RUN)(outputs, private)
    told = [one for one, hit in zip(transcripts, hits.outputs.tolist(), strict=True) if hit]
    first = list({one.attack: one for one in reversed(told)}.values())[::-1]
    ordered = [*first, *(one for one in told if one not in first)]
    return tuple(Example(one.attack, one.prompt, one.output) for one in ordered[:count])


def leak_json(result: LeakResult) -> dict[str, Any]:
    """Return a result as JSON values; it holds no text of the corpus or of an answer."""
    return {"kind": "leak", **asdict(result)}  # tells it from the result of an audit


def leak_from_json(data: Mapping[str, Any]) -> LeakResult:
    """Return the result that :func:`leak_json` was given.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    return restored(LeakResult, data, "leak")


def compact(one: AttackLeaks) -> tuple[str, ...]:
    """Return an attack's figures for one line: prompts and the telling measures."""
    labels = ("repeat prompts 10", "repeat records 10", "ROUGE records", "coverage")
    found = [chosen(one.measures, label) for label in labels]
    figures = [say.MISSING if measure is None else _short(measure) for measure in found]
    return (one.name, say.count(one.prompts), say.count(one.failed), *figures)


def _short(one: Measure) -> str:
    return _number(one.count) if not one.of else say.count(int(one.count))
