"""The user's query in other words, before it retrieves or is answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ragwitness.defenses.base import Defense
from ragwitness.defenses.rules import RULES_VERSION, rule_rewrite
from ragwitness.errors import InputError
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.pipeline import QueryTooLongError, Use
from ragwitness.types import Message, Role

__all__ = ["PARAPHRASE", "REWRITE", "QueryRewriting", "RewritingConfig", "paraphrase", "rewrite"]

_SLACK = 64  # tokens a conversation may need beside its texts
_QUOTES = {'"': '"', "\u201c": "\u201d", "'": "'"}
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class RewritingConfig:
    """How a query is rewritten.

    Attributes:
        kind: Said in the defense's name.
        prompt: What a language model is told; must hold ``{query}``.
        where: Who is given the rewritten query: the index (``"retrieve"``), the generator
            (``"answer"``), or both.
        clauses: Whether the rules change the order of clauses (without a model).
        fillers: Whether the rules drop words (without a model).
    """

    kind: str
    prompt: str
    where: Literal["retrieve", "answer", "both"]
    clauses: bool = True
    fillers: bool = True

    def __post_init__(self) -> None:
        """Refuse values that make no rewrite."""
        if self.where not in ("retrieve", "answer", "both"):
            raise InputError(f"where must be 'retrieve', 'answer' or 'both', not {self.where!r}.")
        if "{query}" not in self.prompt:
            raise InputError("The prompt of a rewrite must hold {query}.")


# S-RAG's paraphrasing "rewrites queries to mislead the retriever" (§5.3): the generator is
# still given what the user typed.
PARAPHRASE = RewritingConfig(
    "paraphrase",
    "Please paraphrase the following sentence. Output only the paraphrase sentence.\n\n{query}",
    "retrieve",
)
"""The paraphrase defense of S-RAG, §5.3, after Li et al. 2024."""

# IA (Naseh et al. 2025): the system knows nothing but the rewritten query. The parts of the
# prompt that our notes leave out are in our words.
REWRITE = RewritingConfig(
    "rewrite",
    "As an expert copy-editor, please rewrite the following text in your own voice. Keep the "
    "same information and roughly the same length, and output only the rewritten text.\n\n"
    "{query}",
    "both",
    clauses=False,
    fillers=False,
)
"""The query rewriting that IA is evaluated under."""


_OURS = {(config.kind, config.prompt) for config in (PARAPHRASE, REWRITE)}


class QueryRewriting(Defense):
    """Rewrites the query by a language model, or by rules where there is none.

    Args:
        config: What is told the model, and who is given the result.
        model: Greedy, so that the same query is rewritten the same way; None uses
            :func:`~ragwitness.defenses.rules.rule_rewrite`, a stand-in.
    """

    def __init__(self, config: RewritingConfig, model: LanguageModel | None = None) -> None:
        self.config = config
        self.model = model
        # The index and the generator ask for the same query's rewrite one after the other.
        self._by_model = lru_cache(maxsize=_REMEMBERED)(self._ask)

    @property
    def name(self) -> str:
        """Kind, who is given the result, and by whom it is made; the prompt where not ours."""
        config = self.config
        if self.model is None:
            by = f"rules-{RULES_VERSION} clauses={config.clauses} fillers={config.fillers}"
        elif (config.kind, config.prompt) in _OURS:
            by = self.model.name
        else:
            by = f"{self.model.name} prompt={config.prompt!r}"
        return f"{config.kind}({config.where} by {by})"

    def rewrite(self, query: str, use: Use) -> str:
        """Return the query in other words; as it is where it is blank or the use another.

        Raises:
            QueryTooLongError: The model cannot read it and write as much again.
            ModelError: The model failed.
        """
        if self.config.where not in (use, "both") or not query.strip():
            return query
        if self.model is None:
            config = self.config
            return rule_rewrite(query, clauses=config.clauses, fillers=config.fillers)
        return self._by_model(query)

    def _ask(self, query: str) -> str:
        assert self.model is not None  # noqa: S101 - for the type checker
        text = self.config.prompt.replace("{query}", query)
        asked, length = self.model.count_tokens(text), self.model.count_tokens(query)
        room = self.model.context_length - asked - _SLACK
        if room < length:
            raise QueryTooLongError(asked + length, self.model.context_length - _SLACK)
        prompt = ChatPrompt((Message(Role.USER, text),))
        made = self.model.generate([prompt], max_tokens=min(room, 2 * length + 32))[0]
        # A model that says nothing must not turn the query into one that finds nothing.
        return _unquoted(made.text.strip()) or query


def paraphrase(model: LanguageModel | None = None) -> QueryRewriting:
    """Return the paraphrase defense of S-RAG, §5.3: what retrieves is a paraphrase."""
    return QueryRewriting(PARAPHRASE, model)


def rewrite(model: LanguageModel | None = None) -> QueryRewriting:
    """Return IA's query rewriting: what retrieves and what is answered is a rewrite."""
    return QueryRewriting(REWRITE, model)


def _unquoted(text: str) -> str:
    """Without the quotes that a model puts around its whole answer."""
    inner = text[1:-1]
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1] and not set(inner) & {text[0], text[-1]}:
        return inner.strip()
    return text
