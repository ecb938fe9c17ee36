"""An evidence pack: a sealed run in one file, with as much of it opened as its owner shows.

The archive has the one form of :mod:`ragwitness.attest.bundle`: stored, sorted, without dates, so
that nothing can hide in it and nothing can grow when it is read. ``pack.json`` lists the digest of
every other file and the last link of the answers, and ``pack.note`` is its signature. What a file
says is checked by :mod:`ragwitness.evidence.verifier`; here is its form alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from hashlib import sha256
from importlib import import_module
from typing import Any, Never, Protocol, TypeVar

from ragwitness.asking.chain import Label, dense
from ragwitness.attest.bundle import contents, listing, pack
from ragwitness.audits.timestamp import LARGEST_STAMP
from ragwitness.crypto.hashing import parse_hex
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.notes.note import MAX_NOTE, sign_note
from ragwitness.errors import InputError, VerificationError
from ragwitness.evidence.runs import CHECKPOINT, ENTRIES
from ragwitness.evidence.seal import VERSION as SEAL_VERSION
from ragwitness.evidence.seal import SealedRun, SealedText, leaf_of, without_words
from ragwitness.kit.files import read_file, read_object
from ragwitness.kit.run_files import REPORT, RESULT, SEAL, SEAL_NOTE, SEAL_STAMP

PACK_VERSION = "ragwitness/pack/v1"
MANIFEST, NOTE = "pack.json", "pack.note"
TEXTS, ANSWERS_FILE, ROWS = "texts.jsonl", "answers.jsonl", "rows.jsonl"
"""The texts and answers with what opens them, and what the errand found row by row."""
LOG, SIGNED_LOG = f"runs/{ENTRIES}", f"runs/{CHECKPOINT}"

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


class ErrandModule(Protocol):
    """What a kind of run brings to its packs: a module of this package."""

    STEPS: Any
    """Checks of what it found, each a :class:`~ragwitness.attest.verifier.steps.VerifierStep`."""
    WHOLE: str
    """What a pack without anything hidden comes to, in words."""
    BESIDES: frozenset[tuple[str, str]]
    """Stages and documents of questions that are about nothing that is found."""

    def rows_of(self, run: SealedRun) -> list[dict[str, Any]]:
        """Return what a finished run found row by row, besides its result."""


_ERRANDS = ("audit", "leak", "canary")


def errand_named(name: str) -> ErrandModule:
    """Return what a kind of run brings to its packs.

    Raises:
        VerificationError: ``pack.errand``; it is not known here.
    """
    if name not in _ERRANDS:
        raise VerificationError("pack.errand", f"{name!r} is no kind of run that is known here.")
    module: Any = import_module(f"ragwitness.evidence.{name}")
    return module  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class PackChain:
    """What a pack says of its answers as a whole.

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


def make_pack(
    run: SealedRun, key: PrivateKey, *, hide: bool = False, opened: Collection[str] = ()
) -> bytes:
    """Return the pack of a sealed run that has a result.

    Args:
        run: The run.
        key: That sealed it.
        hide: Keep texts and answers hidden.
        opened: Ids of documents that are opened all the same.

    Raises:
        InputError: The run has no result, the key is another one, an id is of no document, or a
            file is too large.
    """
    if json.loads(run.seal)["key"] != key.public.text:
        raise InputError(
            f"{run.folder} was sealed with another key than {key.name}.",
            "Give the file of that key: --key FILE",
        )
    # 1. Which texts and answers are shown.
    known = {text.id for text in run.texts} | {link.label[2] for link in run.links}
    if strangers := sorted(set(opened) - known):
        raise InputError(
            f"The run has no document {strangers[0]!r}.", "Give ids as the report shows them."
        )
    shown = set(opened) if hide else known
    texts, answers = [], []
    for text, (commitment, blinding) in zip(run.texts, run.openings, strict=True):
        row: dict[str, object] = {"part": text.part, "id": text.id, "member": text.member}
        row["commitment"] = commitment.hex()
        open_ = {"text": text.text, "blinding": blinding.hex()} if text.id in shown else {}
        texts.append(row | open_)
    for link in run.links:
        answer = {"asked": list(link.label), "commitment": link.commitment.hex()}
        if link.label[2] in shown:
            answer |= {"text": link.text.decode(), "blinding": link.blinding.hex()}
        answers.append(answer)
    # 2. What was found, without words of documents where they are hidden, and its page.
    again = "Issue the command that made the run again: it resumes, and writes the result anew."
    result = read_object(run.folder / RESULT, again)
    rows = errand_named(run.errand).rows_of(run)
    if hide:
        result, rows = without_words(result), [without_words(row) for row in rows]
    files = {
        SEAL: run.seal,
        SEAL_NOTE: read_file(run.folder / SEAL_NOTE),
        TEXTS: _lines(texts),
        ANSWERS_FILE: _lines(answers),
        ROWS: _lines(rows),
        RESULT: (json.dumps(result, separators=(",", ":"), allow_nan=False) + "\n").encode(),
        REPORT: page_of(result).encode(),
    }
    if (run.folder / SEAL_STAMP).exists():
        files[SEAL_STAMP] = read_file(run.folder / SEAL_STAMP)
    if run.log is not None:
        files[LOG] = read_file(run.log / ENTRIES)
        files[SIGNED_LOG] = read_file(run.log / CHECKPOINT)
    # 3. The list of all that, signed, in one archive.
    asked = [json.loads(link.text)["asked"]["query"]["top_logprobs"] for link in run.links]
    return signed_pack(files, PackChain(run.head, len(run.links), max(asked, default=0)), key)


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
    from ragwitness.results.registry import parse_result

    kind, value = parse_result(result)
    return render_page(kind.sheet(value))


def _lines(rows: Sequence[object]) -> bytes:
    return b"".join(dense(row) + b"\n" for row in rows)


# Read: everything has its form, or nothing is looked at.


@dataclass(frozen=True, slots=True)
class Seal:
    """A seal as it was signed; see :mod:`ragwitness.evidence.seal`."""

    version: str
    errand: str
    begun: str
    code: dict[str, str]
    key: str
    logged: bool
    looks: int
    settings: dict[str, Any]
    texts: dict[str, Any]
    units: dict[str, Any]


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
        seal: What was committed to.
        texts: In the order of the seal.
        answers: In the order in which they arrived.
        rows: What the errand found.
        result: As it is stored.
    """

    files: Mapping[str, bytes]
    manifest: PackManifest
    seal: Seal
    texts: tuple[PackText, ...]
    answers: tuple[PackAnswer, ...]
    rows: tuple[dict[str, Any], ...]
    result: dict[str, Any]

    @cached_property
    def hidden(self) -> int:
        """Number of texts that are not shown."""
        return sum(one.text is None for one in self.texts)

    @cached_property
    def silent(self) -> int:
        """Number of answers that are not shown."""
        return sum(one.text is None for one in self.answers)


def read_pack(data: bytes) -> Pack:
    """Return a pack after checking its form, the digests of its files, and the form of each.

    Raises:
        VerificationError: ``pack.zip`` and others of :func:`~ragwitness.attest.bundle.listing`,
            ``pack.version``, ``pack.missing``, ``pack.extra``, ``pack.member_size``,
            ``pack.digest``, ``pack.json`` or ``pack.form``.
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
        files = contents(data, listed)
    except VerificationError as error:
        name = error.check.replace("bundle.", "pack.")
        raise VerificationError(name, error.message.replace("bundle", "pack")) from error
    # 2. The list, its version first, and the digest of every file.
    row = _strict(files[MANIFEST], MANIFEST)
    _of_version(row, PACK_VERSION, "pack")
    manifest = _formed(PackManifest, row, MANIFEST)
    if manifest.files.keys() != files.keys() - {MANIFEST, NOTE}:
        other = sorted(manifest.files.keys() ^ (files.keys() - {MANIFEST, NOTE}))[0]
        what = "missing" if other in manifest.files else "extra"
        raise VerificationError(f"pack.{what}", f"{other[:80]} is listed or held, not both.")
    for name, digest in manifest.files.items():
        if sha256(files[name]).hexdigest() != digest:
            raise VerificationError("pack.digest", f"{name} is not the file that is listed.")
    # 3. Each file by its own form.
    row = _strict(files[SEAL], SEAL)
    _of_version(row, SEAL_VERSION, "seal")
    return Pack(
        files,
        manifest,
        _formed(Seal, row, SEAL),
        tuple(_formed(PackText, row, TEXTS) for row in _rows(files, TEXTS)),
        tuple(_formed(PackAnswer, row, ANSWERS_FILE) for row in _rows(files, ANSWERS_FILE)),
        tuple(_rows(files, ROWS)),
        _strict(files[RESULT], RESULT),
    )


def _named(names: Sequence[str]) -> None:
    if extra := [name for name in names if name not in _LIMITS]:
        raise VerificationError("pack.extra", f"{extra[0][:80]!r} does not belong in a pack.")
    if missing := [name for name in _LIMITS if name not in names and name not in _OPTIONAL]:
        raise VerificationError("pack.missing", f"{missing[0]} is not in the pack.")


def _of_version(row: Mapping[str, Any], known: str, what: str) -> None:
    if row.get("version") != known:
        raise VerificationError(
            "pack.version",
            f"This {what} has the form {str(row.get('version'))[:40]!r}, and this version of"
            f" Ragwitness knows {known!r}.",
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
        found: F = adapter.validate_json(json.dumps(row), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "its form"
        raise VerificationError(
            "pack.form", f"{where} is malformed at {place}: {first['msg']}."
        ) from error
    except ValueError as error:
        raise VerificationError("pack.form", f"{where} has a field {str(error)[:40]!r}.") from error
    return found


@cache
def _adapter(type_: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(type_)


def _rows(files: Mapping[str, bytes], name: str) -> list[dict[str, Any]]:
    lines = files[name].split(b"\n")
    if lines.pop() != b"":
        raise VerificationError("pack.form", f"{name} does not end with a whole line.")
    return [_strict(line, name) for line in lines]


def _strict(data: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object; one that readers could read differently is refused."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(found)
        if len(value) != len(found):
            raise ValueError("a name stands twice in it")
        return value

    def refuse(text: str) -> Never:
        raise ValueError(f"{text} is no number")

    try:
        value = json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=refuse)
        if not isinstance(value, dict) or _deep(value) > _DEEPEST:
            raise ValueError("it is no object, or nests too deep")
    except (ValueError, RecursionError) as error:
        raise VerificationError("pack.json", f"{where} holds no JSON: {error}.") from error
    return value


def _deep(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_deep, inner), default=0)
