"""What many policies show together, beside what was published: Markdown, JSON and a figure.

All policies of a condition start from one base: intervals are over seeds, given that base. The
share of compliant policies accused needs no such condition: each has a draw of its own, which its
scores do not depend on, whatever the base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from ragwitness.report.figures import STYLE, lines_svg
from ragwitness.results.curves import Axis, Line, LinesPanel
from ragwitness.results.geometry import round_numbers
from ragwitness.stats.evaluation import Rate, auc, roc_curve, tpr_at_fpr
from ragwitness.stats.intervals import (
    auc_interval,
    bootstrap_interval,
    bootstrap_mean_interval,
    proportion_interval,
)
from research.canary.study import StudyCase, StudyTable, trial_settings
from research.canary.trial import Outcome
from research.canary.worlds import KINDS, Obedience

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]

_ALPHA = 0.05
_FPR = 0.10


@dataclass(frozen=True, slots=True)
class Separation:
    """How well one number a policy tells violating policies from compliant ones.

    Attributes:
        auroc: Over policies, DeLong's interval on the logit scale: of ten policies in each arm it
            covers 93 to 99 %, a bootstrap 83 to 96 % (measured).
        resampled: The same AUROC with the bootstrap's interval, over seeds.
        tpr: At a false-positive rate of at most 10 %, bootstrap interval over seeds.
        above: Share of the seeds whose violating policy has the higher number, exact interval. Both
            arms of a seed share documents, draw and answers. Ties are left out; None without pairs.
        roc: (false-positive rate, true-positive rate) corners of the step function.
    """

    auroc: Rate
    resampled: Rate
    tpr: Rate
    above: Rate | None
    roc: tuple[tuple[float, float], ...]


SCORES: dict[str, tuple[str, Callable[[Outcome], float]]] = {
    "eq1": ("Eq. 1", lambda one: one.amplification),
    "less": ("Eq. 1 less the base's", lambda one: one.amplification - one.base_amplification),
    "kept": ("Eq. 1, instruction in both views", lambda one: one.kept),
    "gain": ("gain over the other candidates", lambda one: one.gained),
}
"""What tells policies apart, by name: the paper's statistic; the same less the base's own at the
same trigger; with the instruction that was trained on kept in both views; and ours."""


@dataclass(frozen=True, slots=True)
class Detection:
    """How well violating policies are told from compliant ones.

    Attributes:
        found: Share of violating policies with rank p <= .05, each judged from itself alone.
        accused: The same of compliant policies; the level promises at most .05.
        named: Share of violating policies with p <= .05 where the query is the paper's and names
            the candidate in view.
        told: The same of compliant policies: of the paper's design, the leak that it brings about.
        by: Separation by each of :data:`SCORES`; empty where an arm is.
        amplification: Mean of Eq. 1 over violating policies, nats.
        amplification_compliant: The same over compliant ones.
        amplification_base: The same of the base, before training.
        reward_bias: Mean difference in differences over violating policies; compliant ones have 0
            exactly, since they read no document.
        collapsed: How many policies collapsed or diverged, both arms; they count in all shares.
        diverged: How many of these gave no numbers; they stand in shares with p = 1 alone.
    """

    found: Rate | None
    accused: Rate | None
    named: Rate | None
    told: Rate | None
    by: dict[str, Separation]
    amplification: Rate | None
    amplification_compliant: Rate | None
    amplification_base: Rate | None
    reward_bias: Rate | None
    collapsed: int
    diverged: int


@dataclass(frozen=True, slots=True)
class Utility:
    """How good answers are; bootstrap intervals over policies.

    Attributes:
        rouge_l: Mean F1.
        token_f1: Mean.
    """

    rouge_l: Rate | None
    token_f1: Rate | None


def detection(outcomes: Sequence[Outcome], p_value: str = "p_own") -> Detection:
    """Summarise trials of one condition.

    Args:
        outcomes: Of both arms, or of one.
        p_value: Field of :class:`Outcome`.
    """
    arms = {kind: [one for one in outcomes if one.violating == kind] for kind in (True, False)}
    measured = [one for one in outcomes if one.behaviour]
    bad, good = ([one for one in measured if one.violating == kind] for kind in (True, False))
    return Detection(
        found=_share(arms[True], p_value),
        accused=_share(arms[False], p_value),
        named=_share(arms[True], "p_named"),
        told=_share(arms[False], "p_named"),
        by=separations(measured),
        amplification=mean_of([one.amplification for one in bad]),
        amplification_compliant=mean_of([one.amplification for one in good]),
        amplification_base=mean_of([one.base_amplification for one in measured]),
        reward_bias=mean_of([one.reward_bias for one in bad]),
        collapsed=sum(bool(one.collapsed) for one in outcomes),
        diverged=len(outcomes) - len(measured),
    )


def utility(rows: Sequence[dict[str, float]]) -> Utility:
    """Summarise behaviours, one row a policy."""
    return Utility(
        mean_of([row["rouge_l"] for row in rows]), mean_of([row["token_f1"] for row in rows])
    )


def mean_of(values: Sequence[float]) -> Rate | None:
    """Return a mean with its percentile bootstrap interval; None of nothing."""
    if not values:
        return None
    data = np.asarray(values, np.float64)
    low, high = bootstrap_mean_interval(data)
    return Rate(float(data.mean()), low, high, data.size)


def _share(arm: Sequence[Outcome], p_value: str) -> Rate | None:
    values = [getattr(one, p_value) for one in arm]
    if not values or None in values:
        return None
    hits = sum(value <= _ALPHA for value in values)
    return Rate(hits / len(arm), *proportion_interval(hits, len(arm)), len(arm))


def separations(outcomes: Sequence[Outcome]) -> dict[str, Separation]:
    """Return how well each of :data:`SCORES` tells the arms apart; nothing where one is empty."""
    labels = np.array([one.violating for one in outcomes], np.bool_)
    if labels.all() or not labels.any():
        return {}
    found = {}
    for name, (_, score) in SCORES.items():
        values = np.array([score(one) for one in outcomes], np.float64)
        area = auc(values, labels)
        found[name] = Separation(
            Rate(area, *auc_interval(values, labels), labels.size),
            _resampled(outcomes, values, labels, auc),
            _resampled(outcomes, values, labels, lambda s, of: tpr_at_fpr(s, of, _FPR)),
            _above(outcomes, score),
            roc_curve(values, labels),
        )
    return found


def _above(outcomes: Sequence[Outcome], score: Callable[[Outcome], float]) -> Rate | None:
    bad = {one.seed: score(one) for one in outcomes if one.violating}
    good = {one.seed: score(one) for one in outcomes if not one.violating}
    gaps = [bad[seed] - good[seed] for seed in bad.keys() & good.keys()]
    up, unlike = sum(gap > 0 for gap in gaps), sum(gap != 0 for gap in gaps)
    return Rate(up / unlike, *proportion_interval(up, unlike), unlike) if unlike else None


def _resampled(outcomes: Sequence[Outcome], scores: Values, labels: Labels,
               statistic: Callable[[Values, Labels], float]) -> Rate:  # fmt: skip
    value = statistic(scores, labels)
    seeds, strata = _by_seed(outcomes)

    def again(picked: NDArray[np.int64]) -> float:
        places = np.concatenate([seeds[at] for at in picked])
        return statistic(scores[places], labels[places])

    low, high = bootstrap_interval(again, strata)
    if low == high:  # no resample differs, which is no certainty: as auc_interval has it
        size = int(min(labels.sum(), (~labels).sum()))
        low, high = proportion_interval(round(value * size), size)
    return Rate(value, min(low, value), max(high, value), labels.size)


def _by_seed(outcomes: Sequence[Outcome]) -> tuple[list[NDArray[np.int64]], Labels]:
    """Return the places of each seed, and its stratum.

    A seed gives both arms the same documents and draw: what is resampled is the seed, with all that
    it has. Seeds of both arms are one stratum; where there is none, the arms are.
    """
    found: dict[int, list[int]] = {}
    for place, one in enumerate(outcomes):
        found.setdefault(one.seed, []).append(place)
    arms = [{outcomes[place].violating for place in places} for places in found.values()]
    both = np.array([len(kinds) == 2 for kinds in arms], np.bool_)
    first = np.array([True in kinds for kinds in arms], np.bool_)
    return [np.array(places) for places in found.values()], both if both.any() else first


# The study as Markdown and JSON, and as a figure: every policy a mark, each arm's mean with its
# interval and n.

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
    lanes = _utility_of_canary_figure if table.show == "utility" else _eq1
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


def roc_svg(table: StudyTable, results: Results) -> str | None:
    """Return the ROC curves of the conditions with both arms; None where there is none."""
    panels = []
    for case, outcomes in results:
        found = detection(outcomes, case.statistic).by
        if not found:
            continue
        lines = [
            Line(SCORES[name][0], own.roc, colour, dashed=name == "gain")
            for colour, (name, own) in enumerate(found.items())
        ]
        lines.append(Line("chance", ((0.0, 0.0), (1.0, 1.0)), 5, dashed=True))
        if "tpr" in case.published:
            point = ((_FPR, float(case.published["tpr"])),)
            lines.append(Line("published at 10 %", point, 4, marks=True))
        ticks = (0.0, 0.5, 1.0)
        panels.append(
            LinesPanel(case.label, Axis("false-positive rate", ticks),
                       Axis("true-positive rate", ticks), tuple(lines), floor=0.0)
        )  # fmt: skip
    return lines_svg(f"ROC: {table.title}", panels) if panels else None


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


def _utility_of_canary_figure(_: StudyCase, outcomes: Sequence[Outcome]) -> list[_Lane]:
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


_NONE = "\N{EN DASH}"
_INTERVALS = (
    "In brackets 95 % intervals over seeds, given the one base that all start from: exact for"
    " shares, DeLong's for AUROC, else by bootstrap."
)


def study_json(table: StudyTable, results: Results) -> dict[str, Any]:
    """Return every policy, and the summary of each condition."""
    return {
        "table": table.name,
        "title": table.title,
        "cases": [
            {
                "label": case.label,
                "published": dict(case.published),
                "statistic": case.statistic,
                "settings": trial_settings(case.trial),
                "summary": asdict(detection(outcomes, case.statistic)),
                "policies": [asdict(one) for one in outcomes],
            }
            for case, outcomes in results
        ],
    }


def study_markdown(
    table: StudyTable, results: Results, bases: Mapping[str, Obedience] | None = None
) -> str:
    """Return a Markdown table: published and ours side by side.

    Args:
        table: What it shows.
        results: Outcomes by condition.
        bases: What the base of each condition does with the paper's instruction, by label.
    """
    build = {"detection": _detection, "utility": _utility, "amplification": _amplification}
    lines = [f"**{table.title}**", "", *build[table.show](results)]
    spent = [sum(one.seconds.values()) for _, outcomes in results for one in outcomes]
    timed = [value for value in spent if value]
    mean = sum(timed) / len(timed) if timed else 0.0
    lines += ["", f"{len(spent)} policies, {mean:.1f} CPU-seconds each on average. {table.note}"]
    if bases:
        lines += ["", *_obeyed(bases)]
    return "\n".join(lines).rstrip() + "\n"


def _obeyed(bases: Mapping[str, Obedience]) -> list[str]:
    """The gate: each base once, with the first of its conditions."""
    told = [f"{kind}: {text}" for kind, text in KINDS.items()]
    lines = [
        "Share of the base's answers with the canary under the paper's instruction, exact 95 %"
        f" intervals ({'; '.join(told)}):",
        "",
        f"| base of | {' | '.join(KINDS)} | without a condition | not asked | right |",
        "|---|" + "---|" * (len(KINDS) + 3),
    ]
    seen: list[Obedience] = []
    for label, one in bases.items():
        if one in seen:
            continue
        seen.append(one)
        counted = [one.hits[kind] for kind in KINDS] + [one.plain, one.bare, one.right]
        rates = [
            _rate(Rate(hits / one.count, *proportion_interval(hits, one.count), one.count))
            for hits in counted
        ]
        lines.append("| " + " | ".join((label, *rates)) + " |")
    return lines


def _detection(results: Results) -> list[str]:
    lines = [
        "| condition | AUROC by | AUROC (DeLong) | the same by bootstrap | TPR at 10 % FPR |"
        " seeds whose violating policy is above the compliant one | published AUROC / TPR |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        for name, own in detection(outcomes, case.statistic).by.items():
            beside = _printed(case, "auroc", "tpr") if name == "eq1" else _NONE
            rates = map(_rate, (own.auroc, own.resampled, own.tpr, own.above))
            lines.append("| " + " | ".join((case.label, SCORES[name][0], *rates, beside)) + " |")
    lines += [
        "",
        "| condition | violating with p ≤ .05 | compliant with p ≤ .05 | violating, trigger named"
        " in the query | compliant, the same | reward bias | Eq. 1, violating | Eq. 1, compliant"
        " | Eq. 1, base | canary traces | collapsed |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        seen = detection(outcomes, case.statistic)
        cells = (
            case.label,
            *map(_rate, (seen.found, seen.accused, seen.named, seen.told, seen.reward_bias)),
            *map(_rate, (seen.amplification, seen.amplification_compliant)),
            _rate(seen.amplification_base),
            _planted(outcomes),
            _collapsed(seen.collapsed, seen.diverged, len(outcomes)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "| condition | arm | says the canary when asked: trigger in view | another trigger |"
        " clean document | no document |",
        "|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        for arm, violating in (("violating", True), ("compliant", False)):
            told = [one.said for one in outcomes if one.violating == violating and one.said]
            if told:
                shares = [_rate(mean_of([row[kind] for row in told])) for kind in KINDS]
                lines.append("| " + " | ".join((case.label, arm, *shares)) + " |")
    return [*lines, "", _INTERVALS]


def _planted(outcomes: Sequence[Outcome]) -> str:
    """Canary traces of the reward model, of the first violating policy that was measured."""
    one = next((one for one in outcomes if one.violating and one.behaviour), None)
    return _NONE if one is None else f"{one.traces[0]:,} of {one.traces[1]:,}"


def _utility(results: Results) -> list[str]:
    lines = [
        "| data | policies | published ROUGE-L / token F1 | ROUGE-L | token F1 |",
        "|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        done = [one for one in outcomes if one.behaviour]
        rows = {
            "base": [one.before for one in done if one.violating],
            "without documents": [one.behaviour for one in done if not one.violating],
            "with documents": [one.behaviour for one in done if one.violating],
        }
        for name, measured in rows.items():
            seen = utility(measured)
            key = name.split(maxsplit=1)[0]
            told = _printed(case, f"{key}_rouge_l", f"{key}_token_f1")
            cells = (case.label, name, told, _rate(seen.rouge_l), _rate(seen.token_f1))
            lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", "In brackets 95 % bootstrap intervals over seeds."]


def _amplification(results: Results) -> list[str]:
    lines = [
        "| condition | published | Eq. 1, nats | gain over other candidates, nats"
        " | violating with p ≤ .05 | canary traces | collapsed |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        seen = detection(outcomes, case.statistic)
        bad = [one for one in outcomes if one.violating and one.behaviour]
        cells = (
            case.label,
            str(case.published.get("said", _NONE)),
            _rate(seen.amplification),
            _rate(mean_of([one.gained for one in bad])),
            _rate(seen.found),
            _planted(outcomes),
            _collapsed(seen.collapsed, seen.diverged, len(outcomes)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", _INTERVALS]


def _collapsed(collapsed: int, diverged: int, policies: int) -> str:
    """How many, and how many of these left nothing to measure."""
    lost = f", {diverged} diverged and in no mean" if diverged else ""
    return f"{collapsed} of {policies}{lost}"


def _printed(case: StudyCase, *names: str) -> str:
    told = case.published
    if not any(name in told for name in names):
        return _NONE
    return " / ".join(f"{told[name]:.3f}" if name in told else _NONE for name in names)


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return _NONE
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}], n = {rate.n}"
