"""Correctness of an answer as judged by the auditor's own chat model (the formula of Ragas).

.75 times the F1 of statements plus .25 times the cosine of both texts: statements of the answer
that the reference supports are true positives, the others false positives, statements of the
reference that the answer leaves out false negatives. No I/O: the judge is asked by a worker like
any target, so caps, journal and resuming hold for it too.

What cannot be judged has no score and its reason, where Ragas gives NaN; so have two texts that
state nothing, which Ragas gives an F1 of 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score
from ragwitness.models.base import Embedder
from ragwitness.text.words import unquoted

BOTH_EMPTY = "neither the answer nor the reference states anything"
"""Reason of two texts without a statement."""

_WEIGHT = 0.75  # of the statements
_JUDGEMENT = 1024  # most tokens
_ARRAY = re.compile(r"\[.*\]", re.DOTALL)
_SPLIT = (
    "Break the answer below into single statements that can each be checked on its own. Write"
    " every statement as one full sentence without pronouns. Reply with nothing but a JSON list"
    " of strings; an answer that states nothing gives [].\n\nQuestion: {question}\n\nAnswer:"
    " {text}"
)
_CHECK = (
    "For each numbered statement, decide whether the text supports it. Reply with nothing but a"
    " JSON list of {count} values, true or false, in the order of the statements.\n\nQuestion:"
    " {question}\n\nText: {text}\n\nStatements:\n{statements}"
)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer to judge.

    Attributes:
        question: What was asked.
        answer: What a system said.
        reference: What is right.
    """

    question: str
    answer: str
    reference: str


class Correctness:
    """Judges cases; an audit whose documents are named like the cases.

    Args:
        cases: The cases to judge, by id.
        embedder: Measures the likeness of answer and reference.
    """

    name = "correctness"
    requires = frozenset({Capability.TEXT})

    def __init__(self, cases: Mapping[str, JudgedAnswer], embedder: Embedder) -> None:
        self._cases = dict(cases)
        self._embedder = embedder

    def documents(self) -> list[Document]:
        """Return what a worker is given, one per case."""
        return [Document(name, case.answer) for name, case in self._cases.items()]

    def probe(self, document: Document) -> Probe:
        """Judge one case.

        Raises:
            InputError: There is no case of that name.
        """
        case = self._cases.get(document.id)
        if case is None:
            raise InputError(f"There is no case {document.id!r} to judge.")
        # 1. Split both texts into statements.
        texts = (case.answer, case.reference)
        splitting = [self._query(_SPLIT, question=case.question, text=text) for text in texts]
        split = yield splitting
        statements = [_strings(answer) for answer in split]
        if reason := _unread(splitting, split, statements):
            return Score(None, reason=reason)
        ours, theirs = (found or [] for found in statements)
        if not ours and not theirs:
            return Score(None, reason=BOTH_EMPTY)
        # 2. Check.
        # Each side's statements are held against the other text.
        asked = [
            self._query(
                _CHECK,
                question=case.question,
                text=text,
                count=len(stated),
                statements="\n".join(f"{n}. {one}" for n, one in enumerate(stated, 1)),
            )
            for stated, text in ((ours, case.reference), (theirs, case.answer))
            if stated
        ]
        checked = yield asked
        held = iter(checked)
        verdicts = [_truths(next(held), len(stated)) if stated else [] for stated in (ours, theirs)]
        if reason := _unread(asked, checked, verdicts):
            return Score(None, reason=reason)
        # 3. Score.
        supported, covered = (found or [] for found in verdicts)
        return self._score(case, supported, covered)

    def _score(self, case: JudgedAnswer, supported: list[bool], covered: list[bool]) -> Score:
        """Weigh the F1 of statements with the cosine of the texts."""
        true = sum(supported)
        wrong, missing = len(supported) - true, len(covered) - sum(covered)
        # Ragas: F1 = TP / (TP + (FP + FN) / 2).
        f1 = true / (true + (wrong + missing) / 2) if true else 0.0
        first, second = self._embedder.embed([case.answer, case.reference])
        cosine = max(0.0, float(first @ second)) if case.answer.strip() else 0.0
        details = {
            "true positives": float(true),
            "false positives": float(wrong),
            "false negatives": float(missing),
            "statements F1": f1,
            "cosine": cosine,
        }
        return Score(_WEIGHT * f1 + (1 - _WEIGHT) * cosine, details=details)

    def _query(self, form: str, **values: object) -> Query:
        # Not str.format on texts: braces in them are text.
        return Query(form.format(**values), max_tokens=_JUDGEMENT)


def _unread(
    asked: list[Query],
    answers: list[Answer],
    read: list[list[str] | None] | list[list[bool] | None],
) -> str:
    """Why an answer of the judge could not be read; empty where all could."""
    for query, one in zip(asked, answers, strict=True):
        if one.error:  # some servers repeat the prompt, and in it what leaked
            return f"the judge did not answer: {unquoted(one.error, query.prompt)}"
    if any(one is None for one in read):
        if any(one.finish_reason == "length" for one in answers):
            return "the judge's answer was cut off at its token limit"
        return "the judge's answer is not the JSON list asked for"
    return ""


def _strings(answer: Answer) -> list[str] | None:
    found = _list(answer) or []
    texts = [one.strip() for one in found if isinstance(one, str)]
    readable = _list(answer) is not None and len(texts) == len(found)
    return [text for text in texts if text] if readable else None


def _truths(answer: Answer, count: int) -> list[bool] | None:
    truths = [one for one in _list(answer) or [] if isinstance(one, bool)]
    return truths if len(truths) == len(_list(answer) or []) == count else None


def _list(answer: Answer) -> list[object] | None:
    """The JSON list in an answer, whatever stands around it."""
    match = _ARRAY.search(answer.text)
    try:
        found = json.loads(match.group()) if match else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None
