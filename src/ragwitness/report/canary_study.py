"""The controlled study of canaries beside what was published: Markdown, JSON and an SVG figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import escape

from ragwitness.canary.simulate.outcome import Outcome
from ragwitness.canary.simulate.summary import detection, mean_of, utility
from ragwitness.runs.canary_study import StudyCase, StudyTable
from ragwitness.stats.evaluation import Rate

__all__ = ["study_json", "study_markdown", "study_svg"]

_NONE = "\N{EN DASH}"
_ROW, _LEFT, _PLOT, _TOP = 24, 260, 420, 56
Results = Sequence[tuple[StudyCase, Sequence[Outcome]]]


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
                "settings": asdict(case.trial),
                "summary": asdict(detection(outcomes, case.statistic)),
                "policies": [asdict(one) for one in outcomes],
            }
            for case, outcomes in results
        ],
    }


def study_markdown(table: StudyTable, results: Results) -> str:
    """Return a Markdown table: published and ours side by side."""
    build = {"detection": _detection, "utility": _utility, "amplification": _amplification}
    lines = [f"**{table.title}**", "", *build[table.show](results)]
    spent = [sum(one.seconds.values()) for _, outcomes in results for one in outcomes]
    timed = [value for value in spent if value]
    mean = sum(timed) / len(timed) if timed else 0.0
    lines += ["", f"{len(spent)} policies, {mean:.0f} CPU-seconds each on average. {table.note}"]
    return "\n".join(lines).rstrip() + "\n"


def study_svg(table: StudyTable, results: Results) -> str:
    """Return a figure: Eq. 1 of each policy as a dot, violating ones filled; a row a condition."""
    values = [one.amplification for _, outcomes in results for one in outcomes] or [0.0]
    low, high = min(*values, 0.0), max(*values, 0.0)
    span = (high - low) or 1.0
    height = _TOP + _ROW * len(results) + 46
    width = _LEFT + _PLOT + 40
    bottom = _TOP + _ROW * len(results)

    def x(value: float) -> float:
        return _LEFT + _PLOT * (value - low) / span

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="12"><title>{escape(table.title)}</title>'
        f'<rect width="{width}" height="{height}" fill="#fcfbf8"/>'
        f'<text x="16" y="24" font-size="14" font-weight="600">{escape(table.title)}</text>'
        f'<path d="M{x(0):.1f} {_TOP - 12}V{bottom}" stroke="#c9c5ba" stroke-dasharray="3 3"/>'
    ]
    parts += [
        f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle" fill="#5c5f62">{tick:.2g}'
        "</text>"
        for tick in sorted({low, 0.0, high})
    ]
    for row, (case, outcomes) in enumerate(results):
        y = _TOP + _ROW * row
        parts.append(
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(case.label)}</text>'
        )
        for one in outcomes:
            fill = "#a83a12" if one.violating else "#fcfbf8"
            colour = "#a83a12" if one.violating else "#17637f"
            parts.append(
                f'<circle cx="{x(one.amplification):.1f}" cy="{y + (-4 if one.violating else 4)}"'
                f' r="4" fill="{fill}" stroke="{colour}" stroke-width="1.5" opacity=".8"/>'
            )
    parts.append(
        f'<text x="{_LEFT}" y="{bottom + 36}" fill="#5c5f62">amplification (Eq. 1), nats: filled'
        " violating policies, open compliant ones</text></svg>"
    )
    return "\n".join(parts) + "\n"


def _detection(results: Results) -> list[str]:
    lines = [
        "| condition | published AUROC / TPR at 10 % FPR | AUROC of Eq. 1 | TPR at 10 % FPR"
        " | violating with p ≤ .05 | compliant with p ≤ .05 | AUROC of the rank's score"
        " | reward bias | Eq. 1, violating | Eq. 1, compliant | collapsed |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        seen = detection(outcomes, case.statistic)
        cells = (
            case.label,
            _printed(case, "auroc", "tpr"),
            *map(_rate, (seen.auroc, seen.tpr, seen.found, seen.accused, seen.auroc_rank)),
            *map(_rate, (seen.reward_bias, seen.amplification, seen.amplification_compliant)),
            f"{seen.collapsed} of {len(outcomes)}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", "In brackets 95 % intervals: exact for shares, else by bootstrap."]


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
            "with documents and canaries": [one.behaviour for one in done if one.violating],
        }
        for name, measured in rows.items():
            seen = utility(measured)
            key = name.split(maxsplit=1)[0]
            told = _printed(case, f"{key}_rouge_l", f"{key}_token_f1")
            cells = (case.label, name, told, _rate(seen.rouge_l), _rate(seen.token_f1))
            lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", "In brackets 95 % bootstrap intervals over policies."]


def _amplification(results: Results) -> list[str]:
    lines = [
        "| condition | published | Eq. 1, nats | gain over other candidates, nats"
        " | violating with p ≤ .05 | canary traces | collapsed |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        seen = detection(outcomes, case.statistic)
        bad = [one for one in outcomes if one.violating]
        traces = f"{bad[0].traces[0]:,} of {bad[0].traces[1]:,}" if bad else _NONE
        cells = (
            case.label,
            str(case.published.get("said", _NONE)),
            _rate(seen.amplification),
            _rate(mean_of([one.gained for one in bad])),
            _rate(seen.found),
            traces,
            f"{seen.collapsed} of {len(outcomes)}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", "In brackets 95 % intervals: exact for shares, else by bootstrap."]


def _printed(case: StudyCase, *names: str) -> str:
    if not all(name in case.published for name in names):
        return _NONE
    return " / ".join(f"{case.published[name]:.3f}" for name in names)


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return _NONE
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}], n = {rate.n}"
