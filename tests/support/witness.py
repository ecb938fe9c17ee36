"""A witness of C2SP tlog-witness that remembers what it signed until the test ends."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import parse_hash
from ragwitness.crypto.keys import PrivateKey, PublicKey
from ragwitness.crypto.notes import (
    Checkpoint,
    Note,
    signature_of,
    verify_extension,
    verify_signature,
)


def witness_app(key: PrivateKey, log: PublicKey) -> Any:
    """Return the ASGI application: ``POST /add-checkpoint``.

    Args:
        key: The witness's own.
        log: The provider's key, which stands for the logs of all of its windows.
    """
    signed: dict[str, Checkpoint] = {}

    async def add(request: Request) -> Response:
        head, _, rest = (await request.body()).partition(b"\n\n")
        first, *hashes = head.decode().split("\n")
        note = Note.parse(rest)
        new, old = Checkpoint.parse(note.text), int(first.removeprefix("old "))
        watched = replace(log, name=new.origin)
        verify_signature(watched, new, note.signatures_of([watched])[watched])
        last = signed.get(new.origin)
        size = last.size if last else 0
        conflict = Response(f"{size}\n", 409, media_type="text/x.tlog.size")
        if old != size:
            return conflict
        if last is not None:
            try:
                verify_extension(last, new, [parse_hash(text, "hash") for text in hashes])
            except VerificationError:
                return conflict
        signed[new.origin] = new
        line = signature_of(key, new, int(time.time()))
        return Response(Note("", (line,)).encode().removeprefix(b"\n"))

    return Starlette(routes=[Route("/add-checkpoint", add, methods=["POST"])])
