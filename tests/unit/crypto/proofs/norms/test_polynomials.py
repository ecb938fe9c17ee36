"""The norm proof's field part: projections, one constant term, masks; against the definitions."""

import itertools
import random

import numpy as np
import pytest

from ragwitness.crypto.proofs.norms.polynomials import (
    MASK_COEFFICIENTS,
    PROJECTIONS,
    Challenges,
    Matrix,
    Projections,
    combine,
    identity_holds,
    join,
    powers,
    projection_bits,
    projection_bytes,
    split,
    split_parts,
)
from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.setup import MASKS, Shape
from tests.unit.crypto.proofs.norms.norms_fields import FieldMatrix, constant, rank, value

SCALE = 100


def _shape(slots, dimension, scale=SCALE):
    return Shape(slots, 1, dimension, scale, 1000)


def _rows(generator, shape):
    """Rows of every kind: zero, ±S on an axis, exactly of norm S, random."""
    rows = generator.normal(size=(shape.slots, shape.dimension))
    rows *= (shape.scale - shape.dimension**0.5) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.trunc(rows).astype(np.int16)
    rows[0] = 0
    rows[1] = 0
    rows[1, -1] = -shape.scale
    if shape.slots > 2 and shape.dimension > 1:
        rows[2] = 0
        rows[2, :2] = 3 * shape.scale // 5, 4 * shape.scale // 5
    return rows


def _case(seed, slots, dimension, scale=SCALE):
    draw = random.Random(seed)
    shape = _shape(slots, dimension, scale)
    rows = _rows(np.random.default_rng(seed), shape)
    blinds = tuple(tuple(draw.randrange(R) for _ in range(dimension)) for _ in range(MASKS))
    table = tuple(tuple(int(x) % R for x in row) for row in rows) + blinds
    projections = Projections.read(draw.randbytes(projection_bytes(shape)), shape)
    challenges = Challenges(*(draw.randrange(1, R) for _ in range(4)))
    return shape, Matrix(rows, blinds), FieldMatrix(table, slots), projections, challenges


CASES = [(0, 2, 1), (1, 8, 4), (2, 9, 3), (3, 17, 20)]


@pytest.mark.parametrize("case", CASES)
def test_all_coefficients_are_those_of_the_definition(case):
    _, fast, slow, projections, challenges = _case(*case)
    assert fast.coefficients(projections, challenges) == slow.coefficients(projections, challenges)


@pytest.mark.parametrize("case", CASES)
def test_the_constant_term_holds_norms_and_projections(case):
    shape, fast, slow, projections, challenges = _case(*case)
    norms, image = fast.norms(), projections.image(fast.rows)
    assert norms == slow.norms()
    assert [x % R for x in image] == slow.image(projections)
    assert norms[1] == shape.scale**2
    laurent = fast.coefficients(projections, challenges)
    assert laurent[len(laurent) // 2] == constant(norms, image, challenges)


def test_a_large_chunk_has_the_same_constant_term():
    _, fast, _, projections, challenges = _case(5, 600, 48, 4096)  # two blocks of the Gram matrix
    laurent = fast.coefficients(projections, challenges)
    image = projections.image(fast.rows)
    assert laurent[len(laurent) // 2] == constant(fast.norms(), image, challenges)
    point = 12345678901234567890
    terms = (c * pow(point, k, R) for k, c in enumerate(laurent, 1 - len(laurent) // 2 - 1))
    upper, lower = fast.at(challenges.xi * point % R), fast.at(pow(point, -1, R))
    squares = sum(x * y for x, y in zip(upper, lower, strict=True))
    across = powers(point, 600)
    crossed = challenges.kappa * projections.bilinear(challenges.zeta, lower, across)
    assert sum(terms) % R == (squares + crossed) % R


def test_columns_at_a_point_and_weighted_columns():
    _, fast, slow, _, _ = _case(6, 9, 5)
    draw = random.Random(6)
    weights = [draw.getrandbits(128) for _ in range(5)]
    assert fast.weighted(weights) == slow.weighted(weights)
    for point in (1, R - 1, draw.randrange(R)):
        assert fast.at(point) == slow.at(point)


def test_sums_in_pieces_are_sums():
    draw = random.Random(7)
    values = [0, 1, R - 1, 2**256 - 1, *(draw.randrange(R) for _ in range(60))]
    assert join(split(values)) == [x % R for x in values]
    matrix = np.array([[-32768] * 64, [32767] * 64, [0] * 64, range(-32, 32)], dtype=np.int16)
    expected = [sum(int(a) * x for a, x in zip(row, values, strict=True)) % R for row in matrix]
    assert combine(matrix, values) == expected
    assert powers(3, 4, 5) == [5, 15, 45, 135]


@pytest.mark.parametrize(("slots", "dimension"), [(8, 8), (9, 5), (2, 1)])
def test_projections_are_read_bit_by_bit_and_each_bit_once(slots, dimension):
    shape = _shape(slots, dimension)
    size = projection_bytes(shape)
    data = random.Random(8).randbytes(size)
    found = Projections.read(data, shape)
    assert found.columns.shape == (PROJECTIONS, dimension)
    assert found.rows.shape == (PROJECTIONS, slots)
    per, width = size // PROJECTIONS, (dimension + 7) // 8
    for i in (0, 1, PROJECTIONS - 1):
        part = data[i * per : (i + 1) * per]
        bits = "".join(f"{byte:08b}" for byte in part)
        assert found.columns[i].tolist() == [int(b) for b in bits[:dimension]]
        assert found.rows[i].tolist() == [int(b) for b in bits[8 * width : 8 * width + slots]]


def test_the_bilinear_sum_is_its_definition():
    shape = _shape(6, 5)
    draw = random.Random(9)
    found = Projections.read(draw.randbytes(projection_bytes(shape)), shape)
    along, across = ([draw.randrange(R) for _ in range(n)] for n in (5, 6))
    zeta = draw.randrange(R)
    expected = sum(
        pow(zeta, i, R)
        * sum(int(x) * y for x, y in zip(found.columns[i], along, strict=True))
        * sum(int(x) * y for x, y in zip(found.rows[i], across, strict=True))
        for i in range(PROJECTIONS)
    )
    assert found.bilinear(zeta, along, across) == expected % R


def test_309_projections_are_the_fewest_for_128_bits():
    assert 3**PROJECTIONS * 2**128 < 4**PROJECTIONS
    assert 3 ** (PROJECTIONS - 1) * 2**128 > 4 ** (PROJECTIONS - 1)


@pytest.mark.parametrize("sizes", [(2, 1, 1), (4, 4, 3), (1024, 384, 4096), (4096, 16384, 4096)])
def test_honest_projections_fit_and_sums_of_squares_cannot_wrap(sizes):
    slots, dimension, scale = sizes
    bound = 1 << projection_bits(_shape(slots, dimension, scale))
    assert slots**2 * scale**2 * dimension < bound**2
    assert bound <= 2 * slots * scale * (int(dimension**0.5) + 1)
    assert 8 * bound <= R
    assert dimension * (4 * bound) ** 2 + (1 << (scale**2).bit_length()) < R
    if dimension == 4:  # the worst rows there are: all along the vector of ones
        rows = np.full((slots, dimension), scale // 2, dtype=np.int16)
        assert int(rows.sum()) < bound


# The lemma


def _outside(x, bound):
    x %= R
    return bound <= x < R - bound


def _share(table, bound):
    """Exact probability that a projection falls outside, over all pairs of vectors."""
    rows, columns = len(table), len(table[0])
    found = 0
    for a in itertools.product((0, 1), repeat=columns):
        along = [sum(x for x, take in zip(row, a, strict=True) if take) for row in table]
        for b in itertools.product((0, 1), repeat=rows):
            found += _outside(sum(x for x, take in zip(along, b, strict=True) if take), bound)
    return found / 2 ** (rows + columns)


def test_the_lemma_over_all_vectors_for_adversarial_matrices():
    draw = random.Random(10)
    bound = 1 << 20
    third = pow(3, -1, R)
    special = [0, 1, bound, 4 * bound, -4 * bound, R // 2, (R + 1) // 2, third, 2 * third, R // 4]
    shares = []
    for _ in range(400):
        rows, columns = draw.randint(1, 4), draw.randint(1, 4)
        table = [[draw.choice(special) for _ in range(columns)] for _ in range(rows)]
        table[draw.randrange(rows)][draw.randrange(columns)] = draw.choice(special[3:])
        shares.append(_share(table, bound))
    assert min(shares) == 0.25  # met, so the lemma cannot be better than it is


def test_vectors_of_signs_would_never_see_a_matrix_of_quarters():
    """Why the vectors hold 0 and 1: 1/4 · (±1 ± 1) · (±1 ± 1) is 0, 1 or -1."""
    quarter = pow(4, -1, R)
    sums = [sum(signs) for signs in itertools.product((-1, 1), repeat=2)]
    assert not any(_outside(quarter * x * y, 4) for x in sums for y in sums)
    assert _share([[quarter] * 2] * 2, 4) == 0.5


@pytest.mark.parametrize("kind", ["half", "root", "one entry"])
def test_the_lemma_by_monte_carlo_on_a_full_matrix(kind):
    """Matrices whose rows all have small sums of squares modulo R, and one with a lone entry."""
    shape = _shape(16, 8)
    draw = random.Random(11)
    bound = 1 << projection_bits(shape)
    half = (R + 1) // 2  # 4 · (1/2)² = 1
    rows = {
        "half": [[half] * 4 + [0] * 4] * 16,
        "root": [[draw.choice((half, R - half)) for _ in range(8)] for _ in range(16)],
        "one entry": [[4 * bound] + [0] * 7] + [[0] * 8] * 15,
    }[kind]
    matrix = FieldMatrix(tuple(tuple(row) for row in rows), 16)
    assert kind == "one entry" or all(x <= shape.scale**2 for x in matrix.norms())
    missed = total = 0
    for _ in range(8):
        drawn = Projections.read(draw.randbytes(projection_bytes(shape)), shape)
        image = matrix.image(drawn)
        missed += sum(not _outside(x, bound) for x in image)
        total += len(image)
    deviation = (0.75 * 0.25 / total) ** 0.5
    assert missed / total < 0.75 + 4 * deviation
    if kind == "one entry":
        assert missed / total > 0.75 - 4 * deviation


# Equation (1) and its masks


def _masked(seed=20):
    shape, fast, _, projections, challenges = _case(seed, 8, 4)
    draw = random.Random(seed)
    a, b = ([draw.randrange(R) for _ in range(MASK_COEFFICIENTS)] for _ in range(2))
    laurent = fast.coefficients(projections, challenges)
    parts = split_parts(laurent, challenges.omega, a, b)
    return shape, fast, projections, challenges, laurent, parts


def test_both_sides_of_the_equation_have_the_same_coefficients():
    _, _, _, challenges, laurent, parts = _masked()
    middle = len(laurent) // 2
    left = {k: challenges.omega * x for k, x in enumerate(laurent, -middle)}
    right = {0: parts.total}
    for i in range(MASK_COEFFICIENTS):
        left[i - 1] += parts.a[i]
        left[1 - i] += parts.b[i]
    for i, (p, q) in enumerate(zip(parts.p, parts.q, strict=True)):
        right[i + 1], right[-i - 1] = p, q
    assert {k: x % R for k, x in left.items()} == right


def _evaluated(fast, challenges, parts, z):
    inverse = pow(z, -1, R)
    columns = (fast.at(challenges.xi * z % R), fast.at(inverse))
    seen = (
        parts.total,
        value(parts.a, z),
        value(parts.b, inverse),
        value(parts.p, z),
        value(parts.q, inverse),
    )
    return columns, seen


def test_the_equation_holds_at_a_point_and_for_no_other_value():
    _, fast, projections, challenges, _, parts = _masked()
    z = random.Random(21).randrange(1, R)
    columns, seen = _evaluated(fast, challenges, parts, z)
    assert identity_holds(challenges, projections, z, columns, seen)
    assert not identity_holds(challenges, projections, z + 1, columns, seen)
    for i in range(5):
        wrong = tuple((x + (i == j)) % R for j, x in enumerate(seen))
        assert not identity_holds(challenges, projections, z, columns, wrong)
    for side in range(2):
        wrong = [list(columns[0]), list(columns[1])]
        wrong[side][2] += 1
        assert not identity_holds(challenges, projections, z, (wrong[0], wrong[1]), seen)


def _functionals(z, tau, size=12):
    """How the nine values that are seen depend on the eight mask coefficients."""
    found = []
    for i in range(2 * MASK_COEFFICIENTS):
        unit = [int(i == j) for j in range(2 * MASK_COEFFICIENTS)]
        a, b = unit[:MASK_COEFFICIENTS], unit[MASK_COEFFICIENTS:]
        parts = split_parts([0] * size + [0] + [0] * size, 1, a, b)
        inverse = pow(z, -1, R)
        ends = [(parts.a, z), (parts.b, inverse), (parts.p, z), (parts.q, inverse)]
        values = [value(poly, x) for poly, point in ends for x in (tau, point)]
        found.append([parts.total, *values])
    return [list(row) for row in zip(*found, strict=True)]


def test_the_masks_make_eight_values_independent_and_the_ninth_follows():
    draw = random.Random(22)
    for _ in range(5):
        table = _functionals(draw.randrange(2, R - 1), draw.randrange(2, R - 1))
        assert rank(table[:-1]) == 2 * MASK_COEFFICIENTS
        assert rank(table) == 2 * MASK_COEFFICIENTS


@pytest.mark.parametrize("tau", [1, R - 1])
def test_two_values_of_tau_would_undo_the_masks(tau):
    z = random.Random(23).randrange(2, R - 1)
    assert rank(_functionals(z, tau)) < 2 * MASK_COEFFICIENTS


def test_three_blinds_make_a_commitment_and_two_evaluations_independent():
    draw = random.Random(24)
    xi, z, tau = (draw.randrange(2, R - 1) for _ in range(3))
    points = (tau, xi * z % R, pow(z, -1, R))
    table = [[pow(point, 8 + i, R) for i in range(MASKS)] for point in points]
    assert rank(table) == MASKS
    assert rank([[pow(x, 8 + i, R) for i in range(2)] for x in points]) == 2  # two leave a relation
