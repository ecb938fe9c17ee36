"""What a setup by many costs: CPU seconds of a contributor in each round, of moving on, of a check.

    python benchmarks/ceremony.py [--slots 256,1000] [--contributors 2] [--dimension 384]

Top 4, scale 128, noise up to 213,908, one thread, the shape of `experiments/attest`. Every
contributor checks what came before, as the command does, and that is counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

os.environ.setdefault("RAYON_NUM_THREADS", "1")  # before zksnake is loaded

from ragwitness.crypto.proofs.ceremony import (
    Ceremony,
    begin,
    check,
    contribute,
    finish,
    move_on,
)
from ragwitness.crypto.proofs.setup import Shape

_T = TypeVar("_T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", default="256,1000")
    parser.add_argument("--contributors", type=int, default=2)
    parser.add_argument("--dimension", type=int, default=384)
    given = parser.parse_args()
    for slots in map(int, given.slots.split(",")):
        _measure(Shape(slots, 4, given.dimension, 128, 213_908), given.contributors)


def _measure(shape: Shape, contributors: int) -> None:
    print(f"{shape.slots:,} slots")
    ceremony, _ = _timed("begin", lambda: begin(shape))
    ceremony = _round(ceremony, contributors, 1)
    ceremony, _ = _timed("moving on", lambda: move_on(ceremony))
    ceremony = _round(ceremony, contributors, 2)
    data, _ = _timed("writing", ceremony.encode)
    again, _ = _timed("reading", lambda: Ceremony.parse(data))
    _timed("checking all of it", lambda: check(again))
    with tempfile.TemporaryDirectory() as folder:
        _timed("finish", lambda: finish(again, Path(folder) / "setup"))


def _round(ceremony: Ceremony, contributors: int, number: int) -> Ceremony:
    """Let contributors read the file, check it, add to it and write it."""
    spent, data = [], ceremony.encode()

    def turn(name: str) -> bytes:
        return contribute(Ceremony.parse(data), name).encode()

    for place in range(contributors):
        data, seconds = _timed("", lambda place=place: turn(f"contributor {place}"))
        spent.append(seconds)
    middle, many = statistics.median(spent), f"n = {contributors}"
    spread = f"({min(spent):.1f} to {max(spent):.1f}, {many})"
    print(f"a contributor to round {number:2} {middle:8.1f} s CPU {spread}; {len(data):,} bytes")
    return Ceremony.parse(data)


def _timed(name: str, call: Callable[[], _T]) -> tuple[_T, float]:
    start = time.process_time()
    found = call()
    spent = time.process_time() - start
    if name:
        print(f"{name:25} {spent:8.1f} s CPU", flush=True)
    return found, spent


if __name__ == "__main__":
    main()
