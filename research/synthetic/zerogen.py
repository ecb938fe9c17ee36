"""ZeroGen as SAGE's code has it (A.3): questions to records whose answers they hold.

The pairs of a text are drawn from all records alike, so that a text answers for no record in
particular, and there are 20 of them where the paper says 10. The paper finds answers with spaCy's
models; here they are names and numbers by their form, then the record's rarest words.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragwitness.core.types import Document
from ragwitness.synthesis.agents import GENERATOR, MakingConfig, RoleMethod, ask
from ragwitness.synthesis.generator import (
    Fate,
    Maker,
    Steps,
    Synthesis,
    maker,
)
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.text.words import STOP_WORDS, plain_tokens
from research.synthetic.published import as_published, unchecked

# As the paper has it (A.3).
_PROMPT = "The context is: {text}.{answer} is the answer of the following question: "
_PAIRS = 20  # of a text
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)*")
_NUMBER = re.compile(r"\b\d[\d.,]*(?:\s?(?:%|[a-zA-Z]{1,8}))?")


@dataclass(frozen=True, slots=True)
class _Corpus:
    documents: Sequence[Document]
    counts: Counter[str]


class ZeroGen(RoleMethod):
    """Question and answer pairs in place of each record.

    Args:
        config: Settings; none of our conditions is enforced.
    """

    roles = (GENERATOR,)

    name = "zerogen-published"

    def __init__(self, config: MakingConfig | None = None) -> None:
        super().__init__(as_published(config))

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {"method": self.name, "pairs": str(_PAIRS), **self.config.describe()}

    def most(self, records: int) -> int:
        """Return the most queries."""
        return records * _PAIRS * self.config.asking.attempts

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Return the maker."""
        yield from ()
        words = (set(plain_tokens(document.text)) for document in documents)
        counts = Counter(word for part in words for word in part)
        corpus = _Corpus(documents, counts)
        return maker(self.config.longest, lambda document: self._make(document, corpus, guard))

    def _make(self, document: Document, corpus: _Corpus, guard: SyntheticGuard) -> Steps[Synthesis]:
        lines = []
        for text, answer in self._drawn(document, corpus):
            question = yield from ask(
                _PROMPT.format(text=text, answer=answer),
                str.strip,
                self.config.asking,
                role=GENERATOR,
                like=text,
            )
            lines.append(f"question: {question} answer: {answer}")
        made = Synthesis(document.id, Fate.UNUSABLE, "\n".join(lines))
        if not lines:
            return replace(made, reason="nothing in it can be an answer")
        return unchecked(made, guard)

    def _drawn(self, document: Document, corpus: _Corpus) -> list[tuple[str, str]]:
        """Texts with answers that they hold: of records drawn from all, for the text of none."""
        rng = random.Random(f"{self.config.asking.seed} {document.id}")
        others = rng.choices(list(corpus.documents), k=_PAIRS)
        answers = ((one.text, answers_in(one.text, corpus.counts, _PAIRS)) for one in others)
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
