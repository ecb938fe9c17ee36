"""Whether listed secrets are found however they are written, and what is found for nothing.

``python benchmarks/known_secrets.py [--secrets 1000] [--seed 0] [--texts CORPUS…]``

Names, telephone numbers, e-mail and web addresses, numbers of files and short names are drawn, each
written in twelve ways within a sentence, and sought by the index that the ledger, the guard and
``redact`` share. Every CORPUS is ordinary text that holds none of them, but by chance. A last part
redacts made-up records and looks for any word of a name. Rates have exact 95 % intervals.
"""

from __future__ import annotations

import argparse
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from ragwitness.core.types import Document
from ragwitness.stats.rates import proportion_interval
from ragwitness.synthesis.baselines import Redact
from ragwitness.text.documents import load_documents
from ragwitness.text.secrets import Secret, SecretIndex

GIVEN = """José María Zoë Anna-Lena Jürgen Łukasz Søren Renée Nguyễn François Björk Siobhán Ólafur
Priya Rahul Chloë Zbigniew Tomáš Ivana Miguel Ángel Noël Agnès Désirée Håkan Åsa Mårten Bülent Ayşe
Çağla Evelyn Kaiser Felix Luna Henri Klaara Katri Rosa Wei Yuki Kenji Amara Chidi Oluwaseun Fatima
Omar Layla Dmitri Olga Þórunn Jean-Luc Anaïs Raúl Íñigo Mary-Ann Tim Kate""".split()
FAMILY = """Álvarez García-Márquez Müller Schröder Groß Weiß Łukasiewicz Sørensen Møller Ångström
O'Neill O'Brien D'Angelo McDonald MacKenzie Nguyễn Trần Dvořák Novák Kovács Fernández Peña Muñoz
Núñez Gonçalves Araújo Jönsson Källström Röttger Lærke Erdoğan Y\u0131lmaz Þórsson Kowalczyk Wójcik
Brontë Saint-Just Linden Vogel Baker Querfurth Pettersen Okonkwo Adeyemi Haddad Ivanov Zhou Tanaka
Rao Iyer Bauer Hartmann Quist Fairweather Blackwood""".split()
PARTICLES = ["van der", "von", "de la", "van", "del", "di", "da", "van den", "zu", "bin"]
SHORT = "Li Wu Bo Xu Yu Ng Oh Ek Ax Ur Ib Ty Jo Ed Al".split()
WORDS = "clinic north harbour velvet cedar lantern orchid pioneer granite summit ember".split()


def plain(text: str) -> str:
    """Without accents, as many keyboards write it."""
    text = text.replace("ß", "ss").translate(str.maketrans("øØłŁđĐ\u0131", "oOlLdDi"))
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def spelled_out(text: str) -> str:
    pairs = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"}
    pairs |= {key.upper(): value.capitalize() for key, value in pairs.items() if key != "ß"}
    return "".join(pairs.get(c, c) for c in unicodedata.normalize("NFC", text))


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def name(rng: random.Random) -> tuple[str, list[str]]:
    given = " ".join(rng.sample(GIVEN, rng.choice((1, 1, 1, 2))))
    particle = rng.choice(PARTICLES) if rng.random() < 0.3 else ""
    last = rng.choice(FAMILY)
    family = f"{particle} {last}".strip()
    whole = f"{given} {family}"
    return whole, [
        whole.lower(),
        whole.upper(),
        unicodedata.normalize("NFD", whole),
        plain(whole),
        spelled_out(whole),
        f"{last}, {given} {particle}".strip(),
        f"{family.upper()} {given}",
        f"{given} {last}",
        f"{given[0]}. {family}",
        plain(whole).replace(" ", "_").replace("'", ""),
        f"**{given}** <i>{family}</i>",
        f"{given}\n{family}".replace(" ", "\u00a0").replace("'", "\u2019") + "'s",
    ]


COUNTRIES = {"1": ("{}{}{}", (3, 3, 4)), "44": ("{}{}{}", (2, 4, 4)), "49": ("{}{}", (3, 7))}
COUNTRIES |= {"33": ("{}{}{}", (1, 4, 4)), "91": ("{}{}", (5, 5))}


def phone(rng: random.Random) -> tuple[str, list[str]]:
    code = rng.choice(["1", "1", "1", *COUNTRIES])
    first = {"1": "713", "44": "20", "49": "301", "33": "1", "91": "98765"}[code]
    sizes = COUNTRIES[code][1]
    rest = ["".join(rng.choices("23456789", k=size)) for size in sizes[1:]]
    if code == "1":
        first = rng.choice(("713", "212", "415", "303", "617"))
    blocks = [first, *rest]
    digits = "".join(blocks)
    trunk = "" if code in ("1", "91") else "0"
    national = trunk + digits
    listed = rng.choice(
        [
            f"({trunk}{blocks[0]}) {'-'.join(blocks[1:])}",
            f"+{code} {' '.join(blocks)}",
            f"{trunk}{'-'.join(blocks)}",
            national,
        ]
    )
    other = "".join(rng.choices("23456789", k=10))
    return listed, [
        f"+{code}{digits}",
        national,
        trunk + ".".join(blocks),
        trunk + "-".join(blocks),
        f"({trunk}{blocks[0]}) {' '.join(blocks[1:])}",
        trunk + " ".join(blocks),
        f"00{code} {' '.join(blocks)}",
        f"+{code} ({trunk or blocks[0]}) {' '.join(blocks if trunk else blocks[1:])}",
        f"tel:+{code}-{'-'.join(blocks)}",
        trunk + "\u2013".join(blocks) + " ext. 12",
        wide(trunk) + "\u00a0".join(map(wide, blocks)),
        f"{other} {trunk}{' '.join(blocks)} {other}",
    ]


def mail(rng: random.Random) -> tuple[str, list[str]]:
    local = f"{rng.choice(WORDS)}{rng.choice(('.', '_', '-', ''))}{rng.randrange(1000)}"
    domain = f"{rng.choice(WORDS)}-{rng.randrange(100)}.example.{rng.choice(('org', 'com'))}"
    whole = f"{local}@{domain}"
    dots = domain.replace(".", " dot ")
    return whole, [
        whole.upper(),
        f"mailto:{whole}",
        f"<{whole}>",
        f"{local} at {domain}",
        f"{local} [at] {domain}",
        f"{local}(at){dots}",
        f"{local.replace('.', ' dot ')} AT {dots}",
        f"[write]({whole})",
        f"{local} @ {domain}",
        f"{local}&#64;{domain}",
        wide(whole),
        f"{local}@{domain.replace('.', '[.]')}",
    ]


def web(rng: random.Random) -> tuple[str, list[str]]:
    host = f"{rng.choice(WORDS)}{rng.randrange(1000)}.example.{rng.choice(('org', 'com', 'net'))}"
    path = f"/{rng.choice(WORDS)}/{rng.randrange(10_000)}"
    listed = rng.choice(("https://", "http://", "https://www.", "www.")) + host + path
    listed += rng.choice(("", "/"))
    return listed, [
        host + path,
        f"http://{host}{path}",
        f"https://{host}{path}/",
        f"www.{host}{path}",
        f"HTTPS://{host.upper()}{path}",
        f"({host}{path})",
        f"[here](https://{host}{path})",
        f"hxxps://{host.replace('.', '[.]')}{path}",
        f"https://{host}{path}#top",
        f"https://{host}{path}?from=mail",
        f"{host}\n{path}",
        f"{host} {path.replace('/', ' / ')}",
    ]


def number(rng: random.Random) -> tuple[str, list[str]]:
    letters = "".join(rng.choices("ABCDEFGHKLMNPRSTUVWXZ", k=rng.choice((2, 3))))
    digits = "".join(rng.choices("0123456789", k=rng.choice((6, 7, 8))))
    whole = f"{letters}-{digits}"
    return whole, [
        letters + digits,
        f"{letters} {digits}",
        whole.lower(),
        f"{letters}/{digits}",
        f"{letters}{digits[:3]} {digits[3:]}",
        f"#{letters}.{digits}",
        wide(whole),
        f"{letters}_{digits}",
        f"{letters}\u2011{digits}",
        f"**{letters}** {digits}",
        f"{letters}: {digits}",
        f"{letters}-{digits[:4]}-{digits[4:]}",
    ]


def short(rng: random.Random) -> tuple[str, list[str]]:
    one = rng.choice(SHORT)
    return one, [
        one,
        one.upper(),
        one.lower(),
        f"{one}'s",
        f"Mr. {one}",
        f"({one})",
        f"**{one}**",
        f"{one}\u2019s",
        f"<i>{one}</i>",
        f"{one},",
        f"\u00a0{one}\u00a0",
        wide(one),
    ]


RESULT_TYPES: dict[str, tuple[float, Callable[[random.Random], tuple[str, list[str]]]]] = {
    "name": (0.5, name),
    "phone": (0.2, phone),
    "e-mail": (0.1, mail),
    "web": (0.1, web),
    "file number": (0.05, number),
    "short name": (0.05, short),
}


def drawn(count: int, seed: int) -> list[tuple[Secret, list[str]]]:
    rng, found = random.Random(seed), []
    for kind, (share, make) in RESULT_TYPES.items():
        for _ in range(round(share * count)):
            text, ways = make(rng)
            found.append((Secret(text, kind, ""), ways))
    return found


# Written after the index was done, and the index not after them.
FURTHER: dict[str, Callable[[str], str]] = {
    "words run together": lambda text: "".join(
        word[:1].upper() + word[1:] for word in text.split()
    ),
    "a title": lambda text: f"Prof. Dr. {text}, MD",
    "hyphens for spaces": lambda text: text.replace(" ", "-"),
    "family name in brackets": lambda text: f"{text.split()[-1]} ({' '.join(text.split()[:-1])})",
    "initials of all further names": lambda text: " ".join(
        word if place in (0, len(text.split()) - 1) or word[0].islower() else f"{word[0]}."
        for place, word in enumerate(text.split())
    ),
    "letters with dots": lambda text: ".".join(text.replace(" ", "")),
    "invisible characters": lambda text: "\u200b".join(text),
    "a nickname between": lambda text: text.replace(" ", ' "Sunny" ', 1),
    "look-alikes of another alphabet": lambda text: text.replace("a", "\u0430").replace(
        "e", "\u0435"
    ),
    "two letters exchanged": lambda text: text[:2] + text[3] + text[2] + text[4:],
}


def further(rows: Sequence[tuple[Secret, list[str]]]) -> None:
    some = [secret for secret, _ in rows if secret.kind == "name"]
    index = SecretIndex(some)
    for label, way in FURTHER.items():
        found = index.pairs([f"As we know, see {way(one.text)} about it." for one in some])
        tell(f"names, {label}: found", [(place, place) in found for place in range(len(some))])


def recall(rows: Sequence[tuple[Secret, list[str]]]) -> None:
    every: list[bool] = []
    for kind in RESULT_TYPES:
        some = [(secret, ways) for secret, ways in rows if secret.kind == kind]
        index = SecretIndex([secret for secret, _ in some])
        by_way = []
        for way in range(12):
            texts = [f"As we know, see {ways[way]} about it today." for _, ways in some]
            found = index.pairs(texts)
            by_way.append([(place, place) in found for place in range(len(some))])
        hits = [hit for way in by_way for hit in way]
        every += hits
        tell(f"{kind}: found", hits)
        missed = [
            f"{some[way.index(False)][1][n]!r} for {some[way.index(False)][0].text!r}"
            f" ({way.count(False)} of {len(way)})"
            for n, way in enumerate(by_way)
            if False in way
        ]
        for one in missed:
            print(f"      missed: {one}")
    tell("all: found", every)


def chance(rows: Sequence[tuple[Secret, list[str]]], corpora: Sequence[str]) -> None:
    secrets = [secret for secret, _ in rows]
    for corpus in corpora:
        texts = [one.text for one in load_documents(corpus).documents]
        for label, some in (
            ("without short names", [one for one in secrets if one.kind != "short name"]),
            ("short names", [one for one in secrets if one.kind == "short name"]),
        ):
            index = SecretIndex(some)
            finds = [index.find(text) for text in texts]
            tell(f"{Path(corpus).stem}: texts with a find, {label}", [bool(one) for one in finds])
            said = {
                text[one.start : one.end]
                for text, found in zip(texts, finds, strict=True)
                for one in found
            }
            print("     ", ", ".join(sorted(map(repr, said))[:12]))


def redaction(count: int, seed: int) -> None:
    rng = random.Random(seed + 1)
    rows, left = [], []
    for place in range(count):
        whole, ways = name(rng)
        given, last = whole.split()[0], whole.split()[-1]
        some = rng.sample(ways, 3)
        text = (
            f"{some[0]} came again. {given} had a fever; Mrs. {last} was told of {some[1]}."
            f" {given}'s file is under {some[2]}, says {plain(last)}."
        )
        rows.append((Document(str(place), text), Secret(whole, "name", str(place))))
    method = Redact([secret for _, secret in rows], "contacts")
    particles = set(" ".join(PARTICLES).split())
    for document, secret in rows:
        after = set(re.findall(r"\w+", plain(method.redacted(document)).casefold()))
        words = set(re.findall(r"\w+", plain(secret.text).casefold())) - particles
        left.append(bool({word for word in words if len(word) > 1} & after))
    tell("redacted records with a word of their name left", left)


def tell(label: str, found: Sequence[bool]) -> None:
    low, high = proportion_interval(sum(found), len(found))
    share = sum(found) / len(found)
    print(f"  {label} {share:.4f} [{low:.4f}, {high:.4f}] of {len(found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secrets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--texts", nargs="*", default=[])
    options = parser.parse_args()
    rows = drawn(options.secrets, options.seed)
    recall(rows)
    further(rows)
    chance(rows, options.texts)
    redaction(options.secrets, options.seed)


if __name__ == "__main__":
    main()
