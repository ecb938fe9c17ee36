"""``ragwitness audit --collection``: does this provider hold my collection?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.cli.outputs import Outputs
    from ragwitness.core.types import Target
    from ragwitness.membership.results.collection import CollectionResult
    from ragwitness.membership.task import AuditTask
    from ragwitness.runner.worker import Progress


def audit_collection(task: AuditTask, outputs: Outputs, *, dry_run: bool) -> None:
    """Ask about the documents of a collection one by one until the evidence suffices.

    Raises:
        InputError: An option cannot be used.
    """
    from dataclasses import replace

    from ragwitness.cli.common import run_folder, say_error
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import agree, ask, preview_audit, wait
    from ragwitness.core.errors import InputError
    from ragwitness.membership.collection import run_collection, undecidable
    from ragwitness.membership.prepared import audit_at
    from ragwitness.targets.resolve import open_target

    # The e-value bets against "these documents are like those outside", so there is no default
    # here: generated documents are never of the same source and kind.
    if task.known_out is None:
        raise InputError(
            "A collection is compared with documents known to be outside.",
            "Give some of the same source and kind: --known-out FILE",
        )
    order = task.order(say_error, collection=True)
    plan, target = order.plan, str(task.target)
    method = order.method, order.config, order.proxy
    same = replace(plan, in_flight=1)  # another --concurrency resumes the same run
    # The seed decides the order of asking, so it is part of the run's name: another order is
    # another sequence of bets, and both must not be read as one.
    folder = run_folder(task.run, "owner", target, same, *method, task.seed)
    # Preview: what would be asked at most, and what is kept already; nothing is sent.
    if dry_run:
        preview_audit(plan, *method, folder, order.budget)
        return
    if told := undecidable(plan):
        agree([told], doubtful=True, yes=task.yes)
    wait(order.refuse_unscorable())
    # Asking: one document after the other, until the e-value passes 1 / alpha or a cap is reached.
    with task.limited(folder) as (limiter, transport):

        async def work(opened: Target, progress: Progress) -> CollectionResult:
            audit, _ = await audit_at(opened, method, limiter, folder, plan)
            return await run_collection(
                plan, opened, audit, seed=task.seed, run=folder, progress=progress,
                limiter=limiter,
            )  # fmt: skip

        result = ask(open_target(target, transport), work, folder, limiter)
    # Conclusion: store first, then show; --fail-on decides the exit code.
    conclude(result, outputs, store=folder)
