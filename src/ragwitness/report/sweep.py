"""A sweep over coalition sizes and budgets: table for 80 columns, JSON and figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragwitness.collusion.gates import Findings
from ragwitness.collusion.scalar import Cell, SweepConfig
from ragwitness.privacy.accounting.inference import auc_of, mu_of_auc
from ragwitness.report import wording as say
from ragwitness.report.lines import Axis, Line, Panel, lines_svg

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["sweep_json", "sweep_svg", "sweep_terminal"]

_COLOURS = {"pass": "green", "fail": "red", "not resolved": "yellow"}


def sweep_json(config: SweepConfig, cells: Sequence[Cell], findings: Findings) -> dict[str, Any]:
    """Return everything, strict JSON."""
    return {
        "config": asdict(config),
        "cells": [
            asdict(cell) | {"most": most}
            for cell, most in zip(cells, findings.ceilings, strict=True)
        ],
        "findings": {
            "band": findings.band,
            "outside": findings.outside,
            "within_one_error": findings.within_one,
            "chance_of_all_within_one_error": findings.chance,
            "rows": [
                {name: _finite(value) for name, value in asdict(row).items()}
                for row in findings.rows
            ],
            "gates": [asdict(gate) for gate in findings.gates],
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def sweep_terminal(config: SweepConfig, cells: Sequence[Cell], findings: Findings) -> Group:
    """Return the cells, the slopes and the gates for a terminal of 80 columns."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("epsilon", "k", "sigma", "AUC", "95 %", "theory", "z", "at most"):
        table.add_column(name, justify="right", no_wrap=True)
    for at, (cell, most) in enumerate(zip(cells, findings.ceilings, strict=True)):
        first = at == 0 or cells[at - 1].epsilon != cell.epsilon
        table.add_row(
            f"{cell.epsilon:g}" if first else "",
            str(cell.accounts),
            f"{cell.sigma:.4g}" if first else "",
            f"{cell.area.value:.4f}",
            f"{cell.area.low:.4f} to {cell.area.high:.4f}",
            f"{cell.predicted:.4f}",
            f"{cell.z:+.1f}".replace("-", "\N{MINUS SIGN}"),
            say.rate_text(most),
        )
    parts: list[Any] = [table]
    for gate in findings.gates:
        style = _COLOURS[gate.state] if not gate.name.startswith("P2") else ""
        parts.append(Text(f"{gate.name}: {gate.state}: {gate.why}", style=style))
    parts += [Text(line, style="dim") for line in _notes(config, cells, findings)]
    return Group(*parts)


def _notes(config: SweepConfig, cells: Sequence[Cell], findings: Findings) -> list[str]:
    n = len(cells)
    growth = ", ".join(
        f"{row.growth:.2f} at {row.epsilon:g}" for row in findings.rows if math.isfinite(row.growth)
    )
    largest, smallest = max(config.accounts), min(config.accounts)
    lines = [
        f"{say.count(config.trials)} paired trials per cell; q = {say.count(config.queries)},"
        f" delta = {config.delta:g}, gap {config.gap:g}, {config.calibration} noise. theory:"
        " Phi(sqrt(kq) gap / (sigma sqrt 2)). z: in exact standard errors. at most: what"
        " Theorem 3.4 allows.",
        f"{findings.outside} of {n} cells outside the band |z| < {findings.band:.2f}, which all"
        " keep with 95 % where theory holds.",
        f"The paper's criterion, within one standard error: {findings.within_one} of {n}; all"
        f" {n} would be chance once in {1 / findings.chance:,.0f}.",
    ]
    if growth and largest > smallest:
        root = math.sqrt(largest / smallest)
        lines.append(
            f"AUC excess at k = {largest} over that at {smallest} (sqrt: {root:.3g}): {growth}."
        )
    return lines


def sweep_svg(config: SweepConfig, cells: Sequence[Cell]) -> str:
    """Return the AUC against k, and the scale on which theory is a line."""
    largest = max(config.accounts)
    dense = [1 + (largest - 1) * step / 60 for step in range(61)] if largest > 1 else [1.0]
    areas, scaled = [], []
    for at, epsilon in enumerate(config.epsilons):
        mine = [cell for cell in cells if cell.epsilon == epsilon]
        one = mine[0].mu / math.sqrt(mine[0].accounts)
        theory, measured = f"epsilon {epsilon:g}, theory", f"epsilon {epsilon:g}, measured"
        areas += [
            Line(theory, tuple((k, auc_of(one * math.sqrt(k))) for k in dense), at),
            Line(
                measured,
                tuple((c.accounts, c.area.value, c.area.low, c.area.high) for c in mine),
                at,
                marks=True,
            ),
        ]
        ends = (0.0, math.sqrt(largest))
        scaled += [
            Line(theory, tuple((root, one * root) for root in ends), at),
            Line(measured, tuple(_probit(cell) for cell in mine if cell.area.high < 1), at, True),
        ]
    ks = tuple(float(k) for k in sorted(config.accounts))
    return lines_svg(
        "Accounts that pool their answers: how well they tell one document's presence",
        [
            Panel("coalition size k", Axis("k", ks, log=True), Axis("AUC"), tuple(areas), 0.5),
            Panel(
                "P1: a line in sqrt k",
                Axis("sqrt k"),
                Axis("sqrt 2 · probit of AUC"),
                tuple(scaled),
                0.0,
            ),
        ],
    )


def _probit(cell: Cell) -> tuple[float, ...]:
    area = cell.area
    return (
        math.sqrt(cell.accounts),
        *(mu_of_auc(value) for value in (area.value, area.low, area.high)),
    )
