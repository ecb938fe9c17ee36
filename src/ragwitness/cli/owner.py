"""``ragwitness audit --collection``: does this provider hold my collection?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.asking.worker import Progress
    from ragwitness.cli.outputs import Outputs
    from ragwitness.errands.audit import AuditErrand
    from ragwitness.results.collection import CollectionResult
    from ragwitness.types import Target


def audit_collection(errand: AuditErrand, outputs: Outputs, *, dry_run: bool) -> None:
    """Ask about the documents of a collection one by one until the evidence suffices.

    Raises:
        InputError: An option cannot be used.
    """
    from dataclasses import replace

    from ragwitness.audits.order import audit_at
    from ragwitness.audits.owner import run_collection, undecidable
    from ragwitness.cli.common import run_folder, say_error
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import agree, ask, preview_audit, wait
    from ragwitness.errors import InputError
    from ragwitness.targets.resolve import open_target

    # The e-value bets against "these documents are like those outside", so there is no default
    # here: generated documents are never of the same source and kind.
    if errand.known_out is None:
        raise InputError(
            "A collection is compared with documents known to be outside.",
            "Give some of the same source and kind: --known-out FILE",
        )
    order = errand.order(say_error, collection=True)
    plan, target = order.plan, str(errand.target)
    method = order.method, order.config, order.proxy
    same = replace(plan, in_flight=1)  # another --concurrency resumes the same run
    # The seed decides the order of asking, so it is part of the run's name: another order is
    # another sequence of bets, and both must not be read as one.
    folder = run_folder(errand.run, "owner", target, same, *method, errand.seed)
    # Preview: what would be asked at most, and what is kept already; nothing is sent.
    if dry_run:
        preview_audit(plan, *method, folder, order.budget)
        return
    if told := undecidable(plan):
        agree([told], doubtful=True, yes=errand.yes)
    wait(order.refuse_unscorable())
    # Asking: one document after the other, until the e-value passes 1 / alpha or a cap is reached.
    with errand.governed(folder) as (governor, transport):

        async def work(opened: Target, progress: Progress) -> CollectionResult:
            audit, _ = await audit_at(opened, method, governor, folder, plan)
            return await run_collection(
                plan, opened, audit, seed=errand.seed, run=folder, progress=progress,
                governor=governor,
            )  # fmt: skip

        result = ask(open_target(target, transport), work, folder, governor)
    # Conclusion: store first, then show; --fail-on decides the exit code.
    conclude(result, outputs, store=folder)
