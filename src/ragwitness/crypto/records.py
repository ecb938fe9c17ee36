"""The records of the log, one canonical JSON text each (G5).

A type's name carries its version; a change of meaning is a new name, never a new field. Hashes are
64 lower-case hex digits, whole numbers decimal strings below 2⁶⁴, so that no reader of JSON can
round them. Records hold no contents (paper, §5.4), and no plain hashes of queries and answers.
Otherwise a reader of the log could guess a short text, or the few slots of an answer, and compare.
Each has a blinded commitment, and the account gets the blinding with its answer.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)

from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.crypto.entries import MAX_ENTRY
from ragwitness.crypto.hashing import U64_MAX, canonical, leaf_hash, parse, parse_u64


def _below(text: str) -> str:
    if int(text) > U64_MAX:
        raise ValueError("the number is above 2^64 - 1")
    return text


_Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Token = Annotated[str, Field(max_length=256, pattern=r"^[\x20-\x7e]*$")]
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
_U64 = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,19})$"), AfterValidator(_below)]


class _Strict(BaseModel):
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        json_schema_serialization_defaults_required=True,  # the type is never left out
    )


class IndexCommitment(_Strict):
    """One tenant's index as it was committed to.

    Attributes:
        tenant: Whose index.
        commitment: C_V, binding every vector to its slot.
        mechanism: Digest of the noisy retrieval that answers from it.
    """

    tenant: _Name
    commitment: _Hash
    mechanism: _Hash


class OpenRecord(_Strict):
    """The commitments of a window, logged before its first query (paper, eqs. 2.2, 2.3 and 5.1).

    Attributes:
        window: Identifier of the audit window.
        embedder: C_E.
        indexes: C_V of every tenant.
        seed_root: Root over the sub-seeds of all records, in place of C_s.
        seed_count: Number of sub-seeds.
        policy: C_Π.
    """

    type: Literal["ragwitness/open/v1"] = "ragwitness/open/v1"
    window: _Name
    embedder: _Hash
    indexes: Annotated[tuple[IndexCommitment, ...], Field(min_length=1, max_length=128)]
    seed_root: _Hash
    seed_count: _U64
    policy: _Hash


class AdmitRecord(_Strict):
    """An account's place, logged before its first query: place p has the sub-seeds from p·q on.

    A place given at the first query could be chosen once the client's nonce is known, and the noise
    with it. So places follow the order of these records, and a query names a checkpoint that covers
    its account's.

    Attributes:
        window: Identifier of the audit window.
        tenant: Whose index the account may ask.
        account: The admitted account.
        place: Number of accounts admitted before, over all tenants.
    """

    type: Literal["ragwitness/admit/v1"] = "ragwitness/admit/v1"
    window: _Name
    tenant: _Name
    account: _Name
    place: _U64


class KeyedAdmitRecord(AdmitRecord):
    """The place of an account that signs what it asks.

    Attributes:
        key: Its public key, Ed25519, in hex; no other account of the window has it.
    """

    type: Literal["ragwitness/admit/v2"] = "ragwitness/admit/v2"  # type: ignore[assignment]
    key: _Hash


class BeaconRecord(_Strict):
    """The public value that enters every noise of the window, drawn once the opening was shown.

    It follows the open record and precedes the first query. The provider had committed to its
    secret by then, so that neither side chose a noise alone.

    Attributes:
        window: Identifier of the audit window.
        value: 32 bytes in hex, in lower case: no other spelling is read.
        source: Origin of the value, e.g. the round of a public beacon.
    """

    type: Literal["ragwitness/beacon/v1"] = "ragwitness/beacon/v1"
    window: _Name
    value: _Hash
    source: _Name


class QueryRecord(_Strict):
    """One answered query (R2).

    Attributes:
        window: Identifier of the audit window.
        tenant: Whose index was asked.
        account: The account that asked.
        sequence: Number of earlier queries of this account in this window.
        number: Number of the record's sub-seed.
        nonce: The client's own random text.
        checkpoint: The log's checkpoint that the client named.
        query: :func:`~ragwitness.crypto.hashing.commit` of the query's SHA-256.
        vector: Commitment to the integer vector that was searched with.
        mechanism: Digest of the noisy retrieval that answered.
        answer: Commitment to the answer.
        prior: ``record_hash`` of the account's previous record; zeros at its first.
    """

    type: Literal["ragwitness/query/v1"] = "ragwitness/query/v1"
    window: _Name
    tenant: _Name
    account: _Name
    sequence: _U64
    number: _U64
    nonce: _Token
    checkpoint: _Token
    query: _Hash
    vector: _Hash
    mechanism: _Hash
    answer: _Hash
    prior: _Hash


class SignedQueryRecord(QueryRecord):
    """One answered query of an account with a key; ``query`` is the account's own commitment.

    Attributes:
        signature: The account's, over its request, in hex
            (:func:`ragwitness.attest.receipts.request_message`).
    """

    type: Literal["ragwitness/query/v2"] = "ragwitness/query/v2"  # type: ignore[assignment]
    signature: _Signature


class CloseRecord(_Strict):
    """The end of a window; no query record of it may follow.

    Attributes:
        window: Identifier of the audit window.
        queries: Query records of the window.
        map_root: Root of the map over all of them.
        coalition: The estimated coalition size (R5).
        certificate: SHA-256 of the estimate's certificate.
    """

    type: Literal["ragwitness/close/v1"] = "ragwitness/close/v1"
    window: _Name
    queries: _U64
    map_root: _Hash
    coalition: _U64
    certificate: _Hash


LogRecord = (
    OpenRecord
    | AdmitRecord
    | KeyedAdmitRecord
    | BeaconRecord
    | QueryRecord
    | SignedQueryRecord
    | CloseRecord
)
"""Any entry of the log."""


# Records to bytes and back.


def encode(record: LogRecord) -> bytes:
    """Return a record's canonical JSON, the log's entry.

    Raises:
        InputError: It is longer than the 65,535 bytes that a log's entry may have, or a field
            holds half a surrogate pair.
    """
    data = canonical(record.model_dump())
    if len(data) > MAX_ENTRY:
        raise InputError(f"A record of {len(data):,} bytes does not fit an entry of the log.")
    return data


def decode(data: bytes) -> LogRecord:
    """Return the record of a log's entry.

    Raises:
        VerificationError: ``record.size``, ``record.canonical`` and others of
            :func:`~ragwitness.crypto.hashing.parse`; or ``record.fields``: an unknown type or
            version, a missing or unknown field, or a value that is not allowed.
    """
    parse(data, MAX_ENTRY, "record")
    record: LogRecord = validated(_RECORD, data, "record")
    return record


def record_hash(record: LogRecord) -> bytes:
    """Return a record's leaf hash in the log, 32 bytes."""
    return leaf_hash(encode(record))


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of all records."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of a ragwitness log",
        **_adapter(_RECORD).json_schema(mode="serialization"),
    }


_RECORD: Any = Annotated[LogRecord, Field(discriminator="type")]


# Files of a bundle and receipts: a dataclass each, with one canonical JSON text for one value.

STRICT = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
"""Of a dataclass that is read: ``__pydantic_config__``."""


def _bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("not bytes in hex")
    return bytes.fromhex(text)


def _number(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("not a whole number in decimal digits")
    return parse_u64(text, "number")


HexBytes = Annotated[bytes, BeforeValidator(_bytes), PlainSerializer(bytes.hex)]
"""Bytes in lower-case hex."""

Hex = Annotated[HexBytes, Field(min_length=32, max_length=32)]
"""32 bytes in lower-case hex."""

Digest = _Hash
"""SHA-256 in lower-case hex, as text."""

U64 = Annotated[int, BeforeValidator(_number), PlainSerializer(str)]
"""A whole number as its decimal text."""

Slots = tuple[Annotated[int, Field(ge=0, lt=1 << 32)], ...]
"""Slots of an index, best first."""

_T = TypeVar("_T")


def encode_form(value: object) -> bytes:
    """Return the canonical JSON of a dataclass."""
    type_: Any = type(value)
    return canonical(_adapter(type_).dump_python(value, mode="json"))


def parse_form(type_: type[_T], data: bytes, limit: int, check: str) -> _T:
    """Return the dataclass that :func:`encode_form` wrote; every other text is refused.

    Raises:
        VerificationError: ``<check>.fields`` (a field is missing, unknown or has another form), or
            by :func:`~ragwitness.crypto.hashing.parse` ``<check>.*``.
    """
    # The one JSON text, then the fields.
    parse(data, limit, check)
    value: _T = validated(type_, data, check)
    # A field that is missing has its default; only the one text with all fields is read.
    require(encode_form(value) == data, f"{check}.fields", f"The {check} lacks a field.")
    return value


def validated(type_: Any, data: bytes, check: str) -> Any:
    """Return a JSON text as a value of a type.

    Raises:
        VerificationError: ``<check>.fields``.
    """
    try:
        return _adapter(type_).validate_json(data)
    except (ValidationError, VerificationError) as error:
        reason = fault(error) if isinstance(error, ValidationError) else error.message
        raise VerificationError(f"{check}.fields", f"The {check} is refused: {reason}.") from error


def fault(error: ValidationError) -> str:
    """Return where and why a value is refused."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{first['msg']}, at {'.'.join(map(str, first['loc']))[:80] or 'its form'}"


@functools.cache
def _adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)
