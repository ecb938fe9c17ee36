"""How much of the personal details in real text is found, by detector.

``python benchmarks/pii.py CORPUS… [--finders contacts presidio spacy:en_core_web_sm hf:NAME]
[--texts CORPUS…]``

``pii_spans.jsonl`` holds spans labelled by hand, each by the hash of its text, and no text: give
the corpora that hold the texts. A span is found where a find covers half of it. CORPUS of
``--texts`` is what a find stops for nothing, or for cause: how many texts have a find, by kind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from pathlib import Path

from ragwitness.stats.rates import proportion_interval
from ragwitness.text.documents import load_documents
from ragwitness.text.pii import pii_finder

SPANS = Path(__file__).parent / "pii_spans.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--finders", nargs="+", default=["contacts", "auto"])
    parser.add_argument("--texts", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=500)
    options = parser.parse_args()
    texts = {}
    for corpus in options.corpora:
        for one in load_documents(corpus).documents:
            texts[hashlib.sha256(one.text.encode()).hexdigest()[:16]] = one.text
    rows = [json.loads(line) for line in SPANS.read_text().splitlines()]
    known = [row for row in rows if row["text"] in texts]
    print(f"{len(known)} of {len(rows)} labelled spans are in these corpora")
    for name in options.finders:
        finder, begun = pii_finder(name), time.process_time()
        finds = {key: finder.find(texts[key]) for key in {row["text"] for row in known}}
        spent = 1000 * (time.process_time() - begun) / max(1, len(finds))
        print(f"{finder.name} ({spent:.0f} ms of CPU a text):")
        hits = [
            sum(max(0, min(one.end, row["end"]) - max(one.start, row["start"])) for one in here)
            >= (row["end"] - row["start"]) / 2
            for row in known
            for here in (finds[row["text"]],)
        ]
        for kind in ("all", *dict.fromkeys(row["kind"] for row in known)):
            some = [
                hit for hit, row in zip(hits, known, strict=True) if kind in ("all", row["kind"])
            ]
            low, high = proportion_interval(sum(some), len(some))
            share = sum(some) / len(some)
            print(f"  {kind}: {share:.3f} [{low:.3f}, {high:.3f}] of {len(some)}")
        for corpus in options.texts:
            others = [one.text for one in load_documents(corpus).documents][: options.most]
            told = [finder.find(text) for text in others]
            kinds = Counter(one.kind for found in told for one in found)
            flagged = sum(map(bool, told))
            low, high = proportion_interval(flagged, len(others))
            print(
                f"  {Path(corpus).stem}: {flagged / len(others):.3f} [{low:.3f}, {high:.3f}] of"
                f" {len(others)} texts have a find: {dict(kinds.most_common(8))}",
                flush=True,
            )


if __name__ == "__main__":
    main()
