"""What real models answered to the questions of the audits, read again: see experiments/real."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.real.collect import LANGUAGES, PROMPTS
from experiments.real.read import cases, load_rows, summary

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).with_name("answers.jsonl.xz")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return load_rows(CORPUS)


def test_every_prompt_and_language_is_there_shown_and_not(rows: list[dict[str, Any]]) -> None:
    cells = Counter(
        (one["template"], one["language"], one["shown"]) for one in rows if one["model"] == "qwen05"
    )
    assert len(cells) == len(PROMPTS) * len(LANGUAGES) * 2
    assert min(cells.values()) >= 20


# What was read when the corpus was made, less what a better reader may lose elsewhere.
@pytest.mark.parametrize(
    ("method", "said", "share", "auc"),
    [
        ("runon", 44, 0.95, 0.9),
        ("min-k", 52, 0.95, 0.9),
        ("s2mia", 33, 0.75, 0.75),
        ("mba", 5, 1, 0.6),
    ],
)
def test_what_was_said_is_read(
    rows: list[dict[str, Any]], method: str, said: int, share: float, auc: float
) -> None:
    mine = [one for one in rows if one["model"] == "qwen05"]
    found = summary([case for _, case in cases(mine, method)])
    assert (found["shown"], found["hidden"], found["said"]) == (60, 60, said)
    assert found["read"] >= share * said
    assert found["auc"] >= auc
