"""Alg. 1 of S-RAG: one teacher-forced pass against the paper's loop, same model.

    python benchmarks/segmentation.py [documents]

Prints the ratio of wall times and the largest difference between the probabilities.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

from ragwitness.models.base import LanguageModel, word_scores
from ragwitness.models.model_registry import load_language_model
from ragwitness.text.sample import load_sample
from ragwitness.text.words import split_words


def literal_loop(model: LanguageModel, text: str) -> list[float]:
    """Lines 3-10 of Alg. 1: one call per word of the suffix."""
    words = split_words(text)
    found = []
    for word in words[len(words) // 2 :]:
        before, upto = text[: word.start].rstrip(), text[: word.end]
        scores = model.score([upto])[0]
        inside = scores.offsets[:, 1] > len(before)
        found.append(float(scores.logprobs[inside].sum()))
    return found


def one_pass(model: LanguageModel, text: str) -> list[float]:
    """The same probabilities from a single forward pass."""
    words = split_words(text)
    scored = {score.start: score.logprob for score in word_scores(model, text)}
    return [scored[word.start] for word in words[len(words) // 2 :]]


def main() -> None:
    """Run both on the same documents, in turns."""
    model = load_language_model("reader")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    texts = [" ".join(d.text for d in load_sample()[i : i + 2]) for i in range(0, 2 * n, 2)]
    one_pass(model, texts[0])
    ratios, differences = [], []
    for text in texts:
        start = time.perf_counter()
        fast = one_pass(model, text)
        middle = time.perf_counter()
        slow = literal_loop(model, text)
        ratios.append((time.perf_counter() - middle) / (middle - start))
        differences.append(float(np.abs(np.exp(fast) - np.exp(slow)).max()))
    low, mid, high = np.percentile(ratios, [25, 50, 75])
    words = statistics.mean(len(split_words(text)) for text in texts)
    print(f"documents {n}, mean length {words:.0f} words")
    print(f"loop / one pass: median {mid:.0f}x, quartiles {low:.0f}x to {high:.0f}x")
    print(f"largest difference of a probability: {max(differences):.1e}")


if __name__ == "__main__":
    main()
