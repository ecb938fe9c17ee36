"""MBA's default speller with the words before a mistake, against itself without them.

    python benchmarks/spelling.py [--data FILE.jsonl] [--words 2000]

One edit (a letter left out, put in, changed, or two swapped) is made in one lower-case word of each
text; a mistake that is itself a word is not counted. The second half of the table has an edit in
the word before it as well.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path
from string import ascii_lowercase

from ragwitness.membership.methods.mba.spelling import LibrarySpeller
from ragwitness.stats.rates import proportion_interval

_LONG = 4  # letters of a word that the speller looks at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--words", type=int, default=2000)
    options = parser.parse_args()
    if options.data is None:
        from ragwitness.text.sample import load_sample

        texts = [document.text for document in load_sample()]
    else:
        lines = options.data.read_text(encoding="utf-8").splitlines()
        texts = [json.loads(line)["text"] for line in lines]
    speller = LibrarySpeller()
    for beside in (False, True):
        found = [_mistake(text, number, speller, beside) for number, text in enumerate(texts)]
        mistakes = [one for one in found if one][: options.words]
        print("the word before is wrong too" if beside else "one mistake")
        for name, kept in (("two words before", 2), ("one word before", 1), ("none", 0)):
            right = sum(
                speller.correct(before[2 - kept :], wrong) == meant
                for before, wrong, meant in mistakes
            )
            low, high = proportion_interval(right, len(mistakes))
            share = right / len(mistakes)
            print(f"  {name}: {share:.3f} [{low:.3f}, {high:.3f}] of {len(mistakes)}")


def _mistake(
    text: str, seed: int, speller: LibrarySpeller, beside: bool
) -> tuple[list[str], str, str] | None:
    """The two words before, a mistake and what was meant."""
    rng = random.Random(seed)
    words = re.findall(r"[A-Za-z']+", text)
    right = [len(w) > _LONG and w.islower() and not speller.correct((), w) for w in words]
    places = [i for i in range(2, len(words)) if right[i] and (right[i - 1] or not beside)]
    if not places:
        return None
    place = rng.choice(places)
    before, wrong = words[place - 2 : place], _edited(words[place], rng)
    if beside:
        before[1] = _edited(before[1], rng)
    told = speller.correct((), wrong) and (not beside or speller.correct((), before[1]))
    return (before, wrong, words[place]) if told else None


def _edited(word: str, rng: random.Random) -> str:
    place = rng.randrange(len(word) - 1)
    head, letter, tail = word[:place], word[place], word[place + 1 :]
    return rng.choice(
        (
            head + tail,
            head + rng.choice(ascii_lowercase) + tail,
            head + rng.choice(ascii_lowercase) + letter + tail,
            head + tail[0] + letter + tail[1:],
        )
    )


if __name__ == "__main__":
    main()
