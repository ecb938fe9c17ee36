"""Proofs of norms: short rows are accepted; every forgery is refused by name, and each bites.

Each forgery is also played against a verifier with the one mistake that it needs, as in
``test_answers.py``.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.proofs import argument, norms, prove_norms
from ragwitness.crypto.proofs.argument import Columns, Proof, SecretColumns, commit_columns
from ragwitness.crypto.proofs.arithmetic import (
    R,
    Shape,
    curve,
    dot,
    encode_point,
    generator,
    lagrange_at,
    powers,
    roots,
    scalar,
    vanishing,
)
from ragwitness.crypto.proofs.norms import (
    DOMAIN,
    PROJECTIONS,
    NormChallenges,
    NormConversation,
    Projections,
    bit_counts,
    norm_form,
    projection_bits,
    verify_norms,
)
from ragwitness.crypto.proofs.prove_norms import NormWitness, argue, norm_witness
from ragwitness.crypto.proofs.prover import SecretGroup, ceremony_domain
from tests.unit.crypto.proofs.forging import (
    drawn_early,
    early,
    instead,
    lenient_points,
    root_of,
    solved,
    trapdoor,
)

SHAPE = Shape(512, 2, 3, 16, 100)
SMALL, LONG = bit_counts(SHAPE)
Made = tuple[Columns, bytes, bytes]
Change = Callable[[NormWitness, NormConversation], NormWitness]


def rows_of(seed: int, count: int = 30) -> np.ndarray:
    draw = random.Random(seed)
    return np.array([[draw.randrange(-9, 10) for _ in range(3)] for _ in range(count)], np.int16)


@cache
def held(seed: int = 1, count: int = 30) -> tuple[SecretColumns, bytes]:
    """Return an index of short rows and the proof of their norms."""
    secret = commit_columns(rows_of(seed, count), SHAPE)
    return secret, prove_norms.prove_norms(SHAPE, secret, b"window")


def verdict(made: Made) -> str:
    try:
        verify_norms(SHAPE, *made)
    except VerificationError as error:
        return error.check
    return "accepted"


# --- what holds


@pytest.mark.parametrize("count", [1, 30, pytest.param(700, marks=pytest.mark.slow)])
def test_short_rows_are_proved(count: int) -> None:
    secret, data = held(1, count)
    assert verdict((secret.public, b"window", data)) == "accepted"
    assert len(data) == norm_form(SHAPE).size * SHAPE.chunks(count)
    again = prove_norms.prove_norms(SHAPE, secret, b"window")
    assert again != data  # nothing is derived: what is random is fresh
    verify_norms(SHAPE, secret.public, b"window", again)


def test_rows_at_the_bound_are_proved() -> None:
    shape = Shape(512, 2, 2, 4096, 100)
    rows = np.array([[4096, 0], [0, -4096], [2896, 2896], [0, 0]], np.int16)
    secret = commit_columns(rows, shape)
    verify_norms(shape, secret.public, b"", prove_norms.prove_norms(shape, secret, b""))


def test_what_cannot_be_proved_is_refused_before() -> None:
    long = rows_of(1)
    long[3] = 10
    with pytest.raises(InputError, match="squared norm 300; the proofs allow 256"):
        commit_columns(long, SHAPE)
    secret, _ = held()
    moved = SecretColumns(secret.rows[::-1].copy(), secret.blinds, secret.public)
    with pytest.raises(InputError, match="not those that were committed to"):
        prove_norms.prove_norms(SHAPE, moved, b"window")


def test_projections_of_short_rows_are_in_range() -> None:
    """T is what the largest rows reach: n rows along one vector of ones."""
    shape = Shape(512, 2, 16, 64, 1)
    rows = np.full((512, 16), 16, np.int64)
    assert (rows**2).sum(axis=1).max() == shape.scale**2
    assert rows.sum() < 1 << projection_bits(shape)


def test_a_long_entry_is_found_by_a_quarter_of_all_projections() -> None:
    """The lemma, in its worst case: one entry, seen where a and b both pick it."""
    shape = Shape(512, 2, 3, 16, 1)
    drawn = random.Random(1).randbytes(Projections.size(shape))
    found = Projections.read(drawn, shape)
    assert found.columns.shape == (PROJECTIONS, 3)
    assert found.rows.shape == (PROJECTIONS, 512)
    seen = (found.columns[:, 1] & found.rows[:, 100]).mean()
    assert 0.15 < seen < 0.35
    assert 0.75**PROJECTIONS < 2**-128 < 0.75 ** (PROJECTIONS - 1)


# --- lies


def lied(rows: np.ndarray, change: Change | None = None) -> Made:
    """Any rows modulo R, committed to, and the proof that the honest conversation makes of them."""
    domain = ceremony_domain(SHAPE.slots)
    blinds = [(7 * c + 1, 11 * c + 2) for c in range(3)]
    whole = np.zeros((SHAPE.slots, 3), object)
    whole[: len(rows)] = rows
    group = SecretGroup(whole % R, blinds)
    public = Columns((tuple(map(encode_point, group.commit(domain))),))
    talk = NormConversation(SHAPE, public, b"window", 0)
    made = witness_of(group, talk)
    if change:
        made = change(made, talk)
    return public, b"window", argue(SHAPE, talk, made, domain).encode()


def witness_of(group: SecretGroup, talk: NormConversation) -> NormWitness:
    """Return what rows of any numbers lead to, digits cut off where they do not fit."""
    drawn = talk.projections
    short = norm_witness(SHAPE, SecretGroup(np.zeros((512, 3), np.int64), group.blinds), talk)
    left = (SHAPE.scale**2 - (group.values**2).sum(axis=1)) % R
    image = group.values.dot(drawn.columns.T.astype(object)) % R
    shown = [0] * SHAPE.slots
    for i in range(PROJECTIONS):
        shown[i] = dot(drawn.rows[i].tolist(), image[:, i].tolist())
    digits = np.zeros((SHAPE.slots, SMALL + LONG), object)
    for row in range(SHAPE.slots):
        told = (shown[row] + (1 << projection_bits(SHAPE))) % R
        digits[row] = [
            *(left[row] >> i & 1 for i in range(SMALL)),
            *(told >> i & 1 for i in range(LONG)),
        ]
    bits = SecretGroup(short_ints(digits), short.bits.blinds)
    made = SecretGroup(short_ints(image), short.image.blinds)
    rows = SecretGroup(short_ints(group.values), group.blinds)
    return NormWitness(rows, bits, shown, made, short.blinds)


def short_ints(values: np.ndarray) -> np.ndarray:
    """Return machine numbers where all fit, which are much faster."""
    signed = np.where(values > R // 2, values - R, values)
    return signed.astype(np.int64) if (abs(signed) < 1 << 16).all() else values


LONG_ROW = np.array([[10, -10, 10]], object)  # of squared norm 300


def _wrapping() -> np.ndarray:
    """A row of huge entries whose squares add up to 4 modulo R."""
    for first in range(3 << 90, 4 << 90):
        second = root_of((4 - first * first) % R)
        if second is not None:
            return np.array([[first, second, 0]], object)
    raise AssertionError


def digit_of_norm(made: NormWitness, talk: NormConversation) -> NormWitness:
    """The highest digit of what is left makes the sum right, modulo R."""
    values = made.bits.values.astype(object)
    left = SHAPE.scale**2 - int(sum(x * x for x in made.rows.values[0])) % R
    below = sum(int(values[0, i]) << i for i in range(SMALL - 1))
    values[0, SMALL - 1] = (left - below) * pow(2, 1 - SMALL, R) % R
    return replace(made, bits=SecretGroup(short_ints(values), made.bits.blinds))


def digits_of_projections(made: NormWitness, talk: NormConversation) -> NormWitness:
    """The highest digit of each projection makes it right, modulo R."""
    values = made.bits.values.astype(object)
    for row in range(PROJECTIONS):
        told = made.shown[row] + (1 << projection_bits(SHAPE))
        below = sum(int(values[row, SMALL + i]) << i for i in range(LONG - 1))
        values[row, -1] = (told - below) * pow(2, 1 - LONG, R) % R
    return replace(made, bits=SecretGroup(short_ints(values), made.bits.blinds))


def digit_two(made: NormWitness, talk: NormConversation) -> NormWitness:
    values = made.bits.values.astype(object)
    row, i = next(
        (row, i)
        for row in range(SHAPE.slots)
        for i in range(SMALL - 1)
        if (values[row, i], values[row, i + 1]) == (0, 1)
    )
    values[row, i], values[row, i + 1] = 2, 0
    return replace(made, bits=SecretGroup(short_ints(values), made.bits.blinds))


def digits_before_kappa(made: NormWitness, talk: NormConversation) -> NormWitness:
    """x² - x + κ^w (norm + x + 2·ones - S²) = 0, with the other digits 0 and 1."""
    row = pow(early(DOMAIN, talk.head), SMALL + LONG, R)
    left = SHAPE.scale**2 - sum(int(x) ** 2 for x in made.rows.values[0])
    ones, found = 0, None
    while found is None:
        ones += 1
        found = solved(1, row - 1, row * (2 * ones - left))
    values = made.bits.values.astype(object)
    values[0, :SMALL] = [found, *(ones >> i & 1 for i in range(SMALL - 1))]
    return replace(made, bits=SecretGroup(short_ints(values), made.bits.blinds))


def left_over(
    made: NormWitness, talk: NormConversation, told: NormChallenges, quotient: list[int]
) -> int:
    """Return F(ζ) - Z(ζ) T(ζ): 0 for what is true."""
    basis, vanish = lagrange_at(512, told.zeta), vanishing(512, told.zeta)
    running = prove_norms.running_sum(talk.projections, made, told.xi)
    turned = told.zeta * norms.roots(512)[1] % R
    values = [x for g in (made.rows, made.bits) for x in g.at(basis, vanish, told.zeta)]
    values += running.group.at(lagrange_at(512, turned), vanish, turned)
    constant, at_running, at_quotient = norms.norm_factors(
        SHAPE, talk.projections, replace(told, mu=1), values
    )
    [value] = running.group.at(basis, vanish, told.zeta)
    total = constant + at_running * value
    return (total + at_quotient * dot(quotient, powers(told.zeta, len(quotient)))) % R


def quotient_after_zeta() -> Made:
    true_quotient, seen = prove_norms.norm_quotient, []

    def norm_quotient(shape, drawn, made, running, challenges, domain):  # type: ignore[no-untyped-def]
        found = true_quotient(shape, drawn, made, running, challenges, domain)
        zeta = early(DOMAIN, seen[0].head)
        rest = left_over(made, seen[0], NormChallenges(*challenges, zeta, 1), found)
        found[0] += rest * pow(vanishing(512, zeta), -1, R)
        return [x % R for x in found]

    def watch(made: NormWitness, talk: NormConversation) -> NormWitness:
        seen.append(talk)
        return made

    with instead(prove_norms, "norm_quotient", norm_quotient):
        return lied(LONG_ROW, watch)


def values_told(change: Callable[[list[int], int, NormChallenges, int], None]) -> Made:
    """A long row, and values that are changed before μ is drawn."""
    seen: dict[str, object] = {}
    true_quotient = prove_norms.norm_quotient
    true_zeta, true_values = NormConversation.quotient, NormConversation.values

    def norm_quotient(shape, drawn, made, running, challenges, domain):  # type: ignore[no-untyped-def]
        seen["quotient"] = true_quotient(shape, drawn, made, running, challenges, domain)
        seen["told"], seen["made"] = challenges, made
        return seen["quotient"]

    def quotient(self, point):  # type: ignore[no-untyped-def]
        seen["zeta"] = true_zeta(self, point)
        return seen["zeta"]

    def values(self, told):  # type: ignore[no-untyped-def]
        held_ = NormChallenges(*seen["told"], seen["zeta"], 1)
        rest = left_over(seen["made"], self, held_, seen["quotient"])
        change(told, rest, held_, early(DOMAIN, self.head))
        return true_values(self, told)

    patches = (
        instead(prove_norms, "norm_quotient", norm_quotient),
        instead(NormConversation, "quotient", quotient),
        instead(NormConversation, "values", values),
    )
    with patches[0], patches[1], patches[2]:
        return lied(LONG_ROW)


def turned_to_fit(told: list[int], rest: int, held_: NormChallenges, mu: int) -> None:
    told[-1] = (told[-1] - rest * pow(norms.row_weights(SHAPE, held_.kappa)[-1], -1, R)) % R


def value_to_fit(told: list[int], rest: int, held_: NormChallenges, mu: int) -> None:
    """One digit's value, since its weight is known: it makes up for what is left over."""
    weights = norms.row_weights(SHAPE, held_.kappa)
    linear, last = norms.linear_weights(SHAPE, weights), pow(mu, len(told) - 1, R)
    for i in range(SMALL):
        slope = last * (2 * weights[i] * told[3 + i] + linear[i]) - pow(mu, 3 + i, R)
        change = solved(last * weights[i], slope, last * rest)
        if change is not None:
            told[3 + i] = (told[3 + i] + change) % R
            return
    raise AssertionError


def replayed(**told: object) -> Callable[[], Made]:
    """A true proof for other columns or another context."""

    def make() -> Made:
        secret, data = held()
        public, context = told.get("columns", secret.public), told.get("context", b"window")
        return public, context, data  # type: ignore[return-value]

    return make


def chunks_swapped() -> Made:
    secret, data = held(1, 700)
    size = norm_form(SHAPE).size
    return secret.public, b"window", data[size:] + data[:size]


def other_scale() -> Made:
    """A row of squared norm 280, proved for a scale that allows it."""
    wide = replace(SHAPE, scale=17)
    rows = np.array([[10, -10, 8]], np.int16)
    secret = commit_columns(rows, wide)
    return secret.public, b"window", prove_norms.prove_norms(wide, secret, b"window")


def beside_the_group() -> Made:
    secret, _ = held()
    low = curve().G1Point.from_compressed_bytes_unchecked(b"\x80" + bytes(47))
    seen: list[int] = []

    def encode(value):  # type: ignore[no-untyped-def]
        seen.append(1)
        return encode_point(value + low if len(seen) == 1 else value)

    with (
        instead(prove_norms, "encode_point", encode),
        instead(prove_norms, "verify_norms", lambda *_: None),
    ):
        return secret.public, b"window", prove_norms.prove_norms(SHAPE, secret, b"window")


# --- verifiers with one mistake


@contextmanager
def without_rows(*dropped: str) -> Iterator[None]:
    true = norms.row_weights
    places = {"digits": range(SMALL + LONG), "squares": [-2], "sums": [-1]}

    def row_weights(shape: Shape, kappa: int) -> list[int]:
        weights = true(shape, kappa)
        for place in (place for name in dropped for place in places[name]):
            weights[place] = 0
        return weights

    with (
        instead(norms, "row_weights", row_weights),
        instead(prove_norms, "row_weights", row_weights),
    ):
        yield


def one_opening() -> AbstractContextManager[None]:
    true = norms._openings
    return instead(norms, "_openings", lambda *given: true(*given)[:1])


@contextmanager
def believing(public: Columns | None = None, context: bytes | None = None) -> Iterator[None]:
    true = NormConversation.__init__

    def init(self, shape, columns_, told, chunk):  # type: ignore[no-untyped-def]
        true(self, shape, public or columns_, told if context is None else context, chunk)

    with pytest.MonkeyPatch.context() as patch:
        if public:
            points = public.points
            patch.setattr(Columns, "points", property(lambda _: points))
        patch.setattr(NormConversation, "__init__", init)
        yield


FORGERIES: dict[str, tuple[Callable[[], Made], str, Callable[[], AbstractContextManager[None]]]] = {
    "a long row": (lambda: lied(LONG_ROW), "norm.opening", lambda: without_rows("squares")),
    "a long row, what is left modulo R in one digit": (
        lambda: lied(LONG_ROW, digit_of_norm),
        "norm.opening",
        lambda: without_rows("digits"),
    ),
    "a digit is 2": (
        lambda: lied(rows_of(1), digit_two),
        "norm.opening",
        lambda: without_rows("digits"),
    ),
    "squares that wrap around": (
        lambda: lied(_wrapping()),
        "norm.opening",
        lambda: without_rows("sums"),
    ),
    "squares that wrap around, projections modulo R in one digit": (
        lambda: lied(_wrapping(), digits_of_projections),
        "norm.opening",
        lambda: without_rows("digits"),
    ),
    "squares that wrap around, projections by the prover": (
        lambda: lied(_wrapping()),
        "norm.opening",
        lambda: instead(
            Projections,
            "read",
            classmethod(
                lambda cls, data, shape: cls(
                    np.zeros((PROJECTIONS, 3), np.uint8), np.zeros((PROJECTIONS, 512), np.uint8)
                )
            ),
        ),
    ),
    "digits after kappa": (
        lambda: lied(LONG_ROW, digits_before_kappa),
        "norm.opening",
        lambda: drawn_early("kappa"),
    ),
    "T after zeta": (quotient_after_zeta, "norm.opening", lambda: drawn_early("zeta")),
    "values after mu": (
        lambda: values_told(value_to_fit),
        "norm.opening",
        lambda: drawn_early("mu"),
    ),
    "a running sum that is told, not opened": (
        lambda: values_told(turned_to_fit),
        "norm.opening",
        one_opening,
    ),
    "replayed for another window": (
        replayed(context=b"other"),
        "norm.statement",
        lambda: believing(context=b"window"),
    ),
    "replayed for another index": (
        lambda: replayed(columns=held(2)[0].public)(),
        "norm.statement",
        lambda: (held(2), believing(public=held()[0].public))[1],
    ),
    "a wider scale": (
        other_scale,
        "norm.statement",
        lambda: instead(norms, "_openings", _wide(norms._openings)),
    ),
    "a point beside one of order 3": (beside_the_group, "point.subgroup", lenient_points),
    "a longer proof": (
        lambda: (held()[0].public, b"window", held()[1] + bytes(32)),
        "norm.size",
        lambda: _cutting(),
    ),
}


def _wide(true: Callable[..., object]) -> Callable[..., object]:
    """A verifier who takes the scale from its prover."""

    def openings(shape, talk, public, proof, chunk):  # type: ignore[no-untyped-def]
        wide = replace(shape, scale=17)
        return true(wide, NormConversation(wide, public, b"window", chunk), public, proof, chunk)

    return openings


@contextmanager
def _cutting() -> Iterator[None]:
    """A verifier who reads what is needed and no further."""
    true = verify_norms

    def verify(shape, public, context, data):  # type: ignore[no-untyped-def]
        true(shape, public, context, data[: norm_form(shape).size])

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "verify_norms", verify)
        yield


# Columns of long numbers.
_HEAVY = [name for name in FORGERIES if name.startswith(("squares", "a long row", "a digit"))]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in _HEAVY else n for n in FORGERIES]
)
def test_a_forgery_is_refused_and_bites(name: str) -> None:
    make, due, weak = FORGERIES[name]
    with weak():
        deceived = make()
        assert verdict(deceived) == "accepted"
    assert verdict(make()) == due
    assert verdict(deceived) != "accepted"


def test_the_proofs_of_two_chunks_swapped() -> None:
    assert verdict(chunks_swapped()) == "norm.statement"


@pytest.mark.parametrize(
    ("at", "part", "due"),
    [
        (32, b"\x80" + bytes(46) + b"\1", "point.curve"),
        (32, b"\x80" + bytes(47), "point.subgroup"),
        (32, b"\xc0" + bytes(46) + b"\1", "point.encoding"),
        (-32, b"\xff" * 32, "point.field"),
        (0, bytes(32), "norm.statement"),
        (-1, b"\0", "norm.opening"),
    ],
)
def test_bytes_that_are_no_proof(at: int, part: bytes, due: str) -> None:
    secret, data = held()
    at %= len(data)
    assert verdict((secret.public, b"window", data[:at] + part + data[at + len(part) :])) == due
    for wrong in (b"", data[:-1], data + b"\0"):
        assert verdict((secret.public, b"window", wrong)) == "norm.size"


def test_columns_of_another_dimension() -> None:
    _, data = held()
    with pytest.raises(VerificationError) as found:
        verify_norms(SHAPE, Columns(((b"\xc0" + bytes(47),) * 2,)), b"window", data)
    assert found.value.check == "columns.size"


# --- what a proof shows: nothing but that it holds


def simulated(columns: Columns, logs: Sequence[int], context: bytes) -> bytes:
    """Return a proof about columns of which only V_c(τ) is known: no rows, no witness."""
    tau, _, _ = trapdoor()
    fresh = lambda count: [secrets.randbelow(R) for _ in range(count)]  # noqa: E731
    point = lambda value: encode_point(generator() * scalar(value))  # noqa: E731
    talk = NormConversation(SHAPE, columns, context, 0)
    # Values at τ of bits, running sum and quotient: each is uniform in an honest proof, too.
    bits, (running, quotient) = fresh(SMALL + LONG), fresh(2)
    sent = [point(value) for value in (*bits, running, quotient)]
    xi, kappa = talk.bits(sent[:-2]), talk.running(sent[-2])
    zeta, values = talk.quotient(sent[-1]), fresh(SHAPE.dimension + SMALL + LONG + 1)
    challenges = NormChallenges(xi, kappa, zeta, talk.values(values))
    constant, at_running, at_quotient = norms.norm_factors(
        SHAPE, talk.projections, challenges, values
    )
    weights = powers(challenges.mu, len(values) - 1)
    total = constant + at_running * running + at_quotient * quotient
    total += dot(weights, [x - v for x, v in zip((*logs, *bits), values[:-1], strict=True)])
    turned = zeta * roots(SHAPE.slots)[1] % R
    sent.append(point(total * pow(tau - zeta, -1, R) % R))
    sent.append(point((running - values[-1]) * pow(tau - turned, -1, R) % R))
    return Proof(talk.head, tuple(sent), tuple(values)).encode()


def test_a_simulator_that_knows_tau_needs_no_index() -> None:
    """Of columns that nobody has rows for, by the verifier's own equation."""
    _, _, second = trapdoor()
    logs = [secrets.randbelow(R) for _ in range(SHAPE.dimension)]
    points = tuple(encode_point(generator() * scalar(log)) for log in logs)
    columns = Columns((points,))
    data = simulated(columns, logs, b"window")
    assert verdict((columns, b"window", data)) == "norm.opening"  # by the ceremony's τ
    with instead(argument, "TAU", second):
        assert verdict((columns, b"window", data)) == "accepted"
        other = simulated(columns, [log + 1 for log in logs], b"window")
        assert verdict((columns, b"window", other)) == "norm.opening"


def _blinds_at(values: Sequence[int], wanted: Mapping[int, int]) -> list[int]:
    """Return the blinds under which a column has these values at these points."""
    points, needed = list(wanted), []
    for point, value in wanted.items():
        plain = dot(lagrange_at(SHAPE.slots, point), [v % R for v in values])
        needed.append((value - plain) * pow(vanishing(SHAPE.slots, point), -1, R) % R)
    # Newton's divided differences, then coefficients.
    table = list(needed)
    for step in range(1, len(points)):
        for at in range(len(points) - 1, step - 1, -1):
            share = pow(points[at] - points[at - step], -1, R)
            table[at] = (table[at] - table[at - 1]) * share % R
    result = [0] * len(points)
    for at in range(len(points) - 1, -1, -1):
        shifted = [0, *result[:-1]]
        result = [(s - points[at] * r) % R for s, r in zip(shifted, result, strict=True)]
        result[0] = (result[0] + table[at]) % R
    return result


def test_another_index_under_the_same_commitments_gives_the_same_bytes() -> None:
    """With τ known: a guess of one document fits as well as the truth, to the byte.

    With two blinds of G it did not: T(τ) shows G(wτ), a third value, and confirmed guesses.
    """
    tau, domain, second = trapdoor()
    turn = roots(SHAPE.slots)[1]
    rows = np.zeros((SHAPE.slots, 3), np.int16)
    rows[:30] = rows_of(1)
    secret = SecretGroup(rows, [[5, 7], [11, 13], [17, 19]])
    columns = Columns((tuple(map(encode_point, secret.commit(domain))),))

    def talk() -> NormConversation:
        return NormConversation(SHAPE, columns, b"window", 0)

    truth = norm_witness(SHAPE, secret, talk())
    proof = argue(SHAPE, talk(), truth, domain)
    seen = talk()
    xi = seen.bits(proof.points[: SMALL + LONG])
    seen.running(proof.points[-4])
    zeta = seen.quotient(proof.points[-3])

    def like(values: np.ndarray, group: SecretGroup) -> list[list[int]]:
        """Blinds under which columns look at τ and ζ as those of another group do."""
        at = [
            group.at(lagrange_at(SHAPE.slots, x), vanishing(SHAPE.slots, x), x) for x in (tau, zeta)
        ]
        return [
            _blinds_at(column.tolist(), dict(zip((tau, zeta), pair, strict=True)))
            for column, pair in zip(values.T, zip(*at, strict=True), strict=True)
        ]

    # The guess: another entry in one document.
    guess = rows.copy()
    guess[17] = -guess[17]
    guess[17, 0] += 1
    held = norm_witness(SHAPE, SecretGroup(guess, like(guess, secret)), talk())
    held = replace(held, bits=SecretGroup(held.bits.values, like(held.bits.values, truth.bits)))
    sums = prove_norms.running_sum(seen.projections, truth, xi)
    shown = {
        x: sums.group.at(lagrange_at(SHAPE.slots, x), vanishing(SHAPE.slots, x), x)[0]
        for x in (tau, turn * tau % R, turn * zeta % R)
    }
    other = prove_norms.running_sum(seen.projections, held, xi).values
    fitted = replace(held, blinds=_blinds_at(other, shown))
    assert argue(SHAPE, talk(), fitted, domain) == proof
    # Two blinds fit two of the three values alone: the third gave the rows away.
    two = {x: value for x, value in shown.items() if x != turn * tau % R}
    assert argue(SHAPE, talk(), replace(held, blinds=_blinds_at(other, two)), domain) != proof
    with instead(argument, "TAU", second):
        assert verdict((columns, b"window", proof.encode())) == "accepted"
