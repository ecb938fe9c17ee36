"""What a pass may not be given for, and what stands beside it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.attest.bundle import read_bundle
from ragwitness.attest.trust import Pins, parse_trust
from ragwitness.attest.verdict import NotCheckedError
from ragwitness.attest.verifier import terms, verify
from ragwitness.attest.verifier.bundle_evidence import VerifierCase, read_evidence
from ragwitness.attest.verifier.proofs import embedded
from ragwitness.core.errors import VerificationError
from ragwitness.crypto.proofs.arithmetic import TAU
from ragwitness.privacy.release import scaled
from tests.support.attested import MECHANISM, WIDE, embed

GOLDEN = Path(__file__).parents[3] / "golden" / "attest"
BUNDLE = (GOLDEN / "window-v3.zip").read_bytes()
TRUST = parse_trust((GOLDEN / "trust-v3.json").read_bytes())
EVIDENCE = read_evidence(read_bundle(BUNDLE))


def _case(**change):
    return VerifierCase(**({"evidence": EVIDENCE, "trust": TRUST} | change))


def test_a_trust_file_without_pins_passes_nothing_and_the_policy_s_weak_points_are_said():
    old = replace(TRUST, pins=Pins())
    found = verify(BUNDLE, old)
    assert (found.outcome, found.epsilon) == ("inconclusive", None)
    assert "pins no policy" in found.why
    assert "ragwitness attest pin" in found.why
    weak = replace(EVIDENCE, policy=replace(EVIDENCE.policy, nonces_required=False))
    assert any(note.startswith("Weak in the policy:") for note in terms.remarks(weak))


def test_the_digest_of_another_window_s_policy_is_refused_by_name():
    with pytest.raises(VerificationError, match="of one window") as found:
        terms.pinned_policy(_case(trust=replace(TRUST, pins=Pins(policy="ab" * 32))))
    assert found.value.check == "terms.policy"
    # And bounds beside a right digest count still.
    both = replace(TRUST.pins, bounds=replace(WIDE, k_max_least=99))
    with pytest.raises(VerificationError) as found:
        terms.pinned_policy(_case(trust=replace(TRUST, pins=both)))
    assert found.value.check == "terms.k_max"


def test_another_embedder_is_refused_by_name():
    other = replace(TRUST, pins=replace(TRUST.pins, embedder="ab" * 32))
    with pytest.raises(VerificationError) as found:
        terms.pinned_embedder(_case(trust=other))
    assert found.value.check == "terms.embedder"
    with pytest.raises(NotCheckedError):
        terms.pinned_embedder(_case(trust=replace(TRUST, pins=Pins())))


def test_withheld_texts_are_counted_and_named():
    """A text may be left out where the vector is another's; the verdict said nothing of it."""
    first, *rest = EVIDENCE.disclosures
    place = EVIDENCE.bundle.records[0]
    bare = replace(EVIDENCE, disclosures=(replace(first, text=None), *rest))
    [said] = [note for note in terms.remarks(bare) if "withheld" in note]
    assert f"1 of {len(EVIDENCE.disclosures)} opened records" in said
    assert f"(record {place})" in said
    assert "1 came without a text" in embedded(_case(evidence=bare, embed=embed))
    assert not [note for note in terms.remarks(EVIDENCE) if "withheld" in note]


def test_a_verdict_says_what_its_bundle_tells_and_on_whom_it_rests():
    noise, vectors = terms.learned(EVIDENCE)
    assert f"sub-seeds of {len(EVIDENCE.disclosures)} answers" in noise
    assert f"vectors of all {len(EVIDENCE.queries)} queries" in vectors
    said = " ".join(terms.rests(_case()))
    for part in ("Proofs:", "beacon", "Witnesses: none", "files are committed"):
        assert part in said
    left = " ".join(terms.uncovered(_case(), listed=False))
    assert "Other windows:" in left
    assert "no stranger can check" in left
    named = replace(EVIDENCE.embedder, artifacts={"name": "5e" * 32, "template": "5e" * 32})
    said = " ".join(terms.rests(_case(evidence=replace(EVIDENCE, embedder=named))))
    assert "by its name alone" in said
    assert "the prompt template is committed" in said


def _bent(bend):
    """The golden evidence with its opened vectors bent away from those of their texts."""
    vectors = EVIDENCE.vectors.copy()
    for place, _, found in EVIDENCE.challenged:
        vectors[place] = bend(scaled(embed([found.text])[0], MECHANISM), vectors[place])
    return replace(EVIDENCE, vectors=vectors)


def test_one_step_in_every_entry_is_another_vector():
    """Within one step of each entry a provider lifts a chosen document by .11 of cosine."""
    favourite = np.sign(np.arange(8) % 2 - 0.5).astype(int)
    with pytest.raises(VerificationError) as found:
        embedded(_case(evidence=_bent(lambda _, q: q + favourite), embed=embed))
    assert found.value.check == "embedder.vector"


@pytest.mark.parametrize(
    ("entry", "logged", "holds"),
    [
        (3.5003, 3, True),
        (3.5003, 4, True),
        (3.4997, 4, True),
        (3.5007, 3, False),
        (3.1, 4, False),
    ],
)
def test_an_entry_next_to_a_rounding_boundary_may_lie_on_either_side(entry, logged, holds):
    """Another machine's floats may fall on its other side; elsewhere only a choice."""
    exact = np.zeros(8)
    exact[:2] = entry, np.sqrt((16 - np.sqrt(2)) ** 2 - entry**2)
    side = np.rint(exact).astype(np.int16)
    side[0] = logged
    case = _case(
        evidence=_bent(lambda *_: side), embed=lambda texts: np.tile(exact, (len(texts), 1))
    )
    if holds:
        assert "embedded again" in embedded(case)
    else:
        with pytest.raises(VerificationError):
            embedded(case)


def test_what_the_proofs_rest_on_is_said():
    said = " ".join(terms.rests(_case()))
    assert f"[tau]2 {TAU.hex()[:16]}…" in said
    assert "public KZG ceremony" in said
