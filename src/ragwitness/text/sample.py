"""The corpus that ships with the package: generated records of nobody, for demo and auxiliary use.

It is independent of what the embedded reader is trained on: own sentences, own names.
"""

from __future__ import annotations

import gzip
import json
from importlib import resources

from ragwitness.types import Document


def load_sample() -> list[Document]:
    """Return the 1,200 documents, ids ``sample-0001`` onwards; membership is not set."""
    packed = resources.files("ragwitness.text").joinpath("sample.jsonl.gz").read_bytes()
    rows = (json.loads(line) for line in gzip.decompress(packed).decode().splitlines())
    return [Document(row["id"], row["text"]) for row in rows]
