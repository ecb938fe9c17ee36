"""Everything that can be changed in a bundle: each field of each file, and single bits."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ragwitness.crypto.entries import read_entries
from ragwitness.crypto.hashing import canonical

OTHERS: tuple[Any, ...] = (None, 1, "", "x", "0", "00" * 32, [], {}, True)
"""What may stand in the place of any value."""


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the place of every value in JSON, itself first."""
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for name, one in inner:
        yield from fields(one, (*path, name))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return JSON with another value at a place; the place itself goes where it is ``...``."""
    if not path:
        return other
    changed = list(value) if isinstance(value, list) else dict(value)
    if len(path) == 1 and other is ...:
        del changed[path[0]]
    else:
        changed[path[0]] = put(value[path[0]], path[1:], other)
    return changed


def near(value: Any) -> list[Any]:
    """Return values of the same form that lie next to one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, str) and value:
        last = chr(ord(value[-1]) ^ 1)
        return [value[:-1] + last, value[:-1], value + value[-1], value.upper()]
    if isinstance(value, dict):
        return [value | {"more": "1"}]
    return [[*value, *value[:1]], value[::-1]] if isinstance(value, list) else []


def changed_values(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return a JSON text with each of its values changed, in its one form all the same."""
    value = json.loads(data)
    for path in fields(value):
        old = value
        for name in path:
            old = old[name]
        for other in (*OTHERS, *near(old), *([...] if path else [])):
            made = put(value, path, other)
            try:
                bent = canonical(made)
            except (TypeError, ValueError, OverflowError):
                bent = json.dumps(made, sort_keys=True, separators=(",", ":")).encode()
            if bent != data:
                what = "left out" if other is ... else repr(other)[:20]
                yield f"{'/'.join(map(str, path))}: {what}", bent


def changed_fields(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return a file of a bundle with each of its fields changed, one at a time."""
    if name.endswith(".json"):
        yield from changed_values(data)
    elif name == "log/entries.bin":
        entries = list(read_entries(data))
        kinds = [frozenset(json.loads(entry)) for entry in entries]
        for at, entry in enumerate(entries):
            if kinds.index(kinds[at]) == at:  # the first of each kind of record
                for what, bent in changed_values(entry):
                    made = [*entries[:at], bent, *entries[at + 1 :]]
                    yield f"{at}: {what}", b"".join(struct.pack(">H", len(e)) + e for e in made)
    elif name.endswith((".checkpoint", ".note")):
        lines = data.split(b"\n")
        for at, line in enumerate(lines):
            others = [b"", line + b"x", line[:-1], line + b"\n" + line]
            for turn, other in enumerate(others):
                bent = b"\n".join([*lines[:at], other, *lines[at + 1 :]])
                if bent != data:
                    yield f"line {at}, {turn}", bent
    else:
        # Fixed-size parts: points and numbers of 32 bytes, to zero, to the next and away.
        for at in range(0, len(data), 32):
            part = data[at : at + 32]
            following = data[at + 32 : at + 64] or data[:32]
            for turn, other in enumerate((bytes(len(part)), following, b"", part + part)):
                bent = data[:at] + other + data[at + 32 :]
                if bent != data:
                    yield f"bytes {at}, {turn}", bent


def flipped(files: Mapping[str, bytes], rng: random.Random) -> tuple[str, int, int, bytes]:
    """Return one file of a bundle with one bit flipped: its name, the byte, the bit, the content.

    Files are drawn alike, so that short ones are not missed beside long ones.
    """
    name = rng.choice(sorted(files))
    raw = bytearray(files[name])
    at, bit = rng.randrange(len(raw)), rng.randrange(8)
    raw[at] ^= 1 << bit
    return name, at, bit, bytes(raw)
