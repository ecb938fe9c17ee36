"""Small audit windows; the prover of the columns is a stand-in where a test proves nothing."""

import numpy as np

from ragwitness.attest.commit import Contents, open_window
from ragwitness.attest.commitments import CommittedEmbedder
from ragwitness.attest.policy import Estimator, WindowPolicy
from ragwitness.attest.receipts import Request
from ragwitness.attest.window import Window
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.proofs import argument, prove_norms
from ragwitness.crypto.proofs.argument import Columns, SecretColumns
from ragwitness.crypto.proofs.arithmetic import encode_point, generator
from ragwitness.privacy.mechanism import Mechanism

KEY = PrivateKey("example.org/log", KeyKind.NOTE, bytes(range(32)))
DIGEST = "5e" * 32


def policy(**change):
    """Two tenants of 16 slots and dimension 8; three accounts of three queries."""
    mechanism = Mechanism(8, 16, 2, 400, 0, scale=64)
    fields = {
        "window": "2026-W47",
        "tenants": {"clinic": mechanism, "archive": mechanism},
        "relation": "replace",
        "queries": 3,
        "accounts_most": 4,
        "epsilon": 1000.0,
        "delta": 1e-8,
        "k_max": 2,
        "joint_delta": 1e-6,
        "estimator": Estimator("pairs", 0.9),
    }
    return WindowPolicy(**(fields | change))


def rows(mechanism, seed=1, full=12):
    """Random integer rows, the last slots empty."""
    rng = np.random.default_rng(seed)
    made = np.zeros((mechanism.capacity, mechanism.dimension), np.int16)
    made[:full] = rng.integers(-15, 16, (full, mechanism.dimension))
    return made


def contents(given):
    """An index for every tenant of a policy."""
    return {
        name: Contents(rows(one, seed), [DIGEST] * 12 + [""] * (one.capacity - 12))
        for seed, (name, one) in enumerate(given.tenants.items())
    }


def stand_in(monkeypatch):
    """Put a prover in place that commits to nothing and proves nothing."""
    point = encode_point(generator())

    def commit_columns(held, shape):
        chunks = shape.chunks(len(held))
        blinds = tuple(((0, 0),) * shape.dimension for _ in range(chunks))
        return SecretColumns(held, blinds, Columns(((point,) * shape.dimension,) * chunks))

    monkeypatch.setattr(argument, "commit_columns", commit_columns)
    monkeypatch.setattr(prove_norms, "prove_norms", lambda *given: b"norms of " + given[-1])


def window(folder, monkeypatch, given=None, keys=(KEY,)):
    """Open a window with the stand-in and load it."""
    given = given or policy()
    stand_in(monkeypatch)
    embedder = CommittedEmbedder.of({"weights": DIGEST})
    open_window(folder / "window", given, contents(given), embedder, keys)
    return Window.load(folder / "window", keys)


def ask(held, account="a", tenant="clinic", nonce="n1", vector=None, **change):
    """A request of an admitted account."""
    held.admit(tenant, account)
    fields = {
        "tenant": tenant,
        "account": account,
        "query": DIGEST,
        "vector": np.array([20, -20, 20, 5, 0, 0, 9, 1]) if vector is None else vector,
        "nonce": nonce,
        "checkpoint": held.checkpoint,
    }
    return Request(**(fields | change))
