"""The evaluation of many audits: JSON, a table for the terminal, one HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragwitness.report import figures, wording
from ragwitness.report.benign import benign_json, benign_rows, unanswered
from ragwitness.report.html import page, write_page
from ragwitness.runs.battery import Battery, Measured
from ragwitness.stats.evaluation import Rate

__all__ = [
    "Control",
    "battery_json",
    "battery_values",
    "between",
    "controls_of",
    "flattery",
    "ranked",
    "short",
    "write_battery_html",
]

_CHANCE = 0.5
_WIDE = 0.3  # an interval wider than this excludes next to nothing


@dataclass(frozen=True, slots=True)
class Control:
    """A control in words.

    Attributes:
        name: As in the JSON.
        rate: Its AUC.
        expected: What it should be.
        verdict: Whether it is.
        style: ``"in"`` where it fails, else ``"out"``.
    """

    name: str
    rate: Rate
    expected: str
    verdict: str
    style: str


def controls_of(battery: Battery) -> list[Control]:
    """Judge every control; near-duplicates have no promised value."""
    return [_judged(name, rate) for name, rate in battery.controls.items()]


def _judged(name: str, rate: Rate) -> Control:
    if math.isnan(rate.value):
        return Control(name, rate, "", "not measured", "in")
    if name.startswith("near-duplicates"):
        return Control(name, rate, "none promised", "", "out")
    # A trained guesser below .5 has nothing; a length or an audit below .5 can be turned round.
    one_sided = name == "blind words"
    expected = "low end at most .5" if one_sided else "interval holds .5"
    if rate.low > _CHANCE or (rate.high < _CHANCE and not one_sided):
        return Control(name, rate, expected, "FAILS", "in")
    wide = rate.high - rate.low > _WIDE
    return Control(name, rate, expected, "too few to tell" if wide else "holds", "out")


def battery_json(battery: Battery) -> dict[str, Any]:
    """Return ``{"audits": {name: {...}}, "controls": {name: {...}}, ...}``, strict JSON."""
    return {
        "audits": {one.audit: _audit(one) for one in battery.audits},
        "controls": {
            name: {
                "auc": _finite(r.value),
                "auc_interval": [_finite(r.low), _finite(r.high)],
                "n": r.n,
            }
            for name, r in battery.controls.items()
        },
        "paired": [
            {
                "first": a,
                "second": b,
                "auc_difference": r.value,
                "interval": [r.low, r.high],
                "n": r.n,
            }
            for (a, b), r in battery.paired.items()
        ],
        "benign": benign_json(battery.benign),
        "skipped": battery.skipped,
        "sizes": battery.sizes,
        "near_duplicate_likeness": _finite(battery.likeness),
        "settings": battery.settings,
        "seconds": battery.seconds,
    }


def _audit(one: Measured) -> dict[str, Any]:
    data: dict[str, Any] = _strict(asdict(one))
    rate = data["auc"]
    return data | {
        "auc": rate["value"],
        "auc_interval": [rate["low"], rate["high"]],
        "n": rate["n"],
        "roc": [list(corner) for corner in one.roc],
    }


def _strict(value: Any) -> Any:
    """Replace what JSON cannot say (NaN, infinity) by null, all the way down."""
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def between(rate: Rate) -> str:
    """Return an estimate with its interval, short enough for a narrow table."""
    if math.isnan(rate.value):
        return wording.MISSING
    return f"{short(rate.value)} [{short(rate.low)}, {short(rate.high)}]"


def short(value: float) -> str:
    """Return a rate with three decimals and no leading zero: 80 columns are few."""
    return f"{value:.3f}".removeprefix("0")


def ranked(audits: Sequence[Measured]) -> list[Measured]:
    """Audits by AUC, highest first."""
    return sorted(audits, key=lambda one: -one.auc.value)


def flattery(battery: Battery) -> str:
    """Say which audits the embedded reader flatters; empty for another generator."""
    if not battery.settings.get("generator", "").startswith("reader"):
        return ""
    return (
        "The embedded reader was trained on the questions that rag-mia, dcmi and interrogation ask:"
        " they are flattered on it. The ranking of audits on a small model does not carry over to"
        " large ones."
    )


def battery_values(battery: Battery) -> dict[str, object]:
    """Return everything that the template of an evaluation lays out."""
    audits = ranked(battery.audits)
    rows = [
        {
            "name": one.audit,
            "rates": [
                ("AUC", one.auc),
                ("AUC, retrieved only", one.auc_retrieved),
                ("Accuracy", one.accuracy),
                ("Precision", one.precision),
                ("Recall", one.recall),
                ("F1", one.f1),
                ("TPR at 1 % FPR", one.tpr_at_1_fpr),
                ("FPR at p ≤ .05", one.false_positives["0.05"]),
                ("FPR at p ≤ .01", one.false_positives["0.01"]),
                ("TPR at p ≤ .05", one.true_positives["0.05"]),
                ("Recall@k", one.recall_at_k),
                ("Unscorable", one.unscorable),
            ],
            "one": one,
            "roc": figures.roc_of(one.roc, one.auc.value, one.audit),
        }
        for one in audits
    ]
    pairs = sorted(battery.paired.items(), key=lambda item: -abs(item[1].value))
    return {
        "battery": battery,
        "rows": rows,
        "controls": controls_of(battery),
        "pairs": [(first, second, rate, wording.signed(rate)) for (first, second), rate in pairs],
        "benign": None if battery.benign is None else benign_rows(battery.benign),
        "unanswered": "" if battery.benign is None else unanswered(battery.benign),
        "between": between,
        "count": sum("/" not in one.audit for one in audits),
        "flattered": flattery(battery),
        "seconds": wording.duration(battery.seconds),
    }


def write_battery_html(battery: Battery, path: Path) -> None:
    """Write the page.

    Raises:
        InputError: The file cannot be written.
    """
    write_page(page("battery.html.j2", **battery_values(battery)), path)
