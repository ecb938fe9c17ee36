"""The task of an evaluation: how well audits do on a corpus, beside guessers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.options import PathRole
from ragwitness.runner.task_options import (
    AuditSettings,
    HowRead,
    OwnSystem,
    Paragraphs,
    Proxy,
    RunPath,
    Texts,
    refuse_types,
)
from ragwitness.runner.task_runtime import Note, as_documents, own_folder, per_method, to_end, warn

if TYPE_CHECKING:
    from ragwitness.core.types import Document
    from ragwitness.membership.evaluation import BatteryPlan
    from ragwitness.membership.results.evaluation import Battery
    from ragwitness.runner.worker import Progress


@dataclass(frozen=True)
class EvaluateTask(HowRead, OwnSystem):
    """Measure the quality of audits on your corpus.

    The result has every rate with its interval, and the controls. The system runs in this process:
    queries go only to a model that you name.

    Attributes:
        corpus: Documents of one source. Half of them are put into the index.
        audits: The audits: all, or names with commas between them. NAME:paper is the audit as its
            paper has it.
        limit: The number of audited documents, half of them inside.
        calibration: The number of calibration documents inside, and again outside.
        defense: A defense before the system; ragwitness lab serve lists them.
        control: Run every audit with retrieval switched off too.
        seed: The seed of the random split.
        concurrency: The number of documents that are asked about at once.

    Raises:
        InputError: The corpus is too small, or an audit, the defense or an option cannot be used.
    """

    corpus: Annotated[Texts, PathRole.DOCUMENTS]
    _: KW_ONLY
    audits: str | Sequence[str] = "all"
    limit: int = 200
    calibration: int = 100
    options: AuditSettings = None
    defense: str = "none"
    proxy: Proxy = "reader"
    control: bool = True
    seed: int = 0
    concurrency: int = 4
    run: RunPath = None
    paragraphs: Paragraphs = False

    def order(self, note: Note = warn) -> tuple[BatteryPlan, tuple[Document, ...]]:
        """Check the options, and then read the corpus: no figure can choose how it is split.

        Args:
            note: Called with remarks on the files that were read.

        Raises:
            InputError: An option cannot be used, or nothing in the corpus can.
        """
        from ragwitness.membership.evaluation import BatteryPlan
        from ragwitness.membership.method_registry import AUDITS

        refuse_types(self)
        half = self.limit // 2
        listed = self.audits.split(",") if isinstance(self.audits, str) else self.audits
        plan = BatteryPlan(
            audits=tuple(AUDITS) if self.audits == "all" else tuple(n.strip() for n in listed),
            members=half,
            non_members=half,
            calibration=self.calibration,
            seed=self.seed,
            rag=self.rag,
            options=per_method(self.options),
            control=self.control,
            in_flight=self.concurrency,
        )
        return plan, as_documents(self.corpus, self, note=note, paragraphs=self.paragraphs)

    async def asked(
        self,
        plan: BatteryPlan,
        documents: Sequence[Document],
        folder: Path | None,
        progress: Progress | None = None,
    ) -> Battery:
        """Run every audit and every control."""
        from ragwitness.membership.evaluation import run_battery
        from ragwitness.models.model_registry import load_language_model
        from ragwitness.rag.lab import lab_target

        return await run_battery(
            plan,
            documents,
            load_language_model(self.proxy),
            # The battery builds its systems itself: one with retrieval and one without
            # (docs/design/evaluation.md, "Three controls").
            build=lambda held, rag: lab_target(held, rag, self.defense),
            run=folder,
            progress=progress,
        )

    def carry_out(self) -> Battery:
        """Do it, and return the rates."""
        return to_end(self.asked(*self.order(), own_folder(self.run, self.corpus)))
