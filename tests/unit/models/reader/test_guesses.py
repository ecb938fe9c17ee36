from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragwitness.models.base import ChatPrompt
from ragwitness.models.reader import model
from ragwitness.models.reader.model import Reader, guess
from tests.unit.models.models_fakes import conversation


@pytest.fixture(scope="module")
def packaged() -> Reader:
    return Reader.load()


@pytest.fixture(scope="module")
def prompts(long_context: str) -> list[ChatPrompt]:
    """A copier's questions: what comes next in the context; of several lengths."""
    words = long_context.split()
    return [
        conversation(" ".join(words[:size]), " ".join(words[start : start + 12]))
        for size in (70, 160, 333)
        for start in (3, 20, 40)
    ]


@pytest.mark.parametrize(
    ("said", "most", "expected"),
    [
        ([5, 6, 7, 8, 6], 2, [7, 8]),
        ([5, 6, 7, 8, 6], 9, [7, 8, 6]),
        ([1, 2, 9, 3, 2, 8, 1, 2], 1, [9]),  # the longer match, though the other is later
        ([3, 2, 9, 4, 2, 8, 1, 2], 1, [8]),  # as long: the later one
        ([4, 4, 4, 4], 3, [4]),
        ([1, 2, 3], 3, []),
        ([7], 3, []),
        ([1, 2, 1], 0, []),
    ],
)
def test_guesses_follow_the_longest_match(said: list[int], most: int, expected: list[int]) -> None:
    assert guess(np.array(said, np.int64), most).tolist() == expected


def test_guesses_follow_a_loop_over_all_places() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        said = rng.integers(0, 3, rng.integers(1, 30))
        best, found = 0, []
        for place in range(len(said) - 1):
            same = 0
            while same < min(8, place + 1) and said[place - same] == said[-1 - same]:
                same += 1
            if same and same >= best:
                best, found = same, said[place + 1 : place + 6].tolist()
        assert guess(said, 5).tolist() == found


@pytest.mark.slow
def test_guessing_changes_no_answer(
    packaged: Reader, prompts: list[ChatPrompt], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"max_tokens": 24, "top_logprobs": 5}
    guessed = packaged.generate(prompts, **options)
    assert any(len(answer.tokens) > 5 for answer in guessed)
    monkeypatch.setattr(model, "guess", lambda said, most: said[:0])
    for ours, theirs in zip(guessed, packaged.generate(prompts, **options), strict=True):
        assert (ours.text, ours.finish_reason) == (theirs.text, theirs.finish_reason)
        np.testing.assert_allclose(
            [token.logprob for token in ours.tokens],
            [token.logprob for token in theirs.tokens],
            atol=1e-4,
        )


def test_an_answer_may_fill_the_whole_window(folder: Path, prompts: list[ChatPrompt]) -> None:
    """Guesses end where the window does."""
    reader = Reader.load(folder)
    filler = ChatPrompt(prompts[0].messages, " the" * 600)
    found = reader.generate([filler], max_tokens=10_000)[0]
    used = found.prompt_tokens + found.completion_tokens
    assert found.finish_reason == "stop" or used == reader.context_length
