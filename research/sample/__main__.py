"""``python -m research.sample`` writes the corpus of the package again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from ragwitness.text import sample
from research.sample.generate import generate


def packed() -> bytes:
    """Return the corpus as gzipped JSONL, the same bytes every time."""
    rows = [json.dumps({"id": d.id, "text": d.text}, ensure_ascii=False) for d in generate()]
    # no time stamp in the header, hence reproducible
    return gzip.compress(("\n".join(rows) + "\n").encode(), compresslevel=9, mtime=0)


def main() -> None:
    """Write ``sample.jsonl.gz`` beside the module that reads it."""
    path = Path(sample.__file__).with_name("sample.jsonl.gz")
    data = packed()
    path.write_bytes(data)
    print(f"{path}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
