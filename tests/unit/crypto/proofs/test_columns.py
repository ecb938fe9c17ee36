"""An index's commitments: read strictly, saved whole, hidden by fresh blinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.proofs.argument import BLINDS, Columns, SecretColumns, commit_columns
from ragwitness.crypto.proofs.arithmetic import Shape, encode_point
from ragwitness.crypto.proofs.prover import ceremony_domain

SHAPE = Shape(512, 2, 3, 16, 100)
ROWS = np.random.default_rng(1).integers(-9, 10, (600, 3)).astype(np.int16)


@pytest.fixture(scope="module")
def secret() -> SecretColumns:
    return commit_columns(ROWS, SHAPE)


def test_columns_are_those_of_rows_and_blinds(secret: SecretColumns) -> None:
    domain = ceremony_domain(512)
    assert len(secret.public.chunks) == 2
    group = secret.group(1, SHAPE)
    assert group.values[:88].tolist() == ROWS[512:].tolist()
    assert not group.values[88:].any()  # filled up with empty slots
    assert tuple(map(encode_point, group.commit(domain))) == secret.public.chunks[1]
    assert len({blind for chunk in secret.blinds for pair in chunk for blind in pair}) == 12


def test_the_same_rows_are_committed_to_differently_each_time(secret: SecretColumns) -> None:
    again = commit_columns(ROWS, SHAPE)
    assert not {*sum(again.public.chunks, ())} & {*sum(secret.public.chunks, ())}


def test_columns_read_back_and_other_bytes_do_not(secret: SecretColumns) -> None:
    data = secret.public.encode()
    assert Columns.parse(data, SHAPE) == secret.public
    for wrong, check in (
        (b"", "columns.size"),
        (data[:-48], "columns.size"),
        (data + b"\0", "columns.size"),
        (b"\x80" + bytes(46) + b"\1" + data[48:], "columns.curve"),
        (b"\x80" + bytes(47) + data[48:], "columns.subgroup"),
        (b"\xff" * 48 + data[48:], "columns.encoding"),
    ):
        with pytest.raises(VerificationError) as found:
            Columns.parse(wrong, SHAPE)
        assert found.value.check == check


def test_what_opens_them_is_saved_and_read_back(secret: SecretColumns, tmp_path: Path) -> None:
    path = tmp_path / "columns.npz"
    secret.save(path)
    assert path.stat().st_mode & 0o077 == 0
    found = SecretColumns.load(path, SHAPE)
    assert found.rows.tolist() == secret.rows.tolist()
    assert (found.blinds, found.public) == (secret.blinds, secret.public)
    assert len(found.blinds[0][0]) == BLINDS
    data = path.read_bytes()
    for wrong in (b"", data[:100], data[:-200], b"PK"):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match="does not hold an index"):
            SecretColumns.load(path, SHAPE)
    path.write_bytes(data)
    with pytest.raises(InputError, match="does not hold an index"):
        SecretColumns.load(path, Shape(1024, 2, 3, 16, 100))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROWS.astype(np.int64), "int64"),
        (ROWS[:, :2], "not int16 of 3"),
        (ROWS[:0], "1 to"),
        (np.full((1, 3), 10, np.int16), "squared norm 300"),
    ],
)
def test_rows_that_no_proof_covers(rows: np.ndarray, said: str) -> None:
    with pytest.raises(InputError, match=said):
        commit_columns(rows, SHAPE)
