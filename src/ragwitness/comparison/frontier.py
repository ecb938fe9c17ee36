"""What a comparison found, in one sentence, and the variants that no other beats on both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.report import formatting as fmt
from ragwitness.report.document import Cell, Column, Name, Paragraph, Table
from ragwitness.stats.evaluation import Rate


@dataclass(frozen=True, slots=True)
class MakingCost:
    """What the texts of a variant took to make, all starts together.

    Attributes:
        queries: To chat models.
        prompt_tokens: Read by them, where they count.
        completion_tokens: Written by them.
        money: In the currency of the prices; None without prices.
        seconds: Of the start that made the texts; None where they were kept from an earlier one.
    """

    queries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """One variant as the headline sees it.

    Attributes:
        name: Its own.
        hits: Prompts whose answer brings an original record out; None where none was counted.
        of: Prompts.
        leak: Their share, less what chance gives where that is known; None without an interval.
        use: Mean usefulness; None without questions.
        gain: Less that of the records as they are, paired.
        above: Less what the same answers get against the answers to other questions, paired.
        cost: Of making its texts; None where they were given.
    """

    name: str
    hits: int | None
    of: int
    leak: Rate | None
    use: Rate | None = None
    gain: Rate | None = None
    above: Rate | None = None
    cost: MakingCost | None = None

    @property
    def leaks(self) -> bool:
        """Whether prompts leak, and more of them than chance explains."""
        return bool(self.hits) and (self.leak is None or self.leak.low > 0)


def at_floor(base: Contender) -> bool:
    """Whether the answers over the records themselves are worth no more than any others."""
    return base.above is not None and base.above.low <= 0


def beaten_by(one: Contender, others: Sequence[Contender]) -> str:
    """Return the name of a variant that is no worse on both axes and better on one; empty if none.

    By the figures as they stand: their intervals stand beside them.
    """
    if one.leak is None:
        return ""
    for other in others:
        if other.leak is None or other.name == one.name:
            continue
        leak = other.leak.value - one.leak.value
        worth = (other.use.value if other.use else 0.0) - (one.use.value if one.use else 0.0)
        if leak <= 0 <= worth and (leak < 0 or worth > 0):
            return other.name
    return ""


def ranking(base: Contender | None, others: Sequence[Contender]) -> tuple[str, str]:
    """Return what was found as a title, and a sentence with its counts.

    Args:
        base: The records as they are.
        others: What would stand in their place.
    """
    leak = (
        "A prompt leaks whose answer shares a run of 10 or more tokens with a record, or holds most"
        " of its words in order or most of its facts, and no unrelated text explains it;"
        " in brackets the share beyond chance (95 %)."
    )
    counted = [one for one in others if one.hits is not None]
    if base is None or not others:
        return "The records themselves, with nothing beside them", leak
    if base.hits is None or not counted:
        return _by_use(base, others), "No attack was counted."
    share = f"{_count(base)} leaked with the records"
    if not base.leaks:
        return (
            "Nothing leaked beyond chance even of the records themselves",
            f"{share}, no more than by chance, so that the leaks of {_variants(others)} cannot be"
            f" told apart. {leak}",
        )
    # The least leak first; of those that leak alike the most useful.
    best = min(counted, key=lambda one: (_value(one), -(one.use.value if one.use else 0.0)))
    quiet = [one for one in counted if not one.leaks]
    bound = f" (which leaves room for {fmt.percent(best.leak.high)})" if best.leak else ""
    few = "none did" if not any(one.hits for one in quiet) else "nothing beyond chance"
    none = f"; {few} with {', '.join(one.name for one in quiet)}{bound}"
    if _value(best) >= _value(base):
        title = "No variant leaks less than the records themselves"
        told = f"{share}, and no fewer with {best.name}"
    elif best.leak is None or base.leak is None or best.leak.high >= base.leak.low:
        title = f"Too few prompts to say that {best.name} leaks less than the records themselves"
        told = f"{share}{f'; {_count(best)} with {best.name}' if best.leaks else none}"
    elif best.leaks:
        least = f"{fmt.count(best.hits or 0)} of {fmt.count(best.of)} prompts"
        title = f"{best.name} leaks least, {least}{_worth(base, best)}"
        told = f"{share}; with {best.name} {_count(best)} still did"
    else:
        ends = "leaks nothing beyond chance" if best.hits else "ends the leak"
        title = f"{best.name} {ends}{_worth(base, best)}"
        told = f"{share}{none}"
    return title, f"{told}. {leak}"


def _value(one: Contender) -> float:
    return one.leak.value if one.leak else (one.hits or 0) / max(1, one.of)


def _count(one: Contender) -> str:
    """Prompts that leaked, and their share with its interval."""
    share = f" ({fmt.interval(one.leak)})" if one.leak else ""
    return f"{fmt.count(one.hits or 0)} of {fmt.count(one.of)} prompts{share}"


def _variants(others: Sequence[Contender]) -> str:
    return f"{len(others)} {'variant' if len(others) == 1 else 'variants'}"


def _worth(base: Contender, one: Contender) -> str:
    """What a variant costs in usefulness, in points of a hundred, or why nobody can say."""
    if base.use is None or one.use is None or one.gain is None:
        return ""
    if at_floor(base):
        return "; what it costs cannot be told: usefulness is at its floor"
    had, points = 100 * base.use.value, 100 * one.gain.value
    if one.gain.low <= 0 <= one.gain.high:
        return f"; {one.gain.n} questions show no loss of usefulness"
    if points > 0:
        return f" and adds {_points(points)} to {_points(had)} points of usefulness"
    return f" and costs {_points(-points)} of {_points(had)} points of usefulness"


def _points(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0")


def _by_use(base: Contender, others: Sequence[Contender]) -> str:
    known = [one for one in others if one.use is not None]
    if base.use is None or not known:
        return f"{_variants(others)} beside the records themselves"
    best = max(known, key=lambda one: one.use.value if one.use else 0.0)
    return f"{best.name} is the most useful in their place{_worth(base, best)}"


def floor_warning(base: Contender | None, measure: str) -> str:
    """Return what a reader must know where usefulness is at its floor; empty where it is not."""
    if base is None or base.use is None or base.above is None or not at_floor(base):
        return ""
    chance = base.use.value - base.above.value
    return (
        f"Usefulness is at its floor: {measure} of the answers over the records themselves is"
        f" {fmt.rate_text(base.use.value)} ({fmt.interval(base.use)}), and the same answers get"
        f" {fmt.rate_text(chance)} against the answers to other questions. No difference in"
        " usefulness here says anything of a variant: take a generator that answers, e.g."
        " --generator hf:NAME, or other questions."
    )


def frontier_table(base: Contender | None, others: Sequence[Contender]) -> tuple[Table, Paragraph]:
    """Return every variant by its leak: both axes with intervals, who beats it, what it took."""
    told = [*([base] if base else []), *others]
    order = sorted(told, key=lambda one: (one.leak is None, one.leak.value if one.leak else 0.0))
    rows: list[tuple[Cell, ...]] = []
    for one in order:
        beaten = beaten_by(one, told)
        cost = one.cost
        tokens = cost.prompt_tokens + cost.completion_tokens if cost else 0
        rows.append(
            (
                Name(one.name),
                "no other is better" if not beaten and one.leak else beaten and f"behind {beaten}",
                one.leak,
                one.leak,
                one.use,
                one.use,
                cost.queries if cost else None,
                tokens if cost else None,
                f"{cost.money:,.4g}" if cost and cost.money is not None else None,
                fmt.duration(cost.seconds) if cost and cost.seconds is not None else None,
            )
        )
    columns = (
        Column("Variant", "name", "by leak"),
        Column("On the frontier", "text", "frontier"),
        Column("Leak", "value", "leak"),
        Column("95 % interval", "interval"),
        Column("Usefulness", "value", "use"),
        Column("95 % interval", "interval"),
        Column("Queries", "value"),
        Column("Tokens", "value"),
        Column("Cost", "value", "cost"),
        Column("Time to make", "value", "time"),
    )
    hint = (
        "A variant is on the frontier where no other leaks less and is worth as much, or leaks as"
        " little and is worth more, by the figures as they stand; intervals that overlap leave the"
        " order open. Queries, tokens and cost are those of making its texts; zero is by rules or"
        " without a model."
    )
    return Table("By share of prompts that leak", columns, tuple(rows)), Paragraph(hint)
