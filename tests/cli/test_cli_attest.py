"""A window from the command line: opened, recorded, watched, closed, proved; and unusable input."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from ragwitness.attest.policy import WindowPolicy, read_policy
from ragwitness.attest.receipts import Request
from ragwitness.attest.window import Window
from ragwitness.crypto.keys import KeyKind, PrivateKey, read_key, write_key
from ragwitness.models.embedders import HashingEmbedder
from ragwitness.privacy.release import quantise
from tests.support.windows import stand_in
from tests.support.witness import witness_app
from tests.unit.rag.rag_fakes import served

Command = Callable[..., tuple[int, str]]

POLICY = """\
window = "w1"
relation = "add-remove"
queries = 2
accounts_most = 3
epsilon = 30.0
delta = 1e-8
k_max = 2
joint_delta = 1e-6

[tenants.clinic]
dimension = 16
capacity = 16
top = 2
scale = 64
"""
TEXTS = [f"patient {i} has a fever and a word{i} for {i} days" for i in range(12)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("policy.toml").write_text(POLICY)
    rows = ({"id": f"d{i}", "text": text} for i, text in enumerate(TEXTS))
    Path("docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prover that proves nothing, for what needs no proof."""
    stand_in(monkeypatch)


def _commit(command: Command, *more: object) -> tuple[int, str]:
    index = ("--index", "clinic=docs.jsonl", "--embedder", "hashing:16")
    key = ("--key", "log.key", "--name", "example.org/log")
    return command("attest", "commit", "--policy", "policy.toml", *index, *key, *more)


def _ask(text: str, account: str = "a") -> Window:
    held = Window.load(Path("W"), [read_key(Path("log.key"))])
    held.admit("clinic", account)
    vector = quantise(HashingEmbedder(16).embed([text])[0], held.policy.tenants["clinic"])
    digest, nonce = sha256(text.encode()).hexdigest(), os.urandom(8).hex()
    request = Request("clinic", account, digest, vector, nonce, held.checkpoint, text)
    Path("receipt.json").write_bytes(held.record(request).receipt.encode())
    held.publish()
    return held


def _begin(command: Command) -> str:
    """The auditor draws the beacon of the noise, the provider logs it."""
    drawn = ("attest", "beacon", "W/public", "--trust", "W/trust.json", "-o", "beacon.json")
    code, text = command(*drawn)
    assert code == 0, text
    code, text = command("attest", "begin", "W", "beacon.json", "--key", "log.key")
    assert code == 0, text
    return text


@pytest.mark.usefixtures("_fast")
def test_a_beacon_has_one_spelling_and_one_window(command: Command) -> None:
    _commit(command, "-o", "W")
    drawn = ("attest", "beacon", "W/public", "--trust", "W/trust.json")
    value = "c0ffee00" * 8
    for wrong in (value.upper(), "0x" + value, value[:-1], value + "00", "c0 ffee"):
        code, text = command(*drawn, "--value", wrong, "-o", "beacon.json")
        assert (code, "64 lower-case hex digits" in text) == (2, True), text
    public = ("--value", value, "--source", "a public beacon, round 7")
    code, text = command(*drawn, *public, "-o", "beacon.json", "--json")
    assert code == 0, text
    trust = json.loads(Path("W/trust.json").read_text())
    told = json.loads(text)
    assert (trust["noise_beacon"], trust["noise_open"]) == (value, told["opening"])
    code, text = command(*drawn, "-o", "other.json")
    assert (code, "another beacon" in text) == (2, True)
    spelt = Path("beacon.json").read_bytes()
    Path("beacon.json").write_bytes(spelt.replace(value.encode(), value.upper().encode()))
    code, text = command("attest", "begin", "W", "beacon.json", "--key", "log.key")
    assert (code, "record.field" in text) == (3, True), text
    Path("beacon.json").write_bytes(spelt.replace(b'"w1"', b'"w2"'))
    code, text = command("attest", "begin", "W", "beacon.json", "--key", "log.key")
    assert (code, "no beacon of the window w1" in text) == (2, True), text
    Path("beacon.json").write_bytes(spelt)
    for _ in range(2):  # once more is the same
        code, text = command("attest", "begin", "W", "beacon.json", "--key", "log.key")
        assert (code, value in text) == (0, True), text
    assert Window.load(Path("W")).ledger.log.size == 2
    Path("W/public/open.checkpoint").write_bytes(b"")
    code, text = command(*drawn, *public, "-o", "third.json")
    assert code == 3, text


@pytest.mark.slow
def test_a_window_end_to_end_with_real_proofs(command: Command) -> None:
    code, text = _commit(command, "-o", "W", "--json")
    assert code == 0, text
    told, _ = json.JSONDecoder().raw_decode(text)  # progress follows, on standard error
    policy = WindowPolicy.parse(Path("W/public/policy.json").read_bytes())
    assert told["policy"] == policy.digest
    trust = json.loads(Path("W/trust.json").read_text())
    assert trust["log"] == [told["log"]]
    _begin(command)
    _ask("fever for days")
    _ask("which patient", "b")
    code, text = command("attest", "close", "W", "--key", "log.key", "--json")
    assert code == 0, text
    assert json.loads(text)["queries"] == 2
    Path("trust.json").write_text(Path("W/trust.json").read_text())
    code, text = command(
        "attest", "challenge", "W/public", "--trust", "trust.json", "--all", "-o", "challenge.json"
    )
    assert code == 0, text
    assert "pins no policy yet" in text
    proving = ("attest", "prove", "W", "challenge.json", "--key", "log.key")
    code, text = command(*proving, "-o", "bundle.zip")
    assert code == 0, text
    assert "records  2" in text
    code, text = command(*proving, "-o", "bundle.zip")
    assert code == 2
    assert "bundle.zip exists" in text
    receipts = ("--receipt", "receipt.json", "--embedder", "hashing:16")
    code, text = command("attest", "verify", "bundle.zip", "--trust", "trust.json", *receipts)
    assert code == 4, text
    assert "ragwitness attest pin" in " ".join(text.split())
    assert command("attest", "pin", "W/public", "--trust", "trust.json", "--policy")[0] == 0
    code, text = command("verify", "bundle.zip", "--trust", "trust.json", *receipts)
    assert code == 0, text
    assert "PASS" in text
    only = (
        "in all windows over clinic (1) on the provider's log, example.org/log up to its window 1"
    )
    assert only in " ".join(text.split())
    assert "clinic/a: neither a receipt nor a key in your terms" in " ".join(text.split())
    # Somebody who pins no beacon has not seen that the provider did not choose the noise.
    trust = json.loads(Path("trust.json").read_text())
    less = {name: value for name, value in trust.items() if not name.startswith("noise_")}
    Path("less.json").write_text(json.dumps(less))
    code, text = command("verify", "bundle.zip", "--trust", "less.json", *receipts)
    assert (code, "noise_beacon" in text) == (4, True)
    Path("less.json").write_text(json.dumps(trust | {"noise_beacon": trust["beacon"]}))
    code, text = command("verify", "bundle.zip", "--trust", "less.json", *receipts)
    assert (code, "beacon.value" in text) == (3, True)
    # Another window by the same key: a bundle that was made before hides it from nobody who saw it.
    Path("policy.toml").write_text(POLICY.replace('"w1"', '"w2"'))
    assert _commit(command, "-o", "V")[0] == 0
    seen = ("--checkpoint", "log.key.openings/checkpoint")
    code, text = command("verify", "bundle.zip", "--trust", "trust.json", *receipts, *seen)
    assert (code, "1 are hidden" in " ".join(text.split())) == (4, True), text
    assert command(*proving, "-o", "again.zip")[0] == 0
    code, text = command("verify", "again.zip", "--trust", "trust.json", *receipts, *seen)
    assert (code, "in all windows over clinic (2)" in " ".join(text.split())) == (0, True), text
    # The log itself is watched like any other.
    provider = ("--log-key", told["provider"])
    code, text = command("attest", "pin", "W/public", "--trust", "own.json", *provider)
    assert code == 0, text
    watch = ("attest", "monitor", "log.key.openings", "--trust", "own.json", "--state", "windows")
    assert command(*watch, "--entries")[0] == 0


@pytest.mark.usefixtures("_fast")
def test_documents_lie_in_slots_drawn_by_lot_and_the_provider_knows_which(command: Command) -> None:
    code, text = _commit(command, "-o", "W")
    assert code == 0, text
    assert max(map(len, text.splitlines())) <= 110
    table = Path("W/secret/tenants/0/documents.jsonl").read_text().splitlines()
    rows = Window.load(Path("W")).rows("clinic")
    found = {row["name"]: row for row in map(json.loads, table)}
    assert len(found) == 12
    mechanism = read_policy(Path("policy.toml")).tenants["clinic"]
    for i, body in enumerate(TEXTS):
        row = found[f"d{i}"]
        assert row["sha256"] == sha256(body.encode()).hexdigest()
        vector = quantise(HashingEmbedder(16).embed([body])[0], mechanism)
        assert np.array_equal(rows[row["slot"]], vector)
    assert not rows[[s for s in range(16) if s not in {r["slot"] for r in found.values()}]].any()
    code, text = _commit(command, "-o", "V")
    other = Path("V/secret/tenants/0/documents.jsonl").read_text().splitlines()
    assert other != table  # the same lots once in 16!/4! windows


@pytest.mark.usefixtures("_fast")
def test_an_embedder_of_another_dimension_is_named(command: Command) -> None:
    more = ("--embedder", "hashing:24", "-o", "W")
    index = ("--index", "clinic=docs.jsonl", "--key", "log.key")
    code, text = command(
        "attest", "commit", "--policy", "policy.toml", *index, "--name", "x", *more
    )
    assert (code, Path("W").exists()) == (2, False)
    assert "hashing:24 makes vectors of 24 numbers" in text
    assert "dimension 16" in text


@pytest.mark.usefixtures("_fast")
def test_receipts_and_counts_are_checked_offline(command: Command) -> None:
    _commit(command, "-o", "W")
    _ask("fever for days")
    check = ("attest", "receipt", "check", "receipt.json", "--trust", "W/trust.json")
    code, text = command(*check, "--query", "fever for days", "--json")
    assert code == 0, text
    told = json.loads(text)
    assert (told["holds"], told["account"], told["sequence"]) == (True, "a", 0)
    assert len(told["ids"]) == 2
    code, text = command(*check, "--query", "fever for nights")
    assert (code, "receipt.query" in text) == (3, True)
    known = {name: told[name] for name in ("nonce", "checkpoint", "account")}
    for name in known:  # the noise hangs on each: one that the provider changed is noise it chose
        given = known | {name: known[name] + "x"}
        code, text = command(*check, *(f"--{key}={value}" for key, value in given.items()))
        assert (code, f"receipt.{name}" in text) == (3, True)
    assert command(*check, *(f"--{key}={value}" for key, value in known.items()))[0] == 0
    assert command(*check, "--sequence", 0)[0] == 0
    code, text = command(*check, "--sequence", 3)
    assert (code, "receipt.sequence" in text) == (3, True)
    Path("receipt.json").write_bytes(Path("receipt.json").read_bytes().replace(b"[", b"[1,", 1))
    code, text = command(*check)
    assert code == 3
    assert "error: receipt." in text
    assert command("attest", "close", "W", "--key", "log.key")[0] == 0
    watch = ("attest", "monitor", "W/public", "--trust", "W/trust.json", "--state", "seen")
    for name, admitted, count in (("clinic/a", True, 1), ("clinic/x", False, 0)):
        code, text = command(*watch, "--account", name, "--json")
        assert code == 0, text
        told = json.loads(text)
        assert (told["admitted"], told["queries"]) == (admitted, count)


@pytest.mark.usefixtures("_fast")
def test_a_monitor_follows_and_signs_and_names_what_it_finds(command: Command) -> None:
    _commit(command, "-o", "W")
    watch = ("attest", "monitor", "W/public", "--trust", "W/trust.json", "--state", "seen")
    witness = ("--cosign", "witness.key", "--name", "witness.example")
    assert command(*watch, *witness)[0] == 0
    _ask("fever for days")
    code, text = command(*watch, *witness, "--json")
    assert code == 0, text
    told = json.loads(text)
    assert (told["before"], told["now"]) == (1, 3)
    trust = json.loads(Path("W/trust.json").read_text())
    Path("own.json").write_text(json.dumps(trust | {"witnesses": [told["witness"]], "quorum": 1}))
    own = ("attest", "monitor", "W/public", "--trust", "own.json", "--state", "other")
    code, text = command(*own)
    assert (code, "checkpoint.quorum" in text) == (3, True)
    assert command("attest", "receipt", "check", "receipt.json", "--trust", "own.json")[0] == 0
    assert command("attest", "monitor", *own[2:6], "third", "--cosign", "witness.key")[0] == 0
    Path("W/public/checkpoint").write_bytes(Path("seen").read_bytes())
    code, text = command(*own)
    assert code == 0, text
    Path("theirs").write_bytes(Path("W/public/open.checkpoint").read_bytes())
    code, text = command(
        "attest", "monitor", "W/public", "--trust", "W/trust.json", "--state", "theirs"
    )
    assert code == 0, text
    Path("W/public/checkpoint").write_bytes(Path("W/public/open.checkpoint").read_bytes())
    code, text = command(*watch)
    assert code == 3
    assert "log.rolled_back" in text


@contextmanager
def _handed_out(folder: str) -> Iterator[str]:
    """Serve a folder by somebody else's static server."""
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("_fast")
def test_witnesses_sign_over_http_and_a_monitor_reads_a_static_server(command: Command) -> None:
    write_key(Path("log.key"), PrivateKey("example.org/log", KeyKind.NOTE, bytes(32)))
    provider = read_key(Path("log.key")).public.text
    key = PrivateKey("w.example", KeyKind.COSIGNATURE, bytes([7]) * 32)
    app = witness_app(key, read_key(Path("log.key")).public)
    with served(app) as url:
        option = ("--witness", f"{url.removesuffix('/v1')}#{key.public.text}")
        code, text = _commit(command, *option, "-o", "W", "--json")
        assert code == 0, text
        told, _ = json.JSONDecoder().raw_decode(text)
        assert (told["witnesses"], told["provider"]) == (["w.example"], provider)
    trust = json.loads(Path("W/trust.json").read_text())
    assert (trust["witnesses"], trust["quorum"]) == ([key.public.text], 1)
    _ask("fever for days")
    with _handed_out("W/public") as url:
        look = ("attest", "monitor", url, "--trust", "W/trust.json", "--state", "seen", "--entries")
        code, text = command(*look)
        assert (code, "checkpoint.quorum" in text) == (3, True)  # of what is served in between
        code, text = command("attest", "close", "W", "--key", "log.key", *option)
        assert (code, "w.example did not sign" in text) == (1, True)  # nobody is there
        # The same witness goes on with what it remembers, and signs the close.
        with served(app) as again:
            again = f"{again.removesuffix('/v1')}#{key.public.text}"
            closing = ("attest", "close", "W", "--key", "log.key", "--witness", again)
            code, text = command(*closing)
            assert code == 0, text
        assert command(*closing)[0] == 0  # what it has signed is not asked for again
        code, text = command(*look, "--json")
        told, _ = json.JSONDecoder().raw_decode(text)  # the server's lines follow
        assert (code, told["now"]) == (0, 4)
        assert command(*look)[0] == 0
        code, text = command("attest", "monitor", f"{url}/none", *look[3:])
        assert (code, "There is no checkpoint" in text) == (2, True)
    code, text = command(*look)
    assert (code, "does not answer" in text) == (1, True)


@pytest.mark.usefixtures("_fast")
def test_an_address_of_a_witness_is_checked_before_the_window_opens(command: Command) -> None:
    code, text = _commit(command, "--witness", "http://w.example", "-o", "W")
    assert (code, "URL#KEY" in text, Path("W").exists()) == (2, True, False)


@pytest.mark.usefixtures("_fast")
def test_what_cannot_be_opened_says_why_and_leaves_nothing(command: Command) -> None:
    for more, said in (
        (("--index", "other=docs.jsonl", "-o", "W"), "names no tenant"),
        (("--index", "clinic=docs.jsonl", "-o", "W"), "a second time"),
        (("--key", "none.key", "--name", "a b", "-o", "W"), "cannot name a key"),
        (("-o", "docs.jsonl"), "is what --index reads"),
        (("--policy", "none.toml", "-o", "W"), "cannot be read"),
        (("--embedder", "hashing:32", "-o", "W"), "dimension"),
        (("--embedder", "none", "-o", "W"), "no embedder"),
    ):
        code, text = _commit(command, *more)
        assert (code, said in text) == (2, True), text
        assert not Path("W").exists()
    Path("policy.toml").write_text(POLICY.replace("capacity = 16", "capacity = 8"))
    code, text = _commit(command, "-o", "W")
    assert (code, "do not fit into 8" in text) == (2, True), text
    code, text = command("attest", "close", "none", "--key", "none.key")
    assert code == 2, text


def test_the_example_policy_is_printed_and_can_be_used(command: Command) -> None:
    code, text = command("attest", "commit", "--example-policy")
    assert code == 0
    Path("p.toml").write_text(text)
    assert read_policy(Path("p.toml")).tenants["clinic"].top == 4


def test_help_loads_no_prover() -> None:
    code = "import sys; import ragwitness.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "zksnake", "py_ecc", "ragwitness.attest.window"} & set(loaded)
