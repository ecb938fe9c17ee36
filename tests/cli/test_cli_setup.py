"""A setup by many from the command line, over small circuits; and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.crypto.proofs import ceremony as rounds
from ragwitness.crypto.proofs import prover_setup
from tests.unit.crypto.proofs.ceremony_toys import CIRCUITS

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
top = 1
scale = 64
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.toml").write_text(POLICY)
    monkeypatch.setattr(rounds, "circuits", lambda shape: CIRCUITS)
    for name in CIRCUITS:
        circuit = CIRCUITS[name]
        monkeypatch.setattr(prover_setup, f"{name}_circuit", lambda shape, circuit=circuit: circuit)


def told(command: Command, *words: str) -> dict[str, object]:
    code, text = command("attest", "setup", *words, "--json")
    assert code == 0, text
    return dict(json.loads(text))


@pytest.mark.slow
def test_a_setup_by_three_from_begin_to_check(command: Command) -> None:
    told(command, "begin", "--policy", "policy.toml", "-o", "c0")
    noted: dict[int, dict[str, object]] = {1: {}, 2: {}}
    place = 0
    for number in noted:
        for name in ("ann", "bob", "cid"):
            after = f"c{place + 1}"
            made = told(command, "contribute", f"c{place}", "--name", name, "-o", after)
            assert (made["round"], made["name"]) == (number, name)
            noted[number][name] = made["digest"]
            place += 1
        if number == 1:
            told(command, "next-round", f"c{place}", "-o", f"c{place + 1}")
            place += 1
    made = told(command, "finish", f"c{place}", "-o", "setup")
    found = told(command, "check", "setup")
    assert found["holds"] is True
    assert found["digest"] == made["digest"]
    # Every contributor finds the digest that was printed to it.
    assert (found["round_1"], found["round_2"]) == (noted[1], noted[2])
    assert told(command, "check", f"c{place}")["transcript"] == found["transcript"]
    _refused(command, place)


def _refused(command: Command, place: int) -> None:
    """Files that exist, are cut off or of another ceremony; a name that has had its turn."""
    code, text = command("attest", "setup", "contribute", "c1", "--name", "zoe", "-o", "c2")
    assert (code, "is not overwritten" in text) == (2, True), text
    code, text = command("attest", "setup", "contribute", "c2", "--name", "ann", "-o", "new")
    assert (code, "has contributed" in text) == (2, True), text
    Path("cut").write_bytes(Path("c2").read_bytes()[:-100])
    code, text = command("attest", "setup", "check", "cut")
    assert (code, "ceremony.file" in text) == (3, True), text
    code, text = command("attest", "setup", "finish", "c2", "-o", "early")
    assert (code, "both rounds" in text) == (2, True), text
    told(command, "contribute", f"c{place}", "--name", "zoe", "-o", "later")
    Path("setup/ceremony.bin").write_bytes(Path("later").read_bytes())
    code, text = command("attest", "setup", "check", "setup")
    assert (code, "ceremony.setup" in text) == (3, True), text


@pytest.mark.slow
@pytest.mark.parametrize("word", [(), ("alone",)])
def test_a_setup_by_one_party_has_nothing_to_check(command: Command, word: tuple[str, ...]) -> None:
    told(command, *word, "--policy", "policy.toml", "-o", "setup")
    code, text = command("attest", "setup", "check", "setup")
    assert (code, "ceremony.none" in text, "could prove anything" in text) == (3, True, True), text
