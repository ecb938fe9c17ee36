"""DCMI: the perturbed copy, and the difference of two answers."""

from __future__ import annotations

import math
import random

import pytest

from ragwitness.errors import InputError
from ragwitness.membership.dcmi import ANTONYMS, Dcmi, DcmiConfig, changed_words, perturb, quota
from ragwitness.models.base import Generation
from ragwitness.text.words import core, split_words
from ragwitness.types import Answer, Capability, Document, Query, Score, TokenLogprob
from tests.support.copier import Copier

_TEXT = (
    "The old ferry to Marrowdale always leaves early, and its captain keeps a large brown dog"
    " that barks at every distant lighthouse. The fare is cheap and the crew is usually friendly."
)
_OTHER = (
    "A young violin maker from Oxcombe found seven silver coins beneath the dirty floor of his"
    " small workshop, and he was very happy about it until the rich owner heard the news."
)


def _audit(proxy=None, **options) -> Dcmi:
    return Dcmi(proxy or Copier(), DcmiConfig(**options))


def _ask(audit: Dcmi, answer, text: str = _TEXT) -> tuple[list[Query], Score]:
    """Run a probe against two answers, or a function that answers."""
    probe = audit.probe(Document("d", text))
    queries: list[Query] = []
    try:
        queries = next(probe)
        probe.send([answer(q) for q in queries] if callable(answer) else list(answer))
    except StopIteration as stop:
        return queries, stop.value
    raise AssertionError("one batch was expected")


def _odds(word: str, yes: float, no: float) -> Answer:
    top = tuple(sorted((("Yes", math.log(yes)), ("No", math.log(no))), key=lambda item: -item[1]))
    return Answer(word, (TokenLogprob(word, dict(top)[word], top),), "stop")


def test_two_queries_that_differ_in_the_words_turned_round() -> None:
    (one, other), score = _ask(_audit(), [Answer("Yes"), Answer("No")])
    assert one.prompt == f'Is this: "{_TEXT}" right? Answer with Yes or No.'
    copy = other.prompt.removeprefix('Is this: "').removesuffix('" right? Answer with Yes or No.')
    changes = changed_words(_TEXT, copy)
    assert len(changes) == round(0.06 * len(_TEXT.split())) == score.details["perturbed"] == 2
    assert all(ANTONYMS[old.casefold()] == new.casefold() for old, new in changes)
    assert score.details["antonyms"] == 2


@pytest.mark.parametrize(
    ("answers", "value"),
    [(("Yes", "No"), 1.0), (("Yes", "Yes"), 0.0), (("No", "No"), 0.0), (("No", "Yes"), -1.0)],
)
def test_value_is_the_difference(answers, value: float) -> None:
    _, score = _ask(_audit(), [Answer(said) for said in answers])
    assert score.value == score.details["score/text"] == score.details["score/published"] == value
    assert score.details["score/uncalibrated"] == (answers[0] == "Yes")
    assert [item.probability.low for item in score.evidence] == [a == "Yes" for a in answers]


def test_gray_value_is_the_difference_of_log_odds() -> None:
    queries, score = _ask(_audit(access="gray"), [_odds("Yes", 0.8, 0.1), _odds("Yes", 0.6, 0.3)])
    assert [query.top_logprobs for query in queries] == [20, 20]
    assert score.value == pytest.approx(math.log(0.8 / 0.1) - math.log(0.6 / 0.3))
    assert score.details["score/gray"] == score.value
    assert score.details["score/text"] == 0.0
    assert score.details["yes"] == 2


@pytest.mark.parametrize(
    ("answers", "reason", "outcome", "published"),
    [
        ([Answer("Perhaps"), Answer("No")], "neither yes nor no", "not_read", 0.0),
        ([Answer(""), Answer("")], "nothing", "failed", 0.0),
        ([Answer("<html>No</html>"), Answer("No")], "web page", "failed", 0.0),
        ([Answer("Perhaps"), Answer("Yes")], "neither yes nor no", "not_read", -1.0),
        ([Answer("", error="lost"), Answer("No")], "lost", "failed", None),
        ([Answer("Yes"), Answer("", error="lost")], "of the copy: lost", "failed", None),
    ],
)
@pytest.mark.parametrize("access", ["text", "gray"])
def test_one_unread_answer_makes_it_unscorable(access, answers, reason, outcome, published) -> None:
    if access == "gray":
        # Without log-probabilities every answer is unread; the published rule reads them still.
        _, gray = _ask(_audit(access=access), answers)
        assert gray.value is None
        assert gray.details.get("score/published") == published
        return
    _, score = _ask(_audit(access=access), answers)
    assert score.value is None
    assert reason in score.reason
    assert score.details[outcome] >= 1.0
    assert score.details.get("score/published") == published


@pytest.mark.parametrize(
    ("words", "share", "n"), [(5, 0.06, 1), (100, 0.06, 6), (100, 0.03, 3), (1000, 0.06, 10)]
)
def test_share_of_words_turned_round(words: int, share: float, n: int) -> None:
    assert quota(words, share, 10) == n


def test_the_table_is_lower_case_and_never_maps_to_itself() -> None:
    assert len(ANTONYMS) > 300
    for word, other in ANTONYMS.items():
        assert word != other
        assert word == word.casefold() == core(word)
        assert other == other.casefold() == core(other)


def test_case_and_punctuation_stay() -> None:
    done = perturb('Cheap, "BIG" houses (and Old.) stay.', 9, random.Random(0))
    assert done.text == 'Expensive, "SMALL" houses (and Young.) stay.'
    assert done.changes == (("Cheap", "Expensive"), ("BIG", "SMALL"), ("Old", "Young"))


def test_the_article_follows_the_new_word() -> None:
    done = perturb(
        "A bad day, an early start, a useless plan, an unhappy end.", 9, random.Random(0)
    )
    assert done.text == "A good day, a late start, a helpful plan, a happy end."
    assert perturb("It is a cheap hat.", 1, random.Random(0)).text == "It is an expensive hat."
    assert perturb("An innocent man.", 1, random.Random(0)).text == "A guilty man."


def test_changes_are_spread_over_the_text() -> None:
    text = " ".join(["old"] * 100)
    for seed in range(5):
        done = perturb(text, 10, random.Random(seed))
        places = [i for i, word in enumerate(done.text.split()) if word == "young"]
        assert [place // 10 for place in places] == list(range(10))


def test_where_there_is_no_antonym_a_verb_is_negated() -> None:
    done = perturb("The key is in the box and they are not at home.", 9, random.Random(0))
    assert done.kind == "negations"
    assert done.text == "The key is not in the box and they are at home."
    assert done.changes == (("is", "is not"), ("are not", "are"))


def test_where_there_is_no_verb_a_number_changes() -> None:
    done = perturb("Flour 500 g, sugar 99 g, founded 1998.", 9, random.Random(0))
    assert done.kind == "numbers"
    assert done.text == "Flour 900 g, sugar 49 g, founded 5998."
    assert all(a != b for a, b in done.changes)
    for digit in range(10):
        assert perturb(f"x {digit}0", 1, random.Random(0)).text not in (f"x {digit}0", "x 00")


@pytest.mark.parametrize(
    "text", ["Flour sugar butter eggs", "私の猫は毎朝起きて庭の魚を見ます", ""]
)
def test_what_cannot_be_turned_round_is_none(text: str) -> None:
    assert perturb(text, 3, random.Random(0)) is None


def test_such_a_document_is_unscorable_without_a_query() -> None:
    text = "Flour sugar butter eggs vanilla salt yeast milk cream"
    queries, score = _ask(_audit(), [], text)
    assert (queries, score.value) == ([], None)
    assert score.reason == "no word of it can be turned round"


@pytest.mark.parametrize("text", ["", "good", "... --- !!! ,,, ;;; ::: ??? ///"])
def test_too_short_costs_no_query(text: str) -> None:
    queries, score = _ask(_audit(), [], text)
    assert (queries, score.value) == ([], None)
    assert "fewer than 8 words" in score.reason


def test_a_long_document_is_cut_and_the_cut_counted() -> None:
    text = "good " * 1000
    (one, _), score = _ask(_audit(max_words=100), [Answer("Yes"), Answer("No")], text)
    assert one.prompt.count("good") == 100
    assert score.details["cut"] == 900
    assert score.details["perturbed"] == 6


def test_the_copy_depends_on_document_and_seed_alone() -> None:
    def copy(seed: int) -> str:
        return next(_audit(seed=seed).probe(Document("d", _TEXT)))[1].prompt

    assert copy(0) == copy(0)
    assert len({copy(seed) for seed in range(8)}) > 1


class _Writer(Copier):
    """Answers every request for a copy with the same text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[str] = []

    def generate(self, prompts, **options):
        self.asked += [prompt.messages[0].content for prompt in prompts]
        return [Generation(self.text, (), "stop", 1, 1) for _ in prompts]


def test_a_model_may_write_the_copy() -> None:
    written = _TEXT.replace("cheap", "dear").replace("old", "new")
    proxy = _Writer(f'"{written}"')
    (_, other), score = _ask(_audit(proxy, perturb="llm"), [Answer("Yes"), Answer("No")])
    assert written in other.prompt
    assert score.details["llm"] == 2
    assert "fallback" not in score.details
    assert "Replace 2 key adjectives or adverbs" in proxy.asked[0]
    assert _TEXT in proxy.asked[0]


@pytest.mark.parametrize("written", ["", _TEXT, "Here is your text: " + _TEXT, _OTHER])
def test_a_copy_that_is_none_falls_back_on_the_table(written: str) -> None:
    (_, other), score = _ask(_audit(_Writer(written), perturb="llm"), [Answer("Yes"), Answer("No")])
    assert score.details["fallback"] == 1
    assert score.details["antonyms"] == 2
    assert not written or f'"{written}"' not in other.prompt


@pytest.mark.parametrize("access", ["text", "gray"])
def test_a_member_scores_above_a_non_member(access: str) -> None:
    stored = {core(word.text) for word in split_words(_TEXT)}

    def target(query: Query) -> Answer:
        asked = query.prompt.split('"')[1]
        if {core(word.text) for word in split_words(asked)} == stored:
            return _odds("Yes", 0.9, 0.05)
        about = len({core(w.text) for w in split_words(asked)} & stored) > len(stored) // 2
        return _odds("No", 0.1, 0.8) if about else _odds("Yes", 0.5, 0.3)

    member, other = (_ask(_audit(access=access), target, text)[1] for text in (_TEXT, _OTHER))
    assert member.value > other.value
    assert other.value == 0


def test_requirements_follow_the_access() -> None:
    assert _audit().requires == {Capability.TEXT}
    assert _audit(access="gray").requires == {Capability.TOP_LOGPROBS}
    assert _audit().name == "dcmi"
    assert _audit().describe()["copy"].startswith("6%")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"access": "white"}, "access"),
        ({"perturb": "thesaurus"}, "perturb"),
        ({"share": 0}, "share"),
        ({"most": 0}, "most"),
        ({"prompt": "Is it?"}, "doc"),
        ({"max_words": 3}, "max_words"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        DcmiConfig(**options)
