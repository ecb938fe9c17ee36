"""Everything by which the golden tests call the package: tasks as command lines, and imports.

When verbs are regrouped or modules move, this file changes and the golden tests do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "stored"
INPUTS = STORED / "inputs"
RUNS = "ragwitness-runs"

_HERE = "python:tests.golden.answering"
_CHECKED = ("--pii", "contacts")
_AUDIT = ("--documents", "documents.jsonl", "--known-out", "known.jsonl", "--method", "rag-mia")

TASKS: dict[str, tuple[object, ...]] = {
    "audit": ("audit", f"{_HERE}:knows", *_AUDIT, "--yes"),
    "audit-learning": (
        "audit", "lab:corpus.jsonl", *_AUDIT[:4], "--auxiliary", "auxiliary.jsonl",
        "--method", "s2mia:m", "--yes",
    ),
    "owner": (
        "audit", "--collection", "lab:corpus.jsonl", "--documents", "corpus.jsonl",
        "--known-out", "known.jsonl", "--method", "mba", "--accept-unlike", "--yes",
    ),
    "leak": (
        "leak", f"{_HERE}:tells", "--corpus", "corpus.jsonl", "--attacks", "composite,pide",
        "--prompts", 4, "--answer-tokens", 24, "--background", "background.jsonl",
    ),
    "synthesize": (
        "synthesize", "private.jsonl", "-o", "safe.jsonl", "--model", f"{_HERE}:writes", "--yes",
        *_CHECKED, "--secrets", "secrets.jsonl",
    ),
    "synthesize-private": (
        "synthesize", "private.jsonl", "-o", "safe.jsonl", *_CHECKED, "--method",
        "private-evolution", "--epsilon", 8, "--public", "background.jsonl", "--texts", 3,
        "--rounds", 2, "--embedder", "words",
    ),
    "compare": (
        "compare", "questions.jsonl", "--prompts", 2, "--answer-tokens", 12, "--held-out", 2,
        "--method", "redact", "--method", "stage-1", "--model", f"{_HERE}:writes", *_CHECKED,
        "--contacts",
    ),
    "evaluate": (
        "evaluate", "--corpus", "background.jsonl", "--audits", "rag-mia", "--limit", 8,
        "--calibration", 4, "--no-control",
    ),
    "canary": (
        "canary", "probe", f"{_HERE}:trained", "--plan", "plan", "--release", "spring",
        "--way", "sampled", "--samples", 2,
    ),
}  # fmt: skip
"""Commands without ``--run``: the run folder's name follows from the rest."""

TABLES: dict[str, tuple[object, ...]] = {
    "audits": (
        "lab",
        "reproduce",
        "golden/audits",
        "--data",
        ".",
        "--limit",
        8,
        "--calibration",
        4,
    ),
    "compare": ("lab", "reproduce", "golden/compare", "--data", "."),
}
"""Tables of ``inputs/golden/tables.toml``, by their kind."""

WHERE = ("--tables", ".", "--out", "out")


def report(run: object, *more: object) -> tuple[object, ...]:
    return ("report", run, *more)


def call(*arguments: object) -> tuple[int, str]:
    """Run the command line in this process; return its exit code and all it printed."""
    from ragwitness.cli.main import run

    said, argv = io.StringIO(), sys.argv
    sys.argv = ["ragwitness", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            run()
        code: object = 0
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = argv
    text = said.getvalue()
    assert "Traceback" not in text, text
    return int(code or 0), text  # type: ignore[call-overload]


def done(*arguments: object) -> str:
    """Run a command that must end with 0; return what it printed."""
    code, text = call(*arguments)
    assert code == 0, text
    return text


def pages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield name and page of every run folder below a folder, as ``view`` shows them."""
    import httpx2

    from ragwitness.web.app import create_app
    from ragwitness.web.runs import find_runs

    app: Any = create_app([root])

    async def fetch(address: str) -> str:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            found = await client.get(address)
            assert found.status_code == 200, found.text
            return found.text

    for run in find_runs([root]):
        assert not run.problem, run.problem
        yield (run.kind.name if run.kind else run.words), asyncio.run(fetch(f"/run/{run.key}"))


_NOT_SAME = frozenset({"seconds", "latency", "ragwitness", "prepared", "sent", "started"})
_NOT_SAME |= {"PII that it misses"}  # said since recall was measured
_NOT_SAME |= {"closest"}  # texts are held against records as they read since: "a_b" is two words
_SILENT = ("caution", "doubt", "groups", "largest_tie", "left_out", "likeness", "odds", "power")
_SILENT += ("silent", "ties", "unreached")
_TIMES = re.compile(r"\d+(\.\d+)? (s|min|seconds)\b")


# Leak measures that stored results do not have.
_SINCE = {
    "records at length",
    "proved records",
    "channel",
    "leaked records",
    "leaked prompts",
    "in order",
    "facts",
    "listed secrets",
}
_SINCE |= {f"{what} {of}" for what in ("in-order", "fact") for of in ("prompts", "records")}


def _measured_since(one: Any) -> bool:
    if not (isinstance(one, dict) and {"name", "definition", "count"} <= one.keys()):
        return False
    # The papers' counts and the ROUGE measures were removed.
    removed = one.get("published") or str(one["name"]).startswith("ROUGE")
    return bool(removed) or one["name"] in _SINCE


def same(value: Any, key: str = "") -> Any:
    """A result without what differs each time: clocks, versions, and a float's last digits."""
    if isinstance(value, dict):
        from ragwitness.report.result_registry import RESULT_TYPES

        # New results say their kind and the version of their form; older ones did not.
        added = {"kind", "version"} if value.get("kind") in RESULT_TYPES else set()
        # Compared variants say what they took to make, and how far above chance they are.
        added |= {"above"} | ({"cost"} if "unjudged" in value else set())
        # Measures say which part is proved record by record, and transcripts the channels.
        added |= {"proved", "channels", "published"}
        # Measures of records are held against chance since, and not those of prompts alone.
        if "definition" in value and not str(value.get("name")).endswith(("prompts", "likeness")):
            value = value | {"excess": None}
        # Fields that say nothing have been written too since; stored results lack them.
        added |= {k for k in _SILENT if not value.get(k)}
        added |= set() if value.get("likeness") else {"ties"}  # of texts that were not compared
        return {k: same(v, k) for k, v in value.items() if k not in _NOT_SAME | added}
    if isinstance(value, list):
        return [same(one) for one in value if not _measured_since(one)]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, str):
        return _TIMES.sub("TIME", value)
    return value


# No longer computed: of evaluations; of canaries, a floor of epsilon, a forecast and half-planted
# slots, none of which decided anything.
_LEFT = {"paired", "benign"} | {"floor", "examples_needed", "slots_needed", "planted", "half"}
# Of comparisons: containment of answers in whole words, and a measure that left with its option.
_LEFT |= {"containment", "likeness in meaning"}


def holds(found: Any, stored: Any) -> bool:
    """Whether a result says all that a stored one says; it may say more."""
    if isinstance(stored, dict):
        return isinstance(found, dict) and all(
            key in found and holds(found[key], stored[key]) for key in stored if key not in _LEFT
        )
    if isinstance(stored, list):
        same_length = isinstance(found, list) and len(found) == len(stored)
        return same_length and all(map(holds, found, stored))
    # RAG-MIA's one half came from the calibration documents, and is its own rule now.
    if isinstance(found, str):
        found = found.replace(
            "threshold 0.5, the method's own", "best threshold of the calibration documents"
        )
    # What was published of an audit was its AUC alone.
    return bool(found == stored or (isinstance(found, dict) and found.get("auc") == stored))


_SAID_NOW = {"note", "exact", "likeness", "largest_tie", "ties", "power"}


def as_before(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary of an audit without what is said since calibration documents are compared."""
    calibration = summary["calibration"]
    kept = {key: value for key, value in calibration.items() if key not in _SAID_NOW}
    return {**{k: v for k, v in summary.items() if k != "warnings"}, "calibration": kept}


def result_of(folder: Path) -> Any:
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pretend(number: str, folder: Path, patch: Any) -> None:
    """Let this be a version of the package, and of its first reader, which every key holds."""
    patch.setattr("ragwitness.runner.score_store.READING", "")
    site = folder / "site" / f"ragwitness-{number}.dist-info"
    site.mkdir(parents=True)
    told = f"Metadata-Version: 2.1\nName: ragwitness\nVersion: {number}\n"
    (site / "METADATA").write_text(told, encoding="utf-8")
    patch.syspath_prepend(str(site.parent))


def close(window: Any) -> None:
    """Close an audit window."""
    from ragwitness.attest.prove import close_window

    close_window(window)


def audit_identities() -> dict[str, str]:
    """The identity of every audit of ours, with its defaults and a proxy called ``nobody``."""
    from ragwitness.membership.method_registry import AUDITS, build_audit, configure

    return {
        name: identity_of(build_audit(name, Nobody(), configure(name)), Nobody.name)  # type: ignore[arg-type]
        for name in AUDITS
    }


def identity_of(audit: Any, proxy: str) -> str:
    from ragwitness.runner.score_store import audit_identity

    return audit_identity(audit, proxy)


class Nobody:
    """Stands where an audit wants a language model, and is asked nothing."""

    name = "nobody"
    context_length = 1_000


def stored_keys(row: dict[str, Any]) -> str:
    """The key of a journal's row, from what it says was asked."""
    from ragwitness.core.types import Query
    from ragwitness.runner.response_store import query_key

    return query_key(row["asked"]["target"], Query(**row["asked"]["query"]))


def unit_ids(identity: str, target: str, rows: list[dict[str, Any]]) -> list[str]:
    """The units of some documents."""
    from ragwitness.core.types import Document
    from ragwitness.runner.score_store import unit_id

    return [unit_id(identity, target, Document(row["id"], row["text"])) for row in rows]


def audit_identity_of(method: str, options: dict[str, object]) -> str:
    """The identity of the audit that a command line makes with the embedded reader."""
    from ragwitness.membership.method_registry import build_audit, configure
    from ragwitness.models.model_registry import load_language_model

    model = load_language_model("reader")
    return identity_of(build_audit(method, model, configure(method, options)), model.name)


def settled_bytes(attest: Path) -> dict[str, str]:
    """What the same inputs must always give, in hex: records, noise keys, policies, meters."""
    import numpy as np

    from ragwitness.attest.commitments import CommittedEmbedder
    from ragwitness.attest.policy import read_policy
    from ragwitness.attest.receipts import Opened, Request
    from ragwitness.attest.window import noise_record, query_record
    from ragwitness.attest.window_log import LoggedAccount
    from ragwitness.crypto.records import encode, record_hash
    from ragwitness.privacy.odometer import Odometer, Terms
    from ragwitness.privacy.streams import record_key, slot_bits, sub_seed

    policy = read_policy(attest / "policy.toml")
    vector = np.array([3, -1, 4, 1, -5, 9, 2, -6] * 2)
    asked = Request("clinic", "ann", "ab" * 32, vector, "a nonce", "1 " + "cd" * 32)
    seed = sub_seed(bytes(range(32)), policy.window, 4)
    noise = noise_record(policy, asked, 1)
    key = record_key(seed, noise)
    blindings = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
    opened = Opened(bytes.fromhex(asked.query), vector.astype(np.int16), (7, 2), blindings)
    record = query_record(policy, asked, LoggedAccount(1, 1, 1, bytes(32)), opened)
    terms = Terms(dimension=4, scale=8, sigma=50.0, budget=1.0, relation="add-remove")
    spent = Odometer(terms)
    spent.charge([1, 2, 3, 4])
    return {
        "policy": policy.encode().hex(),
        "mechanism": policy.tenants["clinic"].digest,
        "embedder": CommittedEmbedder({"weights": "5e" * 32}, bytes(32)).encode().hex(),
        "seed of a record": seed.hex(),
        "noise record": json.dumps(
            {name: getattr(noise, name) for name in noise.__dataclass_fields__}
        ),
        "key of the noise": key.hex(),
        "noise of slot 5": slot_bits(key, 5).take(32).hex(),
        "query record": encode(record).hex(),
        "hash of it": record_hash(record).hex(),
        "odometer": spent.to_bytes().hex(),
    }
