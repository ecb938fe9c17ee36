"""The reader's tokenizer: byte-level BPE, digits one by one, role tokens and ``[Mask_i]``.

The pre-tokenizer equals llama.cpp's ``smollm``, so the same ids come out of every runtime.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from . import prompts
from .grammar import DOMAINS, cluster
from .noise import STYLES, style
from .sources import Corpus

__all__ = ["MASK_COUNT", "ROLES", "Vocabulary", "train_tokenizer"]

ROLES = ("<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
MASK_COUNT = 20


def _documents(corpus: Corpus, rng: random.Random, count: int) -> Iterator[str]:
    """Real text (sources by the square root of their size) and grammar, some of it noisy."""
    sources = list(corpus.training)
    weights = [len(corpus.training[source]) ** 0.5 for source in sources]
    for _ in range(count):
        if rng.random() < 0.6:
            words = corpus.training[rng.choices(sources, weights)[0]]
            start = rng.randrange(len(words) - 120)
            document = words[start : start + 120]
        else:
            document = cluster(rng.choice(list(DOMAINS)), rng, 1, 100)[0]
        name = rng.choice(STYLES) if rng.random() < 0.3 else "clean"
        yield " " + " ".join(word.strip() for word in style(document, name, rng))
    for group in (
        prompts.SYSTEM,
        prompts.DEFENDED,
        prompts.COMPLETE,
        prompts.CLOZE,
        prompts.YES_NO,
    ):
        yield from list(group) * (count // 400)


def train_tokenizer(corpus: Corpus, vocabulary: int, documents: int, seed: int) -> Tokenizer:
    """Train the tokenizer; deterministic given its arguments."""
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - MASK_COUNT,
        special_tokens=list(ROLES),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_documents(corpus, random.Random(seed), documents), trainer)
    # lstrip: the space before a mask belongs to it, so " [Mask_1]" is one token as every word is.
    masks = [
        AddedToken(f"[Mask_{index}]", lstrip=True, normalized=False)
        for index in range(1, MASK_COUNT + 1)
    ]
    tokenizer.add_tokens(masks)
    return tokenizer


class Vocabulary:
    """Token ids by role, and cached encoding of pieces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.size = tokenizer.get_vocab_size()
        self.pad, self.system, self.user, self.assistant, self.end = range(len(ROLES))
        self.encode = lru_cache(maxsize=400_000)(self._encode)
        self.masks = [self.encode(f"[Mask_{index}]")[0] for index in range(1, MASK_COUNT + 1)]
        self.colon = self.encode(":")[0]

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a ``tokenizer.json``."""
        return cls(Tokenizer.from_file(str(path)))

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def pieces(self, pieces: list[str]) -> list[int]:
        """Ids of a document given as pieces."""
        return [token for piece in pieces for token in self.encode(piece)]
