"""Summaries: what the generator is shown of the passages, and that nothing else changes."""

from __future__ import annotations

import pytest

from ragwitness.defenses.base import chain, defend
from ragwitness.defenses.prompt import Summarize
from ragwitness.defenses.registry import load_defense
from ragwitness.errors import InputError
from tests.unit.defenses.defense_fakes import CORPUS, Writer, lexical

RECORD = (
    "Maria Keller came in March. She had a fever and a red rash on her left arm. Her address is"
    " Mill Lane 4. The rash went away in three weeks."
)


def test_only_sentences_to_the_point_are_shown_in_their_order() -> None:
    (shown,) = Summarize(2).show("How long did the rash on the arm last?", [RECORD])
    assert shown == (
        "She had a fever and a red rash on her left arm. The rash went away in three weeks."
    )


def test_a_passage_without_a_word_of_the_question_is_not_shown() -> None:
    assert Summarize().show("penguins", [RECORD, "Penguins hunt krill."]) == [
        "Penguins hunt krill."
    ]


def test_the_system_shows_summaries_and_retrieves_as_before() -> None:
    bare = lexical(k=2)
    guarded = defend(bare, Summarize(1))
    question = "Who had a red rash in March?"
    assert guarded.retrieve(question) == bare.retrieve(question)
    prompt = guarded.prompt(question).messages[0].content
    assert "red rash" in prompt
    assert "summarize(1 by overlap)" in guarded.describe()["defense"]
    nothing = defend(bare, Summarize(1)).prompt("zzz").messages[0].content
    assert not any(document.text in nothing for document in CORPUS)


def test_a_model_sums_up_each_passage_once_and_may_say_that_there_is_nothing() -> None:
    model = Writer("Somebody had a rash.")
    defense = Summarize(2, model)
    for _ in range(2):
        assert defense.show("rash?", [RECORD]) == ["Somebody had a rash."]
    assert len(model.asked) == 1
    assert RECORD in model.asked[0]
    assert "at most 2 sentences" in model.asked[0]
    assert Summarize(2, Writer(" nothing. ")).show("rash?", [RECORD]) == []


def test_a_passage_that_the_model_cannot_read_is_cut() -> None:
    model = Writer("Short.", context_length=400)
    assert Summarize(1, model).show("rash?", [RECORD * 50]) == ["Short."]
    assert len(model.asked[0]) < len(RECORD * 50)


def test_by_name_and_in_a_row() -> None:
    assert load_defense("summarize").name == "summarize(3 by overlap)"
    assert load_defense("summarize:model", Writer("x")).name == "summarize(3 by writer(x))"
    both = chain(Summarize(3), Summarize(1))
    assert both.show("rash", [RECORD]) == Summarize(1).show("rash", [RECORD])
    with pytest.raises(InputError, match="needs a language model"):
        load_defense("summarize:model")
    with pytest.raises(InputError, match="malformed"):
        load_defense("summarize:9")
    with pytest.raises(InputError, match="not 0"):
        Summarize(0)
