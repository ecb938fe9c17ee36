"""A comparison from Python, without a folder and without a file."""

from __future__ import annotations

from typing import Any

import pytest

import ragwitness as rw
from ragwitness.comparison.task import CompareTask, named_pairs
from ragwitness.core.errors import InputError
from ragwitness.text.sample import load_sample

_RECORDS = [document.text for document in load_sample()[:12]]


def test_each_substitute_is_attacked() -> None:
    found = rw.compare(
        _RECORDS, methods=["redact"], utility=False, held_out=2, prompts=2, generator="repeat"
    )
    assert [one.name for one in found.variants] == ["origin", "redact"]
    assert found.records == 10
    assert found.background == 2
    assert found.questions == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"utility": False, "judge": "openai/x"}, "--judge is for measuring use"),
        ({"methods": ["sage"]}, "sage asks a chat model"),
        ({"substitutes": ["x"]}, "--with 'x' names no file"),
        ({"role": ["judge"]}, "--role 'judge' names no model"),
        ({}, "the corpus has no JSON lines with fields question"),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        CompareTask(_RECORDS, **given).order()


def test_what_follows_the_first_sign_is_the_value() -> None:
    assert named_pairs(["a=b=c"], "--with NAME=FILE", "file") == [("a", "b=c")]
    assert named_pairs(None, "--with NAME=FILE", "file") == []
