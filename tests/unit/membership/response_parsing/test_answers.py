"""The one reader: what is stripped, what an answer is, and who is asked again with room."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from ragwitness.core.types import Answer, Query, TokenLogprob
from ragwitness.membership.response_parsing import replies as reading
from ragwitness.membership.response_parsing.probabilities import read_yes_no
from ragwitness.membership.response_parsing.replies import (
    AnswerOutcome,
    answer_tokens,
    read_answer,
    read_continuation,
    spelt,
    with_room,
)

_BEFORE = (
    "Patient: Dear doctor, I took my pills in the morning and felt worse. In the evening I took"
)
_QUESTION = f"Complete the paragraph.\n\n{_BEFORE}"
_ECHO = " ".join(_BEFORE.split())


def _said(*names: str, finish: str = "stop") -> Answer:
    tokens = tuple(TokenLogprob(name, math.log(0.5), ((name, math.log(0.5)),)) for name in names)
    return Answer("".join(names), tokens, finish)


def _spoken(text: str, finish: str = "stop") -> Answer:
    """An answer whose tokens are its words, each with the blank before it."""
    first, *rest = text.split(" ")
    return _said(first, *(f" {word}" for word in rest), finish=finish)


@pytest.mark.parametrize(
    ("said", "left", "removed"),
    [
        (("ib", "uprofen", " for"), "ibuprofen for", ()),
        (("<think>", "\n\n", "</think>", "\n\n", "ib"), "ib", ("thought",)),
        (("<think>", "No", " idea", ".", "</think>", "Yes"), "Yes", ("thought",)),
        (("Let", " me", " see", "</think>", "Yes"), "Yes", ("thought",)),
        (("[THINK]", "hm", "[/THINK]", "Yes"), "Yes", ("thought",)),
        (("<seed:think>", "No", "</seed:think>", "Yes"), "Yes", ("thought",)),
        (("<|START_THINKING|>", "No", "<|END_THINKING|>", "Yes"), "Yes", ("thought",)),
        (("<|channel|>", "analysis", "<|message|>", "No", "<|end|>", "<|start|>", "assistant",
          "<|channel|>", "final", "<|message|>", "Yes"), "Yes", ("thought",)),
        (("analysis", "We", " see", ".", "assistant", "final", "Yes"), "Yes", ("thought",)),
        (("Okay", ". ", "<think>", "No", "</think>", "Yes"), "Yes", ("thought",)),
        (("Yes", "<think>", "No", "</think>"), "Yes", ("thought",)),
        (("see", " [reason]", " in", " it"), "see [reason] in it", ()),
        (("1. ", "a", " 2. ", "b"), "1. a 2. b", ()),
        (("**", "ib", "uprofen", "**", " for"), "ibuprofen for", ("markdown",)),
        (("# ", "Yes"), "Yes", ("markdown",)),
        (("> ", "Yes"), "Yes", ("markdown",)),
        (("\\boxed{", "Yes", "}"), "Yes", ("markdown",)),
        (("\\[", "Mask", "\\_", "1", "\\]", ":", " x"), "[Mask_1]: x", ("markdown",)),
        (("<p>", "Yes", "</p>"), "Yes", ("markdown",)),
        (("```text\n", "ib", "\n```"), "ib", ("fence",)),
        (('{"answer": "', "ib", '"}'), "ib", ("json",)),
        (("```json\n", '{"answer": "', 'a \\"b\\"', '", "sources": [1]}', "\n```"), 'a "b"',
         ("fence", "json")),
        (('{"answer": "', "ib", " for"), "ib for", ("json",)),
        (('{"answer": "', "a", "\\n", "b", '"}'), "a\nb", ("json",)),
        (('{"Mask_1": "', "ib", '"}'), '{"Mask_1": "ib"}', ()),
        (("- ", "ib", " for"), "ib for", ("item",)),
        (("1. ", "Yes"), "Yes", ("item",)),
        (("1. ", "a", "\n2. ", "b"), "1. a\n2. b", ()),
        (("…ib", " for"), "ib for", ("signs",)),
        (("...", " ib"), "ib", ("signs",)),
        (("\u2705 ", "Yes"), "Yes", ("signs",)),
        (('"', "ib", " for", '"'), "ib for", ("quotation",)),
        (('"', "ib", " for"), "ib for", ("quotation",)),
        (('"', "ib", '"', " he", " said"), '"ib" he said', ()),
        (("{[Response]: '", "ib", " for", "'}"), "ib for", ("quotation", "preamble")),
        (("Sure", "!", " Here", " it", " is", ":", "\n\n", '"', "ib", '"'), "ib",
         ("quotation", "preamble")),
        (("Here", " are", " the", " answers", ":", "\n", "[Mask_1]", ": x"), "[Mask_1]: x",
         ("preamble",)),
        (("  \n", "ib", " "), "ib", ()),
        (("<|im_start|>", "ib", "</s>"), "ib", ()),
    ],
    ids=lambda value: repr("".join(value))[:40] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_what_stands_around_an_answer_is_stripped_and_its_tokens_with_it(
    said: tuple[str, ...], left: str, removed: tuple[str, ...]
) -> None:
    found = read_answer(_said(*said))
    assert found.outcome is AnswerOutcome.ANSWERED
    assert found.text == left
    assert set(found.removed) == set(removed)
    assert "".join(token.token for token in found.tokens) == left
    # The list of alternatives calls what is left of a token by the same name.
    assert all(token.top[0][0] == token.token for token in found.tokens)
    # And without log-probabilities the same is left.
    assert read_answer(replace(_said(*said), tokens=None)).text == left


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (Answer("ibuprofen"), AnswerOutcome.ANSWERED, None),
        (Answer("I don't know."), AnswerOutcome.DECLINED, reading.DECLINED),
        (Answer("Based on the context, I don't know."), AnswerOutcome.DECLINED, reading.DECLINED),
        (Answer("<think>\nhm</think>Ich weiß es nicht."), AnswerOutcome.DECLINED, reading.DECLINED),
        (Answer("Sorry, I can't help with that."), AnswerOutcome.DECLINED, reading.DECLINED),
        (Answer('{"answer": "I do not know."}'), AnswerOutcome.DECLINED, reading.DECLINED),
        (Answer("I cannot help.", finish_reason="content_filter"), AnswerOutcome.DECLINED,
         reading.DECLINED),
        (Answer("Dear", finish_reason="content_filter"), AnswerOutcome.FAILED, reading.FILTERED),
        (Answer("", finish_reason="content_filter"), AnswerOutcome.FAILED, reading.FILTERED),
        (Answer("", error="timed out"), AnswerOutcome.FAILED, "timed out"),
        (Answer(" \n"), AnswerOutcome.FAILED, reading.NOTHING),
        (Answer("<think>\nOkay, let me", finish_reason="length"), AnswerOutcome.FAILED,
         reading.THINKING),
        (Answer("<think>hm</think>"), AnswerOutcome.FAILED, reading.NOTHING),
        (Answer("<!DOCTYPE html><p>No server</p>"), AnswerOutcome.FAILED,
         "the target answered with a web page"),
        (Answer(_QUESTION), AnswerOutcome.FAILED, reading.REPEATED),
    ],
)  # fmt: skip
def test_an_answer_is_answered_declined_or_failed(
    answer: Answer, outcome: AnswerOutcome, reason: str | None
) -> None:
    found = read_answer(answer, _QUESTION)
    assert (found.outcome, found.reason) == (outcome, reason)


def test_a_document_that_reads_like_a_decline_is_none() -> None:
    said = "I am unable to sleep since Marrowdale"
    assert read_answer(Answer(said), expected=said).outcome is AnswerOutcome.ANSWERED
    assert read_answer(Answer(said), expected="something else").outcome is AnswerOutcome.DECLINED


@pytest.mark.parametrize(
    "text",
    [
        f"{_ECHO} ibuprofen for it",
        f"Here is the completed paragraph:\n\n{_ECHO} ibuprofen for it",
        f"{_QUESTION} ibuprofen for it",
        "In the evening I took ibuprofen for it",
        "I took ibuprofen for it",
        f"{_ECHO.replace('pills', 'tablets')} ibuprofen for it",
        f'"{_ECHO} ibuprofen for it"',
        "ibuprofen for it",
        f"<think>\n\n</think>\n\n{_ECHO} ibuprofen for it",
    ],
)
def test_an_echo_is_taken_off_wherever_it_begins(text: str) -> None:
    for found in (
        read_continuation(_spoken(text), _QUESTION),
        read_answer(Answer(text), _QUESTION),
    ):
        assert found.text == "ibuprofen for it"
        assert found.outcome is AnswerOutcome.ANSWERED


@pytest.mark.parametrize(
    ("text", "finish", "outcome", "left"),
    [
        ("Patient: Dear doctor, I took my", "length", AnswerOutcome.FAILED, None),
        (_ECHO, "length", AnswerOutcome.FAILED, None),
        (_ECHO, "stop", AnswerOutcome.ANSWERED, ""),
        # It leaves the text before its end: what follows is not where the text goes on.
        ("Patient: Dear doctor, I took my advice and went home to see a friend of mine there",
         "stop", AnswerOutcome.ANSWERED, ""),
        ("I don't know.", "stop", AnswerOutcome.DECLINED, "I don't know."),
    ],
)  # fmt: skip
def test_an_answer_that_never_comes_to_the_texts_end(
    text: str, finish: str, outcome: AnswerOutcome, left: str | None
) -> None:
    found = read_continuation(_spoken(text, finish), _BEFORE)
    assert found.outcome is outcome
    assert left is None or found.text == left


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("Here is the", True),
        ("Sure! Here is the completed paragraph:", True),
        ("Patient: Dear", True),
        ("my pills in the morning", True),
        ("<think>\nOkay, let", True),
        ("", True),
        ("ibuprofen, but it did not", False),
        ("The ferry leaves", False),
    ],
)
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_an_answer_that_was_cut_before_its_point_is_asked_for_again(
    said: str, again: bool, finish: str
) -> None:
    queries = [Query("q", max_tokens=3, seed=7)]
    asking = with_room(queries, [_BEFORE], [40])
    assert next(asking) == queries
    answer = Answer(said, finish_reason=finish)
    if not again or finish == "stop":
        with pytest.raises(StopIteration) as stop:
            asking.send([answer])
        assert stop.value.value == [answer]
        return
    (longer,) = asking.send([answer])
    thinks = said.startswith("<think>") or not said  # some servers hide the thought
    assert longer == replace(queries[0], max_tokens=43 + 1024 * thinks)
    with pytest.raises(StopIteration) as stop:
        asking.send([Answer("ibuprofen")])
    assert stop.value.value == [Answer("ibuprofen")]


def test_errors_and_what_could_be_read_are_not_asked_again() -> None:
    lost = Answer("", error="lost", finish_reason="length")
    for answer, read in ((lost, None), (Answer("Yes", finish_reason="length"), lambda _: True)):
        asking = with_room([Query("q")], [_BEFORE], [9], read)
        next(asking)
        with pytest.raises(StopIteration):
            asking.send([answer])


@pytest.mark.parametrize(
    "names",
    [
        ["\u2581ib", "uprofen", "\u2581f\u00fcr"],
        ["\u0120ib", "uprofen", "\u0120f\u00c3\u00bcr"],
        [" ib", "uprofen", " f", "<0xC3>", "<0xBC>", "r"],
        ["bytes:\\x20ib", "uprofen", " f", "bytes:\\xc3", "bytes:\\xbc", "r"],
        ["<|im_start|>", " ib", "uprofen", " f\u00fcr", "</s>"],
        ["<s>", "[BOS]", " ib", "uprofen", " f\u00fcr"],
    ],
)
def test_tokens_spell_the_same_in_every_tokenizer(names: list[str]) -> None:
    tokens = [TokenLogprob(name, -0.1, ((name, -0.1),)) for name in names]
    assert "".join(token.token for token in spelt(tokens)) == " ibuprofen f\u00fcr"
    assert read_answer(Answer("ibuprofen f\u00fcr", tuple(tokens))).text == "ibuprofen f\u00fcr"


@pytest.mark.parametrize(
    "text",
    ['"' + "a " * 20_000, "Sure! " * 6_000, "the context not " * 8_000, "a" * 40_000, "*a" * 15_000,
     "<think>" * 6_000, '{"answer": "' + '\\"' * 15_000, "\n" * 40_000 + "x", "i not " * 6_000],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_hostile_answers_are_read_in_time(text: str) -> None:
    started = time.process_time()
    read_continuation(Answer(text, finish_reason="length"), _QUESTION)
    read_yes_no(Answer(text), gray=False)
    assert time.process_time() - started < 8


def test_tokens_around_the_text_are_left_out() -> None:
    one, two, yes = (TokenLogprob(name, -0.1) for name in ("<think>", "no idea", "Yes"))
    end, more = TokenLogprob("<|eot_id|>", -0.1), TokenLogprob(" truncated", -0.1)
    assert answer_tokens("Yes", (one, two, TokenLogprob("</think>", -0.1), yes, end)) == (yes,)
    assert answer_tokens("Yes", (yes, more)) == (yes,)
    assert answer_tokens("Yes!", (yes, end)) == (yes,)
    assert answer_tokens("Yes", (TokenLogprob("Yesterday", -0.1), yes)) == (yes,)
    assert answer_tokens("Yes", (TokenLogprob("Yesterday", -0.1), more)) is None
    assert answer_tokens("es", (yes,)) is None
    assert read_answer(Answer("Yes", (more,))).tokens == ()
