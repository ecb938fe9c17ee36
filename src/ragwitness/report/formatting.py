"""Numbers and untrusted text as they appear in every report."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ragwitness.core.types import Interval, LeftOut

if TYPE_CHECKING:
    from ragwitness.report.spending import Spending
    from ragwitness.stats.rates import Rate  # it brings numpy, and help shall not

MISSING = "\N{EN DASH}"
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # part of ordinary spelling in Persian, Hindi and emoji
_LIMIT = 400
_WERE = ("was", "were")


def visible(text: str, limit: int = _LIMIT) -> str:
    """Return untrusted text with control, bidirectional and other unseen characters named.

    A text over ``limit`` characters is cut and its length given.
    """
    # Untrusted text may hold control characters or turn the direction of writing; each is named in
    # its place, so that what is shown is what is there.
    text_shown = "".join(_name(char) for char in text[:limit])
    rest = len(text) - limit
    return f"{text_shown}… ({count(rest)} more characters)" if rest > 0 else text_shown


def _name(char: str) -> str:
    if char in "\n\t\r":
        return {"\n": "↵", "\t": "⇥", "\r": "␍"}[char]
    if char not in _JOINERS and unicodedata.category(char) in _UNSEEN:
        return f"⟨U+{ord(char):04X}⟩"
    return char


def count(value: int) -> str:
    """Return a whole number with thousands separated."""
    return f"{value:,}"


def documents(n: int) -> str:
    """Return ``n`` with its noun."""
    return f"{count(n)} document{'' if n == 1 else 's'}"


def left_out(files: Sequence[LeftOut]) -> str:
    """Say how many files and rows were given and could not be used; empty for none."""
    rows = sum(item.line > 0 for item in files)
    counts = ((len(files) - rows, "file"), (rows, "row"))
    amounts = " and ".join(f"{count(n)} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n)
    return amounts and f"{amounts} could not be read and {_WERE[len(files) > 1]} left out"


def p_text(value: float | None) -> str:
    """Return a p- or q-value: three decimals while small, never 0."""
    if value is None or math.isnan(value):
        return MISSING
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def score_text(value: float | None) -> str:
    """Return a score to three significant digits with a true minus sign."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0 or 1e-4 <= abs(value) < 1000:
        text = f"{value:#.3g}".removesuffix(".")
    else:
        text = f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.1e}"
    return text.replace("-", "\N{MINUS SIGN}")


def three(value: float | None) -> str:
    """Return a number above 0 to three significant digits, from 1,000 on as a whole number."""
    if value is None:
        return MISSING
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:,.0f}"


def signed(rate: Rate) -> str:
    """Return a difference with its interval, each with its sign."""
    low, high = (f"{value:+.3f}" for value in (rate.low, rate.high))
    return f"{rate.value:+.3f} [{low}, {high}]".replace("-", "\N{MINUS SIGN}")


def rate_text(value: float) -> str:
    """Return a rate to three decimals; 1.000 only where it is exactly one."""
    if math.isnan(value):
        return MISSING
    # Rounding must not turn "nearly all" into "all".
    if value < 1 and f"{value:.3f}" == "1.000":
        return "> 0.999"
    return f"{value:.3f}"


def interval(rate: Rate) -> str:
    """Return the interval of a rate as ``low to high``."""
    return f"{rate_text(rate.low)} to {rate_text(rate.high)}"


def percent(value: float) -> str:
    """Return a share as a percentage to at most one decimal."""
    if math.isnan(value):
        return MISSING
    text = f"{100 * value:.1f}".removesuffix(".0")
    if value < 1 and text == "100":
        return "> 99.9 %"
    return "< 0.1 %" if value > 0 and text == "0" else f"{text} %"


def probability(value: Interval | float) -> str:
    """Return a probability; ``≤ x`` where the target's list was cut off above it.

    A word that an answer never came to has none.
    """
    # A cut-off list bounds a probability from above only (docs/design/reading-probabilities.md).
    if isinstance(value, Interval) and value.low != value.high:
        if value.low <= 0 and value.high >= 1:
            return "not reached"
        if value.low <= 0:
            return f"≤ {_point(value.high).removeprefix('< ')}"
        return f"{_point(value.low)} to {_point(value.high)}"
    return _point(value.high if isinstance(value, Interval) else value)


def _point(value: float) -> str:
    if math.isnan(value):
        return MISSING
    if value < 0.001:
        return "< 0.001" if value > 0 else "0"
    if value < 0.1:
        return f"{value:.3f}"
    return "> 0.99" if 0.995 <= value < 1 else f"{value:.2f}"


def moment(stored: str) -> str:
    """Return a stored time of day to the minute, e.g. ``2026-11-22 10:38 UTC``."""
    try:
        at = datetime.fromisoformat(stored)
    except ValueError:
        return stored
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at.tzinfo else stored


def e_text(log10: float) -> str:
    """Return an e-value given by its logarithm: in full up to a million, then as a power."""
    return f"{10**log10:.3g}" if -3 <= log10 < 4 else f"10^{log10:.1f}"


def duration(seconds: float) -> str:
    """Return a span of time in the two largest units."""
    if not math.isfinite(seconds):
        return MISSING
    if seconds < 60:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{count(rounded // 3600)} h {rounded % 3600 // 60} min"


def spent_text(spent: Spending | None) -> str:
    """Return the spending of a run at its target, each beside its cap; empty where unknown."""
    if spent is None:
        return ""
    tokens = spent.prompt_tokens + spent.completion_tokens
    amounts = [f"{count(spent.queries)}{_cap(spent.max_queries)} queries"]
    amounts.append(f"{count(tokens)}{_cap(spent.max_tokens)} tokens")
    if spent.cost is not None:
        amounts.append(f"cost {spent.cost:,.4g}{_cap(spent.max_cost)}")
    return ", ".join(amounts)


def _cap(cap: float | None) -> str:
    return "" if cap is None else f" of at most {cap:,}"


# The same for a terminal, where 80 columns are few.


def short(value: float) -> str:
    """Return a rate with three decimals and no leading zero."""
    if math.isnan(value):
        return MISSING
    return f"{value:.3f}".removeprefix("0") if value >= 0 else f"\N{MINUS SIGN}{short(-value)}"


def short_interval(rate: Rate) -> str:
    """Return the interval of a rate as ``.123\N{EN DASH}.456``."""
    return MISSING if math.isnan(rate.low) else f"{short(rate.low)}\N{EN DASH}{short(rate.high)}"


def short_signed(value: float) -> str:
    """Return a difference with its sign."""
    return f"+{short(value)}" if value >= 0 else short(value)
