"""S2MIA (Li et al., 2025): does the system say the second half of a document by itself?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.registry import at_least, one_of, ordered
from ragwitness.core.types import Answer, Capability, Document, Probe, Score
from ragwitness.membership.response_parsing.replies import (
    NOTHING,
    REPEATED,
    AnswerOutcome,
    answer_tokens,
    ask_on,
    halve,
    read_answer,
)
from ragwitness.models.base import LanguageModel
from ragwitness.models.model_registry import load_embedder
from ragwitness.text.words import core, split_words

if TYPE_CHECKING:
    from ragwitness.membership.shadow import AuditClassifier

# Parameters of S2MIA, the paper's beside ours.

PROMPT = (
    'Given the [Query]: "{first_half}". Do not include any introductory or explanatory text, use'
    " the following format for output: {[Response]: 'Provide a concise response directly"
    " addressing the [Query] by using the most relevant and matching text in the prompt.'}"
)
"""The paper's prompt."""

_S: dict[str, object] = {"similarity": "bleu", "refusals": "read"}
_T: dict[str, object] = {**_S, "decision": "thresholds"}


@dataclass(frozen=True, slots=True)
class S2MiaConfig:
    """How a document is asked about and its answer compared.

    Attributes:
        similarity: ``"bleu"`` as S2MIA, ``"cosine"`` of embeddings as MBA's baseline (§5.4.2).
        decision: ``"none"`` ranks the similarity (S), by text alone. ``"thresholds"`` (S2MIA-T) and
            ``"classifier"`` (S2MIA-M) are fitted on a shadow system to similarity and the answer's
            perplexity (S&P), which needs log-probabilities.
        prompt: Must hold ``{first_half}``.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        bleu_order: Longest n-gram that counts.
        refusals: ``"lowest"``, below every other answer (ours), or ``"read"`` like any other
            answer, as published.
    """

    stored_name: ClassVar[str] = "S2MiaConfig"
    later: ClassVar[tuple[str, ...]] = ("decision", "refusals")
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": _T,
        "t": _T,
        "m": {**_T, "decision": "classifier"},
        "s": _S,
    }

    similarity: Literal["bleu", "cosine"] = "bleu"
    decision: Literal["none", "thresholds", "classifier"] = "none"
    prompt: str = PROMPT
    max_words: int = 400
    min_words: int = 8
    bleu_order: int = 4
    refusals: Literal["lowest", "read"] = "lowest"

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        one_of(self, "similarity", "bleu", "cosine")
        one_of(self, "decision", "none", "thresholds", "classifier")
        one_of(self, "refusals", "lowest", "read")
        at_least(self, 1, "bleu_order")
        at_least(self, 2, "min_words")
        ordered(self, "min_words", "max_words")
        if "{first_half}" not in self.prompt:
            raise InputError("The prompt must hold {first_half}.")

    @property
    def learns(self) -> bool:
        """Whether thresholds or a classifier are fitted on a shadow system."""
        return self.decision != "none"


# Likeness of an answer and the second half.


def plain_words(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return [word for w in split_words(text) if (word := core(w.text).casefold())]


def bleu(candidate: Sequence[str], reference: Sequence[str], order: int = 4) -> float:
    """Sentence BLEU with one reference (Papineni et al., 2002), in [0, 1].

    Precisions of n-grams longer than one word are smoothed by adding one to both counts (Lin and
    Och, 2004), since one sentence often has no four words in common. A candidate shorter than
    ``order`` words is judged by the n-grams it has.
    """
    if not candidate or not reference:
        return 0.0
    logs = []
    for n in range(1, min(order, len(candidate)) + 1):
        grams, true = _ngrams(candidate, n), _ngrams(reference, n)
        matched = (grams & true).total()  # clipped counts
        more = int(n > 1)
        if matched + more == 0:
            return 0.0
        logs.append(math.log((matched + more) / (grams.total() + more)))
    brevity = min(0.0, 1.0 - len(reference) / len(candidate))
    return math.exp(brevity + sum(logs) / len(logs))


def embedded_cosine(first: str, second: str) -> float:
    """Cosine of two texts' embeddings by MiniLM, in [-1, 1] (MBA §5.4.2; it names no model)."""
    vectors = load_embedder().embed([first, second])
    return float(vectors[0] @ vectors[1])


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


# The S2MIA audit of one document: first half in, second half out?

_ROOM = 32  # tokens beyond the second half: the wrapping the prompt asks for
_LOWEST, _UNSURE = -1.0, math.exp(20.0)  # similarity and perplexity of an answer that declines


class S2Mia:
    """S2MIA: likeness of the answer to the half of the document that was not shown.

    The value is the similarity alone (S). With log-probabilities the features are similarity
    and perplexity, which two thresholds (T, ``s2mia:t``) or a classifier (M, ``s2mia:m``) read;
    both are fitted on a shadow system in the same run.

    Args:
        proxy: Counts tokens.
        config: Prompt and parameters.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.s2mia.probe.S2Mia"
    name = "s2mia"

    def __init__(self, proxy: LanguageModel, config: S2MiaConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or S2MiaConfig()

    @property
    def learns(self) -> bool:
        """Whether thresholds or a classifier are fitted on a shadow system."""
        return self.config.learns

    def train(
        self, features: Sequence[Sequence[float]], members: Sequence[bool], *, automl: bool = False
    ) -> AuditClassifier:
        """Fit S2MIA-T or S2MIA-M on documents of a shadow system; none of them is reported on.

        Raises:
            InputError: Fewer than five members or non-members.
        """
        del automl  # M has its own kind of classifier, T none
        from ragwitness.membership.shadow import AuditClassifier

        if self.config.decision == "thresholds":
            rule = fit_thresholds(features, members)
            return AuditClassifier(rule.describe(), rule)
        return AuditClassifier(_BOOSTED, fit_classifier(features, members))

    @property
    def requires(self) -> frozenset[Capability]:
        """Text, or log-probabilities where perplexity is read."""
        return frozenset({Capability.TOP_LOGPROBS if self.learns else Capability.TEXT})

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        cosine, learnt = self.config.similarity == "cosine", self.learns
        labels = {
            "similarity": "cosine of MiniLM's embeddings"
            if cosine
            else f"BLEU-{self.config.bleu_order}",
            "perplexity": "read" if learnt else "not read",
        }
        decision = {"decision": f"{self.config.decision}, fitted on a shadow system"}
        return labels | (decision if learnt else {})

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        # The first half is shown; a member's answer says the second.
        halves = halve(document.text, config.max_words, config.min_words)
        if halves is None:
            return Score(None, reason=f"fewer than {config.min_words} words to cut in half")
        prompt = config.prompt.replace("{first_half}", halves.first)
        once = config.refusals == "read"
        answer = yield from ask_on(halves, prompt, self.proxy, _ROOM, int(self.learns), once=once)
        # S: likeness of the answer to the second half, without the wrapping that the prompt asks
        # for and without a repetition of the first half.
        reading = read_answer(answer, halves.first, halves.second)
        details = {reading.outcome.value: 1.0, "cut": float(halves.cut)}
        if reading.outcome is AnswerOutcome.DECLINED and not once:
            lowest = (_LOWEST, _UNSURE) if self.learns else ()
            return Score(_LOWEST, lowest, details=details)
        # An answer that only repeats the first half, and stops by itself, says nothing of the
        # second.
        words, true = plain_words(reading.text), plain_words(halves.second)
        repeated = reading.reason == REPEATED and answer.finish_reason != "length"
        if not repeated and (reading.outcome is AnswerOutcome.FAILED or not words):
            return Score(None, reason=reading.reason or NOTHING, details=details)
        details["score/bleu"] = bleu(words, true, config.bleu_order)
        if config.similarity == "cosine":
            cosine = embedded_cosine(reading.text, halves.second) if words else 0.0
            details["score/cosine"] = cosine
        value = details[f"score/{config.similarity}"]
        if not self.learns:
            return Score(value, details=details)
        # P: perplexity of the answer.
        surprisal = _surprisal(answer)
        if surprisal is None:
            reason = "the answer has no log-probabilities, so its perplexity is unknown"
            return Score(None, reason=reason, details=details | {"no_logprobs": 1.0})
        details["perplexity"] = math.exp(surprisal)
        return Score(value, (value, details["perplexity"]), details=details)


def _surprisal(answer: Answer) -> float | None:
    """Mean of -log p over all tokens of the answer, its wrapping included."""
    tokens = answer_tokens(answer.text, answer.tokens or ()) or ()
    logprobs = [min(0.0, max(-20.0, t.logprob)) for t in tokens if not math.isnan(t.logprob)]
    return -float(np.mean(logprobs)) if logprobs else None


# Similarity and perplexity together: S2MIA-T and S2MIA-M.
#
# Both are fitted on labelled documents that are not reported on, such as those of a shadow system.

_FEWEST = 5  # documents of each kind
_STEPS = 100  # most values tried per feature


@dataclass(frozen=True, slots=True)
class Thresholds:
    """S2MIA-T: a member's answer has a high similarity and a low perplexity.

    Attributes:
        similarity: Least similarity of a member.
        perplexity: Largest perplexity of a member.
        accuracy: Share of the fitted documents that are judged right; optimistic for others.
    """

    similarity: float
    perplexity: float
    accuracy: float

    def predict_proba(self, features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return 0 or 1 for outside and inside, shape (n, 2), for features of shape (n, 2)."""
        inside = _judge(_table(features), self.similarity, self.perplexity).astype(np.float64)
        return np.stack([1.0 - inside, inside], axis=1)

    def describe(self) -> str:
        """Return both thresholds in words."""
        return (
            f"S2MIA-T: similarity >= {self.similarity:.3g} and perplexity <= {self.perplexity:.4g}"
            f" (right on {self.accuracy:.3f} of the shadow documents)"
        )


_BOOSTED = "S2MIA-M: gradient boosting, which stands for the paper's XGBoost"


def fit_thresholds(features: Sequence[Sequence[float]], labels: Sequence[bool]) -> Thresholds:
    """Choose both thresholds by search over a grid, for the most right answers on these documents.

    The grid holds observed values, so that it fits any scale. Where several pairs are equally
    right the strictest wins: highest similarity first, then lowest perplexity.

    Args:
        features: Similarity and perplexity of each document, shape (n, 2).
        labels: True for members, shape (n,).

    Raises:
        InputError: Fewer than five members or non-members, or features of another shape.
    """
    table, members = _checked(features, labels)
    best = Thresholds(float("inf"), float("-inf"), -1.0)
    for similarity in _grid(table[:, 0])[::-1]:
        for perplexity in _grid(table[:, 1]):
            right = float((_judge(table, similarity, perplexity) == members).mean())
            if right > best.accuracy:
                best = Thresholds(float(similarity), float(perplexity), right)
    return best


def fit_classifier(features: Sequence[Sequence[float]], labels: Sequence[bool]) -> Any:
    """Train gradient-boosted trees, which stand for the paper's XGBoost.

    Args:
        features: Similarity and perplexity of each document, shape (n, 2).
        labels: True for members, shape (n,).

    Raises:
        InputError: Fewer than five members or non-members, or features of another shape.
    """
    from sklearn.ensemble import GradientBoostingClassifier

    table, members = _checked(features, labels)
    trees = GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0)
    return trees.fit(table, members)


def _judge(table: NDArray[np.float64], similarity: float, perplexity: float) -> NDArray[np.bool_]:
    judged: NDArray[np.bool_] = (table[:, 0] >= similarity) & (table[:, 1] <= perplexity)
    return judged


def _grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    different = np.unique(values)
    if len(different) <= _STEPS:
        return different
    return different[np.linspace(0, len(different) - 1, _STEPS).round().astype(np.int64)]


def _table(features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    try:
        table = np.asarray(features, dtype=np.float64)
    except ValueError:
        table = np.empty(0)
    if table.ndim != 2 or table.shape[1] != 2 or not np.isfinite(table).all():
        raise InputError(
            "S2MIA combines two numbers per document, similarity and perplexity.",
            "Leave documents without features out.",
        )
    return table


def _checked(
    features: Sequence[Sequence[float]], labels: Sequence[bool]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    table, members = _table(features), np.asarray(labels, dtype=np.bool_)
    if members.shape != (len(table),):
        raise InputError(f"{len(table)} rows of features have {members.size} labels.")
    fewest = int(min(members.sum(), (~members).sum()))
    if fewest < _FEWEST:
        raise InputError(
            f"Only {fewest} of the labelled documents are of one kind; {_FEWEST} are needed.",
            "Give more members and non-members.",
        )
    return table, members
