"""Sentence segmentation: which words of the suffix are worth a query (Alg. 1).

The paper runs the proxy model once per suffix word. The probabilities it collects are those of
one teacher-forced pass over the whole text, so one pass is all that is run here;
``benchmarks/segmentation.py`` holds the literal loop and compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.membership.srag.config import SRagConfig
from ragwitness.models import LanguageModel, word_scores
from ragwitness.text.words import STOP_WORDS, Word, core, split_words

__all__ = ["ProbeWord", "Segmented", "hardest", "segment"]

_FEWEST = 3  # the published code probes every word of a suffix that would give fewer


@dataclass(frozen=True, slots=True)
class ProbeWord:
    """A hard word of the suffix.

    Attributes:
        word: The word and its place in the passage.
        index: Its number among the words of the passage.
        baseline: Its probability under the proxy, given all words before it.
    """

    word: Word
    index: int
    baseline: float


@dataclass(frozen=True, slots=True)
class Segmented:
    """A passage, cut in half.

    Attributes:
        text: The passage.
        words: All its words.
        half: Number of the first word of the suffix.
        probes: Probe words of the suffix, in reading order.
        surprisals: -log p of each suffix word under the proxy, in nats.
    """

    text: str
    words: tuple[Word, ...]
    half: int
    probes: tuple[ProbeWord, ...]
    surprisals: tuple[float, ...]

    def before(self, word: Word) -> str:
        """Everything before a word, as sent to the target."""
        return self.text[: word.start].rstrip()

    @property
    def suffix(self) -> str:
        """The second half."""
        return self.text[self.words[self.half].start :]

    @property
    def prefix(self) -> str:
        """The first half (Alg. 1, line 3)."""
        return self.before(self.words[self.half])


def hardest(logprobs: NDArray[np.float64], allowed: NDArray[np.bool_], n: int) -> list[int]:
    """Return the ``n`` least probable allowed positions, in reading order (Alg. 1, line 12)."""
    candidates = np.flatnonzero(allowed)
    order = candidates[np.argsort(logprobs[candidates], kind="stable")]
    return sorted(order[:n].tolist())


def segment(passage: str, proxy: LanguageModel, config: SRagConfig) -> Segmented:
    """Choose the probe words of a passage with one pass of the proxy model.

    Args:
        passage: At least two words.
        proxy: Language model that has not seen the target's database.
        config: ``segment_factor`` and ``skip_stop_words``.
    """
    words = split_words(passage)
    scored = {score.start: score.logprob for score in word_scores(proxy, passage)}
    every = np.array([scored.get(word.start, 0.0) for word in words])
    half = _cut(words, every) if config.mode == "single" else len(words) // 2  # lines 3-4
    logprobs = every[half:]  # lines 7-10
    wanted = max(_FEWEST, len(logprobs) // config.segment_factor)  # line 11
    allowed = np.array([_probeable(word.text, config) for word in words[half:]])
    probes = tuple(
        ProbeWord(words[half + i], half + i, float(np.exp(logprobs[i])))
        for i in hardest(logprobs, allowed, wanted)
    )
    return Segmented(passage, tuple(words), half, probes, tuple((-logprobs).tolist()))


def _cut(words: Sequence[Word], logprobs: NDArray[np.float64]) -> int:
    """Return where to cut near the middle: behind the two hardest words there.

    A model that copies finds its place by the last words it was given; behind "of the" many
    places fit. One answer has no second chance, so single-answer mode chooses.
    """
    middle, reach = len(words) // 2, len(words) // 8
    plain = np.array([not core(word.text) for word in words])
    hardness = np.where(plain, 0.0, -logprobs)
    places = range(max(2, middle - reach), middle + reach + 1)
    return max(places, key=lambda i: (hardness[i - 1] + hardness[i - 2], -abs(i - middle)))


def _probeable(word: str, config: SRagConfig) -> bool:
    stem = core(word)
    return bool(stem) and not (config.skip_stop_words and stem.lower() in STOP_WORDS)
