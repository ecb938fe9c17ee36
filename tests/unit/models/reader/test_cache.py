from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ragwitness.models.reader.cache import PrefixStore
from ragwitness.models.reader.checkpoint import read_config, read_weights
from ragwitness.models.reader.forward import Network
from ragwitness.models.reader.model import Reader
from tests.unit.models.models_fakes import conversation


def _questions(context: str) -> list[tuple[str, object]]:
    words = context.split()
    return [
        (words[n], conversation(context, " ".join(words[: n // 2]), " ".join(words[:n])))
        for n in (3, 7, 12, 20, 33)
    ]


def test_scores_are_equal_with_and_without(folder: Path, long_context: str) -> None:
    plain, cached = Reader.load(folder, cache_bytes=0), Reader.load(folder)
    texts, prompts = zip(*_questions(long_context), strict=True)
    expected = plain.score(texts, after=prompts, top=3)
    for _ in range(2):  # cold, then warm
        found = cached.score(texts, after=prompts, top=3)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours.logprobs, theirs.logprobs, strict=True)
            np.testing.assert_array_equal(ours.ranks, theirs.ranks)
            assert ours.prompt_tokens == theirs.prompt_tokens
    assert plain.prefixes.reused_tokens == 0
    assert cached.prefixes.reused_tokens > 1000


def test_answers_are_equal_with_and_without(folder: Path, long_context: str) -> None:
    plain, cached = Reader.load(folder, cache_bytes=0), Reader.load(folder)
    prompts = [prompt for _, prompt in _questions(long_context)]
    expected = plain.generate(prompts, max_tokens=8, top_logprobs=5)
    for _ in range(2):
        found = cached.generate(prompts, max_tokens=8, top_logprobs=5)
        assert [answer.text for answer in found] == [answer.text for answer in expected]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.tokens == theirs.tokens


@pytest.mark.slow
def test_no_history_changes_a_bit(long_context: str) -> None:
    """The packaged weights: their rounding is what a run's bytes depend on."""
    plain, cached = Reader.load(cache_bytes=0), Reader.load()
    words = (long_context + " ") * 2
    prompts = [conversation(words[: 9 * n], words[n : 3 * n], words[:n]) for n in range(60, 180, 9)]
    expected = [plain.generate([prompt], max_tokens=3, top_logprobs=3)[0] for prompt in prompts]
    rng = np.random.default_rng(0)
    for _ in range(2):
        for place in rng.permutation(len(prompts)):
            found = cached.generate([prompts[place]], max_tokens=3, top_logprobs=3)[0]
            assert found == expected[place]
    assert cached.prefixes.reused_tokens > 1000


@pytest.fixture
def network(folder: Path) -> Network:
    return Network(read_config(folder), read_weights(folder))


def _read(store: PrefixStore, ids: np.ndarray) -> int:
    before = store.reused_tokens
    store.read(ids, capacity=len(ids), keep=1)
    return store.reused_tokens - before


def test_longest_prefix_is_taken(network: Network) -> None:
    """In whole blocks of 128 tokens."""
    store, ids = PrefixStore(network), np.arange(512) + 5
    other = np.concatenate((ids[:200], ids[:150]))
    assert _read(store, ids) == 0
    assert _read(store, other) == 128
    assert _read(store, np.concatenate((ids[:300], ids[:5]))) == 256
    assert _read(store, ids) == 384, "the last position is computed, its logits are wanted"
    assert _read(store, ids[10:]) == 0
    assert _read(store, ids[:100]) == 0, "less than a block"


def test_prompts_that_begin_alike_share_blocks(network: Network) -> None:
    store, ids = PrefixStore(network), np.arange(300) + 5
    _read(store, ids[:140])
    _read(store, ids)
    assert len(store) == 2
    _read(store, np.concatenate((ids[:150], ids[:140])))
    assert len(store) == 3, "the first block is there once"


def test_memory_is_bounded_and_the_least_used_goes(network: Network) -> None:
    one = network.new_cache(128).nbytes
    store = PrefixStore(network, limit_bytes=3 * one)
    sequences = [np.arange(130) + start for start in (5, 105, 205, 305)]
    for ids in sequences[:3]:
        _read(store, ids)
    assert _read(store, sequences[0]) == 128  # used again, so the second is the oldest
    _read(store, sequences[3])
    assert store.nbytes <= 3 * one
    assert _read(store, sequences[0]) == 128
    assert _read(store, sequences[1]) == 0


def test_a_sequence_loses_its_end_before_its_beginning(network: Network) -> None:
    one = network.new_cache(128).nbytes
    store, ids = PrefixStore(network, limit_bytes=2 * one), np.arange(520) + 5
    _read(store, ids)
    assert _read(store, ids) == 256
    assert store.nbytes <= 2 * one


def test_a_bound_below_one_block_stores_nothing_and_changes_nothing(
    folder: Path, long_context: str
) -> None:
    plain, tight = Reader.load(folder, cache_bytes=0), Reader.load(folder, cache_bytes=1)
    _, prompts = zip(*_questions(long_context), strict=True)
    expected = plain.generate(prompts, max_tokens=4)
    assert tight.generate(prompts, max_tokens=4) == expected
    assert tight.prefixes.nbytes == len(tight.prefixes) == 0


def test_eviction_changes_no_bit(folder: Path, long_context: str) -> None:
    plain = Reader.load(folder, cache_bytes=0)
    block = plain._network.new_cache(128).nbytes
    tight = Reader.load(folder, cache_bytes=3 * block)
    _, prompts = zip(*_questions(long_context), strict=True)
    expected = plain.generate(prompts, max_tokens=4, top_logprobs=3)
    for _ in range(2):
        for prompt, answer in zip(prompts, expected, strict=True):
            assert tight.generate([prompt], max_tokens=4, top_logprobs=3) == [answer]
        assert tight.prefixes.nbytes <= 3 * block


def test_threads_share_a_reader(folder: Path, long_context: str) -> None:
    reader = Reader.load(folder)
    texts, prompts = zip(*_questions(long_context), strict=True)
    expected = [scores.logprobs for scores in reader.score(texts, after=prompts)]
    greedy = [answer.text for answer in reader.generate(prompts, max_tokens=5)]
    reader = Reader.load(folder)
    barrier = threading.Barrier(4)

    def work(_: int) -> None:
        barrier.wait()
        for text, prompt, logprobs, answer in zip(texts, prompts, expected, greedy, strict=True):
            scores = reader.score([text], after=[prompt])[0]
            np.testing.assert_array_equal(scores.logprobs, logprobs, strict=True)
            assert reader.generate([prompt], max_tokens=5)[0].text == answer

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
