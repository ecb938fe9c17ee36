"""Named outcomes of an answer."""

from __future__ import annotations

import pytest

from ragwitness.membership.outcomes import Reply, named_trouble, read_reply
from ragwitness.types import Answer


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("Yes", Reply.YES),
        (" yes, it does.", Reply.YES),
        ("**No.** It is not there", Reply.NO),
        ("No, although yes would be nice", Reply.NO),
        ("I don\u2019t know.", Reply.UNKNOWN),
        ("Unclear", Reply.UNKNOWN),
        ("The answer is yes.", Reply.YES),
        ("It could be yes or no", Reply.UNREADABLE),
        ("The patient took aspirin", Reply.UNREADABLE),
        ("Nothing to note", Reply.UNREADABLE),
        ("", Reply.UNREADABLE),
    ],
)
def test_read_reply(said: str, reply: Reply) -> None:
    assert read_reply(said) is reply


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (Answer("fine"), None),
        (Answer("  "), "the target answered with nothing"),
        (Answer("", error="timed out"), "timed out"),
        (Answer("Sorry, I can't help with that"), "the target refused to answer"),
        (Answer("text", finish_reason="content_filter"), "the target refused to answer"),
    ],
)
def test_named_trouble_of_text(answer: Answer, trouble: str | None) -> None:
    assert named_trouble(answer) == trouble


@pytest.mark.parametrize(
    "said",
    [
        "I am sorry to hear that your knee hurts.",
        "I\u2019m so sorry to hear about the rash",
        "Sorry to hear that you cannot sleep.",
        "We are very sorry to learn of it.",
        "I'm sorry that you're in pain, but it is rarely dangerous.",
        "Sorry for your loss.",
        "I am sorry about your dog, but you can give it aspirin.",
    ],
)
def test_sympathy_is_no_refusal(said: str) -> None:
    assert named_trouble(Answer(said)) is None


@pytest.mark.parametrize(
    "said",
    [
        "Sorry",
        "Sorry, I can't.",
        "I am sorry.",
        "I'm so sorry, but I cannot say.",
        "I'm sorry for the confusion, but that is not in the context.",
        "Sorry to disappoint you.",
        "I'm sorry to hear that, but I can't help with that.",
        "I am sorry that you feel this way, but I\u2019m unable to give the help that you need.",
        "Apologies, that is private.",
        "I'm unable to do that.",
    ],
)
def test_an_apology_is_a_refusal(said: str) -> None:
    assert named_trouble(Answer(said)) == "the target refused to answer"


def test_text_without_log_probabilities_is_named_only_where_they_are_needed() -> None:
    assert (
        named_trouble(Answer("text"), logprobs=True) == "the target returned no log-probabilities"
    )
