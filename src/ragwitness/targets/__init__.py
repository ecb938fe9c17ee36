"""The system under audit and its adapters."""

from ragwitness.targets.probe import CapabilityReport, probe_capabilities
from ragwitness.targets.resolve import open_target
from ragwitness.targets.retry import RetryPolicy
from ragwitness.targets.transport import TransportOptions

__all__ = [
    "CapabilityReport",
    "RetryPolicy",
    "TransportOptions",
    "open_target",
    "probe_capabilities",
]
