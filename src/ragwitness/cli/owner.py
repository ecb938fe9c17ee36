"""``ragwitness audit --collection``: does this provider hold my collection?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwitness.asking.budget import Budget
    from ragwitness.audits.order import Reach
    from ragwitness.cli.outputs import Outputs
    from ragwitness.types import Document, Reading


def audit_collection(
    target: str,
    documents: tuple[Document, ...],
    known_out: tuple[Document, ...],
    auxiliary: tuple[Document, ...],
    method: str,
    options: Sequence[str],
    *,
    alpha: float,
    proxy: str,
    seed: int,
    concurrency: int,
    budget: Budget,
    reach: Reach,
    run: Path | None,
    outputs: Outputs,
    dry_run: bool,
    accept_unlike: bool = False,
    yes: bool = False,
    left_out: Reading = (),
) -> None:
    """Ask about the documents of a collection one by one until the evidence suffices.

    Raises:
        InputError: An option cannot be used.
    """
    from dataclasses import replace

    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.audits.order import Order
    from ragwitness.audits.owner import run_collection, undecidable
    from ragwitness.audits.plan import AuditPlan
    from ragwitness.cli.common import console, key_values, run_folder
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import agree, driven, preview_audit, wait
    from ragwitness.kit.run_files import REPORT
    from ragwitness.membership.registry import configure
    from ragwitness.targets.resolve import open_target

    # Options first: an unknown method or parameter must cost nothing.
    config = configure(method, key_values(options))
    plan = AuditPlan(
        documents=documents,
        known_out=known_out,
        auxiliary=auxiliary,
        alpha=alpha,
        in_flight=concurrency,
        accept_unlike=accept_unlike,
        left_out=left_out,
    )
    same = replace(plan, in_flight=1)  # another --concurrency resumes the same run
    # The seed decides the order of asking, so it is part of the run's name: another order is
    # another sequence of bets, and both must not be read as one.
    folder = run_folder(run, "owner", target, same, method, config, proxy, seed)
    # Preview: what would be asked at most, and what is kept already; nothing is sent.
    if dry_run:
        preview_audit(plan, method, config, proxy, folder, budget)
        return
    if told := undecidable(plan):
        agree([told], doubtful=True, yes=yes)
    wait(Order(target, plan, method, config, proxy).refuse_unscorable())
    # Asking: one document after the other, until the e-value passes 1 / alpha or a cap is reached.
    with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
        result = driven(
            open_target(target, reach.transport(concurrency, governor.setback)),
            (method, config, proxy),
            plan,
            folder,
            lambda opened, audit, _, progress: run_collection(
                plan, opened, audit, seed=seed, run=folder, progress=progress, governor=governor
            ),
            governor,
        )
    # Conclusion: store first, then show; --fail-on decides the exit code.
    conclude(result, folder / REPORT, console(), outputs, store=folder)
