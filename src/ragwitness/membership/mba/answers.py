"""Which word a target gave for which mask (§4.4), in whatever form it answered."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

_LABEL = re.compile(
    r"[\[({<]?[ ]?\bmask(?:ed)?(?: ?word)?[ _\-#]{0,2}(\d{1,3}) ?[\])}>]?[*_`\"'\u201d]*",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[\s*_`]*(?::|=+>?|-+>?|\u2013|\u2014|\u2192|\bis\b)", re.IGNORECASE)
_NUMBERED_LINE = re.compile(
    r"^[ \t]*(?:[-*\u2022][ \t]*)?[\[(*_]{0,3}(\d{1,3})[\])*_]{0,3}"
    r"(?:[):\]][*_]*(?:[ \t]+|(?=\D))|\.[*_]*[ \t]+|[ \t]+[-\u2013=][ \t]+)(?=\S)",
    re.MULTILINE,
)
_NUMBERED_INLINE = re.compile(r"(?:^|(?<=[\s,;]))\(?(\d{1,3})[.):][ \t]+(?=\S)")
_DRESS = " \t\r\n*_`\"'\u201c\u201d\u2018\u2019[](){}<>:;,.|-\u2013\u2014\u2022=\u2192"
_LINE_BREAK_TAG = re.compile(r"</?(?:br|p|li|ul|ol|div|tr|td|h\d|pre)\b[^>]*>", re.IGNORECASE)
_HTML = re.compile(r"</[a-z]+\d?\s*>|<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_LABELLED = re.compile(r"^(?:answer|mask)[\s_]*\d*\s*\]?\s*[:=]\s*", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(\d{1,3})\D*$")
_DECLINED = re.compile(
    r"^(?:unknown|unsure|unclear|n/?a|none|null|blank|unanswerable|[?_.\-\s]*"
    r"|(?:i )?(?:do not|don't) know|not (?:\w+ )?(?:provided|stated|given|mentioned|specified"
    r"|available|found|known|in the context|enough information).*"
    r"|(?:i )?(?:cannot|can't|could not).*|no (?:answer|information|context).*)$",
    re.IGNORECASE,
)
_ARTICLES = frozenset(("a", "an", "the"))
_LONGEST = 50_000  # characters; no target was asked for as much
_TRIES = 64  # places where a JSON value may begin
_FEW = 3  # words of an answer without a separator; more is the masked text said again


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


@dataclass(frozen=True, slots=True)
class MaskAnswers:
    """Everything read from one answer.

    Attributes:
        given: By mask number. The first answer to a mask counts, later ones do not.
        form: How it was read: ``"labels"``, ``"numbers"``, ``"json"`` or ``"list"``; empty where
            nothing could be read.
        repeated: Further answers to a mask already answered.
        out_of_range: Answers to masks that do not exist.
        long: Answers of several words, of which the first counts.
    """

    given: Mapping[int, Given] = field(default_factory=dict)
    form: str = ""
    repeated: int = 0
    out_of_range: int = 0
    long: int = 0


def read_answers(text: str, masks: int) -> MaskAnswers:
    """Read the word for each mask.

    Forms: a JSON value or ``[Mask_3]: word`` in any dress, else ``3. word``, else a bare list of
    exactly as many items as there are masks. Prose gives nothing.

    Args:
        text: The target's answer.
        masks: How many masks were asked for.
    """
    text = text[:_LONGEST]
    if not _HTML.search(text):
        return _read_plain(text, masks)
    plain = html.unescape(_TAG.sub("", _LINE_BREAK_TAG.sub("\n", text)))
    found = _read_plain(plain, masks)
    unplaced = {n: Given(given.text, given.word) for n, given in found.given.items()}
    return replace(found, given=unplaced)


def _read_plain(text: str, masks: int) -> MaskAnswers:
    # Numbered answers first; a bare list only where nothing has a number.
    labelled = _collect("labels", _from_labels(text), masks)
    # A label may stand in JSON, and an array behind a label: whichever reads more masks.
    nested = _collect("json", _from_json(text), masks)
    found = nested if len(nested.given) >= len(labelled.given) else labelled
    for form, read in (("numbers", _from_numbers), ("list", partial(_from_list, masks=masks))):
        if not found.given:
            found = _collect(form, read(text), masks)
    return found if found.given else MaskAnswers(out_of_range=labelled.out_of_range)


def matches(given: Given, answers: Iterable[str]) -> bool:
    """Whether an answer is one of the accepted words, as a whole or by its first word."""
    said = {normalise(given.text), normalise(given.word)} - {""}
    return any((normalise(answer) or answer) in said for answer in answers)


def is_declined(given: Given) -> bool:
    """Whether the target said that it does not know."""
    return _DECLINED.match(given.text.replace("\u2019", "'")) is not None


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


def _collect(form: str, pairs: Iterable[tuple[int, str, int | None]], masks: int) -> MaskAnswers:
    given: dict[int, Given] = {}
    repeated = out_of_range = long = 0
    for number, raw, start in pairs:
        if not 1 <= number <= masks:
            out_of_range += 1
        elif number in given:
            repeated += 1
        else:
            said = _given(raw, start)
            if said is not None:
                given[number] = said
                long += len(said.text.split()) > 1 and not is_declined(said)
    return MaskAnswers(given, form, repeated, out_of_range, long)


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


def _from_labels(text: str) -> list[tuple[int, str, int | None]]:
    """``[Mask_1]: word``, ``Mask 1 - word``, ``**[Mask_1]** word``; one line or many."""
    labels = list(_LABEL.finditer(text))
    found: list[tuple[int, str, int | None]] = []
    ends = [label.start() for label in labels[1:]] + [len(text)]
    for label, end in zip(labels, ends, strict=False):  # no label, one end
        separator = _SEPARATOR.match(text, label.end(), end)
        start = separator.end() if separator else label.end()
        value, skipped = _first_line(text[start:end])
        line = text[: label.start()].rpartition("\n")[2]
        opens = label.group()[0] in "[({<" or not line.strip(_DRESS)
        # Without a separator it may be the masked text, said again, or a mask to wear.
        if separator or (opens and len(value.split()) <= _FEW):
            found.append((int(label.group(1)), value, start + skipped))
    return found


def _from_numbers(text: str) -> list[tuple[int, str, int | None]]:
    """``3. word`` on lines of its own, or in one line that counts up from 1."""
    for pattern in (_NUMBERED_LINE, _NUMBERED_INLINE):
        labels = list(pattern.finditer(text))
        numbers = [int(label.group(1)) for label in labels]
        if len(labels) < 2:
            continue
        if pattern is _NUMBERED_INLINE and numbers != list(range(1, len(numbers) + 1)):
            continue
        ends = [label.start() for label in labels[1:]] + [len(text)]
        values = [
            _first_line(text[label.end() : end]) for label, end in zip(labels, ends, strict=True)
        ]
        short = [len(value.split()) <= _FEW for value, _ in values]
        # A recipe, or advice in numbered sentences, is prose.
        if sum(short) * 2 > len(short):
            return [
                (number, value, label.end() + skipped)
                for number, label, (value, skipped) in zip(numbers, labels, values, strict=True)
            ]
    return []


def _from_list(text: str, masks: int) -> list[tuple[int, str, int | None]]:
    """Exactly as many short items as masks: one per line, or between commas or semicolons."""
    for separator in ("\n", ";", ","):
        if masks == 1 and separator != "\n":
            break
        items, position = [], 0
        for piece in text.split(separator):
            if piece.strip(_DRESS) and not piece.rstrip().endswith(":"):
                items.append((piece, position))
            position += len(piece) + len(separator)
        if len(items) == masks and all(len(item.split()) <= _FEW for item, _ in items):
            return [(i, item, place) for i, (item, place) in enumerate(items, start=1)]
    return []


def _from_json(text: str) -> list[tuple[int, str, int | None]]:
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


def _from_value(value: object) -> list[tuple[int, str, int | None]]:
    found: list[tuple[int, str, int | None]] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            number = _IDENTIFIER.search(str(key))
            if number and isinstance(inner, str | int | float):
                found.append((int(number.group(1)), str(inner), None))
        # {"answers": {...}} or {"masks": [...]}
        nested = (inner for inner in value.values() if isinstance(inner, dict | list))
        return found or next((pairs for pairs in map(_from_value, nested) if pairs), [])
    if isinstance(value, list):
        for place, inner in enumerate(value, start=1):
            if isinstance(inner, dict):
                found += _from_row(inner)
            elif isinstance(inner, str):
                found.append((place, inner, None))
    return found


def _from_row(row: Mapping[str, object]) -> list[tuple[int, str, int | None]]:
    """``{"mask": "Mask_1", "answer": "word"}``, by whatever names."""
    values = [str(inner) for inner in row.values() if isinstance(inner, str | int | float)]
    if len(values) == 1:
        return _from_value(dict(row))
    number = _IDENTIFIER.search(values[0]) if len(values) == 2 else None
    return [(int(number.group(1)), values[1], None)] if number else []


def _first_line(text: str) -> tuple[str, int]:
    """The first line that holds anything, and how many characters come before it."""
    skipped = 0
    for line in text.splitlines(keepends=True):
        if line.strip(_DRESS):
            return line, skipped
        skipped += len(line)
    return "", 0
