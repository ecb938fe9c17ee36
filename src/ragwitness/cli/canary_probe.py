"""``ragwitness canary probe``: does a deployed model know the planted trigger?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.steps import ask, preview, seal_first
from ragwitness.cli.typer_options import Files
from ragwitness.errands.options import Address, Caps, Concurrency, DryRun, Reached, RunPath, Sealing
from ragwitness.errors import InputError
from ragwitness.kit.options import Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.asking.worker import Progress
    from ragwitness.audits.canary import CanaryResult
    from ragwitness.canary.folder import CanaryPlan
    from ragwitness.canary.probe import ProbeConfig
    from ragwitness.evidence.subject import SealSubject
    from ragwitness.types import Target


def probe(
    target: Address,
    plan: Annotated[Path, PathRole.KEEPS],
    release: str = "1",
    twin: bool = False,
    way: Annotated[str | None, Opt(shown="the best one with log-probabilities")] = None,
    instructed: Annotated[
        bool | None,
        Opt("--instructed/--plain", shown="instructed for the contrastive design alone"),
    ] = None,
    samples: int = 20,
    template: Annotated[Path | None, PathRole.READS, Opt(shown="the paper's")] = None,
    frame: Annotated[Path | None, PathRole.READS] = None,
    run: RunPath = None,
    files: Files | None = None,
    fail_on: Annotated[list[str] | None, Opt(metavar="CONDITION")] = None,
    concurrency: Concurrency = 4,
    *,
    caps: Caps,
    dry_run: DryRun = False,
    reached: Reached,
    sealing: Sealing,
) -> None:
    """Ask a model about every trigger.

    It says whether the planted one stands out. The p-value is exact and needs this one model
    alone. The verdict is trained or inconclusive; inconclusive never means that the model was not
    trained on documents. A finished probe is one look at the draw, and --releases of ragwitness
    canary draw says how many looks may decide.

    Args:
        plan: The folder that ragwitness canary draw made, planted.
        release: The name that you give to this release of the model.
        twin: This model is known not to be trained on documents.
        way: How the model is asked: exact, forced or sampled.
        instructed: Let queries ask for the canary, or not.
        samples: The number of answers for each prompt, where they are sampled.
        template: A file with the prompt, with {context} and {question}.
        frame: A file with the raw chat format around {prompt}, up to where the answer begins.
        fail_on: Exit with 3 if the verdict is: trained.
    """
    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.audits.canary import canary_report, probe_canaries, refuse_look
    from ragwitness.canary.folder import read_plan
    from ragwitness.cli.common import console, print_lines, read_text, run_folder
    from ragwitness.kit.files import private_folder
    from ragwitness.kit.run_files import REPORT
    from ragwitness.kit.stored_names import stored_text
    from ragwitness.targets.resolve import open_target

    # Step 1, the options: release, conditions, and a plan whose draw is the one committed to.
    if not release.strip():
        raise InputError("A release needs a name.", "Give one: --release spring")
    outputs = Outputs.wanted("canary", files, fail_on)
    made = read_plan(plan)
    made.draw()
    made.check()
    # Step 2, how to ask. It enters the run's name: another way of asking is another look.
    texts = [None if path is None else read_text(path) for path in (template, frame)]
    config = _config_of(made, way, instructed, samples, *texts)
    budget = caps.budget
    parts = "canary", target, made.commitment.hex(), release, stored_text(config)
    folder = run_folder(run, *parts, again=False)
    # Step 3, the preview, with the protocol that should be published before the answers are known.
    if dry_run:
        _preview(made, config, release, folder, budget, concurrency)
        return
    # Step 4: a look that was not announced is refused here, before it costs a query; answers that
    # are kept may always be read again.
    refuse_look(plan, made, folder, twin=twin, recorded=target.startswith("replay/"))
    if not target.startswith("replay/"):
        print_lines(console(), *_spending(made, config, budget, concurrency))
    if sealing.seal is not None and target.startswith("replay/"):
        raise InputError("Recorded answers cannot be sealed before their first query.")

    def subject() -> SealSubject:
        from ragwitness.evidence.canary import subject_of

        more = {"target": target, "release": release, "twin": twin, "budget": budget}
        return subject_of(plan, made, config, **more, run=folder)  # type: ignore[arg-type]

    seal_first(folder, subject, sealing)

    async def work(opened: Target, progress: Progress) -> CanaryResult:
        return await probe_canaries(
            plan,
            opened,
            config,
            release=release,
            twin=twin,
            run=folder,
            progress=progress,
            governor=governor,
        )

    private_folder(folder)  # its answers tell all candidates, and its result the planted one
    with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
        transport = reached.reach.transport(concurrency, governor.setback)
        # Step 5, the asking; the look is counted when it is finished, not when it is begun.
        result = ask(open_target(target, transport), work, folder, governor, "examples")
    # Step 6, the conclusion.
    report = canary_report(result, release, twin=twin)
    conclude(report, folder / REPORT, console(), outputs, store=folder)


def _config_of(
    plan: CanaryPlan,
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
    from ragwitness.canary.probe import (
        DOCUMENT_TEMPLATE,
        WAYS,
        ProbeConfig,
        Prompts,
        refuse_markers,
    )

    # A template that holds a marker of the draw would give the trigger away to every candidate.
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


def _preview(
    plan: CanaryPlan, config: ProbeConfig, release: str, folder: Path, budget: Any, concurrency: int
) -> None:
    """Say what would be asked and could be decided, and what is kept; send nothing."""
    from ragwitness.audits.canary import protocol_of
    from ragwitness.canary.power import power_lines
    from ragwitness.cli.canary import foretold

    protocol = f"protocol: {protocol_of(plan, config, release)} (publish it before asking)"
    said = foretold(plan.design, config, len(plan.held_out))
    traces = sum(one.slot is not None for one in plan.traces())
    power = power_lines(plan.design, traces, len(plan.held_out))
    spending = _spending(plan, config, budget, concurrency)
    preview([*said, *power, *spending, protocol], folder, budget)


def _spending(plan: CanaryPlan, config: ProbeConfig, budget: Any, concurrency: int) -> list[str]:
    """Say what the probe takes in queries, seconds and money, before the first query."""
    from ragwitness.asking.budget import Use, most
    from ragwitness.canary.probe import queries_of
    from ragwitness.types import Query

    held_out, slots = plan.held_out, plan.design.slots
    longest = config.answer_tokens if config.way == "sampled" else 1
    each = [
        most(Query(config.prompts.framed(one.document, one.query, one.answer), longest))
        for one in held_out
    ]
    whole = sum(each, Use())
    lines = []
    for name, count in queries_of(config, plan.design.candidates).items():
        asked = count * slots * len(held_out)
        use = Use(asked, whole.prompt * count * slots, whole.completion * count * slots)
        cost = budget.price(use)
        money = f"{cost:,.2f} at most" if cost is not None else "unknown without --price-in/-out"
        lines.append(
            f"{name}: {asked:,} queries; about {asked / concurrency:,.0f} s where an answer takes"
            f" 1 s and {concurrency} are asked for at a time; {use.tokens:,} tokens at most; money"
            f" {money}"
        )
    return lines
