"""A bundle with anything in it changed: every field of every file, and 10,000 bits.

    python benchmarks/mutations.py [--flips 10000] [--seed 1] [--fields 1.0]

Two small windows with real proofs, signed requests, a beacon and pins: one opens the noise of
challenged answers, the other proves it. What is changed is signed by the provider's own key, so
that its signature refuses none of it; bits of the archive itself are flipped too. Each bundle goes
through the whole verifier. Prints by which check they fail, and every change that does not.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products: more threads only spin
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' small windows

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.trust import Pins, Trust, parse_trust
from ragwitness.attest.verifier import verify
from ragwitness.core.errors import InputError
from tests.support.attested import LOG, POLICY, Audited, make_audited
from tests.support.held import remember_proofs
from tests.support.mutations import changed_fields, changed_values, flipped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fields", type=float, default=1.0, help="share of the fields' changes")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        remember_proofs(patch)
        _tried(make_audited(Path(name, "window"), 3, POLICY), given, rng)


def _tried(audited: Audited, given: argparse.Namespace, rng: random.Random) -> None:
    honest = read_bundle(audited.bundle)
    pins = Pins(policy=audited.window.policy.digest)
    trust = replace(audited.trust, pins=pins)
    if _verdict(audited.bundle, trust) != "pass":
        raise SystemExit("The honest bundle does not pass.")
    names, files = sorted(honest.files), dict(honest.files)

    def signed(name: str, data: bytes) -> bytes:
        return write_bundle(honest.window, files | {name: data}, [LOG])

    # 1. Each field of each file, signed by the provider.
    every = ((name, *one) for name in names for one in changed_fields(name, files[name]))
    kept = [one for one in every if rng.random() < given.fields]
    _told("fields", ((f"{n} {w}", _verdict(signed(n, d), trust)) for n, w, d in kept))
    # 2. Single bits of files, signed by the provider.
    flips = (flipped(files, rng) for _ in range(given.flips))
    _told(
        "bits, signed",
        ((f"{n} {at}.{bit}", _verdict(signed(n, d), trust)) for n, at, bit, d in flips),
    )
    # 3. Single bits of the archive, by anybody.
    whole = {"": audited.bundle}
    flips = (flipped(whole, rng) for _ in range(given.flips))
    _told("bits", ((f"{at}.{bit}", _verdict(data, trust)) for _, at, bit, data in flips))
    # 4. Each field of the trust file: the verifier's own mistake passes nothing either.
    _told("trust", ((w, _verdict(audited.bundle, d)) for w, d in changed_values(trust.encode())))


def _verdict(data: bytes, trust: Trust | bytes) -> str:
    """Return the name of the first failure, or the outcome."""
    try:
        known = parse_trust(trust) if isinstance(trust, bytes) else trust
    except InputError:
        return "trust file refused"
    found = verify(data, known)
    return found.failures[0].failure if found.failures else found.outcome


def _told(how: str, verdicts: Iterable[tuple[str, str]]) -> None:
    start, names, passed = time.process_time(), Counter[str](), []
    for change, verdict in verdicts:
        names[verdict] += 1
        if verdict == "pass":
            passed.append(change)
    spent = time.process_time() - start
    print(f"{how}: {sum(names.values()):,} changes, {len(passed)} pass, {spent:.0f} s CPU")
    print("  " + ", ".join(f"{name} {count:,}" for name, count in names.most_common()))
    for change in passed:
        print(f"  passes: {change}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
