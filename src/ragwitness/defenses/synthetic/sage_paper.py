"""SAGE's loop as its published code has it, for evaluation only.

- "Until safe" is not enforced: after five turns the last rewrite is kept without a word, and where
  nothing came back the text of stage 1.
- What the privacy agent hands back between the markers is what is kept, and it has seen the record.
- The rewriting agent's first message holds the record.
- Answers end after 256 tokens, and nobody looks whether they were cut off.

A turn here is one judgement and one rewrite. None of our conditions is enforced; the one that the
text breaks is noted beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragwitness.defenses.synthetic.agents import BEGIN, END, SAFE, SUGGEST, MakingConfig
from ragwitness.defenses.synthetic.base import Fate, Maker, Steps, Synthesis, maker, unchecked
from ragwitness.defenses.synthetic.guard import SyntheticGuard
from ragwitness.defenses.synthetic.sage import CHECKS, Attribute, identify, stage_one
from ragwitness.types import Document, Query

_TURNS = 5
_MARK = "GENERATED DATA:"

_JUDGE = """\
You judge the privacy of synthetic data (after the word '{mark}') made from true data.
{checks}
If it is safe, answer SAFE_DATA: {begin}the data{end}{safe}; otherwise {suggest} and what to change.

TRUE DATA: {original}
{mark} {text}"""

_REWRITE = """\
You make synthetic data from feedback (after the word {suggest}), useful and private; put it after \
the word '{mark}'.

TRUE DATA: {original}
{mark} {text}

{feedback}"""


class PublishedSage:
    """The published loop.

    Args:
        config: Settings; ``rounds`` and the limit of an answer are the published ones.
    """

    name = "sage-published"
    asks = True

    def __init__(self, config: MakingConfig | None = None) -> None:
        config = config or MakingConfig()
        self.config = replace(config, asking=config.asking.as_published(), rounds=_TURNS)

    def describe(self) -> dict[str, str]:
        """Return every setting, and what to beware of."""
        return {
            "method": self.name,
            **self.config.describe(),
            "warning": "as published: unsafe texts are kept without a word; for evaluation only",
        }

    def most(self, records: int) -> int:
        """Return the most queries."""
        return max(1, len(self.config.domain.parts)) + records * (2 + 2 * _TURNS)

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Identify the attributes; return the maker."""
        attributes = yield from identify(documents, self.config, guard)
        return maker(self.config.longest, lambda document: self._make(document, attributes, guard))

    def _make(
        self, document: Document, attributes: Sequence[Attribute], guard: SyntheticGuard
    ) -> Steps[Synthesis]:
        made = Synthesis(document.id, Fate.UNGUARDED)
        text = yield from stage_one(document, attributes, self.config)
        for turn in range(1, _TURNS + 1):
            made = replace(made, rounds=turn)
            # Judged: what stands between the markers is kept; its author has seen the record.
            answer = yield from self._say(_JUDGE, document, text, "", turn)
            if SAFE in answer:
                text = answer.partition(BEGIN)[2].partition(END)[0].strip() or text
                return unchecked(replace(made, text=text), guard)
            # Rewritten beside the record; an answer without the marker is taken whole.
            said = yield from self._say(_REWRITE, document, text, answer, turn)
            text = said.partition(_MARK)[2].strip() or said.strip() or text
        return unchecked(replace(made, text=text, reason="never called safe, kept"), guard)

    def _say(
        self, prompt: str, document: Document, text: str, feedback: str, turn: int
    ) -> Steps[str]:
        how = self.config.asking
        filled = prompt.format(
            mark=_MARK,
            checks="\n".join(CHECKS),
            begin=BEGIN,
            end=END,
            safe=SAFE,
            suggest=SUGGEST,
            original=document.text,
            text=text,
            feedback=feedback,
        )
        (answer,) = yield [Query(filled, how.max_tokens, how.temperature, seed=how.seed + turn)]
        return answer.text  # an answer that failed is an empty one: the loop goes on
