"""The MEntA audit of one document, as a generator without I/O."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.membership.menta.config import MentaConfig
from ragwitness.membership.menta.entailment import (
    UNKNOWN_HYPOTHESIS,
    Entailment,
    claims,
    contained,
    content,
)
from ragwitness.membership.menta.nli import NliEntailment
from ragwitness.membership.questions import (
    ChatWriter,
    OpenQuestion,
    Outcome,
    QuestionWriter,
    RuleWriter,
    query_text,
    read_outcome,
)
from ragwitness.models import LanguageModel
from ragwitness.types import Answer, Capability, Document, Evidence, Interval, Probe, Query, Score

__all__ = ["Menta"]

_COUNTED = (Outcome.UNKNOWN, Outcome.REFUSED, Outcome.EMPTY, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One answer: how much is entailed, and whether it says that it does not know."""

    question: OpenQuestion
    entailed: float
    unknown: bool


class Menta:
    """MEntA: do the target's answers to open questions agree with the document?

    Args:
        proxy: Ranks words by rarity, or writes the questions; must not have seen the
            target's database.
        config: Parameters.
        writer: Writes the questions instead of the one that ``config.writer`` names.
        entailment: Judges instead of what ``config.nli`` names: probability that a premise
            entails a hypothesis.
    """

    requires = frozenset({Capability.TEXT})

    def __init__(
        self,
        proxy: LanguageModel,
        config: MentaConfig | None = None,
        *,
        writer: QuestionWriter | None = None,
        entailment: Entailment | None = None,
    ) -> None:
        self.proxy = proxy
        self.config = config or MentaConfig()
        named = ChatWriter if self.config.writer == "chat" else RuleWriter
        self.writer: QuestionWriter = writer or named(proxy)
        loaded = NliEntailment(self.config.nli) if self.config.nli else None
        self.entailment: Entailment | None = entailment or loaded

    @property
    def name(self) -> str:
        """Registered name."""
        return "menta"

    def describe(self) -> dict[str, str]:
        """Return the parameters in use, as label and value."""
        judge = self.entailment
        by = "containment of words" if judge is None else getattr(judge, "name", "a given function")
        return {
            "questions": str(self.config.questions),
            "written by": self.writer.name,
            "entailment": f"of the {self.config.against}, by {by}",
        }

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        rng = random.Random(f"{config.seed}/{document.id}")
        questions = self.writer.open(document, config.questions, rng)
        unparsable = float(self.writer.unparsable(document))
        if not questions:
            reason = "no question can be written about it"
            return Score(None, reason=reason, details={"unparsable": unparsable})
        summary = self.writer.summary(document)
        queries = [
            Query(query_text(summary, q.text, q.hidden), max_tokens=config.max_tokens)
            for q in questions
        ]
        answers = yield queries
        return self._score(document, questions, queries, answers, unparsable)

    def _score(
        self,
        document: Document,
        questions: Sequence[OpenQuestion],
        queries: Sequence[Query],
        answers: Sequence[Answer],
        unparsable: float,
    ) -> Score:
        outcomes = [read_outcome(answer, yes_no=False) for answer in answers]
        details = {
            "questions": float(len(questions)),
            "unparsable": unparsable,
            **{outcome.value: float(outcomes.count(outcome)) for outcome in _COUNTED},
        }
        judged = [
            self._judge(document, question, query.prompt, answer.text, outcome)
            for question, query, answer, outcome in zip(
                questions, queries, answers, outcomes, strict=True
            )
            if outcome.readable
        ]
        if not judged or 2 * len(judged) < len(questions):
            worst = max(_COUNTED[1:], key=outcomes.count)
            reason = f"{outcomes.count(worst)} of {len(questions)} answers were {worst.value}"
            return Score(None, reason=reason, details=details)
        details["unknown"] = float(sum(item.unknown for item in judged))
        least, penalty = self.config.threshold, self.config.penalty
        # MEntA: mean(ent - lambda * idk), ent being 0 or 1.
        parts = [float(j.entailed >= least) - penalty * j.unknown for j in judged]
        graded = [j.entailed - penalty * j.unknown for j in judged]
        ordered = sorted(judged, key=lambda item: (-item.entailed, item.unknown))
        return Score(
            value=sum(parts) / len(parts),
            evidence=tuple(
                Evidence(j.question.answer, j.question.text, Interval(j.entailed, j.entailed), 0.0)
                for j in ordered
            ),
            details={
                **details,
                "entailed": float(sum(j.entailed >= least for j in judged)),
                "score/graded": sum(graded) / len(graded),
                "score/no-penalty": sum(j.entailed >= least for j in judged) / len(judged),
            },
        )

    def _judge(
        self,
        document: Document,
        question: OpenQuestion,
        asked: str,
        said: str,
        outcome: Outcome,
    ) -> _Judged:
        judge, unknown = self.entailment, outcome is Outcome.UNKNOWN
        if judge is not None:
            unknown = unknown or judge(said, UNKNOWN_HYPOTHESIS) > 0.5
        if unknown:
            return _Judged(question, 0.0, unknown=True)
        if self.config.against == "answer":
            pairs = [(said, question.answer)]
        else:
            pairs = [(document.text, claim) for claim in claims(said)]
        if judge is not None:
            found = [judge(premise, hypothesis) for premise, hypothesis in pairs]
        else:
            # What the query itself says proves nothing where it is said again.
            known = content(asked)
            found = [contained(premise, hypothesis, known) for premise, hypothesis in pairs]
        return _Judged(question, max(found, default=0.0), unknown=False)
