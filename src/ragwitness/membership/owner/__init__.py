"""Evidence about a whole collection (ours): does the target hold documents of one owner?"""

from ragwitness.membership.owner.evidence import (
    CollectionEvidence,
    Compared,
    collection_difference,
    collection_evidence,
)

__all__ = ["CollectionEvidence", "Compared", "collection_difference", "collection_evidence"]
