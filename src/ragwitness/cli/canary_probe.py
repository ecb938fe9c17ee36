"""``ragwitness canary probe``: does a deployed model know the planted trigger?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwitness.canary.task import ProbeTask
from ragwitness.cli.options import Conditions, DryRun
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import ask, preview, seal_first
from ragwitness.cli.typer_options import Files

if TYPE_CHECKING:
    from ragwitness.canary.folder import CanaryPlan
    from ragwitness.canary.probe import ProbeConfig


def probe(
    task: ProbeTask,
    files: Files | None = None,
    fail_on: Conditions = None,
    dry_run: DryRun = False,
) -> None:
    """Ask a model about every trigger.

    It says whether the planted one stands out. The p-value is exact and needs this one model
    alone. The verdict is trained, trained-or-remembered (where no late slot tells the two apart) or
    inconclusive; inconclusive never means that the model was not trained on documents. A finished
    probe is one look at the draw, and --releases of ragwitness canary draw says how many looks may
    decide.

    Args:
        fail_on: Exit with 3 if the verdict is: trained, or trained-or-remembered (either).
    """
    from ragwitness.canary.run import refuse_look
    from ragwitness.cli.common import console, print_lines, run_folder
    from ragwitness.core.files import private_folder
    from ragwitness.core.stored_names import stored_text
    from ragwitness.targets.conversation import open_deployed

    # Step 1, the options: release, conditions, and a plan whose draw is the one committed to. How
    # it is asked enters the run's name: another way of asking is another look.
    outputs = Outputs.wanted("canary", files, fail_on)
    plan, config = task.order()
    target, budget, at_once = str(task.target), task.budget, task.at_once
    key = "canary", target, plan.commitment.hex(), task.release, stored_text(config)
    folder = run_folder(task.run, *key, again=False)
    # Step 2, the preview, with the protocol that should be published before the answers are known.
    if dry_run:
        _preview(plan, config, task.release, folder, budget, at_once)
        return
    # Step 3: a look that was not announced is refused here, before it costs a query; answers that
    # are kept may always be read again.
    refuse_look(Path(task.plan), plan, folder, recorded=task.recorded, anyway=task.anyway)
    if not task.recorded:
        print_lines(console(), *_spending(plan, config, budget, at_once))

    private_folder(folder)  # its answers tell all candidates, and its result the planted one
    with task.limited(folder) as (limiter, transport):
        # Step 4, the asking; the look is counted when it is finished, not when it is begun.
        result = ask(
            open_deployed(target, transport, plan.design.shown),
            lambda opened, progress: task.asked(opened, config, limiter, folder, progress),
            folder,
            limiter,
            "examples",
            lambda system: seal_first(
                folder, lambda: task.subject(plan, config, folder), task, system
            ),
        )
    # Step 5, the conclusion.
    conclude(result, outputs, store=folder)


def _preview(
    plan: CanaryPlan, config: ProbeConfig, release: str, folder: Path, budget: Any, concurrency: int
) -> None:
    """Say what would be asked and could be decided, and what is kept; send nothing."""
    from ragwitness.canary.run import protocol_of
    from ragwitness.cli.canary import foretold

    protocol = f"protocol: {protocol_of(plan, config, release)} (publish it before asking)"
    forecast = foretold(plan.design, config, len(plan.asked))
    spending = _spending(plan, config, budget, concurrency)
    preview([*forecast, *spending, protocol], folder, budget)


def _spending(plan: CanaryPlan, config: ProbeConfig, budget: Any, concurrency: int) -> list[str]:
    """Say what the probe takes in queries, seconds and money, before the first query."""
    from ragwitness.canary.probe import queries_of
    from ragwitness.core.types import Query
    from ragwitness.runner.budget import Use, worst_case

    held_out, slots, form = plan.asked, plan.design.slots, plan.design.shown
    longest = form.answer_tokens if config.way == "sampled" else 1
    uses = [
        worst_case(
            Query(config.prompts.framed(example.document, example.query, example.answer), longest)
        )
        for example in held_out
    ]
    total = sum(uses, Use())
    lines = []
    for name, count in queries_of(config, plan.design.candidates).items():
        queries = count * slots * len(held_out)
        use = Use(queries, total.prompt * count * slots, total.completion * count * slots)
        cost = budget.price(use)
        money = f"{cost:,.2f} at most" if cost is not None else "unknown without --price-in/-out"
        lines.append(
            f"{name}: {queries:,} queries; about {queries / concurrency:,.0f} s where an answer"
            f" takes 1 s and {concurrency} are asked for at a time; {use.tokens:,} tokens at most;"
            f" money {money}"
        )
    return lines
