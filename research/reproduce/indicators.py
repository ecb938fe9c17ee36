"""What audits measured, by the truth: its distribution (MBA Fig. 1), its threshold (Fig. 4).

The paper draws kernel density estimates of members' and non-members' scores. Here are the same, and
beside them what a curve cannot say: both means with their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from ragwitness.cli.common import say_error
from ragwitness.membership.measure import divide
from ragwitness.membership.results.evaluation import Battery, short_rate
from ragwitness.runner.task_runtime import as_documents
from ragwitness.stats.evaluation import bootstrap_interval
from ragwitness.stats.rates import Rate
from research.reproduce.files import leave_table
from research.reproduce.report import reproduction_json
from research.reproduce.tables import Case, Table

_WIDTH, _HEIGHT, _LEFT, _GAP = 380, 90, 40, 56
_POINTS = 120
_FEWEST = 2  # different values that a density is estimated of


def leave_scores(
    table: Table,
    results: Sequence[tuple[Case, Battery]],
    data: Path,
    seed: int,
    folder: Path,
    told: Mapping[str, str],
) -> None:
    """Write the scores of a table, or F1 by its thresholds.

    Args:
        table: What was run.
        results: Every case with what was found.
        data: Folder of the corpora, which are divided again to know the members.
        seed: Of the split.
        folder: Of the table.
        told: The command and the world, for people.
    """
    found: list[Indicator] = []
    for case, battery in results:
        sizes = battery.sizes
        split = divide(
            as_documents(str(data / case.corpus), note=say_error),
            members=sizes["members"],
            non_members=sizes["non-members"],
            calibration=sizes["calibration inside"],
            seed=seed,
        )
        found += indicators_of(case, battery, {document.id for document in split.members})
    by_gamma = bool(table.gammas)
    shown = thresholds_markdown(found, table.gammas) if by_gamma else indicators_markdown(found)
    lines = [f"**{table.title}**", "", shown]
    lines += ["What differs from the paper:", "", *(f"- {one}" for one in table.differs), ""]
    lines += [f"{key.capitalize()}: {value}" for key, value in told.items()]
    leave_table(
        folder,
        "\n".join(lines) + "\n",
        reproduction_json(table, results, told),
        None if by_gamma else indicators_svg(table.title, found),
    )


@dataclass(frozen=True, slots=True)
class Indicator:
    """What one audit measured, divided by the truth.

    Attributes:
        case: Label of the case.
        audit: Its name, with the variant of the score.
        inside: Scores of members, shape (n,).
        outside: Scores of non-members, shape (m,).
    """

    case: str
    audit: str
    inside: NDArray[np.float64]
    outside: NDArray[np.float64]


def indicators_of(case: Case, battery: Battery, members: Collection[str]) -> list[Indicator]:
    """Divide the scores of every audit by the truth; variants only where they were published.

    Args:
        case: The row of the table.
        battery: What was measured.
        members: Ids of the audited documents inside.
    """
    found = []
    for one in battery.audits:
        if "/" in one.audit and one.audit not in case.published:
            continue
        inside = [score for document, score in one.scores.items() if document in members]
        outside = [score for document, score in one.scores.items() if document not in members]
        found.append(Indicator(case.label, one.audit, np.array(inside), np.array(outside)))
    return found


def mean_rate(values: NDArray[np.float64]) -> Rate:
    """Return the mean with a bootstrap interval."""
    everything = np.ones(len(values), np.bool_)
    low, high = bootstrap_interval(lambda index: float(values[index].mean()), everything)
    return Rate(float(values.mean()), low, high, len(values))


def indicators_markdown(found: Sequence[Indicator]) -> str:
    """Return both means of every audit as a table."""
    lines = [
        "| case | audit | mean of members [95 %] | n | mean of non-members [95 %] | n |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        inside, outside = mean_rate(one.inside), mean_rate(one.outside)
        lines.append(
            f"| {one.case} | {one.audit} | {short_rate(inside)} | {inside.n}"
            f" | {short_rate(outside)} | {outside.n} |"
        )
    return "\n".join(lines) + "\n"


def thresholds_markdown(found: Sequence[Indicator], gammas: Sequence[float]) -> str:
    """Return the F1 of every audit where it calls a document in above each threshold (§4.4)."""
    names = [f"{one.case}, {one.audit} (n = {len(one.inside) + len(one.outside)})" for one in found]
    lines = [f"| gamma | {' | '.join(names)} |", "|---" * (len(found) + 1) + "|"]
    for gamma in gammas:
        rates = [short_rate(f1_above(one, gamma)) for one in found]
        lines.append(f"| {gamma:g} | {' | '.join(rates)} |")
    return "\n".join(lines) + "\n"


def f1_above(one: Indicator, gamma: float) -> Rate:
    """Return the F1 of "in where the score exceeds gamma", with a bootstrap interval."""
    called = np.concatenate([one.inside, one.outside]) > gamma
    labels = np.arange(len(called)) < len(one.inside)

    def f1(chosen: NDArray[np.int64]) -> float:
        both = int((called & labels)[chosen].sum())
        either = int(called[chosen].sum()) + int(labels[chosen].sum())
        return 2 * both / either

    low, high = bootstrap_interval(f1, labels)
    return Rate(f1(np.arange(len(called))), low, high, len(called))


def indicators_svg(title: str, found: Sequence[Indicator]) -> str:
    """Return one small figure per audit: the densities of members and of non-members."""
    height = 48 + len(found) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 2 * _LEFT} {height}"'
        f' role="img" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH + 2 * _LEFT}" height="{height}" fill="#fcfbf8"/>',
        f'<text x="16" y="24" font-size="13" font-weight="600">{escape(title)}</text>',
    ]
    for index, one in enumerate(found):
        bottom = 48 + index * (_HEIGHT + _GAP) + _HEIGHT
        every = np.concatenate([one.inside, one.outside])
        low, high = float(every.min()), float(every.max())
        curves = {
            "members": (_density(one.inside, low, high), "#17637f"),
            "non-members": (_density(one.outside, low, high), "#a83a12"),
        }
        top = max((curve.max() for curve, _ in curves.values()), default=1.0) or 1.0
        for shift, (name, (curve, colour)) in enumerate(curves.items()):
            path = "L".join(
                f"{_LEFT + _WIDTH * i / (_POINTS - 1):.1f} {bottom - _HEIGHT * y / top:.1f}"
                for i, y in enumerate(curve)
            )
            parts.append(
                f'<path d="M{path}" fill="{colour}" fill-opacity=".15" stroke="{colour}"/>'
                f'<text x="{_LEFT + _WIDTH}" y="{bottom - _HEIGHT + 12 + 16 * shift}"'
                f' text-anchor="end" fill="{colour}">{name}</text>'
            )
        parts.append(
            f'<path d="M{_LEFT} {bottom}H{_LEFT + _WIDTH}" stroke="#c9c5ba"/>'
            f'<text x="{_LEFT}" y="{bottom + 16}" fill="#5c5f62">{low:.3g}</text>'
            f'<text x="{_LEFT + _WIDTH}" y="{bottom + 16}" text-anchor="end" fill="#5c5f62">'
            f'{high:.3g}</text><text x="{_LEFT + _WIDTH / 2:g}" y="{bottom + 16}"'
            f' text-anchor="middle" font-weight="600">{escape(one.audit)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _density(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Kernel density estimate between the extremes; equal values are one spike."""
    places = np.linspace(low, high, _POINTS)
    if len(np.unique(values)) < _FEWEST:
        spike = np.zeros(_POINTS)
        if len(values):
            spike[np.abs(places - values[0]).argmin()] = 1.0
        return spike
    density: NDArray[np.float64] = gaussian_kde(values)(places)
    return density
