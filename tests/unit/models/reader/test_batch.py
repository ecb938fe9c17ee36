from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import ModelError
from ragwitness.models.base import ChatPrompt
from ragwitness.models.reader import batch
from ragwitness.models.reader.batch import guess
from ragwitness.models.reader.model import Reader
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
    monkeypatch.setattr(batch, "guess", lambda said, most: said[:0])
    for ours, theirs in zip(guessed, packaged.generate(prompts, **options), strict=True):
        assert (ours.text, ours.finish_reason) == (theirs.text, theirs.finish_reason)
        np.testing.assert_allclose(
            [token.logprob for token in ours.tokens],
            [token.logprob for token in theirs.tokens],
            atol=1e-4,
        )


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_company_changes_no_bit(
    packaged: Reader, prompts: list[ChatPrompt], temperature: float
) -> None:
    """Alone, all together, in another order, with an answer ten times as long beside it."""
    options = {"max_tokens": 16, "top_logprobs": 3, "temperature": temperature, "seed": 4}
    alone = [packaged.generate([prompt], **options)[0] for prompt in prompts]
    assert packaged.generate(prompts, **options) == alone
    assert packaged.generate(prompts[::-1], **options) == alone[::-1]
    packaged.prefixes.clear()
    assert packaged.generate(prompts, **options) == alone


@pytest.mark.slow
def test_answers_join_and_leave_a_running_batch(
    packaged: Reader, prompts: list[ChatPrompt]
) -> None:
    """Callers come one after the other while others are at work; each gets its own answer."""
    wanted = [(prompt, 4 + 5 * place) for place, prompt in enumerate(prompts)]
    alone = [packaged.generate([prompt], max_tokens=most)[0] for prompt, most in wanted]

    def ask(place: int) -> object:
        time.sleep(0.01 * place)
        prompt, most = wanted[place]
        return packaged.generate([prompt], max_tokens=most)[0]

    for _ in range(2):
        packaged.prefixes.clear()
        with ThreadPoolExecutor(len(wanted)) as pool:
            assert list(pool.map(ask, range(len(wanted)))) == alone


def test_more_callers_than_lanes_hold(folder: Path, prompts: list[ChatPrompt]) -> None:
    reader = Reader.load(folder)
    asked = [prompts[place % len(prompts)] for place in range(2 * reader.callers + 3)]
    alone = {id(prompt): reader.generate([prompt], max_tokens=6)[0] for prompt in prompts}
    barrier = threading.Barrier(len(asked))

    def ask(prompt: ChatPrompt) -> object:
        barrier.wait()
        return reader.generate([prompt], max_tokens=6)[0]

    with ThreadPoolExecutor(len(asked)) as pool:
        found = list(pool.map(ask, asked))
    assert found == [alone[id(prompt)] for prompt in asked]


def test_an_interrupted_caller_takes_its_answer_along(
    folder: Path, prompts: list[ChatPrompt], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a step: nothing is left behind, and the next answer is whole."""
    reader = Reader.load(folder)
    expected = reader.generate(prompts[:2], max_tokens=8)
    run, calls = reader._network.run, []

    def interrupt(spans: object) -> np.ndarray:
        calls.append(spans)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return run(spans)  # type: ignore[arg-type]

    monkeypatch.setattr(reader._network, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        reader.generate(prompts[:2], max_tokens=8)
    assert not reader._batch._waiting
    assert reader.generate(prompts[:2], max_tokens=8) == expected


def test_a_failing_step_fails_its_answers_and_no_later_ones(
    folder: Path, prompts: list[ChatPrompt], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader.load(folder)
    expected = reader.generate(prompts[:1], max_tokens=4)
    with monkeypatch.context() as patch:
        patch.setattr(reader._network, "logits", lambda hidden: 1 / 0)
        with ThreadPoolExecutor(3) as pool:
            failed = [pool.submit(reader.generate, [prompt], max_tokens=4) for prompt in prompts]
            assert all(isinstance(one.exception(60), ZeroDivisionError) for one in failed)
    assert reader.generate(prompts[:1], max_tokens=4) == expected


def test_one_prompt_too_long_stops_no_other(folder: Path, prompts: list[ChatPrompt]) -> None:
    reader = Reader.load(folder)
    long = ChatPrompt(prompts[0].messages, " the" * 1100)
    with ThreadPoolExecutor(2) as pool:
        good = pool.submit(reader.generate, prompts[:3], max_tokens=6)
        with pytest.raises(ModelError, match="reads 1024") as caught:
            reader.generate([long], max_tokens=6)
        assert "\n" not in str(caught.value)
        assert len(good.result(60)) == 3


def test_an_answer_may_fill_the_whole_window(folder: Path, prompts: list[ChatPrompt]) -> None:
    """Guesses end where the window does."""
    reader = Reader.load(folder)
    filler = ChatPrompt(prompts[0].messages, " the" * 600)
    found = reader.generate([filler], max_tokens=10_000)[0]
    used = found.prompt_tokens + found.completion_tokens
    assert found.finish_reason == "stop" or used == reader.context_length
