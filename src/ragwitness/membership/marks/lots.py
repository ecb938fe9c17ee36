"""The lots of a document: where they stand, what they are drawn from, and what each asks.

A lot replaces a stretch of the text by one of its alternatives. The owner writes ``{a|b|c}``;
others are found where a word stands that a packaged list, or a model, knows equals of.
"""

from __future__ import annotations

import bisect
import functools
import random
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership.methods.runon import Background, shape_of
from ragwitness.text.words import UNSPACED, Word, core, dense_tokens, language_of, split_words

LEFT = 10
"""Words before a lot that a question quotes; twice as many signs of a script without blanks."""

LEAST_LEFT = 5
"""The fewest words that must stand before a lot, none of them drawn by lot."""

_BEFORE = 3  # words before a lot that an answer may repeat
_APART = 12  # words around a lot that hold none of its alternatives
_BREAKS = re.compile('["\u201c\u201d\u201e\u00ab\u00bb{}]|\n[ \t]*\n')
_BRACED = re.compile(r"\{[^{}]*\|")
_RULE = re.compile(r"([!+=-])(\w+)")

Proposer = Callable[[str, str], Sequence[str]]
"""Takes the words around a place, with the word itself in braces, and the word; returns others."""


@dataclass(frozen=True, slots=True)
class Lot:
    """A stretch of a text that is drawn by lot.

    Attributes:
        start: Its first character in the unmarked text.
        end: One past its last.
        alternatives: What may stand there; the owner's own comes first.
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
        text: Unmarked: the first alternative stands at each lot.
        lots: In the order of the text.
    """

    id: str
    text: str
    lots: tuple[Lot, ...]

    def copy(self, drawn: Sequence[int]) -> str:
        """Return the text to share."""
        parts, end = list[str](), 0
        for lot, choice in zip(self.lots, drawn, strict=True):
            parts += [self.text[end : lot.start], lot.alternatives[choice]]
            end = lot.end
        return "".join([*parts, self.text[end:]])


@functools.cache
def table() -> dict[str, Any]:
    """Return the packaged words and questions."""
    text = files("ragwitness.membership.marks").joinpath("words.toml").read_text("utf-8")
    return tomllib.loads(text)


@functools.cache
def _equals(language: str) -> dict[str, list[tuple[tuple[str, ...], list[tuple[str, str]]]]]:
    """The groups and rules of each word that is replaced where it stands."""
    words: dict[str, list[tuple[tuple[str, ...], list[tuple[str, str]]]]] = {}
    for line in table()["words"].get(language, "").strip().splitlines():
        own, _, others = line.partition(" / ")
        group = [_RULE.sub("", word).replace("_", " ") for word in (*own.split(), *others.split())]
        for word in own.split():
            plain = _RULE.sub("", word)
            alternatives = (plain, *(other for other in group if other != plain))
            words.setdefault(plain, []).append((alternatives, _RULE.findall(word)))
    return words


def read_braces(document: Document) -> tuple[str, list[Lot]]:
    """Return a text without the owner's braces, and the lots that they are.

    A text in which no brace is followed by a bar is returned as it is.

    Raises:
        InputError: A mark is nested or unclosed, has one alternative, an empty one, or two that
            read alike.
    """
    text, lots = document.text, list[Lot]()
    if not _BRACED.search(text):
        return text, lots
    plain, end = "", 0
    while brace := re.compile(r"[{}]").search(text, end):
        plain += text[end : brace.start()]
        closing = re.compile(r"[{}]").search(text, brace.end())
        mark = text[brace.start() : closing.end() if closing else len(text)][:60]
        if brace[0] == "}":
            raise _bad(document.id, text[max(0, brace.start() - 20) : brace.end()], "is not opened")
        if closing is None:
            raise _bad(document.id, mark, "is not closed")
        if closing[0] == "{":
            raise _bad(document.id, mark, "holds another brace")
        alternatives = tuple(text[brace.end() : closing.start()].split("|"))
        keys = [tuple(dense_tokens(alternative)) for alternative in alternatives]
        if len(alternatives) < 2:
            raise _bad(document.id, mark, "has one alternative")
        if () in keys:
            raise _bad(document.id, mark, "has an alternative without a word")
        if len({*keys}) < len(keys):
            raise _bad(document.id, mark, "has two alternatives that read alike")
        lots.append(Lot(len(plain), len(plain) + len(alternatives[0]), alternatives))
        plain, end = plain + alternatives[0], closing.end()
    return plain + text[end:], lots


def _bad(document: str, mark: str, why: str) -> InputError:
    return InputError(
        f"{document}: the mark {mark!r} {why}.",
        "Write {one|another|a third}, or --no-braces where braces are part of the text.",
    )


def find_lots(
    document: Document,
    most: int,
    background: Background,
    draw: random.Random,
    *,
    braces: bool = True,
    propose: Proposer | None = None,
) -> MarkedDocument:
    """Find the lots of a document: the owner's, then others up to ``most``, with many alternatives.

    No question about a lot quotes another one: each has words of its own before it.

    Args:
        document: The text, with the owner's braces.
        most: Lots of a document, unless its owner has written more.
        background: Words of all documents, from which questions take a word to exchange.
        draw: Decides which places are taken, and which words are exchanged.
        braces: Whether braces are read.
        propose: A model that knows other words; None takes the packaged list.

    Raises:
        InputError: A mark of the owner's is malformed or has too few words before it.
    """
    text, owners = read_braces(document) if braces else (document.text, [])
    words = split_words(text)
    # 1. The places of other lots, those with many alternatives first.
    places: list[tuple[int, Lot]] = []
    order = list(range(LEAST_LEFT, len(words)))
    draw.shuffle(order)
    for at in order:
        # A model is asked only about places that would be taken.
        taken = [*owners, *(lot for _, lot in places)] if propose else owners
        if propose and len(taken) >= most:
            break
        if _free(words, at, taken) and (lot := _lot_at(text, words, at, propose)):
            places.append((at, lot))
    # Those with many alternatives first, then those where no comma stands before.
    places.sort(
        key=lambda place: (
            -len(place[1].alternatives),
            not text[: place[1].start].rstrip()[-1:].isalnum(),
        )
    )
    # 2. As many as fit, each with words of its own before it.
    chosen = list(owners)
    for at, lot in places:
        if len(chosen) < most and _free(words, at, chosen):
            chosen.append(lot)
    chosen.sort(key=lambda lot: lot.start)
    # 3. What is quoted of each: the words before it, up to the lot before.
    lots: list[Lot] = []
    for lot, before in zip(chosen, (None, *chosen), strict=False):
        left = _quoted(text, words, lot.start, before.end if before else 0)
        if not left:
            mark = "|".join(lot.alternatives)[:60]
            raise InputError(
                f"{document.id}: fewer than {LEAST_LEFT} words stand before the mark {{{mark}}},"
                " behind a quotation mark, a blank line or another mark.",
                "A question quotes these words. Move the mark, or leave it out.",
            )
        altered = _altered(left, text, background, draw)
        lots.append(Lot(lot.start, lot.end, lot.alternatives, left, altered))
    return MarkedDocument(document.id, text, tuple(lots))


def _quoted(text: str, words: Sequence[Word], end: int, start: int = 0) -> str:
    """Return the words before a place in one line, from ``start`` on; empty if too few can be.

    What stands in quotation marks cannot be quoted again, and a quotation is of one paragraph.
    """
    breaks = [match.end() for match in _BREAKS.finditer(text, start, end)]
    start = max([start, *breaks])
    last = bisect.bisect_left(words, end, key=lambda word: word.start)
    first = max(last - _span(text, end), 0)
    near = [word for word in words[first:last] if word.start >= start]
    return " ".join(text[near[0].start : end].split()) if len(near) >= LEAST_LEFT else ""


def _language(text: str) -> str:
    signs = len(re.findall(f"[{UNSPACED}]", text))
    return "Chinese" if 2 * signs > len(text) else language_of(text) or "English"


def wording(text: str) -> dict[str, Any]:
    """Return the questions in the language of a text; in English for one without questions."""
    ask: dict[str, Any] = table()["ask"]
    return dict(ask.get(_language(text), ask["English"]))


def _span(text: str, at: int) -> int:
    """How many words before a place are quoted."""
    return LEFT * (1 + bool(re.search(f"[{UNSPACED}]$", text[:at].rstrip())))


def _free(words: Sequence[Word], at: int, taken: Sequence[Lot]) -> bool:
    """Whether enough words stand between a place and each lot."""
    before = words[max(0, at - LEAST_LEFT - 1)].start
    behind = words[min(len(words) - 1, at + LEAST_LEFT + 1)].end
    return not any(before < lot.end and lot.start < behind for lot in taken)


def _lot_at(text: str, words: Sequence[Word], at: int, propose: Proposer | None) -> Lot | None:
    """Return the lot of a word; None where nothing can take its place."""
    word = words[at]
    stem = core(word.text)
    start = word.start + word.text.find(stem)
    if re.fullmatch(f"[{UNSPACED}]", stem):  # signs stand alone, and words of two are listed
        stem = text[start : start + 2]
    end = start + len(stem)
    # A quotation would end with the sentence, and a word in capitals has no equals.
    quoted = _quoted(text, words, start)
    if not stem or not re.search(r"[\w,;]$", quoted) or (stem.isupper() and len(stem) > 1):
        return None
    near = [core(w.text).lower() for w in (words[at - 1], *words[at + 1 : at + 2])]
    before, behind = near[0], near[1] if len(near) > 1 else ""
    if propose is None:
        others = _listed(_language(text), stem.lower(), before, behind)
    elif stem.isalpha() and len(stem) > 3:
        sides = text[words[max(0, at - 25)].start : start], text[end : end + 80]
        others = (stem.lower(), *propose(f"{sides[0]}{{{stem}}}{sides[1]}", stem))
    else:
        return None
    # As the own word: a capital, and after "a" or "an" the same kind of first letter.
    if before in ("a", "an"):
        others = [w for w in others if (w[0] in "aeiou") == (stem[0].lower() in "aeiou")]
    if stem[:1].isupper():
        others = [w[:1].upper() + w[1:] for w in others]
    # An answer that goes on says the words around: none of them may be an alternative.
    around = text[words[max(0, at - _APART)].start : start], text[end:][: _APART * 8]
    said = f" {' '.join(dense_tokens(' '.join(around)))} "
    keys = {f" {' '.join(dense_tokens(w))} ": w for w in reversed(others)}
    apart = [w for key, w in reversed(keys.items()) if key not in said]
    return Lot(start, end, tuple(apart)) if apart[1:] and apart[0].lower() == stem.lower() else None


def _listed(language: str, stem: str, before: str, behind: str) -> Sequence[str]:
    """Return a word and its equals in the packaged list, as far as its neighbours admit them."""

    def admits(
        rules: Sequence[tuple[str, str]], neighbour: str, required: str, barred: str
    ) -> bool:
        wanted = {word for sign, word in rules if sign == required}
        return (barred, neighbour) not in rules and (not wanted or neighbour in wanted)

    groups = _equals(language).get(stem, ())
    able = (
        alternatives
        for alternatives, rules in groups
        if admits(rules, behind, "+", "!") and admits(rules, before, "=", "-")
    )
    return next(able, ())


def _altered(left: str, text: str, background: Background, draw: random.Random) -> str:
    """Return the words before a lot with one of them exchanged; empty where none can be."""
    words = split_words(left)
    present = {*dense_tokens(text)}
    for word in reversed(words[2:-3]):
        stem = core(word.text)
        able = [w for w in background.alternatives(shape_of(stem)) if w.casefold() not in present]
        if able:
            start = word.start + word.text.find(stem)
            return left[:start] + draw.choice(able) + left[start + len(stem) :]
    return ""


def named(answer: str, alternatives: Sequence[str], left: str = "") -> int | None:
    """Return which alternative an answer names; None where it names none, or several.

    One behind the words before the lot counts first, since an answer may quote more of the text.
    The longest is looked for first: "cat flap" does not name "cat". Nothing here knows the lot.

    Args:
        answer: What was said.
        alternatives: Of the lot.
        left: The words before it.
    """
    for before in (dense_tokens(left)[-_BEFORE:], ()):
        keys = [f" {' '.join([*before, *dense_tokens(one)])} " for one in alternatives]
        said, places = f" {' '.join(dense_tokens(answer))} ", set[int]()
        for place in sorted(range(len(keys)), key=lambda place: -len(keys[place])):
            while keys[place] in said:
                said, places = said.replace(keys[place], " \0 "), places | {place}
        if len(places) == 1:
            return places.pop()
    return None


def proposer(model: Any) -> Proposer:
    """Return what asks a chat model for other words."""
    from ragwitness.core.types import Message, Role
    from ragwitness.models.base import ChatPrompt

    def propose(around: str, word: str) -> list[str]:
        request = (
            f"Text: {around}\n\nName six other words or phrases that could stand in place of"
            f" {{{word}}} without changing the meaning or the grammar. Separate them by commas and"
            " write nothing else."
        )
        prompt = ChatPrompt((Message(Role.USER, request),))
        (reply,) = model.generate([prompt], max_tokens=48)
        offered = (part.strip(" .\n{}\"'") for part in re.split(r"[,;\n]", reply.text))
        return [o.lower() for o in offered if re.fullmatch(r"[^\W\d_]+( [^\W\d_]+)*", o)]

    return propose
