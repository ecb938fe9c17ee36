"""Commitments to an index: what they commit to, that they hide it, and their files."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import numpy as np
import pytest

from ragwitness.crypto.proofs.curve import msm
from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.native import to_native_g1
from ragwitness.crypto.proofs.opening import Columns
from ragwitness.crypto.proofs.points import encode_g1
from ragwitness.crypto.proofs.secret import SecretColumns, commit_rows
from ragwitness.crypto.proofs.setup import Shape, Srs, make_srs
from ragwitness.errors import InputError, VerificationError

SHAPE = Shape(slots=8, top=2, dimension=4, scale=16, reach=100)
ROWS = np.random.default_rng(1).integers(-8, 9, (24, 4)).astype(np.int16)


@pytest.fixture(scope="module")
def srs() -> Srs:
    return make_srs(SHAPE)


@pytest.fixture(scope="module")
def secret(srs: Srs) -> SecretColumns:
    return commit_rows(ROWS, SHAPE, [to_native_g1(point) for point in srs.powers])


def test_a_commitment_is_the_columns_polynomial_with_its_blinds_at_tau(
    srs: Srs, secret: SecretColumns
) -> None:
    for chunk, points in enumerate(secret.public.chunks):
        rows = secret.chunk_rows(chunk)
        for column, point in enumerate(points):
            coefficients = [*rows[:, column].tolist(), *secret.blinds[chunk][column]]
            assert encode_g1(msm(srs.powers, coefficients)) == point


def test_equal_columns_and_windows_show_no_equal_commitments(
    srs: Srs, secret: SecretColumns
) -> None:
    powers = [to_native_g1(point) for point in srs.powers]
    zeros = commit_rows(np.zeros_like(ROWS), SHAPE, powers)
    again = commit_rows(ROWS, SHAPE, powers)
    held = [
        point
        for columns in (secret, zeros, again)
        for chunk in columns.public.chunks
        for point in chunk
    ]
    assert len(set(held)) == len(held) == 3 * 3 * 4


def test_columns_are_read_back(secret: SecretColumns) -> None:
    parsed = Columns.parse(secret.public.encode(), SHAPE)
    assert parsed == secret.public
    assert parsed.digest == secret.public.digest
    assert len(parsed.digest) == 64


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda data: b"", "columns.size"),
        (lambda data: data[:-1], "columns.size"),
        (lambda data: data[:-64], "columns.size"),
        (lambda data: data * 342, "columns.size"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "columns.curve"),
        (lambda data: b"\xff" * 64 + data[64:], "columns.field"),
    ],
)
def test_damaged_columns_are_refused_by_name(
    secret: SecretColumns, change: object, check: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        Columns.parse(change(secret.public.encode()), SHAPE)  # type: ignore[operator]
    assert caught.value.check == check


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS.astype(np.int64), "int16"),
        (ROWS[0], "two-dimensional"),
        (ROWS[:, :3], "3 columns"),
        (ROWS[:9], "whole chunks"),
        (ROWS[:0], "whole chunks"),
        (np.full((8, 4), 9, np.int16), "squared norm 324"),
    ],
)
def test_rows_that_do_not_fit_are_refused(srs: Srs, rows: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        commit_rows(rows, SHAPE, [to_native_g1(point) for point in srs.powers])


def test_a_row_of_the_full_norm_is_committed(srs: Srs) -> None:
    rows = np.full((8, 4), 8, np.int16)
    secret = commit_rows(rows, SHAPE, [to_native_g1(point) for point in srs.powers])
    assert len(secret.public.chunks) == 1


def test_secrets_are_read_back_and_are_their_owners_alone(
    secret: SecretColumns, tmp_path: Path
) -> None:
    path = tmp_path / "columns.npz"
    path.touch(mode=0o644)
    secret.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = SecretColumns.load(path, SHAPE)
    assert (loaded.rows == ROWS).all()
    assert (loaded.blinds, loaded.public) == (secret.blinds, secret.public)
    assert str(secret.blinds[0][0][0]) not in repr(secret)


def test_what_is_no_file_of_secrets_is_refused(secret: SecretColumns, tmp_path: Path) -> None:
    path = tmp_path / "columns.npz"
    with pytest.raises(InputError, match="holds no committed columns"):
        SecretColumns.load(path, SHAPE)
    held = io.BytesIO()
    np.save(held, ROWS)
    secret.save(path)
    whole = path.read_bytes()
    method = whole.index(b"PK\x01\x02") + 10  # of compression, made one that nobody knows
    packed = whole[:method] + b"\x63" + whole[method + 1 :]
    for data in (b"PK\x03\x04 no archive", b"", held.getvalue(), whole[:-30], packed):
        path.write_bytes(data)
        with pytest.raises(InputError, match="holds no committed columns"):
            SecretColumns.load(path, SHAPE)
    np.savez(path, rows=ROWS[:8], blinds=np.zeros(1), public=np.zeros(3 * 4 * 64, np.uint8))
    with pytest.raises(InputError, match="another shape"):
        SecretColumns.load(path, SHAPE)


def test_a_challenge_depends_on_every_part_its_label_and_their_borders() -> None:
    def challenge(*parts: tuple[str, bytes]) -> int:
        transcript = ProofTranscript("test/v1")
        for label, data in parts:
            transcript.absorb(label, data)
        return transcript.challenge("r")

    held = [
        challenge(),
        challenge(("a", b"xy")),
        challenge(("a", b"x"), ("a", b"y")),
        challenge(("ax", b"y")),
        challenge(("a", b"x"), ("ay", b"")),
        ProofTranscript("test/v2").challenge("r"),
        ProofTranscript("test/v1").challenge("s"),
    ]
    assert len(set(held)) == len(held)
    assert challenge(("a", b"xy")) == held[1]


def test_challenges_after_one_another_differ_and_kinds_do_not_mix() -> None:
    transcript = ProofTranscript("test/v1")
    first, second = transcript.challenge("r"), transcript.challenge("r")
    assert first != second
    scalars, plain = ProofTranscript("test/v1"), ProofTranscript("test/v1")
    scalars.absorb_scalars("a", [7])
    plain.absorb("a", (7).to_bytes(32, "big"))
    assert scalars.challenge("r") != plain.challenge("r")
    with pytest.raises(InputError):
        scalars.absorb_scalars("a", [-1])
