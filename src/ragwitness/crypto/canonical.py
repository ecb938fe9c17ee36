"""One JSON text for one value: RFC 8785 (JCS), without the numbers that JSON cannot carry safely.

What is hashed or signed is always this text. Of JSON's numbers only whole ones of size at most
2⁵³ - 1 are allowed (RFC 7493, §2.2); larger ones are decimal strings (:func:`u64_text`), fractions
are quotients of strings. So the number formatting of RFC 8785, §3.2.2.3, is never needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Never

from ragwitness.core.errors import InputError, VerificationError

MAX_SAFE = (1 << 53) - 1
"""Largest whole number that every JSON reader keeps."""

U64_MAX = (1 << 64) - 1

_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_NESTED = 64


def canonical(value: object) -> bytes:
    """Return the canonical JSON of ``value`` in UTF-8.

    Args:
        value: None, a bool, a str, an int of size at most 2⁵³ - 1, or a list, tuple or mapping
            (with str names) of these.

    Raises:
        InputError: A number, a type, a name or a text has no canonical form, or the value nests
            deeper than 64 levels.
    """
    text = json.dumps(
        _checked(value, 0), separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def parse(data: bytes, limit: int, check: str = "json") -> Any:
    """Return the value of a canonical JSON text; every other text is refused.

    Args:
        data: UTF-8.
        limit: Largest length in bytes.
        check: Prefix of the named check in the error.

    Raises:
        VerificationError: ``<check>.size``, ``.utf8``, ``.duplicate``, ``.number``, ``.surrogate``,
            ``.depth``, ``.syntax``, or ``.canonical`` where the value is right and its text not.
    """
    if len(data) > limit:
        raise VerificationError(
            f"{check}.size", f"The JSON text has {len(data):,} bytes; at most {limit:,} are read."
        )
    # 1. Depth, before any recursive reader. 2. The value. 3. Its one text, to the byte.
    _shallow(data, check)
    value = _loads(data, check)
    try:
        again = canonical(value)
    except InputError as error:
        name = "surrogate" if "surrogate" in error.message else "depth"
        raise VerificationError(f"{check}.{name}", error.message) from error
    if again != data:
        raise VerificationError(
            f"{check}.canonical", "The JSON text is not in the canonical form of RFC 8785."
        )
    return value


def u64_text(value: int, name: str = "number") -> str:
    """Return an unsigned 64-bit integer as the decimal string that stands for it in JSON.

    Raises:
        InputError: It is no int from 0 to 2⁶⁴ - 1.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= U64_MAX:
        raise InputError(f"The {name} must be a whole number from 0 to 2^64 - 1, not {value!r}.")
    return str(value)


def parse_u64(text: str, check: str) -> int:
    """Return the integer of a decimal string: ASCII digits, no sign, no leading zero, below 2⁶⁴.

    Raises:
        VerificationError: ``check``; the text is anything else.
    """
    if not _DECIMAL.fullmatch(text) or int(text) > U64_MAX:
        raise VerificationError(
            check, f"{text[:40]!r} is no whole number from 0 to 2^64 - 1 in plain decimal digits."
        )
    return int(text)


def _checked(value: object, depth: int) -> object:
    """Return ``value`` with sorted names, or refuse it."""
    if depth > _NESTED:
        raise InputError(f"Canonical JSON nests at most {_NESTED} levels deep here.")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if abs(value) > MAX_SAFE:
            raise InputError(
                f"{value} is above 2^53 - 1, where JSON readers lose digits.",
                "Write it as a decimal string (u64_text).",
            )
        return int(value)
    if isinstance(value, Mapping):
        # RFC 8785, §3.2.3: names in order of their UTF-16 code units.
        names = sorted((_name(name) for name in value), key=lambda name: name.encode("utf-16-be"))
        return {name: _checked(value[name], depth + 1) for name in names}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_checked(item, depth + 1) for item in value]
    raise InputError(
        f"A {type(value).__name__} has no canonical form here.",
        "Write fractions and bytes as strings.",
    )


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(f"A name in a JSON object must be a string, not {name!r}.")
    return _text(name)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"A field holds half a surrogate pair, {error.object[error.start]!r}: that is no text.",
            "Send names and nonces as valid Unicode.",
        ) from error
    return text


def _shallow(data: bytes, check: str) -> None:
    """Refuse deep nesting before Python's reader sees it.

    That reader stops at the interpreter's recursion limit; packages raise the limit (py_ecc does),
    and then a small text ends the process.
    """
    if data.count(b"[") + data.count(b"{") <= _NESTED:
        return
    depth = 0
    for token in _TOKENS.finditer(data):
        first = token[0][:1]
        depth += (first in (b"[", b"{")) - (first in (b"]", b"}"))
        if depth > _NESTED + 1:
            raise VerificationError(
                f"{check}.depth", f"The JSON text nests deeper than {_NESTED} levels."
            )


def _loads(data: bytes, check: str) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(found)
        if len(value) != len(found):
            raise VerificationError(f"{check}.duplicate", "A name stands twice in a JSON object.")
        return value

    def refuse(text: str) -> Never:
        raise VerificationError(
            f"{check}.number", f"{text[:40]!r} is no whole number of size at most 2^53 - 1."
        )

    def whole(text: str) -> int:
        return int(text) if len(text) <= 17 and abs(int(text)) <= MAX_SAFE else refuse(text)

    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=pairs,
            parse_int=whole,
            parse_float=refuse,
            parse_constant=refuse,
        )
    except UnicodeDecodeError as error:
        raise VerificationError(f"{check}.utf8", "The JSON text is not valid UTF-8.") from error
    except RecursionError as error:
        raise VerificationError(f"{check}.depth", "The JSON text nests too deep.") from error
    except json.JSONDecodeError as error:
        raise VerificationError(
            f"{check}.syntax", f"This is not JSON: {error.msg} at character {error.pos}."
        ) from error
