"""What prover and verifier exchange through the log: versioned records, one text for each (G5)."""

from ragwitness.crypto.transcript.reading import decode, encode, record_hash, schema
from ragwitness.crypto.transcript.records import (
    AdmitRecord,
    CloseRecord,
    IndexCommitment,
    OpenRecord,
    QueryRecord,
    Record,
)

__all__ = [
    "AdmitRecord",
    "CloseRecord",
    "IndexCommitment",
    "OpenRecord",
    "QueryRecord",
    "Record",
    "decode",
    "encode",
    "record_hash",
    "schema",
]
