"""AttrPrompt as SAGE's baseline has it (A.3): texts from drawn subtopics, without any record.

The published one asks a model what such texts are made of and never looks at the corpus. Ours
takes attributes and subtopics from a few records; subtopics that break a condition are left out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from ragwitness.defenses.synthetic.agents import RoleMethod, as_list, ask, shown
from ragwitness.defenses.synthetic.base import (
    Fate,
    Maker,
    Steps,
    StoppedError,
    Synthesis,
    maker,
    unchecked,
    until_passed,
)
from ragwitness.defenses.synthetic.guard import SyntheticGuard
from ragwitness.defenses.synthetic.roles import EXTRACTOR, GENERATOR
from ragwitness.defenses.synthetic.rules import Rules
from ragwitness.defenses.synthetic.sage import Attribute, Pair, ask_text, generate, identify, sheet
from ragwitness.types import Document

_EXAMPLE = 4000  # characters of a record that is an example
_SUBTOPICS = 10  # per attribute, as published
_LIST = """\
{about}Name {n} different subtopics of the attribute "{attribute}" that such texts may deal with: \
each a few words, of general interest, without names of persons, numbers or addresses.
Write {n} lines, each of the form "- subtopic", and nothing else."""
_BLIND = """\
Name the {n} attributes that matter most when {records} is made up, in the form of a list: one \
attribute of a few words per line, "- attribute", and nothing else."""
_ABOUT = "Here are examples of {records}:\n\n{examples}\n\n"


class AttrPrompt(RoleMethod):
    """Texts of the corpus's kind that no record stands behind.

    Args:
        config: Settings.
        published: Do not look at the corpus, and enforce none of our conditions.
    """

    roles = (EXTRACTOR, GENERATOR)

    @property
    def name(self) -> str:
        """``attrprompt`` or ``attrprompt-published``."""
        return "attrprompt-published" if self.published else "attrprompt"

    def most(self, records: int) -> int:
        """Return the most queries."""
        domain, attempts = self.config.domain, self.config.asking.attempts
        attributes = max(1, len(domain.parts)) * 20
        versions = 1 if self.published else max(1, self.config.rounds)
        return attempts * (1 + attributes + records * versions)

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """List subtopics of every attribute; return the maker."""
        # 1. Attributes of the kind of text.
        rules = Rules(documents, guard)
        attributes = yield from self._attributes(documents, guard)
        # 2. Subtopics of each attribute, those left out that break a condition.
        about = "" if self.published else self._about(documents)
        topics: list[tuple[Attribute, list[str]]] = []
        for attribute in attributes:
            prompt = _LIST.format(about=about, n=_SUBTOPICS, attribute=attribute[1])
            # By rules: the words that many records hold, others for each attribute.
            words = rules.subtopics(_SUBTOPICS * len(attributes))[len(topics) :: len(attributes)]
            named = yield from ask(
                prompt,
                as_list,
                self.config.asking,
                role=EXTRACTOR,
                rule=partial("\n".join, [f"- {word}" for word in words]),
            )
            fit = [one for one in named if self.published or guard.violation(one) is None]
            if fit:
                topics.append((attribute, fit[:_SUBTOPICS]))
        if not topics:
            raise StoppedError(Fate.MALFORMED, "no subtopic that breaks no condition was named")
        return maker(
            self.config.longest, lambda document: self._make(document, topics, guard, rules)
        )

    def _attributes(
        self, documents: Sequence[Document], guard: SyntheticGuard
    ) -> Steps[tuple[Attribute, ...]]:
        if not self.published:
            return (yield from identify(documents, self.config, guard))
        domain = self.config.domain
        prompt = _BLIND.format(n=domain.count, records=domain.records)
        rule = partial(Rules((), guard).names, domain.count)
        named = yield from ask(prompt, as_list, self.config.asking, role=EXTRACTOR, rule=rule)
        return tuple(("", name) for name in named[: domain.count])

    def _about(self, documents: Sequence[Document]) -> str:
        rng = random.Random(len(documents))
        chosen = rng.sample(list(documents), min(self.config.shots, len(documents)))
        examples = "\n\n".join(shown(document.text[:_EXAMPLE]) for document in chosen)
        return _ABOUT.format(records=self.config.domain.records, examples=examples)

    def _make(
        self,
        document: Document,
        topics: Sequence[tuple[Attribute, list[str]]],
        guard: SyntheticGuard,
        rules: Rules,
    ) -> Steps[Synthesis]:
        # 3. A text from one drawn subtopic of every attribute; the record gives id and language.
        rng = random.Random(f"{self.config.asking.seed} {document.id}")
        pairs: list[Pair] = [(attribute, rng.choice(named)) for attribute, named in topics]
        if self.published:
            text = yield from generate(pairs, self.config, document.text, rules)
            return unchecked(Synthesis(document.id, Fate.UNGUARDED, text), guard)

        def write(advice: str, turn: int) -> Steps[str]:
            prompt = (
                f"Write a text that deals with:\n{sheet(pairs)}\n\nIt must be"
                f" {self.config.domain.form}. {advice} Write the text alone."
            )
            rule = partial(rules.told, sheet(pairs))
            return ask_text(prompt, self.config, document.text, turn, rule=rule)

        return (yield from until_passed(document.id, write, self.config.rounds, guard))
