"""Zero-knowledge proofs over a committed index: of its rows' norms, and of its answers.

What is here is the verifier's and needs the extra ``[verify]`` alone; the provider's side is
:mod:`.proving` (extra ``[zk]``).
"""

from __future__ import annotations

from ragwitness.crypto.proofs.columns import Columns
from ragwitness.crypto.proofs.norms.verify import verify_norms
from ragwitness.crypto.proofs.selection import Claim, ClaimError, verify_selections
from ragwitness.crypto.proofs.setup import VerifierSetup
from ragwitness.crypto.proofs.shape import Shape

__all__ = [
    "Claim",
    "ClaimError",
    "Columns",
    "Shape",
    "VerifierSetup",
    "verify_norms",
    "verify_selections",
]
