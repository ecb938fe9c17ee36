"""Where candidates come from: public texts, or a model that is shown no record."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.synthesis.agents import MakingConfig, ask, shown, together
from ragwitness.synthesis.generator import Steps, StoppedError
from ragwitness.synthesis.private.accounting import Embed, grid
from ragwitness.synthesis.response_parsing import read_list
from ragwitness.synthesis.roles import GENERATOR
from ragwitness.synthesis.sage import of_form
from ragwitness.text.words import STOP_WORDS, plain_tokens

_MATTERS = 40
_APART = 100_000  # between the seeds of two turns: more than the candidates of a round
_LIST = """\
Name {n} different matters that {records} may deal with, from the commonest to the rare: each a \
few words, of general interest, without names of persons, numbers or addresses.
Write {n} lines, each of the form "- matter", and nothing else."""
_DRAFT = """\
Make up {form}. It deals with: {matter}. No person, place or number in it is real. Write the text \
alone, without a remark before or after it."""
_VARY = """\
Here is a text:
{text}

Write another text of the same kind on the same matter: another case, told in other words, with \
other persons, details and numbers. It must be {form}. Write the text alone, without a remark \
before or after it."""

Made = list[str | StoppedError]
"""Texts, with why there is none in the place of one that could not be made."""

Wanted = Sequence[tuple[str, int]]
"""Texts with the number of variations that each is to have."""


class PublicSource:
    """A pool of public texts; a text's variations are those nearest to it.

    Args:
        pool: The texts.
        embed: Maps texts to vectors.
    """

    def __init__(self, pool: Sequence[str], embed: Embed) -> None:
        self._pool = pool
        self._place = {text: n for n, text in enumerate(pool)}
        self._embed = embed
        self._vectors: NDArray[np.float32] | None = None

    def start(self, count: int, seed: int) -> Steps[Made]:
        """Return some of the pool, drawn at random."""
        yield from ()
        return list(some_of(self._pool, count, seed))

    def vary(self, wanted: Wanted, seen: Collection[str], turn: int) -> Steps[Made]:  # noqa: ARG002
        """Return the nearest texts that were in no round yet, for each text in turn."""
        yield from ()
        if self._vectors is None:
            self._vectors = grid(self._embed(self._pool))
        free = np.ones(len(self._pool), bool)
        free[[self._place[text] for text in seen]] = False
        found: Made = []
        for text, count in wanted:
            # Vectors are whole numbers of one length: the inner product orders as the cosine does.
            closeness = np.where(free, self._vectors @ self._vectors[self._place[text]], -np.inf)
            near = np.argsort(-closeness, kind="stable")[: min(count, int(free.sum()))]
            free[near] = False
            found += [self._pool[n] for n in near]
        return found


class ChatSource:
    """A language model that drafts from the domain's description and varies what it is given.

    Args:
        config: Domain, and how the model is asked.
        pool: Public texts to start from; empty for drafts.
    """

    def __init__(self, config: MakingConfig, pool: Sequence[str] = ()) -> None:
        self._config, self._pool = config, pool

    def start(self, count: int, seed: int) -> Steps[Made]:
        """Return some of the pool, or drafts on matters that the model names.

        Raises:
            StoppedError: The model named no matter.
        """
        if self._pool:
            return list(some_of(self._pool, count, seed))
        domain = self._config.domain
        asked = _LIST.format(n=_MATTERS, records=domain.records)
        matters = yield from ask(
            asked, lambda text: read_list(text) or None, self._config.asking, role=GENERATOR
        )
        prompts = [
            _DRAFT.format(form=domain.form, matter=matters[n % len(matters)]) for n in range(count)
        ]
        return (yield from together(self._ask(p, n) for n, p in enumerate(prompts)))

    def vary(self, wanted: Wanted, seen: Collection[str], turn: int) -> Steps[Made]:  # noqa: ARG002
        """Return new texts on the matter of each, as many as wanted; others in another turn."""
        form = self._config.domain.form
        parts = []
        for text, count in wanted:
            prompt = _VARY.format(text=shown(text), form=form)
            parts += [self._ask(prompt, turn * _APART + n, text) for n in range(count)]
        return (yield from together(parts))

    def _ask(self, prompt: str, turn: int, like: str | None = None) -> Steps[str]:
        config = self._config

        def read(said: str) -> str | None:
            return of_form(said, config)

        return ask(prompt, read, config.asking, role=GENERATOR, like=like, turn=turn)


Source = PublicSource | ChatSource


def some_of(pool: Sequence[str], count: int, seed: int) -> Sequence[str]:
    """Return so many of a pool, drawn without the records."""
    return random.Random(seed).sample(pool, min(count, len(pool)))


# Embedders for votes: any by name, or word weights over public texts, which need no model.

WORDS = "words"
"""Name of the embedder that needs no model."""

_MOST_WORDS = 2048
_FEWEST_TEXTS = 2  # that a word stands in


def load_embedding(name: str, public: Sequence[str]) -> Embed:
    """Return an embedder.

    Args:
        name: :data:`WORDS`, or as for :func:`ragwitness.models.model_registry.load_embedder`.
        public: Public texts, for the words and their weights.

    Raises:
        InputError: No such embedder, or there is no public word.
        MissingExtraError: It needs an extra that is not installed.
        ModelError: It cannot be loaded.
    """
    if name == WORDS:
        return word_weights(public)
    from ragwitness.models.model_registry import load_embedder

    return load_embedder(name).embed


def word_weights(public: Sequence[str]) -> Embed:
    """Return TF-IDF over the words of public texts; words and weights owe nothing to a record.

    Raises:
        InputError: No word stands in two of the texts.
    """
    # IDF from public texts alone: with the records' own it would tell of them.
    counts = Counter(word for text in public for word in set(content_words(text)))
    known = [w for w, count in counts.most_common(_MOST_WORDS) if count >= _FEWEST_TEXTS]
    if not known:
        raise InputError(
            f"The embedder {WORDS} knows the words of public texts, and no word stands in two.",
            "Give more texts with --public, or another --embedder.",
        )
    place = {word: n for n, word in enumerate(known)}
    weights = np.array([math.log((1 + len(public)) / counts[word]) for word in known])

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), len(known)))
        for row, text in zip(found, texts, strict=True):
            for word, count in Counter(w for w in content_words(text) if w in place).items():
                row[place[word]] = 1 + math.log(count)
        found *= weights
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        units: NDArray[np.float32] = (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return units

    return embed


def content_words(text: str) -> list[str]:
    """Return the words of a text without function words."""
    return [word for word in plain_tokens(text) if word not in STOP_WORDS]
