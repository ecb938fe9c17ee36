"""Distance threshold: passages that are not near enough to the query are left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.defenses.base import Defense
from ragwitness.errors import InputError
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.chunk import fit_passages
from ragwitness.rag.index.base import Hit
from ragwitness.rag.index.lexical import index_words
from ragwitness.rag.pipeline import Lookup
from ragwitness.text.words import STOP_WORDS
from ragwitness.types import Message, Role


@dataclass(frozen=True)
class DistanceThreshold(Defense):
    """Drops hits beyond a threshold; a query with no near passage is answered without any.

    Attributes:
        threshold: Largest distance that stays where retrieval is dense by L2; elsewhere the least
            score (BM25, inner product) that stays.
    """

    narrows = True
    reads_scores = True

    threshold: float

    def __post_init__(self) -> None:
        """Refuse what is not a number."""
        if not math.isfinite(self.threshold):
            raise InputError(f"The threshold must be a finite number, not {self.threshold}.")

    @property
    def name(self) -> str:
        """The threshold."""
        return f"threshold({self.threshold!r})"

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the hits within the threshold, one that lies on it included."""
        if lookup.distances:
            return [hit for hit in hits if -hit.score <= self.threshold]
        return [hit for hit in hits if hit.score >= self.threshold]


# Reranking: more passages are retrieved, and query and passage are scored together.

_TASK = "Write a question that this text answers."
_SLACK = 64  # tokens a conversation may need beside its texts


class Rerank(Defense):
    """Retrieves ``factor`` times as many passages and keeps the k of highest cross score.

    The hits it returns carry the cross score, not the retriever's.

    Args:
        factor: Candidates per passage kept.
        model: Scores by its likelihood of the query given the passage; None scores by the
            words they share.

    Raises:
        InputError: ``factor`` is not positive.
    """

    narrows = True
    rescores = True

    def __init__(self, factor: int = 3, model: LanguageModel | None = None) -> None:
        if factor < 1:
            raise InputError(f"The factor of rerank must be at least 1, not {factor}.")
        self.factor = factor
        self.model = model

    @property
    def name(self) -> str:
        """The factor, and what scores."""
        by = "overlap" if self.model is None else self.model.name
        return f"rerank({self.factor}k by {by})"

    def candidates(self, k: int, size: int) -> int:
        """``factor`` times k, or the whole index where it is smaller."""
        return min(size, self.factor * k)

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the k best of the nearest ``factor * k`` hits, ties in the retriever's order."""
        nearest = hits[: self.factor * lookup.k]
        texts = [lookup.passages[hit.index].text for hit in nearest]
        if self.model is None:
            scores = overlap_scores(lookup.query, texts)
        else:
            scores = likelihood_scores(self.model, lookup.query, texts)
        rescored = [Hit(hit.index, score) for hit, score in zip(nearest, scores, strict=True)]
        return sorted(rescored, key=lambda hit: -hit.score)[: lookup.k]


def overlap_scores(query: str, passages: Sequence[str]) -> list[float]:
    """Return the share of the query that each passage holds, in [0, 1].

    Every distinct word of the query counts by its rarity among the passages,
    ``ln(1 + n / (1 + number of passages that hold it))``; stop words count only where the
    query has no other.
    """
    wanted = set(index_words(query))
    wanted = (wanted - STOP_WORDS) or wanted
    held = [wanted & set(index_words(passage)) for passage in passages]
    frequency = Counter(word for words in held for word in words)
    # Rarity among the candidates: a word that all of them hold tells none apart.
    weight = {word: math.log(1 + len(passages) / (1 + frequency[word])) for word in wanted}
    total = math.fsum(weight.values())
    return [math.fsum(weight[w] for w in words) / total if total else 0.0 for words in held]


def likelihood_scores(model: LanguageModel, query: str, passages: Sequence[str]) -> list[float]:
    """Return the mean log-probability per token of the query after each passage.

    A passage that does not fit the model's context beside the query is cut at a word.

    Raises:
        ModelError: The query alone does not fit.
    """
    if not query.strip():
        return [0.0] * len(passages)
    fixed = model.count_tokens(query) + model.count_tokens(_TASK) + _SLACK

    def fits(kept: Sequence[str]) -> bool:
        return model.count_tokens("".join(kept)) + fixed <= model.context_length

    shown = ["".join(fit_passages([passage], fits)[0]) for passage in passages]
    prompts = [
        ChatPrompt((Message(Role.SYSTEM, text), Message(Role.USER, _TASK))) for text in shown
    ]
    scores = model.score([query] * len(prompts), after=prompts) if prompts else []
    return [float(found.logprobs.mean()) for found in scores]
