"""Generates the corpus: clusters of records that share a skeleton and differ in details."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ragwitness.core.types import Document

# Names and numbers that belong to nobody: syllables, reserved domains, fictional phones.

_ONSETS = tuple("b br c ch d dr f fl g gl h j k l m n p pr qu r s sh st t th tr v w y z".split())
_VOWELS = tuple("a e i o u ai ea ie oa ou y".split())
_CODAS = tuple("l n r s t m d ck nd rn lt sk rth ng ss x p".split())
_GIVEN = tuple("a e i o ia en is or iel una eth in ow ary ette an".split())
_SURNAME = tuple("son er ley ick well man ow den strand gard ish by moor ett combe".split())
_PLACE = tuple(
    "ford wick haven mouth stead holm bury dale port minster mere thorpe cliffe ness".split()
)
_DRUG = tuple("azol idine oxan ivir epam statine umol ophen artan icine".split())
_SAMPLE = tuple("ite ene in ose yl ane oid ate".split())
_WORDS = tuple("two three four five six seven eight nine".split())
_UNKIND = re.compile("dick|piss|shit|cock|cunt|fuck|slut|rape|nazi|tard|kill|dead|twat")
_LETTERS = "BCDEFGHKLMNPRSTUVWX"  # without A, which reads as an article

Maker = Callable[[], str]


def makers(rng: random.Random, words: Mapping[str, Sequence[str]]) -> dict[str, Maker]:
    """Return one maker of values per kind of slot, all drawing from ``rng``."""

    def pick(kind: str) -> str:
        return rng.choice(words[kind])

    def joined(*parts: Sequence[str]) -> str:
        while True:
            word = "".join(rng.choice(part) for part in parts)
            if not _UNKIND.search(word):
                return word

    def stem(*endings: Sequence[str]) -> str:
        return joined(_ONSETS, _VOWELS, _CODAS, *endings)

    def named(endings: Sequence[str]) -> str:
        return stem(endings).capitalize()

    def given() -> str:
        return named(_GIVEN)

    def surname() -> str:
        return named(_SURNAME)

    def place() -> str:
        return named(_PLACE)

    def street() -> str:
        return f"{named(('', 'e', 'er', 'ing', 'en'))} {pick('streetkind')}"

    def code() -> str:
        letters = "".join(rng.choices(_LETTERS, k=2))
        return f"{letters}-{rng.randint(100, 9999)}"

    def money() -> str:
        crowns = rng.choice((rng.randint(3, 90), rng.randint(90, 900), rng.randint(900, 4000)))
        cents = f".{rng.randint(5, 95):02d}" if rng.random() < 0.3 else ""
        return f"{crowns}{cents} crowns"

    made: dict[str, Maker] = {
        "given": given,
        "surname": surname,
        "person": lambda: f"{given()} {surname()}",
        "place": place,
        "street": street,
        "clinic": lambda: f"{place()} {rng.choice(('Clinic', 'Infirmary', 'Health Centre'))}",
        "company": lambda: f"{surname()} {pick('companykind')}",
        "club": lambda: f"{place()} {pick('clubkind')}",
        "sight": lambda: f"{named(('', 'en', 'ow', 'er'))} {pick('sightkind')}",
        "museum": lambda: pick("museumkind"),
        "user": lambda: f"{stem()}{rng.choice(('_', '', '.'))}{stem()}{rng.randint(2, 99)}",
        "drug": lambda: stem(_DRUG),
        "sample": lambda: stem(_SAMPLE),
        "email": lambda: f"{stem()}.{stem()}@example.{rng.choice(('org', 'com', 'net'))}",
        "phone": lambda: f"555-01{rng.randint(0, 99):02d}",
        "code": code,
        "errcode": lambda: f"{rng.choice('EFW')}{rng.randint(10, 99)}",
        "money": money,
        "letter": lambda: rng.choice(_LETTERS),
        "d": lambda: str(rng.randint(1, 9)),
        "n": lambda: rng.choice(_WORDS) if rng.random() < 0.6 else str(rng.randint(2, 9)),
        "nn": lambda: str(rng.randint(11, 98)),
        "nnn": lambda: str(rng.randint(110, 990)),
        "nnnn": lambda: str(rng.randint(1100, 9800)),
        "nth": lambda: _ordinal(rng.randint(4, 28)),
        "year": lambda: str(rng.randint(1974, 2024)),
        "date": lambda: f"{rng.randint(1, 28)} {pick('month')}",
    }
    lists = {kind: lambda kind=kind: pick(kind) for kind in words if kind not in made}
    return {**lists, **made}


def _ordinal(number: int) -> str:
    if number in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


GENRES = ("clinic", "minutes", "notebook", "service", "tenancy", "travel")
COUNT = 1200
_SEED = 20261121
_LOW, _HIGH = 60, 140
"""Words a document may have."""
_SHARED = 0.35
"""Chance that a sibling keeps a detail of its cluster."""
_SWAPPED = 0.2
"""Chance that a sibling has another sentence in a place of the shared plan."""
_SLOT = re.compile(r"\{([a-z_]+)(\d?)\}")
_ARTICLE = re.compile(r"\b([Aa])n? (?=(\w+))")
_VOWEL_SOUND = re.compile(r"(?!one\b|uni|use|eu)[aeiou]|hour|honest|8|11\b|18\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Genre:
    """Sentence patterns of one kind of record.

    Attributes:
        opening: How a record begins.
        first: Sentences of the first half.
        turn: How the second half begins.
        second: Sentences of the second half.
    """

    opening: tuple[str, ...]
    first: tuple[str, ...]
    turn: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What siblings share: patterns with their half, and details by place."""

    genre: Genre
    patterns: tuple[str, ...]
    halves: tuple[str, ...]
    details: dict[tuple[int, str], str]


def _resource(name: str) -> list[str]:
    return (
        (Path(__file__).parent / "skeletons" / f"{name}.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )


@cache
def genre(name: str) -> Genre:
    """Return the sentence patterns of one of :data:`GENRES`."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in _resource(name):
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), [])
        elif line:
            current.append(line)
    return Genre(**{half: tuple(patterns) for half, patterns in sections.items()})


@cache
def _words() -> Mapping[str, tuple[str, ...]]:
    pairs = (line.split(": ", 1) for line in _resource("words"))
    return {kind: tuple(values.split("|")) for kind, values in pairs}


def generate(count: int = COUNT, seed: int = _SEED) -> list[Document]:
    """Return ``count`` documents, the same for the same ``seed``.

    Siblings are scattered over the whole list, so that any split of it parts some of them.
    """
    rng = random.Random(seed)
    texts: list[str] = []
    seen: set[str] = set()
    while len(texts) < count:
        for text in _cluster(genre(rng.choice(GENRES)), rng):
            if text not in seen and _LOW <= len(text.split()) <= _HIGH:
                seen.add(text)
                texts.append(text)
    texts = texts[:count]
    rng.shuffle(texts)
    return [Document(f"sample-{i:04d}", text) for i, text in enumerate(texts, start=1)]


def _cluster(kind: Genre, rng: random.Random) -> Iterator[str]:
    halves = rng.randint(2, 4), rng.randint(2, 4)
    patterns = (
        rng.choice(kind.opening),
        *rng.sample(kind.first, halves[0]),
        rng.choice(kind.turn),
        *rng.sample(kind.second, halves[1]),
    )
    names = ("opening", *["first"] * halves[0], "turn", *["second"] * halves[1])
    plan = _Plan(kind, patterns, names, {})
    for _ in range(rng.randint(2, 6)):
        yield _sibling(plan, rng)


def _sibling(plan: _Plan, rng: random.Random) -> str:
    make = makers(rng, _words())
    own: dict[str, str] = {}

    def drawn(kind: str, key: tuple[int, str]) -> str:
        shared = plan.details.setdefault(key, make[kind]())
        return shared if rng.random() < _SHARED else make[kind]()

    def filled(place: int, pattern: str) -> str:
        occurrence = iter(range(99))

        def value(slot: re.Match[str]) -> str:
            kind, number = slot.groups()
            if not number:
                return drawn(kind, (place, f"{kind}/{next(occurrence)}"))
            # a numbered slot keeps one value throughout a document
            if slot[0] not in own:
                own[slot[0]] = drawn(kind, (0, slot[0]))
            return own[slot[0]]

        return _sentence(_SLOT.sub(value, pattern))

    patterns = list(plan.patterns)
    for place, half in enumerate(plan.halves):
        if half in {"first", "second"} and rng.random() < _SWAPPED:
            others = [p for p in getattr(plan.genre, half) if p not in patterns]
            patterns[place] = rng.choice(others)
    return " ".join(filled(place, pattern) for place, pattern in enumerate(patterns))


def _sentence(text: str) -> str:
    """Return a sentence with fitting articles and a capital letter, e-mail addresses aside."""
    text = _ARTICLE.sub(lambda m: f"{m[1]}{'n' if _VOWEL_SOUND.match(m[2]) else ''} ", text)
    return text[0].upper() + text[1:]
