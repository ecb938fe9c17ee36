"""One random split of one source per case: in the index, asked about, known to be outside."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

_SHORTEST = 40  # words of a WikiText paragraph worth auditing

Row = dict[str, object]


@dataclass(frozen=True)
class Split:
    """Rows for the lab's corpus, the audit's documents and its known-outside set."""

    indexed: list[Row]
    documents: list[Row]
    known_out: list[Row]


def read_rows(path: Path) -> list[Row]:
    """Read JSON Lines, or the paragraphs of a text file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in lines]
    long = [line.strip() for line in lines if len(line.split()) >= _SHORTEST]
    return [{"id": f"{path.stem}-{i}", "text": text} for i, text in enumerate(long)]


def split(rows: list[Row], sizes: dict[str, int], seed: int) -> Split:
    """Split at random; of rows that tell one story, exactly one goes into the index."""
    rng = random.Random(seed)
    if "story" in rows[0] and "author" in rows[0]:
        return _twin_split(rows, sizes, rng)
    rng.shuffle(rows)
    half = len(rows) // 2
    return _compose(rows[:half], rows[:half], rows[half:], sizes, rng)


def _twin_split(rows: list[Row], sizes: dict[str, int], rng: random.Random) -> Split:
    """Non-members are the twins of indexed rows; no story is asked about twice."""
    stories: dict[object, list[Row]] = {}
    for row in rows:
        stories.setdefault(row["story"], []).append(row)
    pairs = [pair for _, pair in sorted(stories.items(), key=str) if len(pair) == 2]
    rng.shuffle(pairs)
    for pair in pairs:
        rng.shuffle(pair)
    cut = sizes["members"]
    indexed = [pair[0] for pair in pairs]
    return _compose(indexed, indexed[:cut], [pair[1] for pair in pairs[cut:]], sizes, rng)


def _compose(
    indexed: list[Row],
    inside: list[Row],
    outside: list[Row],
    sizes: dict[str, int],
    rng: random.Random,
) -> Split:
    members, non_members = sizes["members"], sizes["non_members"]
    documents = [{**_plain(row), "member": True} for row in inside[:members]]
    documents += [{**_plain(row), "member": False} for row in outside[:non_members]]
    rng.shuffle(documents)
    known = outside[non_members : non_members + sizes["known_out"]]
    return Split([_plain(r) for r in indexed], documents, [_plain(r) for r in known])


def _plain(row: Row) -> Row:
    return {"id": row["id"], "text": row["text"]}
