"""Numbers and untrusted text as they appear in every report."""

from __future__ import annotations

import math
import unicodedata

from ragwitness.stats.evaluation import Rate
from ragwitness.types import Decision, Interval

__all__ = [
    "LABELS",
    "count",
    "documents",
    "duration",
    "interval",
    "p_text",
    "percent",
    "probability",
    "rate_text",
    "score_text",
    "signed",
    "visible",
]

MISSING = "\N{EN DASH}"
LABELS = {
    Decision.IN: "in the database",
    Decision.INCONCLUSIVE: "inconclusive",
    Decision.OUT: "no sign of it",
}
"""What a verdict is called; "out" claims no more than the absence of evidence."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # part of ordinary spelling in Persian, Hindi and emoji
_LIMIT = 400


def visible(text: str, limit: int = _LIMIT) -> str:
    """Return untrusted text with control, bidirectional and other unseen characters named.

    A text over ``limit`` characters is cut and its length given.
    """
    shown = "".join(_name(char) for char in text[:limit])
    rest = len(text) - limit
    return f"{shown}… ({count(rest)} more characters)" if rest > 0 else shown


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


def signed(rate: Rate) -> str:
    """Return a difference with its interval, each with its sign."""
    low, high = (f"{value:+.3f}" for value in (rate.low, rate.high))
    return f"{rate.value:+.3f} [{low}, {high}]".replace("-", "\N{MINUS SIGN}")


def rate_text(value: float) -> str:
    """Return a rate to three decimals; 1.000 only where it is exactly one."""
    if math.isnan(value):
        return MISSING
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


def duration(seconds: float) -> str:
    """Return a span of time in the two largest units."""
    if not math.isfinite(seconds):
        return MISSING
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{count(whole // 3600)} h {whole % 3600 // 60} min"
