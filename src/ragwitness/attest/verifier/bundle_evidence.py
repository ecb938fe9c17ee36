"""A bundle's files, read: every form is checked here, and no claim.

A :class:`VerifierCase` adds the verifier's own knowledge.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.bundle import OPENINGS, Bundle
from ragwitness.attest.challenge import Challenge, Disclosure, parse_challenge
from ragwitness.attest.commitments import CommittedEmbedder, IndexCard, proof_shape
from ragwitness.attest.openings import OpeningsLog, provider_name
from ragwitness.attest.policy import WindowPolicy
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import NotCheckedError
from ragwitness.attest.window_log import WINDOW_ENTRIES
from ragwitness.core.errors import InputError, MissingExtraError, VerificationError, require
from ragwitness.crypto.entries import read_all_entries
from ragwitness.crypto.hashing import BLINDING_BYTES
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint
from ragwitness.crypto.proofs.argument import Columns
from ragwitness.crypto.proofs.arithmetic import Shape
from ragwitness.crypto.records import (
    BeaconRecord,
    CloseRecord,
    LogRecord,
    OpenRecord,
    QueryRecord,
    decode,
)
from ragwitness.privacy.mechanism import Mechanism


@dataclass(frozen=True)
class BundleEvidence:
    """Everything in a bundle, in the types that the checks work on; no claim is checked yet.

    Attributes:
        bundle: Its source.
        policy: The provider's promise.
        shape: Sizes of the proofs, by the policy.
        embedder: Digests of the embedder.
        cards: Cards of the tenants' indexes, in the policy's order.
        columns: Commitments to their contents.
        entries: Entries of the log, as bytes.
        records: The same, read; the first is an open record and the last a close record.
        checkpoints: Of the open and of the close, signatures unchecked.
        vectors: Vectors of all query records, shape (queries, dimension), int16.
        blindings: 32 bytes per query record, of the commitment to its vector.
        challenge: The records that are proved.
        disclosures: The openings of each of them.
        openings: The provider's log of its windows; None where the bundle holds none.
    """

    bundle: Bundle
    policy: WindowPolicy
    shape: Shape
    embedder: CommittedEmbedder
    cards: tuple[IndexCard, ...]
    columns: tuple[Columns, ...]
    entries: tuple[bytes, ...]
    records: tuple[LogRecord, ...]
    checkpoints: tuple[Checkpoint, Checkpoint]
    vectors: NDArray[np.int16]
    blindings: tuple[bytes, ...]
    challenge: Challenge
    disclosures: tuple[Disclosure, ...]
    openings: OpeningsLog | None = None

    @property
    def open(self) -> OpenRecord:
        """The commitments of the window."""
        assert isinstance(self.records[0], OpenRecord)  # noqa: S101  # read_evidence saw to it
        return self.records[0]

    @property
    def close(self) -> CloseRecord:
        """The end of the window."""
        assert isinstance(self.records[-1], CloseRecord)  # noqa: S101
        return self.records[-1]

    @functools.cached_property
    def queries(self) -> tuple[tuple[int, QueryRecord], ...]:
        """Query records with their places in the log."""
        return _queries(self.records)

    @property
    def beacon(self) -> tuple[int, BeaconRecord] | None:
        """The beacon of the noise with its place in the log; None where there is none."""
        beacons = ((i, r) for i, r in enumerate(self.records) if isinstance(r, BeaconRecord))
        return next(beacons, None)

    @property
    def beacon_value(self) -> bytes:
        """Its 32 bytes; none where there is none."""
        return bytes.fromhex(self.beacon[1].value) if self.beacon else b""

    @functools.cached_property
    def tenants(self) -> dict[str, int]:
        """Place of each tenant in the policy."""
        return {name: index for index, name in enumerate(self.policy.tenants)}

    @functools.cached_property
    def queries_of(self) -> Counter[str]:
        """Number of queries of each account, by "tenant/account"."""
        return Counter(f"{record.tenant}/{record.account}" for _, record in self.queries)

    def mechanism(self, record: QueryRecord) -> Mechanism:
        """Return the policy's mechanism of a record's tenant.

        Raises:
            VerificationError: ``record.tenant``; there is none.
        """
        unknown = f"There is no tenant {record.tenant[:60]!r} in the policy."
        require(record.tenant in self.policy.tenants, "record.tenant", unknown)
        return self.policy.tenants[record.tenant]

    @property
    def challenged(self) -> list[tuple[int, QueryRecord, Disclosure]]:
        """Each opened record with its place among the query records, and its openings.

        Raises:
            VerificationError: ``challenge.records``; one is opened that the log does not have.
        """
        numbers, count = self.bundle.records, len(self.queries)
        beyond = f"Record {numbers[-1]:,} is opened; the window has {count:,}, from 0 on."
        require(numbers[-1] < count, "challenge.records", beyond)
        return [
            (number, self.queries[number][1], opened)
            for number, opened in zip(numbers, self.disclosures, strict=True)
        ]


def read_evidence(bundle: Bundle) -> BundleEvidence:
    """Return a bundle's evidence; no claim is checked.

    Raises:
        VerificationError: The first file that is not in its one form.
        MissingExtraError: The curve's package is not installed.
    """
    try:
        return _read(bundle)
    except MissingExtraError:
        raise
    except InputError as error:  # a value that its reader accepts and no bundle may have
        raise VerificationError("files.value", error.message) from error


def _read(bundle: Bundle) -> BundleEvidence:
    files, tenants = bundle.files, range(bundle.tenants)
    # The policy, under which the sizes of all other files are known.
    policy = WindowPolicy.parse(files["policy.json"])
    old = "A policy of version 1 estimates each tenant's coalition by itself."
    require(policy.estimator.together, "policy.version", old)
    try:
        shape = proof_shape(policy)
    except InputError as error:
        raise VerificationError("policy.shape", error.message) from error
    # The log, its checkpoints, and the vectors of its queries.
    entries, records = _log(files[WINDOW_ENTRIES])
    open_, close = (Checkpoint.of_note(files[f"log/{n}.checkpoint"]) for n in ("open", "close"))
    vectors, blindings = _vectors(files["vectors.bin"], len(_queries(records)), shape.dimension)
    has_log = OPENINGS[0] in files
    # Points come last: they are the slowest to check.
    return BundleEvidence(
        bundle=bundle,
        policy=policy,
        shape=shape,
        embedder=CommittedEmbedder.parse(files["embedder.json"]),
        cards=tuple(IndexCard.parse(bundle.tenant(i, "index.json")) for i in tenants),
        entries=entries,
        records=records,
        checkpoints=(open_, close),
        vectors=vectors,
        blindings=blindings,
        challenge=parse_challenge(files["challenge.json"]),
        disclosures=tuple(Disclosure.parse(files[f"records/{i}.json"]) for i in bundle.records),
        openings=OpeningsLog.parse(*map(files.__getitem__, OPENINGS)) if has_log else None,
        columns=tuple(Columns.parse(bundle.tenant(i, "columns.bin"), shape) for i in tenants),
    )


def _log(data: bytes) -> tuple[tuple[bytes, ...], tuple[LogRecord, ...]]:
    """Return entries and records: an open record first, a close record last, no other of either."""
    entries = read_all_entries(data, "log.entries")
    # One open record first, one close record last, and no other of either.
    records = tuple(map(decode, entries))
    opens = [at for at, record in enumerate(records) if isinstance(record, OpenRecord)]
    closes = [at for at, record in enumerate(records) if isinstance(record, CloseRecord)]
    require(opens[:1] == [0], "open.first", "The log does not begin with the open record.")
    require(len(opens) == 1, "open.again", "The log holds a second open record.")
    last = "The log does not end with the close record, or goes on behind one."
    require(closes == [len(records) - 1], "close.last", last)
    return tuple(entries), records


def _queries(records: Sequence[LogRecord]) -> tuple[tuple[int, QueryRecord], ...]:
    return tuple((i, record) for i, record in enumerate(records) if isinstance(record, QueryRecord))


def _vectors(
    data: bytes, count: int, dimension: int
) -> tuple[NDArray[np.int16], tuple[bytes, ...]]:
    """Return vectors and blindings."""
    width = 2 * dimension + BLINDING_BYTES
    size = (
        f"{count:,} query records need {count * width:,} bytes of vectors and blindings,"
        f" not {len(data):,}."
    )
    require(len(data) == count * width, "vectors.size", size)
    # Each row is a vector, then its blinding.
    raw = np.frombuffer(data, np.uint8).reshape(count, width)
    vectors = raw[:, : 2 * dimension].copy().view("<i2").astype(np.int16)
    return vectors, tuple(row.tobytes() for row in raw[:, 2 * dimension :])


# The verifier's own knowledge.

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating]]
"""Texts to vectors, shape (texts, dimension)."""


@dataclass(frozen=True)
class VerifierCase:
    """A bundle's evidence and the verifier's own knowledge.

    Attributes:
        evidence: Of the bundle.
        trust: The verifier's own knowledge; None for none.
        receipts: Files that accounts handed in.
        seen: Signed checkpoints of this log that others were shown.
        embed: The committed embedder, where the verifier has it.
        progress: Called with (what, done, all) before and after the slow checks.
    """

    evidence: BundleEvidence
    trust: Trust | None = None
    receipts: Sequence[bytes] = ()
    seen: Sequence[bytes] = ()
    embed: Embed | None = None
    progress: Callable[[str, int, int], None] = field(default=lambda *_: None)

    @property
    def provider(self) -> str:
        """Name of the provider's log, by the trust file; empty without one."""
        window = self.evidence.open.window
        return "" if self.trust is None else provider_name(self.trust.notes.origin, window)

    @cached_property
    def seen_of_provider(self) -> list[bytes]:
        """Checkpoints from elsewhere that are of the provider's log of its windows."""
        return [data for data in self.seen if _origin(data) == self.provider]

    @cached_property
    def seen_of_window(self) -> list[bytes]:
        """Checkpoints from elsewhere that are of the window's own log."""
        return [data for data in self.seen if _origin(data) != self.provider]

    @cached_property
    def log(self) -> MerkleLog:
        """The log, rebuilt from its entries."""
        return MerkleLog(self.evidence.entries)

    def trusted(self, why: str) -> Trust:
        """Return the verifier's trust file.

        Raises:
            NotCheckedError: There is none.
        """
        if self.trust is None:
            raise NotCheckedError(f"no trust file was given: {why}", needed=True)
        return self.trust


def _origin(data: bytes) -> str:
    return Checkpoint.of_note(data).origin
