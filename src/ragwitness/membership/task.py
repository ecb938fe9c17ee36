"""The task of an audit: are these documents in that system's database?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg, AskedAs, Only, Opt, PathRole
from ragwitness.evidence.sealing import seal_run
from ragwitness.runner.task_options import (
    ADDRESS_ASKED,
    AT_ONCE,
    AT_ONCE_ASKED,
    TARGET,
    Computing,
    HowRead,
    Paragraphs,
    Proxy,
    RunPath,
    Sealing,
    Sending,
    Texts,
    refuse_types,
    reject_inapplicable_options,
)
from ragwitness.runner.task_runtime import (
    Note,
    as_documents,
    check_target,
    key_values,
    own_folder,
    warn,
    with_target,
)

if TYPE_CHECKING:
    from ragwitness.core.types import LeftOut, Target
    from ragwitness.membership.prepared import PreparedAudit
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.runner.worker import Progress


@dataclass(frozen=True)
class AuditTask(HowRead, Sending, Computing, Sealing):
    """Ask whether documents are in a RAG system's database.

    It gives one verdict per document, in the order given, with its evidence. Nothing is sent if the
    documents can hardly decide anything, or if those known to be outside are unlike those in
    question; ``yes`` goes on all the same.

    Attributes:
        target: The system under audit: an address (docs/targets.md), a target, or any RAG system
            in Python.
        documents: The documents in question: a file (text, Word, PDF, HTML, EPUB, JSONL, CSV and
            others: docs/documents.md), a folder of those, pasted text, or - for standard input.
        known_out: Documents that are known to be outside. None are needed: 10 of any kind test the
            odds, and 40 or more like those in question add ranks.
        public: Where documents in question are published: other published texts that the database
            cannot hold. They join those known to be outside, so a system that finds such texts on
            the web, or knows them by heart, is not accused for it.
        known_in: Documents that are known to be inside. Without them no verdict says out.
        auxiliary: Documents for the shadow system; also for calibration, without --known-out.
        method: The audit: auto chooses by target, documents and caps, and gives its reason; with
            --collection it is mba. Or runon, s-rag, mba, rag-mia, s2mia, min-k
            or passages. NAME:paper is the audit as its paper has it, s2mia:t and s2mia:m
            those with thresholds or a classifier.
        options: A setting of the method. May be repeated.
        alpha: The share of wrong accusations that is accepted.
        accept_unlike: Keep verdicts in although the calibration documents differ from those in
            question. They are not exact, and no ground for an accusation.
        yes: Go on without being asked where an audit can hardly decide anything.
        run: The run folder. The same folder resumes the run; a finished result is never lost.
        reference_model: A chat model that has not read the documents. It tells how likely its
            words are without them, so that one document gets a verdict without others. Repeat it
            for several: the largest guess counts. smollm2 (98 MB, fetched once), gguf:FILE or
            hf:NAME; none ranks documents alone.
        group_field: The field or column that names the author, template or source of a document.
            Known documents of one group have one vote together.
        retrieval: How the shadow system finds passages: lexical, minilm or hf:NAME.
        generator: The model that answers in the shadow system, named as for lab serve.
        k: The number of passages for each query in the shadow system.
        automl: Train the classifier with AutoGluon; needs the extra [automl].
        seed: The seed that splits the auxiliary documents, and draws a collection's order.

    Raises:
        InputError: Documents, a method or an option cannot be used, or nothing could be decided.
        CapabilityError: The target lacks what the method requires.
        TargetError: The target cannot be reached or does not speak the protocol.
    """

    target: Annotated[
        object,
        PathRole.ADDRESS,
        Arg(help=TARGET),
        ADDRESS_ASKED,
    ]
    documents: Annotated[
        Texts,
        PathRole.DOCUMENTS,
        AskedAs(
            "Documents",
            "Documents in question",
            "Texts, Word, PDF, HTML, EPUB and other files, many at once; or a JSONL or CSV file"
            " with a field text.",
        ),
    ] = ""
    _: KW_ONLY
    known_out: Annotated[
        Texts | None,
        PathRole.DOCUMENTS,
        AskedAs(
            "Documents",
            "Documents known to be outside",
            "Documents that the system cannot hold, such as ones that were never given away. None"
            " are needed; 10 of any kind test the odds, and 40 or more like yours add ranks.",
            "documents",
        ),
    ] = None
    public: Annotated[
        Texts | None,
        PathRole.DOCUMENTS,
        Only("single"),
        AskedAs(
            "Documents",
            "Published texts known to be outside",
            "Where your documents are published: others that are, and that the system cannot hold."
            " They show whether it searches the web or knows such texts by heart.",
        ),
    ] = None
    known_in: Annotated[
        Texts | None,
        PathRole.DOCUMENTS,
        Only("single"),
        AskedAs(
            "Documents",
            "Documents known to be inside",
            "With 19 or more of them a verdict can also say that a document is not there.",
        ),
    ] = None
    auxiliary: Annotated[
        Texts | None,
        PathRole.DOCUMENTS,
        Opt(shown="generated ones"),
        Only("shadow", "no known-out"),
    ] = None
    method: Annotated[
        str,
        AskedAs(
            "Method",
            "Method",
            "auto takes the best one that the system, the documents and the caps admit, and says"
            " why.",
            choices={"auto": "auto: choose for me"},
            names="ragwitness.membership.method_registry:AUDITS",
        ),
    ] = "auto"
    options: Annotated[
        Mapping[str, object] | Sequence[str] | None, Opt("--set", metavar="NAME=VALUE")
    ] = None
    alpha: Annotated[
        float,
        AskedAs(
            "Method",
            "Share of wrong accusations that is accepted",
            "0.05 means: of 100 documents that are called in, 5 may be outside on average.",
        ),
    ] = 0.05
    accept_unlike: bool = False
    yes: bool = False
    run: RunPath = None
    reference_model: Annotated[
        Sequence[str] | None,
        PathRole.ADDRESS,
        Opt(metavar="MODEL", shown="smollm2 where it can be had"),
        Only("single"),
    ] = None
    group_field: str | None = None
    paragraphs: Annotated[
        Paragraphs, AskedAs("Documents", "Take each paragraph of a text file as a document")
    ] = False
    retrieval: Annotated[str, PathRole.ADDRESS, Only("shadow")] = "lexical"
    generator: Annotated[str, PathRole.ADDRESS, Only("shadow")] = "reader"
    k: Annotated[int, Only("shadow")] = 4
    proxy: Proxy = "reader"
    automl: Annotated[bool, Only("shadow")] = False
    concurrency: Annotated[
        int | None,
        Opt(shown="4; for lab: 2 for each worker of a cluster", help=AT_ONCE),
        AT_ONCE_ASKED,
    ] = None
    seed: Annotated[int, Only("shadow", "no known-out", "collection")] = 0

    @property
    def at_once(self) -> int:
        """The most queries that may be under way."""
        if self.concurrency is not None:
            return self.concurrency
        # A cluster serves only a lab system.
        ours = self.cluster if str(self.target).startswith("lab:") else None
        return max(4, 2 * ours.workers) if ours else 4

    def order(self, note: Note = warn, *, collection: bool = False) -> PreparedAudit:
        """Read and check everything, and return the audit; nothing is sent.

        Args:
            note: Called with remarks on the files that were read.
            collection: Whether the documents are asked about as a whole.

        Raises:
            InputError: An option or a document cannot be used, or would not be read.
        """
        from ragwitness.membership.auto_select import ALONE, AUTO, USUAL
        from ragwitness.membership.method_registry import configure
        from ragwitness.membership.plan import AuditPlan
        from ragwitness.membership.prepared import PreparedAudit, trains
        from ragwitness.membership.results.assumptions import VerdictReach
        from ragwitness.membership.shadow import ShadowConfig
        from ragwitness.rag.lab import rag_config
        from ragwitness.text.overlap import without_copies

        # 1. The options: nothing large is read, and no model is loaded, before they are checked.
        refuse_types(self)
        check_target(self.target)
        if isinstance(self.documents, str) and not self.documents:
            raise InputError("There are no documents in question.", "Give them: --documents FILE")
        budget, cluster = self.budget, self.cluster
        self.transport()  # refuses what cannot be used, before anything is written or sent
        method, settings = self.method, key_values(self.options)
        if method == AUTO:
            if settings:
                raise InputError(
                    f"--method auto chooses the method, and {next(iter(settings))} belongs to one.",
                    "Name the method, or leave the option out.",
                )
            method, settings = ("mba", {}) if collection else USUAL
        config = configure(method, settings)
        traits = {
            "collection": collection,
            "single": not collection,
            "shadow": not collection and trains(method, config),
            "no known-out": not collection and not (self.known_out or self.public),
            "sealed": self.seal is not None,
            "ray": cluster is not None,
        }
        reject_inapplicable_options(
            self, {name for name, true in traits.items() if true}, self.method
        )
        # 2. The documents: those in question, and those that p-values are ranked among.
        unread: list[LeftOut | str] = []
        grouped = partial(
            as_documents, how=self, left_out=unread, note=note, paragraphs=self.paragraphs,
            group_field=self.group_field,
        )  # fmt: skip
        plan = AuditPlan(
            documents=grouped(self.documents),
            known_out=(
                *grouped(self.known_out),
                *(replace(d, id=f"public: {d.id}") for d in grouped(self.public)),
            ),
            known_in=grouped(self.known_in),
            auxiliary=grouped(self.auxiliary),
            alpha=self.alpha,
            shadow=ShadowConfig(
                rag=rag_config(k=self.k, retrieval=self.retrieval, generator=self.generator),
                seed=self.seed,
            ),
            automl=self.automl,
            in_flight=self.at_once,
            accept_unlike=self.accept_unlike,
        )
        if not collection:
            # Are known documents too few for ranks to decide at half of the level?
            distinct = len(without_copies(plan.documents))
            hardly = VerdictReach(plan.alpha / 2, distinct, len(plan.known_out)).hardly
            plan = replace(plan, references=self._references(hardly and not traits["shadow"]))
            if plan.references and hardly:
                if self.method == AUTO:
                    method, settings = ALONE[-1]
                config = configure(method, {**dict(ALONE).get(method, {}), **settings})
        # An object in Python has no address.
        target = self.target if isinstance(self.target, str) else ""
        plan = replace(plan, left_out=tuple(unread))
        return PreparedAudit(target, plan, method, config, self.proxy, budget)

    def _references(self, needed: bool) -> tuple[str, ...]:
        """Return the reference models: by default the packaged one, for a method that bets."""
        from ragwitness.membership.auto_select import AUTO
        from ragwitness.membership.method_registry import BETTING
        from ragwitness.models.smollm2 import NAME, can_be_had

        if self.reference_model is not None:
            return tuple(name for name in self.reference_model if name != "none")
        bets = self.method.partition(":")[0] in (AUTO, *BETTING)
        return (NAME,) if needed and bets and can_be_had() else ()

    def identity(self, order: PreparedAudit) -> tuple[object, ...]:
        """Return the inputs that name a run folder, besides its target.

        Concurrency decides no answer: with another ``concurrency`` the same run is resumed.
        """
        named = (self.method,) if self.method == "auto" else (order.method, order.config)
        return (replace(order.plan, in_flight=1), *named, self.proxy)

    def carry_out(
        self, order: PreparedAudit | None = None, progress: Progress | None = None
    ) -> AuditResult:
        """Do it, and return the verdicts.

        Args:
            order: From :meth:`order`, where the documents were read already.
            progress: Called after each document.
        """
        from ragwitness.membership.evidence import subject_of
        from ragwitness.models.cluster import models_on

        named = (self.documents, self.known_out, self.public, self.known_in, self.auxiliary)
        folder = own_folder(self.run, *named)
        order = self.order() if order is None else order
        remarks, doubtful = order.beforehand()
        if doubtful and not self.yes:
            raise undecidable(remarks)

        # The run is sealed after the target was measured, and before any document is sent.
        async def ask(target: Target) -> AuditResult:
            ordered = order
            if self.method == "auto":
                ordered = await choose_method(order, target, limiter, folder)
            await ordered.refuse_unscorable()
            if self.seal is not None:
                seal_run(self, folder, self.target, target.name, lambda _: subject_of(ordered))
            return await run_prepared(ordered, target, limiter, folder, progress)

        with (
            models_on(self.cluster) if self.cluster else nullcontext(),
            self.limited(folder) as (limiter, transport),
        ):
            return with_target(self.target, ask, transport)


_NOT_AS = {
    "seal": "a sealed run is an audit by one account",
    "key_env": "each account has its own",
}
_VARIABLE = re.compile(r"\w+")  # no address of a target is one word


def as_accounts(
    task: AuditTask, accounts: Mapping[str, object], note: Note = warn
) -> dict[str, tuple[AuditTask, PreparedAudit]]:
    """Return the audit by each account, of documents that are read once.

    Args:
        task: The audit that all of them make, at the level of all together.
        accounts: By name: the variable with its key, or the system as this account reaches it.
        note: Called with remarks on the files that were read.

    Raises:
        InputError: An option cannot be used.
    """
    for name, reason in _NOT_AS.items():
        if getattr(task, name) is not None:
            raise InputError(
                f"--{name.replace('_', '-')} does not apply to --as: {reason}.", "Leave it out."
            )
    # An equal part of the level each: together they keep the whole (membership/results/scope.py).
    task = replace(task, alpha=task.alpha / len(accounts))
    order, audits = task.order(note), {}
    for name, whose in accounts.items():
        # A word names the variable of a key; anything else is the target of this account.
        if isinstance(whose, str) and _VARIABLE.fullmatch(whose):
            account_task = replace(task, key_env=whose)
        else:
            account_task = replace(task, target=whose)
        account_task.transport()  # refuses a variable that cannot be one
        audits[name] = account_task, order
    return audits


def undecidable(remarks: Sequence[str]) -> InputError:
    """Return the refusal of an audit that could hardly decide anything."""
    return InputError(
        f"{' '.join(remarks)} Nothing was sent.",
        "Give more documents, --known-out ones of the same kind; or go on all the same: --yes"
        " (in Python yes=True)",
    )


async def choose_method(
    order: PreparedAudit,
    target: Target,
    limiter: RateLimiter,
    folder: Path | None,
    progress: Progress | None = None,
) -> PreparedAudit:
    """Measure a target, try the methods on it, and return the audit with the chosen one.

    Raises:
        CapabilityError: No method can be chosen.
        InputError: No method has a question for any document; then nothing was sent.
    """
    from ragwitness.membership.auto_select import choose, refuse_beforehand, run_pilot
    from ragwitness.membership.method_registry import build_audit
    from ragwitness.membership.results.odds import FEWEST_KNOWN
    from ragwitness.models.model_registry import load_language_model
    from ragwitness.runner.capabilities import measured

    proxy = load_language_model(order.proxy)
    await refuse_beforehand(order.plan, proxy)
    report = await measured(target, limiter, folder)
    piloting = partial(run_pilot, target, limiter, folder, progress=progress)
    choice = await choose(order.plan, report, proxy, order.budget, piloting)
    chosen = replace(order, method=choice.method, config=choice.config, why=choice.why)
    audit = build_audit(choice.method, proxy, choice.config)
    # Without documents to test them on, e-values of such a method decide nothing.
    if len(order.plan.known_out) < FEWEST_KNOWN and not getattr(audit, "stands_alone", False):
        return replace(chosen, plan=replace(order.plan, references=()))
    return chosen


async def run_prepared(
    order: PreparedAudit,
    target: Target,
    limiter: RateLimiter,
    folder: Path | None,
    progress: Progress | None = None,
) -> AuditResult:
    """Ask about every document, and return the verdicts."""
    from ragwitness.membership.run import run_audit

    audit, identity = await order.fitted_to(target, limiter, folder)
    result = await run_audit(
        order.plan, target, audit, run=folder, progress=progress, limiter=limiter,
        identity=identity,
    )  # fmt: skip
    if not order.why:
        return result
    return replace(result, settings={"chosen": order.why} | dict(result.settings))
