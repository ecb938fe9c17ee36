"""What a verifier asks beside proofs, and what a verdict says that no check decides.

A pass is for somebody who was not there. It has to say what was promised, what the bundle tells
whoever holds it, and whose word it rests on.
"""

from __future__ import annotations

from ragwitness.attest.noise import coins_of
from ragwitness.attest.pins import policy_terms, weak_points
from ragwitness.attest.steps import NotCheckedError, refuse
from ragwitness.attest.verifier.case import VerifierCase
from ragwitness.attest.verifier.evidence import BundleEvidence
from ragwitness.crypto.proofs.shape import TAU

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
        else f"The sub-seeds of {opened:,} answers are opened. Whoever holds the bundle can take"
        " their noise off, so that no epsilon holds for these answers towards them."
    )
    return (
        noise,
        f"The vectors of all {len(evidence.queries):,} queries are in it, with the accounts that"
        f" asked, and the texts of {texts:,} queries.",
    )


def covers(case: VerifierCase) -> tuple[str, ...]:
    """Return what the outcome is about, and what an answer of the window is worth."""
    evidence, found = case.evidence, list[str]()
    for name, mechanism in evidence.policy.tenants.items():
        asked = sum(record.tenant == name for _, record in evidence.queries)
        found.append(
            f"{name}: {asked:,} answers of {mechanism.top} of {mechanism.capacity:,} slots. A"
            f" perfect match is in one with chance {mechanism.worth:.2g}, any other slot with"
            f" {mechanism.top / mechanism.capacity:.2g}."
        )
    return (*found, "The selection of documents, not the text that is written from them.")


def rests(case: VerifierCase) -> tuple[str, ...]:
    """Return on whose word the verdict rests, and for what."""
    return (
        "Scope: epsilon is of this window and this index. Windows add up: whoever asks in several,"
        " over the same documents, learns from all their answers together.",
        *_keys(case),
        _embedder(case),
        "Seed: the provider drew it. That it is random and that nobody else has it is not checked;"
        " whoever has it can take the noise off every answer.",
        "Contents: that a slot's vector is that of its document, and what a generator does with the"
        " documents, is not checked.",
    )


def _keys(case: VerifierCase) -> list[str]:
    trust = case.trust
    quorum = 0 if trust is None else trust.notes.quorum
    watched = (
        f"Witnesses: {quorum:,} of those in the trust file have signed the log's opening and its"
        " close."
        if quorum
        else "Witnesses: none is asked for. Only the provider's word says when the window was"
        " opened, and that there is one log, unless accounts show what they were given."
    )
    return [
        f"Proofs: they rest on the powers of the public KZG ceremony for EIP-4844 (2023; [tau]2"
        f" {TAU.hex()[:16]}…). Nobody can prove what is false if one of its more than 140,000"
        " contributors forgot a secret number.",
        "Challenge: the provider must not have known the beacon before the close. No file shows"
        " when a beacon became known.",
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
