"""``ragwitness audit``: are these documents in that system's database?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ragwitness.cli.options import (
    Address,
    Answered,
    Caps,
    ConcurrencyIfAny,
    Documents,
    DryRun,
    EngineName,
    FailOn,
    Gpus,
    HowRead,
    MethodSettings,
    Paragraphs,
    Proxy,
    QuestionsTo,
    RayAddress,
    Reached,
    RunPath,
    Sealing,
    Workers,
)
from ragwitness.cli.typer_options import Files
from ragwitness.kit.options import Opt, PathRole

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from ragwitness.asking.worker import Progress
    from ragwitness.evidence.subject import SealSubject
    from ragwitness.results.membership import AuditResult
    from ragwitness.types import Audit, Target


def audit(
    target: Address,
    documents: Documents,
    collection: bool = False,
    method: Annotated[str | None, Opt(shown="auto; mba with --collection")] = None,
    options: MethodSettings = None,
    known_out: Annotated[str | None, PathRole.DOCUMENTS] = None,
    known_in: Annotated[str | None, PathRole.DOCUMENTS] = None,
    auxiliary: Annotated[str | None, PathRole.DOCUMENTS, Opt(shown="generated ones")] = None,
    alpha: float = 0.05,
    ties: str = "conservative",
    accept_unlike: bool = False,
    yes: bool = False,
    run: RunPath = None,
    files: Files | None = None,
    fail_on: FailOn = None,
    *,
    how: HowRead,
    group_field: str | None = None,
    paragraphs: Paragraphs = False,
    retrieval: Annotated[str, PathRole.ADDRESS] = "lexical",
    generator: Annotated[str, PathRole.ADDRESS] = "reader",
    k: int = 4,
    proxy: Proxy = "reader",
    automl: bool = False,
    concurrency: ConcurrencyIfAny = None,
    caps: Caps,
    dry_run: DryRun = False,
    reached: Reached,
    seed: int = 0,
    engine: EngineName = "local",
    workers: Workers = None,
    worker_gpus: Gpus = 0.0,
    ray_address: RayAddress = None,
    questions_to: QuestionsTo = None,
    answered: Answered = None,
    sealing: Sealing,
) -> None:
    """Find out whether documents are in a RAG system's database.

    It prints a verdict for each document (in, out or inconclusive, with its p-value) and writes an
    HTML report. Before the first query it says what so many documents can decide, and compares the
    texts of --known-out with those in question. Where they differ, no verdict says that a document
    is in.

    With --collection it prints one verdict for all documents together. It asks about one after
    another, and you may look at the e-value, and stop, at any time. That verdict says that the
    collection is not like the documents of --known-out, which must be of the same source and kind;
    it does not say which of its documents are inside.

    Query only systems that you are allowed to query; see RESPONSIBLE_USE.md.

    Args:
        collection: Ask whether the documents as a whole are inside, one by one until the evidence
            suffices.
        method: The audit: auto chooses by what the target, the documents and the caps admit, and
            says why. Or runon, s-rag, mba, rag-mia, s2mia, min-k, min-k++ or passages. NAME:paper
            is the audit as its paper has it, s2mia:t and s2mia:m those with thresholds or a
            classifier.
        known_out: Documents that are known to be outside and are like those in question. They
            calibrate the verdicts.
        known_in: Documents that are known to be inside. Without them no verdict says out.
        auxiliary: Documents for the shadow system.
        alpha: The share of wrong accusations that is accepted.
        ties: How equal scores are ranked: conservative counts them against an accusation, random
            breaks them by lot (--seed).
        accept_unlike: Keep verdicts in although the calibration documents differ from those in
            question. They are not exact, and no ground for an accusation.
        yes: Go on without being asked where an audit can hardly decide anything.
        group_field: The field or column that names the author, template or source of a document.
            Known documents of one group have one vote together.
        retrieval: How the shadow system finds passages: lexical, minilm or hf:NAME.
        generator: The model that answers in the shadow system, named as for lab serve.
        k: The number of passages for each query in the shadow system.
        automl: Train the classifier with AutoGluon; needs the extra [automl].
        seed: The seed that splits the auxiliary documents; with --ties random, it breaks ties.
    """
    from contextlib import nullcontext
    from dataclasses import replace

    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.audits.choice import AUTO, USUAL
    from ragwitness.audits.membership import run_audit
    from ragwitness.audits.order import Order, trains
    from ragwitness.audits.plan import AuditPlan
    from ragwitness.cli.common import (
        cluster_wanted,
        console,
        key_values,
        on_cores,
        read_documents,
        run_folder,
    )
    from ragwitness.cli.outputs import Outputs
    from ragwitness.cli.owner import audit_collection
    from ragwitness.cli.questions import write_down
    from ragwitness.cli.steps import (
        agree,
        chosen_order,
        driven,
        finish,
        preview_audit,
        seal_first,
        wait,
    )
    from ragwitness.errors import InputError
    from ragwitness.lab import rag_config
    from ragwitness.membership.registry import configure
    from ragwitness.membership.shadow import ShadowConfig
    from ragwitness.models.cluster import models_on
    from ragwitness.targets.resolve import open_target
    from ragwitness.types import Document, LeftOut

    lost: list[LeftOut | str] = []

    def read(source: str | None) -> tuple[Document, ...]:
        if source is None:
            return ()
        return read_documents(
            source, how, group_field=group_field, paragraphs=paragraphs, left_out=lost
        )

    # Step 1, the options: everything is read and checked before a model is loaded or a query is
    # sent.
    budget = caps.budget()
    cluster = cluster_wanted(engine, workers, worker_gpus, ray_address)
    cores = cluster.workers if cluster else on_cores(workers)
    if concurrency is None:
        concurrency = max(4, 2 * cores) if target.startswith("lab:") else 4
    if answered is not None and questions_to is None:
        raise InputError(
            "--answered is for writing what is still to be asked.", "--questions-to FILE"
        )
    of_shadow = {
        "--automl": automl,
        "--retrieval": retrieval != "lexical",
        "--generator": generator != "reader",
        "--k": k != 4,
    }
    # A collection is another errand, with one e-value in place of a p-value for each document. An
    # option that only the other errand reads is refused: ignoring it would audit something else
    # than what was asked for.
    if collection:
        idle = {
            "--ties": ties != "conservative",
            "--known-in": known_in is not None,
            **{f"--{name}": name != "json" for name in files or ()},
            "--engine": engine != "local",
            "--questions-to": questions_to is not None,
            "--seal": sealing.seal is not None,
            **of_shadow,
        }
        if given := [option for option, used in idle.items() if used]:
            raise InputError(
                f"{given[0]} does not apply to a collection.", "Leave it out, or --collection."
            )
        # The e-value bets against "these documents are like those outside", so there is no default
        # here: generated documents are never of the same source and kind.
        if known_out is None:
            raise InputError(
                "A collection is compared with documents known to be outside.",
                "Give some of the same source and kind: --known-out FILE",
            )
        audit_collection(
            target,
            read(documents),
            read(known_out),
            read(auxiliary),
            method or "mba",
            options or (),
            alpha=alpha,
            proxy=proxy,
            seed=seed,
            concurrency=concurrency,
            budget=budget,
            reach=reached.reach(),
            run=run,
            outputs=Outputs.wanted("collection", files, fail_on),
            dry_run=dry_run,
            accept_unlike=accept_unlike,
            yes=yes,
            left_out=tuple(lost),
        )
        return
    # Step 2, the audit of single documents: the method's configuration, from options and --set.
    method = method or AUTO
    outputs = Outputs.wanted("audit", files, fail_on)
    pace = Pace.up_to(concurrency)
    settings: Mapping[str, object] = key_values(options or ())
    if by_itself := method == AUTO:
        if settings:
            raise InputError(
                f"--method auto chooses the method, and {next(iter(settings))} belongs to one.",
                "Name the method, or leave the option out.",
            )
        if questions_to is not None:
            raise InputError(
                "--method auto asks the target what it can do, and --questions-to asks nothing.",
                "Name the method: --method mba",
            )
        method, settings = USUAL
    config = configure(method, settings)
    given = [option for option, used in of_shadow.items() if used]
    if given and not trains(method, config):
        raise InputError(
            f"{given[0]} is for a shadow system, and {AUTO if by_itself else method} asks none.",
            "Leave it out, or name a method that learns from one: --method s-rag:paper",
        )
    # Step 3, the plan: whom to ask about, and what the p-values are ranks among
    # (docs/design/verdicts.md).
    plan = AuditPlan(
        documents=read(documents),
        known_out=read(known_out),
        known_in=read(known_in),
        auxiliary=read(auxiliary),
        alpha=alpha,
        shadow=ShadowConfig(
            rag=rag_config(k=k, retrieval=retrieval, generator=generator), seed=seed
        ),
        automl=automl,
        in_flight=concurrency,
        accept_unlike=accept_unlike,
        ties=ties,  # type: ignore[arg-type]  # checked there
        tie_seed=seed,
    )
    plan = replace(plan, left_out=tuple(lost))
    # How many at a time decides no answer: another --concurrency resumes the same run.
    named = (AUTO,) if by_itself else (method, config)
    folder = run_folder(run, target, replace(plan, in_flight=1), *named, proxy)
    # Step 4, the preview. Nothing is opened and nothing is sent.
    screen = console()
    if dry_run:
        if by_itself:
            screen.print(f"auto asks the target what it gives; without that, it would be {method}.")
        preview_audit(plan, method, config, proxy, folder, budget)
        return
    reach = reached.reach()
    order = Order(target, plan, method, config, proxy, reach, budget)
    # What can be said of the audit without a query is said now, and may end it.
    agree(*order.beforehand(), yes=yes)
    if sealing.seal is not None and questions_to is not None:
        raise InputError(
            "A sealed audit asks its questions itself, and links each answer to the one before.",
            "Leave out --questions-to or --seal.",
        )

    def subject() -> SealSubject:
        from ragwitness.evidence.audit import subject_of

        return subject_of(order)

    def work(
        opened: Target, asked: Audit, identity: str, progress: Progress
    ) -> Coroutine[Any, Any, AuditResult]:
        return run_audit(
            plan, opened, asked, run=folder, progress=progress, governor=governor, identity=identity
        )

    # Language models compute on the cluster where there is one; all else stays in this process.
    with models_on(cluster) if cluster else nullcontext():
        if by_itself:
            order = chosen_order(order, folder, pace)
        wait(order.refuse_unscorable())
        # What the target can do may have been asked by now; nothing about a document was.
        seal_first(folder, subject, sealing)
        # Step 5, the asking.
        if questions_to is not None:
            write_down(order, questions_to, answered, screen)
            return
        # The governor reserves the worst case of every query before it is sent, and no query to the
        # target passes beside it (docs/design/runs.md).
        with Governor.of_run(folder, budget, pace) as governor:
            opening = open_target(target, reach.transport(concurrency, governor.setback))
            chosen_method = order.method, order.config, proxy
            result = driven(opening, chosen_method, plan, folder, work, governor)
    finish(result, folder, screen, outputs, why=order.why)
