"""Lexical search over many passages: BM25 in memory and Tantivy on disk, side by side.

    python benchmarks/lexical.py [passages ...]

Generated passages of 100 words from a vocabulary of 200,000 with Zipf's frequencies; queries of 20
words out of one passage each. Each index has a process of its own: CPU seconds to build and to
open again, peak memory beyond that of the passages themselves, CPU milliseconds a query, and in how
many queries the passage that the words were taken from comes first.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ragwitness.rag.index.base import Index
from ragwitness.rag.index.lexical import LexicalIndex
from ragwitness.rag.index.tantivy import TantivyIndex

_WORDS, _VOCABULARY, _ASKED, _QUERIES = 100, 200_000, 20, 200


def _passages(count: int) -> list[str]:
    rng = np.random.default_rng(0)
    # Zipf's law by inversion: the rank is the vocabulary's size to a uniform power.
    made = []
    for _ in range(count):
        ranks = (_VOCABULARY ** rng.random(_WORDS)).astype(int)
        made.append(" ".join(f"w{rank}" for rank in ranks))
    return made


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measure(name: str, count: int) -> None:
    texts, rng = _passages(count), np.random.default_rng(1)
    asked = rng.integers(0, count, _QUERIES).tolist()
    queries = [" ".join(rng.choice(texts[at].split(), _ASKED, replace=False)) for at in asked]
    index: Index
    with tempfile.TemporaryDirectory() as folder:
        LexicalIndex(["warm"]).search("warm", 1)
        before, clock = _megabytes(), _cpu()
        index = LexicalIndex(texts) if name == "bm25s" else TantivyIndex(texts, Path(folder))
        built, clock = _cpu() - clock, _cpu()
        more = _megabytes() - before
        first = [index.search(query, 4)[0].index for query in queries]
        each, clock = (_cpu() - clock) / _QUERIES, _cpu()
        again = None
        if name != "bm25s":
            TantivyIndex(texts, Path(folder)).search(queries[0], 4)
            again = _cpu() - clock
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    found = {
        "passages": count,
        "index": name,
        "build CPU s": round(built, 1),
        "more peak MB": round(more),
        "query CPU ms": round(1000 * each, 2),
        "open again CPU s": None if again is None else round(again, 2),
        "disk MB": round(disk / 1e6),
        "found first": f"{sum(a == b for a, b in zip(first, asked, strict=True))} of {_QUERIES}",
        "peak MB": round(_megabytes()),
    }
    print(json.dumps(found), flush=True)


def main() -> None:
    """Measure each index in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        _measure(sys.argv[2], int(sys.argv[3]))
        return
    for count in [int(text) for text in sys.argv[1:]] or [10_000, 100_000]:
        for name in ("bm25s", "tantivy"):
            subprocess.run([sys.executable, __file__, "--one", name, str(count)], check=True)


if __name__ == "__main__":
    main()
