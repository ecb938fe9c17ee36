"""Questions written by a chat model, as IA and MEntA have theirs written.

The model writes the questions with the document before it, and the same model then answers each
with the document before it (IA's shadow model). A question that it cannot answer is dropped.
The prompts are ours.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from ragwitness.errors import InputError
from ragwitness.membership.questions.base import (
    AnswerOutcome,
    OpenQuestion,
    WrittenCache,
    YesNoQuestion,
    read_outcome,
)
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.text.words import STOP_WORDS, core, split_words
from ragwitness.types import Answer, Document, Message, Role

_SUMMARY = """\
Name what the text below deals with, in one short noun phrase, as someone would type it who looks \
for it. Keep names and abbreviations as they are spelled. Write the phrase alone and do not \
mention a text or document."""

_YES_NO = """\
Write {n} questions about the text below that can be answered with yes or no and that only its \
readers can answer. Each asks for one particular fact: a name, a number, a cause, an order of \
events. About half should have the answer no. Spell abbreviations as the text does, make each \
question understandable on its own, and never mention a text or document.
For a text on a ferry that sails at nine, one question could be:
1. Does the ferry to Marrowdale sail at nine?
Write one numbered question per line and nothing else."""

_OPEN = """\
Write {n} questions about the text below that a few words answer and that only its readers can \
answer. Together they should cover the text from beginning to end. Name the people, things and \
circumstances in each question, so that it is understandable on its own, and never mention a text \
or document.
Write one numbered question per line and nothing else."""

_ANSWER_YES_NO = """\
Answer from the text below alone, with "Yes", "No" or "I don't know" and nothing else.
Question: {question}"""

_ANSWER_OPEN = """\
Answer from the text below alone, in as few words as possible. If it does not say, answer \
"I don't know".
Question: {question}"""

_LINE = re.compile(r"^\s*(?:[-*\u2022]\s*)?(?:\**\(?(?:Q\s*)?\d+\s*[.):]\**\s*)?(.+?)\s*$")
_ABOUT_TEXT = re.compile(
    r"\b(the|this) (given |provided )?(text|document|passage)\b", re.IGNORECASE
)
_QUESTION_TOKENS = 48
_ANSWER_TOKENS = 24
_TEMPERATURE = 0.7
_SLACK = 64  # tokens of a model's chat template

_Q = TypeVar("_Q", YesNoQuestion, OpenQuestion)


class ChatWriter:
    """Has a language model write the questions and their answers.

    Args:
        model: Writes and answers; must not have seen the target's database.
        cache: Keeps outputs by sha256 of model name, prompt and document.
        retries: Further attempts, sampled, where too few questions could be read.

    Raises:
        InputError: ``retries`` is negative.
    """

    def __init__(
        self, model: LanguageModel, cache: WrittenCache | None = None, retries: int = 2
    ) -> None:
        if retries < 0:
            raise InputError(f"retries must be at least 0, not {retries}.")
        self._model = model
        self._cache = WrittenCache() if cache is None else cache
        self._retries = retries
        self._unparsable: Counter[str] = Counter()

    @property
    def name(self) -> str:
        """``chat`` with the model's name."""
        return f"chat ({self._model.name})"

    def summary(self, document: Document) -> str:
        """Return the model's phrase, its first line alone."""
        text = self._write(_SUMMARY, document, _ANSWER_TOKENS * 2).strip()
        return text.splitlines()[0].strip(" \"'*") if text else ""

    def unparsable(self, document: Document) -> int:
        """Lines and answers about this document that could not be used."""
        return self._unparsable[document.id]

    def yes_no(self, document: Document, n: int, rng: random.Random) -> list[YesNoQuestion]:
        """Return at most ``n`` questions that the model itself answers with yes or no."""

        def answered(text: str) -> YesNoQuestion | None:
            prompt = _ANSWER_YES_NO.replace("{question}", text)
            said = self._write(prompt, document, _ANSWER_TOKENS)
            outcome = read_outcome(Answer(said), yes_no=True)
            known = outcome in (AnswerOutcome.YES, AnswerOutcome.NO)
            return YesNoQuestion(text, expected=outcome is AnswerOutcome.YES) if known else None

        return self._questions(_YES_NO, document, n, rng, answered)

    def open(self, document: Document, n: int, rng: random.Random) -> list[OpenQuestion]:
        """Return at most ``n`` questions that the model itself can answer."""

        def answered(text: str) -> OpenQuestion | None:
            prompt = _ANSWER_OPEN.replace("{question}", text)
            said = self._write(prompt, document, _ANSWER_TOKENS).strip()
            known = read_outcome(Answer(said), yes_no=False) is AnswerOutcome.TEXT
            if not known:
                return None
            answer = said.splitlines()[0]
            return OpenQuestion(text, answer, hidden=_telling(answer))

        return self._questions(_OPEN, document, n, rng, answered)

    def _questions(
        self,
        prompt: str,
        document: Document,
        n: int,
        rng: random.Random,
        answered: Callable[[str], _Q | None],
    ) -> list[_Q]:
        """Ask for questions until ``n`` are answered or no attempt is left."""
        found: list[_Q] = []
        tried: set[str] = set()
        asked = prompt.replace("{n}", str(n))
        self._unparsable[document.id] = 0
        for attempt in range(self._retries + 1):
            if len(found) >= n:
                break
            written = self._write(asked, document, _QUESTION_TOKENS * n, attempt)
            # Every question is answered by the model before it counts (IA's shadow model).
            for line in filter(str.strip, written.splitlines()):
                text = _question_in(line)
                if text in tried:
                    continue
                tried.add(text or line)
                question = answered(text) if text else None
                if question is None:
                    self._unparsable[document.id] += 1
                else:
                    found.append(question)
        return found if len(found) <= n else rng.sample(found, n)

    def _write(self, prompt: str, document: Document, max_tokens: int, attempt: int = 0) -> str:
        """Generate, greedily at first; a further attempt is sampled with its number as seed."""
        sampled = f"{prompt}\n#{attempt}" if attempt else prompt
        key = self._cache.key(self._model.name, sampled, document.text)
        kept = self._cache.get(key)
        if kept is not None:
            return kept
        made = self._model.generate(
            [self._chat(prompt, document.text, max_tokens)],
            max_tokens=max_tokens,
            temperature=_TEMPERATURE if attempt else 0.0,
            seed=attempt if attempt else None,
        )
        self._cache.put(key, made[0].text)
        return made[0].text

    def _chat(self, prompt: str, text: str, max_tokens: int) -> ChatPrompt:
        """Put as much of the document below the instruction as the model can read."""
        room = self._model.context_length - max_tokens - self._model.count_tokens(prompt) - _SLACK
        words = split_words(text)
        keep = len(words)
        while keep > 1 and self._model.count_tokens(text[: words[keep - 1].end]) > room:
            keep = keep * 3 // 4
        shown = text[: words[keep - 1].end] if words else ""
        return ChatPrompt((Message(Role.USER, f"{prompt}\n\nText:\n{shown}"),))


def _telling(answer: str) -> str:
    """Return the words that the summary must not say; function words tell nothing."""
    words = (word.text for word in split_words(answer))
    return " ".join(word for word in words if core(word).casefold() not in STOP_WORDS)


def _question_in(line: str) -> str:
    """Return the question of a numbered line; empty where it holds none."""
    match = _LINE.match(line)
    text = match.group(1).strip("*\"' ") if match else ""
    return text if text.endswith("?") and not _ABOUT_TEXT.search(text) else ""
