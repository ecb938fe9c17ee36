"""Geometry of histograms: every coordinate is computed here, renderers only draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT = 560.0, 64.0
"""Size of one histogram row in SVG units."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One group of documents in a histogram."""

    name: str
    n: int
    style: str
    path: str
    median: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Groups over the same bins, one below the other."""

    title: str
    description: str
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...]
    x: str


def histogram(
    title: str, description: str, x: str, groups: Sequence[tuple[str, str, NDArray[np.float64]]]
) -> Histogram | None:
    """Return the distributions of groups over shared bins; None without any value.

    Args:
        title: Its content in words.
        description: In words.
        x: Name of the axis.
        groups: Name, style and values, each of shape (n,).
    """
    groups = [(name, style, values) for name, style, values in groups if len(values)]
    if not groups:
        return None
    # Shared bins: groups can only be compared over the same edges.
    pooled = np.concatenate([values for _, _, values in groups])
    low, high = float(pooled.min()), float(pooled.max())
    # All scores alike: a range of width 1 around them.
    if low == high:
        low, high = low - 0.5, high + 0.5
    # Twice the root of n, between 8 and 40: fewer would hide a second mode, more would show noise.
    edges = np.linspace(low, high, int(np.clip(2 * math.sqrt(pooled.size), 8, 40)) + 1)
    shares = [np.histogram(values, edges)[0] / len(values) for _, _, values in groups]
    # One scale for all panels: heights are shares of each group and compare with each other.
    top = max(float(share.max()) for share in shares)
    panels = tuple(
        Panel(
            name=name,
            n=len(values),
            style=style,
            path=_bars(share / top),
            median=_WIDTH * (float(np.median(values)) - low) / (high - low),
        )
        for (name, style, values), share in zip(groups, shares, strict=True)
    )
    ticks = tuple(
        (_WIDTH * (value - low) / (high - low), f"{value:.6g}".replace("-", "\N{MINUS SIGN}"))
        for value in round_numbers(low, high)
    )
    return Histogram(title, description, panels, ticks, x)


def _bars(shares: NDArray[np.float64]) -> str:
    """Return one path of adjoining bars, a hairline of paper between them."""
    step = _WIDTH / len(shares)
    return "".join(
        f"M{i * step + 0.5:.1f} {_HEIGHT:g}v{-_HEIGHT * share:.1f}h{step - 1:.1f}"
        f"v{_HEIGHT * share:.1f}z"
        for i, share in enumerate(shares.tolist())
        if share > 0
    )


def round_numbers(low: float, high: float) -> list[float]:
    """Return round numbers (steps of 1, 2 or 5 times a power of ten) within the range."""
    # About six ticks, at the next round step above.
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= raw)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
