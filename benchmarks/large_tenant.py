"""A large corpus through `service tenants add-documents`: seconds, memory and the database's size.

    python benchmarks/large_tenant.py [--documents 1000000] [--words 60] [--dimension 384]

Documents are random words of a made-up vocabulary, embedded by hashing (a model would take hours
and says nothing of this). Each command is a process of its own: CPU and wall seconds, and the
largest memory that it held. Then one query through the service's own retriever, which reads the
index; its peak is that of this process. One run each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ragwitness.service.retrieval import Retriever
from ragwitness.service.store import open_store
from tests.support.service import authenticate

_VOCABULARY = 50_000


def main() -> None:
    """Write a corpus, make a tenant, add the corpus and ask it once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--dimension", type=int, default=384)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database, corpus = folder / "service.db", folder / "corpus.jsonl"
        _write(corpus, given.documents, given.words)
        size = corpus.stat().st_size / 2**30
        print(f"{given.documents:,} documents of {given.words} words, {size:.2f} GiB as a file")
        _run(
            "create", "t", "--mechanism", "noise", "--knowingly",
            "--embedder", f"hashing:{given.dimension}",
            "--capacity", str(given.documents), "--database", str(database),
        )  # fmt: skip
        _run("add-documents", "t", str(corpus), "--database", str(database))
        print(f"database {database.stat().st_size / 2**30:.2f} GiB")
        key = _run("add-account", "t", "a", "--json", "--database", str(database))
        asyncio.run(_ask(database, json.loads(key)["key"]))


def _write(path: Path, count: int, words: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for at in range(count):
            text = " ".join(f"w{one}" for one in rng.integers(0, _VOCABULARY, words))
            file.write(json.dumps({"id": f"d{at}", "text": text}) + "\n")


def _run(*words: str) -> str:
    """Run one command to its end; print what it took."""
    command = [sys.executable, "-m", "ragwitness", "service", "tenants", *words]
    start = time.monotonic()
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of the largest child so far
    print(
        f"{words[0]}: {time.monotonic() - start:.1f} s, CPU of all so far"
        f" {used.ru_utime + used.ru_stime:.1f} s, peak {used.ru_maxrss / 2**20:.2f} GiB",
        flush=True,
    )
    return told


async def _ask(database: Path, key: str) -> None:
    store = open_store(str(database))
    who = authenticate(store, f"Bearer {key}")
    if who is None:
        raise SystemExit("the key is refused")
    retriever = Retriever(store)
    for name in ("first query, which reads the index", "second query"):
        start = time.monotonic()
        await retriever.retrieve(who, "w1 w2 w3")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name}: {time.monotonic() - start:.2f} s, peak {peak:.2f} GiB", flush=True)
    retriever.close()
    store.close()


if __name__ == "__main__":
    main()
