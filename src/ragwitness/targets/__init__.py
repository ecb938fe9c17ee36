"""The system under audit and its adapters."""

from ragwitness.targets.address import Address
from ragwitness.targets.objects import wrap
from ragwitness.targets.probe import CapabilityReport, probe_capabilities
from ragwitness.targets.resolve import open_target, target_schemes
from ragwitness.targets.retry import RetryPolicy
from ragwitness.targets.transport import TransportOptions

__all__ = [
    "Address",
    "CapabilityReport",
    "RetryPolicy",
    "TransportOptions",
    "open_target",
    "probe_capabilities",
    "target_schemes",
    "wrap",
]
