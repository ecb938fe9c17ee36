"""A sealed draw: opened by its recipient, and by nobody else, and for its commitment alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.canary.draw import Design, DrawSecret, seal, unseal
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import check_sealed, make_plan, seal_plan
from ragwitness.core.errors import InputError, VerificationError


def _keys(place: Path, name: str, key: X25519PrivateKey | Ed25519PrivateKey) -> tuple[Path, Path]:
    private, public = place / f"{name}.key", place / f"{name}.pub"
    private.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ))  # fmt: skip
    private.chmod(0o600)
    public.write_bytes(key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ))  # fmt: skip
    return private, public


def test_the_recipient_opens_the_draw_that_was_committed_to(tmp_path: Path) -> None:
    private, public = _keys(tmp_path, "notary", X25519PrivateKey.generate())
    stranger, _ = _keys(tmp_path, "stranger", X25519PrivateKey.generate())
    rows = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(30)
    ]
    plan = make_plan(rows, Design(candidates=8), DrawSecret(bytes(range(32)), bytes(32)))
    path = seal_plan(tmp_path, plan, public)
    assert plan.secret.seed.hex().encode() not in path.read_bytes()
    draw, beacon = check_sealed(path, plan.commitment.hex(), private)
    assert (draw, beacon) == (plan.draw(), ("", ""))
    with pytest.raises(VerificationError, match="for another key"):
        check_sealed(path, plan.commitment.hex(), stranger)
    with pytest.raises(VerificationError, match="or commitment"):
        check_sealed(path, "00" * 32, private)
    # An auditor who seals another draw than the one committed to is found out on opening.
    other = make_plan(rows, Design(candidates=9), DrawSecret(bytes(32), bytes(32)))
    from ragwitness.canary.folder import opened_bytes

    path.write_bytes(seal(opened_bytes(other), plan.commitment, public))
    with pytest.raises(VerificationError) as found:
        check_sealed(path, plan.commitment.hex(), private)
    assert found.value.check == "commitment.opening"


@given(st.integers(0, 200), st.integers(0, 7))
def test_no_bit_of_a_seal_can_be_changed(tmp_path_factory: pytest.TempPathFactory, at: int,
                                         bit: int) -> None:  # fmt: skip
    place = tmp_path_factory.mktemp("seal")
    private, public = _keys(place, "notary", X25519PrivateKey.generate())
    sealed = bytearray(seal(b"draw" * 10, bytes(32), public))
    assert unseal(bytes(sealed), bytes(32), private) == b"draw" * 10
    at %= len(sealed)
    if at == 31 and bit == 7:
        return  # X25519 does not read the last bit of a public key
    sealed[at] ^= 1 << bit
    with pytest.raises(VerificationError):
        unseal(bytes(sealed), bytes(32), private)


def test_a_key_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    private, public = _keys(tmp_path, "signer", Ed25519PrivateKey.generate())
    with pytest.raises(InputError, match="no X25519 key"):
        seal(b"", bytes(32), public)
    with pytest.raises(InputError, match="no X25519 key"):
        unseal(bytes(64), bytes(32), private)
    public.write_text("nothing")
    with pytest.raises(InputError, match="no public key"):
        seal(b"", bytes(32), public)
