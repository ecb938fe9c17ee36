"""Generates the corpus: clusters of records that share a skeleton and differ in details."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ragwitness.text.sample.invented import makers
from ragwitness.types import Document

__all__ = ["COUNT", "GENRES", "Genre", "generate", "genre"]

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
    folder = resources.files("ragwitness.text.sample").joinpath("skeletons")
    return folder.joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines()


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
