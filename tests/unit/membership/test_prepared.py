"""An order that is written down is read back equal and holds no key."""

import json
from dataclasses import dataclass, replace

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership import prepared as order
from ragwitness.membership.method_registry import AUDITS, configure
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.membership.shadow import ShadowConfig
from ragwitness.runner.budget import Budget
from tests.support.copier import Copier

PLAN = AuditPlan(
    documents=(Document("a", "text é \u2028 line", member=True), Document("b", "half \ud800")),
    known_out=(Document("c", "outside"),),
    auxiliary=tuple(Document(f"x{i}", f"aux {i}") for i in range(30)),
    alpha=0.01,
    shadow=ShadowConfig(audited=7, seed=3),
    in_flight=9,
)


def _order(method: str = "rag-mia", target: str = "http://127.0.0.1:9/v1#m") -> PreparedAudit:
    budget = Budget(queries=50, cost=0.3, price_in=1.0, price_out=2.0)
    return PreparedAudit(target, PLAN, method, configure(method), "reader", budget)


@pytest.mark.parametrize("method", AUDITS)
def test_an_order_is_read_back_equal(method) -> None:
    made = _order(method)
    stored = json.loads(json.dumps(made.stored()))
    assert PreparedAudit.from_stored(stored, made.parts()) == made


def test_a_configuration_that_cannot_be_read_back_is_refused() -> None:
    @dataclass
    class Unsaid:
        words: object

    made = replace(_order(), config=Unsaid(print))
    with pytest.raises(InputError, match="of rag-mia cannot be written into a seal") as caught:
        made.stored()
    assert "--seal" in caught.value.hint


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
def test_a_key_in_the_address_is_refused_and_not_repeated(target, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "from-the-environment")
    with pytest.raises(InputError, match="looks like a key") as caught:
        _order(target=target).stored()
    secrets = ("hunter22", "abcdef", "from-the")
    assert not any(secret in str(caught.value) for secret in secrets)


def test_an_address_with_harmless_options_is_written() -> None:
    target = "lab:corpus.jsonl?k=2&retrieval=minilm&text_field=body"
    assert _order(target=target).stored()["target"] == target


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
        return PreparedAudit("", plan, "s-rag", configure("s-rag:few")).fitted(20)[1]

    assert identity(one, two, three) == identity(two, one, three) == identity(three, two, one)
    assert len({identity(one, two, three), identity(one, two, ()), identity(one, three, ())}) == 3
