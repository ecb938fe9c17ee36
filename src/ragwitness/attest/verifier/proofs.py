"""Checks of the challenged records that need no proof: how they were drawn, what opens them."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from ragwitness.attest.challenge import Disclosure, draw_records, noise_of, noise_record_of
from ragwitness.attest.commitments import (
    answer_opening,
    checkpoint_token,
    coin_leaf,
    coins_of,
    largest,
    link_context,
    norm_context,
    public_coins_of,
    public_numbers,
    query_opening,
)
from ragwitness.attest.verdict import NotCheckedError, refuse
from ragwitness.attest.verifier.bundle_evidence import VerifierCase
from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import commit
from ragwitness.crypto.merkle import SeedOpening, verify_seed
from ragwitness.crypto.records import QueryRecord
from ragwitness.privacy.release import scaled

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.selection import AnswerClaim

_FLOATS = 2**-15  # of the scale: how far apart two machines' embeddings of a text may lie


def beacon(case: VerifierCase) -> str:
    """Check that the challenge is the verifier's: its randomness, its number, the close it saw.

    Another number draws other records, and so does another close; a provider that knows the beacon
    could try either until its bad records are missed.
    """
    trust = case.trusted("nothing says which randomness drew the records")
    # The three numbers that fix a draw, all of them the verifier's own.
    challenge, close = case.evidence.challenge, case.evidence.checkpoints[1]
    if not (trust.beacon and trust.records and trust.close):
        raise NotCheckedError(
            "the trust file does not hold beacon, number of records and close of a challenge, so"
            " that the provider may have chosen the records",
            needed=True,
        )
    if challenge.beacon != trust.beacon:
        raise refuse("challenge.beacon", "The challenge was drawn from another beacon.")
    if checkpoint_token(close.size, close.root) != trust.close:
        raise refuse("challenge.close", "The log was closed again after the challenge was drawn.")
    if len(challenge.records) != trust.records:
        raise refuse(
            "challenge.count",
            f"{len(challenge.records):,} records were challenged; {trust.records:,} were asked"
            " for.",
        )
    return f"{challenge.beacon.hex()[:16]}…, as in the trust file"


def drawn(case: VerifierCase) -> str:
    """Check that the records are those that beacon and close give, and all of them are opened."""
    evidence, challenge = case.evidence, case.evidence.challenge
    if challenge.population != len(evidence.queries):
        raise refuse(
            "challenge.population",
            f"The challenge is over {challenge.population:,} records, not"
            f" {len(evidence.queries):,}.",
        )
    close, count = evidence.checkpoints[1], len(challenge.records)
    if draw_records(challenge.beacon, close, challenge.population, count) != challenge.records:
        raise refuse("challenge.drawn", "Beacon and close draw other records than these.")
    if challenge.records != evidence.bundle.records:
        raise refuse("challenge.opened", "The records opened are not the records challenged.")
    return f"{count:,} of {challenge.population:,} records"


def opened(case: VerifierCase) -> str:
    """Check that answers and queries are those committed to, and an answer names K slots."""
    texts = 0
    for place, record, found in case.evidence.challenged:
        mechanism = case.evidence.mechanism(record)
        _opens(commit(answer_opening(found.ids, found.answer_blinding)), record.answer, place)
        _opens(commit(query_opening(found.query, found.query_blinding)), record.query, place)
        inside = all(slot < mechanism.capacity for slot in found.ids)
        if len(set(found.ids)) != len(found.ids) or len(found.ids) != mechanism.top or not inside:
            raise refuse(
                "opening.answer",
                f"The answer of record {place:,} does not name {mechanism.top} slots of the index.",
            )
        if found.text is not None:
            texts += 1
            if sha256(found.text.encode()).digest() != found.query:
                raise refuse("opening.text", f"The text of record {place:,} is another query.")
    return f"{len(case.evidence.disclosures):,} records opened, {texts:,} with their text"


def seeds(case: VerifierCase) -> str:
    """Check that each sub-seed is the one committed to under the record's number."""
    # Each leaf under the root that was published before the first query.
    root = bytes.fromhex(case.evidence.open.seed_root)
    count = int(case.evidence.open.seed_count)
    coins = coins_of(case.evidence.policy)
    for place, record, found in case.evidence.challenged:
        if coins and coin_leaf(_points(case, place)) != found.seed:
            raise refuse(
                "coins.commitment",
                f"What commits to the noise of record {place:,} is not what was committed to.",
            )
        opening = SeedOpening(int(record.number), found.seed, found.seed_path)
        try:
            verify_seed(root, count, opening)
        except VerificationError as error:
            raise refuse(
                "seed.opening",
                f"The sub-seed of record {place:,} is not the one that was committed to.",
            ) from error
    what = "commitments to noise" if coins else "sub-seeds"
    return f"{len(case.evidence.disclosures):,} {what} lead to the open record's root"


def _points(case: VerifierCase, place: int) -> bytes:
    """Return what commits to a record's noise."""
    return case.evidence.bundle.files[f"records/{place}.coins"]


def embedded(case: VerifierCase) -> str:
    """Embed opened texts again and compare with the committed vectors (A1).

    Floats differ between machines in their last digits, so that an entry next to a rounding
    boundary may round to either side. Anywhere else it may not: one step more in every entry, at
    the provider's choice, lifts a document that it likes.
    """
    if case.embed is None:
        raise NotCheckedError("no embedder was given: a vector may be another text's (A1)")
    rows = [row for row in case.evidence.challenged if row[2].text is not None]
    if not rows:
        raise NotCheckedError("the provider keeps no texts of its queries (A1)")
    vectors = case.embed([str(found.text) for _, _, found in rows])
    for (place, record, _), vector in zip(rows, np.asarray(vectors), strict=True):
        mechanism = case.evidence.mechanism(record)
        apart = np.abs(scaled(vector, mechanism) - case.evidence.vectors[place])
        if apart.max() > 0.5 + _FLOATS * mechanism.scale:
            raise refuse(
                "embedder.vector",
                f"The vector of record {place:,} is not that of its text: an entry lies"
                f" {apart.max():.3g} off, and rounding moves it by .5 at most.",
            )
    count = len(case.evidence.disclosures)
    bare = "" if len(rows) == count else f"; {count - len(rows):,} came without a text"
    return f"the texts of {len(rows):,} of {count:,} opened records embedded again{bare}"


def _opens(found: bytes, committed: str, place: int) -> None:
    if not hmac.compare_digest(found, bytes.fromhex(committed)):
        raise refuse(
            "opening.commitment", f"What opens record {place:,} is not what it commits to."
        )


# The expensive checks: the proofs of the norms, and those of the challenged answers.

_SLOTS = 1 << 22  # whose noise is held at a time: 32 MB


def norms(case: VerifierCase) -> str:
    """Check once per tenant that no row is longer than the scale, on which the noise rests."""
    from ragwitness.crypto.proofs.norms import verify_norms

    evidence = case.evidence
    for name, place in evidence.tenants.items():
        case.progress("norms", place, len(evidence.tenants))
        context = norm_context(evidence.policy.window, name)
        data = evidence.bundle.tenant(place, "norms.bin")
        try:
            verify_norms(evidence.shape, evidence.columns[place], context, data)
        except VerificationError as error:
            raise VerificationError(error.check, f"Index of {name}: {error.message}") from error
    case.progress("norms", len(evidence.tenants), len(evidence.tenants))
    return f"all rows of {len(evidence.tenants)} indexes are within the scale"


def links(case: VerifierCase) -> str:
    """Check that each challenged answer is what index, vector and sub-seed select (A2 to A4)."""
    from ragwitness.crypto.proofs.selection import verify_answers

    rows = case.evidence.challenged
    group = max(1, _SLOTS // largest(case.evidence.policy))
    for start in range(0, len(rows), group):
        case.progress("answers", start, len(rows))
        part = rows[start : start + group]
        # The claim is the verifier's own: columns, vector and noise are derived here, not read.
        claims = [_claim(case, *row) for row in part]
        files = case.evidence.bundle.files
        proofs = [files[f"records/{place}.proof"] for place, _, _ in part]
        try:
            verify_answers(case.evidence.shape, claims, proofs)
        except VerificationError as error:
            at = part[getattr(error, "place", 0)][0]
            _, _, said = error.message.partition(": ")
            raise VerificationError(
                error.check, f"Record {at:,}: {said or error.message}", error.hint
            ) from error
    case.progress("answers", len(rows), len(rows))
    return f"{len(rows):,} answers are the top of committed scores and committed noise"


def _claim(case: VerifierCase, place: int, record: QueryRecord, found: Disclosure) -> AnswerClaim:
    """Return what a record's proof has to be about."""
    from ragwitness.crypto.proofs.selection import AnswerClaim

    evidence, mechanism = case.evidence, case.evidence.mechanism(record)
    beacon, coins, public = evidence.beacon_value, mechanism.coins, None
    # A2: the noise from the opened sub-seed, the beacon and the record; where it stays closed, its
    # centre, and the coins.
    if coins:
        noise = np.full(mechanism.capacity, -coins.centre, np.int64)
        asked, number = noise_record_of(record, found.query), int(record.number)
        limbs = public_numbers(coins, beacon, asked, number, mechanism.capacity)
        public = public_coins_of(coins, _points(case, place), limbs, evidence.shape)
    else:
        noise = noise_of(mechanism, record, found.seed, found.query, beacon)
    columns = evidence.columns[evidence.tenants[record.tenant]]
    context = link_context(record)
    return AnswerClaim(columns, evidence.vectors[place], noise, found.ids, context, public)
