"""Crashes, full disks and damaged folders: what was answered stays, and nothing else is said."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragwitness.attest.receipts import check_receipt
from ragwitness.attest.window import Window
from ragwitness.core.errors import InputError, RagwitnessError, VerificationError
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Signers
from ragwitness.crypto.records import QueryRecord, decode
from tests.support.windows import KEY, ask, policy, window

SIGNERS = Signers((KEY.public,))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    return window(tmp_path, monkeypatch)


def _records(held: Window) -> list[QueryRecord]:
    return [r for r in map(decode, held.ledger.entries()) if isinstance(r, QueryRecord)]


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_half_written_entry_is_cut_off_since_nobody_was_told_of_it(held: Window, cut: int):
    held.record(ask(held))
    whole = held.ledger.path.read_bytes()
    held.ledger.path.write_bytes(whole + b"\x03\x00" + b"{" * (cut - 1))
    kept = held.folder.openings.read_bytes()
    held.folder.openings.write_bytes(kept + b'{"leaf": "cut sh')
    again = Window.load(held.folder.root, [KEY])
    assert again.ledger.path.read_bytes() == whole
    found = again.record(ask(again, nonce="n2"))
    assert int(check_receipt(found.receipt, SIGNERS)[0].sequence) == 1
    assert Window.load(held.folder.root).kept(1).opened.ids == found.ids


def test_a_crash_between_opening_and_record_loses_nothing(held: Window, monkeypatch):
    request = ask(held)

    def killed(record: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(held.ledger, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        held.record(request)
    again = Window.load(held.folder.root, [KEY])
    assert not again.ledger.queries
    found = again.record(request)
    assert int(check_receipt(found.receipt, SIGNERS)[0].sequence) == 0
    assert again.kept(0).opened.ids == found.ids


def test_a_full_disk_answers_nothing(held: Window, monkeypatch):
    request, before = ask(held), held.ledger.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RagwitnessError, match="No space left"):
            held.record(request)
    assert held.ledger.path.read_bytes() == before
    assert held.record(request).ids


def test_a_damaged_folder_is_refused_by_name(held: Window, tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        Window.load(tmp_path / "none")
    other = PrivateKey("example.org/log", KeyKind.NOTE, bytes(32))
    with pytest.raises(InputError, match="did not open this window"):
        Window.load(held.folder.root, [other])
    with pytest.raises(InputError, match="without the log's key"):
        Window.load(held.folder.root).record(ask(held))
    data = held.ledger.path.read_bytes()
    held.ledger.path.write_bytes(data[:2] + b"x" + data[3:])
    with pytest.raises(VerificationError):
        Window.load(held.folder.root)
    held.ledger.path.write_bytes(b"")
    with pytest.raises(VerificationError) as found:
        Window.load(held.folder.root)
    assert found.value.check == "open.missing"
    held.ledger.path.write_bytes(data)
    changed = policy(k_max=3).encode()
    (held.public / "policy.json").write_bytes(changed)
    with pytest.raises(VerificationError) as found:
        Window.load(held.folder.root)
    assert found.value.check == "policy.digest"


def test_a_log_that_lost_what_it_published_is_not_gone_on_with(held: Window):
    """As after an old backup: the next answer would convict the key."""
    before = held.ledger.path.read_bytes()
    held.record(ask(held))
    held.publish()
    after = held.ledger.path.read_bytes()
    for data in (before, after[:-3] + b"00}"):
        held.ledger.path.write_bytes(data)
        with pytest.raises(VerificationError):
            Window.load(held.folder.root, [KEY])
    held.ledger.path.write_bytes(before)
    with pytest.raises(VerificationError) as found:
        Window.load(held.folder.root, [KEY])
    assert found.value.check == "log.rolled_back"
    held.ledger.path.write_bytes(after)
    assert len(Window.load(held.folder.root, [KEY]).ledger.queries) == 1


_CHILD = """
import sys
from pathlib import Path
from ragwitness.attest.window import Window
from tests.support.windows import KEY, ask
held = Window.load(Path(sys.argv[1]), [KEY])
for i in range(10_000):
    found = held.record(ask(held, "a", nonce=f"{sys.argv[2]}-{i}"))
    print(found.receipt.entry.decode(), *found.ids, sep="|", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_killed_processes_leave_a_log_that_holds_all_that_was_answered(tmp_path, monkeypatch):
    held = window(tmp_path, monkeypatch, policy(queries=5000))
    held.admit("clinic", "a")
    answered: list[str] = []
    for turn in range(2):
        command = [sys.executable, "-c", _CHILD, str(held.folder.root)]
        running = [
            subprocess.Popen([*command, f"{turn}{i}"], stdout=subprocess.PIPE, text=True)
            for i in range(2)
        ]
        first = [process.stdout.readline() for process in running]  # both are at work
        time.sleep(0.2)
        for process in running:
            process.send_signal(signal.SIGKILL)
        rest = [process.communicate()[0] for process in running]
        answered += [line for text in (*first, *rest) for line in text.splitlines(keepends=True)]
    answered = [line.strip() for line in answered if line.endswith("\n")]
    again = Window.load(held.folder.root, [KEY])
    records = _records(again)
    assert len(answered) >= 4
    assert [int(r.sequence) for r in records] == list(range(len(records)))
    assert len({r.nonce for r in records}) == len(records)
    places = {entry.decode(): i for i, entry in enumerate(again.ledger.entries())}
    numbers = {index: number for number, index in enumerate(again.ledger.queries)}
    for line in answered:
        entry, *ids = line.split("|")
        assert again.kept(numbers[places[entry]]).opened.ids == tuple(map(int, ids))
    log = MerkleLog()
    log.extend(again.ledger.entries())
    assert log.root() == again.ledger.log.root()
