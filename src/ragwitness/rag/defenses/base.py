"""The steps of a RAG system that a defense may change, and several defenses in a row."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import fields

from ragwitness.core.errors import InputError
from ragwitness.models.base import LanguageModel
from ragwitness.rag.config import PromptTemplate, RagConfig
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import Lookup, RagSystem


class Defense(abc.ABC):
    """Changes nothing; a defense overrides the steps that it changes.

    Implements :class:`~ragwitness.rag.pipeline.DefenseHook`. A system is asked by several
    threads at a time, so a defense keeps no state between its steps.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The defense with every parameter; part of a target's identity."""

    def bound(self, generator: LanguageModel) -> Defense:  # noqa: ARG002
        """Return the defense of a system with this generator."""
        return self

    def rewrite(self, query: str) -> str:
        """Return the query that the index is given.

        Args:
            query: The user's query, or the output of the defense before this one.
        """
        return query

    def candidates(self, k: int, size: int) -> int:  # noqa: ARG002
        """Return how many hits it wants to see.

        Args:
            k: Passages that may go on to the generator.
            size: Passages in the database.
        """
        return k

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:  # noqa: ARG002
        """Return the hits that stay, best first; the system uses the first ``lookup.k``."""
        return hits

    def template(self, template: PromptTemplate) -> PromptTemplate:
        """Return the system prompt in use."""
        return template


class NoDefense(Defense):
    """The control: :func:`defend` leaves the system as it is."""

    name = "none"


class Chain(Defense):
    """Defenses in a row; each works on the output of the one before it.

    Args:
        parts: The defenses, in the order in which they act.
    """

    def __init__(self, parts: Sequence[Defense]) -> None:
        self.parts = tuple(parts)

    @property
    def name(self) -> str:
        """The names of the parts, joined by ``+``."""
        return "+".join(defense.name for defense in self.parts)

    def bound(self, generator: LanguageModel) -> Defense:
        """Bind every part."""
        return Chain([defense.bound(generator) for defense in self.parts])

    def rewrite(self, query: str) -> str:
        """Rewrite with one part after the other."""
        for defense in self.parts:
            query = defense.rewrite(query)
        return query

    def candidates(self, k: int, size: int) -> int:
        """Return the largest number that a part wants."""
        return max(defense.candidates(k, size) for defense in self.parts)

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Select with one part after the other."""
        for defense in self.parts:
            hits = defense.select(hits, lookup)
        return hits

    def template(self, template: PromptTemplate) -> PromptTemplate:
        """Change the template with one part after the other."""
        for defense in self.parts:
            template = defense.template(template)
        return template


def chain(*defenses: Defense) -> Defense:
    """Return one defense that acts as the given ones in order; without any, :class:`NoDefense`."""
    active = [defense for defense in defenses if not isinstance(defense, NoDefense)]
    if len(active) > 1:
        return Chain(active)
    return active[0] if active else NoDefense()


def defend(system: RagSystem, defense: Defense) -> RagSystem:
    """Return the system behind a defense, over the same passages, index and generator.

    Args:
        system: An undefended system; it stays as it is.
        defense: The defense; with :class:`NoDefense` the system itself is returned.

    Raises:
        InputError: The system is behind a defense already.
    """
    if isinstance(defense, NoDefense):
        return system
    if system.defense is not None:
        raise InputError(
            f"The system is behind {system.defense.name!r} already.",
            "Chain the defenses, and put them before the undefended system.",
        )
    generator = system.generator
    return RagSystem(
        system.passages, system.index, generator, system.config, defense.bound(generator)
    )


def undefended(system: RagSystem) -> RagSystem:
    """Return the system without its defense; the same object where it has none."""
    if system.defense is None:
        return system
    # Without the name of the defense, which is part of the defended system's identity.
    values = {f.name: getattr(system.config, f.name) for f in fields(RagConfig) if f.init}
    config = RagConfig(**values)
    return RagSystem(system.passages, system.index, system.generator, config)
