"""``ragwitness evaluate``: how well do the audits do on this corpus, and would a guesser do too?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.options import (
    AuditSettings,
    Generator,
    PassagesPerQuery,
    ReaderWorkers,
    Retrieval,
    Template,
)
from ragwitness.cli.outputs import Outputs, conclude
from ragwitness.cli.typer_options import Files
from ragwitness.errands.options import (
    HowRead,
    Paragraphs,
    Proxy,
    RunPath,
)
from ragwitness.kit.options import Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.audits.evaluation import BatteryPlan
    from ragwitness.results.evaluation import Battery
    from ragwitness.types import Document


def evaluate(
    corpus: Annotated[str, PathRole.DOCUMENTS],
    audits: str = "all",
    limit: int = 200,
    members: Annotated[int | None, Opt(shown="half of --limit")] = None,
    non_members: Annotated[int | None, Opt(shown="half of --limit")] = None,
    calibration: int = 100,
    options: AuditSettings = None,
    defense: str = "none",
    benign: Annotated[int, Opt(least=0)] = 100,
    retrieval: Retrieval = "lexical",
    generator: Generator = "reader",
    k: PassagesPerQuery = 4,
    template: Template = "plain",
    proxy: Proxy = "reader",
    control: bool = True,
    seed: int = 0,
    concurrency: Annotated[int | None, Opt(shown="4, and at least 2 for each core")] = None,
    workers: ReaderWorkers = None,
    run: RunPath = None,
    files: Files | None = None,
    fail_on: Annotated[list[str] | None, Opt(metavar="CONDITION")] = None,
    *,
    how: HowRead,
    paragraphs: Paragraphs = False,
) -> None:
    """Measure how well audits do on a corpus of yours.

    The corpus is split once, at random, and every rate has its interval. There are always
    controls: guessers that never ask the system, the system with its retrieval switched off, and
    the non-members that are most like something in the index. With a defense, benign questions
    show what it costs: what is found and answered with it and without it.

    Args:
        corpus: Documents of one source. Half of them are put into the index.
        audits: The audits: all, or names with commas between them. NAME:paper is the audit as its
            paper has it.
        limit: The number of audited documents, half of them inside.
        members: The number of audited documents inside.
        non_members: The number of audited documents outside.
        calibration: The number of calibration documents inside, and again outside.
        defense: A defense before the system; ragwitness lab serve lists them.
        benign: The number of benign questions that show what the defense costs.
        control: Run every audit with retrieval switched off too.
        seed: The seed of the random split.
        concurrency: The number of documents that are asked about at once.
        fail_on: Exit with 3 if a control fails (control), or if the low end of an audit's AUC is
            above a number (e.g. 'auc > 0.6'). May be repeated.
    """
    from ragwitness.audits.evaluation import BatteryPlan
    from ragwitness.cli.common import console, on_cores, read_documents, run_folder
    from ragwitness.errands.carry import per_method
    from ragwitness.kit.run_files import EVALUATION
    from ragwitness.lab import rag_config
    from ragwitness.membership.registry import AUDITS

    cores = on_cores(workers)
    # Options: the plan fixes the split before a document is read, so no figure can choose it.
    names = tuple(AUDITS) if audits == "all" else tuple(n.strip() for n in audits.split(","))
    outputs = Outputs.wanted("evaluation", files, fail_on)
    plan = BatteryPlan(
        audits=names,
        members=limit // 2 if members is None else members,
        non_members=limit // 2 if non_members is None else non_members,
        calibration=calibration,
        seed=seed,
        rag=rag_config(k=k, retrieval=retrieval, generator=generator, template=template),
        options=per_method(options or ()),
        control=control,
        benign=benign,
        in_flight=max(4, 2 * cores) if concurrency is None else concurrency,
    )
    # Only now the corpus: what is wrong with an option is said before a large file is read.
    documents = read_documents(corpus, how, paragraphs=paragraphs)
    folder = run_folder(run, "evaluate", corpus, plan, defense, proxy)
    screen = console()
    # Asking: every audit, every control and every benign question, on a system in this process. It
    # spends nothing outside, so there is no budget and no preview.
    battery = run_plan(plan, documents, defense, proxy, folder)
    # The page has a name of its own: an older evaluation.html in the folder is replaced by its
    # like.
    conclude(battery, folder / EVALUATION, screen, outputs, store=folder)


def run_plan(
    plan: BatteryPlan,
    documents: tuple[Document, ...],
    defense: str,
    proxy: str,
    folder: Path,
    *,
    auxiliary: tuple[Document, ...] = (),
    rewriter: str | None = None,
    beside: Callable[[Sequence[Document]], Sequence[Document]] = tuple,
) -> Battery:
    """Run an evaluation with progress bars; Ctrl-C leaves its answers in ``folder``.

    ``rewriter`` names the language model that a paraphrasing defense asks; None goes by rules.
    ``beside`` returns what the index holds of the documents inside, such as copies beside them.
    """
    from ragwitness.audits.evaluation import run_battery
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.steps import wait
    from ragwitness.lab import lab_target
    from ragwitness.models.registry import load_language_model

    model = load_language_model(proxy)
    writer = None if rewriter is None else load_language_model(rewriter)
    with progress_bars(console()) as progress:
        work = run_battery(
            plan,
            documents,
            model,
            auxiliary=auxiliary,
            # The battery builds its systems itself: one with retrieval and one without
            # (docs/design/evaluation.md, "Three controls").
            build=lambda held, rag: lab_target(beside(held), rag, defense, rewriter=writer),
            run=folder,
            progress=progress,
        )
        return wait(work, folder)
