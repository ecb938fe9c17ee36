"""Known secrets, the spellings of each, and their places in other texts.

A model that recognises names is the wrong tool for one's own corpus: its owner knows its secrets.
One index finds them for the ledger, for the conditions on synthetic texts and for redaction.

A text is read as a row of letters and digits of its canonical form, so that case, punctuation and
white space make no difference. A secret is a few such rows: a name in both orders or with
initials, a street in full and short, a telephone number with and without its country. The table
``spellings.toml`` has the words, the contexts of a spelling, and every way with examples.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate, islice, pairwise, product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import regex as re
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.files import read_rows
from ragwitness.text.words import (
    LETTER,
    STOP_WORDS,
    UNIT,
    UNSPACED,
    Pattern,
    Span,
    canonical_places,
    canonical_text,
    expression,
    letters_of,
    read_table,
    script_pattern,
)

# An address is of one script: letters of another beside it belong to the sentence around it. Where
# words are parted by spaces, an address of their own script takes all of a word.
LATIN = r"[\p{Latin}[\p{M}&&\p{Script=Inherited}]\p{N}_]"
_NATIVE = rf"[[{LETTER}]--[\p{{Latin}}\p{{Hangul}}{UNSPACED}]]"
_ALONE = r"[\p{Hangul}" + UNSPACED + "]"
_PLACE = "|".join(f"(?:{letter}|-)+" for letter in (LATIN, _NATIVE, _ALONE))  # of a domain
_LOCAL = "|".join(
    rf"(?<!{letter}[.+-]*){letter}(?:{letter}|[.+-])*+" for letter in (LATIN, _NATIVE, _ALONE)
)
_PARTS = r"[-.\s\u2010-\u2015]"
_HOSTS = "|".join(read_table("spellings.toml")["words"]["hosts"].split())
CONTACTS = tuple(
    script_pattern(source)
    for source in (
        rf"(?:{_LOCAL})(?:[@\uff20](?:{_PLACE})(?:[.\uff0e](?:{_HOSTS}|(?:{LATIN}|-)+|(?:{_NATIVE}|-)+))"
        r"+|\s?[(\[{]\s?(?i:at)\s?[)\]}]"
        r"\s?[\w-]+(?:(?:\.|\s?[(\[{]?\b(?i:dot)\b[)\]}]?\s?)[^\W\d_][\w-]+)+"
        r"|(?i: (?:dot [\w+-]+ ){0,3}at (?!(?:an?|the|this|that|my|y?our|their|its|any|every)\b)"
        r"[\w-]+(?: dot [\w-]+){0,3}? dot (?:com|org|net|edu|gov|info|io|de|uk|fr)\b))",
        rf"(?<!\d)(?:\(\d{{3}}\){_PARTS}{{0,2}}\d{{3}}{_PARTS}?|\(?\d{{3}}\)?{_PARTS}\d{{3}}{_PARTS})"
        rf"\d{{4}}(?!\d)|(?<![{LATIN}+\uff0b])[+\uff0b](?!\d(?: \d){{6,8}}(?! ?\d))"
        r"[\p{Nd}--[0\uff10]]"
        r"(?:[ ().\-/\u00a0\u2010-\u2015]{0,2}\d){7,14}(?!\d)"
        rf"|(?<![{LATIN}.,+-])00(?:1\d{{10}}|[2-9]\d{{8,12}})(?!{LATIN})",
        rf"(?:https?://|www\.)(?:[!-~--[<>\"')]]|{LATIN}|(?<!{LATIN})(?!{_ALONE})[{LETTER}])+"
        r"(?<![.,;:!?])",
    )
)
"""E-mail and web addresses, telephone numbers as in North America or behind a country's code."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A private fact in a record.

    Attributes:
        text: Unchanged.
        kind: ``"name"``, ``"contact"``, ``"canary"``, or any other word of the owner.
        record: Id of the record.
    """

    stored_name: ClassVar[str] = "Secret"

    text: str
    kind: str
    record: str


def contacts(text: str) -> frozenset[str]:
    """Return the e-mail addresses, telephone numbers and web addresses of a text.

    The expressions published with SAGE miss telephone numbers written "(713) 853-1234" or
    "713 853 1234" and cut the domain off web addresses; these do not.
    """
    return frozenset(contact for kind in CONTACTS for contact in kind.findall(text))


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A secret in a text, ``text[start:end]``.

    Attributes:
        start: Of the range.
        end: Of the range.
        secret: Number of the secret in the list.
    """

    start: int
    end: int
    secret: int


_KEY = 4  # letters of a lookup key
_SHORT = 24  # characters; a longer secret finds itself


class SecretIndex:
    """Finds secrets in texts in any spelling; made once for any number of texts.

    Args:
        secrets: The secrets. Numbers of fewer than three digits and single letters are ignored.
        parts: Whether each word of a name also counts alone.
    """

    def __init__(self, secrets: Sequence[Secret], *, parts: bool = False) -> None:
        self._known: dict[str, dict[Spelling, list[int]]] = {}
        for number, secret in enumerate(secrets):
            for spelling in spellings(secret.text, secret.kind, parts=parts):
                rows = self._known.setdefault(spelling.letters, {})
                rows.setdefault(spelling, []).append(number)
        # By first letters, then length: a text is walked once, however many secrets there are.
        lengths: dict[str, set[int]] = {}
        for letters in self._known:
            lengths.setdefault(letters[:_KEY], set()).add(len(letters))
        self._lengths = {key: tuple(sorted(sizes)) for key, sizes in lengths.items()}
        self._keys = sorted({len(key) for key in lengths})

    def find(self, text: str) -> list[Found]:
        """Return every match in a text, in order; matches may overlap."""
        return sorted(set(self._matches(text))) if self._known else []

    def _matches(self, text: str) -> Iterator[Found]:
        row = row_of(text)
        letters = row.letters
        # 1. Dates, numbers and names that are recognised by their meaning.
        for start, end, letters_meant in meant(row):
            for spelling, numbers in self._known.get(letters_meant, {}).items():
                if spelling.check in ("number", "name"):
                    yield from (Found(*row.span(start, end), number) for number in numbers)
        # 2. From the beginning of each word: spellings with the same key, by their lengths.
        for start in row.starts:
            for key in self._keys:
                for length in self._lengths.get(letters[start : start + key], ()):
                    end = min(start + length, len(letters))
                    for spelling, numbers in self._known.get(letters[start:end], {}).items():
                        if spelling.stands(row, start):
                            span = row.span(row.at(start), row.at(end - 1) + 1)
                            yield from (Found(*span, number) for number in numbers)

    def pairs(self, texts: Sequence[str]) -> set[tuple[int, int]]:
        """Return the number of a text and of a secret in it, for every match."""
        return {(number, m.secret) for number, text in enumerate(texts) for m in self.find(text)}


def distinct(secrets: Sequence[Secret]) -> NDArray[np.int64]:
    """Number secrets so that spellings of one secret share a number.

    Returns:
        Shape (secrets,), from 0 in the order of their first listing.
    """
    numbers: dict[tuple[str, str], int] = {}
    keys = [(secret.kind, identity(secret.text, secret.kind)) for secret in secrets]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


# Ledgers of secrets as files: one JSON object per line, ``{"text", "kind", "record"}``.


def read_secrets(path: Path) -> list[Secret]:
    """Read a ledger; ``kind`` and ``record`` may be missing. No error quotes a secret.

    Raises:
        InputError: The file cannot be read, or a line holds no secret.
    """
    rows = enumerate(read_rows(path, _FORM), 1)
    secrets = [_secret(row, f"Secret {number} of {path}") for number, row in rows]
    if not secrets:
        raise InputError(f"{path} holds no secret.", _FORM)
    return secrets


_FORM = 'Each line is a JSON object such as {"text": "…", "kind": "name", "record": "id"}.'


def _secret(row: dict[str, Any], where: str) -> Secret:
    # 1. A text with at least a letter or digit.
    text: Any = row.get("text")
    kind, record = str(row.get("kind") or "secret"), row.get("record", "")
    # Half of a surrogate pair is no text: it cannot be written to a file.
    valid = isinstance(text, str) and not any("\ud800" <= char <= "\udfff" for char in text)
    if not (valid and letters_of(text)):
        raise InputError(f"{where}: the text of the secret is empty or not text.", _FORM)
    # A secret that is never found would always count as kept.
    if len(text) <= _SHORT and not SecretIndex([Secret(text, kind, "")]).find(f"I {text} i"):
        raise InputError(
            f"{where}: the secret is too short to be sought: single letters, two small letters, and"
            " numbers of fewer than three digits, occur in every text.",
            "List it together with the words around it, or leave it out.",
        )
    return Secret(text, kind, str(record))


# The spellings of one secret.

Words: TypeAlias = tuple[str, ...]

TABLE = read_table("spellings.toml")
"""Words, contexts and ways, as the file has them."""

_WORDS = TABLE["words"]
_MONTH = {name: str(n) for n, names in enumerate(_WORDS["months"], 1) for name in names.split()}
TABLE["expressions"]["MONTH"] = f"(?:{'|'.join(_MONTH)})"
TABLE["expressions"]["STREETS"] = "|".join(" ".join(_WORDS["streets"]).split())
_PATTERNS = {name: expression(source, TABLE) for name, source in TABLE["patterns"].items()}
_PARTICLES, _TITLES = (frozenset(_WORDS[name].split()) for name in ("particles", "titles"))
_FUNCTION = STOP_WORDS | frozenset(_WORDS["function"].split())
# Where letters of another script join a word, it ends: an address or a foreign name in a sentence.
# Latin letters stand for some Greek, Cyrillic and Armenian ones in the canonical form.
_ALPHABETS = r"\p{Latin}\p{Greek}\p{Cyrillic}\p{Armenian}"
_TOKEN = script_pattern(
    rf"{UNIT}|\p{{Nd}}+|(?:[{_ALPHABETS}]\p{{M}}*)+|[[{LETTER}]--[\p{{Nd}}_{UNSPACED}{_ALPHABETS}]]+"
)


_SEAM = script_pattern(
    rf"(?<={LATIN})(?=[[{LETTER}]--{LATIN}])|(?<=[[{LETTER}]--{LATIN}])(?={LATIN})"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A text as letters and digits without anything between.

    Attributes:
        plain: The canonical form of the text, with blanks for the labels of names.
        origin: Range of the text that each character of ``plain`` came from; None where they are
            the same.
        letters: The letters and digits of ``plain``, in one case.
        begins: Where each word begins in ``letters``, and the end.
        places: Where each word begins in ``plain``.
        starts: Where a word may begin: also behind the particles in front of it.
        ends: Where a word may end: also before the particles behind it.
    """

    plain: str
    origin: list[Span] | None
    letters: str
    begins: tuple[int, ...]
    places: tuple[int, ...]
    starts: tuple[int, ...]
    ends: frozenset[int]

    def at(self, place: int) -> int:
        """Return the place in ``plain`` of a letter."""
        word = bisect_right(self.begins, place) - 1
        return self.places[word] + place - self.begins[word]

    def span(self, start: int, end: int) -> Span:
        """Return the range of the text that a range of ``plain`` came from."""
        return (self.origin[start][0], self.origin[end - 1][1]) if self.origin else (start, end)


def row_of(text: str) -> Row:
    """Return a text as a row of letters and digits."""
    plain, origin = canonical_places(text)
    plain = _PATTERNS["label"].sub(lambda label: " " * len(label[0]), plain)
    # Labels of names are blanks; words are joined without spaces.
    tokens = list(_TOKEN.finditer(plain))
    words = [token.group().lower() for token in tokens]
    begins = tuple(accumulate(map(len, words), initial=0))
    token_starts = tuple(token.start() for token in tokens)
    # Particles are written as one word with a name.
    starts, ends = {*begins[:-1]}, {*begins[1:]}
    for word, begin in zip(words, begins, strict=False):
        for before, behind in _attached(word):
            starts.add(begin + before)
            ends.add(begin + len(word) - behind)
    # An address ends where another alphabet joins it, even one of letters that look alike.
    for seam in () if text.isascii() else _SEAM.finditer(text):
        plain_start = bisect_left(origin, (seam.start(), 0)) if origin else seam.start()
        if (at := bisect_right(token_starts, plain_start) - 1) >= 0:
            cut = min(begins[at] + plain_start - token_starts[at], begins[at + 1])
            starts.add(cut)
            ends.add(cut)
    letters = "".join(words)
    return Row(plain, origin, letters, begins, token_starts, tuple(sorted(starts)), frozenset(ends))


_AFFIXES = [
    (
        script_pattern(rf"\p{{{row['script']}}}+"),
        *(expression(row.get(side, "(?!)"), TABLE) for side in ("before", "behind")),
        row["least"],
    )
    for row in TABLE["affix"]
]


def _attached(word: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers of letters in front of and behind a word that may be particles."""
    if word.isascii():
        return
    for script, before, behind, least in _AFFIXES:
        if script.match(word):
            cuts = range(1, len(word) - least + 1)
            yield from ((n, 0) for n in cuts if before.fullmatch(word, 0, n))
            yield from ((0, n) for n in cuts if behind.fullmatch(word, len(word) - n))


# The texts required before, at and behind a spelling, by its check.
_CONTEXTS = defaultdict[str, list[list[Pattern]]](list)
for _row in TABLE["context"]:
    _parts = (_row.get(part, "") for part in ("before", "itself", "behind"))
    _CONTEXTS[_row["check"]].append([expression(part, TABLE) for part in _parts])
_LOOKED_AT = 24  # characters before a spelling
_FREE, _JOINED = 8, 6  # letters that hardly occur by chance: with spaces, and without
_LEAST = 5  # letters of a name that may end in an s, digits of a telephone number


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to write a secret.

    Attributes:
        letters: The row.
        begins: Where its words begin within it.
        check: Condition on its context: a check of the table, or ``name``, ``part``, ``number``
            or "".
        number: The ways to part a number; None for other secrets.
    """

    letters: str
    begins: frozenset[int]
    check: str = ""
    number: Pattern | None = None

    def stands(self, row: Row, start: int) -> bool:
        """Say whether a row that holds these letters holds them as written words."""
        end = start + len(self.letters)
        first, last = row.at(start), row.at(end - 1) + 1
        # 1. It ends where a word ends.
        if end not in row.ends:
            return False
        # 2. The conditions of the table and of the parts of a number.
        if self.number:
            return self.number.fullmatch(row.plain[first:last]) is not None
        if self.check in _CONTEXTS:
            return any(
                before.search(row.plain[max(0, first - _LOOKED_AT) : first])
                and itself.match(row.plain[first : last + 1])
                and behind.match(row.plain, last)
                for before, itself, behind in _CONTEXTS[self.check]
            )
        # 3. Few letters are the words of the secret: no "Al Lin" in "all in".
        among = row.begins[bisect_right(row.begins, start) : bisect_left(row.begins, end)]
        inner = {begin - start for begin in among}
        joined = len(self.letters) >= _JOINED or bool(inner) or not self.begins
        return len(self.letters) >= _FREE or (inner <= self.begins and joined)


# Numbers.

_NUMBER = 7  # digits that hardly occur by chance, with any signs between them


def _parted(row: Row, loose: bool) -> Pattern:
    """The ways to part a number: as listed, as thousands are, six digits in groups of a size."""
    if loose or len(row.letters) >= _NUMBER:
        return _PATTERNS["loose"]
    listed = row.plain[row.places[0] : row.at(len(row.letters) - 1) + 1]
    dot, dash, thousands = (_PATTERNS[name].pattern for name in ("dot", "dash", "thousands"))
    groups = (
        next((sign for sign in (dot, dash) if re.fullmatch(sign, piece)), re.escape(piece))
        for piece in re.split(r"(\D+)", listed)
    )
    ways = ["".join(groups)]
    for size, sign in ((3, thousands), (2, f"{dash}?"))[: 1 + (len(row.letters) == 6)]:
        way = sign.join(re.split(rf"(?<=\d)(?=(?:\d{{{size}}})+$)", row.letters))
        ways += [way] if re.fullmatch(way, listed) else []
    return re.compile("|".join(ways))


def _national(written: str, home: str | None = None) -> tuple[str, str]:
    """The code of its country and a telephone number without it; empty where it is none."""
    import phonenumbers

    with suppress(phonenumbers.NumberParseException):
        number = phonenumbers.parse(written, home)
        if home is None or written.startswith("+") or phonenumbers.is_valid_number(number):
            return str(number.country_code), phonenumbers.national_significant_number(number)
    return "", ""


def _dialled(text: str) -> Iterator[str]:
    """A telephone number as written, nationally and internationally."""
    # 1. The digits as listed.
    match = _PATTERNS["phone"].match(text.strip())
    written = re.sub("^00(?=[1-9])", "+", match[1].strip() if match else "")
    digits = "".join(filter(str.isdecimal, written))
    if len(digits.lstrip("0")) >= _NUMBER:  # 020 7946 0958 behind +44 has no nought
        yield from (digits, digits.lstrip("0"))
    # 2. With and without the code of the country.
    country, national = _national(written, "US")
    yield from (national, f"0{national}", country + national) if national else ()


# Dates.

_ORDERS = ("%Y %m %d", "%d %m %Y", "%m %d %Y")


def days_of(text: str) -> list[date]:
    """Return the possible days of a date, the likeliest first; none for other texts."""
    plain = _PATTERNS["midnight"].sub("", canonical_text(text).strip()).casefold()
    if _PATTERNS["date"].fullmatch(plain) is None:
        return []
    fields = re.findall(rf"\d+|\b{TABLE['expressions']['MONTH']}", plain)
    *others, last = (_MONTH.get(field, field) for field in fields)
    # A year of two digits is one of the last century or of this.
    short = max(map(len, (*others, last))) < 3
    centuries = (("19", "20") if last > "30" else ("20", "19")) if short else ("",)
    # A month's name fixes the order.
    named = next((n for n, field in enumerate(fields) if field in _MONTH), None)
    orders = [order for order in _ORDERS if named is None or order.split()[named] == "%m"]
    days = []
    for century, order in product(centuries, orders):
        with suppress(ValueError):
            days.append(datetime.strptime(" ".join((*others, century + last)), order).date())
    return days


# Addresses.

_STREETS = {word: names for names in map(str.split, _WORDS["streets"]) for word in names}


def _streets(words: Words) -> Iterator[Words]:
    """An address with the words for its streets in full and short; other texts unchanged."""
    streets = _STREETS if any(map(str.isdigit, words)) else {}
    split = re.sub(r"(?<=\w{3})(str|strasse)\b", r" \1", " ".join(words)).split()
    return islice(product(*(streets.get(word, [word]) for word in split)), 64)


def _part(form: str, text: str) -> str:
    """The group of a form's pattern in a secret."""
    return match[1] if (match := _PATTERNS[form].match(text.strip())) else ""


def _street(text: str) -> Iterator[str]:
    """A street with its number in front and behind."""
    number, _, street = text.partition(" ")
    yield from (text, f"{street} {number}") if number[:1].isdigit() else (text,)


def _spoken(text: str) -> Iterator[str]:
    local, _, domain = text.strip().removeprefix("mailto:").rpartition("@")
    spoken = domain.replace(".", " dot ")
    yield from (f"{local}@{domain}", f"{local} at {domain}", f"{local} at {spoken}")
    yield f"{local.replace('.', ' dot ')} at {spoken}"


# Names of people.

_MOST_WORDS = 6
_PERSON = re.compile(r"(?i)name|person|patient|doctor|author")


class PersonName(NamedTuple):
    """A person's name.

    Attributes:
        given: Its words in front of the family name.
        family: With its particles.
    """

    given: Words
    family: Words

    def orders(self) -> Iterator[str]:
        """Yield the name in every order, as a whole and without particles or further names."""
        full = (*self.given, *self.family)
        core = _without_particles(full)
        orders = [full, (*self.given[:1], *self.family)]
        orders += [core, (core[0], core[-1])] if len(core) > 1 else []
        if len(core) > 3:  # María García of María del Carmen García López, and both family names
            orders += [(core[0], core[-2]), (core[0], *core[-2:])]
        for words in dict.fromkeys(orders):
            for cut in range(len(words)):
                yield " ".join(words[cut:] + words[:cut])

    def families(self) -> list[str]:
        """The family name with its particles and without, also with a genitive s."""
        # A family name that is a common word counts only with a given name.
        core = _without_particles(self.family) or self.family
        sought = self.given and core[-1].casefold() not in _FUNCTION
        names = [" ".join(self.family), " ".join(core)] if sought else []
        return names + [f"{name}s" for name in names if len(name) >= _LEAST]

    def initials(self) -> Iterator[str]:
        """Yield the family name with the letters of the others, in both orders."""
        apart = tuple(p for word in self.given for p in re.split("[-\u2010]", word) if p)
        for family in (name for name in self.families() if len(name) > 2):
            for words in dict.fromkeys((self.given[:1], self.given, apart)):  # J.-P. Dupont
                letters = " ".join(word[0] for word in words)
                yield from (f"{letters} {family}", f"{family} {letters}")
            if len(self.given) > 1:  # Evelyn M. Linden
                yield " ".join((self.given[0], *(word[0] for word in self.given[1:]), family))

    def genitives(self) -> Iterator[str]:
        """Yield the name in every order with a genitive s."""
        yield from (f"{name}s" for name in self.orders() if len(name) >= _LEAST)

    def parts(self) -> Iterator[str]:
        """Yield each word that is no particle, and the family name."""
        yield " ".join(self.family)
        for word in _without_particles((*self.given, *self.family)):
            yield from (word, *word.replace("\u2019", "'").split("-"))


def _without_particles(words: Words) -> Words:
    return tuple(word for word in words if word.casefold() not in _PARTICLES)


def name_of(text: str, kind: str) -> PersonName | None:
    """Return a secret as a name; None where it is none by its kind or its capitals."""
    bare = re.sub(r'[;:()"]|\.(?=\s|$)', " ", _PATTERNS["nick"].sub(" ", text))
    front, _, rest = (
        tuple(word for word in half.split() if word.strip(".").casefold() not in _TITLES)
        for half in bare.partition(",")
    )
    words = (*front, *rest)
    if not words or len(words) > _MOST_WORDS or any(map(str.isdigit, text)):
        return None
    shaped = all(word[0].isupper() or word.casefold() in _PARTICLES for word in words)
    if not ((shaped and len(words) > 1) or _PERSON.search(kind)):
        return None
    # The family name begins with the first particle behind a name, or is the last word; in
    # "Linden, Evelyn van der" particles at the end belong to it.
    turned = bool(front and rest)
    ordered = rest if turned else words
    cut = len(ordered) - (not turned)
    while cut > 1 and ordered[cut - 1].casefold() in _PARTICLES:
        cut -= 1
    return PersonName(ordered[:cut], (*ordered[cut:], *(front if turned else ())))


def _names(text: str, kind: str = "name") -> Iterator[PersonName]:
    """A secret as a name, and by the nickname that it was listed with."""
    if name := name_of(text, kind):
        yield name
        yield from (name._replace(given=(nick,)) for nick in _PATTERNS["nick"].findall(text))


def _of_name(part: Callable[[PersonName], Iterable[str]]) -> Callable[[str], Iterable[str]]:
    return lambda text: (spelling for name in _names(text) for spelling in part(name))


# The ways of the table, and recognition by meaning.

_TEXTS: dict[str, Callable[[str], Iterable[str]]] = {
    "initials": _of_name(PersonName.initials),
    "titled": _of_name(PersonName.families),
    "genitive": _of_name(PersonName.genitives),
    "listed": lambda text: [text],
    "article": lambda text: [f"\u0644\u0644{text[2:]}"] if text[:2] == "\u0627\u0644" else [],
    "ending": lambda text: [text[:-1]] if text[-1:] == "\u0bcd" else [],
    "name": _of_name(PersonName.orders),
    "date": lambda text: (f"{day:{order}}" for day in days_of(text) for order in _ORDERS),
    "phone": _dialled,
    "mail": _spoken,
    "local": lambda text: [text.strip().removeprefix("mailto:").rpartition("@")[0]],
    "street": lambda text: _street(_part("street", text)),
    "labelled": lambda text: [] if days_of(_part("labelled", text)) else [_part("labelled", text)],
    "web": lambda text: [_PATTERNS["web"].sub("", text, count=1).rstrip("/ ")],
}
"""The spellings of a secret by each way of the table."""


def _form_of(text: str, kind: str) -> str:
    """The form of a secret; a canary has none, as it has one spelling."""
    if kind == "canary":
        return kind
    if days_of(text):
        return "date"
    forms = ("web", "mail", "phone", "street", "labelled")
    matching = (form for form in forms if _PATTERNS[form].match(text.strip()))
    return next(matching, "name" if name_of(text, kind) else "text")


def spellings(text: str, kind: str, *, parts: bool = False, whole: bool = False) -> list[Spelling]:
    """Return the spellings of a secret; none if it is too short.

    Args:
        text: The secret.
        kind: Its kind; a ``canary`` has one spelling.
        parts: Whether each word of a name also counts alone.
        whole: Whether to leave out the parts of a secret that disclose it alone.
    """
    # 1. The ways of the table for its form.
    form, phone = _form_of(text, kind), "phone" in kind.lower()
    ways = [
        way for way in TABLE["way"] if way["form"] in ("", form) and not (whole and way.get("part"))
    ]
    variants = [(way["check"], variant) for way in ways for variant in _TEXTS[way["name"]](text)]
    if parts:
        variants += [("part", part) for name in _names(text, kind) for part in name.parts()]
    # 2. Each variant as a row of letters, with its condition.
    unique: dict[Spelling, None] = {}
    for check, variant in dict.fromkeys(variants):
        for words in _words(variant):
            letters, condition, number = "".join(words), check, None
            if letters.isdigit():
                loose = phone and len(letters) >= _LEAST
                condition, number = "number", _parted(row_of(variant), loose)
            elif len(letters) < 3 and letters.isascii() and check != "titled":
                condition = "function" if letters in STOP_WORDS else "short"
            begins = frozenset(accumulate(map(len, words[:-1])))
            unique[Spelling(letters, begins, condition, number)] = None
    # A single letter and two digits occur in every text.
    return [
        spelling for spelling in unique if len(spelling.letters) > 1 + spelling.letters.isdigit()
    ]


_SPELLED_OUT = re.compile(r"(?<=\w)([aou])e(?=\w)")


def _words(text: str) -> Iterator[Words]:
    """Yield the words of a text, also with the other ways to write umlauts and streets."""
    # Umlauts as one letter or two, in both directions.
    composed = unicodedata.normalize("NFC", text)
    long = "".join(_WORDS["umlauts"].get(c, c) for c in composed.casefold())
    for row in map(row_of, {composed.casefold(): None, long: None}):
        words = tuple(row.letters[a:b] for a, b in pairwise(row.begins))
        short = (_SPELLED_OUT.sub(r"\1", word) if len(word) > 4 else word for word in words)
        for form in dict.fromkeys((words, tuple(short))):
            yield from _streets(form)


def meant(row: Row) -> Iterator[tuple[int, int, str]]:
    """Yield stretches of ``plain`` whose meaning differs from their letters, with letters to seek.

    They are dates of any form, telephone numbers behind their country, and names with one more
    word between.
    """
    for match in _PATTERNS["date"].finditer(row.plain):
        yield from ((*match.span(), f"{day:%Y%m%d}") for day in days_of(match[0]))
    for match in _PATTERNS["abroad"].finditer(row.plain):
        yield *match.span(), _national(re.sub("^00", "+", match[0]))[1]
    for match in _PATTERNS["middle"].finditer(row.plain):
        yield *match.span(1), row_of(f"{match[2]} {match[3]}").letters


def identity(text: str, kind: str) -> str:
    """Return a key that two listings of one secret share, in any spelling."""
    form = _form_of(text, kind)
    if form == "date":
        return f"{days_of(text)[0]:%Y%m%d}"
    if form == "name" and (name := name_of(text, kind)):
        return " ".join(sorted(row_of(word).letters for word in (*name.given, *name.family)))
    rows = (spelling.letters for spelling in spellings(text, kind, whole=True))
    return min(rows, key=lambda letters: (len(letters), letters), default=text)
