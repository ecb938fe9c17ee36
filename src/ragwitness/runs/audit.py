"""A whole membership audit in one process: shadow system, calibration, documents, verdicts."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from ragwitness.membership.srag import build_shadow
from ragwitness.runs.conclusion import Account, conclude
from ragwitness.runs.governor import Governor
from ragwitness.runs.pace import Pace
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.records import Records
from ragwitness.runs.result import AuditResult
from ragwitness.runs.scores import SCORES, write_scores
from ragwitness.runs.statistic import Statistic, trained
from ragwitness.runs.units import Systems, at_shadow, at_target, auxiliary_of, learns, stages_of
from ragwitness.runs.worker import Progress
from ragwitness.types import Audit, Target

__all__ = ["run_audit"]


async def run_audit(
    plan: AuditPlan,
    target: Target,
    audit: Audit,
    *,
    run: Path | None = None,
    progress: Progress | None = None,
    governor: Governor | None = None,
    identity: str | None = None,
) -> AuditResult:
    """Run the audit; answers already in ``run`` are not asked for again.

    An audit with the attribute ``learns`` is read by a classifier trained on a shadow system;
    the others' scores are ranked as they are.

    Args:
        plan: Documents and settings.
        target: The system under audit.
        audit: The method with its proxy model.
        run: Folder of the journal; None keeps nothing.
        progress: Called after each document.
        governor: Lets queries to the target pass; None makes one without caps for ``run``.
        identity: From :func:`~ragwitness.runs.units.audit_identity`. With it, scores are kept
            in ``run`` as well as answers; without it they are computed anew from the answers,
            because an audit made by hand may be another one under the same name.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Too few auxiliary documents can be scored.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    stages = stages_of(plan, learns(audit))
    with ExitStack() as files:
        if governor is None:
            pace = Pace.at_most(plan.in_flight)
            governor = files.enter_context(Governor.of_run(run, pace=pace))
        records = files.enter_context(Records.of_run(run, identity))
        statistic, found = Statistic(), {}
        systems = Systems(target.name)
        if learns(audit):
            shadow = build_shadow(auxiliary_of(plan), plan.shadow)
            systems = Systems(target.name, shadow.target.name)
            wanted = at_shadow(stages.documents)
            worker = records.worker(shadow.target, plan.in_flight)
            found = await worker.run_stages(audit, wanted, progress)
            statistic = trained(shadow, *found.values(), automl=plan.automl)
        wanted = at_target(stages.documents)
        worker = records.worker(target, plan.in_flight, governor)
        found |= await worker.run_stages(audit, wanted, progress)
    if run is not None and identity is not None:
        write_scores(run / SCORES, stages.units(identity, systems), found)
    seconds = time.monotonic() - clock
    account = Account(started, seconds, governor.spent, governor.budget, governor.cap)
    return conclude(plan, audit, target.name, stages, statistic, found, account)
