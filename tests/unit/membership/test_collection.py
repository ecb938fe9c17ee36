"""Evidence for a whole collection: decided early, never for a collection that is outside."""

from __future__ import annotations

import asyncio
import random

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score
from ragwitness.membership.collection import run_collection
from ragwitness.membership.plan import AuditPlan


@pytest.fixture(autouse=True)
def _drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders that nobody can foresee, but the same ones each time the tests run."""
    rng = random.Random(5)
    monkeypatch.setattr(
        "ragwitness.runner.score_store.secrets.token_hex", lambda n: f"{rng.getrandbits(8 * n):x}"
    )


class _Echo:
    """A target that says of each text whether it holds it."""

    name = "echo"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, held: set[str]) -> None:
        self.held, self.asked = held, 0

    async def ask(self, query: Query) -> Answer:
        self.asked += 1
        return Answer("yes" if query.prompt in self.held else "no")

    async def close(self) -> None:
        pass


class _Noisy:
    """Scores 1 above noise where the target says yes; short texts cannot be scored."""

    name = "noisy"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        if len(document.text) < 4:
            return Score(None, reason="too short")
        (answer,) = yield [Query(document.text)]
        noise = random.Random(document.text).gauss(0, 1)
        return Score(noise + (1.5 if answer.text == "yes" else 0.0))


def _texts(prefix: str, n: int) -> tuple[Document, ...]:
    rng = random.Random(prefix)
    return tuple(Document(f"{prefix}{i}", f"text {rng.getrandbits(40)}") for i in range(n))


def _run(mine: tuple[Document, ...], held: bool, seed: int = 0):  # type: ignore[no-untyped-def]
    target = _Echo({document.text for document in mine} if held else set())
    known = _texts("other", 60)
    # Texts of two words: that some are odd is not what is tested here.
    plan = AuditPlan(documents=mine, known_out=known, in_flight=2, accept_unlike=True)
    return asyncio.run(run_collection(plan, target, _Noisy(), seed=seed)), target


def test_a_held_collection_is_recognised_before_all_of_it_is_asked() -> None:
    result, target = _run(_texts("mine", 80), held=True)
    assert result.decided
    assert result.documents_asked < 80
    assert result.e_value is not None
    assert result.e_value >= 20
    assert len(result.path) <= target.asked == result.queries < 100
    assert 1.3 <= max(result.path) == result.path[-1]


def test_drafts_are_one_document_each_on_both_sides() -> None:
    def drafts(name: str, n: int) -> tuple[Document, ...]:
        whole = [" ".join(f"{name}{i}w{word}" for word in range(40)) for i in range(n)]
        return tuple(
            Document(f"{name}{i}v{v}", f"Version {v}. {text}")
            for i, text in enumerate(whole)
            for v in range(4)
        )

    mine, target = drafts("mine", 25), _Echo(set())
    plan = AuditPlan(documents=mine, known_out=drafts("other", 30), accept_unlike=True)
    result = asyncio.run(run_collection(plan, target, _Noisy()))
    assert (result.documents, target.asked) == (25, 25 + 30)


def test_a_collection_outside_is_not_accused() -> None:
    wrong = sum(
        _run(_texts(f"free{seed}", 40), held=False, seed=seed)[0].decided for seed in range(20)
    )
    # At level .05 at most 4 of 20 with probability .997.
    assert wrong <= 4


def test_unscorable_documents_are_counted() -> None:
    mine = (*_texts("mine", 30), Document("x", "abc"), Document("y", "ab"))
    result, _ = _run(mine, held=False)
    assert result.unscorable == 2
    assert result.documents_asked == 32


def test_a_collection_that_cannot_be_scored_says_why() -> None:
    plan = AuditPlan(documents=(Document("x", "abc"),), known_out=_texts("other", 20))
    with pytest.raises(InputError, match="too short"):
        asyncio.run(run_collection(plan, _Echo(set()), _Noisy()))


@pytest.fixture(autouse=True)
def _no_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated corpus is only for audits that learn."""
    monkeypatch.setattr("ragwitness.text.sample.load_sample", lambda: pytest.fail("loaded"))


def test_known_outside_documents_without_a_score_are_refused_with_the_reason() -> None:
    plan = AuditPlan(
        documents=_texts("mine", 4), known_out=(Document("r", "ab"), Document("s", "abc"))
    )
    with pytest.raises(InputError, match=r"None of 2 known-outside .* too short") as caught:
        asyncio.run(run_collection(plan, _Echo(set()), _Noisy()))
    assert "--method" in caught.value.hint


def test_each_run_draws_its_order_and_a_resumed_one_goes_on_in_it(tmp_path) -> None:
    known = _texts("other", 20)
    plan = AuditPlan(_texts("mine", 20), known, in_flight=1, accept_unlike=True)
    paths = []
    for name in ("a", "a", "b"):
        target, run = _Echo(set()), tmp_path / name
        result = asyncio.run(run_collection(plan, target, _Noisy(), run=run))
        paths.append((result.path, target.asked))
    assert paths[0][0] == paths[1][0] != paths[2][0]
    assert [asked for _, asked in paths] == [40, 0, 40]
