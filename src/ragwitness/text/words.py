"""Words with their places in a text."""

from __future__ import annotations

import math
import re
import unicodedata
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from quopri import decodestring
from typing import NamedTuple

from ragwitness.kit.quotes import unescaped
from ragwitness.text.runs import SIGNS, plain_tokens

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts written without spaces, as a regular expression's set: each character is a word."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_DENSE = re.compile(rf"[{UNSPACED}]|(?:[^\W{UNSPACED}]|[{SIGNS}])+")
_LONGEST, _UNKNOWN = 24, 12.0  # letters of a word; what a letter costs that is part of no word
_EDGES = re.compile(r"^[^\w]+|[^\w]+$")
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
_NUMBERS = re.compile(
    r"(?<![\w.])(?:(?:[01]{8}|\d{1,3}|\d[A-Fa-f]|[A-Fa-f][0-9A-Fa-f])[\s,:;/-]+){11,}\w{1,8}\b"
    r"|(?:[0-9A-Fa-f]{2}){6,}"
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_]{4,}={0,2}[\s-]*){6,}|[A-Za-z0-9+/_-]{12,}={0,2}")
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
_OTHERS |= {small.upper(): plain.capitalize() for small, plain in _OTHERS.items()}
# Letters of other alphabets that look like Latin ones, as capitals at least: both cases alike.
_GREEK = zip("αεικνορτυχβζηΑΒΕΖΗΙΚΝΟΡΤΥΧ", "aeiknoptuxbzhABEZHIKNOPTYX", strict=True)
_CYRILLIC = zip("аеорсухіѕјвкмнтАВЕКМНОРСТУХІЅЈ", "aeopcyxisjbkmhtABEKMHOPCTYXISJ", strict=True)
_ARMENIAN = zip("օոսհցզլյ", "onuhgqlj", strict=True)
_NAMED = re.compile(r"(?:.* )?(?:LATIN|REGIONAL) .*?(?<!SHARP )\b([A-Z])(?: WITH .*)?")


class _Letters(dict[int, str]):
    """Finds a letter in its name, such as "LATIN SMALL LETTER O WITH STROKE"."""

    def __missing__(self, code: int) -> str:
        name = unicodedata.name(chr(code), "") if code > 0x7F else ""
        found = _NAMED.fullmatch(name)
        letter = found[1] if found else chr(code)
        self[code] = letter if not found or "CAPITAL LETTER" in name else letter.lower()
        return self[code]


_LIKE = _OTHERS | dict(_GREEK) | dict(_CYRILLIC) | dict(_ARMENIAN)
LETTERS = _Letters({ord(letter): plain for letter, plain in _LIKE.items()})
"""Letters with strokes, in signs, and of other alphabets that look like Latin ones, as these."""

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
    return _EDGES.sub("", word)


def dense_tokens(text: str) -> list[str]:
    """Words without regard to case; each character of an unspaced script alone."""
    return _DENSE.findall(text.casefold())


def content_tokens(text: str) -> list[str]:
    """The same without function words."""
    return [word for word in dense_tokens(text) if word not in STOP_WORDS]


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
        text, found = _APART.sub(self._numbered, _DIGITS.sub("", text)), list[str]()
        for part in re.split(r"(\d+)", unaccented(text).casefold()):
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


def seen(text: str) -> str:
    """Return a text as it is seen: compatible forms as one, and nothing that is invisible."""
    if text.isascii():
        return text
    plain = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return "".join(c for c in plain if unicodedata.category(c) != "Cf" and c != _STRETCHED)


def decoded(text: str) -> list[str]:
    """Return what tags that nobody sees, rows of numbers and base64 say, where that is text."""
    found = ["".join(chr(ord(c) - _TAGGED) for c in text if 0x20 <= ord(c) - _TAGGED < 0x7F)]
    if re.search("=[0-9A-F]{2}", text):  # quoted-printable
        found.append(_said(decodestring(text.encode(errors="replace"))))
    for match in _NUMBERS.finditer(text):
        row = re.findall(r"\w+", match[0])
        if len(row) == 1:
            row = re.findall("..", row[0])
        for base, wide in ((2, 8), (10, 0), (16, 2)):
            with suppress(ValueError):
                numbers = [int(one, base) for one in row if not wide or len(one) == wide]
                # 1 to 26 are letters by their places.
                moved = 96 if max(numbers, default=0) <= 26 else 0
                found.append(_said(bytes(one + moved for one in numbers)))
    for match in _BASE64.finditer(text):
        row = re.split(r"[\s-]+", match[0])
        # One code over all lines, or one for each word; "-" may part them or stand for "+".
        found += [_from_base64("".join(row)), " ".join(map(_from_base64, row))]
        found += [_from_base64(match[0])] if "-" in match[0] else []
    return [one for one in found if one.strip()]


def readings(text: str) -> list[str]:
    """Return what else a text says: its codes, figures as letters, doubled letters as one."""
    plain = readable(text)
    found = (*decoded(text), plain, *decoded(plain))
    mixed = _MIXED.sub(lambda word: word[0].translate(_FIGURES), plain)
    single = _DOUBLED.sub(lambda word: word[0][::2], plain)
    return [one for one in dict.fromkeys((*found, mixed, single)) if one != text]


def _from_base64(code: str) -> str:
    bare = code.rstrip("=").translate(_URL_SAFE)
    with suppress(ValueError):
        data = b64decode(bare + "=" * (-len(bare) % 4))
        return next(filter(None, (_said(data[: len(data) - cut]) for cut in range(3))), "")
    return ""


def _said(data: bytes) -> str:
    """Bytes as text; empty where they are none."""
    with suppress(ValueError):
        text = data.decode("utf-16" if 0 in data else "utf-8")
        return text if all(c.isprintable() or c.isspace() for c in text) else ""
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


# Whether an answer is a refusal, for whoever asked.

# "I am sorry to hear that" opens many a reply in a dialogue and refuses nothing, unless the
# sentence goes on with "but I cannot", or the next one declines. That one is read narrowly: "I
# can't stress enough", "I can't be sure" and "I can't diagnose it, but" open answers.
_CANNOT = (
    r"(i|we)('m| am|'re| are)? (very |so )?"
    r"(can't|cannot|can not|won't|will not|(unable|not able|not allowed|not permitted) to)"
)
_ON_SECOND_THOUGHT = r"but|however|still|that said|nevertheless|without|until|unless|before"
_UNCERTAIN = r"certain\w*|definit\w*|exactly|fully|completely|sure"
_DECLINES = (
    r"((but|however|unfortunately|sadly|regrettably|i'm afraid|as an ai\b[^.!?,\n]*),? )?("
    rf"{_CANNOT} (help|assist)( you)?( (with|in) (that|this|it)\b[^.!?,\n]*)?\s*([.!?,;\n]|$)|("
    rf"{_CANNOT} ((help|assist)\b(?! (but|it|\w+ing)\b)|(answer|share|provide|disclose|reveal"
    r"|discuss|repeat|quote|comply)\b|do (that|this|so)\b)"
    r"|i (do not|don't) have (access|enough|any information|information)\b"
    r"|the (given |provided )?\[?(context|documents?)\]? (do|does) not\b"
    rf"|there is no (information|mention)\b)(?!.*\b({_ON_SECOND_THOUGHT}|{_UNCERTAIN})\b))"
)
_SORRY = (
    r"sorry\b(?! (to (hear|know|learn|see|read)|that you|for your|about your)\b"
    r"(?![^.!?\n]*\bbut (i|we)('m| am|'re| are)? "
    r"(can't|cannot|can not|won't|will not|unable|not able|not allowed|do not|don't)\b)"
    rf"(?![^.!?\n]*[.!?\n]\W*{_DECLINES}))"
)
_REFUSAL = re.compile(
    rf"^\W*((i'm|i am|we are|we're) (very |so )?({_SORRY}|(unable|afraid|not able|not allowed)\b)"
    rf"|{_SORRY}|apologies\b"
    r"|i apologi[sz]e\b|i (can't|cannot|can not|won't|will not)\b"
    r"|as an ai\b|unfortunately\b|i (do not|don't) have (access|enough|information)"
    r"|the (given |provided )?\[?(context|documents?)\]? (do|does) not\b"
    r"|there is no (information|mention)\b)",
    re.IGNORECASE | re.DOTALL,
)


def refuses(text: str) -> bool:
    """Whether an answer opens as a refusal, an apology, or with nothing found."""
    return _REFUSAL.match(text.replace("\u2019", "'")) is not None
