"""Questions by rule and by model, what answers to them are, and the score of IA."""

import itertools
import json
import random
import re

import pytest

from ragwitness.errors import InputError
from ragwitness.membership.interrogation import (
    Interrogation,
    InterrogationConfig,
    balanced_accuracy,
    score_of,
)
from ragwitness.membership.questions.base import (
    AnswerOutcome,
    WrittenCache,
    YesNoQuestion,
    query_text,
    read_outcome,
)
from ragwitness.membership.questions.chat import ChatWriter
from ragwitness.membership.questions.rules import (
    Rarity,
    RuleWriter,
    find_values,
    number_like,
    packaged_values,
)
from ragwitness.types import Answer, Capability, Document
from tests.support.copier import Copier
from tests.support.library import CLINIC, FERRY, Told, always, quoted, run

_FERRY = Document("ferry", FERRY)
_HARD = {
    "empty": "",
    "one word": "Marrowdale",
    "function words": "it is what it is and so it was",
    "marks": "... --- !!! ,,, ;;; :::",
    "one word again and again": "lighthouse " * 60,
    "unspaced": "私の猫は毎朝六時に起きて庭の魚を見ます。白い犬は川の近くで眠る。",
    "Cyrillic": "Паром отходит в девять часов, и капитан Квиллин держит бурую собаку Тамаринд.",
    "quotation marks": 'He said "the ferry" and "the harbour" and then "all 14 barges" were lost.',
    "a slot": "The prefix {prefix} and the {n} questions about {document} were written down.",
    "one long word": "x" * 900,
    "very long": " ".join([FERRY, CLINIC] * 60),
}


def test_values_are_numbers_names_and_content_words_but_no_sentence_openings() -> None:
    found = {v.text: v.kind for v in find_values("Yesterday Anna paid 14.50 crowns. Bob left it.")}
    assert found == {"Anna": "name", "paid": "word", "14.50": "number", "crowns": "word",
                     "left": "word"}  # fmt: skip
    for value in find_values(FERRY):
        assert FERRY[value.start : value.end] == value.text
        assert FERRY.split()[value.index].strip(".,") == value.text


@pytest.mark.parametrize("number", ["7", "42", "500", "1987", "0.05", "12:30", "1,250", "10", "0"])
def test_a_number_is_exchanged_for_one_of_its_form(number) -> None:
    rng = random.Random(0)
    drawn = {number_like(number, rng) for _ in range(50)}
    for other in drawn:
        assert re.sub(r"\d", "#", other) == re.sub(r"\d", "#", number)
        if number != "1987":
            zeros = [len(p) - len(p.rstrip("0")) for p in re.findall(r"\d+", number)]
            assert [len(p) - len(p.rstrip("0")) for p in re.findall(r"\d+", other)] == zeros
    assert number == "0" or len(drawn) > 3
    assert number != "1987" or all(1900 <= int(other) <= 2099 for other in drawn)


def test_packaged_values_are_many_and_always_the_same() -> None:
    assert len(packaged_values("name")) > 500
    assert len(packaged_values("word")) > 500
    assert packaged_values("word") == tuple(sorted(set(packaged_values("word"))))


def test_half_of_the_rule_questions_quote_the_document_and_half_change_one_fact() -> None:
    questions = RuleWriter(Copier()).yes_no(_FERRY, 30, random.Random(0))
    assert len({question.text for question in questions}) == len(questions) >= 20
    assert sum(question.expected for question in questions) == len(questions) // 2
    for question in questions:
        clause = quoted(question.text)
        assert (clause in FERRY) == question.expected
        if not question.expected:
            assert any(
                FERRY.find(clause.replace(word, question.hidden, 1)) >= 0
                for word in re.findall(r"[\w.:]+", clause)
            )


def test_rule_questions_depend_on_the_generator_alone() -> None:
    writer = RuleWriter(Copier())
    first = writer.yes_no(_FERRY, 10, random.Random(4))
    writer.yes_no(Document("other", CLINIC), 10, random.Random(4))
    assert writer.yes_no(_FERRY, 10, random.Random(4)) == first
    assert writer.yes_no(_FERRY, 10, random.Random(5)) != first


def test_a_thread_that_overtakes_does_not_exchange_the_words_of_a_document() -> None:
    class Overtaken(Rarity):
        """Its writer turns to another document while its text is compared."""

        @property
        def text(self) -> str:
            writer._last = Rarity(Copier(), CLINIC)
            return FERRY

        @text.setter
        def text(self, _text: str) -> None:
            pass

    writer = RuleWriter(Copier())
    expected = writer.summary(_FERRY)
    writer._last = Overtaken(Copier(), FERRY)
    assert writer.summary(_FERRY) == expected
    assert writer.summary(Document("clinic", CLINIC)) != expected


def test_the_summary_names_rare_words_in_order_and_never_the_answer() -> None:
    summary = RuleWriter(Copier(), topic_words=4).summary(_FERRY)
    words = re.findall(r"\w+", summary.removeprefix("On "))
    assert len(words) == 4
    places = [FERRY.index(word) for word in words]
    assert places == sorted(places)
    text = query_text("On Marrowdale, Tamarind:", "Where is it?", hidden="Marrowdale", request="Go")
    assert text == "On Tamarind: Where is it? Go"


@pytest.mark.parametrize("text", _HARD.values(), ids=_HARD)
def test_rules_write_what_they_can_about_any_text(text) -> None:
    writer, document = RuleWriter(Copier()), Document("d", text)
    questions = writer.yes_no(document, 8, random.Random(0))
    assert len(questions) <= 8
    assert all((quoted(q.text) in text) == q.expected for q in questions)
    for question in writer.open(document, 4, random.Random(0)):
        assert quoted(question.text).replace("____", question.answer, 1) in text
    assert text.strip() or not writer.summary(document)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Yes", "yes"),
        ("**No**, it does not.", "no"),
        ("<p>Yes</p>", "yes"),
        ("The answer is no.", "no"),
        ("I don\u2019t know.", "unknown"),
        ("There is no information about that.", "unknown"),
        ("No information is given.", "no"),
        ("The context does not mention a ferry.", "unknown"),
        ("I'm sorry, but I can't help with that.", "unknown"),
        ("Yes and no are both words; either.", "unreadable"),
        ("It could be yes or no.", "unreadable"),
        ("The ferry is brown.", "unreadable"),
        ("", "empty"),
    ],
)
def test_yes_no_answers_have_named_outcomes(text, outcome) -> None:
    assert read_outcome(Answer(text), yes_no=True).value == outcome


def test_errors_and_filters_are_outcomes_too() -> None:
    assert read_outcome(Answer("Yes", error="lost"), yes_no=True) is AnswerOutcome.FAILED
    filtered = Answer("", finish_reason="content_filter")
    assert read_outcome(filtered, yes_no=True) is AnswerOutcome.REFUSED


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Marrowdale", "text"),
        ("The patient did not know of the rash.", "text"),
        ("The context does not say which harbour it is.", "unknown"),
        ("I could not find that.", "unknown"),
        ("Unfortunately, I am not able to share it.", "unknown"),
    ],
)
def test_open_answers_have_named_outcomes(text, outcome) -> None:
    assert read_outcome(Answer(text), yes_no=False).value == outcome


def _literal(expected, outcomes, penalty):
    total, n = 0.0, 0
    for g, r in zip(expected, outcomes, strict=True):
        if r in ("refused", "unreadable", "empty", "failed"):
            continue
        n += 1
        if r == "unknown":
            total -= penalty
        elif r == ("yes" if g else "no"):
            total += 1
    return total / n if n >= len(outcomes) / 2 and n else None


def test_the_score_is_that_of_the_paper_over_readable_answers() -> None:
    names = ("yes", "no", "unknown", "refused", "empty")
    for expected in itertools.product([True, False], repeat=3):
        questions = [YesNoQuestion("?", e) for e in expected]
        for said in itertools.product(names, repeat=3):
            found = score_of(questions, [AnswerOutcome(name) for name in said], 5.0)
            assert found == _literal(expected, said, 5.0)
    assert score_of([], [], 5.0) is None


def test_one_answer_to_everything_earns_one_half_when_balanced() -> None:
    questions = [YesNoQuestion("?", True)] * 3 + [YesNoQuestion("?", False)]
    assert balanced_accuracy(questions, [AnswerOutcome.YES] * 4) == 0.5
    assert balanced_accuracy(questions[:3], [AnswerOutcome.YES] * 3) is None


def _reader_of(*texts: str):
    """Says yes to what it has read, no to what differs a little, else that it does not know."""

    def answer(query):
        clause = quoted(query.prompt)
        words = set(re.findall(r"\w+", clause))
        if any(clause in text for text in texts):
            return Answer("Yes.")
        close = any(len(words & set(re.findall(r"\w+", t))) > len(words) * 0.6 for t in texts)
        return Answer("No." if close else "I don't know.")

    return answer


def test_a_member_scores_higher_than_a_non_member() -> None:
    audit = Interrogation(Copier())
    assert audit.requires == {Capability.TEXT}
    assert audit.name == "interrogation"
    inside = run(audit, _FERRY, _reader_of(FERRY))
    outside = run(audit, Document("clinic", CLINIC), _reader_of(FERRY))
    assert inside.value == pytest.approx(1.0)
    assert outside.value == pytest.approx(-5.0)
    assert outside.details["unknown"] == outside.details["questions"]
    assert inside.details["score/balanced"] == 1.0
    assert outside.details["score/accuracy"] == 0.0
    assert {item.word for item in inside.evidence} == {"Yes", "No"}
    assert all(item.probability.low == 1.0 for item in inside.evidence)


def test_a_query_is_summary_question_and_request() -> None:
    config = InterrogationConfig(questions=6)
    queries = next(Interrogation(Copier(), config).probe(_FERRY))
    assert len(queries) == 6
    for query in queries:
        assert query.prompt.startswith("On ")
        assert query.prompt.endswith(config.request)
        assert query.top_logprobs == 0


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (Answer("", error="lost"), "failed"),
        (Answer("The sea is wide and blue."), "unreadable"),
        (Answer("  "), "empty"),
    ],
)
def test_fewer_than_half_readable_is_a_reason_and_a_count(answer, key) -> None:
    score = run(Interrogation(Copier()), _FERRY, always(answer))
    assert score.value is None
    assert key in score.reason
    assert score.details[key] == score.details["questions"]


def test_unreadable_answers_are_left_out_of_the_mean() -> None:
    turns = itertools.cycle([Answer("Yes"), Answer("", finish_reason="content_filter")])
    score = run(Interrogation(Copier()), _FERRY, lambda _query: next(turns))
    assert score.details["yes"] == score.details["refused"] == score.details["questions"] / 2
    assert 0 <= score.value <= 1


@pytest.mark.parametrize("text", ["", "Marrowdale", "it is what it is"])
def test_too_little_to_ask_about_is_unscorable_without_a_query(text) -> None:
    score = run(Interrogation(Copier()), Document("d", text), always(Answer("Yes")))
    assert score.value is None
    assert "questions can be written" in score.reason


def _chat(prompt: str) -> str:
    if prompt.startswith("Name what"):
        return '"ferries of Marrowdale"\nand more'
    if prompt.startswith("Write"):
        return (
            "Here are the questions:\n1. Does captain Quillington keep a dog?\n"
            "2) **Is Tamarind a cat?**\n- Does the text mention a barge?\n3. Is it late?\n"
        )
    return {"dog": "Yes.", "cat": "No", "late": "I don't know"}[
        next(word for word in ("dog", "cat", "late") if word in prompt.split("Text:")[0])
    ]


def test_a_chat_model_writes_and_answers_questions() -> None:
    model = Told(_chat)
    writer = ChatWriter(model, retries=1)
    questions = writer.yes_no(_FERRY, 3, random.Random(0))
    assert {(q.text, q.expected) for q in questions} == {
        ("Does captain Quillington keep a dog?", True),
        ("Is Tamarind a cat?", False),
    }
    # The opening line, the question about "the text", and one the model cannot answer; then the
    # first two of them once more.
    assert writer.unparsable(_FERRY) == 3 + 2
    assert writer.summary(_FERRY) == "ferries of Marrowdale"
    assert all(asked.endswith(f"Text:\n{FERRY}") for asked in model.asked)
    assert model.settings.count((0.7, 1)) == 1


def test_written_questions_are_paid_for_once(tmp_path) -> None:
    path = tmp_path / "written.jsonl"
    model = Told(_chat)
    first = ChatWriter(model, WrittenCache(path)).yes_no(_FERRY, 3, random.Random(0))
    spent = len(model.asked)
    again = ChatWriter(model, WrittenCache(path)).yes_no(_FERRY, 3, random.Random(0))
    assert again == first
    assert len(model.asked) == spent
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({row["key"] for row in rows}) == len(rows) == spent
    ChatWriter(model, WrittenCache(path)).yes_no(Document("x", CLINIC), 3, random.Random(0))
    assert len(model.asked) > spent


def test_a_torn_or_foreign_line_costs_one_output_and_no_more(tmp_path) -> None:
    path = tmp_path / "written.jsonl"
    cache = WrittenCache(path)
    cache.put("a", "one")
    path.write_text(path.read_text() + '["list"]\n{"key": "b", "te')
    cache = WrittenCache(path)
    assert (cache.get("a"), cache.get("b"), len(cache)) == ("one", None, 1)
    cache.put("c", "three")
    assert WrittenCache(path).get("c") == "three"
    assert WrittenCache.key("ab", "c", "d") != WrittenCache.key("a", "bc", "d")


def test_a_cache_that_cannot_be_used_is_named(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        WrittenCache(tmp_path)
    with pytest.raises(InputError, match="Cannot write"):
        WrittenCache(tmp_path / "no" / "such.jsonl").put("a", "b")


def test_a_long_document_is_shown_as_far_as_the_model_reads() -> None:
    model = Told(_chat, context_length=700)
    ChatWriter(model).summary(Document("d", _HARD["very long"]))
    shown = model.asked[0].split("Text:\n")[1]
    assert _HARD["very long"].startswith(shown)
    assert 100 < len(shown.split()) < 700


def test_a_model_that_writes_nothing_usable_leaves_the_document_unscorable() -> None:
    audit = Interrogation(Told(lambda _prompt: "As you wish."), InterrogationConfig(writer="chat"))
    score = run(audit, _FERRY, always(Answer("Yes")))
    assert score.value is None
    assert score.details["unparsable"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions": 0}, "questions"),
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": float("nan")}, "penalty"),
        ({"fewest": 31}, "fewest"),
        ({"writer": "me"}, "writer"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        InterrogationConfig(**options)
