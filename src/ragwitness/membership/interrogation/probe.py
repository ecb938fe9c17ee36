"""The interrogation of one document, as a generator without I/O."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ragwitness.membership.interrogation.config import InterrogationConfig
from ragwitness.membership.interrogation.score import (
    accuracy,
    balanced_accuracy,
    contribution,
    score_of,
)
from ragwitness.membership.questions import (
    ChatWriter,
    Outcome,
    Question,
    QuestionWriter,
    RuleWriter,
    query_text,
    read_outcome,
)
from ragwitness.models import LanguageModel
from ragwitness.types import Capability, Document, Evidence, Interval, Probe, Query, Score

__all__ = ["Interrogation"]


class Interrogation:
    """IA: does the target answer questions that only the document's readers can answer?

    Args:
        proxy: Ranks words by rarity, or writes the questions; must not have seen the
            target's database.
        config: Parameters.
        writer: Writes the questions instead of the one that ``config.writer`` names.
    """

    requires = frozenset({Capability.TEXT})

    def __init__(
        self,
        proxy: LanguageModel,
        config: InterrogationConfig | None = None,
        *,
        writer: QuestionWriter | None = None,
    ) -> None:
        self.proxy = proxy
        self.config = config or InterrogationConfig()
        named = ChatWriter if self.config.writer == "chat" else RuleWriter
        self.writer: QuestionWriter = writer or named(proxy)

    @property
    def name(self) -> str:
        """Registered name."""
        return "interrogation"

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
        questions = self.writer.yes_no(document, config.questions, rng)
        unparsable = float(self.writer.unparsable(document))
        if len(questions) < config.fewest:
            reason = f"only {len(questions)} questions can be written about it"
            return Score(None, reason=reason, details={"unparsable": unparsable})
        summary = self.writer.summary(document)
        answers = yield [
            Query(
                query_text(summary, question.text, question.hidden, config.request),
                max_tokens=config.max_tokens,
            )
            for question in questions
        ]
        outcomes = [read_outcome(answer, yes_no=True) for answer in answers]
        return self._score(questions, outcomes, unparsable)

    def _score(
        self, questions: Sequence[Question], outcomes: Sequence[Outcome], unparsable: float
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
            "score/accuracy": accuracy(questions, outcomes),
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
    Outcome.YES,
    Outcome.NO,
    Outcome.UNKNOWN,
    Outcome.REFUSED,
    Outcome.UNREADABLE,
    Outcome.EMPTY,
    Outcome.FAILED,
)
_UNREADABLE = tuple(outcome for outcome in _COUNTED if not outcome.readable)


def _evidence(question: Question, outcome: Outcome) -> Evidence:
    """Show the expected answer, the question before it, and whether the target gave it."""
    right = contribution(question, outcome, 0.0)
    expected = "Yes" if question.expected else "No"
    return Evidence(expected, question.text, Interval(right, right), 0.5)
