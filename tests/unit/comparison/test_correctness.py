"""Judged correctness: the formula, and every way in which a judge can fail."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ragwitness.comparison.usefulness import BOTH_EMPTY, Correctness, JudgedAnswer
from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Document, Query, Score
from tests.support.library import run


class Flat:
    """Says that any two texts have a cosine of .6."""

    name = "flat"

    def embed(self, texts):
        return np.array([[1.0, 0.0], [0.6, 0.8]], np.float32)[: len(texts)]


class Judge:
    """Answers the i-th query with the i-th text."""

    def __init__(self, *says: object) -> None:
        self.says = [one if isinstance(one, Answer) else Answer(_text(one)) for one in says]
        self.prompts: list[str] = []

    def __call__(self, query: Query) -> Answer:
        self.prompts.append(query.prompt)
        return self.says[len(self.prompts) - 1]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _judge(judge: Judge, case: JudgedAnswer | None = None) -> Score:
    case = case or JudgedAnswer("What {is} it?", "It is blue. It flies.", "It is blue. It is old.")
    audit = Correctness({"1": case}, Flat())
    [document] = audit.documents()
    return run(audit, document, judge)


def test_the_formula() -> None:
    judge = Judge(["blue", "flies"], ["blue", "old"], [True, False], [True, False])
    score = _judge(judge)
    assert score.details["statements F1"] == pytest.approx(1 / (1 + 0.5 * 2))
    assert score.value == pytest.approx(0.75 * 0.5 + 0.25 * 0.6)
    # Each text's statements are held against the other text.
    assert "It flies." in judge.prompts[0]
    assert "old" in judge.prompts[1]
    assert "It is old." in judge.prompts[2]
    assert "1. blue\n2. flies" in judge.prompts[2]
    assert "It flies." in judge.prompts[3]


def test_one_text_without_statements() -> None:
    judge = Judge([], ["blue", "old"], [False, False])
    score = _judge(judge)
    assert len(judge.prompts) == 3
    assert score.details["statements F1"] == 0
    assert score.details["false negatives"] == 2


def test_an_empty_answer_has_no_likeness() -> None:
    score = _judge(Judge([], ["old"], [False]), JudgedAnswer("q", "  ", "It is old."))
    assert score.value == 0


def test_words_around_the_list_do_not_matter() -> None:
    said = 'Sure!\n```json\n["blue"]\n```'
    assert _judge(Judge(said, said, [True], "[true]")).value == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (([], []), BOTH_EMPTY),
        ((["a"], "I would rather not."), "not the JSON list"),
        ((["a"], '["a", 3]'), "not the JSON list"),
        ((["a"], '["a"'), "not the JSON list"),
        ((["a"], Answer('["a"', finish_reason="length")), "cut off"),
        ((["a"], Answer("", error="HTTP 500")), "did not answer: HTTP 500"),
        (
            (Answer("", error="422: for people: It is blue. It flies."), ["b"]),
            "did not answer: 422: for people: [what was sent]",
        ),
        ((["a"], ["b"], [True, False], [True]), "not the JSON list"),
        ((["a"], ["b"], ["yes"], [True]), "not the JSON list"),
        ((["a"], ["b"], Answer("", error="timeout"), [True]), "did not answer: timeout"),
    ],
)
def test_what_cannot_be_judged_has_its_reason(says: tuple[object, ...], reason: str) -> None:
    score = _judge(Judge(*says))
    assert score.value is None
    assert reason in (score.reason or "")


def test_a_case_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no case 'x'"):
        next(Correctness({}, Flat()).probe(Document("x", "")))
