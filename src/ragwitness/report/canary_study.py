"""The controlled study of canaries beside what was published: Markdown and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ragwitness.canary.simulate.summary import detection, mean_of, utility
from ragwitness.report.canary_figure import Results
from ragwitness.runs.canary_study import StudyCase, StudyTable
from ragwitness.stats.evaluation import Rate

__all__ = ["study_json", "study_markdown"]

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


def _detection(results: Results) -> list[str]:
    lines = [
        "| condition | published AUROC / TPR at 10 % FPR | AUROC of Eq. 1 | TPR at 10 % FPR"
        " | violating with p ≤ .05 | compliant with p ≤ .05 | compliant, trigger named in the query"
        " | AUROC of the gain | reward bias | Eq. 1, violating | Eq. 1, compliant | Eq. 1, base"
        " | collapsed |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, outcomes in results:
        seen = detection(outcomes, case.statistic)
        cells = (
            case.label,
            _printed(case, "auroc", "tpr"),
            *map(_rate, (seen.auroc, seen.tpr, seen.found, seen.accused, seen.told)),
            *map(_rate, (seen.auroc_rank, seen.reward_bias, seen.amplification)),
            *map(_rate, (seen.amplification_compliant, seen.amplification_base)),
            _collapsed(seen.collapsed, seen.diverged, len(outcomes)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", _INTERVALS]


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
        traces = f"{bad[0].traces[0]:,} of {bad[0].traces[1]:,}" if bad else _NONE
        cells = (
            case.label,
            str(case.published.get("said", _NONE)),
            _rate(seen.amplification),
            _rate(mean_of([one.gained for one in bad])),
            _rate(seen.found),
            traces,
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
