"""Words with their places in a text."""

from __future__ import annotations

import math
import re
import unicodedata
from base64 import b64decode
from binascii import a2b_uu
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from quopri import decodestring
from typing import NamedTuple

from ragwitness.kit.quotes import unescaped
from ragwitness.text.runs import SIGNS, plain_tokens

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts written without spaces, as a regular expression's set: each character is a word."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_DENSE = re.compile(rf"[{UNSPACED}]|(?:[^\W{UNSPACED}]|[{SIGNS}])+")
_LONGEST, _UNKNOWN = 24, 12.0  # letters of a word; what a letter costs that is part of no word
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
# Tags that may hide no words: without attributes, or with NAME=VALUE. Emphasis parts no word.
_CLOSED = r"(?:\s+[\w-]+=[^<>]*)?\s*/?>"
_EMPHASIS = re.compile(
    r"</?(?:[abisuq]|em|strong|span|font|mark|small|big|su[bp]|code|tt|wbr|del|ins|abbr)"
    rf"{_CLOSED}|[*`]+|~~+", re.IGNORECASE
)  # fmt: skip
_TAGS = re.compile(rf"</?[a-z][\w:.-]{{0,30}}{_CLOSED}|[~#|]+", re.IGNORECASE)
_MARKED = re.compile(r"[&<*`~#|_\\%]|U\+|0x")
_TAGGED = 0xE0000  # where ASCII stands a second time
_STRETCHED = "\u0640"  # makes Arabic words wider
_JAMO = re.compile("[\uac00-\ud7a3][\u1100-\u1112]")
# Numbers with signs between, and those with one and the same thing between ("\\u{50}\\u{61}").
_ROW = re.compile(
    r"(?<![\w.])(?:[01]{8}|[0-9A-Fa-f]{1,3})(?:[\s,:;/|-]+(?:[01]{8}|[0-9A-Fa-f]{1,3})\b){2,}"
)
_SAME = re.compile(
    r"(?<![0-9A-Fa-f])\d[0-9A-Fa-f]{0,7}([^0-9A-Fa-f].{0,14}?)(?:[0-9A-Fa-f]{1,8}\1){3,}"
    r"[0-9A-Fa-f]{1,8}(?![0-9A-Fa-f])"
)
# Words in code: with a capital or a figure inside, or filled up.
_CODE = re.compile(
    r"(?<![\w+/=-])(?=[\w+/-]+?(?:(?<=\w)[A-Z]|\d|=))(?:0x)?([A-Za-z0-9+/_-]{2,}={0,2})"
)
_PRINTED = re.compile(
    rb"(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|\xf0[\x80-\xbf]{3}){12,}"
)
_SMALL = re.compile(r"[^\W\d_A-Z]| ")
_NEAR = 40  # characters between codes that are read together, with what stands there
_URL_SAFE = str.maketrans("-_", "+/")
_FIGURES = str.maketrans("013457@$\u20ac\u212e\u25cb", "oieastaseeo")  # in place of letters
_STRETCH, _SHOWN = 20, 10  # words looked at together; from which on they show their writing
_DIGITS = re.compile(r"(?<=[^\W\d_])\d+(?=[^\W\d_])")  # within a word
_APART = re.compile(r"(?<!\w)\d(?:[\W_]{1,3}\d){3,}(?!\w)")  # digits one by one
_MIXED = re.compile(r"\b(?=\w*[^\W\d_])(?=\w*[013457@$])[\w@$]+")
_DOUBLED = re.compile(r"\b(?:([^\W_])\1){3,}\b")
_CAPITAL = re.compile("(?<![A-Za-z])Υ(?![A-Za-z])")  # noqa: RUF001
_OTHERS = {"þ": "th", "æ": "ae", "œ": "oe", "ð": "d", "ŋ": "n"}
_OTHERS |= {"ɑ": "a", "ɩ": "i"}  # noqa: RUF001
_ARABIC = {"ک": "ك", "ى": "ي", "ة": "ه", "ە": "ه"}  # noqa: RUF001
_OTHERS |= {small.upper(): plain.capitalize() for small, plain in _OTHERS.items()}
# Letters of other alphabets that look like Latin ones, as capitals at least: both cases alike.
_GREEK = zip("αεικνορτυχβζηΑΒΕΖΗΙΚΝΟΡΤΥΧ", "aeiknoptuxbzhABEZHIKNOPTYX", strict=True)
_CYRILLIC = zip("аеорсухіѕјвкмнтАВЕКМНОРСТУХІЅЈ", "aeopcyxisjbkmhtABEKMHOPCTYXISJ", strict=True)
_ARMENIAN = zip("օոսհցզլյ", "onuhgqlj", strict=True)
_NAMED = re.compile(r"(?:.* )?(?:LATIN|REGIONAL) .*?(?<!SHARP )\b([A-Z])(?: WITH .*)?")
# Another form of a letter of the same script: "CYRILLIC SMALL LETTER KA WITH DESCENDER".
_FORM = re.compile(
    r"(.* LETTER )(?:FINAL |BARRED |STRAIGHT |SWASH |FARSI |SMALL )?(.+?)"
    r"(?: (?:WITH|GOAL|DOACHASHMEE|BARREE|WASLA)\b.*)?"
)


class _Letters(dict[int, str]):
    """Finds a letter in its name, such as "LATIN SMALL LETTER O WITH STROKE", and a digit."""

    def __missing__(self, code: int) -> str:
        char, name = chr(code), unicodedata.name(chr(code), "") if code > 0x7F else ""
        if char.isdecimal():
            char = str(unicodedata.decimal(char))
        elif found := _NAMED.fullmatch(name):
            char = found[1] if "CAPITAL LETTER" in name else found[1].lower()
        elif (found := _FORM.fullmatch(name.replace("KATAKANA", "HIRAGANA"))) and char.isalpha():
            with suppress(KeyError):
                char = unicodedata.lookup(found[1] + found[2])
            char = self[ord(char)] if char != chr(code) else char
        self[code] = char
        return char


_LIKE = _OTHERS | dict(_GREEK) | dict(_CYRILLIC) | dict(_ARMENIAN) | _ARABIC
LETTERS = _Letters({ord(letter): plain for letter, plain in _LIKE.items()})
"""Letters with strokes, in signs, of other alphabets that look like Latin ones, as these; digits;
forms of one letter as one."""

UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0d\U000e0100-\U000e01ef]"
    "|(?<![0-9#*\u203c-\u3299\U0001f000-\U0001ffff])[\ufe0e\ufe0f]"
)
"""What nobody sees, whatever its category: fillers, selectors but for one behind an emoji."""

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being
    below between both but by can could did do does doing down during each few for from further
    had has have having he her here hers him his how i if in into is it its itself just me more
    most my no nor not now of off on once only or other our out over own same she should so some
    such than that the their them then there these they this those through to too under until up
    very was we were what when where which while who whom why will with would you your""".split()
)
"""Function words; too predictable to tell a member from a non-member."""
_FILLING = frozenset(word for word in STOP_WORDS if len(word) > 1)


class Word(NamedTuple):
    """A word and its character range ``text[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split at white space; characters of unspaced scripts stand alone."""
    return [Word(m.group(), m.start(), m.end()) for m in _WORD.finditer(text)]


def core(word: str) -> str:
    """Return the word without punctuation at its ends; empty for punctuation alone."""
    found = _CORE.search(word)  # in one pass, however many full stops a line of dots has
    return found[0] if found else ""


def dense_tokens(text: str) -> list[str]:
    """Words without regard to case; each character of an unspaced script alone."""
    return _DENSE.findall(text.casefold())


def content_tokens(text: str) -> list[str]:
    """The same without function words."""
    return [word for word in dense_tokens(text) if word not in STOP_WORDS]


def telling_tokens(text: str) -> list[str]:
    """The same with pairs of neighbours in unspaced scripts, whose characters tell little."""
    words = content_tokens(text)
    if _UNSPACED.search(text):
        wide = [_UNSPACED.match(word) is not None for word in words]
        for at in range(len(words) - 1):
            if wide[at] and wide[at + 1]:
                words[at] += words[at + 1]
    return words


class Respacer:
    """Reads a text in the words of others, however its letters are parted, joined or accented.

    Args:
        texts: Whose words are known.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        counts = Counter(word for text in texts for word in dense_tokens(unaccented(text)))
        known = {word: count for word, count in counts.items() if word == _lettered(word)}
        self._numbers = {word for word in counts if word.isdigit()}
        total = math.log(sum(known.values()) or 1)
        self._costs = {word: total - math.log(count) for word, count in known.items()}
        # The commonest word of each skeleton.
        common = sorted(known, key=lambda word: known[word])
        self._whole = {_skeleton(word): word for word in common if len(_skeleton(word)) > 1}
        self._longest = min(max(map(len, known), default=0), _LONGEST)

    def __call__(self, text: str) -> str:
        """Return figures as they stand, and the likeliest words that the letters between make.

        Figures within a word are no word: "fe4ver" is read as "fever".
        """
        text, found = _DIGITS.sub("", unaccented(text)), list[str]()
        for part in re.split(r"(\d+)", _APART.sub(self._numbered, text).casefold()):
            found += [part] if part.isdigit() else self._parted(_lettered(part))
        return " ".join(found)

    def _numbered(self, digits: re.Match[str]) -> str:
        """Digits one by one as the longest known numbers that they make."""
        row, found, place = re.sub(r"\D", "", digits[0]), list[str](), 0
        while place < len(row):
            sizes = (n for n in range(_LONGEST, 1, -1) if row[place : place + n] in self._numbers)
            found.append(row[place : place + next(sizes, 1)])
            place += len(found[-1])
        return " ".join(found)

    def unknown(self, text: str) -> Iterator[str]:
        """Yield the stretches of a text most of whose words are unknown or letters by themselves.

        Words of which every text is full tell nothing and are left out of the count; unknown ones
        that are longer than any word count as many.
        """
        folded = text.casefold()
        words = [word for word in _DENSE.finditer(folded) if word[0] not in _FILLING]
        strange = [
            word[0] not in self._costs
            or (len(word[0]) == 1 and not re.match(f"[{UNSPACED}]", word[0]))
            for word in words
        ]
        begin = end = -1
        many = [len(word[0]) // 5 if len(word[0]) > _LONGEST else 1 for word in words]
        for place in range(0, max(1, len(words) - _STRETCH // 2), _STRETCH // 2):
            window = range(place, min(place + _STRETCH, len(words)))
            total = sum(many[n] for n in window)
            if total < _SHOWN or 2 * sum(many[n] for n in window if strange[n]) < total:
                continue
            if place > end >= 0:
                yield folded[words[begin].start() : words[end - 1].end()]
                begin = -1
            begin, end = place if begin < 0 else begin, min(place + _STRETCH, len(words))
        if end >= 0:
            yield folded[words[begin].start() : words[end - 1].end()]

    def filled(self, text: str) -> str:
        """Return known words for those with letters doubled, replaced by figures, or left out."""
        return " ".join(map(self._filled, unaccented(text).casefold().split()))

    def _filled(self, word: str) -> str:
        letters = _lettered(word.translate(_FIGURES))
        return letters if letters in self._costs else self._whole.get(_skeleton(letters), letters)

    def _parted(self, letters: str) -> list[str]:
        # The cheapest way to each place, and where its last word begins; unknown letters alone.
        costs, begins = [0.0], [0]
        for end in range(1, len(letters) + 1):
            best, begin = costs[-1] + _UNKNOWN, end - 1
            for start in range(max(0, end - self._longest), end):
                cost = self._costs.get(letters[start:end])
                if cost is not None and costs[start] + cost < best:
                    best, begin = costs[start] + cost, start
            costs.append(best)
            begins.append(begin)
        found, end = [], len(letters)
        while end:
            found.append(letters[begins[end] : end])
            end = begins[end]
        return found[::-1]


def _lettered(text: str) -> str:
    """A text's letters, vowel signs among them."""
    return "".join(c for c in text if c.isalpha() or unicodedata.category(c)[0] == "M")


def _skeleton(word: str) -> str:
    """The first letter and all consonants, none twice in a row."""
    return re.sub(r"(.)\1+", r"\1", word[:1] + re.sub("[aeiou]", "", word[1:]))


def unaccented(text: str) -> str:
    """Return a text in plain letters: without accents and strokes, look-alikes as Latin ones."""
    if text.isascii():
        return text
    # In Greek this capital is that of the letter like "u", elsewhere it looks like "Y".
    apart = _CAPITAL.sub("υ", unicodedata.normalize("NFKD", text)).translate(LETTERS)  # noqa: RUF001
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))


def _final(jamo: re.Match[str]) -> str:
    """A Korean syllable with the consonant behind it, which no vowel follows, as its final."""
    name = unicodedata.name(jamo[0][1]).replace("CHOSEONG", "JONGSEONG")
    with suppress(KeyError):
        return unicodedata.normalize("NFC", jamo[0][0] + unicodedata.lookup(name))
    return jamo[0]


def seen(text: str) -> str:
    """Return a text as it is seen: compatible forms as one, and nothing that is invisible."""
    if text.isascii():
        return text
    plain = _JAMO.sub(_final, UNSEEN.sub("", unicodedata.normalize("NFKC", text)))
    return "".join(c for c in plain if unicodedata.category(c) != "Cf" and c != _STRETCHED)


def decoded(text: str, rounds: int = 2) -> list[str]:
    """Return what unseen tags and codes (of codes) say, with what stands between near ones."""
    found = ["".join(chr(ord(c) - _TAGGED) for c in text if 0x20 <= ord(c) - _TAGGED < 0x7F)]
    if re.search("=[0-9A-Fa-f]{2}", text):  # quoted-printable
        found.append(_said(decodestring(text.encode(errors="replace"))))
    end, text = -1, seen(text)
    for begin, until, said in codes(text):
        near = end >= 0 and 0 <= begin - end <= _NEAR
        found.append((found.pop() + text[end:begin] if near else "") + said)
        end = until
    found = [one for one in dict.fromkeys(found) if one.strip()]
    return found + [two for one in found if rounds > 1 for two in decoded(one, rounds - 1)]


def codes(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where codes stand and the text that each says, at -1 what stands at no one place."""
    words = list(_CODE.finditer(text))
    found = [(*match.span(), _word_said(match[1])) for match in words]
    for row in (*_ROW.finditer(text), *_SAME.finditer(text)):
        parts = row[0].split(row[1]) if row.lastindex else re.findall(r"\w+", row[0])
        found.append((*row.span(), _row_said(parts)))
    end = 0
    for begin, until, said in sorted(found, key=lambda one: (one[0], -one[1])):
        if said and begin >= end:
            yield begin, until, said
            end = until
    # One code in many pieces, whatever parts it; "-" or "/" may do so or belong to it.
    pieces = "".join(match[1].rstrip("=") for match in words if len(match[1]) > 3)
    for code in {pieces, re.sub("[+/_-]", "", pieces)}:
        for shift in range(4):
            data = _from_base64(code[shift:]).replace(b"\0", b"")
            yield from ((-1, -1, _said(one[0])) for one in _PRINTED.finditer(data))
    for line in text.splitlines():  # uuencode: the first sign is the size
        if len(line) > 4 and ((ord(line[0]) - 32 & 63) + 2) // 3 * 4 == len(line) - 1:
            with suppress(ValueError):
                yield -1, -1, _said(a2b_uu(line))


def readings(text: str) -> list[str]:
    """Return what else a text says: its codes, figures as letters, doubled letters as one."""
    plain = readable(text)
    found = (*decoded(text), plain, *decoded(plain))
    mixed = _MIXED.sub(lambda word: word[0].translate(_FIGURES), plain)
    single = _DOUBLED.sub(lambda word: word[0][::2], plain)
    return [one for one in dict.fromkeys((*found, mixed, single)) if one != text]


def _row_said(parts: list[str]) -> str:
    """Numbers as characters: what has most small letters."""
    found = list[str]()
    for base, wide in ((2, 8), (10, 0), (16, 2), (16, 0)):
        if (base, wide) == (16, 0) and any(found):
            break
        with suppress(ValueError, OverflowError):
            fit = [one for one in parts if not wide or len(one) == wide]
            row = [int(one, base) for one in fit] if 4 * len(fit) >= 3 * len(parts) else []
            row = [96 + one for one in row] if max(row) <= 26 else row  # letters by their places
            found.append(
                (_said(bytes(row)) if max(row) < 256 else "") or _said("".join(map(chr, row)))
            )
    return max(
        filter(None, found), key=lambda one: len(_SMALL.sub("", one)) / -len(one), default=""
    )


def _word_said(code: str) -> str:
    """A word in bits, hexadecimal or base64 as text; empty where it is none."""
    size, base = (8, 2) if set(code) <= {"0", "1"} else (2, 16)
    with suppress(ValueError):
        row = [int(code[i : i + size], base) for i in range(0, len(code), size)]
        if len(code) > 3 and (said := _said(bytes(row))):
            return said
    said, parts = _said(_from_base64(code)), re.split("[^A-Za-z0-9=]", code)
    return said or (" ".join(map(_word_said, parts)).strip() if len(parts) > 1 else "")


def _from_base64(code: str) -> bytes:
    bare = code.rstrip("=").translate(_URL_SAFE)
    bare = bare[: len(bare) - (len(bare) % 4 == 1)] if len(code) > 3 else ""
    with suppress(ValueError):
        return b64decode(bare + "=" * (-len(bare) % 4))
    return b""


def _said(data: bytes | str) -> str:
    """Bytes or characters as text; empty where many are none."""
    with suppress(ValueError):
        text = data if isinstance(data, str) else data.decode("utf-16" if 0 in data else "utf-8")
        shown = "".join(c for c in text if c.isprintable() or c.isspace())
        return shown if len(text) - len(shown) <= len(text) // 8 else ""
    return ""


def readable(text: str) -> str:
    """Return a text so that all that read alike are alike: no markup, codes or accents."""
    if text.isascii() and not _MARKED.search(text):
        return text
    bare = _TAGS.sub(" ", _EMPHASIS.sub("", unescaped(seen(text))))
    return unaccented(seen(bare)).replace("_", " ")


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
    parts = [words[i : i + size] for i in range(0, len(words), size)]
    return [text[p[0].start : p[-1].end] for p in parts if len(p) >= min_words]


def cut_characters(text: str, most: int) -> tuple[str, int]:
    """Cut a text after the last whole word that fits; a single longer word is cut itself.

    Returns:
        What is left, and the number of words cut off or cut short.
    """
    if len(text) <= most:
        return text, 0
    words = split_words(text)
    kept = [word for word in words if word.end <= most]
    if not kept:
        return text[:most], len(words)
    return text[: kept[-1].end], len(words) - len(kept)


# The language of a text, as far as its letters and commonest words tell.
#
# Enough to notice that a model answered in another language than it was given; nothing here names
# the language of a text of a few words.

_COMMON = {
    "English": "the and of to in is that was for with it as his on be are by this have not you i",
    "German": "der die und das ist nicht ein eine zu den von mit sich auf ich für dem auch es im",
    "French": "le la les et des est une un que dans pour pas je vous du en sur ce qui il avec",
    "Spanish": "el la los las y que es una un por con para no su al lo como me se del más",
    "Italian": "il la che di e è un una per non con sono mi del della gli le si da ho anche",
    "Portuguese": "o os as e que de um uma não para com do da em por se eu mais foi na no",
    "Dutch": "de het een en van is dat niet ik te op met voor zijn die er aan maar ook mijn",
    "Polish": "i w na nie się z do że jest to jak o po ale od za przez dla mnie czy",
}
_WORDS = {name: frozenset(words.split()) for name, words in _COMMON.items()}
_FEWEST = 12  # words; fewer tell no language
_LEAST = 0.12  # share of common words
_AHEAD = 1.2  # times the share of the next language


def language_of(text: str) -> tuple[str, str | None]:
    """Return the script that most letters are in, and the language where its words tell it.

    Args:
        text: At least a dozen words, or the language is None.
    """
    return _script(text), _language(text)


def same_language(first: str, second: str) -> bool:
    """Whether two texts may be in one language; True where that cannot be told."""
    (script, language), (other_script, other) = language_of(first), language_of(second)
    if script and other_script and script != other_script:
        return False
    return language is None or other is None or language == other


def _script(text: str) -> str:
    """First word of the letters' Unicode names, such as LATIN; empty without letters."""
    letters = Counter(c for c in text if c.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        scripts[unicodedata.name(letter, "?").split()[0]] += count
    return scripts.most_common(1)[0][0] if scripts else ""


def _language(text: str) -> str | None:
    words = plain_tokens(text)
    if len(words) < _FEWEST:
        return None
    shares = {
        name: sum(word in known for word in words) / len(words) for name, known in _WORDS.items()
    }
    (best, share), (_, next_share) = Counter(shares).most_common(2)
    return best if share >= _LEAST and share >= _AHEAD * next_share else None
