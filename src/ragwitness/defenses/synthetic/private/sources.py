"""Where candidates come from: public texts, or a model that is shown no record."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.defenses.sage.generate import of_form
from ragwitness.defenses.synthetic.asking import StoppedError, as_list, ask, shown, together
from ragwitness.defenses.synthetic.base import Steps
from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.defenses.synthetic.private.votes import Embed, grid

__all__ = ["ChatSource", "PublicSource", "Source", "some_of"]

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
        embed: For their vectors.
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
        matters = yield from ask(asked, as_list, self._config.asking)
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
        how = self._config.asking
        return ask(prompt, lambda said: of_form(said, self._config), how, like=like, turn=turn)


Source = PublicSource | ChatSource


def some_of(pool: Sequence[str], count: int, seed: int) -> Sequence[str]:
    """Return so many of a pool, drawn without the records."""
    return random.Random(seed).sample(pool, min(count, len(pool)))
