"""The one zip of a set of files: stored, in order, without dates; every other zip is refused.

A zip says most things twice, and readers disagree on which to believe. Here the bytes follow from
names and contents alone, so that a bundle has one form, nothing hides in it, and what a directory
claims is checked before anything is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

from ragwitness.errors import InputError, VerificationError

__all__ = ["MAX_ARCHIVE", "MAX_FILES", "Listed", "contents", "listing", "pack"]

MAX_ARCHIVE = (1 << 31) - 1
"""Longest archive, in bytes."""

MAX_FILES = 60_000
"""Most files; more than 65,534 would need the zip64 form."""

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LOCAL_SIGN, _CENTRAL_SIGN, _END_SIGN = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_VERSION = 10
_DATE = 0x21  # 1 January 1980, the first that a zip can say
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the archive's directory lists it; nothing of it is read yet.

    Attributes:
        name: ASCII path.
        size: In bytes.
        crc: CRC-32 that the directory claims.
        start: Where its content begins.
    """

    name: str
    size: int
    crc: int
    start: int


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of files, in the order of their names.

    Raises:
        InputError: There are too many files or bytes, or a name is no plain ASCII path.
    """
    names = sorted(files)
    if not 1 <= len(names) <= MAX_FILES:
        raise InputError(f"A bundle holds 1 to {MAX_FILES:,} files, not {len(names):,}.")
    bad = [name for name in names if not _plain(name)]
    if bad:
        raise InputError(f"{bad[0][:80]!r} is no name for a file in a bundle.")
    heads = [(name, len(files[name]), crc32(files[name])) for name in names]
    pieces = [b""] * (2 * len(names))
    pieces[::2] = [_local(*head) for head in heads]
    pieces[1::2] = [files[name] for name in names]
    tail = _directory(heads)
    total = sum(map(len, pieces)) + len(tail)
    if total > MAX_ARCHIVE:
        raise InputError(
            f"A bundle of {total:,} bytes is too large; at most {MAX_ARCHIVE:,} are allowed.",
            "Challenge fewer records, or audit shorter windows.",
        )
    return b"".join((*pieces, tail))


def listing(data: bytes) -> list[Listed]:
    """Return the files of an archive after checking all that needs no content.

    Raises:
        VerificationError: ``bundle.size``, ``bundle.zip``, ``bundle.zip64``, ``bundle.files``,
            ``bundle.name``, ``bundle.duplicate``, ``bundle.compressed``, ``bundle.order`` or
            ``bundle.canonical``.
    """
    if len(data) > MAX_ARCHIVE:
        raise VerificationError("bundle.size", f"The bundle has {len(data):,} bytes.")
    count, start = _end(data)
    found = list(_central(data, count, start))
    _names(found)
    at = 0
    for file in found:
        if file.start != at + _LOCAL.size + len(file.name):
            raise _other("something lies between the files")
        at = file.start + file.size
    if at != start:
        raise _other("the files do not end where the directory begins")
    return found


def contents(data: bytes, files: list[Listed]) -> dict[str, bytes]:
    """Return the contents of listed files, once the archive is the one that :func:`pack` makes.

    Raises:
        VerificationError: ``bundle.crc`` or ``bundle.canonical``.
    """
    found: dict[str, bytes] = {}
    for file in files:
        content = data[file.start : file.start + file.size]
        if crc32(content) != file.crc:
            raise VerificationError("bundle.crc", f"{file.name} is damaged: its CRC differs.")
        head = _local(file.name, file.size, file.crc)
        if data[file.start - len(head) : file.start] != head:
            raise _other(f"the header of {file.name} says something else than the directory")
        found[file.name] = content
    heads = [(file.name, file.size, file.crc) for file in files]
    tail = _directory(heads)
    if data[len(data) - len(tail) :] != tail:
        raise _other("its directory holds more than names, sizes and CRCs")
    return found


def _end(data: bytes) -> tuple[int, int]:
    """Return the number of files and where the directory begins."""
    if len(data) < _END.size or not data.startswith(_LOCAL_SIGN):
        raise VerificationError("bundle.zip", "The file is no zip, or something stands before it.")
    sign, disk, first, here, count, size, start, comment = _END.unpack(data[-_END.size :])
    if sign != _END_SIGN or comment:
        raise VerificationError("bundle.zip", "The zip is cut off, or something stands behind it.")
    if _FULL16 in (disk, first, here, count) or _FULL32 in (size, start):
        raise VerificationError("bundle.zip64", "The zip is in the zip64 form.")
    if not 1 <= count <= MAX_FILES:
        raise VerificationError("bundle.files", f"The zip lists {count:,} files.")
    if (disk, first, here) != (0, 0, count) or start + size + _END.size != len(data):
        raise _other("its directory does not stand right before its end")
    return count, start


def _central(data: bytes, count: int, at: int) -> Iterator[Listed]:
    stop = len(data) - _END.size
    for _ in range(count):
        if at + _CENTRAL.size > stop:
            raise _other("its directory is cut off")
        fields = _CENTRAL.unpack(data[at : at + _CENTRAL.size])
        sign, _, _, flags, method, _, _, crc, packed, size, long, extra, comment = fields[:13]
        offset = fields[16]
        name = data[at + _CENTRAL.size : at + _CENTRAL.size + long].decode("latin-1")
        if sign != _CENTRAL_SIGN:
            raise _other("its directory holds something else")
        if method or packed != size:
            raise VerificationError("bundle.compressed", f"{name[:80]!r} is compressed.")
        if flags or comment:
            raise _other(f"{name[:80]!r} has flags or a comment")
        if extra or _FULL32 in (size, offset):
            raise VerificationError("bundle.zip64", f"{name[:80]!r} has fields of the zip64 form.")
        yield Listed(name, size, crc, offset + _LOCAL.size + long)
        at += _CENTRAL.size + long
    if at != stop:
        raise _other("its directory holds more files than it says")


def _names(files: list[Listed]) -> None:
    for file in files:
        if not _plain(file.name):
            raise VerificationError(
                "bundle.name", f"{file.name[:80]!r} is no plain relative path of a file."
            )
    names = [file.name for file in files]
    if len(set(names)) != len(names):
        raise VerificationError("bundle.duplicate", "A name stands twice in the zip.")
    if names != sorted(names):
        raise VerificationError("bundle.order", "The files are not in the order of their names.")


def _plain(name: str) -> bool:
    parts = name.split("/")
    allowed = name.isascii() and all(c.isalnum() or c in "._-/" for c in name)
    return allowed and len(name) <= _LONGEST_NAME and all(part.strip(".") for part in parts)


def _local(name: str, size: int, crc: int) -> bytes:
    fields = (_VERSION, 0, 0, 0, _DATE, crc, size, size, len(name), 0)
    return _LOCAL.pack(_LOCAL_SIGN, *fields) + name.encode()


def _directory(heads: list[tuple[str, int, int]]) -> bytes:
    """Return the central directory and the end of the archive of these files."""
    pieces: list[bytes] = []
    at = 0
    for name, size, crc in heads:
        fields = (_VERSION, _VERSION, 0, 0, 0, _DATE, crc, size, size, len(name), 0, 0, 0, 0, 0, at)
        pieces.append(_CENTRAL.pack(_CENTRAL_SIGN, *fields) + name.encode())
        at += _LOCAL.size + len(name) + size
    central = b"".join(pieces)
    return central + _END.pack(_END_SIGN, 0, 0, len(heads), len(heads), len(central), at, 0)


def _other(why: str) -> VerificationError:
    return VerificationError("bundle.canonical", f"The zip is not in its one form: {why}.")
