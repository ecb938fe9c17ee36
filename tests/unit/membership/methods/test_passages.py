"""The audit that reads shown passages: what counts, what never does, and twins of a document."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.types import Answer, Capability, Document, Query, Score
from ragwitness.membership.evaluation import BatteryPlan, run_battery
from ragwitness.membership.methods.passages import Passages, PassagesConfig
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from tests.support.copier import Copier

_TEXT = "The ferry to Marrowdale leaves at nine and the captain keeps a brown dog called Tamarind."
_OTHER = "A violin maker from Oxcombe found seven silver coins beneath the floor of his workshop."


def _ask(answer: Answer, text: str = _TEXT, **options) -> tuple[list[Query], Score]:
    probe = Passages(Copier(), PassagesConfig(**options)).probe(Document("d", text))
    queries: list[Query] = []
    try:
        queries = next(probe)
        probe.send([answer for _ in queries])
    except StopIteration as stop:
        return queries, stop.value
    raise AssertionError("one batch was expected")


def _shown(*passages: str) -> Answer:
    return Answer("whatever it says", contexts=passages)


def test_one_query_the_text_itself_and_the_passages_alone_are_read() -> None:
    queries, score = _ask(_shown(f"Harbour notes. {_TEXT} More follows."))
    assert [query.prompt for query in queries] == [_TEXT]
    assert score.value == 1.0
    # An answer that repeats the question says nothing: it was given the text.
    _, echoed = _ask(Answer(_TEXT, contexts=(_OTHER,)))
    assert echoed.value == 0.0
    assert Passages(Copier()).requires == {Capability.CONTEXTS}


@pytest.mark.parametrize(
    ("answer", "value", "reason"),
    [
        (_shown(), 0.0, None),  # it looked, and found nothing
        (_shown(_OTHER, ""), 0.0, None),
        (_shown("THE FERRY to Marrowdale — leaves at nine!"), 7 / 16, None),
        (_shown("the ferry to", "leaves at nine", "Tamarind called dog brown a"), 0.0, None),
        (Answer(_TEXT), None, "showed no passages"),
        (Answer("", error="timed out", contexts=(_TEXT,)), None, "timed out"),
    ],
)
def test_only_runs_of_words_in_shown_passages_count(answer, value, reason) -> None:
    _, score = _ask(answer)
    assert score.value == value
    assert (score.reason is None) == (reason is None)
    assert reason is None or reason in score.reason


def test_a_document_cut_into_several_passages_counts_over_all_of_them() -> None:
    half = _TEXT.index(" and the captain")
    _, score = _ask(_shown(_TEXT[half:], _TEXT[:half]))
    assert score.value == 1.0


def test_too_few_words_cost_no_query_and_a_long_text_is_cut() -> None:
    queries, score = _ask(_shown(_TEXT), "Only three words")
    assert (queries, score.value) == ([], None)
    assert "fewer than 8 words" in score.reason
    queries, score = _ask(_shown(_TEXT), f"{_TEXT} {_OTHER}", max_chars=90)
    assert queries[0].prompt == _TEXT
    assert (score.value, score.details["cut"]) == (1.0, 15.0)
    with pytest.raises(InputError, match="run must be at least 1"):
        PassagesConfig(run=0)


def _corpus() -> list[Document]:
    """Records of one template, each beside a twin that differs in three words of forty."""
    draw = random.Random(0)
    words = [f"{a}{b}" for a in ("bra", "cle", "dro", "fli", "gru") for b in ("ton", "mer", "sal")]
    found = []
    for at in range(60):
        body = [f"{draw.choice(words)}{draw.randrange(100)}" for _ in range(36)]
        twin = list(body)
        for place in (5, 17, 29):
            twin[place] = f"{draw.choice(words)}{100 + at}"
        for version, said in (("a", body), ("b", twin)):
            text = f"Minutes of the board. {' '.join(said)}. Nothing else was said that day."
            found.append(Document(f"{at}{version}", text))
    return found


def _built(documents: Sequence[Document], rag: RagConfig) -> LabTarget:
    return LabTarget(build_system(documents, rag))


@pytest.mark.long
def test_templates_and_twins_are_told_from_members_and_without_retrieval_nobody_is() -> None:
    plan = BatteryPlan(
        audits=("passages",), members=30, non_members=30, calibration=20,
        rag=RagConfig(k=2),
    )  # fmt: skip
    found = asyncio.run(run_battery(plan, _corpus(), Copier(), build=_built))
    (measured,) = (one for one in found.audits if one.audit == "passages")
    assert measured.auc.value == 1.0
    assert found.controls["retrieval off: passages"].value == 0.5


def test_a_target_that_shows_nothing_is_refused_with_what_to_do() -> None:
    from ragwitness.rag.pipeline import build_system
    from ragwitness.rag.target import LabTarget
    from ragwitness.runner.capabilities import require_capabilities

    target = LabTarget(build_system(_corpus()[:10], RagConfig()))
    with pytest.raises(CapabilityError, match="needs contexts") as caught:
        asyncio.run(require_capabilities(target, Passages(Copier())))
    assert "docs/targets.md" in str(caught.value.hint)
    # One that drops log-probabilities is not said to have dropped passages.
    silent = LabTarget(build_system(_corpus()[:10], RagConfig(generator="repeat")))
    with pytest.raises(CapabilityError, match="needs contexts") as caught:
        asyncio.run(require_capabilities(silent, Passages(Copier())))
    assert "without a word" not in caught.value.message
    shown = asyncio.run(require_capabilities(target.for_owner(), Passages(Copier())))
    assert Capability.CONTEXTS in shown.capabilities
