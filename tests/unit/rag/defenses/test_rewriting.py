"""Queries in other words, by a model."""

import pytest

from ragwitness.core.errors import ModelError
from ragwitness.rag.defenses.base import chain, defend
from ragwitness.rag.defenses.defense_registry import PromptModification
from ragwitness.rag.defenses.rewriting import QueryRewriting
from ragwitness.rag.pipeline import QueryTooLongError
from tests.unit.rag.defenses.defense_fakes import CORPUS, Writer, lexical


def test_a_paraphrase_retrieves_and_the_generator_sees_the_query() -> None:
    model = Writer("Penguins hunt krill.")
    defended = defend(lexical(k=1), QueryRewriting(model))
    prompt = defended.prompt("Maria Keller came in")
    assert prompt.messages[1].content == "Maria Keller came in"
    assert CORPUS[2].text in prompt.messages[0].content
    assert CORPUS[0].text not in prompt.messages[0].content
    assert model.asked == [
        "Please paraphrase the following sentence. Output only the paraphrase sentence.\n\n"
        "Maria Keller came in"
    ]
    defended.retrieve("Maria Keller came in")
    assert len(model.asked) == 1


@pytest.mark.parametrize("says", ["", "  \n ", '""'])
def test_a_model_that_says_nothing_changes_nothing(says: str) -> None:
    defense = QueryRewriting(Writer(says))
    expected = '""' if says == '""' else "Who came?"
    assert defense.rewrite("Who came?") == expected


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ("\u201cWho arrived?\u201d", "Who arrived?"),
        ('"Who" or "what"', '"Who" or "what"'),
        ("<b>Who</b> {query}", "<b>Who</b> {query}"),
    ],
)
def test_only_quotes_around_everything_are_taken_off(says: str, kept: str) -> None:
    assert QueryRewriting(Writer(says)).rewrite("Who came?") == kept


def test_a_query_may_hold_braces_and_a_blank_one_is_not_rewritten() -> None:
    model = Writer("fine")
    assert QueryRewriting(model).rewrite("{query} {0} {x") == "fine"
    assert model.asked[0].endswith("\n\n{query} {0} {x")
    assert QueryRewriting(model).rewrite(" \n") == " \n"
    assert len(model.asked) == 1


def test_a_query_too_long_for_the_model_is_refused_by_name() -> None:
    with pytest.raises(QueryTooLongError, match="reads at most"):
        QueryRewriting(Writer("x", context_length=200)).rewrite("word " * 150)


def test_without_a_model_the_generator_of_the_system_paraphrases() -> None:
    defended = defend(lexical(k=1), chain(QueryRewriting(), PromptModification()))
    assert defended.defense is not None
    assert defended.defense.name == "paraphrase(retrieve by copier)+prompt(defended)"
    with pytest.raises(ModelError, match="no model"):
        QueryRewriting().rewrite("Who came?")
