"""The one zip of a set of files: stored, in order, without dates; every other zip is refused.

A zip states most things twice, and readers differ in which statement they take. Here the bytes
follow from names and contents alone, so that a sealed file has one form without hidden parts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap
from typing import TypeAlias
from zlib import crc32

from ragwitness.core.errors import InputError, require

Archive: TypeAlias = bytes | mmap
"""An archive in memory, or on the disk, where only the parts in use are read."""

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
_FULL32 = 0xFFFFFFFF
_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as the archive lists it, before its content is read.

    Attributes:
        name: ASCII path.
        size: Number of bytes.
        crc: CRC-32 by its header.
        start: Offset of its content.
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
    # Refuse names that no bundle may have.
    names = sorted(files)
    if not 1 <= len(names) <= MAX_FILES:
        raise InputError(f"A bundle holds 1 to {MAX_FILES:,} files, not {len(names):,}.")
    bad = [name for name in names if not _plain(name)]
    if bad:
        raise InputError(f"{bad[0][:80]!r} cannot name a file in a bundle.")
    # Headers and contents in turn, then the directory.
    heads = [(name, len(files[name]), crc32(files[name])) for name in names]
    pieces = [piece for head in heads for piece in (_local(*head), files[head[0]])]
    data = b"".join((*pieces, _directory(heads)))
    if len(data) > MAX_ARCHIVE:
        raise InputError(
            f"A bundle of {len(data):,} bytes is too large; at most {MAX_ARCHIVE:,} are allowed.",
            "Challenge fewer records, or audit shorter windows.",
        )
    return data


def listing(data: Archive) -> list[Listed]:
    """Return the files of an archive; everything but the contents is checked.

    The files are walked header by header. Then headers and directory are written again from names,
    sizes and CRCs, and must be these bytes.

    Raises:
        VerificationError: ``bundle.size``, ``bundle.zip``, ``bundle.zip64``, ``bundle.files``,
            ``bundle.name``, ``bundle.duplicate``, ``bundle.compressed``, ``bundle.order`` or
            ``bundle.canonical``.
    """
    require(len(data) <= MAX_ARCHIVE, "bundle.size", f"The bundle has {len(data):,} bytes.")
    zipped = data[:4] == _LOCAL_SIGN and data[-_END.size :][:4] == _END_SIGN
    require(zipped, "bundle.zip", "The file is no zip, is cut off, or has other bytes around it.")
    # 1. The files, side by side. 2. Their names. 3. Headers and directory, to the byte.
    files, at = list[Listed](), 0
    while data[at : at + 4] == _LOCAL_SIGN and at + _LOCAL.size <= len(data):
        fields = _LOCAL.unpack(data[at : at + _LOCAL.size])
        method, crc, packed, size, long = (fields[index] for index in (3, 6, 7, 8, 9))
        start = at + _LOCAL.size + long
        name = data[at + _LOCAL.size : start].decode("latin-1")
        require(not method, "bundle.compressed", f"{name[:80]!r} is compressed.")
        large = f"{name[:80]!r} has fields of the zip64 form."
        require(_FULL32 not in (packed, size), "bundle.zip64", large)
        files.append(Listed(name, size, crc, start))
        many = f"The zip has more than {MAX_FILES:,} files."
        require(len(files) <= MAX_FILES, "bundle.files", many)
        at = start + size
    _names(files)
    form = "The zip is not in its one form: "
    for file in files:
        head = _local(file.name, file.size, file.crc)
        more = f"{form}the header of {file.name} states more than its name, size and CRC."
        require(data[file.start - len(head) : file.start] == head, "bundle.canonical", more)
    tail = _directory([(file.name, file.size, file.crc) for file in files])
    same = len(data) - at == len(tail) and data[at:] == tail
    require(same, "bundle.canonical", f"{form}its directory is another than that of its files.")
    return files


def contents(data: Archive, files: list[Listed]) -> dict[str, bytes]:
    """Return the contents of listed files.

    Raises:
        VerificationError: ``bundle.crc``.
    """
    by_name = {file.name: data[file.start : file.start + file.size] for file in files}
    for file in files:
        damaged = f"{file.name} is damaged: its CRC differs."
        require(crc32(by_name[file.name]) == file.crc, "bundle.crc", damaged)
    return by_name


def _names(files: list[Listed]) -> None:
    # Plain, distinct and in order: one listing for one set of files.
    names = [file.name for file in files]
    for name in names:
        path = f"{name[:80]!r} is not a plain relative path of a file."
        require(_plain(name), "bundle.name", path)
    require(len(set(names)) == len(names), "bundle.duplicate", "A name is twice in the zip.")
    order = "The files are not in the order of their names."
    require(names == sorted(names), "bundle.order", order)


def _plain(name: str) -> bool:
    segments = name.split("/")
    allowed = name.isascii() and all(c.isalnum() or c in "._-/" for c in name)
    return (
        allowed and len(name) <= _LONGEST_NAME and all(segment.strip(".") for segment in segments)
    )


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
