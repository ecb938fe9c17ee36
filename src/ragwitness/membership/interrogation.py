"""Interrogation Attack (Naseh et al., CCS 2025): thirty yes/no questions per document."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ragwitness.errors import InputError
from ragwitness.kit.fields import at_least, one_of
from ragwitness.membership.questions.base import (
    AnswerOutcome,
    QuestionWriter,
    YesNoQuestion,
    query_text,
    read_outcome,
)
from ragwitness.membership.questions.chat import ChatWriter
from ragwitness.membership.questions.rules import RuleWriter
from ragwitness.models.base import LanguageModel
from ragwitness.types import Capability, Document, Evidence, Interval, Probe, Query, Score

# Parameters of the interrogation, the paper's beside ours.


@dataclass(frozen=True, slots=True)
class InterrogationConfig:
    """How a document is asked about.

    Attributes:
        questions: n; the paper asks 30 and finds 15 to 20 as good.
        penalty: lambda, taken off for each "I don't know"; the paper varies 0 to 7.
        fewest: Documents about which fewer questions can be written are unscorable.
        writer: ``"rules"`` (ours, no model) or ``"chat"``, which has the proxy write as the
            paper has GPT-4o; any other writer is handed to the audit itself.
        request: Closes every query.
        max_tokens: Room for an answer.
        seed: Of the choice and order of questions, together with the document's id.
    """

    stored_name: ClassVar[str] = "InterrogationConfig"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"paper": {"writer": "chat"}}

    questions: int = 30
    penalty: float = 5.0
    fewest: int = 4
    writer: Literal["rules", "chat"] = "rules"
    request: str = "Please answer with 'Yes,' 'No,' or 'I don't know'."
    max_tokens: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        at_least(self, 1, "questions", "fewest", "max_tokens")
        if self.fewest > self.questions:
            raise InputError(
                f"fewest must be at most questions ({self.questions}), not {self.fewest}."
            )
        if not (math.isfinite(self.penalty) and self.penalty >= 0):
            raise InputError(f"penalty must be at least 0, not {self.penalty}.")
        one_of(self, "writer", "rules", "chat")


# From outcomes to the score of IA.


def contribution(question: YesNoQuestion, outcome: AnswerOutcome, penalty: float) -> float:
    """Return 1(r = g) - lambda * 1(r = unknown) for one readable answer."""
    if outcome is AnswerOutcome.UNKNOWN:
        return -penalty
    return float((outcome is AnswerOutcome.YES) == question.expected)


def score_of(
    questions: Sequence[YesNoQuestion], outcomes: Sequence[AnswerOutcome], penalty: float
) -> float | None:
    """Return the mean contribution of the readable answers (IA: (1/n) sum[1(r=g) - l 1(UNK)]).

    None where fewer than half are readable: what is left would be the target's choice.
    """
    pairs = [(q, o) for q, o in zip(questions, outcomes, strict=True) if o.readable]
    if not pairs or 2 * len(pairs) < len(questions):
        return None
    return sum(contribution(q, o, penalty) for q, o in pairs) / len(pairs)


def balanced_accuracy(
    questions: Sequence[YesNoQuestion], outcomes: Sequence[AnswerOutcome]
) -> float | None:
    """Return the mean of the accuracies on yes and on no; None where one of them is not asked.

    A target that says yes to everything earns one half, however many answers are yes.
    """
    parts = []
    for expected in (True, False):
        own = [
            contribution(q, o, 0.0)
            for q, o in zip(questions, outcomes, strict=True)
            if o.readable and q.expected is expected
        ]
        if not own:
            return None
        parts.append(sum(own) / len(own))
    return sum(parts) / 2


# The interrogation of one document, as a generator without I/O.


class Interrogation:
    """IA: does the target answer questions that only the document's readers can answer?

    Args:
        proxy: Ranks words by rarity, or writes the questions; must not have seen the
            target's database.
        config: Parameters.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.interrogation.probe.Interrogation"
    name = "interrogation"
    requires = frozenset({Capability.TEXT})

    def __init__(self, proxy: LanguageModel, config: InterrogationConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or InterrogationConfig()
        named = ChatWriter if self.config.writer == "chat" else RuleWriter
        self.writer: QuestionWriter = named(proxy)

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        return {
            "questions": str(self.config.questions),
            "penalty of I don't know": f"{self.config.penalty:g}",
            "written by": self.writer.name,
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        rng = random.Random(f"{config.seed}/{document.id}")
        # 1. Questions that only readers of the document can answer.
        questions = self.writer.yes_no(document, config.questions, rng)
        unparsable = float(self.writer.unparsable(document))
        if len(questions) < config.fewest:
            reason = f"only {len(questions)} questions can be written about it"
            return Score(None, reason=reason, details={"unparsable": unparsable})
        # 2. Each in a query of its own, behind a phrase that retrieves the document.
        summary = self.writer.summary(document)
        answers = yield [
            Query(
                query_text(summary, question.text, question.hidden, config.request),
                max_tokens=config.max_tokens,
            )
            for question in questions
        ]
        # 3. Right, wrong, or "I don't know", which is penalised.
        outcomes = [read_outcome(answer, yes_no=True) for answer in answers]
        return self._score(questions, outcomes, unparsable)

    def _score(
        self,
        questions: Sequence[YesNoQuestion],
        outcomes: Sequence[AnswerOutcome],
        unparsable: float,
    ) -> Score:
        penalty = self.config.penalty
        details = {
            "questions": float(len(questions)),
            "expected_yes": float(sum(q.expected for q in questions)),
            "unparsable": unparsable,
            **{outcome.value: float(outcomes.count(outcome)) for outcome in _COUNTED},
        }
        value = score_of(questions, outcomes, penalty)
        if value is None:
            worst = max(_UNREADABLE, key=outcomes.count)
            reason = f"{outcomes.count(worst)} of {len(questions)} answers were {worst.value}"
            return Score(None, reason=reason, details=details)
        variants = {
            # Without a penalty: the share of readable answers that are right.
            "score/accuracy": score_of(questions, outcomes, 0.0),
            "score/balanced": balanced_accuracy(questions, outcomes),
        }
        pairs = [(q, o) for q, o in zip(questions, outcomes, strict=True) if o.readable]
        pairs.sort(key=lambda pair: -abs(contribution(pair[0], pair[1], penalty)))
        return Score(
            value=value,
            evidence=tuple(_evidence(q, o) for q, o in pairs),
            details={**details, **{k: v for k, v in variants.items() if v is not None}},
        )


_COUNTED = (
    AnswerOutcome.YES,
    AnswerOutcome.NO,
    AnswerOutcome.UNKNOWN,
    AnswerOutcome.REFUSED,
    AnswerOutcome.UNREADABLE,
    AnswerOutcome.EMPTY,
    AnswerOutcome.FAILED,
)
_UNREADABLE = tuple(outcome for outcome in _COUNTED if not outcome.readable)


def _evidence(question: YesNoQuestion, outcome: AnswerOutcome) -> Evidence:
    """Show the expected answer, the question before it, and whether the target gave it."""
    right = contribution(question, outcome, 0.0)
    expected = "Yes" if question.expected else "No"
    return Evidence(expected, question.text, Interval(right, right), 0.5)
