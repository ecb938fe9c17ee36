"""What verifying a whole window costs.

    python benchmarks/verify_window.py [--slots 1000] [--records 30] [--rounds 5] [--out DIR]

One tenant, random vectors of 384 dimensions, 20 accounts with keys and 25 queries each, a beacon,
real proofs. The bundle is made once and kept in --out. Each verification is `ragwitness verify` in
a process of its own; CPU seconds of the whole process, median and range.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

os.environ.setdefault("RAYON_NUM_THREADS", "1")  # before the curve's package is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from ragwitness.attest.challenge import make_challenge
from ragwitness.attest.commit import Contents, open_window
from ragwitness.attest.commitments import CommittedEmbedder, checkpoint_token
from ragwitness.attest.policy import WindowPolicy, read_policy
from ragwitness.attest.prove import close_window, prove_window
from ragwitness.attest.receipts import Request, sign_request
from ragwitness.attest.trust import Pins, Trust
from ragwitness.attest.window import Window
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.notes import Checkpoint, Signers
from ragwitness.privacy.release import quantise

_LOG = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32)
_BEACON = sha256(b"drawn after the close").digest()
_NOISE = sha256(b"drawn after the opening").hexdigest()
_ACCOUNTS, _QUERIES = 20, 25
_POLICY = f"""
window = "benchmark"
relation = "replace"
queries = {_QUERIES}
accounts_most = {_ACCOUNTS}
epsilon = 1.0
delta = 1e-8
k_max = 4
joint_delta = 1e-6
[estimator]
name = "pairs"
threshold = 0.9
[tenants.clinic]
dimension = 384
capacity = %d
top = 4
scale = 128
"""
_VERIFY = "import runpy; runpy.run_module('ragwitness', run_name='__main__')"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--records", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks/verify_window"))
    given = parser.parse_args()
    folder = given.out / f"{given.slots}-{given.records}"
    if not (folder / "trust.json").exists():
        _make(folder, given.slots, given.records)
    print(f"bundle {(folder / 'bundle.zip').stat().st_size:,} bytes")
    spent = [_verified(folder) for _ in range(given.rounds)]
    spread = f"({min(spent):.2f} to {max(spent):.2f}, n = {len(spent)})"
    print(f"verify {statistics.median(spent):6.2f} s CPU {spread}")


def _verified(folder: Path) -> float:
    """Verify once and return the CPU seconds of the process."""
    command = [sys.executable, "-c", _VERIFY, "verify", "bundle.zip", "--trust", "trust.json"]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit("The bundle does not pass.")
    return used.ru_utime + used.ru_stime


def _make(folder: Path, slots: int, records: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.toml").write_text(_POLICY % slots)
    policy = read_policy(folder / "policy.toml")
    [mechanism] = policy.tenants.values()
    rng = np.random.default_rng(1)
    start = time.process_time()
    rows = quantise(rng.normal(size=(slots, 384)), mechanism)
    contents = {"clinic": Contents(rows, ["5e" * 32] * slots)}
    embedder = CommittedEmbedder({"weights": "5e" * 32}, bytes(32))
    open_window(folder / "window", policy, contents, embedder, (_LOG,))
    start = _told("commit", start)
    window = _served(folder, policy, rng)
    close_window(window)
    start = _told("serve and close", start)
    closed = Checkpoint(_LOG.name, window.ledger.log.size, window.ledger.log.root())
    challenge = make_challenge(_BEACON, closed, _ACCOUNTS * _QUERIES, records)
    (folder / "bundle.zip").write_bytes(prove_window(window, challenge))
    _told("prove", start)
    token = checkpoint_token(closed.size, closed.root)
    signers = Signers((_LOG.public,))
    pins = Pins(policy=policy.digest)
    noise_beacon = bytes.fromhex(_NOISE)
    opened = checkpoint_token(1, window.ledger.log.root(1))
    trust = Trust(signers, _BEACON, records, token, pins, noise_beacon, opened)
    (folder / "trust.json").write_bytes(trust.encode())


def _served(folder: Path, policy: WindowPolicy, rng: np.random.Generator) -> Window:
    window = Window.load(folder / "window", (_LOG,))
    [(tenant, mechanism)] = policy.tenants.items()
    window.begin(_NOISE, "a benchmark")
    keys = {f"account-{at}": PrivateKey.generate("account") for at in range(_ACCOUNTS)}
    names = list(keys)
    for name, key in keys.items():
        window.admit(tenant, name, key.public.material)
    vectors = quantise(rng.normal(size=(_ACCOUNTS * _QUERIES, 384)), mechanism)
    for turn, vector in enumerate(vectors):
        text = f"question {turn}"
        query = sha256(text.encode()).hexdigest()
        name = names[turn % _ACCOUNTS]
        asked = Request(tenant, name, query, vector, f"{turn}", window.checkpoint, text)
        window.record(sign_request(keys[name], policy.window, asked, turn // _ACCOUNTS))
    return window


def _told(name: str, start: float) -> float:
    now = time.process_time()
    print(f"{name:16} {now - start:8.2f} s CPU", flush=True)
    return now


if __name__ == "__main__":
    main()
