"""The work of one shard: its units, asked and kept in a folder of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ragwitness.asking.budget import QueryLedger
from ragwitness.asking.capabilities import seen_before
from ragwitness.asking.governor import Governor, Pace
from ragwitness.asking.journal import Journal
from ragwitness.asking.scores import (
    AuditUnit,
    RunFolder,
    StoredScore,
    files_of_scores,
    read_scores,
    start_for,
    write_scores,
)
from ragwitness.asking.shards import (
    Shard,
    files_of_shards,
    refuse_beside,
    shards_of,
    share,
    spent_before,
)
from ragwitness.asking.worker import PATIENCE, Outcome, Progress
from ragwitness.audits.disclosure import sent_before
from ragwitness.audits.membership import Effort, Statistic, conclude, looks_at, trained
from ragwitness.audits.order import Manifest, Order, fitted
from ragwitness.audits.plan import SHADOW_STAGES, Systems, at_shadow, at_target, auxiliary_of
from ragwitness.errors import InputError, RagwitnessError
from ragwitness.kit.files import at_hand, replace_file
from ragwitness.kit.run_files import ANSWERS, SCORES, SPENT, TARGET
from ragwitness.membership.shadow import Shadow, build_shadow
from ragwitness.results.membership import AuditResult
from ragwitness.targets.probe import CapabilityReport
from ragwitness.types import Audit, Document, Target


def governor_of_shard(order: Order, run: Path, shard: Shard) -> Governor:
    """Return the governor of a shard: its share of the caps and of the pace.

    Raises:
        CapReachedError: Nothing is left for it.
        InputError: Another process is at work whose spending is counted otherwise.
    """
    ledger = QueryLedger(shard.folder(run) / SPENT)  # first: it keeps others out that start now
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
        audit: As from :func:`~ragwitness.audits.order.audit_at`.
        identity: Likewise.
        governor: Lets queries to the target pass.
        progress: Called after each document.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Another process is at work on the shard.
    """
    stages = order.stages()
    wanted, start = stages.part(shard.takes), start_for(at_target(stages.documents))
    with RunFolder.of_shard(run, shard, identity) as folder:
        found = await ask_shadow(order, wanted, folder, audit, progress)
        worker = folder.worker(target, order.plan.in_flight, governor, start)
        asked = await worker.run_stages(
            audit, at_target(wanted), progress, mixed=True, patience=PATIENCE
        )
    return [*found, *(outcome for part in asked.values() for outcome in part)]


async def ask_shadow(
    order: Order,
    wanted: Mapping[str, Sequence[Document]],
    folder: RunFolder,
    audit: Audit,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Ask the shadow system about those of a shard's documents that are meant for it."""
    # Every shard builds the same shadow from the same seed and asks it about its own units only.
    mine = at_shadow(wanted)
    if not any(mine.values()):
        return []
    shadow = build_shadow(auxiliary_of(order.plan), order.plan.shadow)
    worker = folder.worker(shadow.target, order.plan.in_flight)
    asked = await worker.run_stages(audit, mine, progress)
    return [outcome for part in asked.values() for outcome in part]


# From shards to a result: unite what they left, or name what is missing.

_NAMED = 8  # shards in an error


def merge_run(manifest: Manifest, run: Path) -> AuditResult:
    """Unite what the shards of a run left in its folder and conclude; nothing is asked.

    Args:
        manifest: What was to be done.
        run: Folder of the run.

    Raises:
        InputError: A unit is missing, a shard is still at work, shards saw different systems,
            or too few shadow documents can be scored.
        RagwitnessError: The disk is full or fails.
    """
    refuse_beside(run)
    order = manifest.order
    stages, seen = order.stages(), _target_of(run)
    audit, identity = fitted(order.method, order.config, order.proxy, seen.alternatives, order.plan)
    shadow: Shadow | None = None
    if any(stage in SHADOW_STAGES for stage in stages.documents):
        shadow = build_shadow(stages.auxiliary, order.plan.shadow)
    systems = Systems(seen.target, shadow.target.name if shadow else None)
    # 1. What was done: every unit of the order, by its address.
    units = list(stages.units(identity, systems))
    kept = read_scores(files_of_scores(run))
    found = _outcomes(units, kept, run)
    # 2. Unite answers and scores in the order of the audit.
    with Journal(run / ANSWERS) as journal:
        journal.adopt(files_of_shards(run, ANSWERS))
    write_scores(run / SCORES, units, found)
    # 3. Conclude as one process does.
    statistic = Statistic()
    if shadow is not None:
        inside, outside = (found[stage] for stage in SHADOW_STAGES)
        statistic = trained(audit, shadow, inside, outside, automl=order.plan.automl)
    account = Effort(
        manifest.prepared,
        _seconds(manifest.prepared, run),
        spent_before(run),
        order.budget,
        _stopped_by(outcome for part in found.values() for outcome in part),
    )
    looks = looks_at(run, identity, found, order.plan)
    asked, known = stages.documents["documents"], stages.reference.documents
    before = sent_before(run, seen.target, asked, known)
    its = (order.plan, audit, seen.target, stages, statistic, found, account)
    return conclude(*its, looks=looks, before=before)


def _target_of(run: Path) -> CapabilityReport:
    """What all shards saw of the target; the run's folder keeps it.

    Raises:
        InputError: Nobody has begun, or they saw different things.
    """
    folders = [run, *(folder for _, folder in shards_of(run))]
    seen = {folder: report for folder in folders if (report := seen_before(folder))}
    if not seen:
        raise InputError(
            f"No shard has begun in {run}.", f"Begin: ragwitness run work {run} --shard 1/4"
        )
    first, report = next(iter(seen.items()))
    for folder, other in seen.items():
        if (other.target, other.alternatives) != (report.target, report.alternatives):
            raise InputError(
                f"Not all asked the same system: {first} saw {_said(report)},"
                f" {folder} saw {_said(other)}.",
                "Delete the folder that is wrong; its shard can be done again.",
            )
    if first != run:
        replace_file(run / TARGET, (first / TARGET).read_text(encoding="utf-8"))
    return report


def _said(report: CapabilityReport) -> str:
    return f"{report.target} with {report.alternatives} alternatives per token"


def _outcomes(
    units: Sequence[AuditUnit], kept: Mapping[str, StoredScore], run: Path
) -> dict[str, list[Outcome]]:
    # A missing unit is named, never counted as unscorable: its shard can still be done.
    # Copies of a unit have one place, by which shards are told apart.
    distinct = dict.fromkeys(unit.id for unit in units)
    missing = [place for place, unit in enumerate(distinct) if unit not in kept]
    if missing:
        raise _unfinished(missing, len(units), run)
    found: dict[str, list[Outcome]] = {}
    for unit in units:
        found.setdefault(unit.stage, []).append(kept[unit.id].of(unit.document))
    for stage in ("known outside", "known inside", "documents"):
        found.setdefault(stage, [])
    return found


def _unfinished(missing: Sequence[int], units: int, run: Path) -> InputError:
    """Name the shards whose units are missing, and the first command to run."""
    # Places are dealt out as cards are: unit n belongs to shard n mod N.
    of = max((shard.of for shard, _ in shards_of(run)), default=1)
    counts = Counter(place % of + 1 for place in missing)
    names = [f"{Shard(of, number)} ({counts[number]})" for number in sorted(counts)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    first = Shard(of, min(counts))
    return InputError(
        f"{len(missing)} of {units} units are not finished, in shards"
        f" {', '.join(names[:_NAMED])}{more}.",
        f"Finish them, beginning with: ragwitness run work {run} --shard {first}",
    )


def _stopped_by(outcomes: Iterable[Outcome]) -> str | None:
    """Name of the cap that refused a query; it stands in the reason."""
    reasons = (outcome.score.reason or "" for outcome in outcomes if outcome.capped)
    return next((reason.removesuffix(" cap reached") for reason in reasons), None)


def _seconds(prepared: str, run: Path) -> float:
    """From preparing to the last finished unit."""
    forms = filter(None, map(at_hand, files_of_scores(run)))
    last = max(form.stat().st_mtime for form in forms)
    return max(0.0, last - datetime.fromisoformat(prepared).timestamp())
