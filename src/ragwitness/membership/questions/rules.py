"""Questions written by rule: no model but the proxy that says which words are rare.

A yes/no question quotes some words of the document; in half of them one fact is exchanged, and
the expected answer is no. An open question quotes words with a gap. Questions of this kind read
less naturally than those of a language model (:class:`ChatWriter`) and are easier to detect;
they need nothing to be installed and their answers are right by construction.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, get_args

from ragwitness.membership.questions.base import OpenQuestion, YesNoQuestion
from ragwitness.models.base import LanguageModel
from ragwitness.models.words import word_scores
from ragwitness.text.sample import load_sample
from ragwitness.text.words import STOP_WORDS, Word, core, split_words
from ragwitness.types import Document

# Values of a text that can be exchanged for others: numbers, names, rare words.

Kind: TypeAlias = Literal["number", "name", "word"]

_NUMBER = re.compile(r"[\d][\d.,:/\-]*")
_DIGITS = re.compile(r"\d+")
_SENTENCE_END_VALUES = re.compile(r"[.!?:;]['\"\u201d\u2019)\]]*$")
_SHORTEST_WORD = 4
_WIDESPREAD = 8  # siblings that share an invented word are at most six
_FIRST_IDEOGRAPH = "\u2e80"


@dataclass(frozen=True, slots=True)
class Value:
    """A word that carries a fact.

    Attributes:
        text: The word without punctuation at its ends.
        start: First character in the text.
        end: One past the last.
        index: Its number among the words of the text.
        kind: What it can be exchanged for.
    """

    text: str
    start: int
    end: int
    index: int
    kind: Kind


def find_values(text: str) -> list[Value]:
    """Return every number, name and content word, in reading order."""
    found: list[Value] = []
    opens = True
    for index, word in enumerate(split_words(text)):
        stem = core(word.text)
        kind = _kind(stem, opens)
        if kind is not None:
            start = word.start + word.text.index(stem)
            found.append(Value(stem, start, start + len(stem), index, kind))
        opens = bool(_SENTENCE_END_VALUES.search(word.text))
    return found


def _kind(stem: str, opens: bool) -> Kind | None:
    """A capital tells a name only inside a sentence; elsewhere such a word is left out."""
    if not stem or stem.casefold() in STOP_WORDS:
        return None
    if _NUMBER.fullmatch(stem):
        return "number"
    if any(char.isdigit() for char in stem):
        return None
    if stem[0].isupper():
        return None if opens or len(stem) < 2 else "name"
    long_enough = len(stem) >= _SHORTEST_WORD or stem[0] >= _FIRST_IDEOGRAPH
    return "word" if long_enough and any(char.isalpha() for char in stem) else None


def number_like(number: str, rng: random.Random) -> str:
    """Draw a number of the same form: as many digits, as many zeros at the end, years as years."""
    return _DIGITS.sub(lambda match: _digits_like(match.group(), rng), number)


def _digits_like(digits: str, rng: random.Random) -> str:
    if len(digits) == 4 and 1900 <= int(digits) <= 2099:
        return str(rng.randint(1900, 2099))
    head = digits.rstrip("0")
    if not head:
        return digits
    # The last digit before the zeros is never 0, and a leading 0 stays.
    drawn = [
        "0" if place == 0 and digit == "0" else str(rng.randint(0 if place > 0 else 1, 9))
        for place, digit in enumerate(head[:-1])
    ]
    return "".join(drawn) + str(rng.randint(1, 9)) + digits[len(head) :]


def harvest(texts: Iterable[str], fewest: int = 1) -> dict[Kind, tuple[str, ...]]:
    """Return the distinct values of some texts by kind, sorted; spelled with letters alone.

    Args:
        texts: Any.
        fewest: Texts that must hold a value.
    """
    held: Counter[tuple[Kind, str]] = Counter()
    for text in texts:
        held.update({(v.kind, v.text) for v in find_values(text) if v.text.isalpha()})
    return {
        kind: tuple(sorted(t for (k, t), n in held.items() if k == kind and n >= fewest))
        for kind in get_args(Kind)
    }


@cache
def packaged_values(kind: Kind) -> tuple[str, ...]:
    """Return the names or words of the packaged corpus, sorted; none for numbers.

    Its names are invented. Its invented words, which fit nowhere, are left out: no more than a
    few of its documents share one.
    """
    texts = [document.text for document in load_sample()]
    return harvest(texts, fewest=_WIDESPREAD if kind == "word" else 1)[kind]


# How rare each word of a document is, by the auditor's proxy; and a summary made from it.

_STEP = 150  # words scored at a time; any proxy's context holds them
_FEWEST_RARITY = 1


class Rarity:
    """Surprisal of each word under the proxy.

    Args:
        proxy: Must not have seen the target's database.
        text: The document.
    """

    def __init__(self, proxy: LanguageModel, text: str) -> None:
        self.text = text
        self.values = find_values(text)
        self._surprisal: dict[str, float] = {}
        for part in _parts(proxy, text):
            for scored in word_scores(proxy, part):
                # A word is rare where it is said first; said again it is expected.
                self._surprisal.setdefault(core(scored.word).casefold(), -scored.logprob)

    def of(self, word: str) -> float:
        """Return -log p of a word where it first stands, in nats; 0 for one that is not there."""
        return self._surprisal.get(core(word).casefold(), 0.0)


def _parts(proxy: LanguageModel, text: str) -> list[str]:
    """Cut the text so that the proxy can read each part; a word it cannot read is left out."""
    words, step = split_words(text), _STEP
    room = proxy.context_length // 2
    parts: list[str] = []
    place = 0
    while place < len(words):
        size = min(step, len(words) - place)
        part = text[words[place].start : words[place + size - 1].end]
        while proxy.count_tokens(part) > room and size > _FEWEST_RARITY:
            size //= 2
            part = text[words[place].start : words[place + size - 1].end]
        if proxy.count_tokens(part) <= room:
            parts.append(part)
        place += size
    return parts


def rarest(rarity: Rarity, values: Sequence[Value], n: int) -> list[Value]:
    """Return the ``n`` rarest values, each word once, in reading order."""
    first: dict[str, Value] = {}
    for value in values:
        first.setdefault(value.text.casefold(), value)
    ordered = sorted(first.values(), key=lambda v: (-rarity.of(v.text), v.index))
    return sorted(ordered[:n], key=lambda v: v.index)


def topic(rarity: Rarity, n: int) -> str:
    """Return the document's rarest words as a phrase to find it by; empty where it has none."""
    words = [value.text for value in rarest(rarity, rarity.values, n) if value.kind != "number"]
    return f"On {', '.join(words)}:" if words else ""


_SIZES = (20, 12, 8)  # words of a quotation; shorter ones where the document is short
_FEWEST = 4
_SENTENCE_END = re.compile(r"[.!?]['\"\u201d\u2019)\]]*$|[\u3002\uff01\uff1f]$")
_EDGES = " \t\r\n.,;:!?\"'\u201c\u201d"
_GAP = "____"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class _Clause:
    """Verbatim words of the document with the values among them."""

    text: str
    start: int
    values: tuple[Value, ...]

    def with_instead(self, value: Value, other: str) -> str:
        start = value.start - self.start
        return self.text[:start] + other + self.text[start + len(value.text) :]


class RuleWriter:
    """Writes questions without a chat model.

    Args:
        proxy: Says which words are rare.
        topic_words: Words of the summary.
    """

    def __init__(self, proxy: LanguageModel, topic_words: int = 6) -> None:
        self._proxy = proxy
        self._topic_words = topic_words
        self._last: Rarity | None = None

    @property
    def name(self) -> str:
        """``rules`` with the proxy's name."""
        return f"rules ({self._proxy.name})"

    def summary(self, document: Document) -> str:
        """Return the rarest words in their order; empty where the document has none."""
        return topic(self._rarity(document), self._topic_words)

    def unparsable(self, document: Document) -> int:
        """0: a rule writes what can be read."""
        del document
        return 0

    def yes_no(self, document: Document, n: int, rng: random.Random) -> list[YesNoQuestion]:
        """Return at most ``n`` questions, one half (rounded down) answered by no."""
        rarity = self._rarity(document)
        clauses = list(_clauses(document.text, rarity.values))
        # Half of the questions are false: one fact of a quotation is exchanged.
        false = _false_questions(document.text, clauses, rarity, n // 2, rng)
        true = [YesNoQuestion(_asked(c.text), expected=True) for c in clauses[: n - n // 2]]
        # An answer that is always yes must earn no more than chance.
        most = min(len(true), len(false) + n % 2)
        questions = true[:most] + false[:most]
        rng.shuffle(questions)
        return questions

    def open(self, document: Document, n: int, rng: random.Random) -> list[OpenQuestion]:
        """Return at most ``n`` cloze questions about rare words spread over the document."""
        rarity = self._rarity(document)
        clauses = list(_clauses(document.text, rarity.values))
        questions: list[OpenQuestion] = []
        for value in _spread(rarity, n):
            holding = next((c for c in clauses if value in c.values and _once(c, value)), None)
            if holding is not None and len(questions) < n:
                gapped = holding.with_instead(value, _GAP)
                text = f'In "{gapped}", which word or value is missing?'
                questions.append(OpenQuestion(text, value.text, hidden=value.text))
        rng.shuffle(questions)
        return questions

    def _rarity(self, document: Document) -> Rarity:
        # One writer serves several threads: what is returned is never read from the field again.
        found = self._last
        if found is None or found.text != document.text:
            found = self._last = Rarity(self._proxy, document.text)
        return found


def _asked(clause: str) -> str:
    return f'Is it stated that "{clause}"?'


def _clauses(text: str, values: Sequence[Value]) -> Iterator[_Clause]:
    """Yield distinct quotations: whole sentences and their parts first, then shorter windows."""
    seen: set[str] = set()
    sentences = list(_sentences(text))
    for size in _SIZES:
        for sentence in sentences:
            step = size if size == _SIZES[0] else size // 2
            for first in range(0, len(sentence), step):
                window = sentence[first : first + size]
                if len(window) < _FEWEST:
                    continue
                raw = text[window[0].start : window[-1].end]
                quoted = raw.strip(_EDGES)
                start = window[0].start + raw.index(quoted)
                if quoted and quoted.casefold() not in seen:
                    seen.add(quoted.casefold())
                    inside = [v for v in values if start <= v.start < v.end <= start + len(quoted)]
                    yield _Clause(quoted, start, tuple(inside))


def _sentences(text: str) -> Iterator[list[Word]]:
    sentence: list[Word] = []
    for word in split_words(text):
        sentence.append(word)
        if _SENTENCE_END.search(word.text) and len(sentence) >= _FEWEST:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _false_questions(
    text: str, clauses: Sequence[_Clause], rarity: Rarity, n: int, rng: random.Random
) -> list[YesNoQuestion]:
    """Exchange one fact per question; round by round over the clauses, rarest fact first."""
    ordered = {
        clause.text: sorted(clause.values, key=lambda v: (-rarity.of(v.text), v.index))
        for clause in clauses
    }
    questions: list[YesNoQuestion] = []
    seen: set[str] = set()
    rounds = max((len(values) for values in ordered.values()), default=0)
    for turn in range(rounds):
        for clause in clauses:
            if len(questions) == n:
                return questions
            if turn < len(ordered[clause.text]):
                value = ordered[clause.text][turn]
                changed = _changed(text, clause, value, rarity.values, rng)
                if changed and changed not in seen:
                    seen.add(changed)
                    questions.append(
                        YesNoQuestion(_asked(changed), expected=False, hidden=value.text)
                    )
    return questions


def _changed(
    text: str, clause: _Clause, value: Value, values: Sequence[Value], rng: random.Random
) -> str | None:
    """Return the clause with another value; None where none makes it false."""
    for _ in range(_TRIES):
        other = _other(value, values, rng)
        if other is None:
            return None
        changed = clause.with_instead(value, other)
        differs = other.casefold() != value.text.casefold()
        if differs and changed.casefold() not in text.casefold():
            return changed
    return None


def _other(value: Value, values: Sequence[Value], rng: random.Random) -> str | None:
    """Draw a number of the same form, else a value of the document, else a packaged one."""
    if value.kind == "number":
        return number_like(value.text, rng)
    own = [v.text for v in values if v.kind == value.kind and v.text != value.text]
    alike = [word for word in own if abs(len(word) - len(value.text)) <= 2]
    if alike and rng.random() < 0.5:
        return rng.choice(alike)
    if value.text.isascii():
        packaged = packaged_values(value.kind)
        same = [word for word in packaged if len(word) == len(value.text)]
        if same:
            return rng.choice(same)
    return rng.choice(own) if own else None


def _once(clause: _Clause, value: Value) -> bool:
    """Whether the rest of the clause does not say the value."""
    return sum(v.text.casefold() == value.text.casefold() for v in clause.values) == 1


def _spread(rarity: Rarity, n: int) -> list[Value]:
    """Return the rarest value of each nth of the document, then the others, rarest first."""
    values = rarest(rarity, rarity.values, len(rarity.values))
    if not values or n < 1:
        return []
    size = -(-len(values) // n)

    def order(value: Value) -> tuple[float, int]:
        return -rarity.of(value.text), value.index

    slices = [values[i : i + size] for i in range(0, len(values), size)]
    best = [min(part, key=order) for part in slices]
    rest = sorted((v for v in values if v not in best), key=order)
    return best + rest
