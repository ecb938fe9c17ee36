"""Prompt modification: the system prompt forbids what an audit asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ragwitness.defenses.base import Defense
from ragwitness.defenses.retrieval import overlap_scores
from ragwitness.errors import InputError
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.chunk import fit_passages
from ragwitness.rag.config import TEMPLATES, PromptTemplate
from ragwitness.types import Message, Role


@dataclass(frozen=True)
class PromptModification(Defense):
    """Puts another system prompt in the place of the system's own.

    Attributes:
        replacement: The prompt with defense intent (S-RAG, Fig. 3).
    """

    replacement: PromptTemplate = TEMPLATES["defended"]

    @property
    def name(self) -> str:
        """The prompt's name, and its text where it is not one of ours."""
        known = TEMPLATES.get(self.replacement.name) == self.replacement
        shown = self.replacement.name if known else repr(self.replacement)
        return f"prompt({shown})"

    def template(self, template: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the replacement (S-RAG, §5.3: "alters the RAG prompt template")."""
        return self.replacement


# Summaries: the generator is shown of each passage only what bears on the question.
#
# Zeng et al. 2024 (arXiv 2402.16893) have a model extract the relevant parts, as they are or in
# other words, or say that there are none. The prompt is ours.

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_NOTHING = "NOTHING"
_PROMPT = """\
Tell in other words, in at most {sentences} sentences, what this text says about the question. Add \
nothing of your own. If it says nothing about it, answer {nothing} alone.

Question: {query}

Text: {passage}"""
_WORDS = 40  # tokens of a sentence of a summary
_SLACK = 64  # tokens a conversation may need beside its texts
_REMEMBERED = 1024


class Summarize(Defense):
    """Shows a few sentences of each passage, and nothing of one that has none to the point.

    Args:
        sentences: Most per passage.
        model: Sums up in its own words; None copies the sentences that share most with the
            query.

    Raises:
        InputError: ``sentences`` is not positive.
    """

    def __init__(self, sentences: int = 3, model: LanguageModel | None = None) -> None:
        if sentences < 1:
            raise InputError(f"summarize shows at least 1 sentence, not {sentences}.")
        self.sentences = sentences
        self.model = model
        self._by_model = lru_cache(maxsize=_REMEMBERED)(self._ask)

    @property
    def name(self) -> str:
        """How many sentences, and who chooses or writes them."""
        by = "overlap" if self.model is None else self.model.name
        return f"summarize({self.sentences} by {by})"

    def show(self, query: str, passages: list[str]) -> list[str]:
        """Return the summaries; a passage that says nothing to the point is left out.

        Raises:
            ModelError: The model failed.
        """
        make = self._extract if self.model is None else self._by_model
        return [made for passage in passages if (made := make(query, passage))]

    def _extract(self, query: str, passage: str) -> str:
        sentences = [part for part in _SENTENCE_END.split(passage) if part.strip()]
        scores = overlap_scores(query, sentences)
        best = sorted(range(len(sentences)), key=lambda place: -scores[place])[: self.sentences]
        return " ".join(sentences[place] for place in sorted(best) if scores[place] > 0)

    def _ask(self, query: str, passage: str) -> str:
        assert self.model is not None  # noqa: S101 - for the type checker
        model, most = self.model, self.sentences * _WORDS

        def text(kept: str) -> str:
            return _PROMPT.format(
                sentences=self.sentences, nothing=_NOTHING, query=query, passage=kept
            )

        # A passage that is too long is cut at a word, so that question and summary fit.
        room = model.context_length - most - _SLACK
        kept, _, _ = fit_passages([passage], lambda p: model.count_tokens(text("".join(p))) <= room)
        if not kept:  # the query alone is too long; the system says so itself
            return ""
        prompt = ChatPrompt((Message(Role.USER, text(kept[0])),))
        said = model.generate([prompt], max_tokens=most)[0].text.strip()
        return "" if said.strip(".! ").upper() == _NOTHING else said
