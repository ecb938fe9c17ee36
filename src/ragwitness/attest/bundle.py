"""The bundle: everything that a verifier is handed, in one file with one form.

Its first file, ``bundle.json``, lists the digests of all others, and ``bundle.note`` is the log
key's signature over it: whoever changes a byte between provider and verifier is found before
anything is computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ragwitness.attest.archive import Listed, contents, listing, pack
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.encoding import parse_hex
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.notes.signed import MAX_NOTE, Note
from ragwitness.crypto.notes.signing import sign_note
from ragwitness.errors import InputError, VerificationError

__all__ = [
    "BUNDLE_VERSION",
    "MAX_RECORDS",
    "TENANT_FILES",
    "Bundle",
    "member_limit",
    "read_bundle",
    "verify_note",
    "write_bundle",
]

BUNDLE_VERSION = "ragwitness/bundle/v1"

MAX_RECORDS = 29_000
"""Most challenged records of one bundle: two files each."""

TENANT_FILES = ("columns.bin", "index.json", "norms.bin")
"""What a bundle holds of every tenant's index."""

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
    "setup.json": 64 * _KB,
    "vectors.bin": 1024 * _MB,
}
_TENANT = re.compile(r"tenants/(0|[1-9][0-9]{0,2})/(.+)", re.ASCII)
_TENANT_SIZES = {"columns.bin": 64 * _MB, "index.json": 4 * _KB, "norms.bin": 64 * _MB}
_RECORD = re.compile(r"records/(0|[1-9][0-9]{0,8})\.(json|proof)", re.ASCII)
_RECORD_SIZES = {"json": 256 * _KB, "proof": 4 * _MB}
_MOST_TENANTS = 128


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in its one form whose files have the listed digests; no file is understood yet.

    Attributes:
        window: Which audit window it says it is of.
        tenants: Number of tenants whose indexes it holds.
        records: Places, among the query records, of those it opens, ascending.
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
    """Return the largest size of a file in a bundle; None where no such file belongs in one."""
    if name in (_MANIFEST, _NOTE):
        return MAX_NOTE if name == _NOTE else 16 * _MB
    if (tenant := _TENANT.fullmatch(name)) and int(tenant[1]) < _MOST_TENANTS:
        return _TENANT_SIZES.get(tenant[2])
    if record := _RECORD.fullmatch(name):
        return _RECORD_SIZES[record[2]]
    return _FIXED.get(name)


def write_bundle(window: str, files: Mapping[str, bytes], keys: Sequence[PrivateKey]) -> bytes:
    """Return a bundle.

    Args:
        window: Of the audit.
        files: Contents by name.
        keys: Of the log; at least one Ed25519 key, since a checkpoint's keys sign nothing else.

    Raises:
        InputError: A file is missing, does not belong or is too large, or no key can sign.
    """
    try:
        _complete(list(files))
    except VerificationError as error:
        raise InputError(error.message, error.hint) from error
    for name, data in files.items():
        if len(data) > (member_limit(name) or 0):
            raise InputError(f"{name} has {len(data):,} bytes: too many for a bundle.")
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


def read_bundle(data: bytes) -> Bundle:
    """Return a bundle after checking its form and its files' digests, in that order.

    Raises:
        VerificationError: ``bundle.version``, ``bundle.missing``, ``bundle.extra``,
            ``bundle.member_size``, ``bundle.manifest``, ``bundle.digest``, or as
            :func:`~ragwitness.attest.archive.listing` and
            :func:`~ragwitness.attest.archive.contents`.
    """
    listed = listing(data)
    window, digests = _manifest(_content(data, listed, _MANIFEST))  # another version goes first
    for file in listed:
        _sized(file)
    _content(data, listed, _NOTE)
    tenants, records = _complete([f.name for f in listed if f.name not in (_MANIFEST, _NOTE)])
    files = contents(data, listed)
    manifest, note = files.pop(_MANIFEST), files.pop(_NOTE)
    if digests.keys() != files.keys():
        other = sorted(digests.keys() ^ files.keys())[0]
        known = "missing" if other in digests else "extra"
        raise VerificationError(f"bundle.{known}", f"{other[:80]} is listed or held, not both.")
    for name, content in files.items():
        if sha256(content).hexdigest() != digests[name]:
            raise VerificationError("bundle.digest", f"{name} is not the file that is listed.")
    return Bundle(window, tenants, records, files, manifest, note)


def verify_note(bundle: Bundle, log: Sequence[PublicKey]) -> None:
    """Check that the log's Ed25519 keys, all of them, signed the list of files.

    Raises:
        VerificationError: ``bundle.note`` or ``bundle.signature``.
    """
    try:
        note = Note.parse(bundle.note)
    except VerificationError as error:
        raise VerificationError("bundle.note", error.message) from error
    if note.text != _text(bundle.manifest):
        raise VerificationError("bundle.note", "What is signed is not this bundle's list of files.")
    wanted = {(key.name, key.key_id): key for key in log if key.kind is KeyKind.NOTE}
    lines = {(line.name, line.key_id): line.data for line in note.signatures}
    if not wanted or lines.keys() != wanted.keys():
        raise VerificationError(
            "bundle.signature", "The bundle is not signed by the log's Ed25519 keys, or by others."
        )
    for place, key in wanted.items():
        try:
            key.verify(note.text.encode(), lines[place])
        except VerificationError as error:
            raise VerificationError("bundle.signature", error.message) from error


def _text(manifest: bytes) -> str:
    return f"{BUNDLE_VERSION}\n{sha256(manifest).hexdigest()}\n"


def _content(data: bytes, listed: Sequence[Listed], name: str) -> bytes:
    """Return the content of one of the two files that every bundle has."""
    found = next((file for file in listed if file.name == name), None)
    if found is None:
        raise VerificationError(
            "bundle.missing", f"The zip holds no {name}.", "Ask for a bundle of `ragwitness prove`."
        )
    _sized(found)
    return data[found.start : found.start + found.size]


def _sized(file: Listed) -> None:
    most = member_limit(file.name)
    if most is None:
        raise VerificationError("bundle.extra", f"{file.name!r} belongs in no bundle.")
    if file.size > most:
        raise VerificationError(
            "bundle.member_size",
            f"{file.name} is said to have {file.size:,} bytes; at most {most:,} are allowed.",
        )


def _manifest(data: bytes) -> tuple[str, Mapping[str, str]]:
    """Return window and digests of a list of files."""
    value: Any = parse(data, 16 * _MB, "bundle.manifest")
    version = value.get("version") if isinstance(value, dict) else None
    if version != BUNDLE_VERSION:
        raise VerificationError(
            "bundle.version",
            f"The bundle is of version {str(version)[:60]!r}; this is a reader of"
            f" {BUNDLE_VERSION!r}.",
            "Install the version of ragwitness that wrote it, or a newer one.",
        )
    window, digests = value.get("window"), value.get("members")
    if (
        value.keys() != {"version", "window", "members"}
        or not isinstance(window, str)
        or not isinstance(digests, dict)
    ):
        raise VerificationError("bundle.manifest", "bundle.json lacks a field or has another.")
    for digest in digests.values():
        if not isinstance(digest, str):
            raise VerificationError("bundle.manifest", "A digest in bundle.json is no string.")
        parse_hex(digest, 32, "bundle.manifest")
    return window, digests


def _complete(names: Sequence[str]) -> tuple[int, tuple[int, ...]]:
    """Return the number of tenants and the records, once every file that belongs is there."""
    here = set(names)
    tenants = len({name.split("/")[1] for name in here if name.startswith("tenants/")})
    records = sorted({int(name[8:].split(".")[0]) for name in here if _RECORD.fullmatch(name)})
    wanted = {*_FIXED}
    wanted |= {f"tenants/{i}/{file}" for i in range(max(1, tenants)) for file in TENANT_FILES}
    wanted |= {f"records/{i}.{end}" for i in records or (0,) for end in _RECORD_SIZES}
    if missing := sorted(wanted - here):
        raise VerificationError(
            "bundle.missing",
            f"The bundle lacks {missing[0]} ({len(missing):,} of its files in all).",
        )
    if extra := sorted(here - wanted):
        raise VerificationError("bundle.extra", f"{extra[0][:80]!r} belongs in no bundle.")
    if len(records) > MAX_RECORDS:
        raise VerificationError("bundle.files", f"The bundle opens {len(records):,} records.")
    return tenants, tuple(records)
