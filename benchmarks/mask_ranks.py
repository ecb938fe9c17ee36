"""Alg. 3 and 4 of MBA: one teacher-forced pass against the paper's loop, same model.

    python benchmarks/mask_ranks.py [documents]

Prints the ratio of wall times, the largest difference between ranks and probabilities, and how
often the loop chooses the same words where its prefix already holds earlier masks (line 34, read
to the letter).
"""

from __future__ import annotations

import math
import statistics
import sys
import time

import numpy as np

from ragwitness.membership.methods.mba.masks import MbaConfig, hardest_per_part, is_stop_word
from ragwitness.membership.methods.mba.spelling import MaskUnit, word_units
from ragwitness.models.base import LanguageModel
from ragwitness.models.model_registry import load_language_model
from ragwitness.text.sample import load_sample
from ragwitness.text.words import core, split_words

_CONFIG = MbaConfig(unique_words=False, spelling="none")
_MASK = "[Mask]"


def _one_call(model: LanguageModel, prefix: str, gap: str, stem: str) -> tuple[int, float]:
    """Lines 15-23, and Alg. 3: rank and probability of one word after a prefix."""
    upto = prefix + gap + stem
    scores = model.score([upto])[0]
    inside = scores.offsets[:, 1] > len(prefix + gap)
    if gap.endswith(" "):  # a space that stands alone is the first the model says of the word
        inside |= (scores.offsets[:, 1] == len(prefix + gap)) & (
            scores.offsets[:, 0] == len(prefix + gap) - 1
        )
    return int(scores.ranks[inside].max()), math.exp(float(scores.logprobs[inside].sum()))


def literal_loop(
    model: LanguageModel, text: str, config: MbaConfig, *, masked_prefix: bool = False
) -> tuple[list[int], dict[int, tuple[int, float]]]:
    """One call per eligible word; no corrections.

    Args:
        model: The proxy.
        text: The document.
        config: M and the words skipped.
        masked_prefix: Whether the prefix holds the masks of the parts before (line 34).

    Returns:
        Numbers of the masked words, and rank and probability of each word looked at.
    """
    words = split_words(text)
    total = len(words) - config.skip_words
    prefix, masked, seen = text[: words[config.skip_words].start], [], {}
    for part in range(config.masks):  # line 4
        low = config.skip_words + part * total // config.masks
        high = config.skip_words + (part + 1) * total // config.masks
        before, ranks = prefix, {}
        for j in range(low, high):  # line 8
            stem = core(words[j].text)
            edge = words[j].text.index(stem) if stem else 0
            adjacent = bool(masked) and j - masked[-1] <= 1  # line 13
            if stem and any(c.isalnum() for c in stem):
                looked = not (is_stop_word(stem) or adjacent)  # lines 11-15
                if looked:
                    context = before.rstrip(" ")
                    gap = before[len(context) :] + words[j].text[:edge]
                    ranks[j], probability = _one_call(model, context, gap, stem)
                    seen[j] = (ranks[j], probability)
            end = words[j + 1].start if j + 1 < len(words) else len(text)
            before += text[words[j].start : end]  # line 10
        if ranks:
            chosen = max(ranks, key=lambda j: ranks[j])  # line 26; the first of equals
            masked.append(chosen)
        if not masked_prefix:
            prefix = before
            continue
        for j in range(low, high):  # lines 33-34
            end = words[j + 1].start if j + 1 < len(words) else len(text)
            stem = core(words[j].text)
            piece = text[words[j].start : end]
            prefix += piece.replace(stem, _MASK, 1) if masked and j == masked[-1] else piece
    return masked, seen


def one_pass(
    model: LanguageModel, text: str, config: MbaConfig
) -> tuple[list[int], dict[int, MaskUnit]]:
    """The same from a single forward pass."""
    units = word_units(text, model.score([text])[0])
    masked = [unit.index for unit in hardest_per_part(text, units, config)]
    return masked, {unit.index: unit for unit in units}


def main() -> None:
    """Run both on the same documents, in turns."""
    model = load_language_model("reader")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    sample = iter([document.text for document in load_sample()])
    texts = [f"{next(sample)} {next(sample)}" for _ in range(n)]  # about 200 words, as real ones
    one_pass(model, texts[0], _CONFIG)
    ratios, ranks, differences, same, letter, masks = [], [], [], 0, 0, 0
    for text in texts:
        start = time.perf_counter()
        fast, units = one_pass(model, text, _CONFIG)
        middle = time.perf_counter()
        slow, seen = literal_loop(model, text, _CONFIG)
        ratios.append((time.perf_counter() - middle) / (middle - start))
        ranks.append(max(abs(units[j].rank - rank) for j, (rank, _) in seen.items()))
        differences.append(max(abs(math.exp(units[j].logprob) - p) for j, (_, p) in seen.items()))
        masks += len(fast)
        same += len(set(fast) & set(slow))
        letter += len(set(fast) & set(literal_loop(model, text, _CONFIG, masked_prefix=True)[0]))
    low, mid, high = np.percentile(ratios, [25, 50, 75])
    words = statistics.mean(len(split_words(text)) for text in texts)
    print(f"documents {n}, mean length {words:.0f} words, masks {masks}")
    print(f"loop / one pass: median {mid:.0f}x, quartiles {low:.0f}x to {high:.0f}x")
    print(f"largest difference of a rank: {max(ranks)}, of a probability: {max(differences):.1e}")
    print(f"same words masked: {same}/{masks}; with masks in the prefix: {letter}/{masks}")


if __name__ == "__main__":
    main()
