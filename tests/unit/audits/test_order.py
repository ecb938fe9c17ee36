"""An order that is written down is read back equal, holds no key, and cannot be changed quietly."""

import json
from dataclasses import replace

import pytest

from ragwitness.asking.budget import Budget
from ragwitness.audits import order
from ragwitness.audits.order import Order, Reach, fitted, read_manifest, write_manifest
from ragwitness.audits.plan import AuditPlan
from ragwitness.errors import InputError
from ragwitness.kit.run_files import DOCUMENTS, MANIFEST
from ragwitness.membership.registry import AUDITS, configure
from ragwitness.membership.shadow import ShadowConfig
from ragwitness.types import Document
from tests.support.copier import Copier

PLAN = AuditPlan(
    documents=(Document("a", "text é \u2028 line", member=True), Document("b", "half \ud800")),
    known_out=(Document("c", "outside"),),
    auxiliary=tuple(Document(f"x{i}", f"aux {i}") for i in range(30)),
    alpha=0.01,
    shadow=ShadowConfig(audited=7, seed=3),
    in_flight=9,
)


def _order(method: str = "rag-mia", target: str = "http://127.0.0.1:9/v1#m") -> Order:
    reach = Reach(timeout=7.5, retries=2, key_env="MY_KEY")
    budget = Budget(queries=50, cost=0.3, price_in=1.0, price_out=2.0)
    return Order(target, PLAN, method, configure(method), "reader", reach, budget)


@pytest.mark.parametrize("method", AUDITS)
def test_an_order_is_read_back_equal(tmp_path, method) -> None:
    manifest = write_manifest(tmp_path, _order(method))
    assert read_manifest(tmp_path) == manifest
    assert read_manifest(tmp_path).order == _order(method)
    assert sorted(path.name for path in tmp_path.iterdir()) == [DOCUMENTS, MANIFEST]


def test_caps_may_be_raised_and_the_start_stays(tmp_path) -> None:
    first = write_manifest(tmp_path, _order())
    higher = replace(_order(), budget=Budget(queries=500))
    write_manifest(tmp_path, higher)
    assert read_manifest(tmp_path).order == higher
    assert read_manifest(tmp_path).prepared == first.prepared


@pytest.mark.parametrize(
    ("key", "value"), [("method", "mba"), ("target", "http://other/v1"), ("proxy", "hf:gpt2")]
)
def test_a_changed_manifest_is_refused(tmp_path, key, value) -> None:
    write_manifest(tmp_path, _order())
    stored = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**stored, key: value}))
    with pytest.raises(InputError, match="was changed after it was written") as caught:
        read_manifest(tmp_path)
    assert "--prepare" in caught.value.hint


def test_other_documents_are_refused(tmp_path) -> None:
    write_manifest(tmp_path, _order())
    path = tmp_path / DOCUMENTS
    path.write_text(path.read_text().replace("outside", "0utside"))
    with pytest.raises(InputError, match="is not the one of the manifest"):
        read_manifest(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        read_manifest(tmp_path)


def test_one_of_another_version_is_refused(tmp_path) -> None:
    write_manifest(tmp_path, _order())
    stored = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**stored, "ragwitness": "9.9"}))
    with pytest.raises(InputError, match=r"was written by ragwitness 9\.9, this is") as caught:
        read_manifest(tmp_path)
    assert "ragwitness==9.9" in caught.value.hint


@pytest.mark.parametrize("text", ["", "[1]", '{"ragwitness"'])
def test_what_is_no_manifest_is_one_line(tmp_path, text) -> None:
    with pytest.raises(InputError, match="nothing was prepared"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InputError, match="cannot be read as a manifest"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "target",
    [
        "http://user:hunter22@host/v1",
        "other/system?api_key=abcdef",
        "other/system?k=4&Auth-Token=abcdef",
        "other/Bearer abcdefgh",
        "other/from-the-environment",
    ],
)
def test_a_key_in_the_address_is_refused_and_not_repeated(tmp_path, target, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "from-the-environment")
    with pytest.raises(InputError, match="looks like a key") as caught:
        write_manifest(tmp_path, _order(target=target))
    secrets = ("hunter22", "abcdef", "from-the")
    assert not any(secret in str(caught.value) for secret in secrets)
    assert list(tmp_path.iterdir()) == []


def test_an_address_with_harmless_options_is_written(tmp_path) -> None:
    target = "lab:corpus.jsonl?k=2&retrieval=minilm&text_field=body"
    write_manifest(tmp_path, _order(target=target))
    assert read_manifest(tmp_path).order.target == target


def test_who_is_in_question_decides_nothing_that_is_asked(monkeypatch) -> None:
    """The opponent of exact ranks: questions that know which documents are known to be outside."""
    monkeypatch.setattr(order, "load_language_model", lambda _spec: Copier())
    # Each two of the three parts have words in common that no two documents of one part have.
    shared = [
        "red lift",
        "wet roof",
        "own 2",
        "red lift",
        "dim hall",
        "own 5",
        "dim hall",
        "wet roof",
    ]
    texts = [
        f"Letter {i} about the {words} of house {i}." for i, words in enumerate([*shared, "own 8"])
    ]
    one, two, three = (
        tuple(Document(str(i), texts[i]) for i in range(at, at + 3)) for at in (0, 3, 6)
    )

    def identity(*parts: tuple[Document, ...]) -> str:
        plan = AuditPlan(parts[0], known_out=parts[1], known_in=parts[2])
        return fitted("s-rag", configure("s-rag:few"), "reader", 20, plan)[1]

    assert identity(one, two, three) == identity(two, one, three) == identity(three, two, one)
    assert len({identity(one, two, three), identity(one, two, ()), identity(one, three, ())}) == 3
