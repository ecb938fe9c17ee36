"""Numbers that are alike: how often are an innocent's proved, and a leaker's?

    python benchmarks/number_proof.py [RUNS]

Every text holds one number of a kind: telephones of one firm or of more, file numbers in series,
dates, numbers with a common end. An innocent says other numbers of that kind; a leaker says half of
the corpus's own. ``pool``: all numbers come from 300, such as hotlines, which no text can tell.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator

from ragwitness.leakage.score.proof import _proving_numbers

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 200


def digits(rng: random.Random, count: int) -> str:
    """Return digits drawn by lot."""
    return "".join(rng.choices("0123456789", k=count))


def kinds(rng: random.Random) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each kind of number with a function that draws one."""
    six, seven, end = digits(rng, 6), digits(rng, 7), digits(rng, 5)
    firms = [digits(rng, 6) for _ in range(10)]
    start, pool = rng.randrange(100_000, 900_000), [digits(rng, 9) for _ in range(300)]
    yield "six digits shared", lambda: six + digits(rng, 4)
    yield "seven digits shared", lambda: seven + digits(rng, 3)
    yield "two firms", lambda: rng.choice(firms[:2]) + digits(rng, 4)
    yield "ten firms", lambda: rng.choice(firms) + digits(rng, 4)
    yield "3,000 in series", lambda: str(start + rng.randrange(3000))
    yield "dates", lambda: f"{rng.randrange(1, 29):02}{rng.randrange(1, 13):02}{_year(rng)}"
    yield "dates, year first", lambda: f"{_year(rng)}{rng.randrange(1, 13):02}{_day(rng)}"
    yield "five at the end", lambda: digits(rng, 4) + end
    yield "five in the middle", lambda: digits(rng, 2) + end + digits(rng, 2)
    yield "drawn by lot", lambda: digits(rng, 10)
    yield "pool", lambda: rng.choice(pool)


def _year(rng: random.Random) -> int:
    return rng.randrange(1950, 2010)


def _day(rng: random.Random) -> str:
    return f"{rng.randrange(1, 29):02}"


def proved(said: list[str], held: list[str]) -> bool:
    """Whether any number that was said proves a text."""
    texts = [f"Call {number} now" for number in held]
    answers = [f"Call {number} now" for number in said]
    return any(True for _ in _proving_numbers(answers, [""] * len(answers), texts, ()))


def main() -> None:
    """Print both counts of every kind and size."""
    for at, (name, _) in enumerate(kinds(random.Random(0))):
        for held, said in ((40, 40), (40, 5), (10, 40), (200, 200)):
            false = found = 0
            for seed in range(RUNS):
                _, draw = [*kinds(random.Random(f"{held} {said} {seed}"))][at]
                own = [draw() for _ in range(held)]
                false += proved([draw() for _ in range(said)], own)
                found += proved(own[: held // 2], own)
            print(f"{name}, {held} held, {said} said: proved {false}, leaks {found} of {RUNS}")


if __name__ == "__main__":
    main()
