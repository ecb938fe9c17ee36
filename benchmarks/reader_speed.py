"""Speed of the embedded reader: numpy against transformers, prefix reuse on and off.

``python benchmarks/reader_speed.py [--folder FOLDER] [--context 1000] [--repeat 3]``

Both sides run in this process, one after the other on the same input. Processor time is counted,
and of ``--repeat`` runs the best, so that the ratios mean something on a busy machine too. For
rates of one thread set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ragwitness.core.errors import MissingExtraError
from ragwitness.core.types import Message, Role
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.models.reader.cache import PrefixStore
from ragwitness.models.reader.model import PACKAGED_WEIGHTS, Reader

PROBES = 25
ANSWER = 64


def best_seconds(work: Callable[[], object], repeat: int) -> float:
    """Processor time of the fastest of ``repeat`` runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def words(count: int, seed: int) -> str:
    """Made-up words, so that nothing depends on a corpus."""
    random = np.random.default_rng(seed)
    syllables = ["ba", "der", "in", "lo", "mur", "ta", "ven", "qui", "so", "ple"]
    return " ".join("".join(random.choice(syllables, 2)) for _ in range(count))


def text_of(reader: Reader, tokens: int, seed: int = 0) -> str:
    """A text of about ``tokens`` tokens."""
    sample = words(200, seed)
    return words(max(1, tokens * 200 // reader.count_tokens(sample)), seed)


def prompt(context: str, question: str) -> ChatPrompt:
    return ChatPrompt((Message(Role.SYSTEM, f"Context: {context}"), Message(Role.USER, question)))


def fresh_generate(model: LanguageModel, asked: list[ChatPrompt], tokens: int) -> int:
    """Generate from an empty prefix store; returns the tokens generated."""
    if isinstance(model, Reader):
        model.prefixes = PrefixStore(model._network)
    return sum(a.completion_tokens for a in model.generate(asked, max_tokens=tokens))


def decode_rate(model: LanguageModel, asked: list[ChatPrompt], repeat: int) -> float:
    """Generated tokens per CPU-second, the reading of the prompt taken off."""
    # Answers must not end early, or there is nothing to time.
    model._vocabulary.stop_ids = frozenset()  # type: ignore[attr-defined]
    made = fresh_generate(model, asked, ANSWER)
    whole = best_seconds(lambda: fresh_generate(model, asked, ANSWER), repeat)
    reading = best_seconds(lambda: fresh_generate(model, asked, 1), repeat)
    return (made - len(asked)) / (whole - reading)


def rates(model: LanguageModel, reader: Reader, context: int, repeat: int) -> dict[str, float]:
    """Tokens per CPU-second by task."""
    long, short = text_of(reader, context), [text_of(reader, 80, seed) for seed in range(24)]
    size, sizes = reader.count_tokens(long), sum(map(reader.count_tokens, short))
    asked = [prompt(text_of(reader, context), words(20, seed)) for seed in range(8)]
    return {
        f"scored, one text of {size} tokens": size
        / best_seconds(lambda: model.score([long]), repeat),
        "scored, 24 texts of about 80": sizes / best_seconds(lambda: model.score(short), repeat),
        f"prompt read, {size} tokens": size
        / best_seconds(lambda: fresh_generate(model, asked[:1], 1), repeat),
        f"generated after {size} tokens, 1 answer": decode_rate(model, asked[:1], repeat),
        f"generated after {size} tokens, 8 answers": decode_rate(model, asked, repeat),
    }


def probe_seconds(folder: Path, context: int, cache_bytes: int | None, repeat: int) -> float:
    """S-RAG's pattern: many probes over one context, one token each."""
    reader = Reader.load(folder) if cache_bytes is None else Reader.load(folder, cache_bytes=0)
    passage, document = text_of(reader, context), words(PROBES + 20, 1).split()
    probes = [prompt(passage, " ".join(document[: 20 + n])) for n in range(PROBES)]

    def ask() -> None:
        reader.prefixes = PrefixStore(reader._network, reader.prefixes.limit_bytes)
        for probe in probes:
            reader.generate([probe], max_tokens=1, top_logprobs=20)

    return best_seconds(ask, repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=PACKAGED_WEIGHTS)
    parser.add_argument("--context", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    start = time.perf_counter()
    reader = Reader.load(options.folder)
    print(f"{reader.name}: loaded in {time.perf_counter() - start:.2f} s")
    print(f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}, best of {options.repeat}")
    ours = rates(reader, reader, options.context, options.repeat)
    try:
        from ragwitness.models.hf import HFLanguageModel

        theirs = rates(
            HFLanguageModel(options.folder, device="cpu"), reader, options.context, options.repeat
        )
    except MissingExtraError:
        theirs = {}
    print(f"\n{'tokens per CPU-second':<44}{'numpy':>9}{'transformers':>14}{'ratio':>7}")
    for task, rate in ours.items():
        other = theirs.get(task, float("nan"))
        print(f"{task:<44}{rate:>9.0f}{other:>14.0f}{rate / other:>7.2f}")
    off = probe_seconds(options.folder, options.context, 0, options.repeat)
    on = probe_seconds(options.folder, options.context, None, options.repeat)
    print(f"\n{PROBES} probes over one context: {off:.2f} CPU-s, with prefix reuse {on:.2f}")
    print(f"ratio {off / on:.1f}")


if __name__ == "__main__":
    main()
