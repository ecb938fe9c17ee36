"""Queries in other words: by a model, and by rules."""

import pytest

from ragwitness.rag.defenses.base import defend
from ragwitness.rag.defenses.rewriting import FILLERS, SUBSTITUTES, QueryRewriting, rule_rewrite
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


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("If my knee hurts, what should I do?", "What should I do if my knee aches?"),
        (
            "My router loses its connection whenever the oven is running.",
            "Whenever the oven is running, my router loses its connection.",
        ),
        ("It is very bad. I don't sleep.", "It is poor. I do not sleep."),
        ("I saw a doctor for an illness.", "I saw a physician for a disease."),
        ("Really, the PAIN is big!", "Really, the ACHE is large!"),
        ("Please help me.", "Assist me."),
        ("I don't know if it is red.", "I do not know if it is red."),
        ("It\u2019s  a big   house", "It is  a large   home"),
    ],
)
def test_rules(text: str, other: str) -> None:
    assert rule_rewrite(text) == other


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Keller",
        "[Mask_1] [big] <pain> 39.4 2024-03-01 www.big.com/pain me@pain.org",
        "Then Mr Small met Rich Stone in Big Town.",
        "患者は頭痛と発熱を訴えて来院した。",
        "Травма колена лечилась покоем.",
        "...?!",
        "\n\n",
    ],
)
def test_rules_leave_names_numbers_masks_and_other_scripts_alone(text: str) -> None:
    assert rule_rewrite(text) == text


def test_rules_are_deterministic_and_keep_every_line_of_a_long_text() -> None:
    text = "The big dog is ill because it ate a stone.\nIf it rains again, we stop now.\n" * 500
    other = rule_rewrite(text)
    assert other == rule_rewrite(text)
    assert other.count("\n") == text.count("\n")
    assert other.splitlines()[1] == "We cease at present if it rains once more."


def test_the_table_replaces_nothing_by_itself_and_only_lower_case() -> None:
    assert len(SUBSTITUTES) >= 150
    assert all(old != new and old == old.lower() and new for old, new in SUBSTITUTES.items())
    assert not FILLERS & set(SUBSTITUTES)


def test_the_rules_change_what_the_index_is_asked() -> None:
    defended = defend(lexical(k=1), QueryRewriting())
    system = lexical(k=1)
    query = "knee rested"
    assert defended.retrieve(query) == system.retrieve(query)  # nothing to replace
    assert defended.retrieve("big month")[0].score == system.retrieve("large month")[0].score
    assert "rules-1" in QueryRewriting().name
