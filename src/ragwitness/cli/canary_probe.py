"""``ragwitness canary probe``: does a deployed model know the planted trigger?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.caps import (
    Concurrency,
    DryRun,
    KeyEnv,
    MaxCost,
    MaxQueries,
    MaxTokens,
    PriceIn,
    PriceOut,
    Retries,
    RunPath,
    Timeout,
)
from ragwitness.cli.common import TARGET
from ragwitness.cli.outputs import JsonPath

if TYPE_CHECKING:
    from ragwitness.canary.plant.plan import Plan
    from ragwitness.canary.score.probe import ProbeConfig
    from ragwitness.runs import Governor
    from ragwitness.runs.canary import CanaryResult, History
    from ragwitness.targets import TransportOptions

__all__ = ["probe"]


def probe(
    target: Annotated[str, typer.Argument(help=TARGET)],
    plan: Annotated[Path, typer.Option(help="Folder from ragwitness canary plan, planted.")],
    release: Annotated[str, typer.Option(help="What you call this release of the model.")] = "1",
    twin: Annotated[
        bool,
        typer.Option("--twin", help="This model is known not to be trained on documents."),
    ] = False,
    way: Annotated[
        str | None,
        typer.Option(help="exact, forced or sampled; else the best with log-probabilities."),
    ] = None,
    instructed: Annotated[
        bool | None,
        typer.Option(
            "--instructed/--plain",
            help="Whether queries ask for the canary; by default only the contrastive design's.",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Answers per prompt, where sampled.")] = 20,
    template: Annotated[
        Path | None, typer.Option(help="Prompt with {context} and {question}; else the paper's.")
    ] = None,
    frame: Annotated[
        Path | None,
        typer.Option(help="Raw chat format around {prompt}, up to where the answer begins."),
    ] = None,
    run: RunPath = None,
    json_out: JsonPath = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Exit with 3 where the verdict is: trained."),
    ] = None,
    concurrency: Concurrency = 4,
    max_queries: MaxQueries = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dry_run: DryRun = False,
    timeout: Timeout = 120.0,
    retries: Retries = 5,
    key_env: KeyEnv = None,
) -> None:
    """Ask a model about every trigger. Say whether the planted one stands out.

    The p-value is exact and needs this one model alone. The verdict is trained or inconclusive;
    inconclusive never means that the model was not trained on documents. A finished probe is one
    look at the draw, and the plan's --releases says how many may decide.
    """
    from ragwitness.canary.plant.files import private_folder
    from ragwitness.canary.plant.folder import read_plan
    from ragwitness.cli.canary_looks import history_of, refuse_idle
    from ragwitness.cli.common import run_folder
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.errors import InputError
    from ragwitness.runs import Budget, Governor, Pace
    from ragwitness.runs.order import Reach

    if not release.strip():
        raise InputError("A release needs a name.", "Give one: --release spring")
    if unknown := [one for one in fail_on or () if one != "trained"]:
        raise InputError(f"Unknown condition --fail-on {unknown[0]!r}.", "Known: trained.")
    made = read_plan(plan)
    made.draw()
    made.check()
    config = _config_of(made, way, instructed, samples, _text(template), _text(frame))
    budget = Budget(max_queries, max_tokens, max_cost, price_in, price_out)
    parts = "canary", target, made.commitment.hex(), release, str(config)
    folder = run_folder(run, *parts, again=False)
    if dry_run:
        _preview(made, config, release, folder, budget)
        return
    refuse_idle(plan, made, target)
    Outputs(json_out).check([*files_of_run(folder), template, frame])
    private_folder(folder)  # its answers tell all candidates, and its result the planted one
    with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
        transport = Reach(timeout, retries, key_env).transport(concurrency, governor.setback)
        seen = history_of(plan)
        result = _ask(target, transport, made, config, release, seen, folder, governor)
    _conclude(result, plan, folder, release, json_out, twin=twin, gated=bool(fail_on))


def _config_of(
    plan: Plan,
    way: str | None,
    instructed: bool | None,
    samples: int,
    template: str | None,
    frame: str | None,
) -> ProbeConfig:
    """Return how to ask; without a way, what is best is measured later.

    Raises:
        InputError: A value cannot be used.
    """
    from ragwitness.canary.score.probe import WAYS, ProbeConfig
    from ragwitness.canary.score.prompts import DOCUMENT_TEMPLATE, Prompts, refuse_markers
    from ragwitness.errors import InputError

    prompts = Prompts(template or DOCUMENT_TEMPLATE, frame or "{prompt}")
    refuse_markers(prompts, plan.draw())
    named = {str(one): one for one in WAYS}
    if way is not None and way not in named:
        raise InputError(f"There is no way {way!r}.", f"Known: {', '.join(named)}.")
    return ProbeConfig(
        way=named.get(way or ""),
        instructed=plan.design.name == "contrastive" if instructed is None else instructed,
        samples=samples,
        prompts=prompts,
    )


def _ask(
    address: str,
    transport: TransportOptions,
    plan: Plan,
    config: ProbeConfig,
    release: str,
    seen: History,
    folder: Path,
    governor: Governor,
) -> CanaryResult:
    """Open the target and probe it with progress bars; Ctrl-C leaves the answers kept."""
    import asyncio

    from ragwitness.cli.caps import spent_so_far
    from ragwitness.cli.common import console, one_thread_per_answer, progress_bars
    from ragwitness.cli.finish import leaving_resumable
    from ragwitness.runs.canary import probe_canaries
    from ragwitness.targets import open_target

    async def work() -> CanaryResult:
        target = await open_target(address, transport)
        try:
            with progress_bars(console(), spent_so_far(governor), "examples") as progress:
                return await probe_canaries(
                    plan,
                    target,
                    config,
                    release=release,
                    history=seen,
                    run=folder,
                    progress=progress,
                    governor=governor,
                )
        finally:
            await target.close()

    one_thread_per_answer()
    with leaving_resumable(console(), folder):
        return asyncio.run(work())


def _preview(plan: Plan, config: ProbeConfig, release: str, folder: Path, budget: Any) -> None:
    """Say what would be asked and could be decided, and what is kept; send nothing."""
    from ragwitness.cli.canary_outlook import foretold
    from ragwitness.cli.caps import kept_lines
    from ragwitness.cli.common import console
    from ragwitness.runs.canary import protocol_of

    screen = console()
    protocol = f"protocol: {protocol_of(plan, config, release)} (publish it before asking)"
    said = foretold(plan.design, config, len(plan.held_out))
    for line in (*said, protocol, *kept_lines(folder, budget), "Nothing was sent."):
        screen.print(line, markup=False, soft_wrap=True)


def _conclude(
    result: CanaryResult,
    plan: Path,
    folder: Path,
    release: str,
    json_out: Path | None,
    *,
    twin: bool,
    gated: bool,
) -> None:
    """Remember the look, store, show, and exit as was asked for."""
    import json

    from ragwitness.cli.canary_looks import keep_look
    from ragwitness.cli.common import console
    from ragwitness.cli.outputs import leave
    from ragwitness.report.canary import canary_json, canary_terminal, rule_canary
    from ragwitness.report.writing import write_text

    keep_look(plan, result, release, twin=twin)  # first: what is shown has been counted
    stored = canary_json(result, release, twin=twin)
    text = json.dumps(stored, indent=1, allow_nan=False) + "\n"
    for path in (folder / "result.json", json_out):
        if path is not None:
            write_text(path, text)
    screen = console()
    screen.print(canary_terminal(stored))
    screen.print(f"result: {folder / 'result.json'}", markup=False, soft_wrap=True)
    if gated:
        leave(rule_canary(stored), screen)


def _text(path: Path | None) -> str | None:
    from ragwitness.errors import InputError

    try:
        return None if path is None else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {why}.", "Give a text file.") from error
