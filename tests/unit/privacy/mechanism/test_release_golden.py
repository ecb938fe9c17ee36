"""One answer, bit for bit: whatever the machine, whatever its linear algebra."""

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import SlotIndex, release

KEY = bytes(range(32))
IDS = (123, 500, 691, 686, 753)
SCRIPT = """
from test_release_golden import KEY, SlotIndex, golden, release
mechanism, rows = golden()
index = SlotIndex(rows, mechanism)
print(release(rows[123], index, KEY, mechanism).ids)
print(index.inner_products(rows[:9]).sum(axis=1).tolist())
"""


def golden():
    raw = np.frombuffer(hashlib.shake_256(b"index").digest(2 * 1000 * 32), ">i2")
    rows = (raw.reshape(1000, 32).astype(np.int64) * 700 // 32768).astype(np.int16)
    mechanism = Mechanism(dimension=32, capacity=1024, top=5, variance=300**2, shift=13)
    return mechanism, rows


def test_the_same_key_gives_the_same_answer_on_every_platform():
    mechanism, rows = golden()
    index = SlotIndex(rows, mechanism)
    found = release(rows[123], index, KEY, mechanism)
    assert found.ids == IDS
    assert found.noisy == (933, 854, 844, 815, 800)
    exact = dataclasses.replace(mechanism, sampler="exact")
    assert release(rows[123], index, KEY, exact).ids == (815, 123, 349, 439, 772)


def test_another_kernel_of_the_linear_algebra_changes_nothing():
    # OpenBLAS picks its code by processor; its oldest adds in another order, without FMA.
    _, rows = golden()
    sums = (rows[:9].astype(np.int64) @ rows.T.astype(np.int64)).sum(axis=1)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "OPENBLAS_CORETYPE": "Prescott"},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{IDS}\n{sums.tolist()}\n"
