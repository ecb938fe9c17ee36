"""The log, checked by others' programs: Go's x/mod and pymerkle."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pymerkle
import pytest

from ragwitness.crypto.entries import read_all_entries
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.notes import Checkpoint, Note, sign_checkpoint
from ragwitness.evidence.log_client import WitnessAddress, gather
from tests.support.windows import KEY, ask, policy, window
from tests.support.witness import witness_app

pytestmark = pytest.mark.slow

_GOPATH = Path("/usr/share/gocode")  # where Debian keeps golang-golang-x-mod-dev
_WITNESS = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([7]) * 32)


class _Static(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _handed_out(folder: Path) -> Iterator[str]:
    """Serve a folder by the standard library's static server."""
    handler = partial(_Static, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The public folder of a window of 603 records, published five times and witnessed."""
    held = window(tmp_path, monkeypatch, policy(accounts_most=700, queries=1))
    for i in range(600):
        held.admit("clinic", f"a{i}")
        if i in (7, 250, 400):
            held.publish()
        if i == 400:
            shutil.copy(held.public / "checkpoint", tmp_path / "older")
    held.record(ask(held))
    held.publish()
    address = WitnessAddress("http://w.example", _WITNESS.public)
    transports = {address.url: httpx2.ASGITransport(witness_app(_WITNESS, KEY.public))}
    assert not gather(held, [address], ["open.checkpoint", "checkpoint"], transports).failed
    return held.public


@pytest.fixture(scope="module")
def go_reader(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[int, str]]:
    """A program of Go's own note and tree packages that reads a log."""
    go = shutil.which("go")
    if go is None or not (_GOPATH / "src/golang.org/x/mod/sumdb").is_dir():
        pytest.skip("Go and its x/mod are not installed; see make services")
    folder = tmp_path_factory.mktemp("go")
    program = folder / "foreign_log"
    source = Path(__file__).with_name("foreign_log.go")
    environment = {
        **os.environ, "GO111MODULE": "off", "GOPATH": str(_GOPATH), "GOFLAGS": "-p=1",
        "GOCACHE": str(folder / "cache"), "CGO_ENABLED": "0",
    }  # fmt: skip
    subprocess.run([go, "build", "-o", program, source], check=True, env=environment)

    def read(*arguments: object) -> tuple[int, str]:
        words = [str(program), *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return read


def test_go_reads_checkpoint_tiles_and_entries_and_proves_both_ways(
    public: Path, go_reader: Callable[..., tuple[int, str]]
) -> None:
    older = public.parents[1] / "older"
    keys = (KEY.public.text, _WITNESS.public.text)
    with _handed_out(public) as url:
        code, text = go_reader(url, *keys, older)
        assert (code, text) == (0, "603 entries, from 402; signed by 2, alone 1\n")
        # And what it must not take: another key, a changed tile, a changed entry, another past.
        other = PrivateKey(KEY.name, KEY.kind, bytes(32)).public.text
        assert go_reader(url, other, keys[1], older)[0] == 3
        for name in ("tile/0/001", "tile/entries/001"):
            path = public / name
            good = path.read_bytes()
            path.write_bytes(good[:50] + bytes([good[50] ^ 1]) + good[51:])
            code, text = go_reader(url, *keys, older)
            assert (code, text.startswith("inclusion")) == (3, True), text
            path.write_bytes(good)
        older.write_bytes(sign_checkpoint(Checkpoint(KEY.name, 402, bytes(32)), [KEY]))
        code, text = go_reader(url, *keys, older)
        assert (code, text.startswith("consistency")) == (3, True), text


def test_pymerkle_gets_the_checkpoints_root_from_the_entries(public: Path) -> None:
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    with _handed_out(public) as url:
        for name in ("000", "001", "002.p/91"):
            data = httpx2.get(f"{url}/tile/entries/{name}", trust_env=False).content
            for entry in read_all_entries(data, "log.bundle"):
                tree.append_entry(entry)
        note = Note.parse(httpx2.get(f"{url}/checkpoint", trust_env=False).content)
    shown = Checkpoint.parse(note.text)
    assert (tree.get_size(), tree.get_state()) == (shown.size, shown.root)
    older = Checkpoint.parse(Note.parse((public.parents[1] / "older").read_bytes()).text)
    assert tree.get_state(older.size) == older.root
