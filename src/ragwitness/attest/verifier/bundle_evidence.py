"""A bundle's files, read: every form is checked here, and nothing of what they claim."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.bundle import OPENINGS, Bundle
from ragwitness.attest.challenge import Challenge, Disclosure, parse_challenge
from ragwitness.attest.commitments import CommittedEmbedder, IndexCard, coins_of, proof_shape
from ragwitness.attest.openings import OpeningsLog, provider_name
from ragwitness.attest.policy import WindowPolicy
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import NotCheckedError
from ragwitness.core.errors import InputError, MissingExtraError, VerificationError
from ragwitness.crypto.hashing import BLINDING_BYTES
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint, Note
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
from ragwitness.crypto.tiles import LENGTH_BYTES, read_entries
from ragwitness.privacy.mechanism import Mechanism

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class BundleEvidence:
    """Everything in a bundle, in the types that the checks work on; no claim is checked yet.

    Attributes:
        bundle: Where it comes from.
        policy: What the provider promised.
        shape: Sizes of the proofs, by the policy.
        embedder: Digests of what turns texts into vectors.
        cards: Cards of the tenants' indexes, in the policy's order.
        columns: Commitments to their contents.
        entries: Entries of the log, as bytes.
        records: The same, read; the first is an open record and the last a close record.
        checkpoints: What the notes at the open and at the close say, signatures unchecked.
        vectors: Vectors of all query records, shape (queries, dimension), int16.
        blindings: 32 bytes per query record, of the commitment to its vector.
        challenge: Which records are proved.
        disclosures: What is opened of each of them.
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
        found = ((i, r) for i, r in enumerate(self.records) if isinstance(r, BeaconRecord))
        return next(found, None)

    @property
    def beacon_value(self) -> bytes:
        """Its 32 bytes; none where there is none."""
        return bytes.fromhex(self.beacon[1].value) if self.beacon else b""

    @functools.cached_property
    def tenants(self) -> dict[str, int]:
        """Place of each tenant in the policy."""
        return {name: place for place, name in enumerate(self.policy.tenants)}

    def mechanism(self, record: QueryRecord) -> Mechanism:
        """Return what the policy says of a record's tenant.

        Raises:
            VerificationError: ``record.tenant``; it says nothing.
        """
        found = self.policy.tenants.get(record.tenant)
        if found is None:
            raise VerificationError(
                "record.tenant", f"There is no tenant {record.tenant[:60]!r} in the policy."
            )
        return found

    @property
    def challenged(self) -> list[tuple[int, QueryRecord, Disclosure]]:
        """Each opened record with its place among the query records, and what opens it.

        Raises:
            VerificationError: ``challenge.records``; one is opened that the log does not have.
        """
        places, count = self.bundle.records, len(self.queries)
        if places[-1] >= count:
            raise VerificationError(
                "challenge.records",
                f"Record {places[-1]:,} is opened; the window has {count:,}, from 0 on.",
            )
        return [
            (place, self.queries[place][1], opened)
            for place, opened in zip(places, self.disclosures, strict=True)
        ]


def read_evidence(bundle: Bundle) -> BundleEvidence | list[VerificationError]:
    """Return a bundle's evidence, or everything that is wrong with the form of its files.

    Nothing here multiplies points or hashes more than the bundle's own bytes.
    """
    # Each file in its one form; all that is wrong is collected, and nothing is believed yet.
    files, wrong = bundle.files, _Wrong()
    policy = wrong.of(lambda: WindowPolicy.parse(files["policy.json"]))
    embedder = wrong.of(lambda: CommittedEmbedder.parse(files["embedder.json"]))
    places = range(bundle.tenants)
    cards = wrong.of(lambda: tuple(IndexCard.parse(bundle.tenant(i, "index.json")) for i in places))
    log = wrong.of(lambda: _log(files["log/entries.bin"]))
    notes = wrong.of(lambda: (_note(bundle, "open"), _note(bundle, "close")))
    challenge = wrong.of(lambda: parse_challenge(files["challenge.json"]))
    opened = wrong.of(
        lambda: tuple(Disclosure.parse(files[f"records/{i}.json"]) for i in bundle.records)
    )
    openings = None
    if OPENINGS[0] in files:
        openings = wrong.of(lambda: OpeningsLog.parse(*map(files.__getitem__, OPENINGS)))
    if policy:
        wrong.of(lambda: _check_coins(bundle, policy))
    shape = wrong.of(lambda: _shape(policy)) if policy else None
    columns = vectors = None
    if shape:
        columns = wrong.of(
            lambda: tuple(Columns.parse(bundle.tenant(i, "columns.bin"), shape) for i in places)
        )
    if shape and log:
        count, width = len(_queries(log[1])), shape.dimension
        vectors = wrong.of(lambda: _vectors(files["vectors.bin"], count, width))
    if not (policy and shape and embedder and cards and log and notes and challenge and opened):
        return wrong.found
    if wrong.found or columns is None or vectors is None:
        return wrong.found
    held = (bundle, policy, shape, embedder, cards, columns)
    return BundleEvidence(*held, *log, notes, *vectors, challenge, opened, openings)


def _shape(policy: WindowPolicy) -> Shape:
    try:
        return proof_shape(policy)
    except InputError as error:
        raise VerificationError("policy.shape", error.message) from error


def _check_coins(bundle: Bundle, policy: WindowPolicy) -> None:
    """Check that noise is proved where the policy says so, and nowhere else."""
    here = any(name.endswith(".coins") for name in bundle.files)
    if (coins_of(policy) is not None) != here:
        check, what = ("bundle.extra", "opened, not") if here else ("bundle.missing", "not opened,")
        raise VerificationError(check, f"The policy's noise is {what} proved in records/*.coins.")


class _Wrong:
    """Collects what is wrong, so that one run names all of it."""

    def __init__(self) -> None:
        self.found: list[VerificationError] = []

    def of(self, read: Callable[[], _Part]) -> _Part | None:
        try:
            return read()
        except VerificationError as error:
            self.found.append(error)
        except MissingExtraError:
            raise
        except InputError as error:  # a value that its reader takes and no one may have
            self.found.append(VerificationError("files.value", error.message))
        return None


def _log(data: bytes) -> tuple[tuple[bytes, ...], tuple[LogRecord, ...]]:
    """Return entries and records: an open record first, a close record last, no other of either."""
    entries = list(read_entries(data))
    if sum(map(len, entries)) + LENGTH_BYTES * len(entries) != len(data):
        raise VerificationError("log.entries", "The file of the log's entries is cut off.")
    # One open record first, one close record last, and no other of either.
    records = tuple(map(decode, entries))
    if not records or not isinstance(records[0], OpenRecord):
        raise VerificationError("open.first", "The log does not begin with the open record.")
    if not isinstance(records[-1], CloseRecord):
        raise VerificationError("close.last", "The log does not end with the close record.")
    if any(isinstance(record, OpenRecord) for record in records[1:]):
        raise VerificationError("open.again", "The log holds a second open record.")
    if any(isinstance(record, CloseRecord) for record in records[:-1]):
        raise VerificationError("close.last", "The log goes on behind a close record.")
    return tuple(entries), records


def _queries(records: Sequence[LogRecord]) -> tuple[tuple[int, QueryRecord], ...]:
    return tuple((i, record) for i, record in enumerate(records) if isinstance(record, QueryRecord))


def _note(bundle: Bundle, name: str) -> Checkpoint:
    return Checkpoint.parse(Note.parse(bundle.files[f"log/{name}.checkpoint"]).text)


def _vectors(
    data: bytes, count: int, dimension: int
) -> tuple[NDArray[np.int16], tuple[bytes, ...]]:
    """Return vectors and blindings."""
    width = 2 * dimension + BLINDING_BYTES
    if len(data) != count * width:
        raise VerificationError(
            "vectors.size",
            f"{count:,} query records need {count * width:,} bytes of vectors and blindings,"
            f" not {len(data):,}.",
        )
    raw = np.frombuffer(data, np.uint8).reshape(count, width)
    vectors = raw[:, : 2 * dimension].copy().view("<i2").astype(np.int16)
    return vectors, tuple(row.tobytes() for row in raw[:, 2 * dimension :])


# A bundle under verification: its evidence, and what the verifier has beside it.


Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating]]
"""Texts to vectors, shape (texts, dimension)."""


@dataclass(frozen=True)
class VerifierCase:
    """A bundle's evidence and what the verifier has beside it.

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
        """Name of the provider's log, by the trust file; empty where that names none."""
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
        log = MerkleLog()
        log.extend(self.evidence.entries)
        return log

    def trusted(self, why: str) -> Trust:
        """Return what the verifier trusts.

        Raises:
            NotCheckedError: Nothing.
        """
        if self.trust is None:
            raise NotCheckedError(f"no trust file was given: {why}", needed=True)
        return self.trust


def _origin(data: bytes) -> str:
    return Checkpoint.parse(Note.parse(data).text).origin
