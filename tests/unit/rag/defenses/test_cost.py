"""What a defense costs benign questions, against figures computed by hand."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from scipy.stats import beta

from ragwitness.core.errors import InputError, ModelError
from ragwitness.core.types import Document
from ragwitness.models.base import ChatPrompt, Generation
from ragwitness.rag.config import TEMPLATES, RagConfig
from ragwitness.rag.defenses.base import Defense, NoDefense, chain
from ragwitness.rag.defenses.cost import BenignQuestion, benign_questions, word_f1
from ragwitness.rag.defenses.defense_registry import PromptModification
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import Lookup, build_system
from tests.support.copier import Copier
from tests.unit.rag.defenses.defense_fakes import CORPUS, Writer, benign_cost, lexical

_QUESTIONS = [
    BenignQuestion("Maria Keller came", "keller", "in March with a"),
    BenignQuestion("of the southern", "krill", "coast"),
    BenignQuestion("router loses its", "router"),
    BenignQuestion("the mill ends", "lease", "in winter"),
]


class HideFirst(Defense):
    """Drops one passage from whatever is found."""

    def __init__(self, index: int) -> None:
        self.index = index

    @property
    def name(self) -> str:
        return f"hide({self.index})"

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        return [hit for hit in hits if hit.index != self.index]


class Choosy(Copier):
    """Answers every question but one under the defended prompt."""

    def generate(self, prompts: Sequence[ChatPrompt], **options: Any) -> list[Generation]:
        for prompt in prompts:
            system, user = (message.content for message in prompt.messages)
            if system.startswith(TEMPLATES["defended"].system) and "southern" in user:
                raise ModelError("The model failed.")
        return super().generate(prompts, **options)


def _never(_answer: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("answer", "reference", "f1"),
    [
        ("in March with a", "in march, with a!", 1.0),
        ("red rash", "red arm rash fever", 2 * 2 / (2 + 4)),
        ("red red red", "red arm", 2 * 1 / (3 + 2)),
        ("", "", 1.0),
        ("...", "", 1.0),
        ("", "red", 0.0),
        ("頭痛と発熱", "頭痛", 2 * 1 / (4 + 1)),
    ],
)
def test_word_f1_by_hand(answer: str, reference: str, f1: float) -> None:
    assert word_f1(answer, reference) == pytest.approx(f1)
    assert word_f1(reference, answer) == pytest.approx(f1)


def test_no_defense_costs_nothing() -> None:
    cost = benign_cost(lexical(), NoDefense(), _QUESTIONS, _never, max_tokens=4)
    retrieval, answers = cost.retrieval, cost.answers
    assert (cost.defense, cost.k, cost.failed_before, cost.failed) == ("none", 2, 0, 0)
    assert retrieval.recall == retrieval.recall_before
    assert (retrieval.recall.value, retrieval.recall.n) == (1.0, 4)
    assert (retrieval.recall_lost.value, retrieval.changed.value) == (0.0, 0.0)
    assert answers is not None
    assert answers.agreement.value == 1.0
    assert answers.quality == answers.quality_before
    assert answers.refused.value == 0.0


def test_figures_by_hand() -> None:
    """The krill's passage is hidden: its question alone loses document and answer."""
    system = lexical()
    before = [
        system.answer(query).text.split()
        for query in map(_query, ("Maria Keller came", "of the southern"))
    ]
    assert before == [["in", "March", "with", "a"], ["coast", "hunt", "krill", "in"]]
    cost = benign_cost(
        system, HideFirst(2), _QUESTIONS, lambda answer: "krill" not in answer, max_tokens=4
    )
    retrieval, answers = cost.retrieval, cost.answers
    assert retrieval.recall_before.value == 1.0
    assert retrieval.recall.value == 0.75
    assert retrieval.recall.low == pytest.approx(float(beta.ppf(0.025, 3, 2)))
    assert retrieval.recall.high == pytest.approx(float(beta.ppf(0.975, 4, 1)))
    assert retrieval.recall_lost.value == 0.25
    assert 0.0 <= retrieval.recall_lost.low <= 0.25 <= retrieval.recall_lost.high <= 1.0
    assert (
        retrieval.changed.value
        == sum(2 in [hit.index for hit in system.retrieve(q.text)] for q in _QUESTIONS) / 4
    )
    assert answers is not None
    assert answers.refused_before.value == 0.75
    assert answers.refused.value == 1.0
    assert answers.agreement.n == 4
    assert answers.agreement.value < 1.0
    assert answers.quality_before is not None
    assert answers.quality is not None
    assert answers.quality_lost is not None
    assert answers.quality_before.n == answers.quality.n == answers.quality_lost.n == 3
    # Undefended: "in March with a" of four, "coast" among four words, and the mill's answer.
    mill = word_f1(system.answer(_query("the mill ends")).text, "in winter")
    assert answers.quality_before.value == pytest.approx((1.0 + 2 * 1 / (4 + 1) + mill) / 3)
    assert answers.quality_lost.value == pytest.approx(
        answers.quality_before.value - answers.quality.value
    )


def test_a_few_equal_answers_still_leave_doubt() -> None:
    cost = benign_cost(lexical(), HideFirst(99), _QUESTIONS, _never, max_tokens=2)
    assert cost.answers is not None
    assert cost.answers.quality_lost is not None
    doubt = float(beta.ppf(0.975, 1, 4))  # 0 of 4
    same, lost = cost.answers.agreement, cost.retrieval.recall_lost
    assert (same.value, same.high) == (1.0, 1.0)
    assert same.low == pytest.approx(1 - doubt)
    assert (lost.value, lost.low, lost.high) == pytest.approx((0.0, -doubt, doubt))


def _query(text: str):
    from ragwitness.core.types import Query

    return Query(text, 4)


def test_a_defense_that_drops_everything_costs_every_document() -> None:
    nothing = chain(*map(HideFirst, range(len(CORPUS))))
    cost = benign_cost(lexical(), nothing, _QUESTIONS, _never, max_tokens=2)
    assert (cost.retrieval.recall.value, cost.retrieval.recall_lost.value) == (0.0, 1.0)
    assert cost.retrieval.changed.value == 1.0


def test_questions_without_reference_have_no_quality() -> None:
    cost = benign_cost(lexical(), HideFirst(0), _QUESTIONS[2:3], _never, max_tokens=2)
    assert cost.answers is not None
    assert cost.answers.quality_before is cost.answers.quality is cost.answers.quality_lost is None
    assert cost.answers.agreement.n == 1


def test_what_cannot_be_answered_is_counted_and_left_out() -> None:
    system = build_system(CORPUS, RagConfig(k=2), generator=Choosy())
    cost = benign_cost(system, PromptModification(), _QUESTIONS, _never, max_tokens=2)
    assert (cost.failed_before, cost.failed) == (0, 1)
    assert cost.retrieval.recall.n == 4
    assert cost.answers is not None
    assert cost.answers.agreement.n == 3
    alone = benign_cost(system, PromptModification(), _QUESTIONS[1:2], _never, max_tokens=2)
    assert (alone.answers, alone.failed) == (None, 1)


def test_figures_are_the_same_again() -> None:
    first, second = (
        benign_cost(lexical(), HideFirst(2), _QUESTIONS, _never, max_tokens=3) for _ in range(2)
    )
    assert first == second


def test_bad_questions_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        benign_cost(lexical(), NoDefense(), [], _never)
    with pytest.raises(InputError, match="'moon', which is not in the database"):
        benign_cost(lexical(), NoDefense(), [BenignQuestion("who", "moon")], _never)


# -- questions ---------------------------------------------------------------------------


def _one(text: str) -> BenignQuestion:
    [question] = benign_questions([Document("d", text)], 1, random.Random(0))
    return question


@pytest.mark.parametrize(
    ("text", "question", "reference"),
    [
        (
            "Patient: Hello. I fell on my left knee. Should I rest it? Doctor: Yes: a week.",
            "Should I rest it?",
            "Yes: a week.",
        ),
        (
            "<human>: My router is broken again\n<bot>: Restart it.",
            "My router is broken again",
            "Restart it.",
        ),
        ("Question: Why? Answer: Because.", "Why?", "Because."),
    ],
)
def test_a_dialogue_asks_what_its_first_speaker_asks(text, question, reference) -> None:
    assert _one(text) == BenignQuestion(question, "d", reference)


def test_a_long_dialogue_without_sentences_is_cut() -> None:
    asked = " ".join(f"word{i}" for i in range(90))
    assert _one(f"Patient: {asked} Doctor: Yes.").text == " ".join(asked.split()[:30])


def test_other_texts_are_asked_for_their_rarest_words() -> None:
    [question] = [q for q in benign_questions(CORPUS, 5, random.Random(0)) if q.document == "krill"]
    assert question.text.startswith("What is known about ")
    asked = question.text.removeprefix("What is known about ").rstrip("?")
    words = asked.replace(" and ", ", ").split(", ")
    assert len(words) == 3
    assert all(word in CORPUS[2].text for word in words)
    assert question.reference is None
    assert "don't" not in _one("Zebras don't don't don't sleep there").text


def test_questions_are_deterministic_of_distinct_documents_and_no_more_than_asked() -> None:
    made = benign_questions(CORPUS, 3, random.Random(4))
    assert made == benign_questions(CORPUS, 3, random.Random(4))
    assert len({question.document for question in made}) == 3
    assert len(benign_questions(CORPUS, 50, random.Random(4))) == 5


def test_documents_that_give_no_question_are_passed_over() -> None:
    mixed = [Document("a", "?!"), Document("b", "it is"), CORPUS[0]]
    assert [q.document for q in benign_questions(mixed, 3, random.Random(0))] == ["keller"]
    with pytest.raises(InputError, match="No document gives"):
        benign_questions(mixed[:2], 1, random.Random(0))
    with pytest.raises(InputError, match="No document gives"):
        benign_questions([], 1, random.Random(0))
    with pytest.raises(InputError, match="At least 1"):
        benign_questions(CORPUS, 0, random.Random(0))


def test_questions_find_their_documents() -> None:
    made = benign_questions(CORPUS, 5, random.Random(0))
    cost = benign_cost(lexical(k=1), NoDefense(), made, _never, max_tokens=1)
    assert cost.retrieval.recall.value == 1.0
    assert Writer("x").name == "writer(x)"
