"""MEntA (USENIX Security 2026): open questions, answers judged by entailment."""

from __future__ import annotations

import math
import random
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from ragwitness.errors import InputError, ModelError
from ragwitness.kit.fields import at_least, one_of
from ragwitness.membership.questions.base import (
    AnswerOutcome,
    OpenQuestion,
    QuestionWriter,
    query_text,
    read_outcome,
)
from ragwitness.membership.questions.chat import ChatWriter
from ragwitness.membership.questions.rules import RuleWriter
from ragwitness.models.base import LanguageModel
from ragwitness.models.hf_files import identity, import_libraries, load_pretrained
from ragwitness.text.words import STOP_WORDS, core, split_words
from ragwitness.types import Answer, Capability, Document, Evidence, Interval, Probe, Query, Score

# Parameters of MEntA, the paper's beside ours.


@dataclass(frozen=True, slots=True)
class MentaConfig:
    """How a document is asked about, and how answers are judged.

    Attributes:
        questions: The paper asks 5.
        penalty: lambda, taken off for each "I don't know"; the paper has 1.
        against: ``"answer"``: does what the target says entail the expected answer;
            ``"document"``: does the document entail one of the sentences it says.
        threshold: Entailment from which a claim counts as entailed; one half stands for "the
            top class" of a three-way model.
        nli: ``""`` for the embedded stand-in, else the hub name or folder of an NLI model
            (the paper's: ``tasksource/deberta-base-long-nli``).
        writer: ``"rules"`` (ours, no model) or ``"chat"``, which has the proxy write.
        max_tokens: Room for an answer.
        seed: Of the choice and order of questions, together with the document's id.
    """

    stored_name: ClassVar[str] = "MentaConfig"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "paper": {
            "against": "document",
            "nli": "tasksource/deberta-base-long-nli",
            "writer": "chat",
        }
    }

    questions: int = 5
    penalty: float = 1.0
    against: Literal["answer", "document"] = "answer"
    threshold: float = 0.5
    nli: str = ""
    writer: Literal["rules", "chat"] = "rules"
    max_tokens: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be audited."""
        at_least(self, 1, "questions", "max_tokens")
        if not (math.isfinite(self.penalty) and self.penalty >= 0):
            raise InputError(f"penalty must be at least 0, not {self.penalty}.")
        if not 0 < self.threshold <= 1:
            raise InputError(f"threshold must lie in (0, 1], not {self.threshold}.")
        one_of(self, "against", "answer", "document")
        one_of(self, "writer", "rules", "chat")


# Whether one text entails another: the embedded stand-in, and the claims that are judged.
#
# The stand-in is containment: the share of the hypothesis's content words and numbers that the
# premise says. It has no idea of negation or paraphrase; an NLI model does (:mod:`.nli`).

Entailment: TypeAlias = Callable[[str, str], float]
"""Probability, in [0, 1], that a premise entails a hypothesis."""

UNKNOWN_HYPOTHESIS = "I don't know the answer."

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def claims(text: str) -> list[str]:
    """Split an answer into its sentences."""
    return [part.strip() for part in _SENTENCE.split(text) if content(part)]


def content(text: str) -> list[str]:
    """Return the words of a text without function words, punctuation, case, signs of numbers."""
    stems = (core(word.text).casefold() for word in split_words(text))
    return [stem.replace(",", "") for stem in stems if stem and stem not in STOP_WORDS]


def contained(premise: str, hypothesis: str, known: Collection[str] = ()) -> float:
    """Return the share of the hypothesis's content words that the premise says.

    Args:
        premise: What should entail.
        hypothesis: What should be entailed; 0 where no content word is left of it.
        known: Words that prove nothing, such as those of the question.
    """
    wanted = set(content(hypothesis)) - set(known)
    return len(wanted & set(content(premise))) / len(wanted) if wanted else 0.0


# An NLI model from transformers as the judge of entailment; needs the extra ``hf``.

NLI_MODEL = "tasksource/deberta-base-long-nli"
"""What MEntA judges with."""

_LONGEST = 1280  # tokens that model was trained with; a premise beyond is cut


class NliEntailment:
    """Probability that a premise entails a hypothesis; loads at the first pair.

    Args:
        source: Hub name or local folder of a sequence classifier with a class whose label
            begins with "entail".
    """

    def __init__(self, source: str = NLI_MODEL) -> None:
        self._source = source
        self._model: Any = None
        self._tokenizer: Any = None
        self._entailed = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Identity with version, once loaded."""
        return self._source if self._model is None else identity(self._source, self._model.config)

    def __call__(self, premise: str, hypothesis: str) -> float:
        """Return the probability of the class "entailment".

        Raises:
            MissingExtraError: torch or transformers is not installed.
            ModelError: There is no such model, or it has no such class.
        """
        torch, _ = import_libraries("the NLI model of MEntA")
        # Fast tokenizers keep the truncation as state and refuse a second thread that sets it.
        with self._lock:
            if self._model is None:
                self._load()
            longest = min(_LONGEST, int(self._model.config.max_position_embeddings))
            pair = self._tokenizer(
                premise,
                hypothesis,
                truncation="only_first",
                max_length=longest,
                return_tensors="pt",
            )
        with torch.inference_mode():
            logits = self._model(**pair).logits[0]
        return float(torch.softmax(logits.float(), -1)[self._entailed])

    def _load(self) -> None:
        """Load; the model is set last, because it says that the rest is there."""
        _, transformers = import_libraries("the NLI model of MEntA")
        model = load_pretrained(transformers.AutoModelForSequenceClassification, self._source)
        labels = {int(i): str(label).casefold() for i, label in model.config.id2label.items()}
        found = [i for i, label in labels.items() if label.startswith("entail")]
        if not found:
            raise ModelError(
                f"{self._source} has no class 'entailment', but {', '.join(labels.values())}.",
                f"Give an NLI model, such as {NLI_MODEL}.",
            )
        self._tokenizer = load_pretrained(transformers.AutoTokenizer, self._source)
        self._entailed = found[0]
        self._model = model.eval()


# The MEntA audit of one document, as a generator without I/O.

_COUNTED = (AnswerOutcome.UNKNOWN, AnswerOutcome.REFUSED, AnswerOutcome.EMPTY, AnswerOutcome.FAILED)


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

    stored_name: ClassVar[str] = "ragwitness.membership.menta.probe.Menta"
    name = "menta"
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
        # 1. Open questions that the document answers, asked with a phrase to retrieve it by.
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
        # 2. Each answer that says anything is judged by entailment.
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
        outcome: AnswerOutcome,
    ) -> _Judged:
        judge, unknown = self.entailment, outcome is AnswerOutcome.UNKNOWN
        if judge is not None:
            # MEntA: an answer that entails "I don't know" says so in other words.
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
