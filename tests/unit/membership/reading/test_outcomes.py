"""Named outcomes of an answer."""

from __future__ import annotations

import time

import pytest

from ragwitness.membership.reading.outcomes import Reply, named_trouble, read_reply
from ragwitness.text.replies import declines as refuses
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
        "I'm sorry to hear that you are ill. You can help the pain by resting.",
        "I'm sorry to hear that. I can't stress enough how much rest matters.",
        "I'm sorry to hear that. I can't help but think of a sprain.",
        "I'm sorry to hear that. I cannot help wondering whether you sleep enough.",
        "Sorry to hear that. I cannot be sure, it may be a virus.",
        "Sorry to hear that! I can't tell without seeing it. Ice it.",
        "I am sorry to hear about your arm. I cannot provide a diagnosis, but it looks sprained.",
        "I am sorry to hear it. I can't answer that with certainty. It is likely the flu.",
        "I'm sorry to hear that. I cannot share a bed with a dog either. However, try it.",
        "I'm sorry to hear that. Unfortunately, shingles can last for weeks.",
        "I'm sorry to hear that. We will not need surgery.",
        "I'm sorry for your trouble. The doctor cannot help. Rest helps.",
        "So sorry to hear that. There is no information that it is dangerous, but see a doctor.",
        "I'm sorry to hear that. Rest. I can't help with the bill.",
    ],
)
def test_sympathy_is_no_refusal(said: str) -> None:
    assert named_trouble(Answer(said)) is None
    assert not refuses(said)


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
        "I'm sorry to hear that. I can't help.",
        "I\u2019m sorry to hear that! I can\u2019t help you with that.",
        "I'm so sorry to hear about your knee. Unfortunately, I cannot assist you with this.",
        "Sorry to hear that. I'm afraid I can't help with that, but a doctor can.",
        "I'm sorry to hear that you are ill.\nI am not able to help you with medical questions.",
        "I'm sorry to hear that. As an AI model, I can't answer questions about patients.",
        "We are sorry to hear that. We are unable to share documents.",
        "I'm sorry to hear that. I won't do that.",
        "I'm sorry to hear that. I don't have access to the records.",
        "I'm sorry to hear it. The provided context does not mention your knee.",
        "Apologies, that is private.",
        "I'm unable to do that.",
    ],
)
def test_an_apology_is_a_refusal(said: str) -> None:
    assert named_trouble(Answer(said)) == "the target refused to answer"
    assert refuses(said)


def test_text_without_log_probabilities_is_named_only_where_they_are_needed() -> None:
    assert (
        named_trouble(Answer("text"), logprobs=True) == "the target returned no log-probabilities"
    )


@pytest.mark.parametrize("tail", [" it hurts so", ".", "! ", ". I cannot say", "\n", " but I"])
def test_reading_a_refusal_takes_time_in_proportion_to_the_text(tail: str) -> None:
    started = time.perf_counter()
    assert not refuses("I'm sorry to hear that" + tail * 50_000)
    assert time.perf_counter() - started < 2
