"""What every verb that asks a target shares: caps, prices, pace, reach, and a look beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragwitness.runs import AuditPlan, Budget, Governor

__all__ = [
    "Concurrency",
    "DryRun",
    "KeyEnv",
    "MaxCost",
    "MaxQueries",
    "MaxTokens",
    "PriceIn",
    "PriceOut",
    "Retries",
    "RunPath",
    "Timeout",
    "kept_lines",
    "preview",
    "spent_so_far",
]

MaxQueries = Annotated[
    int | None,
    typer.Option("--max-queries", help="Most queries, all starts of the run together."),
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", help="Most tokens, read and written; likewise.")
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", help="Most money, by the prices; likewise.")
]
PriceIn = Annotated[
    float | None, typer.Option("--price-in", help="Of a million tokens that the target reads.")
]
PriceOut = Annotated[
    float | None, typer.Option("--price-out", help="Of a million tokens that it writes.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Send nothing; show what plan shows, and what is kept already."),
]
Concurrency = Annotated[
    int,
    typer.Option(help="Queries under way at most: 4 at first, more while the target keeps up."),
]

Timeout = Annotated[float, typer.Option(help="Seconds to wait for an answer.")]
Retries = Annotated[int, typer.Option(help="Further attempts after a failed request.")]
KeyEnv = Annotated[
    str | None,
    typer.Option(help="Variable with the API key; OPENAI_API_KEY for api.openai.com alone."),
]
RunPath = Annotated[
    Path | None, typer.Option(help="Run folder; the same one resumes.", show_default="by input")
]


def spent_so_far(governor: Governor) -> Callable[[], str]:
    """Return what words the spending for a progress bar."""

    def words() -> str:
        spent, budget = governor.spent, governor.budget
        parts = [_of(f"{spent.queries:,}", budget.queries, " queries")]
        if budget.tokens is not None:
            parts.append(_of(f"{spent.tokens:,}", budget.tokens, " tokens"))
        if governor.cost is not None:
            parts.append(_of(f"cost {governor.cost:.4g}", budget.cost, ""))
        return ", ".join(parts)

    return words


def _of(spent: str, cap: float | None, unit: str) -> str:
    return f"{spent}{unit}" if cap is None else f"{spent} of {cap:,}{unit}"


def preview(
    plan: AuditPlan, method: str, config: Any, proxy: str, folder: Path, budget: Budget
) -> None:
    """Show what a command would ask and could show, and what its run folder has; send nothing.

    Raises:
        InputError: The files of the run folder cannot be read.
    """
    from ragwitness.cli.common import console
    from ragwitness.cli.plan import assumed, foresee
    from ragwitness.report.forecast import forecast_terminal
    from ragwitness.runs import OutlookPlan

    asked = OutlookPlan(plan, assumed((method,)), budget=budget)
    outlook = foresee(asked, {method: config}, proxy)
    screen = console()
    screen.print(forecast_terminal(outlook))
    for line in kept_lines(folder, budget):
        screen.print(line, markup=False, soft_wrap=True)
    if plan.known_in:
        screen.print(f"The {len(plan.known_in)} known-in documents are asked about besides.")
    screen.print("Nothing was sent.")


def kept_lines(folder: Path, budget: Budget) -> list[str]:
    """Say what a run folder keeps and has spent.

    Raises:
        InputError: Its files cannot be read.
    """
    from ragwitness.runs.journal import StoredAnswers
    from ragwitness.runs.shards import spent_before

    path = folder / "answers.jsonl"
    if not path.exists():
        return [f"run folder: {folder}, new"]
    with StoredAnswers(path) as answers:
        count = len(answers)
    spent = spent_before(folder)
    cost = budget.price(spent)
    money = "" if cost is None else f", cost {cost:.4g}"
    return [
        f"run folder: {folder}, {count:,} answers kept, not to be asked for again; spent so far:"
        f" {spent.queries:,} queries, {spent.tokens:,} tokens{money}"
    ]
