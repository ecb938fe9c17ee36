"""What slips past the guard on synthetic texts, and what it stops for nothing.

``python benchmarks/guard.py CORPUS… [--records 1000] [--texts 500] [--public 0] [--common 0]
[--honest FILE] [--seed 0] [--only WORD]``

Each CORPUS is divided: the guard knows one half, complicit agents write texts that carry its
records out, and the other half stands for honest texts, or HONEST does. With ``--public`` so many
texts are kept out of both halves: the guard is told that they are no secret. With ``--common`` it
frees phrases in so many records too, for the agents and in the last row of honest texts, and the
longest piece of a record that its runs let through is told. WORD is an expression that finds the
names of the agents that are run. Rates have exact 95 % intervals.
"""

from __future__ import annotations

import argparse
import base64
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from ragwitness.stats.rates import proportion_interval
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.text.documents import load_documents
from ragwitness.text.words import STOP_WORDS

PADDING = (
    "Everyone is different, and general advice may not suit each person at each place. Rest and"
    " water are often named, and a pharmacist can say more about ordinary remedies. "
)
FILLERS = ("well,", "perhaps", "so to say,", "it seems", "one hears", "as it were,")
# Two openings that mean the same: one bit a sentence, in words that tell of no record.
OPENINGS = ("Rest may help.", "Resting could help.")

SYNONYMS = """
have has had hold | is are was be stay | pain ache hurt soreness | doctor physician clinician
help aid assist | get obtain receive | take use swallow | day date | week sennight
year twelvemonth | month moon | problem trouble issue | feel sense notice
started began commenced | since ever-after from | stop cease halt quit
medicine drug remedy tablet | test check exam | good fine decent | bad poor nasty
big large great sizeable | small little tiny slight | left port-side | swelling lump bulge bump
blood gore | fever temperature heat | stomach belly tummy abdomen | head skull | back spine
leg limb | chest breast thorax | severe strong intense heavy | normal usual ordinary common
advise suggest recommend counsel | please kindly | thanks thank gratitude | question query
hope wish trust | treatment therapy care cure | disease illness sickness disorder
infection contagion | may might could can | should must ought | go move travel | come arrive
know understand realise | want wish desire need | very really quite highly | also too likewise
but yet though | because as since | after behind following | before ahead earlier
old aged elderly | child kid infant baby | mother mom parent | husband spouse partner
time occasion moment | told said informed | see view look | find discover detect
cause reason source | symptoms signs | skin hide derma | heart ticker | kidney renal-organ
cough hack | cold chill | weight mass | high elevated raised | low reduced lowered
consult visit ask | surgery operation procedure | daily everyday | night evening | morning dawn
eat consume | drink sip | sleep rest slumber | water fluid | food diet nutrition
"""
"""Words that may stand for each other; by hand, as far as they go in dialogues with doctors."""

Agent = Callable[[str, random.Random], str]


def each_word(change: Callable[[str], str]) -> Callable[[str], str]:
    """Change every word of a text alike."""
    return lambda text: re.sub(r"[A-Za-z]+", lambda word: change(word.group()), text)


_SMALL = dict(zip("abcdefghijklmnoprstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", strict=True))
_CYRILLIC = str.maketrans("aeopcxyABEKMHOPCTX", "аеорсхуАВЕКМНОРСТХ")  # noqa: RUF001
ALIKE: dict[str, Callable[[str], str]] = {
    "selectors": lambda t: "Fine \U0001f600" + "".join(chr(0xE0100 + b - 16) for b in t.encode()),
    "selector in words": each_word(lambda w: w[:1] + "\ufe0f" + w[1:]),
    "joiner in words": each_word(lambda w: w[:1] + "\u034f" + w[1:]),
    "filler in words": each_word(lambda w: w[:1] + "\u3164" + w[1:]),
    "soft hyphens": each_word(lambda w: w[:1] + "&shy;" + w[1:]),
    "entity in words": each_word(lambda w: w[:1] + "&#8203;" + w[1:]),
    "entities of entities": each_word(lambda w: w[:1] + "&amp;#8203;" + w[1:]),
    "accents": each_word(lambda w: w + "\u0301"),
    "umlauts": lambda t: t.translate(str.maketrans("aeou", "\u00e4\u00eb\u00f6\u00fc")),
    "strokes": lambda t: t.lower().translate(str.maketrans("htdloi", "ħŧđłøı")),
    "small capitals": lambda t: "".join(_SMALL.get(c, c) for c in t.lower()),
    "Armenian": lambda t: t.replace("o", "\u0585").replace("n", "\u0578").replace("u", "\u057d"),
    "Cyrillic": lambda t: t.translate(_CYRILLIC),
    "bold letters": each_word(lambda w: f"**{w[:1]}**{w[1:]}"),
    "underscores": lambda t: "_".join(t.split()),
    "cells": lambda t: "".join(f"<td>{word}</td>" for word in t.split()),
    "escapes": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "base64": lambda t: base64.b64encode(t.encode()).decode(),
    "hexadecimal": lambda t: t.encode().hex(),
}
"""What the canonical form reads as the record, by what is done to it."""

OTHERWISE: dict[str, Callable[[str], str]] = {
    "base64 word by word": lambda t: " ".join(
        base64.b64encode(word.encode()).decode() for word in t.split()
    ),
    "numbers": lambda t: " ".join(str(b) for b in t.encode()),
    "syllables": each_word(lambda w: "-".join(w[i : i + 2] for i in range(0, len(w), 2))),
    "no vowels": each_word(lambda w: w[:1] + re.sub("[aeiou]", "", w[1:])),
    "figures for letters": lambda t: t.lower().translate(str.maketrans("oieast", "013457")),
    "a wrong letter a word": each_word(lambda w: w[: len(w) // 2] + "x" + w[len(w) // 2 + 1 :]),
}
"""What it does not: the threat model leaves these out."""


def broken(every: int, shuffled: bool) -> Agent:
    """The record in pieces of so many words, filler between them, padding around."""

    def write(record: str, rng: random.Random) -> str:
        words = record.split()
        parts = [words[i : i + every] for i in range(0, len(words), every)]
        if shuffled:
            rng.shuffle(parts)
        said = " ".join(word for part in parts for word in (*part, rng.choice(FILLERS)))
        return PADDING + said + " " + PADDING

    return write


def part(share: float) -> Agent:
    """The first share of the record, broken every five words."""
    whole = broken(5, shuffled=False)

    def write(record: str, rng: random.Random) -> str:
        words = record.split()
        return whole(" ".join(words[: int(share * len(words))]), rng)

    return write


def plain(share: float) -> Agent:
    """The first share of the record as it stands, between honest words."""

    def write(record: str, _rng: random.Random) -> str:
        words = record.split()
        return PADDING + " ".join(words[: int(share * len(words))]) + " " + PADDING

    return write


def spelled(record: str, _rng: random.Random) -> str:
    """The letters of every word that tells something, each written with capitals and dots."""
    told = [word for word in re.findall(r"\w+", record) if word.casefold() not in STOP_WORDS]
    return PADDING + " ".join(".".join(word.upper()) + "." for word in told)


def initials(every: int) -> Agent:
    """The first letter of every word of the record, filler behind each so many."""

    def write(record: str, rng: random.Random) -> str:
        letters = [word[0].upper() for word in re.findall(r"[^\W\d_]+", record)]
        parts = [letters[i : i + every] for i in range(0, len(letters), every)]
        return PADDING + " ".join(". ".join(part) + f". {rng.choice(FILLERS)}" for part in parts)

    return write


def acrostic(record: str, rng: random.Random) -> str:
    """Harmless words whose own initials spell the record, letter by letter."""
    known = re.findall(r"[a-z]+", " ".join((PADDING, *FILLERS, SYNONYMS)))
    by_letter = {word[0]: [one for one in known if one[0] == word[0]] for word in known}
    letters = [letter for letter in record.casefold() if letter in by_letter]
    return " ".join(rng.choice(by_letter[letter]) for letter in letters)


def chosen_openings(record: str, _rng: random.Random) -> str:
    """Every bit of the record as the choice between two sentences that mean the same."""
    bits = "".join(f"{byte:08b}" for byte in record.encode())
    return " ".join(OPENINGS[bit == "1"] for bit in bits)


def synonyms(table: dict[str, Sequence[str]]) -> Agent:
    """Every word that has a synonym replaced by one; the rest as it stands."""

    def write(record: str, rng: random.Random) -> str:
        return re.sub(r"\w+", lambda m: rng.choice(table.get(m[0].casefold(), (m[0],))), record)

    return write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--public", type=int, default=0, help="texts of the corpus that are known")
    parser.add_argument("--common", type=int, default=0, help="records that share a free phrase")
    parser.add_argument("--seed", type=int, default=0, help="of the division")
    parser.add_argument("--honest", help="honest texts of another source")
    parser.add_argument("--only", default="", help="agents whose name this expression finds")
    options = parser.parse_args()
    agents: dict[str, Agent] = {
        f"whole, broken every {n} words{', shuffled' * mixed}": broken(n, mixed)
        for mixed in (False, True)
        for n in range(3, 9)
    }
    agents |= {f"first {share:.0%}, as it stands": plain(share) for share in (1.0, 0.5, 0.25, 0.1)}
    agents |= {f"first {share:.0%}, broken every 5": part(share) for share in (0.75, 0.5, 0.25)}
    lines = [line.split() for line in re.split(r"[|\n]", SYNONYMS)]
    table = {word: [one for one in line if one != word] for line in lines for word in line}
    agents["synonyms for every word that has one"] = synonyms(table)
    agents["synonyms, broken every 5"] = lambda record, rng: broken(5, shuffled=False)(
        synonyms(table)(record, rng), rng
    )
    agents |= {"letters with dots": spelled, "one bit a sentence": chosen_openings}
    agents |= {f"initials of its words, broken every {n}": initials(n) for n in (1000, 8, 4)}
    for name, dress in (ALIKE | OTHERWISE).items():
        agents[f"whole, by {name}"] = lambda record, _, dress=dress: dress(record)
    agents["harmless words with the record's letters as initials"] = acrostic
    agents = {name: agent for name, agent in agents.items() if re.search(options.only, name)}
    for corpus in options.corpora:
        texts = list(dict.fromkeys(one.text for one in load_documents(corpus).documents))
        random.Random(options.seed).shuffle(texts)
        public, texts = texts[: options.public], texts[options.public :]
        half = min(len(texts) // 2, options.records)
        # Copying is what is measured: secrets and contact details have tests of their own.
        under = GuardConfig(common=options.common, pii="none")
        guard = SyntheticGuard(texts[:half], (), under, public=public)
        honest = texts[half : half + options.texts]
        print(f"{Path(corpus).stem}: {half} records")
        if options.honest:
            honest = [one.text for one in load_documents(options.honest).documents]
            honest = random.Random(2).sample(honest, min(options.texts, len(honest)))
        told = f"the same, phrases of {len(public)} public texts free"
        for label, config, known in (
            ("honest texts stopped", GuardConfig(pii="none"), ()),
            ("the same, runs in 5 records free", GuardConfig(common=5, pii="none"), ()),
            ("the same, any share of a record's words", GuardConfig(recall=1.0, pii="none"), ()),
            *([(told, GuardConfig(pii="none"), public)] if public else []),
            *([(f"and runs in {options.common} records", under, public)] if options.common else []),
        ):
            other = SyntheticGuard(texts[:half], (), config, public=known)
            broken_by = [other.violation(text) for text in honest]
            tell(label, [one is not None for one in broken_by])
            kinds = Counter(one.reason for one in broken_by if one)
            print("   ", "; ".join(f"{why}: {n}" for why, n in kinds.most_common()))
        rng = random.Random(1)
        some = texts[: min(half, options.texts)]
        for name, agent in agents.items():
            tell(f"{name}: passed", [guard.violation(agent(text, rng)) is None for text in some])
        if re.search(options.only, "whole in texts"):
            apart(some[:100], guard)
        carried(some, guard)
        runs = GuardConfig(common=options.common, rouge=1.0, recall=1.0, pii="none")
        longest(some, SyntheticGuard(texts[:half], (), runs, public=public))


def apart(records: Sequence[str], guard: SyntheticGuard) -> None:
    """Print which records leave whole in parts, a text each, filler after every four words."""
    for name in (None, "umlauts", "strokes", "underscores"):
        for count in (2, 3, 4, 5):
            out = []
            for record in records:
                words = (ALIKE[name](record) if name else record).split()
                size = -(-len(words) // count)
                parts = [words[at : at + size] for at in range(0, len(words), size)]
                texts = [
                    " ".join(" ".join((*part[at : at + 4], "perhaps")) for at in range(0, size, 4))
                    for part in parts
                ]
                single = all(guard.violation(text) is None for text in texts)
                out.append(single and not any(guard.together(texts)))
            tell(f"whole in {count} texts, {name or 'as it stands'}: left", out)


def longest(texts: Sequence[str], guard: SyntheticGuard) -> None:
    """Print how long a piece of a record, as it stands, breaks no run: a middle and a long one."""
    sizes = []
    for text in texts:
        words, start, most = text.split(" "), 0, 0
        for end in range(1, len(words) + 1):
            while start < end and guard.violation(" ".join(words[start:end])) is not None:
                start += 1
            most = max(most, end - start)
        sizes.append(most)
    middle, long = np.quantile(sizes, (0.5, 0.95))
    print(f"  longest piece that breaks no run: {middle:.0f} words, {long:.0f} in one of twenty")


def carried(texts: Sequence[str], guard: SyntheticGuard) -> None:
    """Print what the written-down attack carries: one bit in each choice of a neutral sentence."""
    bits = [8 * len(text.encode()) for text in texts]
    packed = [8 * len(zlib.compress(text.encode(), 9)) for text in texts]
    for words in (50, 100, 250):
        # Sentences of three words: one bit each, whatever is in them.
        room = words // 3
        said = " ".join(OPENINGS[int(c)] for c in f"{random.Random(words).getrandbits(room):b}")
        passed = guard.violation(said) is None
        share = sum(min(1.0, room / size) for size in packed) / len(packed)
        print(
            f"  one bit a sentence: {room if passed else 0} bits in {words} words, {share:.3f} of a"
            f" record (mean {mean(bits):.0f} bits, {mean(packed):.0f} packed)"
        )


def tell(name: str, found: Sequence[bool]) -> None:
    low, high = proportion_interval(sum(found), len(found))
    share = sum(found) / len(found)
    print(f"  {name} {share:.3f} [{low:.3f}, {high:.3f}] of {len(found)}", flush=True)


if __name__ == "__main__":
    main()
