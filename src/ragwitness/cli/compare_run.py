"""The last steps of ``ragwitness compare``: make, ask, show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.cli.compare_plan import Making, Wanted
    from ragwitness.models.base import Embedder
    from ragwitness.runs import Budget, Governor, Progress
    from ragwitness.runs.comparison import Comparison, ComparisonPlan, Variant
    from ragwitness.runs.made import SynthesisResult
    from ragwitness.types import Target

__all__ = ["ask", "show", "show_again"]


def ask(
    plan: ComparisonPlan,
    wanted: Wanted,
    making: Making,
    judging: tuple[str, Embedder] | None,
    folder: Path,
    budget: Budget,
    made: dict[str, SynthesisResult] | None = None,
) -> Comparison:
    """Make what is to be made and compare, with progress bars; Ctrl-C leaves answers kept.

    Args:
        plan: How variants are compared.
        wanted: The variants.
        making: How texts are made.
        judging: Address of the judge and its embedder; None for none.
        folder: Of the run.
        budget: Caps and prices of the chat models.
        made: Filled with what was made, by method; None where nobody asks.

    Raises:
        TargetError: A chat model cannot be reached, or does not speak the protocol.
        InputError: A text cannot be used.
    """
    import asyncio

    from ragwitness.cli.common import console, one_thread_per_answer
    from ragwitness.cli.finish import leaving_resumable
    from ragwitness.runs import Governor, Pace

    one_thread_per_answer()
    with (
        Governor.of_run(folder, budget, Pace.up_to(making.concurrency)) as governor,
        leaving_resumable(console(), folder),
    ):
        work = _ask(plan, wanted, making, judging, folder, governor, {} if made is None else made)
        return asyncio.run(work)


async def _ask(
    plan: ComparisonPlan,
    wanted: Wanted,
    making: Making,
    judging: tuple[str, Embedder] | None,
    folder: Path,
    governor: Governor,
    made: dict[str, SynthesisResult],
) -> Comparison:
    from contextlib import AsyncExitStack

    from ragwitness.cli.caps import spent_so_far
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.runs.comparison import Judge, run_comparison
    from ragwitness.targets import open_target

    transport = making.reach.transport(making.concurrency, governor.setback)
    async with AsyncExitStack() as open_ones:
        show = open_ones.enter_context(progress_bars(console(), spent_so_far(governor), "asked"))
        model = judge = None
        if making.model is not None:
            model = await open_target(making.model, transport)
            open_ones.push_async_callback(model.close)
        if judging is not None:
            judge = Judge(await open_target(judging[0], transport), judging[1])
            open_ones.push_async_callback(judge.model.close)
        variants = await _variants(plan, wanted, making, model, folder, governor, show, made)
        settings = _settings(plan, making, judge)
        return await run_comparison(
            plan,
            variants,
            folder,
            governor=governor,
            judge=judge,
            settings=settings,
            progress=show,
        )


async def _variants(
    plan: ComparisonPlan,
    wanted: Wanted,
    making: Making,
    model: Target | None,
    folder: Path,
    governor: Governor,
    show: Progress,
    made: dict[str, SynthesisResult],
) -> list[Variant]:
    """Read, make and defend, in the order in which they were named."""
    from ragwitness.defenses.synthetic.guard import GuardConfig
    from ragwitness.runs.comparison.plan import ZERO_SHOT
    from ragwitness.runs.comparison.variants import (
        defended,
        made_variant,
        origin,
        read_variant,
        zero_shot,
    )

    material = plan.material
    found = [origin(material)]
    for name, path in wanted.files:
        found.append(read_variant(name, path, material, by_original=wanted.by_original))
    for spec in wanted.methods:
        if spec == ZERO_SHOT:
            found.append(zero_shot(material))
            continue
        variant, made[spec] = await made_variant(
            spec,
            material,
            making.config(),
            GuardConfig(pii=making.pii),
            model=model,
            run=folder / spec / "making",
            in_flight=making.concurrency,
            progress=partial(_making, show, spec),
            governor=governor,
        )
        found.append(variant)
    return [*found, *(defended(material, spec) for spec in wanted.defenses)]


def _making(show: Progress, spec: str, _stage: str, done: int, total: int) -> None:
    show(f"{spec}: making", done, total)


def _settings(plan: ComparisonPlan, making: Making, judge: object) -> dict[str, str]:
    """Return everything in use that is the same for all variants."""
    rag = plan.rag
    found_by = "the original record: the index holds private text" if plan.by_original else "itself"
    return {
        "attacks": ", ".join(one.name for one in plan.attacks),
        "prompts of each attack": f"at most {plan.prompts}",
        "tokens of an answer": f"at most {plan.answer_tokens}",
        "retrieval": f"{rag.retrieval}, k = {rag.k}",
        "a text is found by": found_by,
        "generator": rag.generator,
        "template": rag.template.name,
        "likeness in meaning": "not measured" if plan.embedder is None else plan.embedder.name,
        "model of the methods": making.model or "none",
        "judge": "none" if judge is None else "a chat model; of several references the first",
        "seed": str(plan.seed),
    }


def show(result: Comparison, page: Path, files: Sequence[Path | None]) -> None:
    """Write the page and the JSON, and print the tables.

    Args:
        result: The comparison.
        page: Where the page goes.
        files: Where the JSON goes; None is passed over.

    Raises:
        InputError: A file cannot be written.
    """
    import json

    from ragwitness.cli.common import console
    from ragwitness.report.compare import comparison_json
    from ragwitness.report.compare_html import write_comparison
    from ragwitness.report.compare_terminal import comparison_terminal
    from ragwitness.report.writing import write_text

    text = json.dumps(comparison_json(result), indent=1, allow_nan=False) + "\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    for path in files:
        if path is not None:
            write_text(path, text)
    write_comparison(result, page)
    screen = console()
    screen.print(comparison_terminal(result, where=str(page)))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)


def show_again(
    stored: dict[str, Any],
    path: Path,
    html: Path | None,
    json_out: Path | None,
    others: Mapping[str, object],
) -> None:
    """Print a stored comparison and write its page again.

    Args:
        stored: The result as JSON.
        path: Where it is stored.
        html: Where the page goes; None puts it beside.
        json_out: Where the JSON goes too.
        others: By option, what a comparison has not.

    Raises:
        InputError: The result is malformed, or something asked for cannot be done.
    """
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.report.compare import comparison_from_json

    if wanted := [option for option, value in others.items() if value]:
        raise InputError(
            f"{path} is a comparison, which has no {wanted[0]}.", "Its formats: HTML, --json."
        )
    result, page = comparison_from_json(stored), html or path.parent / "report.html"
    Outputs(json_out).check([path, page, *files_of_run(path.parent)])
    show(result, page, [json_out])
