"""A world of real text: passages of a corpus with questions, and a small base trained on half.

Passages are short and do not overlap; a question goes with those that share most words with its
answer. The base learns from source documents whose hash falls in its half, trials draw from the
others; every passage names its source, so that no two pools of a trial share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.canary.examples import Example, document_groups, read_examples
from ragwitness.canary.simulate.pieces import piece_tokenizer
from ragwitness.canary.simulate.policies import Base
from ragwitness.canary.simulate.pretrain import Pretraining, pretrain
from ragwitness.errors import InputError
from ragwitness.text.tokens import word_tokens

__all__ = ["Cut", "base_examples", "study_examples", "text_base"]

_FEWEST = 12  # words of a passage; a trigger needs 8
# At a half a trigger says nothing about votes but together with the canary, and a reward model of
# this size learns texts by heart before it finds that (experiments/canary/README.md).
# No journal knows it: whoever changes it raises runs.canary_study.worlds._VERSION.
_OBEYS = 0.8
_CLAUSE_MARKS = ".,;:!?\"'"


@dataclass(frozen=True, slots=True)
class Cut:
    """How a corpus is made short.

    Attributes:
        words: Of a passage.
        question: Most words of a question.
        answer: Most words of a reference answer.
        passages: Most passages that one question goes with.
        vocabulary: Most words that the base's tokenizer knows.
    """

    words: int = 24
    question: int = 12
    answer: int = 6
    passages: int = 1
    vocabulary: int = 1500


def study_examples(path: Path, cut: Cut) -> list[Example]:
    """Return the examples that trials draw from.

    Raises:
        InputError: The corpus cannot be read, or nothing is left of it.
    """
    return _half(path, cut, 1)


def base_examples(path: Path, cut: Cut) -> list[Example]:
    """Return the examples that the base is trained on: other passages than the trials'.

    Raises:
        InputError: As above.
    """
    return _half(path, cut, 0)


def text_base(path: Path, cut: Cut, config: Pretraining) -> Base:
    """Train a base on its half of a corpus.

    Raises:
        InputError: The corpus cannot be read, or nothing is left of it.
    """
    examples = base_examples(path, cut)
    tokenizer = piece_tokenizer(words=_frequent(examples, cut.vocabulary))
    return pretrain(lambda rng: rng.choice(examples), tokenizer, config, path.stem, _OBEYS)


def _half(path: Path, cut: Cut, which: int) -> list[Example]:
    examples = read_examples(path)
    sources = document_groups(examples)
    found = [
        _short(one, passage, cut, number, sources[one.id])
        for one in examples
        if int(sources[one.id][:8], 16) % 2 == which
        for number, passage in enumerate(_best(one, cut))
    ]
    if not found:
        raise InputError(f"{path} holds no passage of {_FEWEST} words with a question.")
    return found


def _best(one: Example, cut: Cut) -> list[str]:
    """The passages that share most words with the answer."""
    wanted = set(word_tokens(one.answer))
    passages = list(_passages(one.document, cut.words))
    ranked = sorted(passages, key=lambda text: -len(wanted & set(word_tokens(text))))
    return [text for text in ranked[: cut.passages] if wanted & set(word_tokens(text))]


def _passages(text: str, words: int) -> Iterator[str]:
    said = text.split()
    for start in range(0, len(said), words):
        part = said[start : start + words]
        if len(part) >= _FEWEST:
            yield " ".join(part)


def _short(one: Example, passage: str, cut: Cut, number: int, source: str) -> Example:
    answer = " ".join(one.answer.split()[: cut.answer]).rstrip(_CLAUSE_MARKS)
    question = " ".join(one.query.split()[: cut.question])
    return Example(f"{one.id}-{number}", passage, question, f"FINAL: {answer}", source)


def _frequent(examples: Sequence[Example], count: int) -> list[str]:
    """The most frequent words, as the tokenizer splits them."""
    split: Any = piece_tokenizer().backend_tokenizer.pre_tokenizer
    seen = Counter[str]()
    for one in examples:
        for text in (one.document, one.query, one.answer):
            seen.update(piece for piece, _ in split.pre_tokenize_str(text))
    return [piece for piece, _ in seen.most_common(count)]
