"""An evaluation with what only a table of a paper sets: a shadow corpus, a rewriter, copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.core.types import Document
    from ragwitness.membership.evaluation import BatteryPlan
    from ragwitness.membership.results.evaluation import Battery
    from ragwitness.rag.config import RagConfig


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
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.steps import wait
    from ragwitness.membership.evaluation import run_battery
    from ragwitness.models.model_registry import load_language_model
    from ragwitness.rag.defenses.base import defend
    from ragwitness.rag.defenses.defense_registry import load_defense
    from ragwitness.rag.pipeline import build_system
    from ragwitness.rag.target import LabTarget
    from research.reproduce.defenses import DATABASE, SHUFFLED, Shuffled, paraphrased

    model = load_language_model(proxy)
    writer = None if rewriter is None else load_language_model(rewriter)

    def build(held: Sequence[Document], rag: RagConfig) -> LabTarget:
        if defense == DATABASE and writer is not None:
            held = paraphrased(held, writer)
        system = build_system(beside(held), rag)
        system.check_room()
        if defense == SHUFFLED:
            return LabTarget(defend(system, Shuffled()))
        return LabTarget(defend(system, load_defense("none" if defense == DATABASE else defense,
                                                     writer)))  # fmt: skip

    with progress_bars(console()) as progress:
        work = run_battery(
            plan,
            documents,
            model,
            auxiliary=auxiliary,
            build=build,
            run=folder,
            progress=progress,
        )
        return wait(work, folder)
