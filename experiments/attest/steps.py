"""Steps of the window experiment that no command does: texts, queries, the attack."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.attest.policy import WindowPolicy, read_policy

__all__ = ["HERE", "Paths", "Run", "load_config"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Paths:
    """Files of the experiment."""

    out: Path

    @property
    def corpus(self) -> Path:
        return self.out / "documents.jsonl"

    @property
    def queries(self) -> Path:
        return self.out / "queries.jsonl"

    @property
    def window(self) -> Path:
        return self.out / "window"

    @property
    def key(self) -> Path:
        return self.out / "log.key"

    @property
    def trust(self) -> Path:
        return self.window / "trust.json"

    @property
    def challenge(self) -> Path:
        return self.out / "challenge.json"

    @property
    def beacon(self) -> Path:
        return self.out / "beacon.json"

    @property
    def bundle(self) -> Path:
        return self.out / "bundle.zip"

    @property
    def empirical(self) -> Path:
        return self.out / "empirical.json"

    @property
    def figures(self) -> Path:
        return self.out / "window.json"


def load_config(window: str) -> dict[str, Any]:
    """Return config.toml: what all windows have, and over it what one of them has."""
    config = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    return config | config.pop("windows")[window]


def policy_of(config: dict[str, Any]) -> WindowPolicy:
    """Return the window's policy."""
    return read_policy(HERE / config["policy"])


@dataclass(frozen=True)
class Run:
    """One run of the experiment.

    Attributes:
        config: Of config.toml.
        data: Folder of the corpora.
        paths: Of its files.
    """

    config: dict[str, Any]
    data: Path
    paths: Paths

    def texts(self) -> dict[str, Any]:
        """Write what is indexed and what is asked."""
        rng = np.random.default_rng(self.config["seed"])
        own, *fillers = (_rows(self.data / name) for name in self.config["corpora"])
        wanted = self.config["documents"]
        documents = [
            {"id": row["id"], "text": row.get("answer", row["text"])}
            for row in [*own, *(row for filler in fillers for row in filler)][:wanted]
        ]
        asked = self.config["accounts"] * self.config["queries"]
        asking = [
            {"id": row["id"], "text": row["question"]}
            for row in (own[i] for i in rng.permutation(min(len(own), wanted))[:asked])
        ]
        _write_rows(self.paths.corpus, documents)
        _write_rows(self.paths.queries, asking)
        return {"documents": len(documents), "of the corpus": len(own), "queries": len(asking)}

    def attack(self) -> dict[str, Any]:
        """Write the empirical lower bound of the window's mechanism."""
        from empirical import attack

        from ragwitness.attest.window import Window

        policy, own = policy_of(self.config), self.config["attack"]
        tenant = self.config["tenant"]
        rows = Window.load(self.paths.window).secret_columns(tenant).rows
        told, hits = attack(
            rows,
            policy.tenants[tenant],
            (policy.k_max, policy.queries),
            policy.joint_delta,
            own["trials"],
            own["confidence"],
        )
        self.paths.empirical.write_text(json.dumps(told, indent=1) + "\n")
        return {"epsilon": told["epsilon"]} | hits

    def serve(self) -> dict[str, Any]:
        """Answer all queries by the library call, accounts in turn; all requests are signed."""
        from ragwitness.attest.receipts import Request, sign_request
        from ragwitness.attest.window import Window
        from ragwitness.crypto.keys import PrivateKey, read_key
        from ragwitness.models.model_registry import load_embedder
        from ragwitness.privacy.release import quantise

        tenant, rows = self.config["tenant"], _rows(self.paths.queries)
        policy = policy_of(self.config)
        started = time.process_time()
        vectors = load_embedder(self.config["embedder"]).embed([row["text"] for row in rows])
        embedded = time.process_time() - started
        integers = quantise(vectors, policy.tenants[tenant])
        key = read_key(self.paths.key)
        window = Window.load(self.paths.window, [key])
        accounts = [f"account-{i:02}" for i in range(self.config["accounts"])]
        own = {name: PrivateKey.generate("account") for name in accounts}
        for account in accounts:
            window.admit(tenant, account, own[account].public.material)
        receipts, seconds = self.paths.out / "receipts", []
        names = np.array([row["name"] for row in _rows(window.folder.documents(0))])
        scores = integers.astype(np.int64) @ window.secret_columns(tenant).rows.T.astype(np.int64)
        exact = np.argsort(-scores, axis=1, kind="stable")[:, : policy.tenants[tenant].top]
        found, found_exact, same = 0, 0, 0
        receipts.mkdir(exist_ok=True)
        for number, (row, vector) in enumerate(zip(rows, integers, strict=True)):
            before = time.perf_counter()
            asked = Request(
                tenant=tenant,
                account=accounts[number % len(accounts)],
                query=_sha256(row["text"]),
                vector=vector,
                nonce=secrets.token_hex(16),
                checkpoint=window.checkpoint,
                text=row["text"],
            )
            turn = number // len(accounts)
            signed = sign_request(own[asked.account], policy.window, asked, turn)
            answered = window.record(signed)
            seconds.append(time.perf_counter() - before)
            found += row["id"] in names[list(answered.ids)]
            found_exact += row["id"] in names[exact[number]]
            same += len({*answered.ids} & {*exact[number].tolist()})
            (receipts / f"{number:03}.json").write_bytes(answered.receipt.encode())
        published = window.publish()
        return {
            "answers": len(rows),
            "own answer found": found / len(rows),
            "own answer found without noise": found_exact / len(rows),
            "of the true top": same / exact.size,
            "embedding, CPU s": embedded,
            "answer, median ms": 1000 * float(np.median(seconds)),
            "answer, slowest ms": 1000 * max(seconds),
            "receipt, bytes": len(answered.receipt.encode()),
            "checkpoint, bytes": len(published),
        }


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
