"""An evidence pack: a sealed run in one file, with as much of it opened as its owner shows.

The archive has the one form of :mod:`ragwitness.attest.bundle`: stored, sorted, without dates, so
that nothing can hide in it and nothing can grow when it is read. ``pack.json`` lists the digest of
every other file and the last link of the answers, and ``pack.note`` is its signature. Here only
the form of the files is checked; :mod:`ragwitness.evidence.verifier` checks their content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from hashlib import sha256
from io import BytesIO
from typing import Any, Never, TypeVar

from ragwitness.attest.archive import Archive, contents, listing, pack
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import parse_json
from ragwitness.core.run_files import REPORT, RESULT, SEAL, SEAL_NOTE, SEAL_STAMP
from ragwitness.crypto.hashing import parse_hex
from ragwitness.crypto.keys import LARGEST_STAMP, PrivateKey, PublicKey
from ragwitness.crypto.notes import MAX_NOTE, check_signed, sign_note
from ragwitness.evidence.subject import EARLIER, SealedText, leaf_of
from ragwitness.evidence.subject import VERSION as SEAL_VERSION
from ragwitness.runner.hash_chain import Label

PACK_VERSION = "ragwitness/pack/v1"
MANIFEST, NOTE = "pack.json", "pack.note"
TEXTS, ANSWERS_FILE, ROWS = "texts.jsonl", "answers.jsonl", "rows.jsonl"
"""The texts and answers with what opens them, and what the task found row by row."""
LOG, SIGNED_LOG = "runs/entries.bin", "runs/checkpoint"

_MB = 1 << 20
_LIMITS = {
    MANIFEST: _MB,
    NOTE: MAX_NOTE,
    SEAL: 64 * _MB,
    SEAL_NOTE: MAX_NOTE,
    SEAL_STAMP: LARGEST_STAMP,
    TEXTS: 512 * _MB,
    ANSWERS_FILE: 1024 * _MB,
    ROWS: 512 * _MB,
    RESULT: 256 * _MB,
    REPORT: 256 * _MB,
    LOG: 64 * _MB,
    SIGNED_LOG: MAX_NOTE,
}
_OPTIONAL = frozenset({SEAL_STAMP, LOG, SIGNED_LOG})
_DEEPEST = 64  # levels of JSON
_MOST_ROWS, _LONGEST_ROW = 1_000_000, 16 * _MB  # of a file; of a row, in bytes

# The seal is written by this package, so its key is on its own line. A string in JSON holds no
# line feed, and nested fields are further to the right.
_KEY = re.compile(rb'^ "key": "([^"\\]{1,400})",$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PackChain:
    """A pack's statement on its answers as a whole.

    Attributes:
        head: Last link, in hex.
        answers: Number of links.
        alternatives: Most alternatives per token that were asked for: what the target gives
            decides that, and hidden questions do not show it.
    """

    head: str
    answers: int
    alternatives: int


# Written.


def pack_text(manifest: bytes) -> str:
    """Return what is signed of a pack."""
    return f"ragwitness evidence pack\n{sha256(manifest).hexdigest()}\n"


def signed_pack(files: Mapping[str, bytes], chain: PackChain, key: PrivateKey) -> bytes:
    """Return files as a pack, with their list and its signature.

    Raises:
        InputError: A file is too large.
    """
    for name, data in files.items():
        if len(data) > _LIMITS[name]:
            raise InputError(
                f"{name} has {len(data):,} bytes: too many for a pack.",
                "Hide the texts: --hide-texts",
            )
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    manifest = {"version": PACK_VERSION, "chain": asdict(chain), "files": digests}
    written = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    return pack({**files, MANIFEST: written, NOTE: sign_note(pack_text(written), [key])})


def page_of(result: Mapping[str, Any]) -> str:
    """Return the page of a stored result.

    Raises:
        InputError: It is no result.
    """
    from ragwitness.report.html import render_page
    from ragwitness.report.result_registry import parse_result

    kind, value = parse_result(result)
    return render_page(kind.report(value))


# Read: signed by the key that its seal names, and everything in its form; or nothing is looked at.


@dataclass(frozen=True, slots=True)
class Seal:
    """A seal as it was signed; see :mod:`ragwitness.evidence.seal`."""

    version: str
    errand: str  # the field of every seal that was ever signed: the name of its task
    begun: str
    code: dict[str, Any]
    key: str
    logged: bool
    looks: int
    settings: dict[str, Any]
    texts: dict[str, Any]
    units: dict[str, Any]
    system: str = ""

    @property
    def task(self) -> str:
        """Name of the task that was sealed."""
        return self.errand


@dataclass(frozen=True, slots=True)
class PackManifest:
    """The list of a pack."""

    version: str
    chain: PackChain
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class PackText:
    """A text of a pack.

    Attributes:
        part: Which part it has in the run.
        id: Of the document.
        member: The truth, where it is known.
        commitment: To the text, in hex.
        text: None where it is hidden.
        blinding: Opens the commitment, in hex; None where it is hidden.
    """

    part: str
    id: str
    member: bool | None
    commitment: str
    text: str | None = None
    blinding: str | None = None

    @property
    def leaf(self) -> bytes:
        """In the tree of the seal."""
        commitment = parse_hex(self.commitment, 32, "pack.form")
        return leaf_of(SealedText(self.part, self.id, "", self.member), commitment)


@dataclass(frozen=True, slots=True)
class PackAnswer:
    """A row of the chain of a pack.

    Attributes:
        asked: Its label.
        commitment: To the row, in hex.
        text: The row; None where it is hidden.
        blinding: Opens the commitment, in hex; None where it is hidden.
    """

    asked: Label
    commitment: str
    text: str | None = None
    blinding: str | None = None


@dataclass(frozen=True)
class Pack:
    """A pack whose files have their form and their digests; nothing else of it is checked.

    Attributes:
        files: By name.
        manifest: Their list.
        seal: The commitment.
        texts: In the order of the seal.
        answers: In the order in which they arrived.
        rows: The task's findings.
        result: As it is stored.
        key: That the seal names; it signed the list.
    """

    files: Mapping[str, bytes]
    manifest: PackManifest
    seal: Seal
    texts: tuple[PackText, ...]
    answers: tuple[PackAnswer, ...]
    rows: tuple[dict[str, Any], ...]
    result: dict[str, Any]
    key: PublicKey

    @cached_property
    def hidden(self) -> int:
        """Number of texts that are not shown."""
        return sum(text.text is None for text in self.texts)

    @cached_property
    def silent(self) -> int:
        """Number of answers that are not shown."""
        return sum(answer.text is None for answer in self.answers)


def read_pack(
    data: Archive,
    whose: PublicKey | None = None,
    admit: Callable[[PublicKey, Mapping[str, memoryview]], None] = lambda *_: None,
) -> Pack:
    """Return a pack after checking its form, its signature, and the digest and form of each file.

    Nothing is parsed before the signature of the list holds: a file that nobody signed costs no
    more than its directory and its list, however large it is.

    Args:
        data: The file.
        whose: The key that must have signed it; None takes the one that its seal names.
        admit: Called with the key and the files by name once the signature holds, before any of
            them is parsed; it raises what speaks against reading them.

    Raises:
        VerificationError: ``pack.zip`` and others of :func:`~ragwitness.attest.bundle.listing`,
            ``pack.missing``, ``pack.extra``, ``pack.member_size``, ``pack.note``,
            ``pack.signature``, ``pack.version``, ``pack.digest``, ``pack.json``, ``pack.form`` or
            ``seal.key``.
    """
    # 1. The archive: nothing of it is believed before its form is right.
    try:
        listed = listing(data)
        _named([file.name for file in listed])
        for file in listed:
            if file.size > _LIMITS[file.name]:
                raise VerificationError(
                    "bundle.member_size", f"{file.name} has {file.size:,} bytes: too many."
                )
        # 2. The signature of its list, by the key that its seal names.
        slices = {file.name: slice(file.start, file.start + file.size) for file in listed}
        start = slices[SEAL].start
        named = _KEY.search(data, start, min(start + _MB, slices[SEAL].stop))
        if named is None:
            raise VerificationError("pack.form", f"{SEAL} names no key.")
        key = PublicKey.parse(named[1].decode("utf-8", "replace"))
        if whose not in (None, key):
            raise VerificationError(
                "seal.key", f"The seal is by the key {key.text}, not the given one."
            )
        check_signed(data[slices[NOTE]], pack_text(data[slices[MANIFEST]]), [key], "pack")
        view = memoryview(data)
        admit(key, {name: view[piece] for name, piece in slices.items()})
        files = contents(data, listed)
    except VerificationError as error:
        name = error.check.replace("bundle.", "pack.")
        raise VerificationError(name, error.message.replace("bundle", "pack")) from error
    # 3. The list, its version first, and the digest of every file.
    row = _strict(files[MANIFEST], MANIFEST)
    _of_version(row, (PACK_VERSION,), "pack")
    manifest = _formed(PackManifest, row, MANIFEST)
    if manifest.files.keys() != files.keys() - {MANIFEST, NOTE}:
        name_differing = sorted(manifest.files.keys() ^ (files.keys() - {MANIFEST, NOTE}))[0]
        problem = "missing" if name_differing in manifest.files else "extra"
        raise VerificationError(
            f"pack.{problem}", f"{name_differing[:80]} is listed or held, not both."
        )
    for name, digest in manifest.files.items():
        if sha256(files[name]).hexdigest() != digest:
            raise VerificationError("pack.digest", f"{name} is not the file that is listed.")
    # 4. Each file by its own form, row by row.
    row = _strict(files[SEAL], SEAL)
    _of_version(row, (SEAL_VERSION, EARLIER), "seal")
    seal = _formed(Seal, row, SEAL)
    if seal.key != key.text:
        raise VerificationError("pack.form", f"{SEAL} names two keys.")
    return Pack(
        files,
        manifest,
        seal,
        tuple(_formed(PackText, row, TEXTS) for row in _rows(files, TEXTS)),
        tuple(_formed(PackAnswer, row, ANSWERS_FILE) for row in _rows(files, ANSWERS_FILE)),
        tuple(_rows(files, ROWS)),
        _strict(files[RESULT], RESULT),
        key,
    )


def _named(names: Sequence[str]) -> None:
    if extra := [name for name in names if name not in _LIMITS]:
        raise VerificationError("pack.extra", f"{extra[0][:80]!r} does not belong in a pack.")
    if missing := [name for name in _LIMITS if name not in names and name not in _OPTIONAL]:
        raise VerificationError("pack.missing", f"{missing[0]} is not in the pack.")


def _of_version(row: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    if row.get("version") not in known:
        raise VerificationError(
            "pack.version",
            f"This {what} has the form {str(row.get('version'))[:40]!r}, and this version of"
            f" Ragwitness knows {' and '.join(map(repr, known))}.",
            "Verify it with the version that made it, or a newer one.",
        )


F = TypeVar("F")


def _formed(type_: type[F], row: Mapping[str, Any], where: str) -> F:
    """Return a row as its dataclass; a field too many, too few or of another type is refused."""
    from pydantic import ValidationError

    try:
        if stranger := sorted(row.keys() - {field.name for field in fields(type_)}):  # type: ignore[arg-type]
            raise ValueError(stranger[0])
        adapter = _adapter(type_)  # type: ignore[arg-type]  # every type can be a key
        value: F = adapter.validate_json(json.dumps(row), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "its form"
        raise VerificationError(
            "pack.form", f"{where} is malformed at {location}: {first['msg']}."
        ) from error
    except ValueError as error:
        raise VerificationError("pack.form", f"{where} has a field {str(error)[:40]!r}.") from error
    return value


@cache
def _adapter(type_: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(type_)


def _rows(files: Mapping[str, bytes], name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, one after the other."""
    for number, line in enumerate(BytesIO(files[name]), 1):
        if not line.endswith(b"\n"):
            raise VerificationError("pack.form", f"{name} does not end with a whole line.")
        if number > _MOST_ROWS or len(line) > _LONGEST_ROW:
            raise VerificationError("pack.form", f"Row {number:,} of {name} is one too many.")
        yield _strict(line[:-1], name)


def _strict(data: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object; one that readers could read differently is refused."""

    def refuse(text: str) -> Never:
        raise ValueError(f"{text} is no number")

    try:
        value = parse_json(data.decode(), parse_constant=refuse)
        if not isinstance(value, dict) or _deep(value) > _DEEPEST:
            raise ValueError("it is no object, or nests too deep")
    except (ValueError, RecursionError) as error:
        raise VerificationError("pack.json", f"{where} holds no JSON: {error}.") from error
    return value


def _deep(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_deep, inner), default=0)
