"""The bundle: everything that a verifier gets, in one file with one form.

Its first file, ``bundle.json``, lists the digests of all others, and ``bundle.note`` is the log
key's signature over it. So a byte changed between provider and verifier is found before anything
is computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ragwitness.attest.archive import Archive, Listed, contents, listing, pack
from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.crypto.hashing import canonical, is_digest, parse
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.notes import MAX_NOTE, check_signed, sign_note

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


def read_bundle(data: Archive, log: Sequence[PublicKey] = ()) -> Bundle:
    """Return a bundle after checking its form and its files' digests, in that order.

    Args:
        data: The file.
        log: The log's keys, if they are known: then their signature is checked before any file
            but the list is read.

    Raises:
        VerificationError: ``bundle.note`` or ``bundle.signature`` where keys are given.
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
    note = _content(data, listed, _NOTE)
    if log:
        check_signed(note, _text(_content(data, listed, _MANIFEST)), log, "bundle")
    tenants, records = _complete([f.name for f in listed if f.name not in (_MANIFEST, _NOTE)])
    # 4. Contents by their CRC, then by the digests that the list states.
    files = contents(data, listed)
    manifest, _ = files.pop(_MANIFEST), files.pop(_NOTE)
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
