"""Records to bytes and back: what is logged and hashed is one canonical JSON text per record."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.hashing import leaf_hash
from ragwitness.crypto.log.tiles import MAX_ENTRY
from ragwitness.crypto.transcript.records import Record
from ragwitness.errors import InputError, VerificationError

__all__ = ["decode", "encode", "record_hash", "schema"]

_CHECKS = {
    "extra_forbidden": "unknown_field",
    "missing": "missing_field",
    "union_tag_invalid": "type",
    "union_tag_not_found": "type",
    "model_attributes_type": "type",
    "string_too_long": "length",
    "string_too_short": "length",
    "too_long": "length",
    "too_short": "length",
    "string_type": "field_type",
    "tuple_type": "field_type",
    "model_type": "field_type",
}


def encode(record: Record) -> bytes:
    """Return a record's canonical JSON, the log's entry.

    Raises:
        InputError: It is longer than the 65,535 bytes that a log's entry may have, or a field
            holds half a surrogate pair.
    """
    data = canonical(record.model_dump())
    if len(data) > MAX_ENTRY:
        raise InputError(f"A record of {len(data):,} bytes does not fit an entry of the log.")
    return data


def decode(data: bytes) -> Record:
    """Return the record of a log's entry.

    Raises:
        VerificationError: ``record.size``, ``record.canonical`` and others of
            :func:`~ragwitness.crypto.canonical.parse`; ``record.type`` (or version) unknown;
            ``record.unknown_field``, ``record.missing_field``, ``record.field_type``,
            ``record.length``, or ``record.field`` for any other value that may not stand there.
    """
    value = parse(data, MAX_ENTRY, "record")
    try:
        return _adapter().validate_python(_tuples(value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        check = _CHECKS.get(first["type"], "field")
        place = ".".join(map(str, first["loc"][1:])) or "record"
        raise VerificationError(
            f"record.{check}", f"A record of the log is refused at {place[:80]}: {first['msg']}."
        ) from error


def record_hash(record: Record) -> bytes:
    """Return a record's leaf hash in the log, 32 bytes."""
    return leaf_hash(encode(record))


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of all records."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of a ragwitness log, version 1",
        **_adapter().json_schema(mode="serialization"),
    }


@functools.cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Annotated[Record, Field(discriminator="type")])


def _tuples(value: Any) -> Any:
    """Return ``value`` with the list of indexes as the tuple that strict reading asks for."""
    if isinstance(value, dict) and isinstance(value.get("indexes"), list):
        return value | {"indexes": tuple(value["indexes"])}
    return value
