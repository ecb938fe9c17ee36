"""Runs: the only place that spends queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.lazy import lazy_names

if TYPE_CHECKING:
    from ragwitness.runs.audit import run_audit
    from ragwitness.runs.budget import Budget
    from ragwitness.runs.check import require_capabilities
    from ragwitness.runs.collection import CollectionResult, run_collection
    from ragwitness.runs.forecast import look_ahead
    from ragwitness.runs.governor import Governor
    from ragwitness.runs.outlook import Outlook, OutlookPlan
    from ragwitness.runs.pace import Pace
    from ragwitness.runs.plan import AuditPlan
    from ragwitness.runs.result import AuditResult, Calibration, Spending
    from ragwitness.runs.worker import Progress, Worker

_HOMES = {
    "AuditPlan": "plan",
    "AuditResult": "result",
    "Budget": "budget",
    "Calibration": "result",
    "CollectionResult": "collection",
    "Governor": "governor",
    "Outlook": "outlook",
    "OutlookPlan": "outlook",
    "Pace": "pace",
    "Progress": "worker",
    "Spending": "result",
    "Worker": "worker",
    "look_ahead": "forecast",
    "require_capabilities": "check",
    "run_audit": "audit",
    "run_collection": "collection",
}

__all__ = [
    "AuditPlan",
    "AuditResult",
    "Budget",
    "Calibration",
    "CollectionResult",
    "Governor",
    "Outlook",
    "OutlookPlan",
    "Pace",
    "Progress",
    "Spending",
    "Worker",
    "look_ahead",
    "require_capabilities",
    "run_audit",
    "run_collection",
]

# Lazy, because a stored result can be shown without the audit's machinery.
__getattr__ = lazy_names(__name__, _HOMES)
