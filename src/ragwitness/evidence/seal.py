"""The seal of a run: what is asked, of whom and how, signed before the first query.

::

    RUN/seal.json          what was committed to; seal.note, its signature; seal.tsr, its timestamp
    RUN/seal-secret.json   (0600) salt and place of the key; seal-texts.jsonl (0600), the documents
    RUN/answers.jsonl      every row with its link (:mod:`ragwitness.asking.chain`)

The texts are leaves of a Merkle tree. A leaf holds a text's part, id and truth, and a commitment to
the text itself under a blinding of its own: each can be opened alone, and every other stay hidden.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from ragwitness.asking.chain import AnswerChain, Link, blinding_of, dense
from ragwitness.crypto.commitments import Opening, commit
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.keys import KeyKind, PrivateKey, read_key, write_key
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.notes.note import sign_note
from ragwitness.errors import InputError
from ragwitness.evidence.runs import RunsLog
from ragwitness.kit.files import (
    at_hand,
    lines_of,
    private_folder,
    read_file,
    read_object,
    read_rows,
    replace_file,
    write_rows,
)
from ragwitness.kit.run_files import (
    ANSWERS,
    RESULT,
    SEAL,
    SEAL_NOTE,
    SEAL_SECRET,
    SEAL_STAMP,
    SEAL_TEXTS,
)

VERSION = "ragwitness/seal/v1"
TEXT = "ragwitness/document/v1"
"""What the commitment to a text is for."""

_SERIES = "ragwitness/series/v1"
_AGAIN = "Restore it from a copy: without it nothing of this run can be opened."


@dataclass(frozen=True, slots=True)
class SealedText:
    """A text that is committed to.

    Attributes:
        part: Which part it has in the run, such as ``"known_out"``.
        id: Of the document; it is not hidden.
        text: Hidden until it is opened.
        member: The truth, where it is known; not hidden.
    """

    part: str
    id: str
    text: str
    member: bool | None = None


@dataclass(frozen=True, slots=True)
class SealSubject:
    """What a run commits to before its first query.

    Attributes:
        errand: Kind of its result: ``"audit"``, ``"leak"`` or ``"canary"``.
        settings: Everything that its result follows from, besides texts and answers, as JSON.
        texts: Everything that may stay hidden.
        units: What is asked about, in its order: stage and document.
        looks: Number of looks that may decide; 0 where it was left open.
        series: What runs of one series share: the system, and what it is asked about.
        home: Folder of the plan that the run belongs to; None where it belongs to none.
    """

    errand: str
    settings: Mapping[str, Any]
    texts: tuple[SealedText, ...]
    units: Sequence[tuple[str, str]]
    looks: int
    series: bytes
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class SealWish:
    """How a user wants a run sealed.

    Attributes:
        key: File of the signing key; it is made where there is none.
        runs_log: Folder of the log of runs; None keeps none.
        timestamp: URL of a timestamp authority; None asks none.
    """

    key: Path
    runs_log: Path | None = None
    timestamp: str | None = None


def leaf_of(text: SealedText, commitment: bytes) -> bytes:
    """Return the leaf of a text in the tree of the seal."""
    return dense([text.part, text.id, text.member, commitment.hex()])


def committed(texts: Iterable[SealedText], salt: bytes) -> list[tuple[bytes, bytes]]:
    """Return the commitment to each text, and its blinding."""
    found = []
    for place, text in enumerate(texts):
        blinding = blinding_of(salt, b"text", place.to_bytes(8, "big"))
        opening = Opening(TEXT, text.text.encode("utf-8", "surrogatepass"), blinding)
        found.append((commit(opening), blinding))
    return found


def root_of(leaves: Iterable[bytes]) -> str:
    """Return the root of the tree over all leaves, in hex."""
    tree = MerkleLog()
    tree.extend(leaves)
    return tree.root().hex()


def units_digest(units: Iterable[Sequence[str]]) -> str:
    """Return SHA-256 of what is asked about and in which order, in hex."""
    return hashlib.sha256(dense([list(unit) for unit in units])).hexdigest()


@cache
def code_digest() -> str:
    """Return SHA-256 of every file of this package, in hex: a version that was changed shows.

    The pages of the documentation, which a wheel alone holds, compute nothing and do not count.
    """
    root = Path(str(files("ragwitness")))
    found = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = path.relative_to(root).as_posix()
        if "__pycache__" not in path.parts and not name.startswith("pages/"):
            found.update(tagged_hash("ragwitness/code/v1", name.encode(), path.read_bytes()))
    return found.hexdigest()


def seal_text(seal: bytes) -> str:
    """Return what is signed of a seal."""
    return f"ragwitness seal\n{hashlib.sha256(seal).hexdigest()}\n"


def sealing_key(path: Path) -> PrivateKey:
    """Return the key of a file; where there is none, one is made, named by the file.

    Raises:
        InputError: The file holds no key that signs notes, or cannot be written.
    """
    if not path.exists():
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in path.stem)
        write_key(path, PrivateKey.generate(name))
    key = read_key(path)
    if key.kind is not KeyKind.NOTE:
        raise InputError(
            f"{path} signs checkpoints alone.", "Give another file; a key is made in it."
        )
    return key


def begin(run: Path, subject: SealSubject, wish: SealWish) -> str:
    """Seal a run before its first query; one that is sealed already must be the same one.

    Args:
        run: Its folder.
        subject: What is committed to.
        wish: Key, log and timestamp.

    Returns:
        SHA-256 of the seal in hex, which may be published.

    Raises:
        InputError: The run has answers already, was sealed for something else, or a file cannot be
            used.
        TargetError: The timestamp authority cannot be reached; the same command tries again.
    """
    key = sealing_key(wish.key)
    places = {"key": wish.key, "log": wish.runs_log, "home": subject.home}
    kept = {name: None if path is None else str(path.resolve()) for name, path in places.items()}
    kept["salt"] = os.urandom(32).hex()
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    path = run / SEAL
    # 1. Sealed before: the same subject under the same salt is the same seal, and any other is
    # refused.
    if path.exists():
        data = read_file(path)
        salt = bytes.fromhex(read_object(run / SEAL_SECRET, _AGAIN, secret=True)["salt"])
        earlier = str(json.loads(data)["begun"])
        if data != _seal(subject, key, salt, earlier, logged=wish.runs_log is not None):
            raise InputError(
                f"{run} was sealed for something else: documents, settings, caps, key, log or the"
                " version of Ragwitness differ.",
                "Issue the command that sealed it, or choose another folder with --run.",
            )
    # 2. Not sealed: then nothing may have been answered. The seal itself is written last.
    else:
        if at_hand(run / ANSWERS):
            raise InputError(
                f"{run} holds answers, and a seal counts only before the first query.",
                "Choose another folder with --run.",
            )
        private_folder(run)
        salt = bytes.fromhex(str(kept["salt"]))
        data = _seal(subject, key, salt, begun, logged=wish.runs_log is not None)
        replace_file(run / SEAL_SECRET, json.dumps(kept) + "\n", secret=True)
        write_rows(run / SEAL_TEXTS, map(asdict, subject.texts), secret=True)
        replace_file(run / SEAL_NOTE, sign_note(seal_text(data), [key]))
        replace_file(path, data)
    # 3. Logged and stamped, each once: who was cut off between goes on here.
    digest = hashlib.sha256(data).hexdigest()
    if wish.runs_log is not None:
        series = tagged_hash(_SERIES, key.seed, subject.series).hex()
        RunsLog(wish.runs_log, key).begin(digest, series, subject.errand)
    if wish.timestamp is not None:
        from ragwitness.audits.timestamp import stamp

        again = "The run is sealed. The same command tries again."
        stamp(run / SEAL_STAMP, data, wish.timestamp, again)
    return digest


def _seal(subject: SealSubject, key: PrivateKey, salt: bytes, begun: str, *, logged: bool) -> bytes:
    commitments = committed(subject.texts, salt)
    leaves = (leaf_of(t, c) for t, (c, _) in zip(subject.texts, commitments, strict=True))
    seal = {
        "version": VERSION,
        "errand": subject.errand,
        "begun": begun,
        "code": {"version": version("ragwitness"), "digest": code_digest()},
        "key": key.public.text,
        "logged": logged,
        "looks": subject.looks,
        "settings": subject.settings,
        "texts": {"count": dict(Counter(t.part for t in subject.texts)), "root": root_of(leaves)},
        "units": {"count": len(subject.units), "digest": units_digest(subject.units)},
    }
    return (json.dumps(seal, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


# What a sealed run keeps back, read again when its pack is made.


@dataclass(frozen=True, slots=True)
class SealedRun:
    """A sealed run with everything that opens it.

    Attributes:
        folder: Of the run.
        seal: Its bytes.
        texts: Everything that was committed to.
        openings: Commitment and blinding of each text.
        links: The chain of answers.
        key: File of the signing key.
        log: Folder of the log of runs; None without one.
        home: Folder of the plan that the run belongs to; None where it belongs to none.
    """

    folder: Path
    seal: bytes
    texts: tuple[SealedText, ...]
    openings: tuple[tuple[bytes, bytes], ...]
    links: tuple[Link, ...]
    key: Path
    log: Path | None
    home: Path | None = None

    @property
    def errand(self) -> str:
        """Kind of its result."""
        return str(json.loads(self.seal)["errand"])

    @property
    def head(self) -> str:
        """Last link of its chain, in hex; of the seal alone where nothing was answered."""
        empty = AnswerChain(self.seal, b"").head
        return (self.links[-1].head if self.links else empty).hex()


def read_sealed(run: Path) -> SealedRun:
    """Read a sealed run.

    Raises:
        InputError: It is not sealed, a file is missing, or its answers were changed.
    """
    if not (run / SEAL).exists():
        raise InputError(
            f"{run} is not sealed, and a run can only be sealed before its first query.",
            "Run it anew with --seal KEY, e.g. ragwitness audit … --seal auditor.key",
        )
    kept = read_object(run / SEAL_SECRET, _AGAIN, secret=True)
    try:
        texts = tuple(SealedText(**row) for row in read_rows(run / SEAL_TEXTS, _AGAIN))
        salt, log, home = bytes.fromhex(kept["salt"]), kept["log"], kept["home"]
        return SealedRun(
            folder=run,
            seal=read_file(run / SEAL),
            texts=texts,
            openings=tuple(committed(texts, salt)),
            links=tuple(_links(run)),
            key=Path(kept["key"]),
            log=None if log is None else Path(log),
            home=None if home is None else Path(home),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"What {run} keeps of its seal is malformed.", _AGAIN) from error


def _links(run: Path) -> list[Link]:
    chain = AnswerChain.of_run(run)
    found: list[Link] = []
    if chain is None or not at_hand(run / ANSWERS):
        return found
    for number, line in enumerate(lines_of(run / ANSWERS), 1):
        try:
            row = json.loads(line)
            link = row.pop("link")
        except ValueError:
            continue  # cut short by a crash: it was never linked
        found.append(chain.add(row))
        if found[-1].head.hex() != link:
            raise InputError(
                f"Line {number} of {run / ANSWERS} is not the row that was linked.",
                "The answers were changed after they arrived. Restore them from a copy.",
            )
    return found


def end(run: Path) -> None:
    """Log that a sealed run has a result; nothing happens to one that is not sealed or logged.

    Raises:
        InputError: The key or the log cannot be used, or the answers were changed.
    """
    if not (run / SEAL).exists() or not (run / RESULT).exists():
        return
    sealed = read_sealed(run)
    if sealed.log is not None:
        result = result_digest(json.loads(read_file(run / RESULT)))
        log = RunsLog(sealed.log, read_key(sealed.key))
        log.end(hashlib.sha256(sealed.seal).hexdigest(), sealed.head, len(sealed.links), result)


def result_digest(result: Mapping[str, Any]) -> str:
    """Return SHA-256 of a result as packs show it with hidden texts, in hex."""
    return hashlib.sha256(dense(without_words(result))).hexdigest()


def without_words(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored result, or a row of scores, without the words of documents in it."""
    found = dict(result)
    if "evidence" in found:
        found["evidence"] = []
    if isinstance(rows := found.get("documents"), list):
        found["documents"] = [without_words(row) for row in rows]
    return found
