"""The witness: what C2SP tlog-witness asks for, status by status, and what it never signs."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx2
import pytest

from ragwitness.crypto.hashing import b64
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.notes.note import Checkpoint, Note, sign_checkpoint
from ragwitness.crypto.notes.witness import Signers, open_checkpoint
from ragwitness.errors import InputError, VerificationError
from ragwitness.tlog.witness import MOST_BODY, Witness, create_app, parse_submission

PROVIDER = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32)
LOG = replace(PROVIDER, name="example.org/log/2026-W47")
OTHER = PrivateKey("example.org/log", KeyKind.NOTE, bytes([9]) * 32)
KEY = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([7]) * 32)
SIGNERS = Signers((LOG.public,), (KEY.public,), 1)
NOW = 1_700_000_000


def _log(count, say="entry"):
    log = MerkleLog()
    log.extend(f"{say} {i}".encode() for i in range(count))
    return log


LOGGED, FORKED = _log(700), _log(700, "another entry")


def _note(size, log=LOGGED, key=LOG, origin=None):
    return sign_checkpoint(Checkpoint(origin or key.name, size, log.root(size)), [key])


def _body(old, new, log=LOGGED, path=None, note=None):
    path = log.consistency(old, new) if path is None else path
    lines = [f"old {old}", *map(b64, path), "", ""]
    return "\n".join(lines).encode() + (note or _note(new, log))


@pytest.fixture
def witness(tmp_path):
    return Witness(tmp_path / "state", KEY, [PROVIDER.public], new=True)


def test_it_signs_what_extends_what_it_signed(witness):
    for turn, (old, new) in enumerate(((0, 1), (1, 1), (1, 300), (300, 700))):
        reply = witness.add_checkpoint(_body(old, new), NOW + turn)
        assert (reply.status, reply.media) == (200, "text/plain; charset=utf-8")
        signed = _note(new) + reply.body.encode()
        assert open_checkpoint(signed, SIGNERS).times == (("witness.example", NOW + turn),)


def test_each_status_of_the_specification(witness):
    assert witness.add_checkpoint(_body(0, 300), NOW).status == 200
    stranger = replace(OTHER, name="example.net/log")
    for body, status, said in (
        (_body(0, 5, note=_note(5, key=stranger)), 404, "not watched"),
        (_body(0, 5, note=_note(5, origin="example.org/logs")), 404, "not watched"),
        (_body(300, 400, note=_note(400, key=replace(OTHER, name=LOG.name))), 403, "known key"),
        (_body(300, 400, note=_changed(_note(400))), 403, "signature.invalid"),
        (_body(300, 200, path=()), 400, "above"),
        (_body(0, 400), 409, "300\n"),
        (_body(200, 400), 409, "300\n"),
        (_body(299, 200, path=()), 400, "above"),
        (_body(300, 300, path=(), note=_note(300, FORKED)), 409, "300\n"),
        (_body(300, 400, log=FORKED), 422, "log.consistency"),
        (_body(300, 400, path=LOGGED.consistency(300, 400)[:-1]), 422, "log.path_length"),
        (_body(300, 300, path=(bytes(32),)), 422, "log.path_length"),
    ):
        reply = witness.add_checkpoint(body, NOW)
        assert (reply.status, said in reply.body) == (status, True), (reply, said)
        assert (reply.media == "text/x.tlog.size") is (status == 409)
    # Nothing of all this was remembered.
    assert witness.add_checkpoint(_body(300, 400), NOW).status == 200


def _changed(note):
    head, tail = note.rsplit(b" ", 1)
    return head + b" " + tail[:20] + (b"A" if tail[20:21] != b"A" else b"B") + tail[21:]


def test_signatures_of_unknown_keys_are_ignored_and_not_kept(witness, tmp_path):
    junk = f"\N{EM DASH} junk.example {b64(b'abcd' + bytes(64))}\n".encode()
    reply = witness.add_checkpoint(_body(0, 7, note=_note(7) + junk * 2), NOW)
    assert reply.status == 200
    [file] = (tmp_path / "state").glob("*.checkpoint")
    assert [line.name for line in Note.parse(file.read_bytes()).signatures] == [LOG.name, KEY.name]


@pytest.mark.parametrize(
    ("body", "check"),
    [
        (b"", "submission.format"),
        (b"old 0\n", "submission.format"),
        (b"old 00\n\n" + _note(1), "submission.format"),
        (b"old -1\n\n" + _note(1), "submission.format"),
        (b"old  0\n\n" + _note(1), "submission.format"),
        (b"size 0\n\n" + _note(1), "submission.format"),
        (b"old 0\n" + b"AAAA\n" + b"\n" + _note(1), "submission.hash"),
        (b"old 0\n" + 64 * (b64(bytes(32)).encode() + b"\n") + b"\n" + _note(1), None),
        (b"old 0\xff\n\n" + _note(1), "submission.format"),
        (b"old 0\n\nno note", "note.format"),
    ],
)
def test_malformed_submissions_are_refused_by_name(body, check, witness):
    with pytest.raises(VerificationError) as found:
        parse_submission(body)
    assert found.value.check == (check or "submission.format")
    assert witness.add_checkpoint(body, NOW).status == 400


def test_a_fork_is_kept_as_evidence_and_never_signed(witness, tmp_path):
    witness.add_checkpoint(_body(0, 300), NOW)
    for body in (
        _body(300, 300, path=(), note=_note(300, FORKED)),
        _body(300, 400, log=FORKED),
    ):
        assert witness.add_checkpoint(body, NOW).status in (409, 422)
    [held] = (tmp_path / "state").glob("*.conflict")
    fork = open_checkpoint(held.read_bytes(), Signers((LOG.public,))).checkpoint
    assert (fork.size, fork.root) == (300, FORKED.root(300))


def test_it_remembers_over_restarts_and_does_not_start_without_its_memory(witness, tmp_path):
    folder = tmp_path / "state"
    witness.add_checkpoint(_body(0, 300), NOW)
    again = Witness(folder, KEY, [PROVIDER.public])
    assert again.add_checkpoint(_body(0, 400), NOW).body == "300\n"
    with pytest.raises(InputError, match="two histories"):
        Witness(tmp_path / "empty", KEY, [PROVIDER.public])
    another = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([8]) * 32)
    with pytest.raises(InputError, match="two histories"):
        Witness(folder, another, [PROVIDER.public])


def test_a_damaged_memory_signs_nothing(witness, tmp_path):
    witness.add_checkpoint(_body(0, 300), NOW)
    [file] = (tmp_path / "state").glob("*.checkpoint")
    good = file.read_bytes()
    for wrong in (b"", good[:-20], _changed(good), _note(5)):
        file.write_bytes(wrong)
        with pytest.raises(VerificationError):
            witness.add_checkpoint(_body(300, 400), NOW)

    async def ask():
        transport = httpx2.ASGITransport(create_app(witness))
        async with httpx2.AsyncClient(transport=transport, base_url="http://w") as http:
            return await http.post("/add-checkpoint", content=_body(300, 400))

    reply = asyncio.run(ask())
    assert (reply.status_code, "Nothing is signed" in reply.text) == (500, True)
    file.write_bytes(good)
    assert witness.add_checkpoint(_body(300, 400), NOW).status == 200


def test_of_two_submissions_at_once_one_follows_the_other(witness):
    # C2SP's race: A and B both extend 0; whoever comes second has to extend the first.
    with ThreadPoolExecutor(8) as pool:
        sizes = [*range(1, 33)] * 2
        replies = list(pool.map(lambda n: witness.add_checkpoint(_body(0, n), NOW), sizes))
    assert sorted({reply.status for reply in replies}) == [200, 409]
    assert sum(reply.status == 200 for reply in replies) == 1


def test_over_http_only_post_and_only_so_much(witness):
    async def ask():
        transport = httpx2.ASGITransport(create_app(witness))
        async with httpx2.AsyncClient(transport=transport, base_url="http://w") as http:
            return [
                await http.post("/add-checkpoint", content=_body(0, 9)),
                await http.post("/add-checkpoint", content=_body(0, 19)),
                await http.get("/add-checkpoint"),
                await http.post("/add-checkpoint", content=b"x" * (MOST_BODY + 1)),
                await http.post("/other", content=b""),
            ]

    good, old, *refused = asyncio.run(ask())
    assert good.status_code == 200
    assert good.text.startswith("\N{EM DASH} witness.example ")
    assert (old.status_code, old.text, old.headers["content-type"]) == (
        409,
        "9\n",
        "text/x.tlog.size",
    )
    assert [reply.status_code for reply in refused] == [405, 413, 404]


def test_keys_that_cannot_be_a_witness(tmp_path):
    with pytest.raises(InputError, match="cosignatures"):
        Witness(tmp_path, replace(KEY, kind=KeyKind.NOTE), [PROVIDER.public], new=True)
    with pytest.raises(InputError, match="one of its own"):
        Witness(tmp_path, replace(KEY, seed=PROVIDER.seed), [PROVIDER.public], new=True)
    with pytest.raises(InputError, match="--log"):
        Witness(tmp_path, KEY, [], new=True)
