"""A crew answers as one reader does, whatever it was asked before and however many are asking."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ragwitness.core.errors import ModelError, RagwitnessError
from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt
from ragwitness.models.process_pool import ReaderPool
from ragwitness.models.reader.model import Reader
from ragwitness.text.sample import load_sample

_TEXTS = [document.text for document in load_sample()[:12]]
_PROMPTS = [
    ChatPrompt(
        (
            Message(Role.SYSTEM, "\n\n".join(_TEXTS[n : n + 3])),
            Message(Role.USER, f"Continue: {' '.join(_TEXTS[n].split()[: 20 + part])}"),
        )
    )
    for n in range(4)
    for part in (0, 7)
]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.05, 1.0])
def test_a_program_that_ends_while_the_processes_start_waits_for_nobody(seconds: float) -> None:
    ends = (
        "import time; from ragwitness.models.process_pool import ReaderCrew;"
        f" ReaderCrew(2).start(); time.sleep({seconds})"
    )
    subprocess.run([sys.executable, "-c", ends], check=True, timeout=60)


@pytest.fixture(scope="module")
def alone() -> Reader:
    return Reader.load()


@pytest.fixture(scope="module")
def pool() -> Iterator[ReaderPool]:
    found = ReaderPool(2)
    _assemble(found)
    yield found
    found.close()


def _assemble(pool: ReaderPool) -> None:
    pool.start()
    end = time.monotonic() + 60
    while len(pool._members) < 2:
        assert time.monotonic() < end, "no process came"
        time.sleep(0.02)


def _pids(pool: ReaderPool) -> list[int]:
    return [member.manager._process.pid for member in pool._members]


def _place(pool: ReaderPool, prompt: ChatPrompt) -> int:
    """Which process is asked about a prompt: the one that is asked once more for it."""
    asked = [member.reader for member in pool._members]
    seen: list[int] = []
    for place, member in enumerate(pool._members):
        member.reader = type("Watched", (), {"_callmethod": lambda *_, at=place: seen.append(at)})()
    try:
        pool.generate([prompt], max_tokens=1)
    finally:
        for member, reader in zip(pool._members, asked, strict=True):
            member.reader = reader
    return seen[0]


@pytest.mark.slow
def test_many_threads_are_told_what_one_reader_says(alone: Reader, pool: ReaderPool) -> None:
    def said(prompt: ChatPrompt) -> object:
        return pool.generate([prompt], max_tokens=6, top_logprobs=3)

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(said, _PROMPTS * 2))
    own = [alone.generate([prompt], max_tokens=6, top_logprobs=3) for prompt in _PROMPTS]
    assert found == own * 2  # every digit, and whatever was read before


@pytest.mark.slow
def test_scores_have_the_same_digits(alone: Reader, pool: ReaderPool) -> None:
    for options in ({}, {"after": _PROMPTS[:3], "top": 2}):
        pairs = zip(
            alone.score(_TEXTS[:3], **options), pool.score(_TEXTS[:3], **options), strict=True
        )
        for one, other in pairs:
            np.testing.assert_array_equal(one.logprobs, other.logprobs)
            np.testing.assert_array_equal(one.ranks, other.ranks)
            assert one.tokens == other.tokens


def test_it_is_known_by_the_readers_name(alone: Reader, pool: ReaderPool) -> None:
    assert (pool.name, pool.context_length) == (alone.name, alone.context_length)
    assert pool.count_tokens(_TEXTS[0]) == alone.count_tokens(_TEXTS[0])


def test_an_error_comes_back_as_it_was_raised(pool: ReaderPool) -> None:
    with pytest.raises(ModelError, match="tokens; reader@") as caught:
        pool.score([" ".join(_TEXTS)])
    assert caught.value.hint


def test_prompts_that_begin_alike_go_to_one_process(pool: ReaderPool) -> None:
    # Two questions about each context: the second finds it read, if it comes to the same process.
    first = [_place(pool, prompt) for prompt in _PROMPTS[::2]]
    assert [_place(pool, prompt) for prompt in _PROMPTS[1::2]] == first


def test_a_short_errand_starts_no_process() -> None:
    pool = ReaderPool(2)
    pool.score(_TEXTS[:1])
    assert not pool._members
    pool.close()


@pytest.mark.slow
def test_a_process_that_was_killed_ends_the_errand() -> None:
    lost = ReaderPool(2)
    _assemble(lost)
    try:
        for pid in _pids(lost):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RagwitnessError, match="A process of the reader ended") as caught:
            lost.generate(_PROMPTS[:1], max_tokens=2)
        # Not a model that cannot read one document: the run stops, and the same command resumes.
        assert not isinstance(caught.value, ModelError)
        assert "resumes" in caught.value.hint
    finally:
        lost.close()


@pytest.mark.slow
def test_closed_it_reads_here(alone: Reader) -> None:
    pool = ReaderPool(2)
    _assemble(pool)
    pids = _pids(pool)
    pool.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert pool.generate(_PROMPTS[:1], max_tokens=2) == alone.generate(_PROMPTS[:1], max_tokens=2)
