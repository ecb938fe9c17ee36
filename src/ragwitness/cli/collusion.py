"""``ragwitness collusion``: what a privacy claim per account is worth when accounts pool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.collusion_estimate import estimate
from ragwitness.cli.collusion_sweep import sweep
from ragwitness.cli.config import Configurable

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["app"]

app = typer.Typer(
    help="What a privacy claim is worth when accounts pool answers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Queries = Annotated[int, typer.Option(help="Queries of each account in a window.")]
_Accounts = Annotated[int, typer.Option(help="Accounts that pool their answers, k.")]
_Sensitivity = Annotated[
    float,
    typer.Option(
        help="Largest change of one score: 1 for a document added or removed, 2 for one replaced"
        " (vectors of length 1), B-A for scores clipped to A..B.",
    ),
]
_Json = Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")]
_Figure = Annotated[Path | None, typer.Option(help="Also write an SVG figure here.")]


@app.command("bound", cls=Configurable)
def bound(
    epsilon: Annotated[
        float | None, typer.Option(help="Claimed per account; (3.4) chooses the noise for it.")
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Committed noise; takes the place of (3.4)'s.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Claimed per account.")] = 1e-6,
    queries: _Queries = 1000,
    accounts: _Accounts = 16,
    sensitivity: _Sensitivity = 1.0,
    delta_prime: Annotated[
        float | None, typer.Option(help="Slack of Theorem 3.4; --delta where it is not given.")
    ] = None,
    delta_star: Annotated[
        float | None, typer.Option(help="Joint failure probability of the audit's verdict (5.2).")
    ] = None,
    k_max: Annotated[
        int | None, typer.Option(help="Cap of the verdict; --accounts where it is not given.")
    ] = None,
    json_out: _Json = None,
    figure: _Figure = None,
) -> None:
    """Account for what k accounts learn together. The paper's bound, Renyi, and exactly.

    All at the same joint delta, k x delta + delta'. Give --epsilon, --sigma or both; with both,
    the noise is accounted for and the claim is checked against it. Asks no system.
    """
    from ragwitness.errors import InputError
    from ragwitness.privacy.accounting.bounds import Service, joint_bounds
    from ragwitness.report.collusion import bounds_json, bounds_svg, bounds_terminal

    if k_max is not None and delta_star is None:
        raise InputError("--k-max belongs to a verdict.", "Give --delta-star as well.")
    asked = Service(delta, queries, accounts, epsilon, sigma, sensitivity, delta_prime)
    bounds = joint_bounds(asked)
    made = None
    if delta_star is not None:
        made = bounds.verdict(accounts if k_max is None else k_max, delta_star)
    drawn = None if figure is None else bounds_svg(bounds)
    _leave(bounds_terminal(bounds, made), bounds_json(bounds, made), drawn, json_out, figure)


@app.command("plan", cls=Configurable)
def plan(
    epsilon: Annotated[float, typer.Option(help="That all accounts may spend together.")],
    delta: Annotated[float, typer.Option(help="Of all accounts together.")] = 1e-6,
    queries: _Queries = 1000,
    accounts: _Accounts = 16,
    sigma: Annotated[
        float | None, typer.Option(help="Also say how many queries or accounts this noise allows.")
    ] = None,
    sensitivity: _Sensitivity = 1.0,
    json_out: _Json = None,
    figure: _Figure = None,
) -> None:
    """Find the noise, the queries or the accounts for a joint budget.

    The exact noise stands beside the paper's. Asks no system.
    """
    from ragwitness.privacy.accounting.bounds import noise_plan
    from ragwitness.privacy.accounting.gaussian import accounts_for, queries_for
    from ragwitness.report.collusion import Room, plan_json, plan_svg, plan_terminal, powers_to

    wanted = [noise_plan(epsilon, delta, queries, accounts, sensitivity)]  # refuses bad values
    sizes = powers_to(accounts)[:-1] if accounts > 1 else []
    plans = [noise_plan(epsilon, delta, queries, k, sensitivity) for k in sizes] + wanted
    asked = {
        "epsilon": epsilon,
        "delta": delta,
        "queries": queries,
        "accounts": accounts,
        "sensitivity": sensitivity,
    }
    room = None
    if sigma is not None:
        room = Room(
            sigma,
            queries_for(epsilon, delta, sigma, accounts, sensitivity),
            accounts_for(epsilon, delta, sigma, queries, sensitivity),
        )
    drawn = None if figure is None else plan_svg(plans, asked)
    told = plan_json(plans, asked, room)
    _leave(plan_terminal(plans, asked, room), told, drawn, json_out, figure)


app.command("sweep", cls=Configurable)(sweep)
app.command("estimate", cls=Configurable)(estimate)


def _leave(
    table: RenderableType,
    told: dict[str, Any],
    drawn: str | None,
    json_out: Path | None,
    figure: Path | None,
) -> None:
    """Write what was asked for, then print the table."""
    import json

    from ragwitness.cli.common import console
    from ragwitness.cli.outputs import check_writable
    from ragwitness.report.writing import write_text

    for path in (json_out, figure):
        if path is not None:
            check_writable(path)
    if json_out is not None:
        write_text(json_out, json.dumps(told, indent=1, allow_nan=False) + "\n")
    if figure is not None and drawn is not None:
        write_text(figure, drawn)
    console().print(table)
