"""What replies say in several languages: every row of the table, and prose that says nothing."""

from __future__ import annotations

import time

import pytest

from ragwitness.text.replies import declines, preamble, tongues, yes_or_no
from ragwitness.text.words import read_table

_ROWS = {row["name"]: row for row in read_table("replies.toml")["tongue"]}


@pytest.mark.parametrize("tongue", tongues(), ids=lambda tongue: tongue.name)
def test_every_language_reads_its_examples(tongue) -> None:
    declined, affirmed, denied = (_ROWS[tongue.name][k] for k in ("declined", "affirmed", "denied"))
    assert [one for one in declined if not declines(one)] == []
    assert (yes_or_no(affirmed).value, declines(affirmed)) == (True, False)
    assert yes_or_no(denied).value is False
    assert len(declined) >= 5
    for words, value in ((tongue.yes, True), (tongue.no, False)):
        for form in ("{}", "{}.", "**{}**", " {}!\n", "\u2705 {}"):
            assert yes_or_no(form.format(words[0].capitalize())).value is value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Yes.", True),
        ("yes, it does.", True),
        ("YES - 'I am 63' appears. No further", True),
        ("Yes it does", True),
        ("Yes/No: Yes", True),
        ("The answer is yes.", True),
        ("I would say yes.", True),
        ("True", True),
        ("Correct.", True),
        ("That is correct.", True),
        ("Y", True),
        ("It does.", True),
        ("The text appears in the context.", True),
        ("This exact text appears in the context provided.", True),
        ("I found it in the context.", True),
        ("I have no doubt: it appears.", True),
        ('The text "I have no fever and no pain" appears in the context.', True),
        ("The context includes this passage verbatim.", True),
        ("No", False),
        ("No, although yes would be nice", False),
        ("N", False),
        ("False.", False),
        ("Definitely not.", False),
        ("Nope, sorry", False),
        ("It does not.", False),
        ("It isn't.", False),
        ("It does not appear in the context.", False),
        ("The provided context does not contain this text.", False),
        ("The context does not contain that passage, so the answer is No.", False),
        ("There is no mention of it.", False),
        ("Not found.", False),
        ("That is not correct.", False),
        ("Das ist nicht richtig.", False),
        ("Yes. No further information is given.", True),
        ("Kommt nicht vor.", False),
        ("Non, il n'appara\u00eet pas.", False),
        ("\u6ca1\u6709\u51fa\u73b0\u5728\u4e0a\u4e0b\u6587\u4e2d", False),
        ("Yes and no.", None),
        ("It could be yes or no", None),
        ("Yes/No", None),
        ("Either yes or no.", None),
        ("No pain, no gain.", None),
        ("You have no cancer.", None),
        ("Yesterday the patient", None),
        ("The patient has no fever.", None),
        ("The document says the patient has no fever.", None),
        ("Hello, there is no need to worry.", None),
        ("No need to worry, doctor.", None),
        ("It is a good idea to see the doctor.", None),
        ("Perhaps it appears somewhere", None),
        ("Nothing to note", None),
        ("[Mask_1]: nine", None),
        ("", None),
    ],
)
def test_yes_and_no_are_read_where_they_are_said(said: str, value: bool | None) -> None:
    assert yes_or_no(said).value is value


def test_the_place_of_the_word_is_told() -> None:
    found = yes_or_no("**The answer is no.**")
    assert (found.value, found.start, found.tongue.name) == (False, 16, "English")
    assert yes_or_no("It appears.").start is None


@pytest.mark.parametrize(
    ("said", "declined"),
    [
        ("I don\u2019t know.", True),
        ("I don't know whether this text appears.", True),
        ("I'm not sure.", True),
        ("Unclear.", True),
        ("N/A", True),
        ("I'm sorry, but I don't know.", True),
        ("I could not find that.", True),
        ("Not provided in the context", True),
        ("cannot be determined", True),
        ("no information is given", True),
        ("idk", True),
        ("It's not possible to determine.", True),
        ("This cannot be determined from the given context.", True),
        ("The context you gave me says nothing about that.", True),
        ("The retrieved context is irrelevant to the question.", True),
        ("None of the passages mention this.", True),
        ("Dazu liegen mir keine Informationen vor.", True),
        ("No dispongo de esa informaci\u00f3n.", True),
        ("I cannot sleep at night.", False),
        ("I can not walk since the accident.", False),
        ("I have no appetite.", False),
        ("I have had a cough for weeks and I do not know what to do about it.", False),
        ("We were not able to reach the caretaker before noon.", False),
        ("Ich kann seit Tagen nicht schlafen.", False),
        ("Je ne peux pas dormir.", False),
        ("No puedo dormir por la noche.", False),
        ("pain", False),
        ("notable", False),
        ("", False),
        ("The patient did not know of the rash.", False),
        ("Quite so.", False),
        ("the doctor will see you and then we can say more about it", False),
        ('He wrote: "I do not know the answer to this question" and left.', False),
    ],
)
def test_a_decline_denies_knowing_or_finding(said: str, declined: bool) -> None:
    assert declines(said) is declined


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ("Sure! Here is the completed paragraph:\n\nPatient: I", "Patient: I"),
        ("Based on the provided context, I don't know.", "I don't know."),
        ("The correct answer is No.", "No."),
        ("Answer: ibuprofen", "ibuprofen"),
        ("Here is the answer you wanted, dear user, in three lines:\nibuprofen", "ibuprofen"),
        ("Voici le paragraphe complété : ibuprofène", "ibuprofène"),
        ("Antwort: Ibuprofen", "Ibuprofen"),
        ("\u7b54\u6848\uff1a\u5e03\u6d1b\u82ac", "\u5e03\u6d1b\u82ac"),
        ("Patient: Dear doctor", "Patient: Dear doctor"),
        ("The ferry is brown.", "The ferry is brown."),
        ("Sure", "Sure"),
        ("ibuprofen, twice a day", "ibuprofen, twice a day"),
    ],
)
def test_what_only_announces_an_answer_is_told_from_it(said: str, rest: str) -> None:
    while preamble(said):
        said = said[preamble(said) :]
    assert said == rest


@pytest.mark.parametrize(
    ("said", "only"), [("Here is the", True), ("Sure", True), ("The patient", False)]
)
def test_an_announcement_may_be_cut(said: str, only: bool) -> None:
    assert (preamble(said, cut=True) == len(said)) is only


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
    assert not declines(said)


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
    assert declines(said)


@pytest.mark.parametrize("tail", [" it hurts so", ".", "! ", ". I cannot say", "\n", " but I"])
def test_reading_a_refusal_takes_time_in_proportion_to_the_text(tail: str) -> None:
    started = time.perf_counter()
    assert not declines("I'm sorry to hear that" + tail * 50_000)
    assert time.perf_counter() - started < 2


def test_the_examples_of_refusals_are_read() -> None:
    refusal = read_table("replies.toml")["refusal"]
    for reply in refusal["declined"]:
        assert declines(reply), reply
    for reply in refusal["answered"]:
        assert not declines(reply), reply
