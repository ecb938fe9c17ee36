"""What prover and verifier exchange through the log: versioned records, one text for each (G5)."""

from ragwitness.crypto.transcript.reading import decode, encode, record_hash, schema
from ragwitness.crypto.transcript.records import (
    CloseRecord,
    IndexCommitment,
    MapRecord,
    OpenRecord,
    QueryRecord,
    Record,
)

__all__ = [
    "CloseRecord",
    "IndexCommitment",
    "MapRecord",
    "OpenRecord",
    "QueryRecord",
    "Record",
    "decode",
    "encode",
    "record_hash",
    "schema",
]
