"""LINK: an answer names the highest noisy scores of the committed index (docs/design/link.md)."""

from ragwitness.crypto.proofs.selection.statement import Claim
from ragwitness.crypto.proofs.selection.verify import ClaimError, verify_selections

__all__ = ["Claim", "ClaimError", "verify_selections"]
