"""Openings: many are one product, and false ones do not cancel."""

from __future__ import annotations

import pytest

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.proofs import argument
from ragwitness.crypto.proofs.argument import ColumnOpening, Proof, ProofForm, first_false
from ragwitness.crypto.proofs.arithmetic import dot, encode_point, generator, powers, scalar
from ragwitness.crypto.proofs.prover import ceremony_domain, draw_scalars
from tests.unit.crypto.proofs.forging import instead


def _opening(off: int = 0) -> ColumnOpening:
    """P(X) = 3 + 5X + 7X² less its value at 11, told to be ``off`` higher."""
    made, at = ceremony_domain(512), 11
    value = dot((3, 5, 7), powers(at, 3)) + off
    quotient = made.commit_coefficients([5 + 7 * at, 7])
    return ColumnOpening([(made.commit_coefficients([3, 5, 7]), 1)], -value, at, quotient)


def test_openings_hold_and_a_false_one_is_found_by_its_place() -> None:
    assert first_false([]) is None
    assert first_false([[_opening(), _opening()] for _ in range(70)]) is None
    places = [[_opening(int(i == 66))] for i in range(70)]
    assert first_false(places) == 66


def test_two_false_openings_do_not_cancel() -> None:
    """A verifier without weights of its own would take the pair."""
    pair = [[_opening(1)], [_opening(-1)]]
    with instead(argument.secrets, "randbits", lambda _: 1):
        assert first_false(pair) is None
    assert first_false(pair) == 0
    both = [[_opening(1), _opening(-1)]]
    with instead(argument.secrets, "randbits", lambda _: 1):
        assert first_false(both) is None
    assert first_false(both) == 0


def test_a_proof_reads_back_and_has_one_length() -> None:
    form = ProofForm("x", 2, 1, 2)
    proof = Proof(b"hd", (encode_point(generator() * scalar(9)),), tuple(draw_scalars(2)))
    data = proof.encode()
    assert len(data) == form.size == 2 + 48 + 64
    assert Proof.parse(data, form) == proof
    assert proof.read() == [generator() * scalar(9)]
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(VerificationError) as found:
            Proof.parse(wrong, form)
        assert found.value.check == "x.size"
