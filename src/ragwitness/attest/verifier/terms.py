"""The verifier's terms, and the statements of a verdict that no check decides.

The reader of a pass was not present. So it states the promise, the contents of the bundle, and its
assumptions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ragwitness.attest.openings import WindowOpening, provider_signers
from ragwitness.attest.plain_words import first_lines, odds_line
from ragwitness.attest.policy import MOST_EPSILON, joint_epsilon
from ragwitness.attest.trust import policy_terms, weak_points, worth_of
from ragwitness.attest.verdict import BundleVerdict, NotCheckedError, Numbers, extends
from ragwitness.attest.verifier.bundle_evidence import BundleEvidence, VerifierCase
from ragwitness.attest.verifier.checks import receipted
from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.crypto.hashing import leaf_hash
from ragwitness.crypto.notes import open_checkpoint
from ragwitness.crypto.proofs.arithmetic import TAU
from ragwitness.privacy.bounds import audit_epsilon
from ragwitness.privacy.odometer import Odometer, Terms

_MOST_NAMED = 20


def pinned_policy(case: VerifierCase) -> str:
    """Check that the policy is the one that the verifier names, or keeps its bounds."""
    trust = case.trusted("nothing says which policy will do")
    policy, pins = case.evidence.policy, trust.pins
    if not pins.on_policy:
        raise NotCheckedError(
            "the trust file pins no policy, so that the provider's own decides what passes (write"
            " what you accept with: ragwitness attest pin)",
            needed=True,
        )
    # One policy by its digest, or any within bounds.
    fault = (
        f"The policy has the digest {policy.digest[:16]}…, and the trust file names"
        f" {pins.policy[:16]}…. A policy's digest is of one window: pin this one's, or bounds."
    )
    require(pins.policy in ("", policy.digest), "terms.policy", fault)
    if pins.bounds and (broken := pins.bounds.broken(policy)):
        faults = "; ".join(text for _, text in broken)
        raise VerificationError(
            f"terms.{broken[0][0]}", f"The policy breaks the trust file's bounds: {faults}."
        )
    how = "named by its digest" if pins.policy else "within the trust file's bounds"
    return f"{how}: {policy_terms(policy)}"


def pinned_embedder(case: VerifierCase) -> str:
    """Check that the committed embedder is the one that the verifier names."""
    pinned = "" if case.trust is None else case.trust.pins.embedder
    if not pinned:
        raise NotCheckedError("the trust file names no embedder")
    fault = "The committed embedder is not the trust file's."
    require(case.evidence.embedder.digest == pinned, "terms.embedder", fault)
    return f"{pinned[:16]}…, as in the trust file"


def openings(case: VerifierCase) -> str:
    """Check that the provider's log of its windows holds this one, and extends earlier states.

    Windows that others saw in it cannot be taken out again. Windows that it never held are in no
    file.
    """
    trust = case.trusted("nothing says whose log of windows this is")
    openings_log, earlier = case.evidence.openings, case.seen_of_provider
    signers = provider_signers(trust.notes, case.evidence.open.window)
    if openings_log is None or signers is None:
        raise NotCheckedError(
            "the bundle holds no log of the provider's windows: how many others there are is not"
            " known",
            needed=bool(earlier),
        )
    # 1. Signed, and whole. 2. This window is in it, under its policy.
    log, signed = openings_log.log, open_checkpoint(openings_log.note, signers).checkpoint
    fault = "The log of windows has another size than was signed for."
    require(signed.size == log.size, "openings.size", fault)
    extends(log, signed, "openings")
    opening = WindowOpening(leaf_hash(case.evidence.entries[0]).hex(), case.evidence.policy)
    missing = "The provider's log of windows does not hold this one."
    require(opening in openings_log.openings, "openings.missing", missing)
    # 3. It extends the states that others saw.
    for data in earlier:
        state = open_checkpoint(data, signers).checkpoint
        if state.size > log.size:
            raise NotCheckedError(
                f"the provider's log had {state.size:,} windows when somebody else saw it, and"
                f" {log.size:,} in this bundle: {state.size - log.size:,} are hidden, or"
                " were opened since (ask for a bundle of today: ragwitness attest prove)",
                needed=True,
            )
        extends(log, state, "openings")
    return f"{log.size:,} windows on {signers.origin}, this one among them"


def listed(evidence: BundleEvidence, provider: str) -> str:
    """Return the name, size and root of the log of windows."""
    assert evidence.openings is not None  # noqa: S101  # the check of that name has passed
    log = evidence.openings.log
    return f"{provider} up to its window {log.size:,} (root {log.root().hex()[:16]}…)"


def remarks(evidence: BundleEvidence) -> list[str]:
    """Return the policy's weak points, and the opened records without their text."""
    # The policy's weak points first, then the missing texts.
    weak = weak_points(evidence.policy)
    texts = [f"Weak in the policy: {'; '.join(weak)}."] if weak else []
    withheld = [number for number, _, opening in evidence.challenged if opening.text is None]
    if withheld:
        named = ", ".join(f"{number:,}" for number in withheld[:_MOST_NAMED])
        more = f" and {len(withheld) - _MOST_NAMED:,} more" if len(withheld) > _MOST_NAMED else ""
        texts.append(
            f"Texts withheld: {len(withheld):,} of {len(evidence.disclosures):,} opened records"
            f" came without the text of their query (record {named}{more}), by the provider's"
            " choice. Nothing checks that these were searched by the vectors of their queries (A1)."
        )
    return texts


def learned(evidence: BundleEvidence) -> tuple[str, ...]:
    """Return the contents of the bundle that its holder learns; no epsilon covers them."""
    # Noise and texts of opened records, and the vectors of all queries.
    opened = len(evidence.disclosures)
    texts = sum(opening.text is not None for opening in evidence.disclosures)
    return (
        f"The sub-seeds of {opened:,} answers, which take their noise off: no epsilon holds for"
        " these towards whoever holds the bundle.",
        f"The vectors of all {len(evidence.queries):,} queries with their accounts, and the texts"
        f" of {texts:,}.",
    )


def lead(case: VerifierCase, verdict: BundleVerdict, numbers: Sequence[Numbers]) -> tuple[str, ...]:
    """Return the first lines of a verdict, with the worst index's epsilon as odds."""
    policy, figures = case.evidence.policy, ""
    if verdict.outcome == "pass":
        worst = max(number.exact or math.inf for number in numbers)
        figures = odds_line(worst, policy.joint_delta, policy.k_max, policy.relation)
    signer = "the provider" if case.trust is None else case.trust.notes.origin
    records = f"{len(case.evidence.challenge.records):,}"
    return first_lines(verdict, "window", figures, signer=signer, records=records)


def covers(case: VerifierCase) -> tuple[str, ...]:
    """Return the subject of the outcome, and the worth of an answer of the window."""
    policy, answered = case.evidence.policy, Counter(r.tenant for _, r in case.evidence.queries)
    answers = ", ".join(
        f"{answered[name]:,} from {name}, each of which names {mechanism.top} of"
        f" {mechanism.capacity:,} slots"
        for name, mechanism in policy.tenants.items()
    )
    return (
        f"Answers: {answers}. The selection of documents, not the text that is written from them.",
        *(f"{worth}." for worth in worth_of(policy)),
    )


def rests(case: VerifierCase) -> tuple[str, ...]:
    """Return the assumptions of the verdict, and the parties that vouch for them."""
    return (*_keys(case), _embedder(case))


def uncovered(case: VerifierCase, *, listed: bool) -> tuple[str, ...]:
    """Return the limits of the outcome."""
    return (
        *_windows(case, listed=listed),
        "That the provider alone has its seed, which takes the noise off every answer: no stranger"
        " can check.",
        "That a slot's vector is that of its document, or what a generator makes of documents.",
    )


def _windows(case: VerifierCase, *, listed: bool) -> list[str]:
    """Return the limits by other windows: those on the provider's log, and those on none."""
    # Windows of the log over other indexes are named, but not counted.
    log, names = case.evidence.openings, case.evidence.policy.tenants
    if log is None or not listed:
        return [
            "Other windows: the bundle holds no log of them. Windows add up: an account that asks"
            " in several, over the same documents, learns from all their answers together."
        ]
    windows = Counter(name for opening in log.openings for name in opening.policy.tenants)
    apart = ", ".join(f"{n} ({count:,})" for n, count in windows.items() if n not in names)
    return [
        f"Windows by another key or log than {case.provider}, and any that it did not log.",
        "Documents that are in an index of another name, too"
        + (f"; the log has windows over {apart}, which are not counted." if apart else "."),
        *["That other windows' noise is what they promise: see their bundles."]
        * (len(log.openings) > 1),
    ]


def _keys(case: VerifierCase) -> list[str]:
    # Ceremony, beacon and witnesses, each with its assumption.
    trust = case.trust
    quorum = 0 if trust is None else trust.notes.quorum
    watched = (
        f"Witnesses: {quorum:,} of those in the trust file have signed the log's opening and its"
        " close."
        if quorum
        else "Witnesses: none is asked for. When the window was opened, and that there is one log,"
        " is the provider's word, unless accounts show theirs."
    )
    return [
        f"Proofs: the public KZG ceremony for EIP-4844 (2023; [tau]2 {TAU.hex()[:16]}…), if one of"
        " its more than 140,000 contributors forgot a secret number.",
        "Challenge: that the provider did not know its beacon before the close, which no file"
        " shows.",
        watched,
    ]


def _embedder(case: VerifierCase) -> str:
    # A committed name alone leaves the model to its server.
    committed = case.evidence.embedder
    identity = (
        "it is committed to by its name alone; its server vouches for the model that answered"
        if committed.by_name_alone
        else "its files are committed to"
    )
    prompt = (
        "the prompt template is" if "template" in committed.artifacts else "no prompt template is"
    )
    again = "" if case.embed else " No text was embedded again (--embedder)."
    return f"Embedder: {identity}; {prompt} committed to.{again}"


# The numbers of a verdict: the paper's, the exact one, and the odometer's. All are at the policy's
# delta*, so that they can be compared.


def hollow(numbers: tuple[Numbers, ...]) -> list[str]:
    """Return the tenants whose numbers promise nothing."""
    return [
        f"no epsilon is shown for {number.tenant} at delta*"
        if number.exact is None
        else f"epsilon {number.exact:.3g} of {number.tenant} promises nothing"
        for number in numbers
        if number.exact is None or number.exact > MOST_EPSILON
    ]


def number_remarks(case: VerifierCase, numbers: tuple[Numbers, ...]) -> tuple[str, ...]:
    """Return remarks about the numbers and the accounts."""
    texts = [
        f"{n.tenant}: all {n.answers:,} answers together come to epsilon {n.odometer:.3g}, more"
        f" than the {n.exact:.3g} of k_max accounts: the declared cap understates the load."
        for n in numbers
        if n.odometer is not None and n.exact is not None and n.odometer > n.exact
    ]
    queries, receipts = case.evidence.queries_of, receipted(case)
    pinned = {} if case.trust is None else case.trust.pins.accounts
    bare = {name: n for name, n in queries.items() if name not in pinned and not receipts[name]}
    if bare:
        names = next(iter(bare)) if len(bare) == 1 else f"{len(bare):,} accounts"
        texts.append(
            f"{names}: neither a receipt nor a key in your terms. The provider may have invented"
            f" their queries ({sum(bare.values()):,} of {queries.total():,}), under own keys."
        )
    # One history for all takes a witness or a checkpoint from elsewhere.
    watched = case.trust is not None and case.trust.notes.quorum
    if queries and not (case.seen_of_window or watched):
        texts.append(
            f"{sum(receipts[name] > 0 for name in queries):,} of {len(queries):,} accounts showed"
            " receipts. Without a witness or a checkpoint from elsewhere nothing says that the"
            " others saw this log, and no other."
        )
    return tuple(texts)


def numbers_of(evidence: BundleEvidence, name: str, *, listed: bool) -> Numbers:
    """Return the numbers of a tenant.

    Args:
        evidence: Of the bundle.
        name: The tenant.
        listed: Whether the provider's log of its windows is in the bundle, and holds.
    """
    policy = evidence.policy
    mechanism, goal = policy.tenants[name], policy.joint_delta
    # The paper's number from the label, the exact one of k_max accounts, and the odometer's of
    # all accounts.
    cap = policy.k_max * policy.queries
    paper, reason = None, ""
    try:  # (5.2), from the epsilon on the label
        label = (policy.epsilon, policy.delta, policy.queries)
        paper = audit_epsilon(*label, policy.k_max, policy.joint_delta)
    except InputError as error:
        reason = error.message
    rows = [i for i, (_, record) in enumerate(evidence.queries) if record.tenant == name]
    odometer: float | None = 0.0
    if rows:
        meter = Odometer(Terms.of(mechanism, 1.0, policy.relation))
        meter.add(evidence.vectors[rows])
        odometer = mechanism.epsilon_at(goal, meter.mu(), len(rows))
    # All windows over this index, where their log was checked.
    windows, together = None, None
    if listed and evidence.openings is not None:
        windows, together = evidence.openings.epsilon(name, goal, policy.relation)
    return Numbers(
        tenant=name,
        delta=goal,
        paper=paper,
        why=reason,
        exact=joint_epsilon(policy, mechanism),
        odometer=odometer,
        answers=len(rows),
        cap=cap,
        windows=windows,
        together=together,
    )
