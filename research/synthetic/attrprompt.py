"""AttrPrompt as SAGE's baseline has it (A.3): texts from drawn subtopics, without any record.

A model is asked what such texts are made of, and nobody looks at the corpus.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ragwitness.core.types import Document
from ragwitness.synthesis.agents import EXTRACTOR, GENERATOR, MakingConfig, RoleMethod, ask
from ragwitness.synthesis.generator import (
    Fate,
    Maker,
    Steps,
    StoppedError,
    Synthesis,
    maker,
)
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.response_parsing import Attribute, Pair, read_list
from ragwitness.synthesis.sage import generate
from research.synthetic.published import as_published, unchecked

_SUBTOPICS = 10  # for each attribute, as published
_LIST = """\
Name {n} different subtopics of the attribute "{attribute}" that such texts may deal with: \
each a few words, of general interest, without names of persons, numbers or addresses.
Write {n} lines, each of the form "- subtopic", and nothing else."""
_BLIND = """\
Name the {n} attributes that matter most when {records} is made up, in the form of a list: one \
attribute of a few words per line, "- attribute", and nothing else."""


class AttrPrompt(RoleMethod):
    """Texts of the corpus's kind that no record stands behind.

    Args:
        config: Settings; none of our conditions is enforced.
    """

    roles = (EXTRACTOR, GENERATOR)
    name = "attrprompt-published"

    def __init__(self, config: MakingConfig | None = None) -> None:
        super().__init__(as_published(config))

    def most(self, records: int) -> int:
        """Return the most queries."""
        attributes = max(1, len(self.config.domain.parts)) * 20
        return self.config.asking.attempts * (1 + attributes + records)

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:  # noqa: ARG002
        """List subtopics of every attribute; return the maker."""
        # 1. Attributes of the kind of text.
        domain, asking = self.config.domain, self.config.asking
        prompt = _BLIND.format(n=domain.count, records=domain.records)
        named = yield from ask(prompt, read_list, asking, role=EXTRACTOR)
        attributes = named[: domain.count]
        # 2. Subtopics of each attribute.
        topics: list[tuple[Attribute, list[str]]] = []
        for attribute in attributes:
            prompt = _LIST.format(n=_SUBTOPICS, attribute=attribute)
            listed = yield from ask(prompt, read_list, asking, role=EXTRACTOR)
            if listed:
                topics.append((("", attribute), listed[:_SUBTOPICS]))
        if not topics:
            raise StoppedError(Fate.MALFORMED, "no subtopic was named")
        return maker(self.config.longest, lambda document: self._make(document, topics, guard))

    def _make(
        self,
        document: Document,
        topics: Sequence[tuple[Attribute, list[str]]],
        guard: SyntheticGuard,
    ) -> Steps[Synthesis]:
        # 3. A text from one drawn subtopic of every attribute; the record gives id and language.
        rng = random.Random(f"{self.config.asking.seed} {document.id}")
        pairs: list[Pair] = [(attribute, rng.choice(named)) for attribute, named in topics]
        text = yield from generate(pairs, self.config, document.text)
        return unchecked(Synthesis(document.id, Fate.UNGUARDED, text), guard)
