"""The seal of a run: what is asked, of whom and how, signed before the first query.

::

    RUN/seal.json          what was committed to; seal.note, its signature; seal.tsr, its timestamp
    RUN/seal-secret.json   (0600) salt and place of the key; seal-texts.jsonl (0600), the documents
    RUN/answers.jsonl      every row with its link (:mod:`ragwitness.runner.hash_chain`)

The commitment is in :mod:`ragwitness.evidence.subject`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ragwitness.attest.window_log import CHECKPOINT, ENTRIES, log_entry
from ragwitness.core.errors import InputError
from ragwitness.core.files import (
    at_hand,
    lines_of,
    private_folder,
    read_file,
    read_object,
    read_rows,
    replace_file,
    write_rows,
)
from ragwitness.core.run_files import (
    ANSWERS,
    REPORT,
    RESULT,
    SEAL,
    SEAL_NOTE,
    SEAL_SECRET,
    SEAL_STAMP,
    SEAL_TEXTS,
)
from ragwitness.crypto.hashing import Opening, commit, tagged_hash
from ragwitness.crypto.keys import KeyKind, PrivateKey, read_key, write_key
from ragwitness.crypto.notes import sign_note
from ragwitness.evidence.code import code_digests, task_named, wheel_digest
from ragwitness.evidence.pack import (
    ANSWERS_FILE,
    LOG,
    ROWS,
    SIGNED_LOG,
    TEXTS,
    PackChain,
    page_of,
    signed_pack,
)
from ragwitness.evidence.subject import (
    TEXT,
    VERSION,
    RunAnswered,
    RunBegun,
    RunEnded,
    RunEntry,
    SealedRun,
    SealedText,
    SealSubject,
    changed,
    encode_entry,
    leaf_of,
    result_digest,
    root_of,
    seal_text,
    units_digest,
    without_words,
)
from ragwitness.runner.hash_chain import CHAIN_OBSERVERS, HashChain, Link, blinding_of, dense

_SERIES = "ragwitness/series/v1"
_AGAIN = "Restore it from a copy: without it nothing of this run can be opened."


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


def committed(texts: Iterable[SealedText], salt: bytes) -> list[tuple[bytes, bytes]]:
    """Return the commitment to each text, and its blinding."""
    openings = []
    for number, text in enumerate(texts):
        blinding = blinding_of(salt, b"text", number.to_bytes(8, "big"))
        opening = Opening(TEXT, text.text.encode("utf-8", "surrogatepass"), blinding)
        openings.append((commit(opening), blinding))
    return openings


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


def begin(run: Path, subject: SealSubject, wish: SealWish, system: str) -> str:
    """Seal a run before its first query; one that is sealed already must be the same one.

    Args:
        run: Its folder.
        subject: The commitment.
        wish: Key, log and timestamp.
        system: Name of the target, as answers and result have it.

    Returns:
        SHA-256 of the seal in hex, which may be published.

    Raises:
        InputError: The run has answers already, was sealed for something else, or a file cannot be
            used.
        TargetError: The timestamp authority cannot be reached; the same command tries again.
    """
    key = sealing_key(wish.key)
    paths = {"key": wish.key, "log": wish.runs_log, "home": subject.home}
    secret = {name: None if path is None else str(path.resolve()) for name, path in paths.items()}
    secret["salt"] = os.urandom(32).hex()
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    path = run / SEAL
    # 1. Sealed before: the same subject under the same salt is the same seal, and any other is
    # refused, whatever else of this package was changed since.
    if path.exists():
        data = read_file(path)
        salt = bytes.fromhex(read_object(run / SEAL_SECRET, _AGAIN, secret=True)["salt"])
        now = _seal(subject, key, salt, begun, system, logged=wish.runs_log is not None)
        if others := _differing(json.loads(data), json.loads(json.dumps(now))):
            raise InputError(
                f"{run} was sealed for something else. What differs: {'; '.join(others)}.",
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
        salt = bytes.fromhex(str(secret["salt"]))
        seal = _seal(subject, key, salt, begun, system, logged=wish.runs_log is not None)
        data = (json.dumps(seal, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
        replace_file(run / SEAL_SECRET, json.dumps(secret) + "\n", secret=True)
        write_rows(run / SEAL_TEXTS, map(asdict, subject.texts), secret=True)
        replace_file(run / SEAL_NOTE, sign_note(seal_text(data), [key]))
        replace_file(path, data)
    # 3. Logged and stamped, each once: an interrupted start goes on here.
    digest = hashlib.sha256(data).hexdigest()
    if wish.runs_log is not None:
        series = tagged_hash(_SERIES, key.seed, subject.series).hex()
        log_run = partial(_log_run, wish.runs_log, key)
        log_run(RunBegun(digest, series, subject.task))
        CHAIN_OBSERVERS[run.resolve()] = lambda head, rows: log_run(RunAnswered(digest, head, rows))
    if wish.timestamp is not None:
        from ragwitness.evidence.log_client import stamp

        again = "The run is sealed. The same command tries again."
        stamp(run / SEAL_STAMP, data, wish.timestamp, again)
    return digest


def _seal(
    subject: SealSubject, key: PrivateKey, salt: bytes, begun: str, system: str, *, logged: bool
) -> dict[str, Any]:
    commitments = committed(subject.texts, salt)
    leaves = (leaf_of(t, c) for t, (c, _) in zip(subject.texts, commitments, strict=True))
    return {
        "version": VERSION,
        "errand": subject.task,
        "begun": begun,
        "code": {
            "version": version("ragwitness"),
            "modules": code_digests(subject.task),
            "wheel": wheel_digest(),
        },
        "key": key.public.text,
        "logged": logged,
        "looks": subject.looks,
        "settings": subject.settings,
        "system": system,
        "texts": {"count": dict(Counter(t.part for t in subject.texts)), "root": root_of(leaves)},
        "units": {"count": len(subject.units), "digest": units_digest(subject.units)},
    }


_PARTS = {
    "errand": "the kind of run",
    "texts": "documents",
    "units": "documents",
    "key": "the signing key",
    "system": "the name of the target",
    "logged": "whether runs are logged",
    "looks": "the number of looks",
    # Parts of its settings, of which two follow from the documents.
    "likeness": "documents",
    "groups": "documents",
    "budget": "caps or prices",
}
"""Names of a seal's parts in messages; the other settings go by their names."""


def _differing(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what a seal that is there and the one that would be made differ in, in words."""
    fields = changed(earlier, now)
    settings = changed(earlier["settings"], now["settings"])
    names = [words for name, words in _PARTS.items() if name in {*fields, *settings}]
    if others := [name for name in settings if name not in _PARTS]:
        names.append(f"settings ({', '.join(others)})")
    code_then, code_now = earlier["code"], now["code"]
    if code_then["version"] != code_now["version"]:
        names.append(
            f"Ragwitness ({code_then['version']} sealed it, this is {code_now['version']})"
        )
    elif earlier["version"] != VERSION:
        names.append("the form of seals, which this code has changed")
    elif modules := changed(code_then["modules"], code_now["modules"]):
        names.append(f"the code that computes scores ({', '.join(modules)})")
    return list(dict.fromkeys(names))


# The secrets of a sealed run, read again when its pack is made.


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
    secret = read_object(run / SEAL_SECRET, _AGAIN, secret=True)
    try:
        texts = tuple(SealedText(**row) for row in read_rows(run / SEAL_TEXTS, _AGAIN))
        salt, log, home = bytes.fromhex(secret["salt"]), secret["log"], secret["home"]
        return SealedRun(
            folder=run,
            seal=read_file(run / SEAL),
            texts=texts,
            openings=tuple(committed(texts, salt)),
            links=tuple(_links(run)),
            key=Path(secret["key"]),
            log=None if log is None else Path(log),
            home=None if home is None else Path(home),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"What {run} keeps of its seal is malformed.", _AGAIN) from error


def _links(run: Path) -> list[Link]:
    chain = HashChain.of_run(run)
    links: list[Link] = []
    if chain is None or not at_hand(run / ANSWERS):
        return links
    for number, line in enumerate(lines_of(run / ANSWERS), 1):
        try:
            row = json.loads(line)
            link = row.pop("link")
        except ValueError:
            continue  # cut short by a crash: it was never linked
        links.append(chain.add(row))
        if links[-1].head.hex() != link:
            raise InputError(
                f"Line {number} of {run / ANSWERS} is not the row that was linked.",
                "The answers were changed after they arrived. Restore them from a copy.",
            )
    return links


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
        seal = hashlib.sha256(sealed.seal).hexdigest()
        entry = RunEnded(seal, sealed.head, len(sealed.links), result)
        _log_run(sealed.log, read_key(sealed.key), entry)


def _log_run(folder: Path, key: PrivateKey, entry: RunEntry) -> None:
    """Add an entry to the log of runs; it is on the disk before the run goes on.

    Raises:
        InputError: The log is another key's, or cannot be written.
    """
    log_entry(folder, [key], encode_entry(entry), "Nothing was sent. The same command tries again.")


# A sealed run that has a result, opened into a pack.


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
    ids = {text.id for text in run.texts} | {link.label[2] for link in run.links}
    if strangers := sorted(set(opened) - ids):
        raise InputError(
            f"The run has no document {strangers[0]!r}.", "Give ids as the report shows them."
        )
    visible = set(opened) if hide else ids
    texts, answers = [], []
    for text, (commitment, blinding) in zip(run.texts, run.openings, strict=True):
        row: dict[str, object] = {"part": text.part, "id": text.id, "member": text.member}
        row["commitment"] = commitment.hex()
        open_ = {"text": text.text, "blinding": blinding.hex()} if text.id in visible else {}
        texts.append(row | open_)
    for link in run.links:
        answer = {"asked": list(link.label), "commitment": link.commitment.hex()}
        if link.label[2] in visible:
            answer |= {"text": link.text.decode(), "blinding": link.blinding.hex()}
        answers.append(answer)
    # 2. The findings, without words of documents where they are hidden, and their page.
    again = "Issue the command that made the run again: it resumes, and writes the result anew."
    result = read_object(run.folder / RESULT, again)
    rows = task_named(run.task).rows_of(run)
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
    alternatives = [json.loads(link.text)["asked"]["query"]["top_logprobs"] for link in run.links]
    return signed_pack(
        files, PackChain(run.head, len(run.links), max(alternatives, default=0)), key
    )


def _lines(rows: Sequence[object]) -> bytes:
    return b"".join(dense(row) + b"\n" for row in rows)
