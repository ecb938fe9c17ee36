"""A witness: signs that a log only grew since it signed last (C2SP tlog-witness)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ragwitness.crypto.hashing import parse_hash
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey
from ragwitness.crypto.notes.note import MAX_NOTE, Checkpoint, Note, signature_of, verify_signature
from ragwitness.crypto.notes.witness import verify_extension
from ragwitness.errors import InputError, RagwitnessError, VerificationError
from ragwitness.kit.files import only_writer, read_file, replace_file

MOST_BODY = MAX_NOTE + (1 << 12)
"""Bytes of a request: a note, and at most 63 hashes before it."""

MOST_HASHES = 63

_PLAIN, _SIZE = "text/plain; charset=utf-8", "text/x.tlog.size"
_OLD = re.compile(r"old (0|[1-9][0-9]{0,18})", re.ASCII)
_KEY_FILE, _LOCK = "key", "lock"


@dataclass(frozen=True, slots=True)
class WitnessReply:
    """An answer to one submission.

    Attributes:
        status: Of HTTP.
        body: Signature lines, a size, or why there is no signature.
        media: Content type.
    """

    status: int
    body: str
    media: str = _PLAIN


class Witness:
    """Signs checkpoints of the logs that it knows, each only if it extends what it signed before.

    Args:
        folder: What it remembers: one file for each log, on the disk before a signature leaves.
        key: Its own, for cosignatures.
        logs: Keys of the logs. One of ``example.org/log`` stands for every log whose name begins
            with ``example.org/log/``, too: each window is a log of its own under that key.
        new: Whether the key was made just now, so that there is nothing to remember.

    Raises:
        InputError: The key is another's, signs no cosignatures, or its memory is gone.
    """

    def __init__(
        self, folder: Path, key: PrivateKey, logs: Sequence[PublicKey], *, new: bool = False
    ) -> None:
        if key.kind is KeyKind.NOTE or any(key.public.material == log.material for log in logs):
            raise InputError("A witness needs a key for cosignatures, and one of its own.")
        if not logs:
            raise InputError("A witness knows the keys of the logs that it watches.", "Give --log.")
        self._folder, self._key, self._logs = folder, key, tuple(logs)
        # A witness that forgot could sign a second history: a known key needs its memory.
        known = folder / _KEY_FILE
        if new:
            replace_file(known, f"{key.public.text}\n")
        elif not known.exists() or known.read_text(encoding="utf-8").strip() != key.public.text:
            raise InputError(
                f"{folder} is not what the witness {key.name} remembers, and without that it could"
                " sign two histories of one log.",
                "Give the folder that it had, or make a new key in another file with --name.",
            )

    def add_checkpoint(self, body: bytes, now: int) -> WitnessReply:
        """Answer a submission.

        Args:
            body: The size signed last, a proof of consistency, and a signed checkpoint.
            now: POSIX seconds.

        Raises:
            VerificationError: What is remembered of this log is damaged; nothing is signed.
        """
        # 1. The form.
        try:
            old, path, note = parse_submission(body)
            checkpoint = Checkpoint.parse(note.text)
        except VerificationError as error:
            return WitnessReply(400, f"{error.check}: {error.message}\n")
        # 2. The log's own signature, by a key that is known for this origin.
        keys = self._keys_of(checkpoint.origin)
        if not keys:
            return WitnessReply(404, "This log is not watched here.\n")
        try:
            lines = note.signatures_of(keys)
            for key, line in lines.items():
                verify_signature(key, checkpoint, line)
        except VerificationError as error:
            return WitnessReply(403, f"{error.check}: {error.message}\n")
        if not lines:
            return WitnessReply(403, "No known key of the log has signed this.\n")
        if old > checkpoint.size:
            return WitnessReply(400, "The old size is above the checkpoint's.\n")
        # 3. Compared with what was signed last, and remembered, in one step: two submissions at
        # once cannot both follow one state.
        with only_writer(self._folder / _LOCK):
            return self._extend(checkpoint, old, path, Note(note.text, tuple(lines.values())), now)

    def _extend(
        self, new: Checkpoint, old: int, path: Sequence[bytes], note: Note, now: int
    ) -> WitnessReply:
        file = self._folder / f"{sha256(new.origin.encode()).hexdigest()}.checkpoint"
        last = self._remembered(file, new.origin)
        size = last.size if last else 0
        if old != size:
            return WitnessReply(409, f"{size}\n", _SIZE)
        try:
            if last is not None:
                verify_extension(last, new, path)
            elif path:
                raise VerificationError("log.path_length", "From size 0 there is no proof.")
        except VerificationError as error:
            # Both are signed by the log: together they convict it. The first is kept.
            proof = file.with_suffix(".conflict")
            if not proof.exists():
                replace_file(proof, note.encode())
            if error.check == "log.split_view":
                return WitnessReply(409, f"{size}\n", _SIZE)
            return WitnessReply(422, f"{error.check}: {error.message}\n")
        # 4. On the disk first, then out.
        line = signature_of(self._key, new, now)
        replace_file(file, Note(note.text, (*note.signatures, line)).encode())
        return WitnessReply(200, Note("", (line,)).encode().decode().removeprefix("\n"))

    def _remembered(self, file: Path, origin: str) -> Checkpoint | None:
        """Return what was signed last of a log; its own signature must stand under it."""
        if not file.exists():
            return None
        note = Note.parse(read_file(file, MAX_NOTE))
        found = Checkpoint.parse(note.text)
        line = note.signatures_of([self._key.public]).get(self._key.public)
        if found.origin != origin or line is None:
            raise VerificationError("witness.state", f"{file} is not what this witness wrote.")
        verify_signature(self._key.public, found, line)
        return found

    def _keys_of(self, origin: str) -> list[PublicKey]:
        return [
            replace(key, name=origin)
            for key in self._logs
            if origin == key.name or (origin.startswith(f"{key.name}/") and _named(origin))
        ]


def parse_submission(body: bytes) -> tuple[int, tuple[bytes, ...], Note]:
    """Return old size, proof and checkpoint of a request's body.

    Raises:
        VerificationError: ``submission.format``, ``submission.hash`` or ``note.*``.
    """
    head, empty, rest = body.partition(b"\n\n")
    try:
        first, *hashes = head.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise VerificationError("submission.format", "The proof's lines are no ASCII.") from error
    old = _OLD.fullmatch(first)
    if not empty or old is None or len(hashes) > MOST_HASHES:
        raise VerificationError(
            "submission.format", "A submission is an old size, hashes, an empty line and a note."
        )
    return (
        int(old[1]),
        tuple(parse_hash(one, "submission.hash") for one in hashes),
        Note.parse(rest),
    )


def create_app(witness: Witness) -> Any:
    """Return the ASGI application: ``POST /add-checkpoint``."""

    async def add(request: Request) -> Response:
        # Counted as it arrives: a Content-Length is the client's word.
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > MOST_BODY:
                    return Response("The request is too long.\n", 413)
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            reply = await asyncio.to_thread(witness.add_checkpoint, bytes(body), int(time.time()))
        except RagwitnessError as error:  # what is remembered cannot be read, or not be written
            return Response(f"Nothing is signed: {error.message}\n", 500)
        return Response(reply.body, reply.status, {"Content-Type": reply.media})

    return Starlette(routes=[Route("/add-checkpoint", add, methods=["POST"])])


def _named(origin: str) -> bool:
    return "+" not in origin and origin.isprintable() and not any(c.isspace() for c in origin)
