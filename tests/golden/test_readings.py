"""Texts and answers of every script are read as by the rules that ``READING`` names.

Scores of different rules do not mix. A change of rules that is meant raises ``READING`` in
``ragwitness.core.types``; then: ``python -m tests.golden.test_readings renew``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faces_audit import SCRIPTS, records
from ragwitness.core.types import READING, Answer
from ragwitness.membership.methods.mba.response_parsing import normalise, read_answers
from ragwitness.membership.response_parsing.probabilities import read_yes_no
from ragwitness.membership.response_parsing.replies import read_answer
from ragwitness.text import words
from ragwitness.text.replies import plain_word, shape_of

_KEPT = Path(__file__).with_name("readings.json")
_ANSWERS = (
    "Yes, it does.",
    "No. The context does not mention it.",
    "<think>Yes or no?</think>\n\n**No**",
    "I'm sorry, but I cannot help with that.",
    'The correct answer is "{}".',
    "Sure! Here it is:\n\n{}",
    "[Mask_1]: {}\n[Mask_2]: copper",
    "Ich weiß nicht.",
    "是的。",
    "いいえ。",
    "Нет, в тексте этого нет.",
    "لا أعرف.",
)


def _readings(text: str) -> Iterator[object]:
    """Yield all that scores rest on: words, their forms, and what answers say."""
    yield [tuple(word) for word in words.split_words(text)]
    yield [words.plain_tokens(text), words.plain_tokens(text), words.content_tokens(text)]
    yield [words.as_read(text), words.canonical_text(text)]
    yield [(plain_word(word), shape_of(word)) for word in text.split()]
    for form in _ANSWERS:
        answer = Answer(form.format(text[:120]))
        reading = read_answer(answer, f"Is this so: {text}", text)
        yield [reading.text, reading.outcome, reading.reason]
        yes_no = read_yes_no(answer, "Yes or no?", gray=False)
        yield [yes_no.text, repr(yes_no)]
        yield [read_answers(answer.text, 2), normalise(answer.text)]


def digest(script: str) -> str:
    """Return a hash of the readings of a script's text and answers."""
    (text,) = records(SCRIPTS[script], 1, 6)
    readings = json.dumps(list(_readings(text)), ensure_ascii=False, default=str)
    return hashlib.sha256(readings.encode()).hexdigest()[:16]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_read_by_the_rules_that_reading_names(script: str) -> None:
    kept = json.loads(_KEPT.read_text(encoding="utf-8"))
    assert kept["reading"] == READING, "renew this test's file"
    assert digest(script) == kept["digests"][script], "raise READING, then renew this test's file"


if __name__ == "__main__" and "renew" in sys.argv:
    before = json.loads(_KEPT.read_text(encoding="utf-8")) if _KEPT.exists() else {}
    digests = {script: digest(script) for script in SCRIPTS}
    if before.get("reading") == READING and before["digests"] != digests:
        sys.exit("Other readings: raise READING in ragwitness.core.types first.")
    _KEPT.write_text(json.dumps({"reading": READING, "digests": digests}, indent=1) + "\n")
