"""What the service finds, over HTTP: codes and noise, at epsilon 3 and 10, on two corpora.

    python -m benchmarks.finding --data DIR [--draws 3]

The corpora and questions are those of benchmarks/usefulness.py. A question counts as answered if a
slot of its own document is among those returned, and as shown if its text is. Every draw is a
tenant of its own: documents are placed anew. Then an account asks 1,000 questions that are about
nothing ("anything 3"), and the share of the corpus whose texts it has read by them is counted.
Noise is accounted for 2,000 questions of one account. Documents are cut at 400 words.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' server

from benchmarks.usefulness import pairs_of
from ragwitness.comparison.differences import paired_difference
from ragwitness.core.types import Document
from ragwitness.service.documents import add_documents
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, open_store
from ragwitness.service.tables import documents
from ragwitness.service.tenants import add_account, create_tenant, find_tenant
from tests.support.service import Server

_TOP, _ASKED, _DIMENSION = 10, 1000, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    print("| corpus | mechanism | epsilon | questions | found | chance | shown | read beyond |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ("healthcaremagic", "fairytaleqa"):
        texts, pairs = pairs_of(name, options.data)[0]
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(str(Path(folder) / "service.db"), create=True)
            cells = {
                (mechanism, epsilon): [
                    _tenant(store, f"{mechanism}-{epsilon:g}-{draw}", mechanism, epsilon, texts)
                    for draw in range(options.draws if mechanism == "codes" else 1)
                ]
                for epsilon in (3.0, 10.0)
                for mechanism in ("codes", "noise")
            }
            with Server(store.name, Path(folder) / "log") as server:
                for (mechanism, epsilon), made in cells.items():
                    asked = pairs if mechanism == "codes" else pairs[:_ASKED]
                    found, shown, beyond = _measure(server.url, made, asked)
                    print(
                        f"| {name} | {mechanism} | {epsilon:g} | {len(found)} | {_rate(found)} |"
                        f" {_TOP / len(texts):.3f} | {_rate(shown)} | {beyond:.4f} |",
                        flush=True,
                    )
            store.close()


def _tenant(
    store: Store, name: str, mechanism: str, epsilon: float, texts: list[str]
) -> tuple[str, dict[int, int]]:
    """Return the key of an account, and which document is in which slot."""
    claim = Claim(
        mechanism=mechanism,  # type: ignore[arg-type]
        epsilon=epsilon,
        queries=2 * _ASKED,
        accounts=1,
        top=_TOP,
        capacity=len(texts),
        embedder=f"hashing:{_DIMENSION}",
        texts=True,
    )
    create_tenant(store, name, claim)
    given = [Document(str(at), " ".join(one.split()[:400])) for at, one in enumerate(texts)]
    add_documents(store, name, given)
    with store.reading() as connection:
        row = find_tenant(connection, name)
        held = connection.execute(documents.select().where(documents.c.tenant == row.id)).all()
    return add_account(store, name, "a"), {one.slot: int(one.name) for one in held}


def _measure(
    url: str, made: list[tuple[str, dict[int, int]]], pairs: list[tuple[int, str]]
) -> tuple[list[float], list[float], float]:
    """Return hits and texts shown, by question, and the share that nonsense reads beside."""
    found, shown, beyond = [], [], []
    with httpx2.Client(base_url=url.removesuffix("/v1"), timeout=60) as client:
        for key, slots in made:
            auth = {"Authorization": f"Bearer {key}"}

            def ask(query: str, auth: dict[str, str] = auth) -> dict[str, Any]:
                reply = client.post("/v1/retrieval", json={"query": query}, headers=auth)
                return dict(reply.raise_for_status().json())

            for own, question in pairs:
                reply = ask(question[:8000])
                found.append(float(own in {slots.get(slot) for slot in reply["ids"]}))
                shown.append(float(str(own) in {one["id"] for one in reply["documents"]}))
            # Questions that are about no document: what is read by them was not asked for.
            read = set()
            for at in range(_ASKED):
                read |= {one["id"] for one in ask(f"anything {at % 5}")["documents"]}
            beyond.append(len(read) / len(slots))
    return found, shown, float(np.mean(beyond))


def _rate(hits: list[float]) -> str:
    rate = paired_difference(np.array(hits), np.zeros(len(hits)), seed=0)
    return f"{rate.value:.3f} [{max(0.0, rate.low):.3f}, {rate.high:.3f}]"


if __name__ == "__main__":
    main()
