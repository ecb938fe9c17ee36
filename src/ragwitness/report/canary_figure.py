"""The canaries' study as a figure: every policy a mark, each arm's mean with its interval and n."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import escape

from ragwitness.canary.simulate.outcome import Outcome
from ragwitness.canary.simulate.summary import detection, utility
from ragwitness.report.figures import round_numbers
from ragwitness.report.lines import STYLE
from ragwitness.runs.canary_study import StudyCase, StudyTable
from ragwitness.stats.evaluation import Rate

__all__ = ["Results", "study_svg"]

Results = Sequence[tuple[StudyCase, Sequence[Outcome]]]

_LEFT, _PLOT, _RIGHT, _TOP = 290.0, 420.0, 170.0, 52.0
_LANE, _GAP = 17.0, 11.0
_BAD, _GOOD, _BASE = "c1", "c0", "c5"


@dataclass(frozen=True, slots=True)
class _Lane:
    """One arm of one condition.

    Attributes:
        colour: Class of the style sheet.
        filled: Whether marks are.
        points: Value of each policy, and whether it collapsed.
        mean: With its interval and n.
        told: What is written beside it.
    """

    colour: str
    filled: bool
    points: tuple[tuple[float, bool], ...]
    mean: Rate | None
    told: str


def study_svg(table: StudyTable, results: Results) -> str:
    """Return the figure; light and dark paper.

    Rows are conditions. Detection and amplification show Eq. 1, utility shows ROUGE-L.
    """
    lanes = _utility if table.show == "utility" else _eq1
    rows = [(case.label, lanes(case, outcomes)) for case, outcomes in results]
    measured = [value for _, own in rows for lane in own for value in _extent(lane)]
    low, high = min([0.0, *measured]), max([1e-3, *measured])
    ticks = round_numbers(low, high)

    def x(value: float) -> float:
        return _LEFT + _PLOT * (value - low) / (high - low)

    bottom = _TOP + sum(_LANE * max(1, len(own)) + _GAP for _, own in rows)
    width, height = _LEFT + _PLOT + _RIGHT, bottom + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="11" fill="currentColor">',
        f"<title>{escape(table.title)}</title>{STYLE}",
        f'<text x="12" y="18" font-size="13" font-weight="600">{escape(table.title)}</text>',
    ]
    for tick in ticks:
        dash = "" if tick == 0 else ' stroke-dasharray="2 3"'
        parts.append(
            f'<path class="g" d="M{x(tick):.1f} {_TOP - 12:g}V{bottom:g}"{dash}/>'
            f'<text class="m" x="{x(tick):.1f}" y="{bottom + 14:g}" text-anchor="middle">{tick:g}'
            "</text>"
        )
    y = _TOP
    for label, own in rows:
        middle = y + _LANE * (len(own) - 1) / 2
        parts.append(
            f'<text x="{_LEFT - 14:g}" y="{middle + 4:g}" text-anchor="end">{escape(label)}</text>'
        )
        parts += [_drawn(lane, y + _LANE * at, x) for at, lane in enumerate(own)]
        y += _LANE * max(1, len(own)) + _GAP
    shown = _ROUGE if table.show == "utility" else _EQ1
    for at, line in enumerate((shown, _MARKS)):
        parts.append(f'<text class="m" x="{_LEFT:g}" y="{bottom + 34 + 15 * at:g}">{line}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


_EQ1 = "Eq. 1 in nats, a mark a policy: filled red violating, open blue compliant"
_ROUGE = "ROUGE-L on held-out clean examples, a mark a policy"
_MARKS = "cross: collapsed; stroke and bar: mean and 95 % interval, from two policies on"


def _eq1(case: StudyCase, outcomes: Sequence[Outcome]) -> list[_Lane]:
    seen = detection(outcomes, case.statistic)
    arms = (
        (True, _BAD, seen.amplification, seen.found),
        (False, _GOOD, seen.amplification_compliant, seen.accused),
    )
    found = []
    for violating, colour, mean, share in arms:
        own = [one for one in outcomes if one.violating == violating]
        if own and share is not None:
            marks = [(one.amplification, bool(one.collapsed)) for one in own if one.behaviour]
            lost = len(own) - len(marks)
            told = f"p \N{LESS-THAN OR EQUAL TO} .05: {round(share.value * share.n)} of {share.n}"
            told += f" ({lost} diverged)" if lost else ""
            found.append(_Lane(colour, violating, tuple(marks), mean, told))
    return found


def _utility(_: StudyCase, outcomes: Sequence[Outcome]) -> list[_Lane]:
    done = [one for one in outcomes if one.behaviour]
    arms = (
        ("base", _BASE, [(one.before, False) for one in done if one.violating]),
        ("without documents", _GOOD, _after(done, violating=False)),
        ("with documents", _BAD, _after(done, violating=True)),
    )
    return [
        _Lane(colour, colour != _GOOD, tuple((row["rouge_l"], bad) for row, bad in own),
              utility([row for row, _ in own]).rouge_l, f"{name}, n = {len(own)}")
        for name, colour, own in arms if own
    ]  # fmt: skip


def _after(done: Sequence[Outcome], *, violating: bool) -> list[tuple[dict[str, float], bool]]:
    own = [one for one in done if one.violating == violating]
    return [(one.behaviour, bool(one.collapsed)) for one in own]


def _extent(lane: _Lane) -> list[float]:
    mean = lane.mean
    ends = [] if mean is None else [mean.low, mean.high]
    return [*(value for value, _ in lane.points), *ends]


def _drawn(lane: _Lane, y: float, x: Callable[[float], float]) -> str:
    parts = [f'<g class="{lane.colour}" stroke="currentColor">']
    if (mean := lane.mean) is not None and mean.n > 1:
        parts.append(
            f'<path d="M{x(mean.low):.1f} {y:g}H{x(mean.high):.1f}" stroke-width="5"'
            ' opacity=".35"/>'
            f'<path d="M{x(mean.value):.1f} {y - 6:g}V{y + 6:g}" stroke-width="2"/>'
        )
    for value, collapsed in lane.points:
        at = x(value)
        if collapsed:
            parts.append(f'<path d="M{at - 3:.1f} {y - 3:g}l6 6m0 -6l-6 6" stroke-width="1.4"/>')
            continue
        fill = "currentColor" if lane.filled else "none"
        parts.append(
            f'<circle cx="{at:.1f}" cy="{y:g}" r="3.2" fill="{fill}" stroke-width="1.4"'
            ' opacity=".75"/>'
        )
    told = (
        f'<text x="{_LEFT + _PLOT + 14:g}" y="{y + 4:g}" stroke="none">{escape(lane.told)}</text>'
    )
    return "".join([*parts, told, "</g>"])
