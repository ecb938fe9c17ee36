"""What a provider opens of a challenged record: ``records/<i>.json`` of a bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.commitments import BLINDING_BYTES
from ragwitness.crypto.encoding import parse_hex
from ragwitness.crypto.hashing import HASH_BYTES
from ragwitness.crypto.transcript import QueryRecord
from ragwitness.errors import VerificationError
from ragwitness.privacy.mechanism import Mechanism, slot_noise
from ragwitness.privacy.streams import Record, record_key

__all__ = ["Disclosure", "noise_of"]

VERSION = "ragwitness/disclosure/v1"
_MOST_BYTES = 256 << 10
_MOST_PATH = 64
_HEX = ("answer_blinding", "query", "query_blinding", "seed")
_FIELDS = {*_HEX, "ids", "seed_path", "text", "version"}


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A challenged record, opened to whoever holds the bundle.

    Attributes:
        query: SHA-256 of the query as the client sent it, 32 bytes.
        query_blinding: 32 bytes.
        ids: The answer's slots, best first.
        answer_blinding: 32 bytes.
        seed: The record's sub-seed, 32 bytes.
        seed_path: From the sub-seed's leaf to the root of the open record.
        text: The query, where the provider keeps it.
    """

    query: bytes
    query_blinding: bytes
    ids: tuple[int, ...]
    answer_blinding: bytes
    seed: bytes
    seed_path: tuple[bytes, ...]
    text: str | None = None

    def encode(self) -> bytes:
        """Return the canonical JSON."""
        texts = {name: getattr(self, name).hex() for name in _HEX}
        rest = {"ids": list(self.ids), "text": self.text, "version": VERSION}
        return canonical({**texts, **rest, "seed_path": [part.hex() for part in self.seed_path]})

    @classmethod
    def parse(cls, data: bytes) -> Disclosure:
        """Return what :meth:`encode` wrote.

        Raises:
            VerificationError: ``opening.version``, ``opening.fields``, or by
                :func:`~ragwitness.crypto.canonical.parse` ``opening.*``.
        """
        value: Any = parse(data, _MOST_BYTES, "opening")
        if not isinstance(value, dict) or value.get("version") != VERSION:
            raise VerificationError("opening.version", f"This opens no record by {VERSION}.")
        ids, path, text = value.get("ids"), value.get("seed_path"), value.get("text")
        if (
            value.keys() != _FIELDS
            or not isinstance(ids, list)
            or not all(type(slot) is int and 0 <= slot < 1 << 32 for slot in ids)
            or not isinstance(path, list)
            or len(path) > _MOST_PATH
            or not isinstance(text, str | None)
            or not all(isinstance(one, str) for one in (*path, *(value[name] for name in _HEX)))
        ):
            raise VerificationError("opening.fields", "What opens a record is not in its form.")
        sizes = dict.fromkeys(_HEX, HASH_BYTES) | {"answer_blinding": BLINDING_BYTES}
        texts = {name: parse_hex(value[name], sizes[name], "opening.fields") for name in _HEX}
        hashes = tuple(parse_hex(part, HASH_BYTES, "opening.fields") for part in path)
        return cls(ids=tuple(ids), seed_path=hashes, text=text, **texts)


def noise_of(
    mechanism: Mechanism, record: QueryRecord, seed: bytes, query: bytes
) -> NDArray[np.int64]:
    """Return the noise of an answer, of all slots, from nothing that its provider could choose.

    Args:
        mechanism: That answered.
        record: Of the answer.
        seed: The record's sub-seed, 32 bytes.
        query: SHA-256 of the query, 32 bytes.
    """
    hangs_on = Record(
        window=record.window,
        tenant=record.tenant,
        account=record.account,
        sequence=int(record.sequence),
        nonce=record.nonce,
        checkpoint=record.checkpoint,
        query=query.hex(),
        mechanism=record.mechanism,
    )
    return slot_noise(mechanism, record_key(seed, hangs_on))
