"""The relations that are proved, as constraint systems (docs/design/circuits.md)."""

from ragwitness.crypto.proofs.circuits.link import (
    link_circuit,
    link_commitment,
    link_margins,
    threshold_commitment,
)
from ragwitness.crypto.proofs.circuits.norm import norm_circuit, norm_commitment

__all__ = [
    "link_circuit",
    "link_commitment",
    "link_margins",
    "norm_circuit",
    "norm_commitment",
    "threshold_commitment",
]
