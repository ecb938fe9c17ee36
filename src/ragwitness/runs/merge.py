"""From shards to a result: unite what they left, or name what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.membership.srag import Shadow, build_shadow
from ragwitness.runs.appending import replace_file
from ragwitness.runs.check import TARGET, seen_before
from ragwitness.runs.conclusion import Account, conclude
from ragwitness.runs.journal import ANSWERS, Journal
from ragwitness.runs.manifest import Manifest
from ragwitness.runs.order import fitted
from ragwitness.runs.result import AuditResult
from ragwitness.runs.scores import FINISHED, SCORES, Kept, read_books, write_scores
from ragwitness.runs.shards import Shard, files_of_shards, refuse_beside, shards_of, spent_before
from ragwitness.runs.statistic import Statistic, trained
from ragwitness.runs.units import SHADOW_STAGES, Systems, Unit, auxiliary_of
from ragwitness.runs.worker import Outcome
from ragwitness.targets import CapabilityReport

__all__ = ["finished_units", "merge_run"]

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
    audit, identity = fitted(order.method, order.config, order.proxy, seen.alternatives)
    shadow: Shadow | None = None
    if any(stage in SHADOW_STAGES for stage in stages.documents):
        shadow = build_shadow(auxiliary_of(order.plan), order.plan.shadow)
    systems = Systems(seen.target, shadow.target.name if shadow else None)
    units = list(stages.units(identity, systems))
    kept = read_books(_books(run))
    found = _outcomes(units, kept, run)
    with Journal(run / ANSWERS) as journal:
        journal.adopt(files_of_shards(run, ANSWERS))
    write_scores(run / SCORES, units, found)
    statistic = Statistic()
    if shadow is not None:
        inside, outside = (found[stage] for stage in SHADOW_STAGES)
        statistic = trained(shadow, inside, outside, automl=order.plan.automl)
    account = Account(
        manifest.prepared,
        _seconds(manifest.prepared, run),
        spent_before(run),
        order.budget,
        _stopped_by(outcome for part in found.values() for outcome in part),
    )
    return conclude(order.plan, audit, seen.target, stages, statistic, found, account)


def finished_units(run: Path) -> int:
    """Return how many rows the books of a run and its shards hold: a measure of progress."""
    return sum(path.read_bytes().count(b"\n") for path in _books(run) if path.exists())


def _books(run: Path) -> list[Path]:
    return [run / FINISHED, *files_of_shards(run, FINISHED)]


def _target_of(run: Path) -> CapabilityReport:
    """What all shards saw of the target; the run's folder keeps it.

    Raises:
        InputError: Nobody has begun, or they saw different things.
    """
    folders = [run, *(folder for _, folder in shards_of(run))]
    seen = {folder: report for folder in folders if (report := seen_before(folder))}
    if not seen:
        raise InputError(
            f"No shard has begun in {run}.", f"Begin: ragwitness work {run} --shard 1/4"
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
    units: Sequence[Unit], kept: Mapping[str, Kept], run: Path
) -> dict[str, list[Outcome]]:
    missing = [place for place, unit in enumerate(_distinct(units)) if unit.id not in kept]
    if missing:
        raise _unfinished(missing, len(units), run)
    found: dict[str, list[Outcome]] = {}
    for unit in units:
        found.setdefault(unit.stage, []).append(kept[unit.id].of(unit.document))
    for stage in ("known outside", "known inside", "documents"):
        found.setdefault(stage, [])
    return found


def _distinct(units: Iterable[Unit]) -> list[Unit]:
    """Each unit once, at the place by which shards are told apart."""
    return list({unit.id: unit for unit in units}.values())


def _unfinished(missing: Sequence[int], units: int, run: Path) -> InputError:
    """Name the shards whose units are missing, and the first command to run."""
    of = max((shard.of for shard, _ in shards_of(run)), default=1)
    counts = Counter(place % of + 1 for place in missing)
    names = [f"{Shard(of, number)} ({counts[number]})" for number in sorted(counts)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    first = Shard(of, min(counts))
    return InputError(
        f"{len(missing)} of {units} units are not finished, in shards"
        f" {', '.join(names[:_NAMED])}{more}.",
        f"Finish them, beginning with: ragwitness work {run} --shard {first}",
    )


def _stopped_by(outcomes: Iterable[Outcome]) -> str | None:
    """Name of the cap that refused a query; it stands in the reason."""
    reasons = (outcome.score.reason or "" for outcome in outcomes if outcome.capped)
    return next((reason.removesuffix(" cap reached") for reason in reasons), None)


def _seconds(prepared: str, run: Path) -> float:
    """From preparing to the last finished unit."""
    last = max(path.stat().st_mtime for path in _books(run) if path.exists())
    return max(0.0, last - datetime.fromisoformat(prepared).timestamp())
