"""``ragwitness collusion sweep``: does the privacy of pooled answers fall as theory says?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from ragwitness.collusion.noise import Calibration

__all__ = ["sweep"]

_Number = TypeVar("_Number", int, float)


def sweep(
    accounts: Annotated[
        str, typer.Option(help="Coalition sizes k, with commas between.")
    ] = "1,2,4,8,16",
    epsilons: Annotated[
        str, typer.Option(help="Budgets per account, with commas between.")
    ] = "0.1,1,10",
    queries: Annotated[int, typer.Option(help="Queries of each account in a window.")] = 1000,
    delta: Annotated[float, typer.Option(help="Failure probability per account.")] = 1e-6,
    gap: Annotated[
        float, typer.Option(help="Score with the document minus score without it.")
    ] = 1.0,
    sensitivity: Annotated[float, typer.Option(help="What the noise is calibrated for.")] = 1.0,
    calibration: Annotated[
        str,
        typer.Option(help="classic (the paper's (3.4)), leading (sigma = S/epsilon_q) or exact."),
    ] = "classic",
    trials: Annotated[int, typer.Option(help="Paired worlds per cell.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
    json_out: Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Also write an SVG figure here.")] = None,
) -> None:
    """Simulate accounts that pool the noisy scores of one probe. Judges the predictions.

    Measures the AUC of telling whether one document is in the index, for every coalition size and
    budget per account, against theory: P1 (slope) and P3 (tightness) are gates, P2 (collapse of
    all budgets onto one curve) is a diagnostic. Asks no system.
    """
    import json

    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.outputs import check_writable
    from ragwitness.collusion.gates import judge
    from ragwitness.collusion.scalar import SweepConfig
    from ragwitness.collusion.scalar import sweep as run_sweep
    from ragwitness.report.sweep import sweep_json, sweep_svg, sweep_terminal
    from ragwitness.report.writing import write_text

    config = SweepConfig(
        accounts=tuple(_numbers(accounts, "accounts", int)),
        epsilons=tuple(_numbers(epsilons, "epsilons", float)),
        queries=queries,
        delta=delta,
        gap=gap,
        sensitivity=sensitivity,
        calibration=_calibration(calibration),
        trials=trials,
        seed=seed,
    )
    for path in (json_out, figure):
        if path is not None:
            check_writable(path)
    screen = console()
    with progress_bars(screen, items="cells") as progress:
        cells = run_sweep(config, lambda done, of: progress("sweep", done, of))
    findings = judge(config, cells)
    if json_out is not None:
        told = sweep_json(config, cells, findings)
        write_text(json_out, json.dumps(told, indent=1, allow_nan=False) + "\n")
    if figure is not None:
        write_text(figure, sweep_svg(config, cells))
    screen.print(sweep_terminal(config, cells, findings))


def _numbers(text: str, name: str, kind: type[_Number]) -> list[_Number]:
    """Read numbers with commas between.

    Raises:
        InputError: One is none.
    """
    from ragwitness.errors import InputError

    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(
            f"--{name} {text!r} is not a list of {what}.", f"Write e.g. --{name} 1,2,4."
        ) from None


def _calibration(name: str) -> Calibration:
    from ragwitness.collusion.noise import CALIBRATIONS
    from ragwitness.errors import InputError

    for known in CALIBRATIONS:
        if name == known:
            return known
    raise InputError(f"There is no calibration {name!r}.", f"Available: {', '.join(CALIBRATIONS)}.")
