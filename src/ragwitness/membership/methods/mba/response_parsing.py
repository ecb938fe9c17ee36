"""Which word a target gave for which mask (§4.4), in whatever form it answered."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import islice, pairwise

from ragwitness.text.replies import declines
from ragwitness.text.words import core, split_words

_Pair = tuple[int, str, int | None]  # number of a mask, what was said for it, where that begins

# A label is a word with a number: "[Mask_1]", "Maske 1", "answer_1", "**Mask 1**".
_LABEL = re.compile(
    r"[\[({<]?[ ]?(?<![\w/])(?P<name>[^\W\d_]{2,12}(?: ?word)?)[ _\-#]{0,2}"
    r"(?P<number>\d{1,3})(?!\w|[.,]\d) ?[\])}>]?[*_`\"'\u201d]*",
    re.IGNORECASE,
)
_REASON = re.compile(r"\s[(\u2013\u2014-]|[,;] ")
_SAID_MASK = re.compile(r"[\[(]?\bmask[ _]?\d{1,3}\b[\])]?", re.IGNORECASE)
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
_ORDERED_LINE = re.compile(r"^[^\w\n]*(\w+) (\w+)[^\w\n]*?[:=\u2192-][ \t]*(?=\S)", re.MULTILINE)
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
_FEW = 3  # words of an answer without a separator; more is the masked text said again
SHORT = 10  # words of an answer in any of which a hit may be
_AROUND = 3  # words around a mask that show its place
_JOINED = 3  # words that may be one in the document: "follow up"
_SLOT = "\0"  # stands where a mask is, in a masked text
MASK = re.compile(r"\[Mask_(\d+)\]")


@dataclass(frozen=True, slots=True)
class Given:
    """What was said for one mask.

    Attributes:
        text: All of it, without quotes and the like at its ends.
        word: Its first word that is not an article.
        start: Where that word begins in the answer; None where the answer is not plain text.
    """

    text: str
    word: str
    start: int | None = None


def read_answers(text: str, masks: int, masked: str = "") -> dict[int, Given]:
    """Read the word for each mask.

    Forms: a JSON value or ``[Mask_3]: word`` in any dress, else ``3. word``, else the masked text
    with its masks filled, else a bare list of exactly as many items as there are masks. Other
    prose, and the masked text said again as it was, give nothing.

    Args:
        text: The target's answer, stripped by
            :func:`~ragwitness.membership.methods.response_parsing.replies.read_answer`.
        masks: How many masks were asked for.
        masked: The masked text.

    Returns:
        By mask number. Of several blocks of answers the last one that is whole counts; in a block
        the first answer to a mask does.
    """
    text = text[:_LONGEST]
    if not _HTML.search(text):
        return _read_plain(text, masks, masked)
    plain = html.unescape(_TAG.sub("", _LINE_BREAK_TAG.sub("\n", text)))
    found = _read_plain(plain, masks, masked)
    return {n: Given(given.text, given.word) for n, given in found.items()}


def _read_plain(text: str, masks: int, masked: str) -> dict[int, Given]:
    # Numbered answers first; a bare list only where nothing has a number.
    labelled = _collect(_from_labels(text, masks, masked), masks)
    # A label may stand in JSON, and an array behind a label: whichever reads more masks.
    nested = _collect(_from_json(text), masks)
    found = nested if len(nested) >= len(labelled) else labelled
    filled = _collect(_from_filled(text, masks, masked), masks)
    others = (_from_numbers(text, masks), () if filled else _from_list(text, masks))
    for pairs in others:
        found = found or _collect(pairs, masks)
    if not found:
        return filled
    # Under any label, a sentence of the text with its mask filled answers that mask.
    return found | {n: one for n, one in filled.items() if n not in found or _is_long(found[n])}


def _is_long(given: Given) -> bool:
    return len(given.text.split()) > _FEW


def matches(given: Given, answers: Iterable[str]) -> bool:
    """Whether an answer is one of the accepted words, or a short one that holds it."""
    return place_of(given, answers) is not None


def place_of(given: Given, answers: Iterable[str], short: int = SHORT) -> int | None:
    """Where in an answer's text an accepted word begins; None where it is not there.

    Args:
        given: The answer.
        answers: The accepted words.
        short: Most words of an answer in any of which it may be; in a longer one the first word
            counts.
    """
    wanted = {normalise(answer) or answer for answer in answers}
    if normalise(given.text) in wanted:
        return 0
    pieces = list(_PIECE.finditer(given.text))
    if len(pieces) > short:
        return given.text.find(given.word) if normalise(given.word) in wanted else None
    # The words around it may be said as well; in the document several may be one.
    for size in range(1, _JOINED + 1):
        for first, last in zip(pieces, pieces[size - 1 :], strict=False):
            if normalise(given.text[first.start() : last.end()]) in wanted:
                return first.start()
    return None


def is_declined(given: Given) -> bool:
    """Whether the target said that it does not know."""
    return not normalise(given.text) or declines(given.text)


def normalise(text: str) -> str:
    """Fold case and width; keep letters, digits, and what stands between two digits.

    >>> normalise("Follow\u2011Up,"), normalise("2.5mg"), normalise("2,5 mg")
    ('followup', '2.5mg', '2,5mg')
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = [
        character
        for i, character in enumerate(folded)
        if character.isalnum()
        or unicodedata.category(character).startswith("M")
        or (
            not character.isspace()
            and folded[i - 1 : i].isdigit()
            and folded[i + 1 : i + 2].isdigit()
        )
    ]
    return "".join(kept)


def _collect(pairs: Iterable[_Pair], masks: int) -> dict[int, Given]:
    given: dict[int, Given] = {}
    for number, raw, start in _last_block(list(pairs)):
        if 1 <= number <= masks and number not in given and (said := _given(raw, start)):
            given[number] = said
    return given


def _last_block(pairs: list[_Pair]) -> list[_Pair]:
    """Drop blocks before the last whole one: drafts, and the question said again."""
    blocks: list[list[_Pair]] = [[]]
    for pair in pairs:
        # Numbers that begin again, after several of them, are answers given anew.
        if len({one[0] for one in blocks[-1]}) > 1 and pair[0] < blocks[-1][-1][0]:
            blocks.append([])
        blocks[-1].append(pair)
    most = max(len({number for number, _, _ in block}) for block in blocks)
    whole = [n for n, block in enumerate(blocks) if len({p[0] for p in block}) == most]
    return [pair for block in blocks[whole[-1] :] for pair in block]


def _given(raw: str, start: int | None) -> Given | None:
    """Undress one answer; None where it is empty."""
    text = raw.strip(_DRESS)
    text = _LABELLED.sub("", text).strip(_DRESS)
    if not text:
        return None
    words = text.split()
    word = next((w for w in words if w.casefold() not in _ARTICLES), words[0])
    place = None if start is None else start + raw.index(word)
    return Given(text, word.strip(_DRESS) or word, place)


def _from_labels(text: str, masks: int, masked: str) -> Iterator[_Pair]:
    """``[Mask_1]: word``, ``Mask 1 - word``, ``**[Mask_1]** word``; one line or many."""
    labels = list(_LABEL.finditer(text))
    name = _label_name(text, labels, masks)
    labels = [label for label in labels if label["name"].casefold() == name]
    ends = [label.start() for label in labels[1:]] + [len(text)]
    rows = []
    for label, end in zip(labels, ends, strict=False):  # no label, one end
        separator = _SEPARATOR.match(text, label.end(), end)
        start = separator.end() if separator else label.end()
        value, skipped = _first_line(text[start:end])
        opens = not text[: label.start()].rpartition("\n")[2].strip(_DRESS)
        rows.append((label, bool(separator), opens, value, start + skipped))
    # Words that open the answers of several masks join label and answer: "refers to".
    joined = _shared_opening([value for *_, value, _ in rows])
    after = dict(_behind_masks(masked))
    separated = sum(row[1] for row in rows) * 2 >= len(rows)
    for label, separated_here, opens, value, start in rows:
        number = int(label["number"])
        joins = bool(joined) and value.split()[: len(joined)] == joined
        words = value.split()[len(joined) if joins else 0 :]
        # Without a separator it may be the masked text, said again, or a mask to wear.
        echoed = [core(one) for one in words[:2]] == [
            core(one) for one in after.get(number, "").split()[:2]
        ]
        plain = (opens or joins) and not separated and len(words) <= _FEW and not echoed
        if separated_here or plain:
            yield number, value, start


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
    known = [name for name in numbers if _MASK.fullmatch(name)]
    rest = [n for n in numbers if len(numbers[n] & set(range(1, masks + 1))) >= min(2, masks)]
    return max(known or rest, key=lambda name: len(numbers[name]), default="")


def _behind_masks(masked: str) -> Iterator[tuple[int, str]]:
    """Each mask's number and what follows it in the masked text."""
    found = list(MASK.finditer(masked))
    for one, end in zip(found, [*(m.start() for m in found[1:]), len(masked)], strict=False):
        yield int(one[1]), masked[one.end() : end]


def _from_numbers(text: str, masks: int) -> Iterator[_Pair]:
    """``3. word`` on lines of its own, in one line that counts up from 1, or "First mask: word"."""
    for pattern in (_NUMBERED_LINE, _NUMBERED_INLINE, _ORDERED_LINE):
        labels = list(pattern.finditer(text))
        if pattern is _ORDERED_LINE:
            # Lines that differ in their first word alone; ordinals of any language.
            common = Counter(label[2] for label in labels).most_common(1)
            labels = [label for label in labels if label[2] == common[0][0]]
            numbers = list(range(1, len(labels) + 1))
            if len(labels) != masks or len({label[1] for label in labels}) != masks:
                continue
        else:
            numbers = [int(label.group(1)) for label in labels]
        if len(labels) < min(2, masks) or not labels:
            continue
        if pattern is _NUMBERED_INLINE and numbers != list(range(1, len(numbers) + 1)):
            continue
        ends = [label.start() for label in labels[1:]] + [len(text)]
        values = [
            _first_line(text[label.end() : end]) for label, end in zip(labels, ends, strict=True)
        ]
        short = [len(_REASON.split(value.strip(_DRESS))[0].split()) <= _FEW for value, _ in values]
        # A recipe, or advice in numbered sentences, is prose.
        if sum(short) * 2 > len(short):
            for number, label, (value, skipped) in zip(numbers, labels, values, strict=True):
                yield number, value, label.end() + skipped
            return


def _from_filled(text: str, masks: int, masked: str) -> Iterator[_Pair]:
    """The masked text said again, with words in the places of its masks."""
    # 1. Exactly as many words in brackets as there are masks.
    marked = [m for m in _MARKED.finditer(text) if not (_LABEL.search(m[0]) or _EMPTY.search(m[0]))]
    if len(marked) == masks and all(len(m[1].split()) <= _FEW for m in marked):
        yield from ((number, m[1], m.start(1)) for number, m in enumerate(marked, start=1))
        return
    # 2. The words between those that stand around a mask.
    slots = [int(found[1]) for found in MASK.finditer(masked)]
    asked = [word.text for word in split_words(MASK.sub(f" {_SLOT} ", masked))]
    asked = [word if word == _SLOT else normalise(word) for word in asked]
    asked = [word for word in asked if word]
    empty = [place for place, word in enumerate(asked) if word == _SLOT]
    # A mask said again fills nothing.
    bare = _SAID_MASK.sub(lambda mask: " " * len(mask[0]), text)
    words = [word for word in split_words(bare) if normalise(word.text)]
    said = [normalise(word.text) for word in words]
    blocks = SequenceMatcher(None, asked, said, autojunk=False).get_matching_blocks()
    blocks = [Match(0, 0, 0), *blocks]
    for one, other in pairwise(blocks):
        gap = range(one.a + one.size, other.a)
        first, last = one.b + one.size, other.b
        if not gap or any(place not in empty for place in gap) or one.size + other.size < _AROUND:
            continue
        # At either end of the text the answer may say more.
        first = first if one.size else max(first, last - len(gap))
        last = last if other.size else min(last, first + len(gap))
        several = last - first if len(gap) == 1 else 1
        if 0 < several <= _FEW and last - first == len(gap) * several:
            for step, slot in enumerate(gap):
                start, end = words[first + step].start, words[first + step + several - 1].end
                yield slots[empty.index(slot)], text[start:end], start


def _from_list(text: str, masks: int) -> Iterator[_Pair]:
    """Exactly as many short items as masks: one per line, or between commas or semicolons."""
    opening = _LIST_OPENING.match(text)
    for head in (0, *([opening.end()] if opening else [])):
        for separator in _BETWEEN[: 1 if masks == 1 else None]:
            ends = [found.span() for found in separator.finditer(text, head)] + [(len(text),) * 2]
            starts = [head, *(end for _, end in ends)]
            spans = zip(starts, (start for start, _ in ends), strict=False)
            items = [(text[a:b], a) for a, b in spans if text[a:b].strip(_DRESS)]
            items = [item for item in items if not item[0].rstrip().endswith(":")]
            if len(items) == masks and all(len(item.split()) <= _FEW for item, _ in items):
                yield from ((i, item, place) for i, (item, place) in enumerate(items, start=1))
                return


def _from_json(text: str) -> list[_Pair]:
    """An object or array, alone or within other text."""
    decoder = json.JSONDecoder()
    for opening in islice(re.finditer(r"[{\[]", text), _TRIES):
        try:
            value, _ = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        found = _from_value(value)
        if found:
            return found
    return []


def _from_value(value: object, number: int = 0) -> list[_Pair]:
    """Answers of a JSON value that stands under a mask's number, 0 for none."""
    if isinstance(value, str | int | float):
        return [(number, str(value), None)] if number else []
    if isinstance(value, list):
        rows = [_from_value(inner, place) for place, inner in enumerate(value, start=1)]
        return [pair for row in rows for pair in row]
    if not isinstance(value, dict):
        return []
    # {"Mask_1": "word"}, else {"mask": "Mask_1", "answer": "word"} by whatever names.
    named = [(found, inner) for key, inner in value.items() if (found := _IDENTIFIER.search(key))]
    if named:
        return [pair for found, inner in named for pair in _from_value(inner, int(found[1]))]
    plain = [str(inner) for inner in value.values() if isinstance(inner, str | int | float)]
    label = _IDENTIFIER.search(plain[0]) if len(plain) == 2 else None
    if label or (number and len(plain) == 1):
        return [(int(label[1]) if label else number, plain[-1], None)]
    # {"answers": {...}} or {"masks": [...]}
    nested = (inner for inner in value.values() if isinstance(inner, dict | list))
    return next((pairs for pairs in map(_from_value, nested) if pairs), [])


def _first_line(text: str) -> tuple[str, int]:
    """The first line that holds anything, and how many characters come before it."""
    skipped = 0
    for line in text.splitlines(keepends=True):
        if line.strip(_DRESS):
            return line, skipped
        skipped += len(line)
    return "", 0
