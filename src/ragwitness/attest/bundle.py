"""The bundle: everything that a verifier gets, in one file with one form.

Its first file, ``bundle.json``, lists the digests of all others, and ``bundle.note`` is the log
key's signature over it. So a byte changed between provider and verifier is found before anything
is computed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from mmap import mmap
from typing import Any, TypeAlias
from zlib import crc32

from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.crypto.hashing import canonical, is_digest, parse
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.notes import MAX_NOTE, check_signed, sign_note

# The one zip of a set of files: stored, in order, without dates; every other zip is refused.
#
# A zip states most things twice, and readers differ in which statement they take. Here the bytes
# follow from names and contents alone, so that a bundle has one form without hidden parts.

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


BUNDLE_VERSION = "ragwitness/bundle/v2"

EARLIER = "bundle.earlier"
"""Check name of a bundle whose proofs are of an earlier system."""

_EARLIER_VERSION = "ragwitness/bundle/v1"

MAX_RECORDS = 29_000
"""Most challenged records of one bundle: two files each."""

TENANT_FILES = ("columns.bin", "index.json", "norms.bin")
"""Files of every tenant's index."""

_MANIFEST, _NOTE = "bundle.json", "bundle.note"
_KB, _MB = 1 << 10, 1 << 20
_FIXED = {
    "challenge.json": _MB,
    "embedder.json": 64 * _KB,
    "estimate.json": 16 * _MB,
    "log/close.checkpoint": MAX_NOTE,
    "log/entries.bin": 512 * _MB,
    "log/open.checkpoint": MAX_NOTE,
    "policy.json": 256 * _KB,
    "vectors.bin": 1024 * _MB,
}
OPENINGS = ("openings/entries.bin", "openings/checkpoint")
"""The provider's log of all its windows: both files, or neither."""
_OPENINGS = dict(zip(OPENINGS, (64 * _MB, MAX_NOTE), strict=True))
_TENANT = re.compile(r"tenants/(0|[1-9][0-9]{0,2})/(.+)", re.ASCII)
_TENANT_SIZES = {"columns.bin": 64 * _MB, "index.json": 4 * _KB, "norms.bin": 64 * _MB}
_RECORD = re.compile(r"records/(0|[1-9][0-9]{0,8})\.(json|proof)", re.ASCII)
_RECORD_SIZES = {"json": 256 * _KB, "proof": 4 * _MB}
_MOST_TENANTS = 128


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in its one form whose files have the listed digests; no file is parsed yet.

    Attributes:
        window: Name of its audit window.
        tenants: Number of tenants whose indexes it holds.
        records: Places of the opened records among the query records, ascending.
        files: Contents by name, without list and signature.
        manifest: The list, canonical JSON.
        note: The list's signature, unchecked.
    """

    window: str
    tenants: int
    records: tuple[int, ...]
    files: Mapping[str, bytes]
    manifest: bytes
    note: bytes

    def tenant(self, place: int, file: str) -> bytes:
        """Return a file of the tenant at ``place`` of the open record."""
        return self.files[f"tenants/{place}/{file}"]


def member_limit(name: str) -> int | None:
    """Return the largest size of a file in a bundle; None for a file of no bundle."""
    if name in (_MANIFEST, _NOTE):
        return MAX_NOTE if name == _NOTE else 16 * _MB
    if (tenant := _TENANT.fullmatch(name)) and int(tenant[1]) < _MOST_TENANTS:
        return _TENANT_SIZES.get(tenant[2])
    if record := _RECORD.fullmatch(name):
        return _RECORD_SIZES[record[2]]
    return _FIXED.get(name) or _OPENINGS.get(name)


def write_bundle(window: str, files: Mapping[str, bytes], keys: Sequence[PrivateKey]) -> bytes:
    """Return a bundle.

    Args:
        window: Window of the audit.
        files: Contents by name.
        keys: Of the log; at least one of them signs notes, since keys for cosignatures sign none.

    Raises:
        InputError: A file is missing, does not belong or is too large, or no key can sign.
    """
    # All files of a bundle, none of them too large.
    try:
        _complete(list(files))
    except VerificationError as error:
        raise InputError(error.message, error.hint) from error
    for name, data in files.items():
        if len(data) > (member_limit(name) or 0):
            raise InputError(f"{name} has {len(data):,} bytes: too many for a bundle.")
    # The list of digests, its signature, and one archive of all.
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    manifest = canonical({"members": digests, "version": BUNDLE_VERSION, "window": window})
    signers = [key for key in keys if key.kind is KeyKind.NOTE]
    if not signers:
        raise InputError(
            "A bundle is signed with the log's Ed25519 key, and the log has none.",
            "Give the log an Ed25519 key beside the other.",
        )
    note = sign_note(_text(manifest), signers)
    return pack({**files, _MANIFEST: manifest, _NOTE: note})


def read_bundle(data: Archive) -> Bundle:
    """Return a bundle after checking its form and its files' digests, in that order.

    Raises:
        VerificationError: ``bundle.version``, ``bundle.missing``, ``bundle.extra``,
            ``bundle.member_size``, ``bundle.manifest``, ``bundle.digest``, or as
            :func:`~ragwitness.attest.bundle.listing` and
            :func:`~ragwitness.attest.bundle.contents`.
    """
    # 1. The archive's form. 2. The list's version, so that a newer bundle says so first.
    listed = listing(data)
    window, digests = _manifest(_content(data, listed, _MANIFEST))
    # 3. Sizes and names: all files of a bundle, and no other.
    for file in listed:
        _sized(file)
    _content(data, listed, _NOTE)
    tenants, records = _complete([f.name for f in listed if f.name not in (_MANIFEST, _NOTE)])
    # 4. Contents by their CRC, then by the digests that the list states.
    files = contents(data, listed)
    manifest, note = files.pop(_MANIFEST), files.pop(_NOTE)
    for name in sorted(digests.keys() ^ files.keys()):
        fault = "missing" if name in digests else "extra"
        raise VerificationError(f"bundle.{fault}", f"{name[:80]} is listed or held, not both.")
    for name, content in files.items():
        same = sha256(content).hexdigest() == digests[name]
        require(same, "bundle.digest", f"{name} is not the file that is listed.")
    return Bundle(window, tenants, records, files, manifest, note)


def verify_note(bundle: Bundle, log: Sequence[PublicKey]) -> None:
    """Check that the log's Ed25519 keys, all of them, signed the list of files.

    Raises:
        VerificationError: ``bundle.note`` or ``bundle.signature``.
    """
    check_signed(bundle.note, _text(bundle.manifest), log, "bundle")


def _text(manifest: bytes) -> str:
    return f"{BUNDLE_VERSION}\n{sha256(manifest).hexdigest()}\n"


def _content(data: Archive, listed: Sequence[Listed], name: str) -> bytes:
    """Return the content of one of the two files that every bundle has."""
    member = next((file for file in listed if file.name == name), None)
    if member is None:
        raise VerificationError(
            "bundle.missing",
            f"The zip holds no {name}.",
            "Ask for a bundle of `ragwitness attest prove`.",
        )
    _sized(member)
    return data[member.start : member.start + member.size]


def _sized(file: Listed) -> None:
    limit = member_limit(file.name)
    # Commitments to noise that 0.3.0 could prove without opening it: honest, and no longer checked.
    if file.name.endswith(".coins"):
        raise VerificationError(
            EARLIER,
            'The bundle\'s noise is proved without being opened (noise = "proved"), which this'
            " version does not check.",
            "Verify it with ragwitness 0.3.0.",
        )
    if limit is None:
        raise VerificationError("bundle.extra", f"{file.name!r} belongs in no bundle.")
    large = f"{file.name} has {file.size:,} bytes by its header; at most {limit:,} are allowed."
    require(file.size <= limit, "bundle.member_size", large)


def _manifest(data: bytes) -> tuple[str, Mapping[str, str]]:
    """Return window and digests of a list of files."""
    # The version first: another release may have other fields.
    value: Any = parse(data, 16 * _MB, "bundle.manifest")
    version = value.get("version") if isinstance(value, dict) else None
    if version == _EARLIER_VERSION:
        raise VerificationError(
            EARLIER,
            "The bundle's proofs were made by an earlier proof system (Groth16), which this version"
            " does not check.",
            "Verify it with ragwitness 0.2.0.",
        )
    require(
        version == BUNDLE_VERSION,
        "bundle.version",
        f"The bundle is of version {str(version)[:60]!r}; this is a reader of {BUNDLE_VERSION!r}.",
        "Install the version of ragwitness that wrote it, or a newer one.",
    )
    window, digests = value.get("window"), value.get("members")
    # Window and digests, each in its one form.
    named = len(value) == 3 and isinstance(window, str) and isinstance(digests, dict)
    form = "bundle.json lacks a field, has another, or has a digest that is none."
    hashed = named and all(isinstance(text, str) and is_digest(text) for text in digests.values())
    require(hashed, "bundle.manifest", form)
    return window, digests


def _complete(names: Sequence[str]) -> tuple[int, tuple[int, ...]]:
    """Return the number of tenants and the records; all files of a bundle must be there."""
    present = set(names)
    # Count the tenants and the records by their files' names.
    tenants = len({name.split("/")[1] for name in present if name.startswith("tenants/")})
    records = sorted({int(name[8:].split(".")[0]) for name in present if _RECORD.fullmatch(name)})
    # All fixed files, three per tenant, two per record.
    complete = {*_FIXED, *(OPENINGS if present & {*OPENINGS} else ())}
    complete |= {f"tenants/{i}/{file}" for i in range(max(1, tenants)) for file in TENANT_FILES}
    complete |= {f"records/{i}.{end}" for i in records or (0,) for end in _RECORD_SIZES}
    # Name the first file that is missing, or that does not belong.
    if missing := sorted(complete - present):
        raise VerificationError(
            "bundle.missing",
            f"The bundle lacks {missing[0]} ({len(missing):,} of its files in all).",
        )
    if extra := sorted(present - complete):
        raise VerificationError("bundle.extra", f"{extra[0][:80]!r} belongs in no bundle.")
    many = f"The bundle opens {len(records):,} records."
    require(len(records) <= MAX_RECORDS, "bundle.files", many)
    return tenants, tuple(records)
