"""Verification of a bundle: cheap checks first, all of them; proofs only once nothing is wrong.

Pure functions over bytes: no file, no network, no index. :func:`verify` is the one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragwitness.attest.bundle import read_bundle
from ragwitness.attest.challenge import detection
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import Check, Empirical, Sampling, Verdict
from ragwitness.attest.verifying import (
    challenged,
    commitments,
    log,
    numbers,
    proofs,
    receipts,
    records,
    vectors,
)
from ragwitness.attest.verifying.evidence import read_evidence
from ragwitness.attest.verifying.steps import Case, Embed, Step, run_steps
from ragwitness.errors import VerificationError

__all__ = ["CHEAP", "PROOFS", "sampling_of", "verify"]

CHEAP = (
    Step("bundle.note", log.bundle_note),
    Step("setup.trusted", commitments.setup),
    Step("setup.shape", commitments.shape),
    Step("log.open", log.open_note),
    Step("log.close", log.close_note),
    Step("log.root", log.rebuilt),
    Step("log.seen", log.seen_elsewhere),
    Step("policy", commitments.policy),
    Step("policy.label", commitments.label),
    Step("embedder", commitments.embedder),
    Step("indexes", commitments.indexes),
    Step("records", records.replay),
    Step("close", records.close),
    Step("vectors", vectors.committed),
    Step("receipts", receipts.kept),
    Step("challenge.beacon", challenged.beacon),
    Step("challenge.drawn", challenged.drawn),
    Step("openings", challenged.opened),
    Step("seeds", challenged.seeds),
)
"""Checks that multiply no points, in the order in which they are made; all of them, always."""

PROOFS = (
    Step("coalition", vectors.coalition),
    Step("norms", proofs.norms),
    Step("answers", proofs.links),
    Step("embedding", challenged.embedded),
    Step("attack", numbers.attacked),
)
"""Checks that take long; made once all cheap ones hold, so that no stranger can ask for them."""


def verify(
    data: bytes,
    trust: Trust | None,
    *,
    receipts: Sequence[bytes] = (),
    seen: Sequence[bytes] = (),
    embed: Embed | None = None,
    empirical: Empirical | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verdict:
    """Return the verdict on a bundle (paper, §5.6).

    Args:
        data: The bundle.
        trust: What the verifier knows by itself; without it a bundle cannot pass.
        receipts: Files that accounts handed in.
        seen: Signed checkpoints of this log that others were shown.
        embed: The committed embedder, where the verifier has it.
        empirical: A lower bound that an attack has shown.
        progress: Called with (what, done, all) during the slow checks.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    try:
        bundle = read_bundle(data)
    except VerificationError as error:
        return _failed([Check("bundle", "fail", error.message, error.check)])
    made = [Check("bundle", "pass", f"{len(bundle.files):,} files in their one form")]
    evidence = read_evidence(bundle)
    if isinstance(evidence, list):
        wrong = [Check("files", "fail", error.message, error.check) for error in evidence]
        return _failed([*made, *wrong], window=bundle.window)
    case = Case(evidence, trust, receipts, seen, embed, empirical, progress or (lambda *_: None))
    return _judged(case, made)


def _judged(case: Case, made: list[Check]) -> Verdict:
    evidence = case.evidence
    cheap, lacking = run_steps(CHEAP, case)
    made += cheap
    if _fails(made):
        waiting = [Check(step.name, "not checked", "a cheaper check failed") for step in PROOFS]
        return _failed([*made, *waiting], window=evidence.bundle.window)
    late, more = run_steps(PROOFS, case)
    made += late
    lacking += more
    sampling = sampling_of(len(evidence.queries), len(evidence.challenge.records))
    if _fails(made):
        return _failed(made, window=evidence.bundle.window, sampling=sampling)
    found = numbers.numbers_of(evidence, case.empirical)
    lacking += numbers.hollow(found)
    return Verdict(
        outcome="inconclusive" if lacking else "pass",
        why=_why(lacking),
        checks=tuple(made),
        window=evidence.bundle.window,
        numbers=found,
        sampling=sampling,
        notes=numbers.remarks(case, found),
    )


def _fails(made: Sequence[Check]) -> bool:
    return any(check.status == "fail" for check in made)


def _failed(made: Sequence[Check], window: str = "", sampling: Sampling | None = None) -> Verdict:
    first = next(check for check in made if check.status == "fail")
    why = f"{first.failure}: {first.detail}"
    return Verdict("fail", why, tuple(made), window=window, sampling=sampling)


def _why(lacking: Sequence[str]) -> str:
    if not lacking:
        return "every check holds"
    return "consistent in itself, but " + "; ".join(dict.fromkeys(lacking))


def sampling_of(population: int, count: int) -> Sampling:
    """Return what proving ``count`` records finds: of 1 bad one, and of 1, 5 and 10 % of all."""
    bad = {1, *(max(1, -(-population * percent // 100)) for percent in (1, 5, 10))}
    chances = tuple((b, detection(population, b, count)) for b in sorted(bad))
    return Sampling(population, count, chances)
