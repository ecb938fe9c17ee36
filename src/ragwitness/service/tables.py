"""The tables of the service, as they are now; ``migrations`` brings older ones up to date."""

from __future__ import annotations

import hmac
import unicodedata
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

META = MetaData()

tenants = Table(
    "tenants",
    META,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("policy", Text, nullable=False),
    Column("created", BigInteger, nullable=False),  # seconds; windows are counted from here
    Column("next_place", Integer, nullable=False, default=0),
    Column("edition", Integer, nullable=False, default=0),  # of the index; 0: not opened yet
    Column("used", Float, nullable=False, server_default="0"),  # mu squared that no window shows
)
payers = Table(
    "payers",
    META,
    Column("id", Integer, primary_key=True),
    Column("tenant", ForeignKey("tenants.id"), nullable=False),
    Column("name", String(64), nullable=False),
    UniqueConstraint("tenant", "name"),
)
accounts = Table(
    "accounts",
    META,
    Column("id", Integer, primary_key=True),
    Column("tenant", ForeignKey("tenants.id"), nullable=False),
    Column("payer", ForeignKey("payers.id"), nullable=False),
    Column("name", String(64), nullable=False),
    Column("place", Integer, nullable=False),  # numbers its records; never given twice
    Column("key_id", String(32), nullable=False, unique=True),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("revoked", BigInteger),
    UniqueConstraint("tenant", "name"),
)
documents = Table(  # what stands in the slots: documents, or the parts that they were cut into
    "documents",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),  # id of the document, as its owner gave it
    Column("part", Integer, nullable=False),  # from 0
    Column("text", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # int16, little-endian; empty if placed
    UniqueConstraint("tenant", "name", "part"),
)
contents = Table(  # documents that are or were in an index: what is protected, with its account
    "contents",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),  # how often its text was given
    Column("sketch", LargeBinary, nullable=False),  # of its text, under a key kept elsewhere
    Column("account", Integer, nullable=False),  # versions and near copies have one in common
    Column("code", Integer),  # the group of words it was placed under, for life
)
placements = Table(  # of a tenant whose documents are placed under groups of words
    "placements",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True, autoincrement=False),
    Column("codes", LargeBinary, nullable=False),  # int32: the group of each slot, empty or not
)
windows = Table(
    "windows",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("seed", LargeBinary, nullable=False),  # secret: every noise of the window hangs on it
    Column("charged", Integer, nullable=False, default=0),
    Column("folded", Integer, nullable=False, default=0),
    Column("state", LargeBinary),  # the odometer after the first `folded` charges
    Column("granted", Float),  # mu that it may spend; null: its policy's budget
    Column("final", Float),  # mu that it has spent, once it is over
)
charges = Table(
    "charges",
    META,
    Column("tenant", Integer, primary_key=True),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary, nullable=False),
)
attested = Table(  # windows whose every answer stands in a log
    "attested",
    META,
    Column("tenant", ForeignKey("tenants.id"), primary_key=True),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("log", String(64), nullable=False),  # hash of the record that the log opens with
    Column("name", String(64), nullable=False),  # that the log is signed under; for one log only
    UniqueConstraint("tenant", "name"),
)
spent = Table(
    "spent",
    META,
    Column("kind", String(8), primary_key=True),  # account or payer
    Column("owner", Integer, primary_key=True, autoincrement=False),
    Column("window", BigInteger, primary_key=True, autoincrement=False),
    Column("queries", Integer, nullable=False),
)


_BITS, _RUN = 256, 3  # of a sketch; words of a run
_MANY = np.random.default_rng(0).integers(1 << 63, size=(2, _BITS, 1), dtype=np.uint64)

Sketch: TypeAlias = NDArray[np.uint64]


def text_sketch(text: str, tenant: int, secret: bytes) -> Sketch:
    """Return 256 bits of a text, as many of them those of another as they share runs of words.

    One bit of the least of the runs' hashes, for each of 256 orders of all hashes (b-bit minwise
    hashing, Li and König, 2010): with the share J of the runs of three words in common, each is
    the same with chance (1 + J) / 2. Case, spacing and marks that nobody sees do not count.

    Args:
        text: The text.
        tenant: Row of the tenant: no two tenants' sketches can be compared.
        secret: :meth:`Store.text_key`, without which nobody can try texts that they guess.

    Returns:
        Shape (4,).
    """
    seen = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(sign for sign in seen if unicodedata.category(sign) != "Cf").split()
    runs = {" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}
    digests = (hmac.digest(secret, f"{tenant} {run}".encode(), "sha256")[:8] for run in runs)
    hashes = np.frombuffer(b"".join(digests), "<u8")
    # The least run in each order, and one bit of its own hash.
    least = hashes[((2 * _MANY[0] + 1) * hashes + _MANY[1]).argmin(axis=1)]
    bits = least >> np.arange(_BITS, dtype=np.uint64) % np.uint64(64) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8)).view("<u8")


OVERLAP = 20
"""Words that two parts of a document have in common."""

CLOSED: dict[str, object] = {
    "granted": 0.0,
    "final": None,
    "state": None,
    "charged": 0,
    "folded": 0,
}
"""A window that grants nothing, for good: what it may have spent is counted elsewhere."""
