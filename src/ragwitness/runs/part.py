"""The work of one shard: its units, asked and kept in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragwitness.errors import RagwitnessError
from ragwitness.membership.srag import build_shadow
from ragwitness.runs.appending import replace_file
from ragwitness.runs.check import TARGET, seen_before
from ragwitness.runs.governor import Governor
from ragwitness.runs.ledger import LEDGER, Ledger
from ragwitness.runs.order import Order
from ragwitness.runs.pace import Pace
from ragwitness.runs.records import Records
from ragwitness.runs.shards import Shard, refuse_beside, shards_of, share
from ragwitness.runs.units import at_shadow, at_target, auxiliary_of
from ragwitness.runs.worker import Outcome, Progress
from ragwitness.types import Audit, Document, Target

__all__ = ["adopt_target", "ask_shadow", "governor_of_shard", "work_shard"]


def governor_of_shard(order: Order, run: Path, shard: Shard) -> Governor:
    """Return the governor of a shard: its share of the caps and of the pace.

    Raises:
        CapReachedError: Nothing is left for it.
        InputError: Another process is at work whose spending is counted otherwise.
    """
    ledger = Ledger(shard.folder(run) / LEDGER)  # first: it keeps others out that start now
    try:
        refuse_beside(run, shard)
        budget = share(order.budget, shard, run)
    except RagwitnessError:
        ledger.close()
        raise
    return Governor(budget, Pace.up_to(max(1, order.plan.in_flight // shard.of)), ledger)


def adopt_target(run: Path, folder: Path) -> None:
    """Take over what others saw of the target, so that it is not asked again.

    Args:
        run: Folder of the run.
        folder: Of the run, or of a shard: who would ask.
    """
    if seen_before(folder) is not None:
        return
    for other in (run, *(path for _, path in shards_of(run))):
        if seen_before(other) is not None:
            replace_file(folder / TARGET, (other / TARGET).read_text(encoding="utf-8"))
            return


async def work_shard(
    order: Order,
    run: Path,
    shard: Shard,
    target: Target,
    audit: Audit,
    identity: str,
    governor: Governor,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Ask about every unit of a shard that is not finished, and return the outcomes of all.

    Args:
        order: The whole audit.
        run: Its folder.
        shard: Whose units.
        target: The system under audit.
        audit: As from :func:`~ragwitness.runs.order.audit_at`.
        identity: Likewise.
        governor: Lets queries to the target pass.
        progress: Called after each document.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Another process is at work on the shard.
    """
    wanted = order.stages().part(shard.takes)
    with Records.of_shard(run, shard, identity) as records:
        found = await ask_shadow(order, wanted, records, audit, progress)
        worker = records.worker(target, order.plan.in_flight, governor)
        asked = await worker.run_stages(audit, at_target(wanted), progress)
    return [*found, *(outcome for part in asked.values() for outcome in part)]


async def ask_shadow(
    order: Order,
    wanted: Mapping[str, Sequence[Document]],
    records: Records,
    audit: Audit,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Ask the shadow system about those of a shard's documents that are meant for it."""
    mine = at_shadow(wanted)
    if not any(mine.values()):
        return []
    shadow = build_shadow(auxiliary_of(order.plan), order.plan.shadow)
    worker = records.worker(shadow.target, order.plan.in_flight)
    asked = await worker.run_stages(audit, mine, progress)
    return [outcome for part in asked.values() for outcome in part]
