"""Opponents that need no forgery: a friendlier name, settings that nobody reads, a file that costs.

Reproduced from an outside review: each of them passed, or made the verifier work, before.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ragwitness.attest import verdict
from ragwitness.core.addresses import name_follows
from ragwitness.core.run_files import REPORT, RESULT, SEAL, SEAL_NOTE
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.notes import sign_note
from ragwitness.evidence.case import PackKnown
from ragwitness.evidence.pack import ANSWERS_FILE, ROWS, page_of
from ragwitness.evidence.subject import seal_text
from ragwitness.evidence.verifier import verify_pack
from tests.unit.evidence.forger import Forger, judged
from tests.unit.evidence.test_evidence_lies import _no_log

BANK = "https://chat.acme.example/v1#assistant"


def _resealed(forger: Forger, change) -> bytes:
    """The run sealed, recorded and packed anew by whoever holds the key."""
    _no_log(forger)
    forger.edit(SEAL, lambda seal: (seal.update(logged=False), change(seal)))
    forger.files[SEAL_NOTE] = sign_note(seal_text(forger.files[SEAL]), [forger.key])
    forger.relink()
    return forger.packed()


def _renamed(forger: Forger, name: str) -> None:
    """Another name of the system, everywhere."""

    def rows(answers: list) -> None:
        from ragwitness.core.types import Query
        from ragwitness.crypto.hashing import Opening, commit
        from ragwitness.runner.hash_chain import ROW
        from ragwitness.runner.response_store import StoredQuery, query_key

        for row in answers:
            answer = json.loads(row["text"])
            answer["asked"]["target"] = name
            query = StoredQuery(name, "", "", Query(**answer["asked"]["query"]))
            answer["key"] = query_key(name, query.query)
            row["text"] = json.dumps(answer, sort_keys=True, separators=(",", ":"))
            row["asked"][0] = name
            opening = Opening(ROW, row["text"].encode(), bytes.fromhex(row["blinding"]))
            row["commitment"] = commit(opening).hex()

    forger.edit(ANSWERS_FILE, rows)
    forger.edit(RESULT, lambda result: result["summary"].update(target=name))
    forger.edit(SEAL, lambda seal: seal.update(system=name))
    forger.files[REPORT] = page_of(json.loads(forger.files[RESULT])).encode()


def _checks(data: bytes, known: PackKnown | None = None) -> tuple[str, dict[str, str]]:
    found = judged(data, known)
    return found.outcome, {c.name: c.failure or c.detail for c in found.checks}


def test_a_banks_name_over_a_sealed_laboratory(honest: Forger) -> None:
    _renamed(honest, BANK)
    outcome, checks = _checks(_resealed(honest, lambda seal: None))
    assert (outcome, checks["seal.system"]) == ("fail", "seal.system")


@pytest.mark.parametrize("address", ["openai-api/acme/assistant", "python:acme:bot", "acme/x"])
def test_a_name_that_the_address_leaves_open_never_passes(honest: Forger, address: str) -> None:
    _renamed(honest, BANK)
    data = _resealed(honest, lambda seal: seal["settings"].update(target=address))
    outcome, checks = _checks(data)
    assert outcome == "inconclusive"
    assert "does not give the name" in checks["seal.system"]


@pytest.mark.parametrize(
    ("address", "name", "follows"),
    [
        ("https://chat.acme.example/v1", BANK, True),
        ("https://chat.acme.example/v1/chat/completions", BANK, True),
        (BANK, BANK, True),
        ("https://h/v1?endpoint=completions#m", "https://h/v1#m?endpoint=completions", True),
        ("https://h/v1#other", "https://h/v1#m", False),
        ("https://chat.acme.example.evil.example/v1", BANK, False),
        ("http://127.0.0.1:8000/v1", BANK, False),
        ("openai/gpt-4.1", "https://api.openai.com/v1#gpt-4.1", True),
        ("openai/gpt-4.1", BANK, False),
        ("lab:held.jsonl?k=4", "lab:0f3a", True),
        ("LAB:held.jsonl", BANK, False),
        ("gguf:model.gguf", "lab:0f3a", True),
        ("replay/answers.jsonl", BANK, False),
        ("replay/answers.jsonl", "replay/answers.jsonl#12", True),
        ("http/acme.toml", "http/chat.acme.example/ask#12", True),
        ("http/acme.toml", BANK, False),
        ("python:acme:bot", "python:acme:bot", True),
        ("python:acme:bot", BANK, None),
        ("openai-api/acme/m", BANK, None),
    ],
)
def test_names_follow_from_addresses(address: str, name: str, follows: bool | None) -> None:
    assert name_follows(address, name) is follows


UNREAD = {
    "a shadow system that is never built": lambda s: s["plan"]["shadow"].update(seed=7),
    "its size": lambda s: s["plan"]["shadow"]["rag"].update(k=9),
    "a classifier that is never trained": lambda s: s["plan"].update(automl=True),
    "a made-up promise": lambda s: s.update(approved_by="the regulator"),
    "a made-up field of the plan": lambda s: s["plan"].update(strict=True),
}


@pytest.mark.parametrize("lie", UNREAD)
def test_a_setting_that_nothing_reads(honest: Forger, lie: str) -> None:
    outcome, checks = _checks(_resealed(honest, lambda seal: UNREAD[lie](seal["settings"])))
    assert outcome == "fail"
    assert "settings.unread" in checks.values()


def test_looks_that_an_audit_does_not_have(honest: Forger) -> None:
    outcome, checks = _checks(_resealed(honest, lambda seal: seal.update(looks=20)))
    assert (outcome, checks["settings"]) == ("fail", "settings.looks")


def test_an_answer_whose_name_stands_twice(honest: Forger) -> None:
    """A reader of the pack sees one answer, the verifier scored the other."""

    def twice(rows: list) -> None:
        rows[0]["text"] = '{"answer":{"text":"I hold it."},' + rows[0]["text"][1:]

    honest.edit(ANSWERS_FILE, twice)
    honest.recommit()
    outcome, checks = _checks(_resealed(honest, lambda seal: None))
    assert (outcome, checks["answers"]) == ("fail", "answers.form")


# Work for a stranger.


def _large(honest: Forger, key: PrivateKey, rows: int) -> bytes:
    """A pack that a stranger signed, of very many rows."""
    _no_log(honest)
    honest.edit(SEAL, lambda seal: seal.update(logged=False, key=key.public.text))
    honest.files[SEAL_NOTE] = sign_note(seal_text(honest.files[SEAL]), [key])
    honest.files[ROWS] += b'{"a":1}\n' * rows
    return honest.packed(key)


@pytest.mark.parametrize(("rows", "unit"), [(30_000, "rows"), (4_000_000, "bytes")])
def test_a_large_file_of_an_unknown_signer_is_not_read(
    honest: Forger, monkeypatch: pytest.MonkeyPatch, rows: int, unit: str
) -> None:
    key = PrivateKey.generate("stranger")
    data = _large(honest, key, rows)

    def parsed(*_: object, **__: object) -> None:
        raise AssertionError("something was parsed")

    monkeypatch.setattr("ragwitness.evidence.pack._strict", parsed)
    found = verify_pack(data)
    assert found.outcome == "inconclusive"
    assert f" {unit}, the most" in found.why
    assert "--key" in found.why
    # A seal that was known before settles it as early.
    assert verify_pack(data, PackKnown(seal="00" * 32)).failures[0].failure == "seal.digest"


def test_a_stranger_has_so_many_seconds(honest: Forger, monkeypatch: pytest.MonkeyPatch) -> None:
    late = iter([0.0, *[61.0] * 1000])
    monkeypatch.setattr(verdict, "monotonic", lambda: next(late))
    found = verify_pack(honest.packed())
    assert found.outcome == "inconclusive"
    assert "more than 60 seconds" in found.why
    known = judged(honest.packed())
    assert known.outcome == "pass"


def test_a_stranger_of_16_megabytes_takes_less_than_a_second(honest: Forger) -> None:
    data = _large(honest, PrivateKey.generate("stranger"), 1_900_000)
    began = time.process_time()
    assert verify_pack(data).outcome == "inconclusive"
    assert time.process_time() - began < 1.0


def test_a_system_that_names_itself_cannot_be_sealed(tmp_path: Path) -> None:
    from ragwitness.core.errors import InputError
    from ragwitness.evidence.sealing import seal_run
    from ragwitness.runner.task_options import Sealing

    class Wish(Sealing):
        seal = tmp_path / "key"
        runs_log = timestamp = None

    with pytest.raises(InputError, match="does not say which system"):
        seal_run(Wish, tmp_path, "openai-api/acme/m", BANK, lambda _: None)  # type: ignore[arg-type]
