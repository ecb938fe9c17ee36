"""ZeroGen as SAGE's baseline has it (A.3): questions to the record whose answers it holds.

The published code draws the pairs of a text from all records alike, so that a text answers for no
record in particular, and takes 20 of them where the paper says 10. Ours stay with their record;
``zerogen-published`` draws as the code does. The paper finds answers with spaCy's models; here
they are names and numbers by their form, then the record's rarest words.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ragwitness.defenses.synthetic.agents import MakingConfig, RoleMethod, as_it_is, ask, shown
from ragwitness.defenses.synthetic.base import (
    Fate,
    Maker,
    Steps,
    Synthesis,
    checked,
    maker,
    unchecked,
)
from ragwitness.defenses.synthetic.guard import SyntheticGuard
from ragwitness.defenses.synthetic.roles import GENERATOR
from ragwitness.defenses.synthetic.rules import Rules
from ragwitness.text.runs import plain_tokens
from ragwitness.text.words import STOP_WORDS
from ragwitness.types import Document

_PROMPT = """\
The context is:
{text}

"{answer}" is the answer to a question about it. Write that question in one line, without the \
answer in it, and nothing else."""
# As the paper has it (A.3).
_PUBLISHED = "The context is: {text}.{answer} is the answer of the following question: "
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)*")
_NUMBER = re.compile(r"\b\d[\d.,]*(?:\s?(?:%|[a-zA-Z]{1,8}))?")


@dataclass(frozen=True, slots=True)
class _Corpus:
    documents: Sequence[Document]
    counts: Counter[str]
    rules: Rules


class ZeroGen(RoleMethod):
    """Question and answer pairs in place of each record.

    Args:
        config: Settings.
        published: Draw the pairs from all records and enforce none of our conditions.
    """

    roles = (GENERATOR,)

    def __init__(self, config: MakingConfig | None = None, published: bool = False) -> None:
        super().__init__(config, published)
        self.pairs = 20 if published else 10

    @property
    def name(self) -> str:
        """``zerogen`` or ``zerogen-published``."""
        return "zerogen-published" if self.published else "zerogen"

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {"method": self.name, "pairs": str(self.pairs), **self.config.describe()}

    def most(self, records: int) -> int:
        """Return the most queries."""
        return records * self.pairs * self.config.asking.attempts

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Return the maker."""
        yield from ()
        words = (set(plain_tokens(document.text)) for document in documents)
        counts = Counter(word for part in words for word in part)
        corpus = _Corpus(documents, counts, Rules(documents, guard))
        return maker(self.config.longest, lambda document: self._make(document, corpus, guard))

    def _make(self, document: Document, corpus: _Corpus, guard: SyntheticGuard) -> Steps[Synthesis]:
        lines = []
        for text, answer in self._drawn(document, corpus):
            prompt = _PROMPT.format(text=shown(text), answer=answer)
            if self.published:
                prompt = _PUBLISHED.format(text=text, answer=answer)
            question = yield from ask(
                prompt,
                str.strip if self.published else _one_line,
                self.config.asking,
                role=GENERATOR,
                rule=partial(corpus.rules.question, text, answer),
                like=text,
            )
            lines.append(f"question: {question} answer: {answer}")
        made = Synthesis(document.id, Fate.UNUSABLE, "\n".join(lines))
        if not lines:
            return replace(made, reason="nothing in it can be an answer")
        return unchecked(made, guard) if self.published else checked(made, guard)

    def _drawn(self, document: Document, corpus: _Corpus) -> list[tuple[str, str]]:
        """Texts with answers that they hold."""
        rng = random.Random(f"{self.config.asking.seed} {document.id}")
        if not self.published:
            own = answers_in(document.text, corpus.counts, self.pairs)
            return [(document.text, answer) for answer in own]
        # As published: pairs of records drawn from all, so that the text stands for none.
        others = rng.choices(list(corpus.documents), k=self.pairs)
        answers = ((one.text, answers_in(one.text, corpus.counts, self.pairs)) for one in others)
        return [(text, rng.choice(found)) for text, found in answers if found]


def answers_in(text: str, counts: Counter[str], most: int) -> list[str]:
    """Return what a question about a text may have for its answer, without repetition.

    Args:
        text: The record.
        counts: In how many records each word stands.
        most: Upper limit.
    """
    # Names and numbers by their form, then the rarest words.
    by_form = [match.group() for kind in (_NAME, _NUMBER) for match in kind.finditer(text)]
    words = [word for word in plain_tokens(text) if word not in STOP_WORDS and len(word) > 3]
    rare = sorted(dict.fromkeys(words), key=lambda word: counts[word])
    return list(dict.fromkeys([*by_form, *rare]))[:most]


def _one_line(text: str) -> str | None:
    said = as_it_is(text)
    return said.splitlines()[0].strip() if said and "?" in said.splitlines()[0] else None
