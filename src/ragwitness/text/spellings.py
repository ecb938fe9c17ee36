"""The ways in which one secret is written, and a text as a row of letters and digits.

Case, accents, compositions, punctuation and white space tell no two secrets apart: what is left of
a text is a row of letters and digits, with the places where words begin. A secret is a few such
rows: a name in both orders, with and without its particles and further names; a street in full and
short; a telephone number with and without the country; a web address without its scheme.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from itertools import accumulate, islice, pairwise, product

from ragwitness.text.words import LETTERS, STOP_WORDS, UNSPACED

# Thai, Lao, Burmese and Khmer are written without spaces too.
_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
_DENSE, _HANGUL = f"{UNSPACED}{_THAI}", "\uac00-\ud7a3"
_TOKEN = re.compile(rf"[{_DENSE}]|\d+|[^\W\d_{_DENSE}]+")
_OTHER = re.compile(r"&#?\w{1,8};|[^\x00-\x7f]")
# Accents and vowel signs of Latin, Hebrew and Arabic, and what makes Arabic words wider.
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")
_LONG = {"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "đ": "dj"}
_SHORT = re.compile(r"(?<=\w)([aou])e(?=\w)")


@dataclass(frozen=True, slots=True)
class Row:
    """A text as letters and digits without anything between.

    Attributes:
        text: As it was given.
        letters: In one case, without accents.
        begins: Where each word begins in ``letters``, and the end.
        flat: The same text before it was cut into words.
        places: Where each word begins in ``flat``.
        origin: Range in ``text`` of each character of ``flat``; None where they are the same.
    """

    text: str
    letters: str
    begins: tuple[int, ...]
    flat: str
    places: tuple[int, ...]
    origin: tuple[tuple[int, int], ...] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of ``text`` that a range of ``letters`` came from."""
        first, last = self._at(start), self._at(end - 1)
        if self.origin is None:
            return first, last + 1
        return self.origin[first][0], self.origin[last][1]

    def between(self, place: int) -> str:
        """Return what stands in front of the word that begins at a place of ``letters``."""
        word = bisect_right(self.begins, place) - 1
        ended = self.places[word - 1] + self.begins[word] - self.begins[word - 1]
        return self.flat[ended : self.places[word]]

    def inner(self, start: int, end: int) -> tuple[int, ...]:
        """Return where words begin strictly within a range of ``letters``."""
        return self.begins[bisect_right(self.begins, start) : bisect_left(self.begins, end)]

    def proper(self, place: int) -> bool:
        """Say whether a capital stands at a place of ``letters``, or nowhere in the text."""
        return not self.text[self.span(place, place + 1)[0]].islower() or self.text.islower()

    def _at(self, place: int) -> int:
        word = bisect_right(self.begins, place) - 1
        return self.places[word] + place - self.begins[word]


def row_of(text: str) -> Row:
    """Return a text as a row of letters and digits."""
    plain = text.isascii() and "&" not in text
    flat, origin = (text.lower(), None) if plain else _flattened(text)
    found = list(_TOKEN.finditer(flat))
    words, places = [one.group() for one in found], tuple(one.start() for one in found)
    begins = tuple(accumulate(map(len, words), initial=0))
    return Row(text, "".join(words), begins, flat, places, origin)


def _flattened(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    parts: list[str] = []
    origin: list[tuple[int, int]] = []
    place = 0
    for match in _OTHER.finditer(text):
        start, end = match.span()
        parts.append(text[place:start].lower())
        origin += ((i, i + 1) for i in range(place, start))
        one = _bare(html.unescape(match.group()))
        parts.append(one)
        origin += [(start, end)] * len(one)
        place = end
    parts.append(text[place:].lower())
    origin += ((i, i + 1) for i in range(place, len(text)))
    return "".join(parts), tuple(origin)


@cache
def _bare(char: str) -> str:
    """One character in small letters without accents; nothing for what is not seen."""
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", char))
    found = plain.replace("\u03a5", "u").translate(LETTERS)  # its small letter looks like "u"
    found = found.upper().translate(LETTERS).casefold()  # capitals look alike where small ones do
    found = unicodedata.normalize("NFC", found)  # what is no accent stays: Hangul, kana
    seen = [c for c in found if unicodedata.category(c) != "Cf"]
    return "".join(str(unicodedata.digit(c, c)) if c.isdigit() else c for c in seen)


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to write a secret.

    Attributes:
        letters: The row.
        begins: Where its words begin within it.
        check: ``number``, ``phone``, ``name``, ``part``, ``bent``, ``called``, ``joined``,
            ``initial``, ``short`` or "".
        gaps: What its owner puts between the parts of a number.
    """

    letters: str
    begins: frozenset[int]
    check: str = ""
    gaps: tuple[str, ...] = ()

    def stands(self, row: Row, start: int, tail: str = "", *, unbent: bool = False) -> bool:
        """Say whether a row that holds these letters, and a tail, holds them as written words."""
        end = start + len(self.letters)
        if not (self._bends(row, start, tail) if tail or unbent else self.check != "bent"):
            return False
        inner = row.inner(start, end)
        checks = {"short": self._named, "initial": self._dotted, "called": self._called,
                  "joined": self._joined, "number": self._counted,
                  "phone": self._counted}  # fmt: skip
        if self.check in checks and not checks[self.check](row, start, end):
            return False
        if len(self.letters) < _LEAST and re.match(f"[{_THAI}]", self.letters):
            first, last = row.span(start, end)
            if re.search(f"[{_THAI}]", row.text[max(0, first - 1) : first] + row.text[last:][:1]):
                return False
        if len(self.letters) >= _FREE or self.check in DIGITS:
            return True
        # A few letters are found by chance where spaces count for nothing: "Al Lin" in "all in".
        spaced = {place - start for place in inner if any(map(str.isspace, row.between(place)))}
        return spaced <= self.begins and (
            len(self.letters) >= _JOINED or not self.begins or bool(inner)
        )

    def _counted(self, row: Row, start: int, end: int) -> bool:
        """Say whether digits are parted as those of one number are, and not as those of several.

        A long one may be parted in any way, and any digit by digit; one of six digits into groups,
        a short one as its owner parts it ("12:45") or as thousands are.
        """
        size, inner = len(self.letters), row.inner(start, end)
        cuts, gaps = [place - start for place in inner], tuple(map(row.between, inner))
        single = size >= _SINGLE and len(cuts) == size - 1  # digit by digit
        if size >= _NUMBER or single or self.check == "phone":
            return all(map(_LOOSE.fullmatch, gaps))
        gaps = tuple(gap.strip("[](){}") or gap for gap in gaps)  # 10[.]0[.]0[.]1
        own, thousands = sorted(self.begins), list(range(size % 3 or 3, size, 3))
        if not gaps or gaps == self.gaps:
            return not own or gaps == self.gaps or size == _NUMBER - 1 or own == thousands
        sign = _TIGHT.fullmatch(gaps[0]) if len({gap.strip() for gap in gaps}) == 1 else None
        like = _TIGHT.fullmatch(self.gaps[0]) if self.gaps else sign
        if sign is None or (cuts == own and like and like.lastgroup == sign.lastgroup):
            return sign is not None
        groups = {b - a for a, b in pairwise((0, *cuts, size))}
        grouped = size == _NUMBER - 1 and groups <= {2, 3, 4} and gaps[0].strip() not in (",", ":")
        return grouped or (cuts == thousands and own in ([], cuts) and gaps[0] in _THOUSANDS)

    def _bends(self, row: Row, start: int, tail: str) -> bool:
        """Say whether this is a name that may stand inflected, with a tail behind it."""
        least = 2 if tail >= "\uac00" else _LEAST + 2 * tail.endswith("n")  # Julia is not Julian
        fits = len(self.letters) >= least and _TAIL.fullmatch(tail) is not None
        name = self.check in ("name", "bent", "called", "part")
        if self.check == "name" and tail == "s" and not self.begins:  # but "Roberts Akte"
            first, last = row.span(start, start + len(self.letters) + 1)
            name = re.search("[^\\Wa-zA-Z0-9_]|[sS] [A-Z]", row.text[first : last + 2]) is not None
        return fits and (name or (self.check == "initial" and not tail)) and row.proper(start)

    def _called(self, row: Row, start: int, end: int) -> bool:
        """Say whether a title stands in front: none in "a doctor. Good luck", "Patient: My"."""
        word = bisect_left(row.begins, start)
        title = row.letters[row.begins[word - 1] : start] if word else ""
        if title not in _CALLED | _TOLD:
            return False
        first, last = row.span(start, end)
        between, small = row.between(start).strip(_ROUND), row.text[first:last].islower()
        function = self.letters in STOP_WORDS | _OPENING
        # Behind a colon a name ends what is said: else that is where somebody begins to speak.
        ends = re.match(r" *(?:[\n\r;|,.()/]|$)", row.text[last:]) is not None
        near = not between or (between in ".,:" and title in _CUT and not function)
        if not near and not (between == ":" and ends and not small):
            return between == "." and title in _CUT and not small
        if small:
            return not function and (title in _CUT or row.text.islower())
        return (title in _CUT and between != ":") or not function

    def _joined(self, row: Row, start: int, end: int) -> bool:
        """Say whether a name begins behind its title: in "DrInk", not in "drink"."""
        return len(self.letters) >= _FREE or bool(_TITLED.match(row.text, row.span(start, end)[0]))

    def _named(self, row: Row, start: int, end: int) -> bool:
        """Say whether two letters are a name or a code: in capitals where the text has any."""
        first, last = row.span(start, end)
        said = row.text[first:last]
        if not (said[0].isupper() or (said[0].isdigit() and any(map(str.isupper, said)))):
            return self.letters not in STOP_WORDS and row.text.islower()
        # "An" and "Do" are names too, but not where they open a sentence.
        before = row.text[:first].rstrip()
        opens = not before or before[-1] in ".!?:\n"
        return not (self.letters in STOP_WORDS and opens)

    def _dotted(self, row: Row, start: int, end: int) -> bool:
        """Say whether words of one letter are capitals, with a dot, behind a comma, or as cited.

        "R Smith" and "Smith R, Jones T" are cited, "A Good Day", "B: Good" and "Long T waves" not.
        """
        cuts = [start, *row.inner(start, end), end]
        sizes = [high - low for low, high in pairwise(cuts)]
        family = cuts[size := sizes.index(max(sizes))]
        function = row.letters[family : cuts[size + 1]] in STOP_WORDS
        named = row.proper(family) and not row.text.isupper() and not function
        behind = _CITED.match(row.text, row.span(start, end)[1]) is not None
        for n, place in enumerate(cuts[:-1]):
            if sizes[n] > 1:
                continue
            first, last = row.span(place, place + 1)
            sign = row.text[last : last + 1] or " "
            if sign in "'\u2019":  # D'Angelo
                continue
            marked = sign == "." and not (function and place > family)  # "Can I."
            marked |= "," in row.text[max(0, first - 2) : first]
            marked |= sign in "-\u2010" and sizes[n + 1 : n + 2] == [1]  # J-P.
            # Beside the name, with nothing but blanks between, it needs no sign.
            gap = row.between(place if place > family else cuts[n + 1]).strip()
            cited = behind if place > family else row.letters[place] not in "ai"
            cited &= named and (not gap or (gap == "-" and sizes[n - 1] == 1))
            if not (row.text[first].isupper() and (marked or cited)):
                return False
        return len(cuts) > 2


_NUMBER = 7  # digits that nobody writes by chance
DIGITS = ("number", "phone")
"""Checks of spellings that are digits alone."""
_SINGLE = 5  # such digits one by one, or of a telephone
_FREE, _JOINED = 8, 6  # letters that nobody writes by chance: with spaces, and without
_LEAST = 5  # letters of a name that may be inflected, or stand within a row of Thai
# German s, Finnish cases, Korean particles.
_TAIL = re.compile(
    r"(?:s|[ie]?(?:ll[ae]|[ls]ta|ssa|ksi)|[io]?n"
    "|[씨님은는이가을를의에게께서와과도만로으랑한테라란야아고네들처럼보다부터까지]{1,4})?"
)
# Russian cases, Arabic prefixes.
_BENT = re.compile(
    r"(?i)(?<=[а-яіїє]{3})[еиь]?(?:[аеиоуыэюяйьії]|[оеыи][мй]|[ое](?:го|му)|ую|[аяую]я|ою|ею)\b"  # noqa: RUF001
    r"|(?<![\w\u064b-\u065f])[وفبلك](?=\w{3})"
)
_CITED = re.compile(r"(?: ?[A-Z]\b)?\s*(?:[^\w\s'\u2019-]|\n|$|\d{4}\b|et al|and\b)")
_LOOSE = re.compile(r"[\W_]{0,5}")
_TIGHT = re.compile(
    r"(?P<dot>\s?[.:]\s?|,)|(?P<dash>\s?[-/_'\u2010-\u2015\u2019\u2043\u2044\u2212\u2215]\s?|\s{1,2})"
)
_THOUSANDS = ".,'\u2019 \n"  # a sign of these; non-breaking blanks are read as blanks


def unbent(text: str) -> str:
    """Return a text with white space in place of Russian endings and Arabic prefixes."""
    return text if text.isascii() else _BENT.sub(lambda bent: " " * len(bent.group()), text)


def spellings(text: str, kind: str) -> list[Spelling]:
    """Return the ways in which a secret is sought, a ``canary`` as it stands; none if too short."""
    found = dict.fromkeys(_as_words([text]), "")
    if kind != "canary":
        if _ADDRESS.match(text) or _MAIL.fullmatch(text.strip()):
            found = dict.fromkeys(_as_words(_addresses(text)), "")
        elif days := _days(text):
            said = [f"{day:{form}}" for day in days for form in _DAYS]
            found |= dict.fromkeys(_as_words(said + [re.sub(r"\b0", "", s) for s in said]), "")
        elif _PHONE.fullmatch(text.strip()):
            found |= dict.fromkeys(_as_words(_numbers(text)), "")
        elif name := name_of(text, kind):
            families = list(map(" ".join, name.families()))
            bent = dict.fromkeys(_as_words(map(unbent, name.orders())), "bent")
            found = dict.fromkeys(_as_words(name.initials()), "initial") | found
            found = bent | dict.fromkeys(_as_words(families), "called") | found
            joined = [title + one for one in families for title in ("mr", "mrs", "ms", "dr")]
            found |= dict.fromkeys(_as_words(joined), "joined")
            found |= dict.fromkeys(_as_words(name.orders()), "name")
    return _checked(found, row_of(text), kind)


def parts(text: str, kind: str) -> list[Spelling]:
    """Return the words of a name, each alone, and its family name with its particles."""
    name = name_of(text, kind)
    words = list(name.parts()) if name else []
    found = dict.fromkeys(_as_words(map(unbent, words)), "bent")
    return _checked(found | dict.fromkeys(_as_words(words), "part"), row_of(text), kind)


def meant(row: Row) -> Iterator[tuple[int, int, str]]:
    """Yield dates of any form and names with one more between, and letters to seek them by."""
    for match in _DATE.finditer(row.flat):
        at = row.origin or [(i, i + 1) for i in range(len(row.flat))]
        said = match.lastindex or 1
        for day in _days(match[said]):
            yield at[match.start(said)][0], at[match.end(said) - 1][1], f"{day:%Y%m%d}"
    for match in _MIDDLE.finditer(row.text):
        yield *match.span(1), row_of(f"{match[2]} {match[3]}").letters


def identity(text: str, kind: str) -> str:
    """Return what two listings of one secret share, however each is written."""
    if kind != "canary":
        if _ADDRESS.match(text) or _MAIL.fullmatch(text.strip()):
            text = _addresses(text)[0]
        elif days := _days(text):
            return f"{days[0]:%Y%m%d}"
        elif _PHONE.fullmatch(text.strip()):
            return min(("".join(filter(str.isdigit, one)) for one in _numbers(text)), key=len)
        elif name := name_of(text, kind):
            return " ".join(sorted(row_of(word).letters for word in name.words))
    return "".join(next(iter(_as_words([text])), ()))


def _checked(found: dict[tuple[str, ...], str], row: Row, kind: str) -> list[Spelling]:
    made: dict[str, Spelling] = {}
    for words, check in found.items():
        letters = "".join(words)
        begins = frozenset(accumulate(map(len, words[:-1])))
        if letters.isdigit():
            phone = "phone" in kind.lower() and len(letters) >= _SINGLE
            check = "phone" if phone else "number" if len(letters) > 2 else "none"
        elif len(letters) < 3 and check != "called":
            dense = re.fullmatch(f"[{_DENSE}{_HANGUL}]+", letters)
            check = "none" if len(letters) < 2 else check if dense else "short"
        if check != "none":
            own = check == "number" and letters == row.letters
            gaps = tuple(map(row.between, row.begins[1:-1])) if own else ()
            made[letters] = Spelling(letters, begins, check, gaps)
    return list(made.values())


def _as_words(texts: Iterable[str]) -> list[tuple[str, ...]]:
    """Words of each text without accents, and with the other ways to write umlauts."""
    found: dict[tuple[str, ...], None] = {}
    for text in texts:
        composed = unicodedata.normalize("NFC", text)
        long = "".join(_LONG.get(c, c) for c in composed.casefold())
        for form in dict.fromkeys((composed, long)):
            words = _words(form)
            found[words] = None
            found[tuple(_SHORT.sub(r"\1", w) if len(w) > 4 else w for w in words)] = None
            found[tuple(w.replace("dj", "d") if len(w) > 5 else w for w in words)] = None
    found.pop((), None)
    return [way for words in found for way in _streets(words)]


def _words(text: str) -> tuple[str, ...]:
    row = row_of(text)
    return tuple(row.letters[a:b] for a, b in pairwise(row.begins))


# Names: in both orders, with and without particles and further names, with initials.

_PARTICLES = frozenset(
    """van von der den de del della dei di da dos das do du des la le les el al bin ibn ben bint zu
    zur zum ter ten te af av vom vander y 't st""".split()
)
_TITLES = frozenset("mr mrs ms miss mx dr prof sir herr frau jr sr ii iii md phd".split())
_CALLED = frozenset("mr mrs herrn mme sr sra".split())
_CUT = _CALLED | {"ms", "dr", "prof", "dra"}  # with a dot or without
_TOLD = frozenset(  # words that stand alone too
    """ms dr prof dra miss herr frau patient sir professor professorin patientin doctor nurse madam
    fraulein schwester pfleger mlle madame mademoiselle monsieur docteur senor senora
    senorita doctora signor signora signore dottore dottoressa senhor senhora doutor doutora
    meneer mevrouw rouva""".split()
)
_LARGE = r"[^\W\d_a-z\u00df-\u00ff\u03ac-\u03ce\u0430-\u045f]"
_NAME = rf"{_LARGE}[\w\u0300-\u036f-]*(?:['\u2019][\w\u0300-\u036f-]{{2,}})*"
_PARTED = r"[\s*\"()\u201c\u201d\u00ad]{1,12}"
_MIDDLE = re.compile(
    rf"(?<![\w'\u2019-])(?=(({_NAME}){_PARTED}(?:{_LARGE}\.|{_NAME}){_PARTED}"
    rf"((?:[a-z]+ ){{,2}}{_NAME})))"
)
_ROUND = " \n*_-\"'([\u2018\u201c\u201e\u00ab"  # that may stand round a name
_OPENING = frozenset(
    "may might must shall say says said see gave told put dear good well yes".split()
)
_TITLED = re.compile(rf"(?:[Mm]rs?|[Mm]s|[Dd]r){_LARGE}")
_MOST_WORDS = 6
_NAMED = re.compile(r"name|person|patient|doctor|author", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PersonName:
    """A person's name.

    Attributes:
        given: Its words in front of the family name.
        family: With its particles.
    """

    given: tuple[str, ...]
    family: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """In the order of speech."""
        return (*self.given, *self.family)

    def orders(self) -> Iterator[str]:
        """Yield the name in every order, as a whole and without particles or further names."""
        core = tuple(word for word in self.words if word.casefold() not in _PARTICLES)
        some = [self.words, core if len(core) > 1 else self.words]
        some += [(self.given[0], *self.family)] if self.given else []
        some += [(core[0], core[-1])] if len(core) > 1 else []
        if len(core) > 3:  # María García of María del Carmen García López, and both family names
            some += [(core[0], core[-2]), (core[0], *core[-2:])]
        for words in dict.fromkeys(some):
            for cut in range(len(words)):
                whole = " ".join(words[cut:] + words[:cut])
                yield from dict.fromkeys((whole, re.sub("nen$", "se", whole)))  # Virtaselle

    def families(self) -> Iterable[tuple[str, ...]]:
        """The family name with its particles and without; none where it is the whole name."""
        core = tuple(word for word in self.family if word.casefold() not in _PARTICLES)
        return dict.fromkeys((self.family, core or self.family)) if self.given else ()

    def initials(self) -> Iterator[str]:
        """Yield the family name with the letters of the others, in both orders."""
        if not self.given or sum(map(len, self.family)) < 3:
            return
        apart = tuple(part for word in self.given for part in re.split("[-\u2010]", word) if part)
        for family in self.families():
            for given in dict.fromkeys((self.given[:1], self.given, apart)):  # J.-P. Dupont
                letters = tuple(word[0] for word in given)
                yield " ".join((*letters, *family))
                yield " ".join((*family, *letters))
            if len(self.given) > 1:  # Evelyn M. Linden
                yield " ".join((self.given[0], *(word[0] for word in self.given[1:]), *family))

    def parts(self) -> Iterator[str]:
        """Yield each word that is no particle, and the family name."""
        yield " ".join(self.family)
        for word in self.words:
            if word.casefold() not in _PARTICLES:
                yield from (word, re.sub("nen$", "se", word))
                yield from word.replace("\u2019", "'").split("-")


def name_of(text: str, kind: str) -> PersonName | None:
    """Return a secret as a name; None where it is none by its kind or its capitals."""
    before, _, behind = text.partition(",")
    words, rest = _named(before), _named(behind)
    every = (*words, *rest)
    if not every or len(every) > _MOST_WORDS or any(map(str.isdigit, text)):
        return None
    shaped = all(word[0].isupper() or word.casefold() in _PARTICLES for word in every)
    if not ((shaped and len(every) > 1) or _NAMED.search(kind)):
        return None
    if rest and words:
        # "Linden, Evelyn van der": particles at the end belong to the family name.
        cut = len(rest)
        while cut > 1 and rest[cut - 1].casefold() in _PARTICLES:
            cut -= 1
        return PersonName(rest[:cut], (*rest[cut:], *words))
    # The family name begins with the first particle behind a name, or is the last word.
    begins = len(every) - 1
    while begins > 1 and every[begins - 1].casefold() in _PARTICLES:
        begins -= 1
    return PersonName(every[:begins], every[begins:])


def _named(text: str) -> tuple[str, ...]:
    bare = [word.strip('.,;:()"') for word in unicodedata.normalize("NFC", text).split()]
    return tuple(w for w in bare if w and w.casefold() not in _TITLES and row_of(w).letters)


# Dates, numbers and addresses.

_DAYS = ("%Y %m %d", "%d %m %Y", "%m %d %Y", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y",
         "%Y %B %d", "%Y %b %d")  # fmt: skip
_MONTHS = """january jan januar janvier janv enero ene; february feb februar fevrier febrero; march
mar marz maerz mars marzo; april apr avril avr abril abr; may mai mayo; june jun juni juin junio;
july jul juli juillet julio; august aug aout agosto ago; september sept sep septembre septiembre;
october oct oktober okt octobre octubre; november nov novembre noviembre; december dec dezember dez
decembre diciembre dic"""
_MONTH = {name: said.split()[0][:3] for said in _MONTHS.split(";") for name in said.split()}
_BETWEEN = "day|in|of|the|year|del?"
_DAY, _GAP = r"\d{1,2}(?:st|nd|rd|th)?", rf"[\W_]{{0,5}}(?:(?:{_BETWEEN})[\s_]){{0,3}}"
_SAID = f"(?:{'|'.join(_MONTH)})"
_DATE = re.compile(
    rf"(?<!\w)(?<!\d[./-])(?=((?:\d+([./\u2010-\u2013-])\d+\2|{_DAY}{_GAP}{_SAID}{_GAP}"
    rf"|{_SAID}{_GAP}{_DAY}{_GAP})(?:\d\d)?\d\d(?![\w%]|[./:,-]\d)"
    rf"|\d{{4}}{_GAP}{_SAID}{_GAP}{_DAY}(?![\w%])))"
    r"|(?<!\d)(?=(\d{4}\s?[年년]\s?\d\d?\s?[月월]\s?\d\d?(?:\s?[日號号일]|(?!\d))))"
)
_VOID = re.compile(
    rf"(?<=\d)(st|nd|rd|th)\b|\b({_BETWEEN})\b|[年월月日號号년일]|t?00:00(:00(\.0+)?)?z?$|[^\w:]"
)


def _days(text: str) -> list[date]:
    """The days that a date may mean, the likeliest first; none where it is no date."""
    flat = row_of(text).flat.replace("_", " ")
    words = [_MONTH.get(word, word) for word in _VOID.sub(" ", flat).split()]
    found = []
    # A year of two digits is one of this century or of the last.
    for century in ("", "19", "20") if words[-1:] > ["30"] else ("", "20", "19"):
        for form in _DAYS if len(words) == 3 and any(map(str.isdigit, words)) else ():
            with suppress(ValueError):
                said = f"{words[0]} {words[1]} {century}{words[2]}"
                found.append(datetime.strptime(said, form).date())
    return found


_STREETS = """street st str strasse;avenue ave av;road rd;boulevard blvd;lane ln;drive dr;court ct;
place pl;square sq;highway hwy;parkway pkwy;terrace ter;circle cir;apartment apt;suite ste"""
_WAYS = {word: names for names in map(str.split, _STREETS.split(";")) for word in names}


def _streets(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """An address with the words for its streets in full and short; what is none as it is."""
    ways = _WAYS if any(map(str.isdigit, words)) else {}
    parts = re.sub(r"(?<=\w{3})(str|strasse)\b", r" \1", " ".join(words)).split()
    return islice(product(*(ways.get(part, [part]) for part in parts)), 64)


_PHONE = re.compile(
    r"(?:tel:)?(?=(?:\D*\d){7,15}(?:\D|$))[+(]?[\d\s().+\-/\u00a0\u2010-\u2015]+"
    r"(?:\s*(?:x|ext\.?|#)\s*\d{1,6})?",
    re.IGNORECASE,
)
# What a number without a country is read as, beside itself, where it begins so.
_HOMES = {"US": "", "RU": "8", "KZ": "8", "BY": "8", "HU": "06", "LT": "8"}
_ADDRESS = re.compile(r"\s*(?:[a-z][a-z0-9+]*://|www\.)", re.IGNORECASE)
_SCHEME = re.compile(r"\s*(?:[a-z][a-z0-9+]*://)?(?:www\.)?", re.IGNORECASE)
_MAIL = re.compile(r"(?:mailto:)?[^\s@]+@[^\s@]+\.[^\s@]+", re.IGNORECASE)
_EXTENSION = re.compile(r"\s*(?:x|ext\.?|#)\s*\d{1,6}$", re.IGNORECASE)


def _addresses(text: str) -> list[str]:
    """A web address without scheme, or an e-mail address also spoken out."""
    if "@" not in text or _ADDRESS.match(text):
        bare = _SCHEME.sub("", text.strip(), count=1).rstrip("/")
        return [bare if len(row_of(bare).letters) > 3 else text]
    local, _, domain = text.strip().removeprefix("mailto:").rpartition("@")
    spoken = domain.replace(".", " dot ")
    dotted = f"{local.replace('.', ' dot ')} at {spoken}"
    return [f"{local}@{domain}", f"{local} at {domain}", f"{local} at {spoken}", dotted]


def _numbers(text: str) -> list[str]:
    """A telephone number as written, nationally and internationally."""
    import phonenumbers

    written = _EXTENSION.sub("", text.strip().removeprefix("tel:"))
    found, written = [written], re.sub("^00(?=[1-9])", "+", written)
    digits = "".join(str(unicodedata.digit(c)) for c in written if c.isdigit())
    bare = digits.lstrip("0")
    if len(bare) >= _NUMBER:  # 020 7946 0958 behind +44 has no nought
        found.append(bare)
    for home, begins in _HOMES.items():
        with suppress(phonenumbers.NumberParseException):
            number = phonenumbers.parse(written, home)
            own = digits.startswith(begins) and phonenumbers.is_valid_number(number)
            if own or written.lstrip("( ").startswith("+"):
                national = phonenumbers.national_significant_number(number)
                found += [national, f"0{national}", f"{number.country_code}{national}"]
    return found


@cache
def _countries() -> frozenset[str]:
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE

    return frozenset(map(str, COUNTRY_CODE_TO_REGION_CODE))


_ABROAD = re.compile(r"(?:\+|(?<![\d.])00)[\s(]*(?=\d)")


def behind_countries(row: Row) -> list[int]:
    """Return the places of a row where a number goes on behind the code of a country."""
    found = []
    for match in _ABROAD.finditer(row.flat):
        word = bisect_right(row.places, match.end()) - 1
        if word < 0 or not row.flat[match.end()].isdigit():
            continue
        start = row.begins[word] + match.end() - row.places[word]
        found += [
            start + size for size in (1, 2, 3) if row.letters[start : start + size] in _countries()
        ]
    return found
