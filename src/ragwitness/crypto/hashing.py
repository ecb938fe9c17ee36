"""Hashes, canonical JSON and commitments: one text for one value, one meaning for one hash.

Leaves and nodes of the log are those of RFC 9162, §2.1.1: 0x00 before an entry, 0x01 before two
hashes. Every other hash is a :func:`tagged_hash` under its domain.

Canonical JSON is RFC 8785 (JCS) with whole numbers of size at most 2⁵³ - 1 (RFC 7493, §2.2). Larger
ones are decimal strings (:func:`u64_text`), fractions are quotients of strings. So the number
formatting of RFC 8785 (§3.2.2.3) is never needed.

A commitment is C = SHA-256(domain ‖ blinding ‖ message), each part with its length before it.

*Binding*: two openings of one C are a collision of SHA-256. *Hiding*: with SHA-256 as a random
oracle, C shows nothing of the message without its 32 blinding bytes. Each blinding serves one
commitment: used twice, it would show that two messages are equal.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Never

from ragwitness.core.errors import InputError, VerificationError, require

HASH_BYTES = 32

EMPTY_ROOT = sha256(b"").digest()
"""Root of a log without entries (RFC 9162, §2.1.1)."""


def leaf_hash(entry: bytes) -> bytes:
    """Return SHA-256(0x00 ‖ entry), 32 bytes."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 ‖ left ‖ right), 32 bytes."""
    return sha256(b"\x01" + left + right).digest()


def tagged_hash(domain: str, *parts: bytes) -> bytes:
    """Return SHA-256 over a domain and parts, each with its length before it as 8 bytes.

    Two different lists of parts, or two domains, never give the hash the same input.

    Args:
        domain: Purpose of the hash, e.g. ``"ragwitness/commit/v1"``.
        parts: Bytes.
    """
    digest = sha256()
    for data in (domain.encode(), *parts):
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def text_digest(texts: Iterable[str], start: bytes = b"") -> str:
    """Return SHA-256 over ``start`` and texts in hex; lengths keep two splits of one text apart."""
    digest = sha256(start)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def sampling_seed(prompt: str, number: int) -> int:
    """Return the seed of one of several draws at a prompt: 31 bits, some servers take no more."""
    # The number enters the seed, so that n samples of one prompt are n draws.
    digest = sha256(f"{number}\0{prompt}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


# Strict readers of base64 and hex: one spelling for each value, all else refused. With two texts
# for one proof, a hash over the text would not bind it.

_HEX = re.compile(r"[0-9a-f]*", re.ASCII)


def b64(data: bytes) -> str:
    """Return the standard base64 of ``data`` with padding (RFC 4648, §4)."""
    return base64.b64encode(data).decode()


def parse_b64(text: str, check: str) -> bytes:
    """Return the bytes of standard base64: padded, no other characters, unused bits zero.

    Raises:
        VerificationError: ``check``; :func:`b64` does not write this text.
    """
    # Python's reader accepts more than one spelling; the comparison does not.
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise VerificationError(check, f"{text[:40]!r} is not base64.") from error
    require(b64(data) == text, check, f"{text[:40]!r} is not the one base64 text of its bytes.")
    return data


def parse_hash(text: str, check: str) -> bytes:
    """Return the 32 bytes of a hash in base64.

    Raises:
        VerificationError: ``check``.
    """
    data = parse_b64(text, check)
    require(len(data) == HASH_BYTES, check, f"A hash has {HASH_BYTES} bytes, not {len(data)}.")
    return data


def parse_hex(text: str, size: int, check: str) -> bytes:
    """Return the ``size`` bytes of lower-case hex.

    Raises:
        VerificationError: ``check``.
    """
    fits = len(text) == 2 * size and _HEX.fullmatch(text) is not None
    require(fits, check, f"{text[:40]!r} is not {size} bytes in lower-case hex.")
    return bytes.fromhex(text)


# Canonical JSON: only this text is ever hashed or signed.

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
    size = f"The JSON text has {len(data):,} bytes; at most {limit:,} are read."
    require(len(data) <= limit, f"{check}.size", size)
    # 1. Depth, before any recursive reader. 2. The value. 3. Its one text, to the byte.
    _check_depth(data, check)
    value = _loads(data, check)
    try:
        again = canonical(value)
    except InputError as error:
        name = "surrogate" if "surrogate" in error.message else "depth"
        raise VerificationError(f"{check}.{name}", error.message) from error
    form = "The JSON text is not in the canonical form of RFC 8785."
    require(again == data, f"{check}.canonical", form)
    return value


def u64_text(value: int, name: str = "number") -> str:
    """Return an unsigned 64-bit integer as a decimal string, its form in JSON.

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
    fits = _DECIMAL.fullmatch(text) is not None and int(text) <= U64_MAX
    form = f"{text[:40]!r} is no whole number from 0 to 2^64 - 1 in plain decimal digits."
    require(fits, check, form)
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
        names = sorted(map(_text, value), key=lambda name: name.encode("utf-16-be"))
        return {name: _checked(value[name], depth + 1) for name in names}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_checked(item, depth + 1) for item in value]
    raise InputError(
        f"A {type(value).__name__} has no canonical form here.",
        "Write fractions and bytes as strings.",
    )


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"A name in a JSON object must be a string, not {text!r}.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"A field holds half a surrogate pair, {error.object[error.start]!r}: that is no text.",
            "Send names and nonces as valid Unicode.",
        ) from error
    return text


def _check_depth(data: bytes, check: str) -> None:
    """Refuse deep nesting before Python's reader sees it.

    That reader stops at the interpreter's recursion limit. Where a package has raised the limit, a
    small text would end the process.
    """
    depth = 0
    for token in _TOKENS.finditer(data) if data.count(b"[") + data.count(b"{") > _NESTED else ():
        depth += (token[0] in (b"[", b"{")) - (token[0] in (b"]", b"}"))
        deep = f"The JSON text nests deeper than {_NESTED} levels."
        require(depth <= _NESTED + 1, f"{check}.depth", deep)


def _loads(data: bytes, check: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        twice = "A name stands twice in a JSON object."
        require(len(value) == len(items), f"{check}.duplicate", twice)
        return value

    def refuse(text: str) -> Never:
        raise VerificationError(
            f"{check}.number", f"{text[:40]!r} is no whole number of size at most 2^53 - 1."
        )

    def integer(text: str) -> int:
        return int(text) if len(text) <= 17 and abs(int(text)) <= MAX_SAFE else refuse(text)

    # Numbers and names are checked while they are read.
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=pairs,
            parse_int=integer,
            parse_float=refuse,
            parse_constant=refuse,
        )
    except UnicodeDecodeError as error:
        raise VerificationError(f"{check}.utf8", "The JSON text is not valid UTF-8.") from error
    except json.JSONDecodeError as error:
        raise VerificationError(
            f"{check}.syntax", f"This is not JSON: {error.msg} at character {error.pos}."
        ) from error


# Commitments (the paper's Com(·), eq. 5.1).

BLINDING_BYTES = 32

_DOMAIN = "ragwitness/commit/v1"


@dataclass(frozen=True, slots=True)
class Opening:
    """Everything that opens a commitment.

    Attributes:
        domain: Kind of the message, e.g. ``"ragwitness/window-seed/v1"``.
        message: The committed bytes.
        blinding: 32 bytes, secret until the commitment is opened.
    """

    domain: str
    message: bytes
    blinding: bytes


def draw_blinding() -> bytes:
    """Return 32 fresh bytes of the operating system."""
    return os.urandom(BLINDING_BYTES)


def commit(opening: Opening) -> bytes:
    """Return the commitment, 32 bytes.

    Raises:
        InputError: The blinding has another length than 32 bytes.
    """
    if len(opening.blinding) != BLINDING_BYTES:
        raise InputError(
            f"A blinding has {BLINDING_BYTES} bytes, not {len(opening.blinding)}.",
            "Draw one with draw_blinding().",
        )
    return tagged_hash(_DOMAIN, opening.domain.encode(), opening.blinding, opening.message)


def commit_digests(domain: str, digests: Mapping[str, str], blinding: bytes) -> bytes:
    """Return one commitment to several named artifacts (G1), e.g. an embedder's files.

    Committed is the canonical JSON of names and digests, so no artifact can be left out or
    exchanged, and opening shows digests and not the artifacts.

    Args:
        domain: Kind of the list, e.g. ``"ragwitness/embedder/v1"``.
        digests: Artifact name (embedder, template, tokenizer, schema, …) to its SHA-256 in hex.
        blinding: 32 bytes.

    Raises:
        InputError: A digest is not 64 lower-case hex digits, there is none, or the blinding has
            another length.
    """
    # Every digest in its one form.
    wrong = [name for name, digest in digests.items() if not is_digest(digest)]
    if wrong or not digests:
        raise InputError(
            f"Not a SHA-256 in lower-case hex: the digest of {wrong[0]!r}."
            if wrong
            else "A commitment to artifacts needs at least one.",
            "Take it with hashlib.file_digest(file, 'sha256').hexdigest().",
        )
    return commit(Opening(domain, canonical(dict(digests)), blinding))


def is_digest(text: str) -> bool:
    """Return whether a text is a SHA-256 in lower-case hex."""
    return len(text) == 2 * HASH_BYTES and _HEX.fullmatch(text) is not None


def verify_opening(commitment: bytes, opening: Opening) -> None:
    """Check that ``opening`` opens ``commitment``.

    Raises:
        VerificationError: ``commitment.blinding`` or ``commitment.opening``.
    """
    size = len(opening.blinding)
    form = f"A blinding has {BLINDING_BYTES} bytes, not {size}."
    require(size == BLINDING_BYTES, "commitment.blinding", form)
    fault = f"The opening under {opening.domain!r} does not match its commitment."
    require(hmac.compare_digest(commit(opening), commitment), "commitment.opening", fault)
