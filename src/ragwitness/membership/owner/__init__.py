"""Evidence about a whole collection (ours): does the target hold documents of one owner?"""

from ragwitness.membership.owner.evidence import (
    Bets,
    CollectionEvidence,
    Compared,
    collection_difference,
    collection_evidence,
)

__all__ = [
    "Bets",
    "CollectionEvidence",
    "Compared",
    "collection_difference",
    "collection_evidence",
]
