"""Runs: the only place that spends queries."""

from ragwitness.runs.audit import AuditPlan, run_audit
from ragwitness.runs.check import require_capabilities
from ragwitness.runs.result import AuditResult, Calibration
from ragwitness.runs.worker import Progress, Worker

__all__ = [
    "AuditPlan",
    "AuditResult",
    "Calibration",
    "Progress",
    "Worker",
    "require_capabilities",
    "run_audit",
]
