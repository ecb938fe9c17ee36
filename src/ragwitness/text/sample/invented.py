"""Names and numbers that belong to nobody: syllables, reserved domains, fictional phones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

__all__ = ["makers"]

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
