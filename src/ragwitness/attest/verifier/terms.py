"""What a verifier asks beside proofs, and what a verdict says that no check decides.

A pass is for somebody who was not there. It has to say what was promised, what the bundle tells
whoever holds it, and whose word it rests on.
"""

from __future__ import annotations

from collections import Counter

from ragwitness.attest.commitments import coins_of
from ragwitness.attest.openings import WindowOpening, provider_signers
from ragwitness.attest.policy import MOST_EPSILON, joint_epsilon
from ragwitness.attest.trust import policy_terms, weak_points, worth_of
from ragwitness.attest.verdict import NotCheckedError, Numbers, extends, refuse
from ragwitness.attest.verifier.bundle_evidence import BundleEvidence, VerifierCase
from ragwitness.attest.verifier.checks import receipted
from ragwitness.core.errors import InputError
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
    if pins.policy and pins.policy != policy.digest:
        raise refuse(
            "terms.policy",
            f"The policy has the digest {policy.digest[:16]}…, and the trust file names"
            f" {pins.policy[:16]}…. A policy's digest is of one window: pin this one's, or bounds.",
        )
    if pins.bounds and (broken := pins.bounds.broken(policy)):
        said = "; ".join(what for _, what in broken)
        raise refuse(f"terms.{broken[0][0]}", f"The policy breaks the trust file's bounds: {said}.")
    how = "named by its digest" if pins.policy else "within the trust file's bounds"
    return f"{how}: {policy_terms(policy)}"


def pinned_embedder(case: VerifierCase) -> str:
    """Check that the committed embedder is the one that the verifier names."""
    pinned = "" if case.trust is None else case.trust.pins.embedder
    if not pinned:
        raise NotCheckedError("the trust file names no embedder")
    if case.evidence.embedder.digest != pinned:
        raise refuse("terms.embedder", "The committed embedder is not the trust file's.")
    return f"{pinned[:16]}…, as in the trust file"


def openings(case: VerifierCase) -> str:
    """Check that the provider's log of its windows holds this one, and grew from what others saw.

    What it held when somebody else saw it is not taken out again; what was never in it is in no
    file.
    """
    trust, held = case.trusted("nothing says whose log of windows this is"), case.evidence.openings
    seen = case.seen_of_provider
    signers = provider_signers(trust.notes, case.evidence.open.window)
    if held is None or signers is None:
        raise NotCheckedError(
            "the bundle holds no log of the provider's windows: how many others there are is not"
            " known",
            needed=bool(seen),
        )
    # 1. Signed, and whole. 2. This window is in it, under its policy.
    signed = open_checkpoint(held.note, signers).checkpoint
    if signed.size != held.log.size:
        raise refuse("openings.size", "The log of windows has another size than was signed for.")
    extends(held.log, signed, "openings")
    own = WindowOpening(leaf_hash(case.evidence.entries[0]).hex(), case.evidence.policy)
    if own not in held.openings:
        raise refuse("openings.missing", "The provider's log of windows does not hold this one.")
    # 3. It holds what others saw of it.
    for data in seen:
        shown = open_checkpoint(data, signers).checkpoint
        if shown.size > held.log.size:
            raise NotCheckedError(
                f"the provider's log had {shown.size:,} windows when somebody else saw it, and"
                f" {held.log.size:,} in this bundle: {shown.size - held.log.size:,} are hidden, or"
                " were opened since (ask for a bundle of today: ragwitness attest prove)",
                needed=True,
            )
        extends(held.log, shown, "openings")
    return f"{held.log.size:,} windows on {signers.origin}, this one among them"


def listed(evidence: BundleEvidence, provider: str) -> str:
    """Return which log of windows was read, and how far."""
    assert evidence.openings is not None  # noqa: S101  # the check of that name has passed
    log = evidence.openings.log
    return f"{provider} up to its window {log.size:,} (root {log.root().hex()[:16]}…)"


def remarks(evidence: BundleEvidence) -> list[str]:
    """Return what is weak about the policy, and which opened records came without their text."""
    weak = weak_points(evidence.policy)
    said = [f"Weak in the policy: {'; '.join(weak)}."] if weak else []
    bare = [place for place, _, found in evidence.challenged if found.text is None]
    if bare:
        named = ", ".join(f"{place:,}" for place in bare[:_MOST_NAMED])
        more = f" and {len(bare) - _MOST_NAMED:,} more" if len(bare) > _MOST_NAMED else ""
        said.append(
            f"Texts withheld: {len(bare):,} of {len(evidence.disclosures):,} opened records came"
            f" without the text of their query (record {named}{more}), by the provider's choice."
            " Nothing checks that these were searched by the vectors of their queries (A1)."
        )
    return said


def learned(evidence: BundleEvidence) -> tuple[str, ...]:
    """Return what whoever holds the bundle learns, for whom epsilon does not speak."""
    opened = len(evidence.disclosures)
    texts = sum(found.text is not None for found in evidence.disclosures)
    noise = (
        f"The answers to {opened:,} queries are opened; their noise is proved and stays closed."
        if coins_of(evidence.policy)
        else f"The sub-seeds of {opened:,} answers, which take their noise off: no epsilon holds"
        " for these towards whoever holds the bundle."
    )
    return (
        noise,
        f"The vectors of all {len(evidence.queries):,} queries with their accounts, and the texts"
        f" of {texts:,}.",
    )


def covers(case: VerifierCase) -> tuple[str, ...]:
    """Return what the outcome is about, and what an answer of the window is worth."""
    policy, asked = case.evidence.policy, Counter(r.tenant for _, r in case.evidence.queries)
    answers = ", ".join(
        f"{asked[name]:,} of {one.top} of {one.capacity:,} slots for {name}"
        for name, one in policy.tenants.items()
    )
    return (
        f"Answers: {answers}. The selection of documents, not the text that is written from them.",
        *(f"{said}." for said in worth_of(policy)),
    )


def rests(case: VerifierCase) -> tuple[str, ...]:
    """Return on whose word the verdict rests, and for what."""
    return (*_keys(case), _embedder(case))


def uncovered(case: VerifierCase, *, listed: bool) -> tuple[str, ...]:
    """Return what the outcome does not say."""
    return (
        *_windows(case, listed=listed),
        "That nobody else has the provider's seed, which takes the noise off every answer: no"
        " stranger can check.",
        "That a slot's vector is that of its document, or what a generator makes of documents.",
    )


def _windows(case: VerifierCase, *, listed: bool) -> list[str]:
    """What other windows add: those that the provider's log shows, and those that none shows."""
    held, names = case.evidence.openings, case.evidence.policy.tenants
    if held is None or not listed:
        return [
            "Other windows: the bundle holds no log of them. Windows add up: whoever asks in"
            " several, over the same documents, learns from all their answers together."
        ]
    other = Counter(name for one in held.openings for name in one.policy.tenants)
    apart = ", ".join(f"{n} ({count:,})" for n, count in other.items() if n not in names)
    return [
        f"Windows by another key or log than {case.provider}, and any that it did not log.",
        "Documents that stand in an index of another name, too"
        + (f"; the log has windows over {apart}, which are not counted." if apart else "."),
        *["That other windows' noise is what they promise: see their bundles."]
        * (len(held.openings) > 1),
    ]


def _keys(case: VerifierCase) -> list[str]:
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
    found = case.evidence.embedder
    what = (
        "it is committed to by its name alone; which model answered rests on the word of whoever"
        " serves it"
        if found.by_name_alone
        else "its files are committed to"
    )
    prompt = "the prompt template is" if "template" in found.artifacts else "no prompt template is"
    again = "" if case.embed else " No text was embedded again (--embedder)."
    return f"Embedder: {what}; {prompt} committed to.{again}"


# The numbers of a verdict: the paper's, the exact one, and the odometer's.
#
# All at the policy's delta*, so that they can be compared.


def hollow(numbers: tuple[Numbers, ...]) -> list[str]:
    """Return of which tenants the numbers promise nothing."""
    return [
        f"no epsilon is shown for {number.tenant} at delta*"
        if number.exact is None
        else f"epsilon {number.exact:.3g} of {number.tenant} promises nothing"
        for number in numbers
        if number.exact is None or number.exact > MOST_EPSILON
    ]


def number_remarks(case: VerifierCase, numbers: tuple[Numbers, ...]) -> tuple[str, ...]:
    """Return what a reader should know and no check decides."""
    said = [
        f"{n.tenant}: all {n.answers:,} answers together come to epsilon {n.odometer:.3g}, more"
        f" than the {n.exact:.3g} of k_max accounts: the declared cap understates the load."
        for n in numbers
        if n.odometer is not None and n.exact is not None and n.odometer > n.exact
    ]
    if coins_of(case.evidence.policy):
        said.append(
            "The noise of opened records is proved and stays closed: whoever holds the bundle"
            " learns of it what the accounts do. That the provider told nobody its part cannot be"
            " proved. No odometer meters this noise; the exact number counts answers."
        )
    asked = Counter(f"{one.tenant}/{one.account}" for _, one in case.evidence.queries)
    shown, pinned = receipted(case), {} if case.trust is None else case.trust.pins.accounts
    bare = {who: n for who, n in asked.items() if who not in pinned and not shown[who]}
    if bare:
        who = next(iter(bare)) if len(bare) == 1 else f"{len(bare):,} accounts"
        said.append(
            f"{who}: neither a receipt nor a key in your terms. The provider may have invented what"
            f" the log has of {'it' if len(bare) == 1 else 'them'} ({sum(bare.values()):,} of"
            f" {asked.total():,} queries), under keys of its own."
        )
    watched = case.trust is not None and case.trust.notes.quorum
    if asked and not (case.seen_of_window or watched):
        said.append(
            f"{sum(shown[who] > 0 for who in asked):,} of {len(asked):,} accounts showed receipts."
            " Without a witness or a checkpoint from elsewhere nothing says that the others saw"
            " this log, and no other."
        )
    return tuple(said)


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
    paper, why = None, ""
    try:  # (5.2), from the epsilon on the label
        label = (policy.epsilon, policy.delta, policy.queries)
        paper = audit_epsilon(*label, policy.k_max, policy.joint_delta)
    except InputError as error:
        why = error.message
    asked = [i for i, (_, record) in enumerate(evidence.queries) if record.tenant == name]
    odometer: float | None = 0.0
    if mechanism.coins:  # no odometer meters it (docs/design/noise.md)
        odometer = None
    elif asked:
        meter = Odometer(Terms.of(mechanism, 1.0, policy.relation))
        meter.add(evidence.vectors[asked])
        odometer = mechanism.epsilon_at(goal, meter.mu(), len(asked))
    windows, together = None, None
    if listed and evidence.openings is not None:
        windows, together = evidence.openings.epsilon(name, goal, policy.relation)
    return Numbers(
        tenant=name,
        delta=goal,
        paper=paper,
        why=why,
        exact=joint_epsilon(policy, mechanism),
        odometer=odometer,
        answers=len(asked),
        cap=cap,
        windows=windows,
        together=together,
    )
