"""A log read over HTTP and witnesses asked: honest servers, and each hostile one by name."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from ragwitness.attest.window import Window
from ragwitness.attest.window_log import watch
from ragwitness.core.errors import (
    InputError,
    TargetResponseError,
    TargetUnreachableError,
    VerificationError,
)
from ragwitness.crypto.hashing import b64
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import (
    Checkpoint,
    Note,
    Signers,
    open_checkpoint,
    sign_checkpoint,
    signature_of,
)
from ragwitness.evidence.log_client import HttpPrefix, WitnessAddress, ask_witness, gather
from tests.support.windows import KEY, ask, policy, window
from tests.support.witness import witness_app

SIGNERS = Signers((KEY.public,))
WITNESS = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([7]) * 32)
SECOND = PrivateKey("second.example", KeyKind.COSIGNATURE, bytes([8]) * 32)
URL = "http://log.example/w1"


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    """A window of some 300 records in a folder that a static server hands out."""
    found = window(tmp_path, monkeypatch, policy(accounts_most=400, queries=1))
    for i in range(300):
        found.admit("clinic", f"a{i}")
    found.record(ask(found))
    found.publish()
    return found


class _Whole(httpx2.AsyncByteStream):
    """Bytes as a connection brings them."""

    def __init__(self, data: bytes | str) -> None:
        self.data = data.encode() if isinstance(data, str) else data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.data


def _reply(status, data=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, stream=_Whole(data), headers=named)


def _static(public: Path, **lies):
    """A static server over a folder; ``lies`` are what it says instead, by part of the path."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/w1/")
        for part, lie in lies.items():
            if part in path:
                return lie(path)
        file = public / path
        if not file.is_file():
            return _reply(404)
        return _reply(200, file.read_bytes())

    return httpx2.MockTransport(answer)


def _prefix(transport, **limits):
    return HttpPrefix(URL, transport=transport, **limits)


def _looked(transport, **more):
    with _prefix(transport) as prefix:
        return watch(prefix, prefix("checkpoint", 1 << 18), SIGNERS, **more)


def _fails(check, call, *arguments, **named):
    with pytest.raises(VerificationError) as found:
        call(*arguments, **named)
    assert found.value.check == check, found.value.message


def test_a_log_is_watched_over_http_with_its_entries(held: Window):
    first = _looked(_static(held.public), entries=True)
    assert first.new.checkpoint.size == held.ledger.log.size
    held.record(ask(held, "b"))
    held.publish()
    again = _looked(_static(held.public), stored=first.note, entries=True)
    assert (again.old.size, again.new.checkpoint.size) == (first.new.checkpoint.size, 305)


def test_gzip_is_read_and_no_bomb_of_it(held: Window):
    def zipped(path):
        data = gzip.compress((held.public / path).read_bytes())
        return _reply(200, data, content_encoding="gzip")

    assert _looked(_static(held.public, tile=zipped), entries=True).new.checkpoint.size == 303
    bomb = gzip.compress(bytes(1 << 24))

    def burst(_path):
        return _reply(200, bomb, content_encoding="gzip")

    with _prefix(_static(held.public, tile=burst)) as prefix:
        assert len(prefix("tile/0/000", 8193)) == 8193
    _fails("log.tile", _looked, _static(held.public, tile=burst))

    def other(_path):
        return _reply(200, content_encoding="br")

    def torn(_path):
        return _reply(200, b"no gzip", content_encoding="gzip")

    for lie in (other, torn):
        with pytest.raises(TargetResponseError):
            _looked(_static(held.public, tile=lie))


def test_each_lie_of_a_static_server_is_named(held: Window):
    def says(data, status=200):
        return lambda path: _reply(status, data)

    whole = (held.public / "tile/0/000").read_bytes()
    part = (held.public / "tile/0/001.p/47").read_bytes()
    for lies, check in (
        ({"0/001.p/47": says(part[:-32])}, "log.tile"),  # a partial tile of another size
        ({"0/001.p/47": says(part + bytes(32))}, "log.tile"),
        ({"0/000": says(whole * 500)}, "log.tile"),  # oversized
        ({"0/000": says(b"")}, "log.tile"),
        ({"0/001": says(b"", 404)}, "log.tile"),
        ({"0/000": says(bytes(8192))}, "log.root"),
        ({"entries": says(b"", 404)}, "log.tile"),
        ({"entries/000": says(b"\x00\x01x" * 256)}, "log.entry"),
        ({"entries/000": says(b"\xff\xff")}, "log.bundle"),
    ):
        _fails(check, _looked, _static(held.public, **lies), entries=True)
    with pytest.raises(TargetResponseError, match="500"):
        _looked(_static(held.public, tile=says(b"", 500)))


def test_a_server_that_leads_elsewhere_is_refused(held: Window):
    asked = []

    def away(path):
        asked.append(path)
        return _reply(302, location="http://169.254.169.254/latest")

    for part in ("checkpoint", "tile"):
        with pytest.raises(TargetResponseError, match="leads elsewhere"):
            _looked(_static(held.public, **{part: away}))
    assert len(asked) == 2  # and nothing was asked where it led


class _Endless(httpx2.AsyncByteStream):
    """Bytes without end: at once, or one at a time."""

    def __init__(self, pause: float) -> None:
        self.pause, self.sent = pause, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(self.pause)
            self.sent += 1
            yield b"x" * (1 if self.pause else 1 << 16)


def test_a_reply_without_end_is_cut_off(held: Window):
    flood, drip = _Endless(0.0), _Endless(0.005)

    def answer(stream):
        return lambda path: httpx2.Response(200, stream=stream)

    _fails("log.tile", _looked, _static(held.public, tile=answer(flood)))
    assert flood.sent == 1  # what is above a tile's size is not waited for
    transport = _static(held.public, tile=answer(drip))
    with (
        _prefix(transport, request=0.1) as prefix,
        pytest.raises(TargetUnreachableError, match="in time"),
    ):
        prefix("tile/0/000", 8193)
    assert drip.sent < 8192
    with _prefix(_static(held.public), look=0.0) as prefix, pytest.raises(TargetUnreachableError):
        prefix("checkpoint", 9)


def test_nobody_at_the_address():
    def gone(request):
        raise httpx2.ConnectError("refused")

    with _prefix(httpx2.MockTransport(gone)) as prefix, pytest.raises(TargetUnreachableError):
        prefix("checkpoint", 9)
    for url in ("ftp://x/y", "http://", "log.example", "http://[::1", "http://x/?a=b"):
        with pytest.raises(InputError, match="no URL"):
            HttpPrefix(url)


def test_a_log_larger_than_any_window_is_not_read(held: Window):
    vast = sign_checkpoint(Checkpoint(KEY.name, 1 << 60, bytes(32)), [KEY])
    with _prefix(_static(held.public)) as prefix:
        _fails("log.size", watch, prefix, vast, SIGNERS)


def test_a_log_that_forks_or_rolls_back_is_named(held: Window, tmp_path: Path):
    first = _looked(_static(held.public))
    entries = held.ledger.entries()
    fork = MerkleLog()
    fork.extend([*entries[:-1], b"another", b"more"])
    note = sign_checkpoint(Checkpoint(KEY.name, fork.size, fork.root()), [KEY])
    from ragwitness.crypto.tiles import write_tiles

    write_tiles(tmp_path / "fork", fork, 0, lambda *_: [])
    (tmp_path / "fork/checkpoint").write_bytes(note)
    _fails("log.consistency", _looked, _static(tmp_path / "fork"), stored=first.note)
    same = sign_checkpoint(Checkpoint(KEY.name, 303, fork.root(303)), [KEY])
    (tmp_path / "fork/checkpoint").write_bytes(same)
    _fails("log.split_view", _looked, _static(tmp_path / "fork"), stored=first.note)
    early = sign_checkpoint(Checkpoint(KEY.name, 9, held.ledger.log.root(9)), [KEY])
    (tmp_path / "fork/checkpoint").write_bytes(early)
    _fails("log.rolled_back", _looked, _static(tmp_path / "fork"), stored=first.note)


# Witnesses.


def _asked(transport, held: Window, note: bytes, key=WITNESS):
    with HttpPrefix("http://w.example", transport=transport) as prefix:
        return ask_witness(prefix, key.public, note, held.ledger.log)


def test_witnesses_sign_opening_and_close_and_a_lost_one_is_named(held: Window):
    def gone(request):
        raise httpx2.ConnectError("refused")

    both = [WitnessAddress(f"http://{key.name}", key.public) for key in (WITNESS, SECOND)]
    transports = {
        both[0].url: httpx2.ASGITransport(witness_app(WITNESS, KEY.public)),
        both[1].url: httpx2.MockTransport(gone),
    }
    found = gather(held, both, ["open.checkpoint", "checkpoint"], transports)
    assert found.signed == [WITNESS.public]
    assert "ConnectError" in found.failed["second.example"]
    quorum = Signers((KEY.public,), (WITNESS.public, SECOND.public), 1)
    for name, size in (("open.checkpoint", 1), ("checkpoint", 303)):
        signed = open_checkpoint((held.public / name).read_bytes(), quorum)
        assert (signed.checkpoint.size, len(signed.times)) == (size, 1)
    # What stands there is not asked for again, and the second one is.
    transports[both[1].url] = httpx2.ASGITransport(witness_app(SECOND, KEY.public))
    transports[both[0].url] = httpx2.MockTransport(gone)
    found = gather(held, both, ["open.checkpoint", "checkpoint"], transports)
    assert (len(found.signed), found.failed) == (2, {})
    two = Signers((KEY.public,), (WITNESS.public, SECOND.public), 2)
    open_checkpoint((held.public / "open.checkpoint").read_bytes(), two)


def test_a_crash_between_two_files_leaves_each_with_one_line(held: Window):
    newest, named = held.public / "checkpoint", held.public / "close.checkpoint"
    named.write_bytes(newest.read_bytes())
    one = WitnessAddress("http://w.example", WITNESS.public)
    transports = {one.url: httpx2.ASGITransport(witness_app(WITNESS, KEY.public))}
    assert gather(held, [one], ["close.checkpoint"], transports).signed == [WITNESS.public]
    named.write_bytes(sign_checkpoint(Checkpoint.parse(Note.parse(named.read_bytes()).text), [KEY]))
    assert gather(held, [one], ["close.checkpoint"], transports).signed == [WITNESS.public]
    quorum = Signers((KEY.public,), (WITNESS.public,), 1)
    for file in (newest, named):
        assert len(Note.parse(file.read_bytes()).signatures) == 2
        open_checkpoint(file.read_bytes(), quorum)


def test_a_witness_that_has_seen_more_or_another_log_is_named(held: Window):
    app = httpx2.ASGITransport(witness_app(WITNESS, KEY.public))
    _asked(app, held, (held.public / "checkpoint").read_bytes())
    with pytest.raises(TargetResponseError, match="303 entries of this log, and the checkpoint"):
        _asked(app, held, (held.public / "open.checkpoint").read_bytes())
    fork = MerkleLog()
    fork.extend([*held.ledger.entries()[:-1], b"another"])
    note = sign_checkpoint(Checkpoint(KEY.name, fork.size, fork.root()), [KEY])
    with pytest.raises(TargetResponseError, match="another root"):
        _asked(app, held, note)


def test_each_false_answer_of_a_witness_is_refused(held: Window):
    note = (held.public / "checkpoint").read_bytes()
    shown = Checkpoint.parse(Note.parse(note).text)
    other = Checkpoint("example.org/other", shown.size, shown.root)
    older = Checkpoint(shown.origin, 9, held.ledger.log.root(9))
    good = signature_of(WITNESS, shown, 1_700_000_000)

    def line(signature, name=None):
        data = b64(signature.key_id + signature.data)
        return f"\N{EM DASH} {name or signature.name} {data}\n"

    def says(text, status=200, media="text/plain"):
        def answer(request):
            return _reply(status, text, content_type=media, location="http://x")

        return httpx2.MockTransport(answer)

    stranger = line(signature_of(SECOND, shown, 1))
    for text, check in (
        (line(signature_of(WITNESS, other, 1)), "signature.invalid"),  # another origin
        (line(signature_of(WITNESS, older, 1)), "signature.invalid"),  # an old cosignature
        (stranger, "witness.reply"),
        (line(good, "witness.example/2"), "witness.reply"),
        (line(good) * 2, "note.duplicate"),
        (f"{older.text}\n{line(signature_of(WITNESS, older, 1))}", "witness.reply"),
        ("", "note.format"),
        ("<html>", "note.format"),
        ("x" * (1 << 18), "note.size"),
    ):
        _fails(check, _asked, says(text), held, note)
    assert _asked(says(stranger * 2 + line(good)), held, note) == good
    size = "text/x.tlog.size"
    for answer, said in (
        (says("", 404), "404"),
        (says("no", 403), "no"),
        (says("9\n", 409), "409"),  # of another media type
        (says("09\n", 409, size), "409"),
        (says("999\n", 409, size), "999"),
        (says("0\n", 409, size), "another root"),
        (says("", 302), "elsewhere"),
    ):
        with pytest.raises(TargetResponseError, match=said):
            _asked(answer, held, note)
    sizes = iter((1, 2, 3))
    moving = httpx2.MockTransport(lambda _: _reply(409, f"{next(sizes)}\n", content_type=size))
    with pytest.raises(TargetResponseError, match="another size each time"):
        _asked(moving, held, note)


def test_an_address_names_url_and_key():
    text = f"http://127.0.0.1:8767#{WITNESS.public.text}"
    assert WitnessAddress.parse(text) == WitnessAddress("http://127.0.0.1:8767", WITNESS.public)
    assert WitnessAddress.parse(text.replace("#", "/#")).url == "http://127.0.0.1:8767"
    for wrong in ("http://w.example", f"w.example#{WITNESS.public.text}", f"{text}x", "#", ""):
        with pytest.raises(InputError):
            WitnessAddress.parse(wrong)
    with pytest.raises(InputError, match="cosignatures"):
        WitnessAddress.parse(f"http://w.example#{KEY.public.text}")
