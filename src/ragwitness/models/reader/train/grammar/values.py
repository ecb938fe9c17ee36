"""Values for the slots of the grammars: mostly invented, so that unseen values are the norm."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["Values", "invented"]

_ONSETS = "b br c ch cl d dr f fl g gr h j k kl l m n p pr qu r s sh sk st t th tr v w y z".split()
_VOWELS = "a e i o u ai ea ee ia io oa ou".split()
_CODAS = [*"b ck d g l ll m n nd ng nt p r rd rk rn s ss st t tt x z".split(), *[""] * 8]
_FIRST = (
    "James Mary Robert Linda Ahmed Fatima Wei Mei Carlos Lucia Ivan Olga Kofi Ama Hiro Yuki "
    "Pierre Chloe Lars "
    "Ingrid Raj Priya Omar Leila Diego Sofia Mateo Elena Noah Emma Liam Ava Ethan Zoe Lucas Nora "
    "Hugo Clara Felix "
    "Ruth Samuel Grace Victor Alice Martin Julia Peter Anna Thomas Sarah Daniel Laura Kevin Paula "
    "Brian Helen"
).split()
_LAST = (
    "Smith Johnson Garcia Mueller Rossi Tanaka Kim Nguyen Patel Khan Silva Kowalski Novak Jensen "
    "Larsson Dubois "
    "Moreau Okafor Mensah Haddad Cohen Levy Ortiz Romero Vargas Petrov Ivanova Costa Fischer "
    "Weber Schmidt Becker "
    "Clark Lewis Walker Hall Young King Wright Hill Scott Green Adams Baker Nelson Carter "
    "Mitchell Perez Turner"
).split()
_CITIES = (
    "Lisbon Kyoto Hanoi Oslo Cusco Prague Seville Dakar Tbilisi Galway Quito Bergen Zadar Bruges "
    "Porto Riga Fez "
    "Lima Osaka Split Perth Cork Hobart Naples"
).split()
_MONTHS = (
    "January February March April May June July August September October November December"
).split()


def invented(rng: random.Random, syllables: int) -> str:
    """A pronounceable word that no corpus holds."""
    return "".join(
        rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables)
    )


class Values:
    """Draws one value per slot name; the same generator state gives the same values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.makers: dict[str, Callable[[], str]] = {
            "word": lambda: invented(rng, rng.randint(2, 3)),
            "first": self.first,
            "last": self.last,
            "person": lambda: f"{self.first()} {self.last()}",
            "doctor": lambda: f"Dr. {self.last()}",
            "drug": self.drug,
            "place": self.place,
            "org": self.organisation,
            "age": lambda: str(rng.randint(3, 92)),
            "number": lambda: str(
                rng.choice([rng.randint(2, 12), rng.randint(10, 99), rng.randint(100, 999)])
            ),
            "big": lambda: f"{rng.randint(1, 980)},{rng.randint(0, 999):03d}",
            "year": lambda: str(rng.randint(1790, 2026)),
            "small": lambda: str(rng.randint(2, 14)),
            "dose": self.dose,
            "money": self.money,
            "date": self.date,
            "phone": lambda: (
                f"{rng.randint(200, 989)}-{rng.randint(200, 999)}-{rng.randint(0, 9999):04d}"
            ),
            "email": self.email,
            "code": self.code,
            "time": lambda: (
                f"{rng.randint(1, 12)}:{rng.choice(['00', '15', '30', '45', '20'])} "
                f"{rng.choice(['am', 'pm'])}"
            ),
            "bp": lambda: f"{rng.randint(95, 190)}/{rng.randint(55, 115)}",
            "lab": lambda: f"{rng.randint(1, 19)}.{rng.randint(0, 9)}",
            "percent": lambda: f"{rng.randint(1, 98)} {rng.choice(['percent', '%', 'per cent'])}",
            "street": self.street,
        }

    def first(self) -> str:
        """A given name, half of them invented."""
        rng = self.rng
        return (
            rng.choice(_FIRST)
            if rng.random() < 0.5
            else invented(rng, rng.randint(1, 2)).capitalize()
        )

    def last(self) -> str:
        """A family name, most of them invented."""
        return (
            self.rng.choice(_LAST)
            if self.rng.random() < 0.4
            else invented(self.rng, 2).capitalize()
        )

    def drug(self) -> str:
        """An invented drug with a familiar ending."""
        endings = "ine ol azole cillin pril statin mab ide amide one ixen tan".split()
        return invented(self.rng, 2) + self.rng.choice(endings)

    def place(self) -> str:
        """A town, mostly invented."""
        if self.rng.random() < 0.3:
            return self.rng.choice(_CITIES)
        endings = [
            "",
            "ville",
            " Bay",
            "burg",
            " Falls",
            "stad",
            "",
            "ton",
            " Creek",
            "",
            " Island",
        ]
        return invented(self.rng, 2).capitalize() + self.rng.choice(endings)

    def organisation(self) -> str:
        """A company or institution."""
        kinds = (
            " Ltd| Clinic| Group| Partners| Hospital| Bank| Labs"
            "| & Sons| Logistics| Institute| Foods"
        ).split("|")
        stem = self.rng.choice([invented(self.rng, 2).capitalize(), self.last()])
        return stem + self.rng.choice(kinds)

    def dose(self) -> str:
        """An amount of a drug."""
        amounts = [5, 10, 15, 20, 25, 40, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500, 600, 850]
        units = ["mg", "mg", "mg", "mcg", "ml", "units"]
        return f"{self.rng.choice(amounts)} {self.rng.choice(units)}"

    def money(self) -> str:
        """An amount of money, with a thousands comma half the time."""
        rng = self.rng
        amount = rng.choice(
            [str(rng.randint(12, 990)), f"{rng.randint(1, 98)},{rng.randint(0, 999):03d}"]
        )
        return rng.choice(["$", "$", "€", "£"]) + amount

    def date(self) -> str:
        """A day, with its year half the time."""
        day = f"{self.rng.randint(1, 28)} {self.rng.choice(_MONTHS)}"
        return day + self.rng.choice(["", f" {self.rng.randint(1988, 2026)}"])

    def email(self) -> str:
        """An e-mail address at an invented domain."""
        rng = self.rng
        tail = rng.choice([invented(rng, 1), str(rng.randint(1, 99))])
        host = f"{invented(rng, 2)}.{rng.choice(['com', 'org', 'net', 'io'])}"
        name = rng.choice([self.first(), self.last()]).lower()
        return f"{name}{rng.choice(['.', '_', ''])}{tail}@{host}"

    def code(self) -> str:
        """A reference number of letters and digits."""
        letters = "ABCDEFGHKLMNPRSTVWX"
        return (
            self.rng.choice(letters)
            + self.rng.choice(letters + "-")
            + str(self.rng.randint(100, 99999))
        )

    def street(self) -> str:
        """A street address."""
        name = self.rng.choice([invented(self.rng, 2).capitalize(), self.last()])
        kinds = ["Street", "Road", "Lane", "Avenue", "Square"]
        return f"{self.rng.randint(1, 999)} {name} {self.rng.choice(kinds)}"
