"""A log read over HTTP (C2SP tlog-tiles), and its witnesses asked (C2SP tlog-witness).

The server may be hostile. Each reply has limits of size, time and number, and no redirect is
followed. No reply is believed before its signature or its hash was checked.
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from ragwitness.attest.window import Window
from ragwitness.core.errors import (
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
    VerificationError,
    import_extra,
)
from ragwitness.core.files import Closing, read_file, replace_file
from ragwitness.crypto.hashing import b64
from ragwitness.crypto.keys import (
    LARGEST_STAMP,
    STAMPS,
    KeyKind,
    PublicKey,
    Stamp,
    read_stamp,
    stamp_of,
)
from ragwitness.crypto.merkle import LogNodes
from ragwitness.crypto.notes import MAX_NOTE, Checkpoint, Note, Signature, verify_signature

# One connection to one address, with limits on size, time and where a reply may lead.

REQUEST_SECONDS = 30.0
"""Limit for one reply, however steadily its bytes come."""

LOOK_SECONDS = 900.0
"""Limit for all requests of a look together."""

_GZIP = 16 + zlib.MAX_WBITS
_SLACK = 1 << 10  # bytes by which gzip may lengthen what it cannot shorten
_KEY = re.compile(r"(https?://[^#\s]+?)/*#(\S+)")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A reply.

    Attributes:
        status: Of HTTP.
        media: Its content type.
        body: At most as many bytes as were asked for.
    """

    status: int
    media: str
    body: bytes


class HttpPrefix(Closing):
    """The files under a URL; a :data:`~ragwitness.crypto.tiles.Source` of tiles.

    Args:
        url: Of the log's prefix, or a witness's.
        request: Seconds of one reply.
        look: Seconds of all together.
        transport: In place of the network.

    Raises:
        InputError: It is no URL of HTTP.
    """

    def __init__(
        self,
        url: str,
        request: float = REQUEST_SECONDS,
        look: float = LOOK_SECONDS,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        parsed = _checked(url)
        self._url, self._request = url.rstrip("/"), request
        self._until = time.monotonic() + look
        self._runner = asyncio.Runner()
        self._http = httpx2.AsyncClient(
            # A log's files lie under its prefix: a reply that leads elsewhere is refused.
            follow_redirects=False,
            timeout=request,
            transport=transport,
            headers={"Accept-Encoding": "gzip, identity"},
            trust_env=parsed.host not in ("127.0.0.1", "localhost", "::1"),
        )

    def close(self) -> None:
        """Close all connections."""
        self._runner.run(self._http.aclose())
        self._runner.close()

    def __call__(self, path: str, most: int) -> bytes:
        """Return the first bytes of a file, at most ``most``.

        Raises:
            FileNotFoundError: There is none.
            TargetResponseError: The server leads elsewhere or fails.
            TargetUnreachableError: It does not answer in time.
        """
        reply = self.send("GET", path, b"", most)
        if reply.status in (404, 410):
            raise FileNotFoundError(path)
        if reply.status != 200:
            raise self._wrong(path, f"answers with {reply.status}")
        return reply.body

    def send(self, method: str, path: str, body: bytes, most: int) -> HttpAnswer:
        """Send one request; return what came, cut after ``most`` bytes.

        Raises:
            TargetResponseError: The server leads elsewhere, or its reply cannot be read.
            TargetUnreachableError: It does not answer in time.
        """
        return self._runner.run(self._send(method, path, body, most))

    async def _send(self, method: str, path: str, body: bytes, most: int) -> HttpAnswer:
        url = f"{self._url}/{path}"
        remaining = self._until - time.monotonic()
        try:
            if remaining <= 0:
                raise TimeoutError
            # The client's own limit is per packet; this one also ends a reply that trickles.
            async with (
                asyncio.timeout(min(self._request, remaining)),
                self._http.stream(method, url, content=body or None) as reply,
            ):
                if reply.is_redirect:
                    raise self._wrong(path, "leads elsewhere")
                coded = reply.headers.get("content-encoding", "identity")
                raw, limit = bytearray(), most + (_SLACK if coded == "gzip" else 0)
                async for chunk in reply.aiter_raw():
                    raw += chunk
                    if len(raw) >= limit:
                        break
                content = bytes(raw[:limit])
                if coded == "gzip":  # never more than was asked for, whatever it would become
                    content = zlib.decompressobj(_GZIP).decompress(content, most)
                elif coded != "identity":
                    raise self._wrong(path, f"answers in the coding {coded[:20]!r}")
                return HttpAnswer(
                    reply.status_code, reply.headers.get("content-type", ""), content[:most]
                )
        except (TimeoutError, httpx2.TimeoutException):
            raise TargetUnreachableError(
                f"{url} gave no complete reply in time.", "Nothing was decided; try again later."
            ) from None
        except httpx2.HTTPError as error:
            raise TargetUnreachableError(
                f"{url} does not answer ({type(error).__name__}).", "Check the address."
            ) from None
        except zlib.error:
            raise self._wrong(path, "does not answer with gzip") from None

    def _wrong(self, path: str, what: str) -> TargetResponseError:
        return TargetResponseError(
            f"{self._url}/{path} {what}.", "Give the prefix under which the files themselves lie."
        )


def _checked(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        parsed = httpx2.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query:
        raise InputError(f"{url[:200]!r} is no URL.", "Give one such as https://example.org/log.")
    return parsed


# Witnesses: asked for a cosignature, which is checked before it is kept.


@dataclass(frozen=True, slots=True)
class WitnessAddress:
    """Where a witness answers, and the key by which its signature counts.

    Attributes:
        url: Its submission prefix.
        key: Its own.
    """

    url: str
    key: PublicKey

    @classmethod
    def parse(cls, text: str) -> WitnessAddress:
        """Return the address of ``URL#KEY``.

        Raises:
            InputError: It is not of this form, or the key signs no checkpoints with a time.
        """
        match = _KEY.fullmatch(text)
        if match is None:
            raise InputError(
                f"{text[:120]!r} names no witness.",
                "Give URL#KEY with the key that the witness's server prints: a signature counts"
                " only by a known key.",
            )
        _checked(match[1])
        key = PublicKey.parse(match[2])
        if key.kind is KeyKind.NOTE:
            raise InputError(f"{key.name} has a key for notes, and a witness one for cosignatures.")
        return cls(match[1], key)


_ATTEMPTS = 3  # the size that the witness names may be old when the proof for it arrives
_SIZE = re.compile(rb"(0|[1-9][0-9]{0,18})\n")


def ask_witness(prefix: HttpPrefix, key: PublicKey, note: bytes, log: LogNodes) -> Signature:
    """Return a witness's signature line under a checkpoint.

    Args:
        prefix: Of the witness.
        key: Its own.
        note: The checkpoint, signed by the log.
        log: At least as large as the checkpoint; proves it consistent with the witness's last size.

    Raises:
        TargetResponseError: The witness refuses, or has seen more than the checkpoint has.
        TargetUnreachableError: It does not answer.
        VerificationError: ``witness.reply`` or ``signature.*``; it answers with something else
            than its signature under this checkpoint.
    """
    signed_note = Note.parse(note)
    checkpoint, old = Checkpoint.parse(signed_note.text), 0
    for _ in range(_ATTEMPTS):
        # 1. The proof from the size that the witness signed last; from 0, if that is not known.
        path = log.consistency(old, checkpoint.size)
        lines = [f"old {old}", *map(b64, path), "", ""]
        body = "\n".join(lines).encode() + note
        reply = prefix.send("POST", "add-checkpoint", body, MAX_NOTE)
        if reply.status == 200:
            return _cosignature(reply.body, signed_note, checkpoint, key)
        sized = reply.media.partition(";")[0].strip() == "text/x.tlog.size"
        size = _SIZE.fullmatch(reply.body) if sized else None
        if reply.status != 409 or size is None:
            message = reply.body[:200].decode("utf-8", "replace").strip()
            raise TargetResponseError(f"{key.name} refuses with {reply.status}: {message!r}.")
        # 2. It signed another size: once more, with the proof from there.
        if int(size[1]) > checkpoint.size:
            raise TargetResponseError(
                f"{key.name} has signed {int(size[1]):,} entries of this log, and the checkpoint"
                f" has {checkpoint.size:,}."
            )
        if int(size[1]) == old:
            raise TargetResponseError(
                f"{key.name} has signed another root for the log's {old:,} entries."
            )
        old = int(size[1])
    raise TargetResponseError(f"{key.name} names another size each time.")


def _cosignature(body: bytes, shown: Note, checkpoint: Checkpoint, key: PublicKey) -> Signature:
    """Return the key's line of a reply; lines of other keys are passed over."""
    signed = Note.parse(f"{shown.text}\n".encode() + body)
    line = signed.signatures_of([key]).get(key)
    if signed.text != shown.text or line is None:
        raise VerificationError("witness.reply", f"{key.name} answers without its signature.")
    # Also an old line, or one under another log's checkpoint, is no signature of this text.
    verify_signature(key, checkpoint, line)
    return line


@dataclass(frozen=True, slots=True)
class Gathered:
    """Signatures of witnesses.

    Attributes:
        signed: Keys of those whose signature stands under every checkpoint.
        failed: The others' names, and why.
    """

    signed: list[PublicKey] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def gather(
    window: Window,
    witnesses: Sequence[WitnessAddress],
    names: Sequence[str],
    transports: Mapping[str, httpx2.AsyncBaseTransport] | None = None,
) -> Gathered:
    """Let witnesses sign checkpoints of a window; what they sign is written beside the log's line.

    Args:
        window: Its log proves the checkpoints consistent with a witness's last size.
        witnesses: Witnesses to ask. One that fails does not keep the others from signing.
        names: Files of ``public``, smallest log first. A signed checkpoint is not sent
            again.
        transports: By URL, in place of the network.
    """
    gathered = Gathered()
    for witness in witnesses:
        name_of_witness = witness.key.name
        with HttpPrefix(witness.url, transport=(transports or {}).get(witness.url)) as prefix:
            for name in names:
                try:
                    _sign_file(window, name, prefix, witness.key)
                except RagwitnessError as error:
                    before = gathered.failed.get(name_of_witness, "")
                    gathered.failed[name_of_witness] = f"{before} {name}: {error.message}".strip()
        if name_of_witness not in gathered.failed:
            gathered.signed.append(witness.key)
    return gathered


def _sign_file(window: Window, name: str, prefix: HttpPrefix, key: PublicKey) -> None:
    """Write one witness's line under one published checkpoint, and under the newest if it is it."""
    path, newest = window.public / name, window.public / "checkpoint"
    data = read_file(path, MAX_NOTE)
    if Note.parse(data).signatures_of([key]):
        return
    line = ask_witness(prefix, key, data, window.ledger.log)
    # The file by whose name it is asked for comes last: what a crash left out is asked for again.
    with window.writing():
        for file in dict.fromkeys((newest, path)):
            published = Note.parse(read_file(file, MAX_NOTE))
            if published.text == Note.parse(data).text and not published.signatures_of([key]):
                replace_file(file, Note(published.text, (*published.signatures, line)).encode())


# The time of a commitment, by a timestamp authority (RFC 3161): it does not rest on the auditor's
# word.
#
# The authority is sent the hash of the commitment and nothing else. Its token says that the hash
# was there at a time; it is kept beside the commitment and can be checked by any tool of RFC 3161.


_SECONDS = 30.0


def stamp(path: Path, data: bytes, url: str, again: str) -> Stamp:
    """Have bytes stamped, and keep the token; one that is there already is kept.

    Args:
        path: Of the token.
        data: The stamped bytes; only their hash is sent.
        url: Of the authority.
        again: The next step after a failure.

    Raises:
        InputError: The URL cannot be used, or the token cannot be written.
        MissingExtraError: The library is not installed.
        TargetUnreachableError: The authority cannot be reached.
        TargetResponseError: It refuses, or its reply is no token of these bytes.
        VerificationError: ``timestamp``; the token that is there is of other bytes.
    """
    tsp = import_extra(*STAMPS)
    if path.exists():
        return read_stamp(read_file(path, LARGEST_STAMP, again), data, str(path))
    # 1. The hash of the commitment, and a number that no earlier reply can hold.
    request = tsp.TimestampRequestBuilder().data(data).nonce(nonce=True).build()
    headers = {"Content-Type": "application/timestamp-query"}
    try:
        with httpx2.Client(timeout=_SECONDS) as client:
            reply = client.post(url, content=request.as_bytes(), headers=headers)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise InputError("The timestamp authority's URL cannot be used.", again) from error
    except httpx2.HTTPError as error:
        raise TargetUnreachableError(
            f"The timestamp authority cannot be reached ({type(error).__name__}).", again
        ) from error
    # 2. A token of this very request: its hash and its number.
    if reply.status_code != 200 or len(reply.content) > LARGEST_STAMP:
        raise TargetResponseError(
            f"The timestamp authority answered with status {reply.status_code}.", again
        )
    try:
        token = tsp.decode_timestamp_response(reply.content)
        if token.status != 0 or token.tst_info.nonce != request.nonce:
            raise ValueError("it was refused, or is of another request")
        stamped = stamp_of(token, data, "timestamp")
    except (ValueError, VerificationError) as error:
        raise TargetResponseError(
            f"The timestamp authority's reply is no token of this commitment: {error}.", again
        ) from error
    # 3. As it came: other tools read the same bytes.
    replace_file(path, reply.content)
    return stamped
