"""Geometry of the pages' own figures; templates only draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragwitness.report.figures import Curve, Square, roc_of, round_numbers
from ragwitness.report.wording import count
from ragwitness.runs.budget import Use
from ragwitness.runs.result import AuditResult, Spending

__all__ = ["Line", "both_rocs", "money_figure", "path_figure", "tokens_figure"]

_WIDTH, _HEIGHT = 480.0, 180.0
_POINTS = 400
"""Points beyond which a curve is thinned: no eye sees more."""
_NEAR = 1.5  # a cap is drawn where the curve came to two thirds of it


@dataclass(frozen=True, slots=True)
class Line:
    """A curve over round axes.

    Attributes:
        key: Names it within its page.
        title: What it shows.
        description: The same in numbers, for who does not see it.
        path: SVG path.
        x: Name of the horizontal axis.
        x_ticks: Place and label of each tick.
        y: Name of the vertical axis.
        y_ticks: Likewise.
        rule: Place and label of a horizontal rule; None for none.
    """

    key: str
    title: str
    description: str
    path: str
    x: str
    x_ticks: tuple[tuple[float, str], ...]
    y: str
    y_ticks: tuple[tuple[float, str], ...]
    rule: tuple[float, str] | None = None


def tokens_figure(spent: Sequence[Use], known: Spending | None) -> Line | None:
    """Return the tokens spent so far over the queries; None where nothing was."""
    sums = list(accumulate(use.tokens for use in spent))
    if not sums or not sums[-1]:
        return None
    queries, cap = len(sums), known.max_tokens if known else None
    said = f"{count(sums[-1])} tokens after {count(queries)} queries"
    limit = f"; the cap is {count(cap)}." if cap is not None else "."
    labels = ("queries sent", "tokens")
    return _line("tokens", "Tokens spent", said + limit, [0, *sums], labels, cap, "cap")


def money_figure(spent: Sequence[Use], known: Spending | None) -> Line | None:
    """Return the money spent so far over the queries; None without prices."""
    if known is None or known.price_in is None or known.price_out is None:
        return None
    prices = known.price_in / 1e6, known.price_out / 1e6
    sums = list(accumulate(use.prompt * prices[0] + use.completion * prices[1] for use in spent))
    if not sums or not sums[-1]:
        return None
    said = f"{sums[-1]:.4g} after {count(len(sums))} queries, at the prices given"
    limit = f"; the cap is {known.max_cost:g}." if known.max_cost is not None else "."
    labels = ("queries sent", "cost")
    return _line("cost", "Cost", said + limit, [0, *sums], labels, known.max_cost, "cap")


def path_figure(path: Sequence[float], alpha: float) -> Line | None:
    """Return the evidence about a collection, document by document; None without any."""
    if not path:
        return None
    needed = -math.log10(alpha)
    said = (
        f"10^{path[-1]:.1f} after {count(len(path))} scored documents; decided at 10^{needed:.1f}."
    )
    labels = ("scored documents", "log10 of the e-value")
    return _line("path", "Evidence", said, [0.0, *path], labels, needed, "decided")


def both_rocs(results: Sequence[AuditResult], names: Sequence[str]) -> Square | None:
    """Return the ROCs of two audits in one plot; None where the truth of neither is known."""
    curves, said = [], []
    for result, name, style in zip(results, names, ("in", "out"), strict=True):
        found = result.evaluation
        if found is None or len(found.roc) < 2:
            continue
        one = roc_of(found.roc, found.auc.value, name)
        curves.append(Curve(f"{name} (n = {count(found.auc.n)})", one.curves[0].path, style))
        said.append(f"{name}: {found.auc.value:.3f}")
    if not curves:
        return None
    text = "True-positive rate against false-positive rate. Area under the curve: "
    return Square("ROC curves", f"{text}{'; '.join(said)}.", tuple(curves))


def _line(
    key: str,
    title: str,
    description: str,
    values: Sequence[float],
    axes: tuple[str, str],
    rule: float | None,
    rule_name: str,
) -> Line:
    """Scale values at 0, 1, 2, … to the plot.

    Args:
        key: Names it within its page.
        title: What it shows.
        description: The same in numbers.
        values: Shape (n,), n at least 2.
        axes: Names of both.
        rule: Value of a horizontal rule; left out where it is far above all values.
        rule_name: Its label.
    """
    shown = rule is not None and rule <= _NEAR * max(values)
    low = min(0.0, *values)
    high = max([*values, *([rule] if shown and rule is not None else [])])
    high = high if high > low else low + 1.0
    last = len(values) - 1

    def y(value: float) -> float:
        return _HEIGHT * (high - value) / (high - low)

    stride = max(1, math.ceil(len(values) / _POINTS))
    kept = sorted({*range(0, last + 1, stride), last})
    points = [f"{_WIDTH * i / last:.1f} {y(values[i]):.1f}" for i in kept]
    return Line(
        key=key,
        title=title,
        description=description,
        path="M" + "L".join(points),
        x=axes[0],
        x_ticks=tuple(
            (_WIDTH * x / last, f"{x:,.0f}") for x in round_numbers(0, last) if x == round(x)
        ),
        y=axes[1],
        y_ticks=tuple((y(v), _short(v)) for v in round_numbers(low, high)),
        rule=(y(rule), rule_name) if shown and rule is not None else None,
    )


def _short(value: float) -> str:
    """Return a number for an axis."""
    size = abs(value)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if name == 'k' else unit):g} {name}"
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")
