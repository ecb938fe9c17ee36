"""Verification of a bundle: cheap checks first, all of them; proofs only once nothing is wrong.

Pure functions over bytes: no file, no network, no index. :func:`verify` is the one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragwitness.attest.bundle import EARLIER, Archive, read_bundle
from ragwitness.attest.challenge import detection
from ragwitness.attest.steps import VerifierStep, run_steps
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import BundleVerdict, Check, Empirical, Sampling
from ragwitness.attest.verifier import checks, numbers, proofs, terms
from ragwitness.attest.verifier.case import Embed, VerifierCase
from ragwitness.attest.verifier.evidence import read_evidence
from ragwitness.errors import VerificationError

CHEAP = (
    # Whose files these are.
    VerifierStep("bundle.note", checks.bundle_note),
    # The log: signed, whole, and the one that everybody saw.
    VerifierStep("log.open", checks.open_note),
    VerifierStep("log.close", checks.close_note),
    VerifierStep("log.root", checks.rebuilt),
    VerifierStep("log.seen", checks.seen_elsewhere),
    # What was committed to before the first query (phase A).
    VerifierStep("policy", checks.policy),
    VerifierStep("policy.label", checks.label),
    VerifierStep("policy.pinned", terms.pinned_policy),
    VerifierStep("embedder", checks.embedder),
    VerifierStep("embedder.pinned", terms.pinned_embedder),
    VerifierStep("indexes", checks.indexes),
    # What was answered (phase B), and how the window was closed (phase C).
    VerifierStep("records", checks.replay),
    VerifierStep("beacon", checks.beacon),
    VerifierStep("close", checks.close),
    VerifierStep("vectors", checks.committed),
    VerifierStep("receipts", checks.kept),
    VerifierStep("accounts", checks.covered),
    # What was challenged and opened (phase D).
    VerifierStep("challenge.beacon", proofs.beacon),
    VerifierStep("challenge.drawn", proofs.drawn),
    VerifierStep("openings", proofs.opened),
    VerifierStep("seeds", proofs.seeds),
)
"""Checks that multiply no points, in the order in which they are made; all of them, always."""

PROOFS = (
    # R5, then the proofs, then what needs an embedder or an attack.
    VerifierStep("coalition", checks.coalition),
    VerifierStep("norms", proofs.norms),
    VerifierStep("answers", proofs.links),
    VerifierStep("embedding", proofs.embedded),
    VerifierStep("attack", numbers.attacked),
)
"""Checks that take long; made once all cheap ones hold, so that no stranger can ask for them."""


def verify(
    data: Archive,
    trust: Trust | None,
    *,
    receipts: Sequence[bytes] = (),
    seen: Sequence[bytes] = (),
    embed: Embed | None = None,
    empirical: Empirical | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> BundleVerdict:
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
        MissingExtraError: The curve's package is not installed.
    """
    try:
        bundle = read_bundle(data)
    except VerificationError as error:
        said = " ".join(filter(None, (error.message, error.hint)))
        if error.check == EARLIER:  # nothing is wrong with it that this version could see
            return BundleVerdict("inconclusive", said, (Check("bundle", "not checked", said),))
        return _failed([Check("bundle", "fail", said, error.check)])
    made = [Check("bundle", "pass", f"{len(bundle.files):,} files in their one form")]
    evidence = read_evidence(bundle)
    if isinstance(evidence, list):
        wrong = [Check("files", "fail", error.message, error.check) for error in evidence]
        return _failed([*made, *wrong], window=bundle.window)
    case = VerifierCase(
        evidence, trust, receipts, seen, embed, empirical, progress or (lambda *_: None)
    )
    # Cheap checks, all of them; proofs only once nothing is wrong.
    cheap, lacking = run_steps(CHEAP, case)
    made += cheap
    if _fails(made):
        waiting = [Check(step.name, "not checked", "a cheaper check failed") for step in PROOFS]
        return _failed([*made, *waiting], window=bundle.window)
    late, more = run_steps(PROOFS, case)
    made += late
    lacking += more
    sampling = sampling_of(len(evidence.queries), len(evidence.challenge.records))
    if _fails(made):
        return _failed(made, window=bundle.window, sampling=sampling)
    # Nothing is wrong: the numbers, and whether they promise anything.
    tenants = evidence.policy.tenants
    found = tuple(numbers.numbers_of(evidence, name, empirical) for name in tenants)
    lacking += numbers.hollow(found)
    return BundleVerdict(
        outcome="inconclusive" if lacking else "pass",
        why="consistent in itself, but " + "; ".join(dict.fromkeys(lacking))
        if lacking
        else "every check that was made holds",
        checks=tuple(made),
        window=bundle.window,
        numbers=found,
        sampling=sampling,
        covers=terms.covers(case),
        notes=(*numbers.remarks(case, found), *terms.remarks(evidence)),
        learned=terms.learned(evidence),
        rests=terms.rests(case),
    )


def _fails(made: Sequence[Check]) -> bool:
    return any(check.status == "fail" for check in made)


def _failed(
    made: Sequence[Check], window: str = "", sampling: Sampling | None = None
) -> BundleVerdict:
    first = next(check for check in made if check.status == "fail")
    why = f"{first.failure}: {first.detail}"
    return BundleVerdict("fail", why, tuple(made), window=window, sampling=sampling)


def sampling_of(population: int, count: int) -> Sampling:
    """Return what proving ``count`` records finds: of 1 bad one, and of 1, 5 and 10 % of all."""
    bad = {1, *(max(1, -(-population * percent // 100)) for percent in (1, 5, 10))}
    chances = tuple((b, detection(population, b, count)) for b in sorted(bad))
    return Sampling(population, count, chances)
