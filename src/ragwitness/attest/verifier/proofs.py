"""Checks of the challenged records: their draw, their openings, and their proofs."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from ragwitness.attest.challenge import Disclosure, draw_records, noise_of
from ragwitness.attest.commitments import (
    answer_opening,
    checkpoint_token,
    largest_index,
    norm_context,
    query_opening,
)
from ragwitness.attest.verdict import NotCheckedError
from ragwitness.attest.verifier.bundle_evidence import VerifierCase
from ragwitness.core.errors import VerificationError, require
from ragwitness.crypto.hashing import commit
from ragwitness.crypto.merkle import verify_seed
from ragwitness.crypto.records import QueryRecord, record_hash
from ragwitness.privacy.release import scaled

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.selection import AnswerClaim

_FLOATS = 2**-15  # of the scale: how far apart two machines' embeddings of a text may lie


def beacon(case: VerifierCase) -> str:
    """Check that beacon, number of records and close are the verifier's own.

    These three fix the draw. A provider that knows the beacon could try other numbers or closes
    until its bad records are missed.
    """
    trust = case.trusted("nothing says which randomness drew the records")
    challenge, close = case.evidence.challenge, case.evidence.checkpoints[1]
    if not (trust.beacon and trust.records and trust.close):
        raise NotCheckedError(
            "the trust file does not hold beacon, number of records and close of a challenge, so"
            " that the provider may have chosen the records",
            needed=True,
        )
    # Beacon, close and number of records, each the verifier's own.
    fault = "The challenge was drawn from another beacon."
    require(challenge.beacon == trust.beacon, "challenge.beacon", fault)
    again = "The log was closed again after the challenge was drawn."
    require(checkpoint_token(close.size, close.root) == trust.close, "challenge.close", again)
    count = len(challenge.records)
    differs = f"{count:,} records were challenged; {trust.records:,} were asked for."
    require(count == trust.records, "challenge.count", differs)
    return f"{challenge.beacon.hex()[:16]}…, as in the trust file"


def drawn(case: VerifierCase) -> str:
    """Check that the records are those that beacon and close give, and all of them are opened."""
    evidence, challenge = case.evidence, case.evidence.challenge
    # The draw again, and exactly these records opened.
    population, logged = challenge.population, len(evidence.queries)
    size = f"The challenge is over {population:,} records, not {logged:,}."
    require(population == logged, "challenge.population", size)
    close, count = evidence.checkpoints[1], len(challenge.records)
    same = draw_records(challenge.beacon, close, population, count) == challenge.records
    require(same, "challenge.drawn", "Beacon and close draw other records than these.")
    fault = "The records opened are not the records challenged."
    require(challenge.records == evidence.bundle.records, "challenge.opened", fault)
    return f"{count:,} of {population:,} records"


def opened(case: VerifierCase) -> str:
    """Check that answers and queries are those committed to, and an answer names K slots."""
    texts = 0
    for number, record, opening in case.evidence.challenged:
        mechanism, ids = case.evidence.mechanism(record), opening.ids
        # Query and answer against their commitments in the log.
        openings = (
            (answer_opening(ids, opening.answer_blinding), record.answer),
            (query_opening(opening.query, opening.query_blinding), record.query),
        )
        for committed, commitment in openings:
            same = hmac.compare_digest(commit(committed), bytes.fromhex(commitment))
            fault = f"The opening of record {number:,} does not match its commitment."
            require(same, "opening.commitment", fault)
        # K different slots of the index.
        inside = all(slot < mechanism.capacity for slot in ids)
        slots = f"The answer of record {number:,} does not name {mechanism.top} slots of the index."
        require(len(set(ids)) == len(ids) == mechanism.top and inside, "opening.answer", slots)
        if opening.text is not None:
            texts += 1
            same = sha256(opening.text.encode()).digest() == opening.query
            require(same, "opening.text", f"The text of record {number:,} is another query.")
    return f"{len(case.evidence.disclosures):,} records opened, {texts:,} with their text"


def seeds(case: VerifierCase) -> str:
    """Check that each sub-seed is the one committed to under the record's number."""
    # Each leaf under the root that was published before the first query.
    root = bytes.fromhex(case.evidence.open.seed_root)
    count = int(case.evidence.open.seed_count)
    for number, record, opening in case.evidence.challenged:
        try:
            verify_seed(root, count, int(record.number), opening.seed, opening.seed_path)
        except VerificationError as error:
            raise VerificationError(
                "seed.opening",
                f"The sub-seed of record {number:,} is not the one that was committed to.",
            ) from error
    return f"{len(case.evidence.disclosures):,} sub-seeds lead to the open record's root"


def embedded(case: VerifierCase) -> str:
    """Embed opened texts again and compare with the committed vectors (A1).

    Floats differ between machines in their last digits, so an entry next to a rounding boundary may
    round to either side. No other entry may: with one more step in each, the provider could lift a
    document of its choice.
    """
    if case.embed is None:
        raise NotCheckedError("no embedder was given: a vector may be another text's (A1)")
    # Only records with a text can be embedded again.
    rows = [row for row in case.evidence.challenged if row[2].text is not None]
    if not rows:
        raise NotCheckedError("the provider keeps no texts of its queries (A1)")
    vectors = case.embed([str(opening.text) for _, _, opening in rows])
    for (number, record, _), vector in zip(rows, np.asarray(vectors), strict=True):
        mechanism = case.evidence.mechanism(record)
        apart = np.abs(scaled(vector, mechanism) - case.evidence.vectors[number])
        near = bool(apart.max() <= 0.5 + _FLOATS * mechanism.scale)
        fault = (
            f"The vector of record {number:,} is not that of its text: an entry lies"
            f" {apart.max():.3g} off, and rounding moves it by .5 at most."
        )
        require(near, "embedder.vector", fault)
    count = len(case.evidence.disclosures)
    bare = "" if len(rows) == count else f"; {count - len(rows):,} came without a text"
    return f"the texts of {len(rows):,} of {count:,} opened records embedded again{bare}"


# The expensive checks: the proofs of the norms, and those of the challenged answers.

_SLOTS = 1 << 22  # slots of noise in memory at a time: 32 MB


def norms(case: VerifierCase) -> str:
    """Check once per tenant that no row is longer than the scale, on which the noise rests."""
    from ragwitness.crypto.proofs.norms import verify_norms

    evidence = case.evidence
    # One proof for each tenant, bound to window and tenant.
    for name, index in evidence.tenants.items():
        case.progress("norms", index, len(evidence.tenants))
        context = norm_context(evidence.policy.window, name)
        data = evidence.bundle.tenant(index, "norms.bin")
        try:
            verify_norms(evidence.shape, evidence.columns[index], context, data)
        except VerificationError as error:
            raise VerificationError(error.check, f"Index of {name}: {error.message}") from error
    case.progress("norms", len(evidence.tenants), len(evidence.tenants))
    return f"all rows of {len(evidence.tenants)} indexes are within the scale"


def links(case: VerifierCase) -> str:
    """Check that each challenged answer is what index, vector and sub-seed select (A2 to A4)."""
    from ragwitness.crypto.proofs.selection import verify_answers

    rows, files = case.evidence.challenged, case.evidence.bundle.files
    # Groups that bound the memory for noise.
    group = max(1, _SLOTS // largest_index(case.evidence.policy))
    for start in range(0, len(rows), group):
        case.progress("answers", start, len(rows))
        # The verifier derives columns, vector and noise of each claim by itself.
        answers = {
            f"Record {row[0]:,}": (_claim(case, *row), files[f"records/{row[0]}.proof"])
            for row in rows[start : start + group]
        }
        verify_answers(case.evidence.shape, answers)
    case.progress("answers", len(rows), len(rows))
    return f"{len(rows):,} answers are the top of committed scores and committed noise"


def _claim(case: VerifierCase, place: int, record: QueryRecord, opening: Disclosure) -> AnswerClaim:
    """Return the claim that a record's proof has to show."""
    from ragwitness.crypto.proofs.selection import AnswerClaim

    evidence, mechanism = case.evidence, case.evidence.mechanism(record)
    # A2: the noise from the opened sub-seed, the beacon and the record.
    noise = noise_of(mechanism, record, opening.seed, opening.query, evidence.beacon_value)
    columns = evidence.columns[evidence.tenants[record.tenant]]
    context = record_hash(record)
    return AnswerClaim(columns, evidence.vectors[place], noise, opening.ids, context)
