"""What a stranger's pack may name: models of this package, and nothing that is loaded by a name.

No spelling of a host, a path or a plug-in gets past the list, because the loaders themselves hold
what is to be loaded against it, letter by letter.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.core.errors import UnlistedError
from ragwitness.core.registry import nothing_but
from ragwitness.core.run_files import SEAL, SEAL_NOTE
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.notes import sign_note
from ragwitness.evidence.case import PackKnown
from ragwitness.evidence.pack import ROWS
from ragwitness.evidence.subject import seal_text
from ragwitness.evidence.verifier import PACKAGED, verify_pack
from ragwitness.evidence.verifiers import SEALED, sealed_kind
from ragwitness.membership.method_registry import AUDITS
from ragwitness.models.model_registry import load_embedder, load_language_model
from tests.unit.evidence.forger import Forger

GOLDEN = Path(__file__).parents[2] / "golden"
PACKS = sorted((GOLDEN / "evidence").glob("*.zip"))
BUNDLES = sorted((GOLDEN / "attest").glob("*.zip"))

HOSTILE = [
    "http://127.0.0.1:9/v1#bge",
    "http://127.0.0.1:9/v1#bge small",
    "HTTPS://127.0.0.1:9/v1#m",
    " http://127.0.0.1:9/v1#m",
    "openai/gpt",
    "openai:gpt",
    "openai-api/name/model",
    "hf:gpt2",
    "hf:/tmp/a folder",
    "gguf:/tmp/model.gguf",
    "reader:/tmp",
    "reader:other",
    "reader@0.7",
    "READER",
    "hashing:1000000000000",
    "",
]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """No socket can be made, and every key that might be sent is set; return what was tried."""
    tried: list[object] = []

    def refused(*arguments: object, **_: object) -> None:
        tried.append(arguments)
        raise AssertionError("a socket was made")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refused)
    for name in ("OPENAI_API_KEY", "RAGWITNESS_EMBEDDINGS_KEY", "RAGWITNESS_MODEL_KEY"):
        monkeypatch.setenv(name, "sk-the-verifiers-own")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    return tried


@pytest.mark.parametrize("named", HOSTILE)
def test_the_loaders_refuse_what_is_not_listed(named: str, offline: list[object]) -> None:
    with nothing_but(PACKAGED):
        for load in (load_language_model, load_embedder, AUDITS._load):
            with pytest.raises(UnlistedError):
                load(named)
    assert offline == []


def test_what_is_packaged_is_loaded_and_outside_of_the_block_anything() -> None:
    with nothing_but(PACKAGED):
        assert load_language_model("repeat").name == "repeat"
        assert AUDITS.load("s2mia").name == "s2mia"
    assert load_embedder("hashing:16").embed(["a"]).shape == (1, 16)


def _apart(pack: Path) -> Forger:
    return Forger.of(pack, PrivateKey.generate("stranger"))


def _leak(change: Callable[[dict], object]) -> bytes:
    """The golden pack of a leak measurement, sealed anew by whoever changes its seal."""
    forger = _apart(GOLDEN / "evidence" / "leak-v1.zip")
    forger.edit(SEAL, lambda seal: change(seal) or seal.update(key=forger.key.public.text))
    forger.files[SEAL_NOTE] = sign_note(seal_text(forger.files[SEAL]), [forger.key])
    forger.relink()
    return forger.packed()


@pytest.mark.parametrize("named", [HOSTILE[0], "hf:gpt2", "hashing:16"])
def test_an_embedder_of_an_earlier_leak_pack_is_not_loaded(
    named: str, offline: list[object]
) -> None:
    found = verify_pack(_leak(lambda seal: seal["settings"].update(embedder=named)))
    (measures,) = [check for check in found.checks if check.name == "measures"]
    assert (found.outcome, measures.status) == ("inconclusive", "not checked")
    assert "Verify it with the version that made it" in found.why
    assert offline == []


@pytest.mark.parametrize("path", [*PACKS, *BUNDLES], ids=lambda path: path.name)
def test_every_kind_of_sealed_file_is_verified_without_a_socket(
    path: Path, offline: list[object]
) -> None:
    from ragwitness.attest.trust import parse_trust

    data = path.read_bytes()
    kind = sealed_kind(data)
    trust = path.with_name(path.stem.replace("window", "trust") + ".json")
    given = [parse_trust(trust.read_bytes())] if kind == "bundle.json" else []
    if kind == "pack.json":
        given = [PackKnown(key=_apart(path).key_named)]
    found = SEALED.load(kind)(data, *given)
    assert found.failures == ()
    # A seal without the system's name, and proofs of an earlier system, leave something open.
    open_ = path.name != "window-v3.zip"
    assert found.outcome == ("inconclusive" if open_ else "pass"), found.why
    assert offline == []


def test_nothing_of_an_unsigned_pack_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    forger = _apart(PACKS[0])
    forger.files[ROWS] = b"{}\n" * 100_000
    unsigned = forger.packed(PrivateKey.generate("another"))

    def parsed(*_: object, **__: object) -> None:
        raise AssertionError("something was parsed")

    monkeypatch.setattr("ragwitness.evidence.pack._strict", parsed)
    assert verify_pack(unsigned).failures[0].failure == "pack.signature"


def test_rows_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragwitness.evidence.pack._MOST_ROWS", 3)
    found = verify_pack(PACKS[0].read_bytes())
    assert (found.failures[0].failure, "Row 4 of" in found.why) == ("pack.form", True)


def test_packs_that_were_sealed_before_have_their_form_and_are_told_so() -> None:
    assert [path.name for path in PACKS] == ["audit-v1.zip", "hidden-v1.zip", "leak-v1.zip"]
    for path in PACKS:
        assert json.loads(_apart(path).files[SEAL])["version"] == "ragwitness/seal/v1"
        code = next(c for c in verify_pack(path.read_bytes()).checks if c.name == "code")
        assert (code.status, "its seal does not say which" in code.detail) == ("pass", True)
