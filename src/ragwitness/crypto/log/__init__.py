"""An append-only Merkle log: RFC 9162 hashes and proofs, tiles of C2SP tlog-tiles."""

from ragwitness.crypto.log.proofs import Nodes, consistency_path, inclusion_path, tree_root
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.log.verify import verify_consistency, verify_inclusion

__all__ = [
    "MerkleLog",
    "Nodes",
    "consistency_path",
    "inclusion_path",
    "tree_root",
    "verify_consistency",
    "verify_inclusion",
]
