"""The tasks of a canary audit: draw a secret, and later probe a model for what was planted."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, AskedAs, Opt, PathRole
from ragwitness.evidence.sealing import seal_run
from ragwitness.runner.task_options import (
    ADDRESS_ASKED,
    TARGET,
    RunPath,
    Sealing,
    Sending,
    refuse_types,
    reject_inapplicable_options,
)
from ragwitness.runner.task_runtime import check_target, own_folder, with_target

if TYPE_CHECKING:
    from ragwitness.canary.folder import CanaryPlan
    from ragwitness.canary.probe import ProbeConfig
    from ragwitness.canary.result import CanaryResult
    from ragwitness.core.types import Target
    from ragwitness.evidence.subject import SealSubject
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.worker import Progress

_DRAWN = AskedAs(
    "Canaries",
    "Canaries that were drawn",
    "The folders beside your runs that hold a commitment.",
    "plan",
)


@dataclass(frozen=True)
class DrawTask:
    """Draw canaries in secret and commit to them in a new folder.

    Publish ``commitment.json`` before anything is sent; keep ``secret/`` to yourself. Carried out,
    it gives the plan.

    Attributes:
        examples: The documents with questions, JSONL {"id", "document", "question"}.
        out: The folder of the audit, to be made.
        held_out: The examples to probe with, which are never sent.
        family: The family of the canary: signature or phrase.
        wordings: Your own wordings, JSON {"triggers": ["… {trigger} …"], "requests": ["… {canary}
            …"]}.
        slots: The number of independent draws, each with its own canary.
        candidates: The number of triggers to draw from. The p-value is at least 1 in it.
        rate: The share of the examples that carry canaries, rounded down.
        probes: The most held-out examples for each slot.
        releases: The number of looks at the draw, one for each release that is probed; 0 if it is
            not known.
        alpha: The level of the verdict, to which the draw commits.
        beacon: Public randomness that will be joined later, in words.
        form: How a service is shown a document with its question, when you plant and when you
            probe: messages, one (both in one message) or attachment.
        template: A file with the text of both, with {context} and {question}.
        answer_tokens: The most tokens of an answer.
        temperature: The temperature of sampling.
        spares: The most held-out examples that take the place of others that a service refuses.
        late: Slots more, to be planted shortly before the probe. Without enough of them the verdict
            is never trained, as a service may only remember what it was sent.
        refresh: The hours that late slots must be at the service before the probe, at least: the
            period within which it may refresh an index or a memory.
        experiment: The name of the experiment, which fixes the split.
        seed: The seed of the split.

    Raises:
        InputError: The examples cannot be used, or the folder is not new.
    """

    examples: Annotated[
        Path | str,
        PathRole.READS,
        Arg(),
        AskedAs(
            "Documents with questions",
            "Documents with questions",
            'JSONL, one {"id", "document", "question"} a line. A fifth of them is held out for the'
            " probes.",
            "documents",
        ),
    ]
    out: Annotated[Path | str, PathRole.FILLS, Opt(short="-o")]
    _: KW_ONLY
    held_out: Annotated[
        Path | str | None, PathRole.READS, Opt(shown="a fifth of the documents")
    ] = None
    family: str = "signature"
    wordings: Annotated[Path | str | None, PathRole.READS] = None
    slots: int = 1
    candidates: Annotated[
        int,
        AskedAs(
            "Design",
            "Triggers to draw from",
            "The p-value can be no less than 1 in this number.",
        ),
    ] = 128
    rate: str = "1"
    probes: Annotated[int, Opt(shown="all there are")] = 0
    releases: Annotated[
        int,
        AskedAs(
            "Design",
            "Looks that may decide",
            "One for each release of the model that you will probe.",
        ),
    ] = 1
    alpha: str = "0.05"
    beacon: Annotated[str, Opt(shown="none")] = ""
    form: str = "messages"
    template: Annotated[
        Path | str | None, PathRole.READS, Opt(shown="both, a blank line between")
    ] = None
    answer_tokens: int = 256
    temperature: Annotated[str, Opt(shown="the service's own")] = ""
    spares: int = 4
    late: int = 0
    refresh: int = 24
    experiment: str = "canary"
    seed: int = 0

    def plan(self) -> CanaryPlan:
        """Draw, and check that what was drawn can be planted; nothing is written."""
        from ragwitness.canary.draw import Design, DrawSecret
        from ragwitness.canary.examples import read_examples
        from ragwitness.canary.families import Family, read_wordings
        from ragwitness.canary.folder import make_plan
        from ragwitness.canary.power import refuse_weak_late
        from ragwitness.core.files import read_text
        from ragwitness.crypto.hashing import draw_blinding
        from ragwitness.targets.form import TEMPLATE

        refuse_types(self)
        families = {str(family): family for family in Family}
        if self.family not in families:
            raise InputError(
                f"There is no family {self.family!r}.", f"Known: {', '.join(families)}."
            )
        rows = read_examples(Path(self.examples))
        # Step 1: the design, which the commitment covers with everything that decides later (level,
        # looks, slots).
        design = Design(
            family=families[self.family],
            slots=self.slots + self.late,
            form=self.form,
            template=read_text(Path(self.template)) if self.template else TEMPLATE,
            answer_tokens=self.answer_tokens,
            temperature=self.temperature,
            spares=self.spares,
            late=self.late,
            refresh=self.refresh,
            candidates=self.candidates,
            rate=self.rate,
            held_out=self.probes,
            releases=self.releases,
            alpha=self.alpha,
            experiment=self.experiment,
            seed=self.seed,
        )
        refuse_weak_late(design)
        # Step 2: split, secret and blinding. The split follows from names and seed, the secret from
        # the system's randomness.
        drawn = make_plan(
            rows,
            design,
            DrawSecret(os.urandom(32), draw_blinding()),
            held_out=read_examples(Path(self.held_out)) if self.held_out else (),
            beacon_source=self.beacon,
            wordings=read_wordings(Path(self.wordings)) if self.wordings else None,
        )
        # A plan that cannot be planted is refused before the commitment is published.
        (drawn if drawn.drawn else drawn.joined("00")).traces()
        return drawn

    def carry_out(self) -> CanaryPlan:
        """Draw, and write the folder."""
        from ragwitness.canary.folder import write_plan

        plan = self.plan()
        write_plan(Path(self.out), plan)
        return plan


@dataclass(frozen=True)
class ProbeTask(Sending, Sealing):
    """Ask whether a deployed model was trained on the planted documents. Counts as one look.

    Carried out, it gives the p-value and the verdict.

    Attributes:
        target: The model, as for an audit.
        plan: The folder that ragwitness canary draw made, planted.
        release: The name that you give to this release of the model.
        way: How the model is asked: exact, forced or sampled.
        instructed: Let queries ask for the canary, or not.
        samples: The number of answers for each prompt, where they are sampled.
        frame: A file with the raw chat format around {prompt}, or around {document} and {question},
            up to where the answer begins.
        anyway: Ask although the journal says that no vote was taken.
        run: The run folder. The same folder resumes the run; a finished result is never lost.

    Raises:
        CapabilityError: The target gives no log-probabilities; sample with ``way="sampled"``.
        InputError: The plan is not planted, its draw was opened, or its looks were taken.
    """

    target: Annotated[object, PathRole.ADDRESS, Arg(help=TARGET), ADDRESS_ASKED]
    plan: Annotated[Path | str, PathRole.KEEPS, _DRAWN]
    _: KW_ONLY
    release: Annotated[
        str,
        AskedAs(
            "Canaries",
            "Name of this release",
            "The name that you give to this release of the model.",
        ),
    ] = "1"
    way: Annotated[str | None, Opt(shown="the best one with log-probabilities")] = None
    instructed: Annotated[bool, Opt("--instructed/--plain")] = True
    samples: int = 20
    frame: Annotated[Path | str | None, PathRole.READS] = None
    anyway: bool = False
    run: RunPath = None

    @property
    def recorded(self) -> bool:
        """Whether answers are read again that were kept: no new look."""
        return str(self.target).startswith("replay/")

    def order(self) -> tuple[CanaryPlan, ProbeConfig]:
        """Return the plan whose draw is the one committed to, and how to ask.

        Without a ``way`` what is best is measured later.

        Raises:
            InputError: A value cannot be used.
            VerificationError: The plan is not the one committed to.
        """
        from ragwitness.canary.folder import read_plan
        from ragwitness.canary.probe import (
            BARE,
            WAYS,
            ProbeConfig,
            Prompts,
            refuse_markers,
        )
        from ragwitness.core.files import read_text

        refuse_types(self)
        check_target(self.target)
        reject_inapplicable_options(self, {"single", *(["sealed"] if self.seal else [])})
        if not self.release.strip():
            raise InputError("A release needs a name.", "Give one: --release spring")
        if self.seal is not None and self.recorded:
            raise InputError("Recorded answers cannot be sealed before their first query.")
        plan = read_plan(Path(self.plan))
        plan.draw()
        plan.check()
        # A template that holds a marker of the draw would give the trigger away to every candidate.
        prompts = Prompts(plan.design.template, read_text(Path(self.frame)) if self.frame else BARE)
        refuse_markers(prompts, plan.draw())
        named = {str(way): way for way in WAYS}
        if self.way is not None and self.way not in named:
            raise InputError(f"There is no way {self.way!r}.", f"Known: {', '.join(named)}.")
        config = ProbeConfig(
            way=named.get(self.way or ""),
            instructed=self.instructed,
            samples=self.samples,
            prompts=prompts,
        )
        return plan, config

    def subject(self, made: CanaryPlan, config: ProbeConfig, folder: Path) -> SealSubject:
        """Return what a sealed probe commits to before its first query."""
        from ragwitness.canary.evidence import subject_of

        return subject_of(
            Path(self.plan),
            made,
            config,
            target=str(self.target),
            release=self.release,
            budget=self.budget,
            run=folder,
        )

    async def asked(
        self,
        target: Target,
        config: ProbeConfig,
        limiter: RateLimiter,
        folder: Path | None,
        progress: Progress | None = None,
    ) -> CanaryResult:
        """Ask about every trigger."""
        from ragwitness.canary.run import probe_canaries

        return await probe_canaries(
            Path(self.plan),
            target,
            config,
            release=self.release,
            run=folder,
            progress=progress,
            limiter=limiter,
            anyway=self.anyway,
        )

    def carry_out(self) -> CanaryResult:
        """Do it, and return the verdict."""
        folder = own_folder(self.run)
        plan, config = self.order()

        async def ask(target: Target) -> CanaryResult:
            if self.seal is not None:
                subject = partial(self.subject, plan, config)
                seal_run(self, folder, self.target, target.name, subject)
            return await self.asked(target, config, limiter, folder)

        with self.limited(folder) as (limiter, transport):
            return with_target(self.target, ask, transport, plan.design.shown)
