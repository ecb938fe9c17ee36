"""A sparse Merkle map, account to (count, last record): who is in, who is not, and how often."""

from ragwitness.crypto.map.proofs import MapProof, prove_entry, verify_entry
from ragwitness.crypto.map.tree import Entry, SparseMap, account_key

__all__ = [
    "Entry",
    "MapProof",
    "SparseMap",
    "account_key",
    "prove_entry",
    "verify_entry",
]
