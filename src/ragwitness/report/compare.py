"""What every report of a comparison says: leaks, worst case and usefulness of each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.extraction.score import Measure
from ragwitness.report import wording as say
from ragwitness.report.leak import chosen
from ragwitness.report.restoring import restored
from ragwitness.runs.comparison import Compared, Comparison
from ragwitness.runs.comparison.useful import CORRECTNESS
from ragwitness.stats.evaluation import Rate

__all__ = [
    "CLAIMED",
    "LEAK",
    "NOT_CLAIMED",
    "PUBLISHED",
    "LeakRow",
    "UseRow",
    "comparison_from_json",
    "comparison_json",
    "headline",
    "leak_rows",
    "main_measure",
    "published_rows",
    "use_rows",
]

LEAK = "repeat prompts 10"
"""The leak that the figure shows: its share has an interval over prompts."""
PUBLISHED = ("repeat prompts", "repeat contexts", "ROUGE prompts", "ROUGE contexts", "targeted")

CLAIMED = (
    "Every variant was indexed in the same system, attacked by the same attacks with the same"
    " seed, and asked the same questions.",
    "Leaks are of the original records, whatever was indexed in their place, each answer held"
    " against every record.",
    "A difference of usefulness is paired over questions, with a bootstrap 95 % interval; beside"
    " it stands what is left of it when both answers are equally long.",
    "The worst case holds the texts themselves against every record: no attack gets more words out"
    " of them than are in them.",
)
NOT_CLAIMED = (
    "That what does not leak here is safe: a fact told in other words is seen by no measure of"
    " words, and other attacks or generators may get more.",
    "That the order of the variants holds for another generator: a small model that copies tells"
    " more, and knows less, than a large one.",
    "Any bound for one person's data, unless a variant was made with differential privacy: then"
    " its own statement says what its ε covers.",
)


@dataclass(frozen=True, slots=True)
class LeakRow:
    """What leaked through one variant, formatted."""

    name: str
    texts: str
    words: str
    prompts: str
    interval: str
    excess: str
    records: str
    coverage: str
    secrets: str
    longest: str
    closest: str
    alike: str
    rate: Rate | None


@dataclass(frozen=True, slots=True)
class UseRow:
    """One measure of one variant's answers, formatted."""

    name: str
    measure: str
    mean: str
    interval: str
    gain: str
    held: str
    n: int


def main_measure(result: Comparison) -> str:
    """Return the measure of usefulness that is shown first; empty without questions."""
    names = [name for one in result.variants for name in one.usefulness]
    return CORRECTNESS if CORRECTNESS in names else next(iter(names), "")


def headline(result: Comparison) -> tuple[str, str]:
    """Return a title and a sentence."""
    others = len(result.variants) - 1
    base = chosen(result.variants[0].together, LEAK)
    quiet = [one.name for one in result.variants[1:] if _count(one, LEAK) == 0]
    title = f"{others} {'variant' if others == 1 else 'variants'} beside the records themselves"
    told = "nothing was repeated even of the records as they are"
    if base is not None and base.count:
        share = f"{say.count(int(base.count))} of {say.count(base.of)} prompts"
        told = f"{share} repeated a record as it is" + (
            f"; none did with {', '.join(quiet)}" if quiet else ""
        )
    return title, f"{told[0].upper()}{told[1:]}. To repeat is to share a run of 10 or more tokens."


def leak_rows(result: Comparison) -> list[LeakRow]:
    """Return one row per variant."""
    return [_leak_row(one) for one in result.variants]


def _leak_row(one: Compared) -> LeakRow:
    prompts, coverage = chosen(one.together, LEAK), chosen(one.together, "coverage")
    rate = prompts.rate if prompts else None
    excess = prompts.excess if prompts else None
    worst = one.worst
    return LeakRow(
        name=one.name,
        texts=say.count(one.indexed),
        words=f"{one.words:.0f}" if one.indexed else say.MISSING,
        prompts=_of(prompts),
        interval=say.interval(rate) if rate else say.MISSING,
        excess=say.signed(excess) if excess else say.MISSING,
        records=_of(chosen(one.together, "repeat records 10")),
        coverage=say.rate_text(coverage.count) if coverage else say.MISSING,
        secrets=_secrets(one.together),
        longest=say.count(worst.longest) if worst else say.MISSING,
        closest=say.rate_text(worst.closest) if worst else say.MISSING,
        alike=_of(next((m for m in one.together if m.name == "like prompts"), None)),
        rate=rate,
    )


def published_rows(result: Comparison) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the published counts: variant, attack, and the columns of :data:`PUBLISHED`."""
    found = []
    for one in result.variants:
        for attack in one.attacks:
            cells = [_published(attack.measures, name) for name in PUBLISHED]
            found.append((one.name, attack.name, tuple(cells)))
        if one.worst is not None:
            cells = [_published(one.worst.measures, name) for name in PUBLISHED]
            found.append((one.name, "the texts themselves", tuple(cells)))
    return found


def _published(measures: Sequence[Measure], name: str) -> str:
    """A published count; SAGE counts runs of 10 tokens."""
    found = [
        one
        for one in measures
        if one.published and one.name.startswith(name) and one.key != "20" and one.note is None
    ]
    return " / ".join(say.count(int(one.count)) for one in found) or say.MISSING


def use_rows(result: Comparison, measure: str | None = None) -> list[UseRow]:
    """Return the measures of usefulness, one row per measure and variant.

    Args:
        result: The comparison.
        measure: One of them; None for all.
    """
    names = dict.fromkeys(name for one in result.variants for name in one.usefulness)
    return [
        _use_row(one, name)
        for name in names
        if measure in (None, name)
        for one in result.variants
        if name in one.usefulness
    ]


def _use_row(one: Compared, name: str) -> UseRow:
    found = one.usefulness[name]
    return UseRow(
        name=one.name,
        measure=name,
        mean=say.rate_text(found.mean.value),
        interval=say.interval(found.mean),
        gain=say.signed(found.gain) if found.gain else "",
        held=say.signed(found.held) if found.held else "",
        n=found.mean.n,
    )


def comparison_json(result: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values; it holds no text of the corpus or of an answer."""
    return {"kind": "comparison", **asdict(result)}


def comparison_from_json(data: Mapping[str, Any]) -> Comparison:
    """Return the comparison that :func:`comparison_json` was given.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    return restored(Comparison, data, "compare")


def _of(one: Measure | None) -> str:
    if one is None:
        return say.MISSING
    return f"{say.count(int(one.count))} of {say.count(one.of)}"


def _secrets(measures: Sequence[Measure]) -> str:
    """Secrets of all kinds that came back."""
    found = [one for one in measures if one.name == "secrets" and not one.published]
    if not found:
        return say.MISSING
    return f"{sum(int(m.count) for m in found):,} of {sum(m.of for m in found):,}"


def _count(one: Compared, label: str) -> float | None:
    found = chosen(one.together, label)
    return None if found is None else found.count
