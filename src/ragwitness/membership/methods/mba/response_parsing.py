"""The word that a target gave for each mask (§4.4), in any form of answer."""

from __future__ import annotations

import html
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import Match, SequenceMatcher
from itertools import islice, pairwise

import regex as re

from ragwitness.text.replies import declines
from ragwitness.text.words import LETTER, core, script_pattern, split_words

_Pair = tuple[int, str]  # number of a mask, and its answer

# A label is a word with a number: "[Mask_1]", "Maske 1", "answer_1", "**Mask 1**".
_LABEL = re.compile(
    r"[\[({<]?[ ]?(?<![\w/])(?P<name>[^\W\d_]{2,12}(?: ?word)?)[ _\-#]{0,2}"
    r"(?P<number>\d{1,3})(?!\w|[.,]\d) ?[\])}>]?[*_`\"'\u201d]*",
    re.IGNORECASE,
)
_REASON = re.compile(r"\s[(\u2013\u2014-]|[,;] ")
_REPEATED_MASK = re.compile(r"[\[(]?\bmask[ _]?\d{1,3}\b[\])]?", re.IGNORECASE)
_EMPTY = re.compile(r"\[mask\]", re.IGNORECASE)
_MASK = re.compile(r"mask(?:ed)?(?: ?word)?", re.IGNORECASE)
_SEPARATOR = re.compile(
    r"[\s*_`]*(?::|\uff1a|=+>?|-+>?|\u2013|\u2014|\u2192|\||\bis\b)", re.IGNORECASE
)
_NUMBERED_LINE = re.compile(
    r"^[ \t]*(?:[-*\u2022|][ \t]*)?[\[(*_]{0,3}(\d{1,3})[\])*_]{0,3}"
    r"(?:[):\]][*_]*(?:[ \t]+|(?=\D))|\.[*_]*[ \t]+|[ \t]+[-\u2013=|][ \t]+)(?=\S)",
    re.MULTILINE,
)
_NUMBERED_INLINE = re.compile(r"(?:^|(?<=[\s,;]))\(?(\d{1,3})[.):][ \t]+(?=\S)")
_MARKED = re.compile(r"(?<!\w)\[([^\[\]\n]{1,60})\]")
_DRESS = "\uff1a \t\r\n*_`\"'\u201c\u201d\u2018\u2019[](){}<>:;,.|-\u2013\u2014\u2022=\u2192"
_LINE_BREAK_TAG = re.compile(r"</?(?:br|p|li|ul|ol|div|tr|td|h\d|pre)\b[^>]*>|</\w*\d>", re.I)
_HTML = re.compile(r"</\w+\s*>|<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z]+\d?\b[^<>]*>", re.IGNORECASE)  # <mask_1> is a label
_LABELLED = re.compile(r"^(?:answer|mask)[\s_]*\d*\s*\]?\s*[:=]\s*", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(\d{1,3})\D*$")
_LIST_OPENING = re.compile(
    r"[^\n:]{0,80}?(?::|\s(?:are|sind|sont|son|sono|s\u00e3o|zijn)\s)", re.IGNORECASE
)
_AND = r"\s(?:and|und|et|y|e|en)\s"
_BETWEEN = (re.compile(r"\n"), re.compile(r";"), re.compile(rf",{_AND}|{_AND}|,"))
_PIECE = re.compile(r"(?:[^\s/,;()|]|(?<=\d)[/,](?=\d))+")
_ARTICLES = frozenset(("a", "an", "the"))
_LONGEST = 50_000  # characters; no target was asked for as much
_TRIES = 64  # places where a JSON value may begin
_FEW = 3  # words of an answer without a separator; more is the masked text repeated
SHORT = 10  # words of an answer in any of which a hit may be
_AROUND = 3  # words around a mask that show its place
_JOINED = 3  # words that may be one in the document: "follow up"
_SLOT = "\0"  # in place of a mask, in a masked text
MASK = re.compile(r"\[Mask_(\d+)\]")


def read_answers(text: str, masks: int, masked: str = "") -> dict[int, str]:
    """Read the word for each mask.

    The forms, in this order: a JSON value, or ``[Mask_3]: word`` with any decoration; ``3. word``;
    the masked text with its masks filled; a bare list with exactly one item a mask. Other prose,
    and the masked text repeated unchanged, give nothing.

    Args:
        text: The target's answer, stripped by
            :func:`~ragwitness.membership.response_parsing.replies.read_answer`.
        masks: Number of masks in the question.
        masked: The masked text.

    Returns:
        Answers without quotes and similar signs at their ends, by mask number. Of several blocks
        of answers the last complete one counts; in a block the first answer to a mask does.
    """
    text = text[:_LONGEST]
    if _HTML.search(text):
        text = html.unescape(_TAG.sub("", _LINE_BREAK_TAG.sub("\n", text)))
    # Numbered answers first; a bare list only where nothing has a number.
    answers = _collect(_from_labels(text, masks, masked), masks)
    # A label may be part of JSON, and an array may follow a label: whichever reads more masks.
    nested = _collect(_from_json(text), masks)
    answers = nested if len(nested) >= len(answers) else answers
    filled = _collect(_from_filled(text, masks, masked), masks)
    answers = answers or _collect(_from_numbers(text, masks), masks)
    answers = answers or filled or _collect(_from_list(text, masks), masks)
    # Under any label, a sentence of the text with its mask filled answers that mask.
    long = {n for n, answer in answers.items() if len(answer.split()) > _FEW}
    return answers | {n: word for n, word in filled.items() if n not in answers or n in long}


def is_right(answer: str, accepted: Iterable[str], short: int = SHORT) -> bool:
    """Whether an answer holds an accepted word.

    Args:
        answer: The answer.
        accepted: The accepted words.
        short: In an answer of at most this many words any of them counts; in a longer one the
            first that is no article.
    """
    targets = {normalise(word) or word for word in accepted}
    if normalise(answer) in targets:
        return True
    pieces = list(_PIECE.finditer(answer))
    if len(pieces) > short:
        words = answer.split()
        first = next((word for word in words if word.casefold() not in _ARTICLES), words[0])
        return normalise(first) in targets
    # The answer may repeat the words around the mask; the document may join several words.
    return any(
        normalise(answer[first.start() : last.end()]) in targets
        for size in range(1, _JOINED + 1)
        for first, last in zip(pieces, pieces[size - 1 :], strict=False)
    )


def is_declined(answer: str) -> bool:
    """Whether the target said that it does not know."""
    return not normalise(answer) or declines(answer)


_KEPT = script_pattern(rf"[[{LETTER}]--_]|(?<=\p{{Nd}})\S(?=\p{{Nd}})")


def normalise(text: str) -> str:
    """Fold case and width; keep letters, digits, and signs between two digits.

    >>> normalise("Follow\u2011Up,"), normalise("2.5mg"), normalise("2,5 mg")
    ('followup', '2.5mg', '2,5mg')
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(_KEPT.findall(folded))


def _collect(pairs: Iterable[_Pair], masks: int) -> dict[int, str]:
    answers: dict[int, str] = {}
    for number, raw in _last_block(list(pairs)):
        answer = _LABELLED.sub("", raw.strip(_DRESS)).strip(_DRESS)
        if answer and 1 <= number <= masks:
            answers.setdefault(number, answer)
    return answers


def _last_block(pairs: list[_Pair]) -> list[_Pair]:
    """Drop blocks before the last complete one: drafts, and repetitions of the question."""
    blocks: list[list[_Pair]] = [[]]
    for pair in pairs:
        # Numbers that begin again, after several of them, are a new list of answers.
        if len(_numbers_of(blocks[-1])) > 1 and pair[0] < blocks[-1][-1][0]:
            blocks.append([])
        blocks[-1].append(pair)
    sizes = [len(_numbers_of(block)) for block in blocks]
    last = len(sizes) - 1 - sizes[::-1].index(max(sizes))
    return [pair for block in blocks[last:] for pair in block]


def _numbers_of(pairs: list[_Pair]) -> set[int]:
    return {number for number, _ in pairs}


def _from_labels(text: str, masks: int, masked: str) -> Iterator[_Pair]:
    """``[Mask_1]: word``, ``Mask 1 - word``, ``**[Mask_1]** word``; on one line or many."""
    labels = list(_LABEL.finditer(text))
    name = _label_name(text, labels, masks)
    labels = [label for label in labels if label["name"].casefold() == name]
    ends = [label.start() for label in labels[1:]] + [len(text)]
    rows = []
    for label, end in zip(labels, ends, strict=False):  # no label, one end
        separator = _SEPARATOR.match(text, label.end(), end)
        value = _first_line(text[separator.end() if separator else label.end() : end])
        opens = not text[: label.start()].rpartition("\n")[2].strip(_DRESS)
        rows.append((label, bool(separator), opens, value))
    # Words that open the answers of several masks join label and answer: "refers to".
    joined = _shared_opening([value for *_, value in rows])
    after = dict(zip((texts := MASK.split(masked))[1::2], texts[2::2], strict=True))
    separated = sum(row[1] for row in rows) * 2 >= len(rows)
    for label, separated_here, opens, value in rows:
        joins = bool(joined) and value.split()[: len(joined)] == joined
        words = value.split()[len(joined) if joins else 0 :]
        # Without a separator it may be the repeated masked text, or a mask to wear.
        behind = after.get(label["number"], "").split()
        echoed = [*map(core, words[:2])] == [*map(core, behind[:2])]
        plain = (opens or joins) and not separated and len(words) <= _FEW and not echoed
        if separated_here or plain:
            yield int(label["number"]), value


def _shared_opening(values: Sequence[str]) -> list[str]:
    """The words with which at least half of several values begin."""
    shared: list[str] = []
    while True:
        rows = [words for value in values if (words := value.split())[: len(shared)] == shared]
        behind = (words[len(shared)] for words in rows if len(words) > len(shared) + 1)
        following = Counter(word for word in behind if core(word))
        word, count = next(iter(following.most_common(1)), ("", 0))
        if count < 2 or 2 * count < len(values):
            return shared
        shared.append(word)


def _label_name(text: str, labels: Sequence[re.Match[str]], masks: int) -> str:
    """The word that labels answers: a mask's, else one that several numbers follow."""
    numbers: dict[str, set[int]] = {}
    for label in labels:
        dressed = label.group()[0] in "[({<" or _SEPARATOR.match(text, label.end())
        if _MASK.fullmatch(label["name"]) or dressed:
            numbers.setdefault(label["name"].casefold(), set()).add(int(label["number"]))
    mask_names = [name for name in numbers if _MASK.fullmatch(name)]
    rest = [n for n in numbers if len(numbers[n] & set(range(1, masks + 1))) >= min(2, masks)]
    return max(mask_names or rest, key=lambda name: len(numbers[name]), default="")


def _from_numbers(text: str, masks: int) -> Iterator[_Pair]:
    """``3. word`` on separate lines, or in one line that counts up from 1."""
    for pattern in (_NUMBERED_LINE, _NUMBERED_INLINE):
        labels = list(pattern.finditer(text))
        numbers = [int(label[1]) for label in labels]
        counted = pattern is _NUMBERED_LINE or numbers == list(range(1, len(numbers) + 1))
        if not counted or len(labels) < max(1, min(2, masks)):
            continue
        ends = [label.start() for label in labels[1:]] + [len(text)]
        values = [
            _first_line(text[label.end() : end]) for label, end in zip(labels, ends, strict=True)
        ]
        short = [len(_REASON.split(value.strip(_DRESS))[0].split()) <= _FEW for value in values]
        # A recipe, or advice in numbered sentences, is prose.
        if sum(short) * 2 > len(short):
            yield from zip(numbers, values, strict=True)
            return


def _from_filled(text: str, masks: int, masked: str) -> Iterator[_Pair]:
    """The masked text repeated, with words in the places of its masks."""
    # 1. Exactly as many words in brackets as there are masks.
    marked = [m for m in _MARKED.finditer(text) if not (_LABEL.search(m[0]) or _EMPTY.search(m[0]))]
    if len(marked) == masks and all(len(m[1].split()) <= _FEW for m in marked):
        yield from enumerate((m[1] for m in marked), start=1)
        return
    # 2. The words between those around a mask; a repeated mask fills nothing.
    slots = [int(number) for number in MASK.findall(masked)]
    question = [word.text for word in split_words(MASK.sub(f" {_SLOT} ", masked))]
    question = [word if word == _SLOT else normalise(word) for word in question]
    question = [word for word in question if word]
    empty = [i for i, word in enumerate(question) if word == _SLOT]
    bare = _REPEATED_MASK.sub(lambda mask: " " * len(mask[0]), text)
    words = [word for word in split_words(bare) if normalise(word.text)]
    reply = [normalise(word.text) for word in words]
    blocks = SequenceMatcher(None, question, reply, autojunk=False).get_matching_blocks()
    for before, after in pairwise([Match(0, 0, 0), *blocks]):
        gap = range(before.a + before.size, after.a)
        first, last = before.b + before.size, after.b
        if not gap or not {*gap} <= {*empty} or before.size + after.size < _AROUND:
            continue
        # At either end of the text the answer may say more.
        first = first if before.size else max(first, last - len(gap))
        last = last if after.size else min(last, first + len(gap))
        several = last - first if len(gap) == 1 else 1
        if 0 < several <= _FEW and last - first == len(gap) * several:
            for step, slot in enumerate(gap):
                start, end = words[first + step].start, words[first + step + several - 1].end
                yield slots[empty.index(slot)], text[start:end]


def _from_list(text: str, masks: int) -> Iterator[_Pair]:
    """Exactly as many short items as masks: one per line, or between commas or semicolons."""
    opening = _LIST_OPENING.match(text)
    for head in (0, *([opening.end()] if opening else [])):
        for separator in _BETWEEN[: 1 if masks == 1 else None]:
            marks = [mark.span() for mark in separator.finditer(text, head)]
            starts = [head, *(end for _, end in marks)]
            ends = [*(start for start, _ in marks), len(text)]
            items = [text[a:b] for a, b in zip(starts, ends, strict=True)]
            items = [i for i in items if i.strip(_DRESS) and not i.rstrip().endswith(":")]
            if len(items) == masks and all(len(item.split()) <= _FEW for item in items):
                yield from enumerate(items, start=1)
                return


def _from_json(text: str) -> list[_Pair]:
    """An object or array, alone or within other text."""
    decoder = json.JSONDecoder()
    for opening in islice(re.finditer(r"[{\[]", text), _TRIES):
        with suppress(ValueError, RecursionError):
            if pairs := _from_value(decoder.raw_decode(text, opening.start())[0]):
                return pairs
    return []


def _from_value(value: object, number: int = 0) -> list[_Pair]:
    """Answers of a JSON value under a mask's number, 0 for none."""
    if isinstance(value, str | int | float):
        return [(number, str(value))] if number else []
    if isinstance(value, list):
        rows = [_from_value(inner, i) for i, inner in enumerate(value, start=1)]
        return [pair for row in rows for pair in row]
    if not isinstance(value, dict):
        return []
    # {"Mask_1": "word"}, else {"mask": "Mask_1", "answer": "word"} by whatever names.
    named = [(match, inner) for key, inner in value.items() if (match := _IDENTIFIER.search(key))]
    if named:
        return [pair for match, inner in named for pair in _from_value(inner, int(match[1]))]
    plain = [str(inner) for inner in value.values() if isinstance(inner, str | int | float)]
    label = _IDENTIFIER.search(plain[0]) if len(plain) == 2 else None
    if label or (number and len(plain) == 1):
        return [(int(label[1]) if label else number, plain[-1])]
    # {"answers": {...}} or {"masks": [...]}
    nested = (inner for inner in value.values() if isinstance(inner, dict | list))
    return next((pairs for pairs in map(_from_value, nested) if pairs), [])


def _first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((line for line in text.splitlines() if line.strip(_DRESS)), "")
