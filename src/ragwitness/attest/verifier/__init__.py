"""Verification of a bundle: cheap checks first, all of them; proofs only once nothing is wrong.

Pure functions over bytes: no file, no network, no index. :func:`verify` is the one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ragwitness.attest.bundle import EARLIER, Archive, read_bundle
from ragwitness.attest.challenge import detection
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import (
    BundleVerdict,
    Check,
    Sampling,
    VerifierStep,
    all_steps,
    unread,
    verdict_on,
)
from ragwitness.attest.verifier import checks, proofs, terms
from ragwitness.attest.verifier.bundle_evidence import Embed, VerifierCase, read_evidence
from ragwitness.core.errors import VerificationError

CHEAP = (
    # Whose files these are.
    VerifierStep("bundle.note", checks.bundle_note),
    # The log: signed, whole, and the one that everybody saw.
    VerifierStep("log.open", checks.open_note),
    VerifierStep("log.close", checks.close_note),
    VerifierStep("log.root", checks.rebuilt),
    VerifierStep("log.seen", checks.seen_elsewhere),
    VerifierStep("log.openings", terms.openings),
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
"""Checks that multiply no points, in the order in which they are made."""

PROOFS = (
    # R5, then the proofs, then what needs an embedder.
    VerifierStep("coalition", checks.coalition),
    VerifierStep("norms", proofs.norms),
    VerifierStep("answers", proofs.links),
    VerifierStep("embedding", proofs.embedded),
)
"""Checks that take long."""


def verify(
    data: Archive,
    trust: Trust | None,
    *,
    receipts: Sequence[bytes] = (),
    seen: Sequence[bytes] = (),
    embed: Embed | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> BundleVerdict:
    """Return the verdict on a bundle (paper, §5.6).

    Args:
        data: The bundle.
        trust: What the verifier knows by itself; without it a bundle cannot pass.
        receipts: Files that accounts handed in.
        seen: Signed checkpoints of this log that others were shown.
        embed: The committed embedder, where the verifier has it.
        progress: Called with (what, done, all) during the slow checks.

    Raises:
        MissingExtraError: The curve's package is not installed.
    """
    try:
        bundle = read_bundle(data)
    except VerificationError as error:
        if error.check == EARLIER:  # nothing is wrong with it that this version could see
            said = f"{error.message} {error.hint}"
            return BundleVerdict("inconclusive", said, (Check("bundle", "not checked", said),))
        return unread("bundle", error)
    made = [Check("bundle", "pass", f"{len(bundle.files):,} files in their one form")]
    evidence = read_evidence(bundle)
    if isinstance(evidence, list):
        made += [Check("files", "fail", error.message, error.check) for error in evidence]
        return verdict_on(made, (), "", bundle.window)
    case = VerifierCase(evidence, trust, receipts, seen, embed, progress or (lambda *_: None))
    made, lacking = all_steps(made, CHEAP, PROOFS, case)
    listed = any(check.name == "log.openings" and check.status == "pass" for check in made)
    told = tuple(
        terms.numbers_of(evidence, name, listed=listed)
        for name in evidence.policy.tenants
        if all(check.status != "fail" for check in made)
    )
    found = verdict_on(
        made,
        [*lacking, *terms.hollow(told)],
        "every check that was made holds",
        bundle.window,
    )
    # Nothing is wrong: what it means.
    if found.outcome == "fail":
        return found
    return replace(
        found,
        numbers=told,
        sampling=sampling_of(len(evidence.queries), len(evidence.challenge.records)),
        listed=terms.listed(evidence, case.provider) if listed else "",
        covers=terms.covers(case),
        notes=(*terms.number_remarks(case, told), *terms.remarks(evidence)),
        learned=terms.learned(evidence),
        rests=terms.rests(case),
        uncovered=terms.uncovered(case, listed=listed),
    )


def sampling_of(population: int, count: int) -> Sampling:
    """Return what proving ``count`` records finds: of 1 bad one, and of 1, 5 and 10 % of all."""
    bad = {1, *(max(1, -(-population * percent // 100)) for percent in (1, 5, 10))}
    chances = tuple((b, detection(population, b, count)) for b in sorted(bad))
    return Sampling(population, count, chances)
