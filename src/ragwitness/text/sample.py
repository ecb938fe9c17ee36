"""The corpus that ships with the package: generated records of nobody, for demo and auxiliary use.

It shares neither sentences nor names with the training texts of the embedded reader.
"""

from __future__ import annotations

import gzip
import json
import re
from importlib import resources
from itertools import accumulate

from ragwitness.core.types import Document


def load_sample(words: int | None = None) -> list[Document]:
    """Return the 1,200 documents, ids ``sample-0001`` onwards; membership is not set.

    Args:
        words: Most words of a document, which then ends with a sentence; None leaves them whole.
    """
    packed = resources.files("ragwitness.text").joinpath("sample.jsonl.gz").read_bytes()
    rows = (json.loads(line) for line in gzip.decompress(packed).decode().splitlines())
    return [Document(row["id"], _begun(row["text"], words)) for row in rows]


def _begun(text: str, words: int | None) -> str:
    if words is None:
        return text
    sentences = re.split(r"(?<=[.?!]) ", text)
    lengths = accumulate(len(sentence.split()) for sentence in sentences)
    return " ".join(sentences[: max(1, sum(length <= words for length in lengths))])
