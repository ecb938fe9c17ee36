"""Two verifiers that share no code say the same of every proof: one of them was written anew."""

from __future__ import annotations

import ast
import random
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.proofs import prove_norms
from ragwitness.crypto.proofs.argument import commit_columns
from ragwitness.crypto.proofs.arithmetic import Shape
from ragwitness.crypto.proofs.norms import verify_norms
from ragwitness.crypto.proofs.prove_selection import prove_answer
from ragwitness.crypto.proofs.selection import AnswerClaim, verify_answers
from tests.unit.crypto.proofs import second_verifier

SHAPE = Shape(512, 3, 4, 16, 40)
FORM = asdict(SHAPE)
CAPACITY = 600  # two chunks


@pytest.fixture(scope="module")
def index():
    rng = np.random.default_rng(7)
    return commit_columns(rng.integers(-6, 7, (CAPACITY, 4)).astype(np.int16), SHAPE)


@pytest.fixture(scope="module")
def short():
    rng = np.random.default_rng(9)
    return commit_columns(rng.integers(-6, 7, (30, 4)).astype(np.int16), SHAPE)


@pytest.fixture(scope="module")
def norm(short) -> bytes:
    return prove_norms.prove_norms(SHAPE, short, b"window")


@pytest.fixture(scope="module")
def answer(index) -> tuple[AnswerClaim, bytes]:
    rng = np.random.default_rng(8)
    query = np.array([5, -3, 2, 7], np.int16)
    noise = rng.integers(-40, 41, CAPACITY).astype(np.int64)
    scores = index.rows.astype(np.int64) @ query + noise
    ids = tuple(np.argsort(-scores, kind="stable")[:3].tolist())
    claim = AnswerClaim(index.public, query, noise, ids, b"record")
    return claim, prove_answer(SHAPE, claim, index)


def _first_norm(index, data: bytes, context: bytes = b"window") -> bool:
    try:
        verify_norms(SHAPE, index.public, context, data)
    except VerificationError:
        return False
    return True


def _first_answer(claim: AnswerClaim, data: bytes) -> bool:
    try:
        verify_answers(SHAPE, {"it": (claim, data)})
    except VerificationError:
        return False
    return True


def _second_answer(claim: AnswerClaim, data: bytes) -> bool:
    return second_verifier.answer_holds(
        FORM, claim.columns.encode(), claim.query.tolist(), claim.noise.tolist(), list(claim.ids),
        claim.context, data,
    )  # fmt: skip


def _bent(data: bytes, seed: int) -> bytes:
    """One byte changed, or two pieces of a proof exchanged."""
    draw, bent = random.Random(seed), bytearray(data)
    if seed % 2:
        at = draw.randrange(len(bent))
        bent[at] ^= 1 << draw.randrange(8)
        return bytes(bent)
    first, second = (draw.randrange(0, len(bent) - 32, 16) for _ in range(2))
    bent[first : first + 32], bent[second : second + 32] = (
        bent[second : second + 32],
        bent[first : first + 32],
    )
    return bytes(bent)


@pytest.mark.slow
def test_both_accept_the_norms_of_an_index(short, norm: bytes) -> None:
    assert _first_norm(short, norm)
    assert second_verifier.norms_hold(FORM, short.public.encode(), b"window", norm)


def test_both_refuse_norms_of_another_window(short, norm: bytes) -> None:
    assert not _first_norm(short, norm, b"another")
    assert not second_verifier.norms_hold(FORM, short.public.encode(), b"another", norm)


def test_both_accept_an_answer_over_two_chunks(answer) -> None:
    assert {slot // 512 for slot in answer[0].ids} <= {0, 1}
    assert _first_answer(*answer)
    assert _second_answer(*answer)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_say_the_same_of_bent_norms(short, norm: bytes, seed: int) -> None:
    data = _bent(norm, seed)
    said = second_verifier.norms_hold(FORM, short.public.encode(), b"window", data)
    assert said is _first_norm(short, data) is (data == norm)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_say_the_same_of_bent_answers(answer, seed: int) -> None:
    data = _bent(answer[1], seed)
    assert _second_answer(answer[0], data) is _first_answer(answer[0], data) is (data == answer[1])


@pytest.mark.parametrize("lie", ["two winners swapped", "another slot", "other noise", "a query"])
def test_both_refuse_a_false_claim_under_the_true_proof(answer, lie: str) -> None:
    from dataclasses import replace

    claim, data = answer
    noise, query = claim.noise.copy(), claim.query.copy()
    noise[claim.ids[0]] -= 1
    query[0] += 1
    changed = {
        "two winners swapped": {"ids": (claim.ids[1], claim.ids[0], claim.ids[2])},
        "another slot": {"ids": (*claim.ids[:2], (claim.ids[2] + 1) % CAPACITY)},
        "other noise": {"noise": noise},
        "a query": {"query": query},
    }[lie]
    false = replace(claim, **changed)
    assert not _first_answer(false, data)
    assert not _second_answer(false, data)


def test_the_second_verifier_is_short_and_shares_no_code() -> None:
    path = Path(second_verifier.__file__)
    text = path.read_text()
    assert text.count("\n") <= 300
    imported = {
        name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert {str(name).partition(".")[0] for name in imported} == {
        "__future__", "hashlib", "json", "math", "py_ecc",
    }  # fmt: skip
