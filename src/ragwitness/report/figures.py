"""Geometry of the figures: every coordinate is computed here, the templates only draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.report.wording import count, rate_text
from ragwitness.runs.result import AuditResult

__all__ = [
    "Curve",
    "Histogram",
    "Panel",
    "Square",
    "p_value_figure",
    "roc_figure",
    "roc_of",
    "round_numbers",
    "score_figure",
]

_SIDE = 240.0
"""Side of a square plot in SVG units."""
_WIDTH, _HEIGHT = 560.0, 64.0
"""Size of one histogram row."""
_POINTS = 400
"""Corners beyond which a step function is thinned: no eye sees more."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A step function inside a square plot."""

    name: str
    path: str
    style: str


@dataclass(frozen=True, slots=True)
class Square:
    """A plot of the unit square."""

    title: str
    description: str
    curves: tuple[Curve, ...]
    mark: float | None = None
    """Where a vertical rule stands, in SVG units; None for no rule."""


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

    description: str
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...]


def roc_figure(result: AuditResult) -> Square | None:
    """Return the ROC as a step function; None where the truth is not known."""
    if result.evaluation is None or len(result.evaluation.roc) < 2:
        return None
    return roc_of(result.evaluation.roc, result.evaluation.auc.value, "audit")


def roc_of(corners: Sequence[tuple[float, float]], area: float, name: str) -> Square:
    """Return an ROC as a step function.

    Args:
        corners: (false-positive rate, true-positive rate).
        area: Under it.
        name: Of the curve.
    """
    return Square(
        title="ROC curve",
        description="True-positive rate against false-positive rate; area under it "
        f"{rate_text(area)}.",
        curves=(Curve(name, _steps(corners), "in"),),
    )


def p_value_figure(result: AuditResult) -> Square | None:
    """Return the distribution of p-values against the uniform; None without any."""
    known = any(verdict.member is not None for verdict in result.verdicts)
    wanted: list[tuple[str, str, bool | None]] = (
        [("known non-members", "out", False), ("known members", "in", True)]
        if known
        else [("audited documents", "in", None)]
    )
    curves = []
    for name, style, member in wanted:
        values = sorted(
            v.p_value for v in result.verdicts if v.p_value is not None and v.member is member
        )
        if values:
            corners = [(p, (i + 1) / len(values)) for i, p in enumerate(values)]
            path = _steps([(0.0, 0.0), *corners, (1.0, 1.0)])
            curves.append(Curve(f"{name} (n = {count(len(values))})", path, style))
    if not curves:
        return None
    return Square(
        title="p-values against uniform",
        description="Share of documents with a p-value at most x; uniform values follow the "
        "diagonal.",
        curves=tuple(curves),
        mark=_SIDE * result.alpha,
    )


def _steps(corners: Sequence[tuple[float, float]]) -> str:
    """Return an SVG path that goes right first, then up, through ``corners``."""
    stride = max(1, math.ceil(len(corners) / _POINTS))
    kept = [*corners[:-1:stride], corners[-1]]
    path = [f"M{_SIDE * kept[0][0]:.1f} {_SIDE * (1 - kept[0][1]):.1f}"]
    for x, y in kept[1:]:
        path.append(f"H{_SIDE * x:.1f}V{_SIDE * (1 - y):.1f}")
    return "".join(path)


def score_figure(result: AuditResult) -> Histogram | None:
    """Return the distributions of scores over shared bins; None without any score."""
    groups = [(name, style, scores) for name, style, scores in _groups(result) if len(scores)]
    if not groups:
        return None
    pooled = np.concatenate([scores for _, _, scores in groups])
    low, high = float(pooled.min()), float(pooled.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    bins = int(np.clip(2 * math.sqrt(pooled.size), 8, 40))
    edges = np.linspace(low, high, bins + 1)
    shares = [np.histogram(scores, edges)[0] / len(scores) for _, _, scores in groups]
    top = max(float(share.max()) for share in shares)
    panels = tuple(
        Panel(
            name=name,
            n=len(scores),
            style=style,
            path=_bars(share / top),
            median=_WIDTH * (float(np.median(scores)) - low) / (high - low),
        )
        for (name, style, scores), share in zip(groups, shares, strict=True)
    )
    ticks = tuple(
        (_WIDTH * (x - low) / (high - low), f"{x:.6g}".replace("-", "\N{MINUS SIGN}"))
        for x in round_numbers(low, high)
    )
    return Histogram("Scores; higher means more evidence of membership.", panels, ticks)


def round_numbers(low: float, high: float) -> list[float]:
    """Return round numbers (steps of 1, 2 or 5 times a power of ten) within the range."""
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= raw)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _groups(result: AuditResult) -> list[tuple[str, str, NDArray[np.float64]]]:
    def scores(*truths: bool | None) -> NDArray[np.float64]:
        found = [v.score for v in result.verdicts if v.score is not None and v.member in truths]
        return np.array([score for score in found if math.isfinite(score)])

    calibration = np.array([score for score in result.calibration.scores if math.isfinite(score)])
    return [
        ("calibration: known to be outside", "calibration", calibration),
        ("audited: known non-members", "out", scores(False)),
        ("audited: known members", "in", scores(True)),
        ("audited: truth not known", "unknown", scores(None)),
    ]


def _bars(shares: NDArray[np.float64]) -> str:
    """Return one path of adjoining bars, a hairline of paper between them."""
    step = _WIDTH / len(shares)
    return "".join(
        f"M{i * step + 0.5:.1f} {_HEIGHT:g}v{-_HEIGHT * share:.1f}h{step - 1:.1f}"
        f"v{_HEIGHT * share:.1f}z"
        for i, share in enumerate(shares.tolist())
        if share > 0
    )
