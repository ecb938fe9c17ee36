"""The lots of a document: their places, their alternatives, and the words before them.

A lot replaces a stretch of the text by one of its alternatives. The owner writes ``{a|b|c}``;
other lots are words of which a packaged list, or a model, knows equals.
"""

from __future__ import annotations

import bisect
import functools
import random
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import regex as re

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document, Message, Role
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.text.replies import shape_of
from ragwitness.text.words import (
    UNSPACED,
    Word,
    all_letters,
    core,
    language_of,
    plain_tokens,
    script_pattern,
    split_words,
)

LEFT = 10
"""Words before a lot that a question quotes; twice as many signs of a script without blanks."""

LEAST_LEFT = 5
"""The fewest of them; none of them is drawn by lot."""

_REPEATED = 3  # words before a lot that an answer may repeat
_APART = 12  # words around a lot that hold none of its alternatives
_UNSPACED = script_pattern(UNSPACED)
_BRACE = re.compile(r"[{}]")
_BRACED = re.compile(r"\{[^{}]*\|")
_BREAKS = re.compile('["\u201c\u201d\u201e\u00ab\u00bb{}]|\n[ \t]*\n')
_RULE = re.compile(r"[!+=-]\w+")
_WORDS = re.compile(r"[^\W\d_]+( [^\W\d_]+)*")

Pool = Mapping[tuple[bool, int | str], Sequence[str]]

Proposer = Callable[[str, str], Sequence[str]]
"""Takes a passage with a word in braces, and the word; returns words that can replace it."""


@dataclass(frozen=True, slots=True)
class Lot:
    """A stretch of a text that is drawn by lot.

    Attributes:
        start: Its first character in the unmarked text.
        end: One past its last.
        alternatives: The words to draw from, the owner's own first.
        left: The words before it, none of them drawn.
        altered: The same with one word exchanged; empty where none can be.
    """

    start: int
    end: int
    alternatives: tuple[str, ...]
    left: str = ""
    altered: str = ""


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A document with its lots.

    Attributes:
        id: Of the document.
        text: Unmarked, with the first alternative of each lot.
        lots: In the order of the text.
    """

    id: str
    text: str
    lots: tuple[Lot, ...]

    def copy(self, drawn: Sequence[int]) -> str:
        """Return the text to share."""
        pieces, end = list[str](), 0
        for lot, choice in zip(self.lots, drawn, strict=True):
            pieces += [self.text[end : lot.start], lot.alternatives[choice]]
            end = lot.end
        return "".join([*pieces, self.text[end:]])


# The packaged words and questions.


@functools.cache
def table() -> dict[str, Any]:
    """Return the packaged words and questions."""
    text = files("ragwitness.membership.marks").joinpath("words.toml").read_text("utf-8")
    return tomllib.loads(text)


@functools.lru_cache(maxsize=16)
def _language(text: str) -> str:
    signs = len(_UNSPACED.findall(text))
    return "Chinese" if 2 * signs > len(text) else language_of(text) or "English"


def wording(text: str) -> dict[str, Any]:
    """Return the questions in the language of a text; in English for one without questions."""
    questions: dict[str, Any] = table()["ask"]
    return dict(questions.get(_language(text), questions["English"]))


@functools.cache
def _equals(language: str) -> dict[str, list[tuple[tuple[str, ...], frozenset[str]]]]:
    """Return the alternatives of each listed word, and the rules for its neighbours."""
    words: dict[str, list[tuple[tuple[str, ...], frozenset[str]]]] = {}
    for line in table()["words"].get(language, "").strip().splitlines():
        replaced = line.partition(" / ")[0].split()
        group = [_RULE.sub("", w).replace("_", " ") for w in line.replace(" / ", " ").split()]
        for word in replaced:
            plain = _RULE.sub("", word)
            alternatives = (plain, *(w for w in group if w != plain))
            words.setdefault(plain, []).append((alternatives, frozenset(_RULE.findall(word))))
    return words


def _listed(language: str, stem: str, before: str, behind: str) -> Sequence[str]:
    """Return a word and its equals in the packaged list, if its neighbours admit them."""
    near = {f"!{behind}", f"+{behind}", f"-{before}", f"={before}"}
    for alternatives, rules in _equals(language).get(stem, ()):
        signs = {sign: {rule for rule in rules if rule[0] == sign} for sign in "!+=-"}
        barred = (signs["!"] | signs["-"]) & near
        if not barred and all(not signs[s] or signs[s] & near for s in "+="):
            return alternatives
    return ()


def word_pool(documents: Iterable[Document]) -> Pool:
    """Return the words of documents by their form."""
    pool: dict[tuple[bool, int | str], set[str]] = {}
    for document in documents:
        for stem in {core(word.text) for word in split_words(document.text)}:
            if stem and (shape := shape_of(stem)) is not None:
                pool.setdefault(shape, set()).add(stem)
    return {shape: sorted(words) for shape, words in pool.items()}


# Finding lots.


def read_braces(document: Document) -> tuple[str, list[Lot]]:
    """Return a text without the owner's braces, and the lots in them.

    A text without a bar inside braces is returned unchanged.

    Raises:
        InputError: A mark is nested or unclosed, has one alternative, an empty one, or two that
            read alike.
    """
    text, plain, end, lots = document.text, "", 0, list[Lot]()
    if not _BRACED.search(text):
        return text, lots
    while brace := _BRACE.search(text, end):
        closing = _BRACE.search(text, brace.end())
        plain += text[end : brace.start()]
        end = closing.end() if closing else len(text)
        alternatives = tuple(text[brace.end() : end - 1].split("|"))
        keys = [tuple(plain_tokens(word)) for word in alternatives]
        faults = {
            "is not opened": brace[0] == "}",
            "is not closed": closing is None,
            "holds another brace": closing is not None and closing[0] == "{",
            "has one alternative": len(keys) < 2,
            "has an alternative without a word": () in keys,
            "has two alternatives that read alike": len({*keys}) < len(keys),
        }
        if fault := next((name for name, true in faults.items() if true), None):
            raise InputError(
                f"{document.id}: the mark {text[brace.start() : end][:60]!r} {fault}.",
                "Write {one|another|a third}, or --no-braces where braces are part of the text.",
            )
        lots.append(Lot(len(plain), len(plain) + len(alternatives[0]), alternatives))
        plain += alternatives[0]
    return plain + text[end:], lots


def find_lots(
    document: Document,
    most: int,
    pool: Pool,
    draw: random.Random,
    *,
    braces: bool = True,
    propose: Proposer | None = None,
) -> MarkedDocument:
    """Find the lots of a document: the owner's, then others up to ``most``, with many alternatives.

    No question about a lot quotes another one: each has words of its own before it.

    Args:
        document: The text, with the owner's braces.
        most: Lots of a document, unless its owner wrote more.
        pool: Words of all documents. Questions take a word from it to exchange.
        draw: Chooses the words to mark, and the words to exchange.
        braces: Whether braces are read.
        propose: A model that knows other words; None takes the packaged list.

    Raises:
        InputError: A mark of the owner is malformed or has too few words before it.
    """
    text, chosen = read_braces(document) if braces else (document.text, [])
    words = split_words(text)
    order = list(range(LEAST_LEFT, len(words)))
    draw.shuffle(order)
    # 1. Other lots. A model is asked only about words that will be taken.
    if propose is not None:
        for at in order:
            free = len(chosen) < most and _free(words, at, chosen)
            if free and (lot := _lot_at(text, words, at, propose)):
                chosen.append(lot)
    else:
        able = [(at, lot) for at in order if (lot := _lot_at(text, words, at))]
        # Those with many alternatives first, and those behind a comma last.
        able.sort(
            key=lambda pair: (-len(pair[1].alternatives), text[: pair[1].start][-2:-1] == ",")
        )
        for at, lot in able:
            if len(chosen) < most and _free(words, at, chosen):
                chosen.append(lot)
    chosen.sort(key=lambda lot: lot.start)
    # 2. The words that a question quotes: those between a lot and the one before it.
    lots: list[Lot] = []
    for lot, previous in zip(chosen, (None, *chosen), strict=False):
        quoted = _quoted(text, words, lot.start, previous.end if previous else 0)
        if not quoted:
            mark = "|".join(lot.alternatives)[:60]
            raise InputError(
                f"{document.id}: fewer than {LEAST_LEFT} words come before the mark {{{mark}}},"
                " behind a quotation mark, a blank line or another mark.",
                "A question quotes these words. Move the mark, or leave it out.",
            )
        altered = _altered(quoted, text, pool, draw)
        lots.append(replace(lot, left=quoted, altered=altered))
    return MarkedDocument(document.id, text, tuple(lots))


def _span(text: str, at: int) -> int:
    """Return the number of words before a place that are quoted."""
    return LEFT * (1 + bool(_UNSPACED.match(text[max(0, at - 2) : at].rstrip()[-1:])))


def _quoted(text: str, words: Sequence[Word], end: int, start: int = 0) -> str:
    """Return the words before a place in one line, from ``start`` on; empty if they are too few.

    A quotation holds no quotation mark, and is of one paragraph.
    """
    last = bisect.bisect_left(words, end, key=lambda word: word.start)
    near = words[max(last - _span(text, end), 0) : last]
    start = max(start, near[0].start) if near else end
    start = max([start, *(match.end() for match in _BREAKS.finditer(text, start, end))])
    near = [word for word in near if word.start >= start]
    return " ".join(text[near[0].start : end].split()) if len(near) >= LEAST_LEFT else ""


def _free(words: Sequence[Word], at: int, lots: Sequence[Lot]) -> bool:
    """Whether there are enough words between a place and each lot."""
    start = words[max(0, at - LEAST_LEFT - 1)].start
    end = words[min(len(words) - 1, at + LEAST_LEFT + 1)].end
    return not any(start < lot.end and lot.start < end for lot in lots)


def _lot_at(
    text: str, words: Sequence[Word], at: int, propose: Proposer | None = None
) -> Lot | None:
    """Return the lot of a word; None where no other word can take its place."""
    stem = core(words[at].text)
    start = words[at].start + words[at].text.find(stem)
    if _UNSPACED.fullmatch(stem):  # each sign is a word, and words of two are listed
        stem = text[start : start + 2]
    end = start + len(stem)
    # A quotation would end with the sentence, and a word in capitals has no equals.
    quoted = _quoted(text, words, start)
    if not stem or not re.search(r"[\w,;]$", quoted) or (stem.isupper() and len(stem) > 1):
        return None
    before, behind = (
        core(w.text).lower() for w in (words[at - 1], words[min(at + 1, len(words) - 1)])
    )
    if propose is None:
        equals = _listed(_language(text), stem.lower(), before, behind)
    elif all_letters(stem) and len(stem) > 3:
        passage = f"{text[max(0, start - 150) : start]}{{{stem}}}{text[end : end + 80]}"
        equals = (stem.lower(), *propose(passage, stem))
    else:
        return None
    # As the owner's word: a capital, and after "a" or "an" the same kind of first letter.
    if before in ("a", "an"):
        equals = [w for w in equals if (w[0] in "aeiou") == (stem[0].lower() in "aeiou")]
    if stem[:1].isupper():
        equals = [w[:1].upper() + w[1:] for w in equals]
    # An answer that goes on repeats the words around: none of them may be an alternative.
    sides = text[words[max(0, at - _APART)].start : start], text[end : end + 8 * _APART]
    around = _key(" ".join(sides))
    keys = {_key(w): w for w in reversed(equals)}
    able = [w for key, w in reversed(keys.items()) if key not in around]
    return Lot(start, end, tuple(able)) if able[1:] and _key(able[0]) == _key(stem) else None


def _altered(quoted: str, text: str, pool: Pool, draw: random.Random) -> str:
    """Return the words before a lot with one of them exchanged; empty where none can be."""
    present = {*plain_tokens(text)}
    for word in reversed(split_words(quoted)[2:-3]):
        stem = core(word.text)
        able = [
            w for w in pool.get(shape_of(stem) or (False, -1), ()) if w.casefold() not in present
        ]
        if able:
            start = word.start + word.text.find(stem)
            return quoted[:start] + draw.choice(able) + quoted[start + len(stem) :]
    return ""


def proposer(model: LanguageModel) -> Proposer:
    """Return a function that asks a chat model for other words."""

    def propose(passage: str, word: str) -> list[str]:
        request = (
            f"Text: {passage}\n\nName six other words or phrases that could take the place of"
            f" {{{word}}} without changing the meaning or the grammar. Separate them by commas and"
            " write nothing else."
        )
        (reply,) = model.generate([ChatPrompt((Message(Role.USER, request),))], max_tokens=48)
        offered = (piece.strip(" .{}\"'") for piece in re.split(r"[,;\n]", reply.text))
        return [words.lower() for words in offered if _WORDS.fullmatch(words)]

    return propose


# Reading answers.


def _key(text: str) -> str:
    return f" {' '.join(plain_tokens(text))} "


def named(
    answer: str, alternatives: Sequence[str], quoted: str = "", *, behind: bool = False
) -> int | None:
    """Return the alternative that an answer names; None where it names none, or several.

    An alternative behind the words before the lot counts first: an answer may quote more of the
    text. The longest is searched first: "cat flap" does not name "cat".

    Args:
        answer: The answer.
        alternatives: Of the lot.
        quoted: The words before it.
        behind: Whether only an alternative behind these words counts.
    """
    for words in (plain_tokens(quoted)[-_REPEATED:], ())[: 2 - behind]:
        text, choices = _key(answer), set[int]()
        keys = [_key(" ".join([*words, alternative])) for alternative in alternatives]
        for choice in sorted(range(len(keys)), key=lambda choice: -len(keys[choice])):
            while keys[choice] in text:
                text, choices = text.replace(keys[choice], " \0 "), choices | {choice}
        if len(choices) == 1:
            return choices.pop()
    return None
