"""Words with their places in a text, and the canonical form of a text."""

from __future__ import annotations

import html
import re
import tomllib
import unicodedata
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.resources import files
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import regex

from ragwitness.core.quotes import shown

Pattern: TypeAlias = regex.Pattern[str]
Table: TypeAlias = dict[str, Any]

# Tables of words and rules: TOML files beside the code.


def read_table(name: str) -> Table:
    """Return a table of this package."""
    return tomllib.loads(files("ragwitness.text").joinpath(name).read_text(encoding="utf-8"))


def expression(source: str, table: Table) -> Pattern:
    """Return a regular expression of a table, with its names in capitals replaced."""
    for name, value in table["expressions"].items():
        source = source.replace(name, value)
    return regex.compile(source)


# Letters, words and sentences of every script (docs/design/dependencies.md: regex).
#
# A letter or figure is of the Unicode categories L, M and N: a vowel sign parts no word. Where
# words are written without spaces, each written unit stands alone: a sign with its marks, and the
# vowels that are written in front of it or behind it. Such units need no dictionary, and a stretch
# of text has the same ones in every context, so that an answer is read as its document is.
# BudouX joins the units of Thai and Lao into words. Its model sees three characters on either side
# of a place, and so parts a stretch alike in every context.

LETTER = r"\p{L}\p{M}\p{N}_"
"""Letters, marks and figures, as a regular expression's set."""
UNSPACED = (
    r"[[\p{Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{Yi}\p{Tibetan}\p{LB=SA}]"
    r"&&[\p{L}\p{M}\p{Nl}]]"
)
"""Scripts written without spaces, as a regular expression's set: each unit is a word."""
_SPACE = r"\s\x1c-\x1f"  # as ``str.split`` has it
SENTENCE_END = r"\p{STerm}"
"""Signs that end a sentence, as a regular expression's set."""


def script_pattern(source: str, flags: int = 0) -> Pattern:
    """Return a regular expression that holds sets of Unicode properties."""
    return regex.compile(source, regex.V1 | flags)


# A consonant below another (Khmer, Burmese) or a vowel behind it (Thai, Lao) is part of its unit.
UNIT = (
    rf"(?={UNSPACED})\p{{Logical_Order_Exception}}*(?:\X(?<=\p{{InSC=Invisible_Stacker}}))*\X"
    r"(?:[\u0e30\u0e32\u0e45\u0eb0\u0eb2\p{M}]|[\u1000-\u1021](?=\u103a))*"
)
"""One written unit of an unspaced script, as a regular expression."""
_JOINED = r"(?P<joined>[[\p{Thai}\p{Lao}]&&[\p{L}\p{M}]]+)"  # units that make words together
_UNIT = script_pattern(UNIT)
_UNSPACED = script_pattern(UNSPACED)
# Signs between units belong to the one before them; opening brackets and quotation marks do not.
_WORD = script_pattern(
    rf"[\p{{Ps}}\p{{Pi}}]*(?:{_JOINED}|{UNIT})[\p{{P}}--[\p{{Ps}}\p{{Pi}}_]]*"
    rf"|[^{_SPACE}{UNSPACED}]+|[^{_SPACE}]"
)
_SPACED = script_pattern(rf"[^{_SPACE}]+")
_DENSE = script_pattern(rf"{_JOINED}|{UNIT}|[[{LETTER}]--{UNSPACED}]+")
_CORE = script_pattern(rf"[{LETTER}](?:.*[{LETTER}])?", regex.DOTALL)
_EXTENDED = script_pattern(rf"[[{LETTER}]--{UNSPACED}]{{2}}|[{LETTER}]\p{{M}}")
_LETTERS = script_pattern(r"[\p{L}\p{M}\u200c\u200d]+")
_WORD_RUN = script_pattern(rf"[{LETTER}]+")
_LETTER_RUN = script_pattern(rf"[[{LETTER}]--_]+")
_TABLE = read_table("words.toml")
STOP_WORDS = frozenset(_TABLE["function"].split())
"""Function words; too predictable to tell a member from a non-member."""


class Word(NamedTuple):
    """A word and its character range ``text[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split at white space; units of unspaced scripts stand alone, with the signs behind them."""
    # Without such units a word ends at white space alone, which takes less than half of the time.
    return list(_words(_WORD if _UNSPACED.search(text) else _SPACED, text))


def _words(pattern: Pattern, text: str) -> Iterator[Word]:
    """Yield the matches of a pattern, with joined units parted into words."""
    for match in pattern.finditer(text):
        start = match.start()
        if match.lastgroup:
            for cut in _cuts(match["joined"]):
                end = match.start("joined") + cut
                yield Word(text[start:end], start, end)
                start = end
        yield Word(text[start : match.end()], start, match.end())


_LAO = {letter: letter - 0x80 for letter in range(0xE80, 0xF00)}  # in the order of Thai letters


@lru_cache(4096)
def _cuts(stretch: str) -> tuple[int, ...]:
    """Return where words end within a stretch of Thai or Lao."""
    ends = {*accumulate(map(len, _thai().parse(stretch.translate(_LAO))))}
    units = {unit.end() for unit in _UNIT.finditer(stretch)}
    return tuple(sorted(ends & units - {len(stretch)}))


_thai = cache(lambda: import_module("budoux").load_default_thai_parser())


def spoken_words(text: str) -> list[Word]:
    """Return the words that hold a letter or figure: no sign that stands alone."""
    return [word for word in split_words(text) if core(word.text)]


def letters_of(text: str) -> str:
    """Return the letters, marks and figures of a text, with nothing between them."""
    return "".join(_LETTER_RUN.findall(text))


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script that is written without spaces."""
    return _UNSPACED.search(word) is not None


def extends(word: str, behind: str) -> bool:
    """Whether the letters behind a word belong to it. Units of unspaced scripts end at once."""
    return bool(_EXTENDED.fullmatch(word[-1:] + behind[:1]))


def all_letters(word: str) -> bool:
    """Whether a word holds letters and their marks alone."""
    return _LETTERS.fullmatch(word) is not None


# Marks that a reader does not see, and ligatures of a typesetter.
_MADE = script_pattern(r"[\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufdfb\ufe70-\ufefc]")
_HIDDEN = script_pattern(
    r"\u00ad(?:[ \t]*\r?\n\s*)?|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
_CUT = script_pattern(
    r"(?<=\p{L}\p{M}*)[-\u2010][ \t]*\r?\n[ \t]*(?=[\p{Ll}\p{Lo}])"
    r"(?!(?:and|und|or|oder|et|ou|y|e|en|of)\b)"
)


def as_read(text: str) -> str:
    """Return a text as its reader sees it, of which a copy elsewhere may be stored otherwise.

    Letters are composed (NFC), ligatures are letters, soft hyphens and other unseen marks are left
    out, and a word that is cut at the end of a line is whole.
    """
    if not text.isascii():
        text = _MADE.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), text)
        text = unicodedata.normalize("NFC", _HIDDEN.sub("", text))
    return _CUT.sub("", text)


def core(word: str) -> str:
    """Return the word without punctuation at its ends; empty for punctuation alone."""
    match = _CORE.search(word)  # in one pass, however many full stops a line of dots has
    return match[0] if match else ""


def word_spans(text: str) -> list[Word]:
    """Return the runs of letters and figures; units of unspaced scripts stand alone."""
    return list(_words(_DENSE, text))


def word_tokens(text: str) -> list[str]:
    r"""Split as NLTK's ``RegexpTokenizer(r"\w+")`` where spaces part words, else into units."""
    return _WORD_RUN.findall(text) if text.isascii() else [word.text for word in word_spans(text)]


def plain_tokens(text: str) -> list[str]:
    """Words without regard to case."""
    return word_tokens(text.casefold())


def content_tokens(text: str) -> list[str]:
    """The same without function words."""
    return [word for word in plain_tokens(text) if word not in STOP_WORDS]


def telling_tokens(text: str) -> list[str]:
    """The same with pairs of neighbours in unspaced scripts, whose characters tell little."""
    words = content_tokens(text)
    if text.isascii() or not words:
        return words
    pairs = zip(words, [*words[1:], ""], strict=True)
    return [
        word + next_word * (is_unspaced(word) and is_unspaced(next_word))
        for word, next_word in pairs
    ]


def passages(text: str, max_words: int, min_words: int) -> list[str]:
    """Cut a text into consecutive passages of at most ``max_words`` words of equal length.

    Args:
        text: The document.
        max_words: Upper limit of a passage; at least twice ``min_words``.
        min_words: A text shorter than this gives no passage.

    Returns:
        Verbatim slices of the text, none shorter than ``min_words`` words.
    """
    words = split_words(text)
    if len(words) < min_words:
        return []
    # As few passages as can be, all of about one length.
    count = -(-len(words) // max_words)
    size = -(-len(words) // count)
    rows = [words[i : i + size] for i in range(0, len(words), size)]
    return [text[row[0].start : row[-1].end] for row in rows if len(row) >= min_words]


def cut_characters(text: str, most: int) -> tuple[str, int]:
    """Cut a text after the last whole word that fits; a single longer word is cut itself.

    Returns:
        The beginning, and the number of words cut off or cut short.
    """
    if len(text) <= most:
        return text, 0
    words = split_words(text)
    fitting = [word.end for word in words if word.end <= most]
    return text[: fitting[-1] if fitting else most], len(words) - len(fitting)


# The language of a text, by its letters and commonest words.
#
# Enough to notice that a model answered in another language than its input. A text of a few words
# has no language here.

_COMMON = {name: frozenset(words.split()) for name, words in _TABLE["languages"].items()}
_FEWEST = 12  # words; fewer tell no language
_LEAST = 0.12  # share of common words
_AHEAD = 1.2  # times the share of the next language


def same_language(first: str, second: str) -> bool:
    """Whether two texts may be in one language; True if unknown."""
    scripts = {_script(first), _script(second)} - {""}
    languages = {language_of(first), language_of(second)} - {None}
    return len(scripts) < 2 and len(languages) < 2


def _script(text: str) -> str:
    """First word of the letters' Unicode names, such as LATIN; empty without letters."""
    scripts = Counter(unicodedata.name(c, "?").split()[0] for c in text if c.isalpha())
    return scripts.most_common(1)[0][0] if scripts else ""


def language_of(text: str) -> str | None:
    """Return the English name of a text's language; None if unknown."""
    words = plain_tokens(text)
    if len(words) < _FEWEST:
        return None
    shares = {
        name: sum(word in common for word in words) / len(words) for name, common in _COMMON.items()
    }
    (best, share), (_, next_share) = Counter(shares).most_common(2)
    return best if share >= _LEAST and share >= _AHEAD * next_share else None


# The canonical form of a text: measures, guard and secrets compare it in place of the text.
#
# Two texts that look the same to a reader have one canonical form: without accents, letters of
# another alphabet that look like Latin ones, invisible characters or markup. Base64 and hexadecimal
# are decoded. The rules are rows of ``canonical.toml``, each with an example that is a
# test. ``docs/design/threat-model.md`` lists the remaining differences (ciphers, typing errors,
# other languages).

Span = tuple[int, int]
"""Start and end of a stretch of text."""


TABLE = read_table("canonical.toml")
"""The rules."""

# 1. Letters: the plain letter of each character.

# "LATIN SMALL LETTER O WITH STROKE", "LATIN LETTER SMALL CAPITAL A": the letter is in the name.
_LATIN = re.compile(r"LATIN .*?\b([A-Z])(?: WITH .*)?")
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")  # whose letters pass for others
_MICRO = "\u03bc"  # "\u03bcg" is not "mg"
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
# Accents and the points of Arabic and Hebrew, which writers leave out; a vowel sign is a letter.
_POINTS = (
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    r"\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
)
_OPTIONAL = script_pattern(rf"[\u00ad{_POINTS}]+")
_LEFT_OUT = script_pattern(
    rf"[[[\p{{M}}&&\p{{Script=Inherited}}]--[\u3099\u309a\p{{VS}}]]{_POINTS}]+"
)
_TAGS = 0xE0000  # where Unicode has ASCII a second time, invisible


def unseen(char: str) -> bool:
    """Say whether a character is invisible: controls, joiners, fillers, selectors."""
    return not char.isspace() and (
        unicodedata.category(char)[0] == "C"
        or char in _BLANK
        or unicodedata.name(char, "").startswith("VARIATION SELECTOR")
    )


def without_points(word: str) -> str:
    """Return a word without soft hyphens and the points of Arabic and Hebrew."""
    return _OPTIONAL.sub("", word)


@cache
def _letter(char: str) -> str:
    """The plain letter, digit or space of a character; "" if it is invisible."""
    if char.isspace():
        return " "
    if 0x20 <= ord(char) - _TAGS < 0x7F:
        return chr(ord(char) - _TAGS)
    signs = _LEFT_OUT.sub("", unicodedata.normalize("NFKD", char))
    visible = (c for c in signs if not unseen(c))
    return unicodedata.normalize("NFC", "".join(map(_like, visible)))


def _like(char: str) -> str:
    """A digit of any script as ASCII, and a letter as the Latin one that it looks like."""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if len(folded := char.casefold()) > 1:  # sharp s
        return folded
    name = unicodedata.name(char, "")
    if name.split(" ", 1)[0] not in _ALPHABETS or char.lower() == _MICRO:
        return char
    # Letters that look alike in one case are one in both.
    latin = _LATIN.fullmatch(name)
    plain = latin[1] if latin else _latin_like(char.casefold()) or _latin_like(char.upper())
    return (plain.upper() if char.isupper() else plain.lower()) or char


def _latin_like(char: str) -> str:
    from confusable_homoglyphs.confusables import confusables_data

    similar = " ".join(entry["c"] for entry in confusables_data.get(char, ()))
    return next(iter(re.findall(r"(?<!\S)[A-Za-z]+(?!\S)", similar)), "")


def _settled(read: Callable[[str], str], written: str) -> str:
    """Decode a text until nothing changes."""
    while (plain := read(written)) != written:
        written = plain
    return written


def _escape(written: str) -> str:
    plain = re.sub(r"\\+", r"\\", written).encode().decode("unicode_escape")
    # Characters beyond the first plane are escaped in two halves.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# 2. Codes: words in base64 or hexadecimal.

_FEWEST_LETTERS = 0.8  # share of letters and spaces in the plain text of a code


def _code(written: str) -> str:
    """Decode base64 or hexadecimal that holds words; return other texts unchanged."""
    bare = "".join(written.split()).rstrip("=").removeprefix("0x")
    if bare.isdigit() or (bare.isalpha() and (bare[1:].islower() or bare[1:].isupper())):
        return written  # a number or a word
    for decode in (bytes.fromhex, _from_base64):
        with suppress(ValueError):
            data = decode(bare)
            plain = data.decode("utf-16" if 0 in data[:4] else "utf-8")
            words = sum(c.isalpha() or c.isspace() for c in plain)
            if plain and words >= _FEWEST_LETTERS * len(plain):
                return canonical_text(plain)
    return written


def _from_base64(code: str) -> bytes:
    return b64decode(code + "=" * (-len(code) % 4), "-_" if {*"-_"} & {*code} else None)


# 3. The rules, pass by pass.

_READ: dict[str, Callable[[str], str]] = {
    "entity": partial(_settled, html.unescape),
    "escape": _escape,
    "percent": partial(_settled, unquote),
    "syllable": lambda written: "".join(map(_letter, unicodedata.normalize("NFC", written))),
    "letter": _letter,
    "code": _code,
}
_PLAIN = {rule["name"]: rule["plain"] for rule in TABLE["rule"] if "plain" in rule}
_PASSES = tuple(
    expression(
        "|".join(
            f"(?P<{rule['name']}>{rule['pattern']})"
            for rule in TABLE["rule"]
            if rule["pass"] == name
        ),
        TABLE,
    )
    for name in dict.fromkeys(rule["pass"] for rule in TABLE["rule"])
)
_MARKED = re.compile(r"[^\t\n\r -~]|-[\n\r]|[&<*`~#|_\\%]|[A-Za-z0-9+/-]{12}|(?:\s{1,3}\S){6}\s")


def _plain(match: regex.Match[str]) -> str:
    name = match.lastgroup or ""
    return _READ[name](match[0]) if name in _READ else _PLAIN.get(name, match[0])


@lru_cache(1 << 11)  # a record is read by many measures
def canonical_text(text: str) -> str:
    """Return the canonical form of a text; its case is kept, since some measures count it."""
    if _MARKED.search(text):
        for rules in _PASSES:
            text = rules.sub(_plain, text)
    return text


def canonical_places(text: str) -> tuple[str, list[Span] | None]:
    """Return the canonical form of a text and where each of its characters comes from.

    Returns:
        The form, and a range of the text for each character; None where they are the same.
    """
    if not _MARKED.search(text):
        return text, None
    origin = [(n, n + 1) for n in range(len(text))]
    for rules in _PASSES:
        pieces, spans, end = list[str](), list[Span](), 0
        for match in rules.finditer(text):
            pieces += [text[end : match.start()], plain := _plain(match)]
            spans += origin[end : match.start()]
            start, end = match.span()
            # An unchanged match keeps its places; else all of it comes from the whole stretch.
            stretch = [(origin[start][0], origin[end - 1][1])] * len(plain)
            spans += origin[start:end] if plain == match[0] else stretch
        text, origin = "".join((*pieces, text[end:])), spans + origin[end:]
    return text, origin


# 4. Error messages without private text.


def unquoted(message: str, sent: str) -> str:
    """Return a server's message, cut where it begins to repeat the prompt.

    Args:
        message: The text of an error.
        sent: A prompt that may hold a private record.
    """
    prompt = _LETTER_RUN.findall(canonical_text(sent).casefold())
    runs = set(zip(prompt, prompt[1:], prompt[2:], strict=False))
    words = list(_LETTER_RUN.finditer(plain := shown(canonical_text(message))))
    for run in zip(words, words[1:], words[2:], strict=False):
        if tuple(word[0].casefold() for word in run) in runs:
            return f"{plain[: run[0].start()].rstrip()} [what was sent]"
    return message
