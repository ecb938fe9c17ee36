"""Runs: the only place that spends queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.lazy import lazy_names

if TYPE_CHECKING:
    from ragwitness.runs.audit import run_audit
    from ragwitness.runs.check import require_capabilities
    from ragwitness.runs.collection import CollectionResult, run_collection
    from ragwitness.runs.forecast import look_ahead
    from ragwitness.runs.outlook import Outlook, OutlookPlan
    from ragwitness.runs.plan import AuditPlan
    from ragwitness.runs.result import AuditResult, Calibration
    from ragwitness.runs.worker import Progress, Worker

_HOMES = {
    "AuditPlan": "plan",
    "AuditResult": "result",
    "Calibration": "result",
    "CollectionResult": "collection",
    "Outlook": "outlook",
    "OutlookPlan": "outlook",
    "Progress": "worker",
    "Worker": "worker",
    "look_ahead": "forecast",
    "require_capabilities": "check",
    "run_audit": "audit",
    "run_collection": "collection",
}

__all__ = [
    "AuditPlan",
    "AuditResult",
    "Calibration",
    "CollectionResult",
    "Outlook",
    "OutlookPlan",
    "Progress",
    "Worker",
    "look_ahead",
    "require_capabilities",
    "run_audit",
    "run_collection",
]

# Lazy, because a stored result can be shown without the audit's machinery.
__getattr__ = lazy_names(__name__, _HOMES)
