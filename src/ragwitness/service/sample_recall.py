"""Recall of sample questions under a policy, before any document of the tenant is there.

Half of a large sample teaches which words are asked (``privacy.asked_words``). A quarter decides
whether that finds more than the rarest word, and the rest measures it. The sample is public:
nothing of it may come from the tenant's documents.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ragwitness.core.errors import InputError
from ragwitness.core.files import read_rows
from ragwitness.models.model_registry import load_embedder
from ragwitness.privacy.codes import asked_model
from ragwitness.privacy.release import SlotIndex, quantise, release
from ragwitness.privacy.sampler import system_bits
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.stats.rates import Rate, mean_rate

_DRAWS = 3
_FEWEST = 200  # texts from which a model is fitted
_FORM = 'A row is {"question": "…", "text": "…"}: what is asked, and the text that it should find.'

Pairs = list[tuple[str, str]]
_Ask = Callable[[str], tuple[int, ...]]


def read_pairs(path: Path) -> Pairs:
    """Return sample questions, each with the text that it should find.

    Raises:
        InputError: The file cannot be read, or a row has no question or text.
    """
    pairs = [(row.get("question"), row.get("text")) for row in read_rows(path)]
    if not pairs or not all(isinstance(cell, str) and cell for pair in pairs for cell in pair):
        raise InputError(f"{path} holds no sample questions, or a row without one.", _FORM)
    return pairs  # type: ignore[return-value]  # checked above


def fitted_claim(claim: Claim, pairs: Pairs) -> tuple[Claim, Pairs]:
    """Return a claim with the rule that finds more, and the questions left to measure it by.

    Args:
        claim: The wanted promise.
        pairs: Questions and texts; below 200 texts nothing is fitted.
    """
    by_text: dict[str, list[str]] = {}
    for question, text in pairs:
        by_text.setdefault(text, []).append(question)
    texts = sorted(by_text)
    random.Random(0).shuffle(texts)  # a split, the same each time
    if claim.mechanism != "codes" or len(texts) < _FEWEST:
        return claim, pairs
    half, rest = len(texts) // 2, 3 * len(texts) // 4
    model = asked_model(texts[:half], [by_text[text] for text in texts[:half]])
    chosen, kept = {*texts[half:rest]}, {*texts[rest:]}
    trials = [pair for pair in pairs if pair[1] in chosen]
    better = max(
        (claim, replace(claim, asked=model)),
        key=lambda tried: sample_recall(make_policy(tried, 0), trials).value,
    )
    return better, [pair for pair in pairs if pair[1] in kept]


def sample_recall(policy: TenantPolicy, pairs: Pairs) -> Rate:
    """Return how often a sample question finds its own text in a full index.

    The other slots hold the other texts of the sample, each as often as it takes to fill them, with
    draws of their own. The interval is over questions.

    Args:
        policy: The promise.
        pairs: Questions and texts.

    Raises:
        InputError: There are more texts than slots.
    """
    texts = [*dict.fromkeys(text for _, text in pairs)]
    capacity = policy.claim.capacity
    if len(texts) > capacity:
        raise InputError(
            f"The sample has {len(texts)} texts, and the index {capacity} slots.",
            "Give fewer of them, or a larger --capacity.",
        )
    slot_of = {text: slot for slot, text in enumerate(texts)}
    hits = np.zeros(len(pairs))
    for _ in range(_DRAWS):
        ask = (_noisy if policy.placement is None else _placed)(policy, texts)
        hits += [slot_of[text] in ask(question) for question, text in pairs]
    return mean_rate(hits / _DRAWS, least=0.0)


def _fill(texts: list[str], capacity: int) -> list[int]:
    """Return the text of each slot: every text once, then others by lot."""
    count = len(texts)
    return [*range(count), *random.SystemRandom().choices(range(count), k=capacity - count)]


def _placed(policy: TenantPolicy, texts: list[str]) -> _Ask:
    placement, bits = policy.placement, system_bits()
    assert placement is not None  # noqa: S101  # the caller has looked
    near = [placement.near_groups(text) for text in texts]
    slots = _fill(texts, policy.claim.capacity)
    codes = np.array([placement.draw(near[at], bits) for at in slots], np.int32)
    return lambda question: placement.answer(question, codes)


def _noisy(policy: TenantPolicy, texts: list[str]) -> _Ask:
    mechanism, embedder = policy.mechanism, load_embedder(policy.claim.embedder)
    rows = quantise(embedder.embed(texts), mechanism)
    # A copy of a text would tie with it: the other slots are those of an empty index.
    index = SlotIndex(rows, mechanism)

    def ask(question: str) -> tuple[int, ...]:
        vector = quantise(embedder.embed([question])[0], mechanism)
        return release(vector, index, os.urandom(32), mechanism).ids

    return ask
