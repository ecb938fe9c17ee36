"""Verification of a bundle: cheap checks first, all of them; proofs only once nothing is wrong.

Pure functions over bytes: no file, no network, no index. :func:`verify` is the one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ragwitness.attest.archive import Archive
from ragwitness.attest.bundle import EARLIER, OPENINGS, Bundle, read_bundle
from ragwitness.attest.challenge import detection
from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import (
    BundleVerdict,
    Check,
    NotCheckedError,
    Sampling,
    VerifierStep,
    admit,
    all_steps,
    deadline_of,
    unread,
    unsigned,
    verdict_on,
)
from ragwitness.attest.verifier import checks, proofs, terms
from ragwitness.attest.verifier.bundle_evidence import Embed, VerifierCase, read_evidence
from ragwitness.core.errors import VerificationError
from ragwitness.crypto.entries import read_entries
from ragwitness.crypto.proofs.arithmetic import POINT_BYTES


def _steps(
    checks_by_name: dict[str, Callable[[VerifierCase], str]],
) -> tuple[VerifierStep[VerifierCase], ...]:
    return tuple(VerifierStep(*pair) for pair in checks_by_name.items())


CHEAP = _steps(
    {  # The key of these files.
        "bundle.note": checks.bundle_note,
        # The log: signed, complete, and the one that others saw.
        "log.open": checks.open_note,
        "log.close": checks.close_note,
        "log.root": checks.rebuilt,
        "log.seen": checks.seen_elsewhere,
        "log.openings": terms.openings,
        # The commitments before the first query (phase A).
        "policy": checks.policy,
        "policy.label": checks.label,
        "policy.pinned": terms.pinned_policy,
        "embedder": checks.embedder,
        "embedder.pinned": terms.pinned_embedder,
        "indexes": checks.indexes,
        # The answers (phase B), and the close (phase C).
        "records": checks.replay,
        "beacon": checks.beacon,
        "close": checks.close,
        "vectors": checks.committed,
        "receipts": checks.kept,
        "accounts": checks.covered,
        # The challenge and the openings (phase D).
        "challenge.beacon": proofs.beacon,
        "challenge.drawn": proofs.drawn,
        "openings": proofs.opened,
        "seeds": proofs.seeds,
    }
)
"""Checks that multiply no points, in the order in which they are results."""

_GIVE_KEY = "Give the log's key: --trust trust.json"
_OF_POINTS = ("columns.bin", "norms.bin", ".proof")

PROOFS = _steps(
    {  # R5, then the proofs, then the check that needs an embedder.
        "coalition": checks.coalition,
        "norms": proofs.norms,
        "answers": proofs.links,
        "embedding": proofs.embedded,
    }
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
        trust: The verifier's own knowledge; without it a bundle cannot pass.
        receipts: Files that accounts handed in.
        seen: Signed checkpoints of this log from elsewhere.
        embed: The committed embedder, where the verifier has it.
        progress: Called with (what, done, all) during the slow checks.

    Raises:
        MissingExtraError: The curve's package is not installed.
    """
    try:
        if trust is None:
            admit(_GIVE_KEY, bytes=len(data))
        bundle = read_bundle(data, trust.notes.log if trust else ())
        if trust is None:
            admit(_GIVE_KEY, **_work_of(bundle))
    except NotCheckedError as error:
        return unsigned("bundle", error)
    except VerificationError as error:
        if error.check == EARLIER:  # an honest bundle of an earlier release is no failure
            return BundleVerdict(
                "inconclusive", str(error), (Check("bundle", "not checked", str(error)),)
            )
        return unread("bundle", error)
    in_time = deadline_of(known=trust is not None)
    # The forms of all files.
    results = [Check("bundle", "pass", f"{len(bundle.files):,} files in their one form")]
    try:
        evidence = read_evidence(bundle)
    except VerificationError as error:
        results.append(Check("files", "fail", error.message, error.check))
        return verdict_on(results, (), "", bundle.window)

    # All cheap checks, then the slow ones.
    def advanced(*at: Any) -> None:
        in_time()
        if progress is not None:
            progress(*at)

    case = VerifierCase(evidence, trust, receipts, seen, embed, advanced)
    results, lacking = all_steps(results, CHEAP, PROOFS, case, in_time)
    listed = any(check.name == "log.openings" and check.status == "pass" for check in results)
    # The numbers of each tenant; a verdict may fall short by them.
    numbers = tuple(
        terms.numbers_of(evidence, name, listed=listed)
        for name in evidence.policy.tenants
        if all(check.status != "fail" for check in results)
    )
    verdict = verdict_on(
        results,
        [*lacking, *terms.hollow(numbers)],
        "every check that was made holds",
        bundle.window,
    )
    verdict = replace(verdict, lead=terms.lead(case, verdict, numbers))
    # No check failed: add the numbers and the statements.
    if verdict.outcome == "fail":
        return verdict
    return replace(
        verdict,
        numbers=numbers,
        sampling=sampling_of(len(evidence.queries), len(evidence.challenge.records)),
        listed=terms.listed(evidence, case.provider) if listed else "",
        covers=terms.covers(case),
        notes=(*terms.number_remarks(case, numbers), *terms.remarks(evidence)),
        learned=terms.learned(evidence),
        rests=terms.rests(case),
        uncovered=terms.uncovered(case, listed=listed),
    )


def _work_of(bundle: Bundle) -> dict[str, int]:
    """Return the rows of a bundle's logs, and its points, by the sizes of its files alone."""
    logs = ("log/entries.bin", OPENINGS[0])
    rows = sum(1 for name in logs for _ in read_entries(bundle.files.get(name, b"")))
    proofs = (len(data) for name, data in bundle.files.items() if name.endswith(_OF_POINTS))
    return {"rows": rows, "points": sum(proofs) // POINT_BYTES}


def sampling_of(population: int, count: int) -> Sampling:
    """Return the chances that ``count`` records include one of 1 bad record, or of 1, 5 or 10 %."""
    bad = {1, *(max(1, -(-population * percent // 100)) for percent in (1, 5, 10))}
    chances = tuple((b, detection(population, b, count)) for b in sorted(bad))
    return Sampling(population, count, chances)
