"""Answers' proofs: what holds is accepted; every forgery is refused by name, and each bites.

A forgery is made as well as a forger can, and is also played against a verifier with the one
mistake that it needs: that one accepts it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.proofs import argument, prove_selection, selection
from ragwitness.crypto.proofs.argument import Columns, Proof, SecretColumns, commit_columns
from ragwitness.crypto.proofs.arithmetic import R, Shape, curve, encode_point, scalar
from ragwitness.crypto.proofs.prove_selection import prove_answer
from ragwitness.crypto.proofs.prover import SecretColumn
from ragwitness.crypto.proofs.selection import (
    DOMAIN,
    AnswerClaim,
    check_claim,
    verify_answers,
)
from tests.unit.crypto.proofs.forging import (
    SHAPE,
    SLOTS,
    P,
    World,
    argued,
    believing,
    drawn_early,
    early,
    instead,
    left_over,
    lenient_points,
    simulated,
    solved,
    trapdoor,
    unchecked,
    verdict,
    whole_margins,
    with_bits,
    without_places,
    without_rows,
    world,
)

Made = tuple[AnswerClaim, bytes]


@dataclass(frozen=True)
class Forgery:
    """A lie: what makes it, what has to refuse it, and the mistake with which it would pass."""

    make: Callable[[], Made]
    due: str
    weak: Callable[[], AbstractContextManager[None]]


def true(capacity: int = 40) -> tuple[World, bytes]:
    """Return a true claim's world and its proof, made once."""
    held = world(capacity=capacity)
    if capacity not in _MADE:
        _MADE[capacity] = prove_answer(SHAPE, held.claim, held.secret)
    return held, _MADE[capacity]


_MADE: dict[int, bytes] = {}


# --- what holds


@pytest.mark.parametrize("capacity", [3, 40, 512, 600])
def test_a_true_answer_is_proved(capacity: int) -> None:
    held, data = true(capacity)
    assert verdict(held.claim, data) == "accepted"
    assert len(data) == held.claim.form(SHAPE).size
    again = prove_answer(SHAPE, held.claim, held.secret)
    assert again[:64] == data[:64]
    assert again[64:112] != data[64:112]  # its blinds are new


@pytest.mark.parametrize("top", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5))])
def test_random_selections_with_many_ties_are_proved(top: int) -> None:
    shape = Shape(SLOTS, top, 1, 4, 8)
    draw = random.Random(top)
    claims, proofs = [], []
    for turn in range(6):
        capacity = draw.choice([top, 9, 30, 520])
        rows = np.array([[draw.randrange(-2, 3)] for _ in range(capacity)], np.int16)
        secret = commit_columns(rows, shape)
        query = np.array([draw.randrange(-2, 3)], np.int16)
        noise = np.array([draw.randrange(-2, 3) for _ in range(capacity)], np.int64)
        y = (rows.astype(np.int64) @ query.astype(np.int64) + noise).tolist()
        ids = tuple(sorted(range(capacity), key=lambda j: (-y[j], j))[:top])
        claims.append(AnswerClaim(secret.public, query, noise, ids, bytes([turn])))
        proofs.append(prove_answer(shape, claims[-1], secret))
        for other in [j for j in range(capacity) if j not in ids][:1]:
            with pytest.raises(InputError, match="puts"):
                prove_answer(shape, replace(claims[-1], ids=(*ids[:-1], other)), secret)
    verify_answers(shape, dict(enumerate(zip(claims, proofs, strict=True))))


def test_the_rule_of_margins_is_sorting() -> None:
    """U, A and o leave every margin in range if and only if ids is what sorting gives."""
    shape, draw, seen = Shape(SLOTS, 3, 1, 1, 8), random.Random(3), [0, 0]
    for _ in range(300):
        numbers = [draw.randrange(3) for _ in range(8)]
        best = sorted(range(8), key=lambda j: (-numbers[j], j))[:3]
        ids = best if draw.random() < 0.5 else draw.sample(range(8), 3)
        noise, columns = np.array(numbers, np.int64), Columns(((b"",),))
        claim = AnswerClaim(columns, np.zeros(1, np.int16), noise, tuple(ids), b"")
        [chunk] = claim.chunks(shape)
        upper, own = prove_selection.image(shape, chunk, [numbers[i] for i in ids])
        signs = [-1 if j in ids else 1 for j in range(8)]
        rows = zip(signs, upper, numbers, chunk.late, strict=False)
        fits = all(sign * (u - y) - o >= 0 for sign, u, y, o in rows)
        fits = fits and all(own[i] == numbers[i] for i in ids)
        assert fits == (ids == best), (numbers, ids)
        seen[fits] += 1
    assert min(seen) > 100


# --- lies


def lied(*ids: int, capacity: int = 40, **more: object) -> Made:
    """A false answer, argued as far as that goes."""
    held = world(capacity=capacity)
    claim = held.naming(*(held.order[i] for i in ids), **more)
    return claim, argued(claim, *held.parts(claim))


def lied_whole(*ids: int) -> Made:
    """The same, a margin modulo R in the highest digit of every slot that needs it."""
    held = world()
    claim = held.naming(*(held.order[i] for i in ids))
    numbers, parts = held.parts(claim)
    return claim, argued(claim, numbers, whole_margins(claim, held, parts))


def lost_tie() -> Made:
    """Of two slots with equal numbers the upper one is named last."""
    held = world()
    noise, y = held.claim.noise.copy(), held.noisy()
    low, high = sorted(held.order[2:4])
    noise[high] += y[low] - y[high]
    claim = replace(held.naming(*held.order[:2], high), noise=noise)
    if y[low] < y[held.order[2]]:  # both are as high as the third
        noise[[low, high]] += y[held.order[2]] - y[low]
    tied = replace(held, claim=claim)
    return claim, argued(claim, *tied.parts(claim))


def digit_two() -> Made:
    """A pair of digits (0, 1) told as (2, 0): every sum is right."""
    held = world()
    numbers, [part] = held.parts()

    def change(values: np.ndarray) -> None:
        slot, i = next(
            (slot, i)
            for slot in range(SLOTS)
            for i in range(SHAPE.bits - 1)
            if (values[slot, i], values[slot, i + 1]) == (0, 1)
        )
        values[slot, i], values[slot, i + 1] = 2, 0

    return held.claim, argued(held.claim, numbers, [with_bits(part, change)])


def swapped_by_number() -> Made:
    """The first two winners swapped; the second is told to have the other's number."""
    held = world()
    one, two, three = held.order[:3]
    claim = held.naming(two, one, three)
    (first, second, third), _ = held.parts(claim)
    numbers = [first, min(first, second), third]
    chunk = claim.chunks(SHAPE)[0]
    scores = prove_selection.chunk_scores(SHAPE, claim, held.secret, chunk)
    part = prove_selection.chunk_witness(SHAPE, chunk, numbers, scores)
    return claim, argued(claim, numbers, [part])


def moved(chunk: int, capacity: int, first: int = 0) -> Made:
    """The numbers in U raised at the losers that would win; in R_U made up for, if c is known."""
    held = world(capacity=capacity)
    claim = held.naming(*held.order[:2], held.order[4])
    y, (numbers, parts) = held.noisy(), held.parts(claim)
    told = []
    for public, part in zip(claim.chunks(SHAPE), parts, strict=True):
        here, upper = {slot for _, slot in public.here}, list(part.upper.values)
        for slot in range(public.real):
            own = y[public.number * SLOTS + slot] + public.late[slot]
            if slot not in here:
                upper[slot] = max(upper[slot], own)
        lifted = replace(part, upper=SecretColumn(upper, part.upper.blinds))
        told.append((lifted, [u - v for u, v in zip(upper, part.upper.values, strict=True)]))

    def change(values: np.ndarray, extra: list[int]) -> None:
        for slot, more in enumerate(extra):
            for i in range(SHAPE.bits * bool(more)):
                values[slot, i] = 0

    made = [with_bits(p, lambda v, e=e: change(v, e)) if any(e) else p for p, e in told]
    true_image, extras = prove_selection.image, [extra for _, extra in told]

    def image(shape: Shape, public: object, numbers: list[int]) -> tuple[list[int], list[int]]:
        upper, own = true_image(shape, public, numbers)  # type: ignore[arg-type]
        lift = extras[public.number]  # type: ignore[attr-defined]
        return [(u - first * e) % R for u, e in zip(upper, lift, strict=True)], own

    assert any(map(any, extras))
    with instead(prove_selection, "image", image):
        return claim, argued(claim, numbers, made)


def moved_before_c() -> Made:
    held = world()
    claim = held.naming(*held.order[:2], held.order[4])
    return moved(0, 40, early(DOMAIN, claim.heads(SHAPE)))


def digits_before_kappa() -> Made:
    """In each slot out of range one digit makes the row's errors cancel."""
    held = world()
    claim = held.naming(*held.order[:2], held.order[4])
    numbers, [part] = held.parts(claim)
    [chunk] = claim.chunks(SHAPE)
    kappa, y, here = early(DOMAIN, claim.heads(SHAPE)), held.noisy(), {s for _, s in chunk.here}
    width = SHAPE.bits

    def change(values: np.ndarray) -> None:
        for slot in range(chunk.real):
            margin = (part.upper.values[slot] - y[slot]) * (-1 if slot in here else 1)
            margin -= chunk.late[slot]
            if margin >= 0:
                continue
            # x² - x + κ^(b+1) (margin - x - 2·ones) = 0, with other digits 0 and 1.
            row, ones, found = pow(kappa, width + 1, R), 0, None
            while found is None:
                ones += 1
                found = solved(1, -1 - row, row * (margin - 2 * ones))
            values[slot] = [found, *(ones >> i & 1 for i in range(width - 1))]

    return claim, argued(claim, numbers, [with_bits(part, change)])


def quotient_after_zeta() -> Made:
    """T is fitted at ζ, which is known."""
    claim, numbers, parts = _false()
    zeta, true_quotient = early(DOMAIN, claim.heads(SHAPE)), prove_selection.answer_quotient

    def answer_quotient(shape, told, held, kappa, domain):  # type: ignore[no-untyped-def]
        found = true_quotient(shape, told, held, kappa, domain)
        rest = left_over(told, held, kappa, zeta, found)
        found[0] += rest * pow(selection.vanishing(SLOTS, zeta), -1, R)
        return [x % R for x in found]

    with instead(prove_selection, "answer_quotient", answer_quotient):
        return claim, argued(claim, numbers, parts)


def values_after_mu() -> Made:
    """A wrong value of one digit makes up for what is false, since its weight is known."""
    claim, numbers, parts = _false()
    mu, seen = early(DOMAIN, claim.heads(SHAPE)), []
    true_quotient = prove_selection.answer_quotient

    def answer_quotient(shape, told, held, kappa, domain):  # type: ignore[no-untyped-def]
        found = true_quotient(shape, told, held, kappa, domain)
        seen[:] = [kappa, found]
        return found

    true_weight = selection.AnswerConversation.weight

    def weight(self, values):  # type: ignore[no-untyped-def]
        kappa, found = seen
        [weights] = selection.row_weights(claim, SHAPE, kappa)
        linear = selection.linear_weights(weights)
        last = selection.place_weights(mu, len(values), 1)[-1]
        rest = left_over(claim, parts, kappa, seen_zeta[0], found)
        for i, v in enumerate(values):
            slope = last * (2 * weights[i] * v + linear[i]) - pow(mu, i, R)
            change = solved(last * weights[i], slope, last * rest)
            if change is not None:
                values[i] = (v + change) % R
                break
        return true_weight(self, values)

    seen_zeta, true_point = [0], selection.AnswerConversation.point

    def point(self, responses, quotient):  # type: ignore[no-untyped-def]
        seen_zeta[0] = true_point(self, responses, quotient)
        return seen_zeta[0]

    patches = (
        instead(prove_selection, "answer_quotient", answer_quotient),
        instead(selection.AnswerConversation, "weight", weight),
        instead(selection.AnswerConversation, "point", point),
    )
    with patches[0], patches[1], patches[2]:
        return claim, argued(claim, numbers, parts)


def _false():  # type: ignore[no-untyped-def]
    held = world()
    claim = held.naming(*held.order[:2], held.order[4])
    return claim, *held.parts(claim)


def argued_for(**told: object) -> Callable[[], Made]:
    """All messages made for a claim of which a part is not the verifier's."""

    def make() -> Made:
        held, heads = world(), AnswerClaim.heads
        claim = replace(held.claim, **told)
        with instead(AnswerClaim, "heads", lambda _, shape: heads(claim, shape)):
            return claim, argued(held.claim, *held.parts())

    return make


def replayed(capacity: int = 40, **told: object) -> Callable[[], Made]:
    """A true proof, shown for another claim."""

    def make() -> Made:
        held, data = true(capacity)
        return replace(held.claim, **told), data

    return make


def renamed(capacity: int = 40, **told: object) -> Callable[[], Made]:
    """The same under the other claim's name."""

    def make() -> Made:
        claim, data = replayed(capacity, **told)()
        return claim, claim.heads(SHAPE) + data[64:]

    return make


def told(name: str, capacity: int = 40) -> object:
    """Return the part of the claim that a true proof was made for."""
    return getattr(world(capacity=capacity).claim, name)


def _query() -> np.ndarray:
    query = world().claim.query.copy()
    query[0] += 1 if query[0] < 0 else -1
    return query


def _noise() -> np.ndarray:
    noise = world().claim.noise.copy()
    noise[world().order[0]] -= 1
    return noise


def slot_twice() -> Made:
    """The best slot is named first and last, and so the third winner is hidden."""
    held = world()
    one, two, three = held.order[:3]
    claim = held.naming(one, two, one)
    y = held.noisy()
    numbers = [y[one] - y[three], y[two], y[three]]  # A holds the first's number as a sum of two
    [chunk] = claim.chunks(SHAPE)
    scores = prove_selection.chunk_scores(SHAPE, claim, held.secret, chunk)
    upper = [y[three]] * chunk.real + [0] * (SLOTS - chunk.real)
    own = [0] * SLOTS
    row_upper = lambda slot: selection.number_rows(chunk, 3, _unit(slot))  # noqa: E731
    for slot in (one, two):
        both = row_upper(slot)
        upper[slot], own[slot] = (sum(a * b for a, b in zip(r, numbers, strict=True)) for r in both)
    with instead(prove_selection, "image", lambda *given: _image(given, claim)):
        part = prove_selection.chunk_witness(SHAPE, chunk, numbers, scores)
        sign = {one: -3, two: -1}

        def change(values: np.ndarray) -> None:
            for slot in range(chunk.real):
                margin = sign.get(slot, 1) * (upper[slot] - y[slot]) - chunk.late[slot]
                assert 0 <= margin < 1 << SHAPE.bits
                values[slot] = [margin >> i & 1 for i in range(SHAPE.bits)]

        return claim, argued(claim, numbers, [with_bits(part, change)])


def _unit(slot: int) -> list[int]:
    return [int(j == slot) for j in range(SLOTS)]


def _image(given: tuple, claim: AnswerClaim) -> tuple[list[int], list[int]]:
    """U and A by the verifier's own rows."""
    _, chunk, numbers = given
    rows = [selection.number_rows(chunk, 3, _unit(slot)) for slot in range(SLOTS)]
    both = zip(*rows, strict=True)
    upper, own = (
        [sum(a * b for a, b in zip(r, numbers, strict=True)) for r in row] for row in both
    )
    return upper, own


def behind_the_capacity() -> Made:
    """An empty place is named third, where all but two numbers are below 0."""
    held = world()
    y = held.noisy()
    shift = y[held.order[1]] - 1
    assert y[held.order[2]] < shift
    low = replace(held, claim=replace(held.claim, noise=held.claim.noise - shift))
    claim = replace(low.claim, ids=(*held.order[:2], 40))
    [chunk] = claim.chunks(SHAPE)
    scores = prove_selection.chunk_scores(SHAPE, claim, held.secret, chunk)
    noisy = prove_selection.noisy_scores(scores, chunk)
    numbers = [int(noisy[slot]) for slot in claim.ids]
    with instead(prove_selection, "image", lambda *given: _image(given, claim)):
        part = prove_selection.chunk_witness(SHAPE, chunk, numbers, scores)
        return claim, argued(claim, numbers, [part])


def long_query() -> Made:
    held = world()
    query = np.array([20, -20, 20], np.int16)
    claim = replace(held.claim, query=query)
    asked = replace(held, claim=claim)
    y = asked.noisy()
    claim = replace(claim, ids=tuple(sorted(range(40), key=lambda j: (-y[j], j))[:3]))
    return claim, argued(claim, *replace(asked, claim=claim).parts(claim))


def loud_noise() -> Made:
    held = world()
    noise = held.claim.noise.copy()
    noise[7] = SHAPE.reach + 1
    claim = replace(held.claim, noise=noise)
    loud = replace(held, claim=claim)
    y = loud.noisy()
    claim = replace(claim, ids=tuple(sorted(range(40), key=lambda j: (-y[j], j))[:3]))
    return claim, argued(claim, *replace(loud, claim=claim).parts(claim))


def wrapped() -> Made:
    """As many digits as R has: what is below 0 has them too."""
    held = world()
    claim = held.naming(*held.order[:2], held.order[4])
    numbers, [part] = held.parts(claim)
    [chunk] = claim.chunks(SHAPE)
    y, here, width = held.noisy(), {slot for _, slot in chunk.here}, 255
    matrix = np.zeros((SLOTS, width), np.int64)
    for slot in range(SLOTS):
        own = y[slot] if slot < 40 else 0
        margin = ((part.upper.values[slot] - own) * (-1 if slot in here else 1)) % R
        matrix[slot] = [(margin - chunk.late[slot]) % R >> i & 1 for i in range(width)]
    blinds = [(i, 3 * i) for i in range(width)]
    wide = replace(part, bits=type(part.bits)(matrix, blinds))
    with instead(Shape, "bits", property(lambda _: 255)):
        return claim, argued(claim, numbers, [wide])


def bent(at: int, part: bytes) -> Callable[[], Made]:
    """A true proof with other bytes in a place (negative: from the end)."""

    def make() -> Made:
        held, data = true()
        start = at % len(data)
        return held.claim, data[:start] + part + data[start + len(part) :]

    return make


def beside_the_group(point: bytes) -> Callable[[], Made]:
    """A true proof with a point to which one of another order is added; all is hashed so."""

    def make() -> Made:
        held = world()
        extra = curve().G1Point.from_compressed_bytes_unchecked(point)
        order = R if point == _LOW else 1  # a multiple that the group's order takes away
        low = extra if point == _LOW else extra * scalar(1)
        true_encode = prove_selection.encode_point

        def encode(value: object) -> bytes:
            return true_encode(value + low) if not seen else true_encode(value)  # type: ignore[operator]

        seen: list[int] = []

        def once(value: object) -> bytes:
            data = encode(value)
            seen.append(order)
            return data

        with instead(prove_selection, "encode_point", once):
            return held.claim, argued(held.claim, *held.parts())

    return make


def _encoded(x: int, flag: int = 0x80) -> bytes:
    data = x.to_bytes(48, "big")
    return bytes([data[0] | flag]) + data[1:]


_LOW = _encoded(0)  # (0, 2), of order 3


def _cofactor() -> bytes:
    """A point of no order but the cofactor's: R times one outside the group."""
    outside = curve().G1Point.from_compressed_bytes_unchecked(_encoded(4))
    multiple = outside * scalar(R - 1) + outside
    assert not multiple.is_in_subgroup()
    return encode_point(multiple)


def longer() -> Made:
    held, data = true()
    return held.claim, data + bytes(32)


def scalar_beyond() -> Made:
    held, data = true()
    value = next(
        i for i in range(32, 32 * 13, 32) if int.from_bytes(data[-i:][:32], "big") + R < 1 << 256
    )
    number = int.from_bytes(data[-value:][:32], "big") + R
    return held.claim, data[:-value] + number.to_bytes(32, "big") + data[len(data) - value + 32 :]


def by_a_trapdoor() -> Made:
    """The worst slots are proved the best, by whoever knows τ."""
    tau, domain, _ = trapdoor()
    held = world()
    basis = selection.lagrange_at(SLOTS, tau)
    rows = np.zeros((SLOTS, 3), np.int64)
    rows[:40] = held.secret.rows
    logs = [sum(int(v) * b for v, b in zip(c, basis, strict=True)) % R for c in rows.T]
    points = tuple(encode_point(domain.powers[0] * scalar(log)) for log in logs)
    claim = replace(held.naming(*held.order[-3:]), columns=Columns((points,)))
    return claim, simulated(claim, [logs])


def honest_by_a_trapdoor() -> Made:
    """A true statement, argued over powers of the forger's own."""
    _, domain, _ = trapdoor()
    held = world()
    group = held.secret.group(0, SHAPE)
    points = tuple(map(encode_point, group.commit(domain)))
    claim = replace(held.claim, columns=Columns((points,)))
    numbers, parts = held.parts(claim)
    return claim, prove_selection.argue(SHAPE, claim, numbers, parts, domain).encode()


def cut_after(data: bytes, form: argument.ProofForm) -> Proof:
    return _TRUE_PARSE(data[: form.size], form)


_TRUE_PARSE = Proof.parse


def _lenient_scalar(data: bytes) -> int:
    return int.from_bytes(data, "big") % R


def own_trapdoor() -> AbstractContextManager[None]:
    return instead(argument, "TAU", trapdoor()[2])


def no_ties() -> AbstractContextManager[None]:
    """A verifier who forgets who wins a tie."""
    true_init = selection.PublicChunk.__init__

    def init(self, *given):  # type: ignore[no-untyped-def]
        true_init(self, *given)
        self.late = [0] * SLOTS

    return instead(selection.PublicChunk, "__init__", init)


FORGERIES: dict[str, Forgery] = {
    # False answers: each equation of a row is needed.
    "the fifth best for the third": Forgery(
        lambda: lied(0, 1, 4), "link.opening", lambda: without_rows("margins")
    ),
    "the worst for the best": Forgery(
        lambda: lied(39, 0, 1), "link.opening", lambda: without_rows("margins")
    ),
    "two winners swapped": Forgery(
        lambda: lied(1, 0, 2), "link.opening", lambda: without_rows("margins")
    ),
    "a wrong winner in the second chunk": Forgery(
        lambda: lied(0, 1, 599, capacity=600), "link.opening", lambda: without_rows("margins")
    ),
    "winners swapped, the second's number lowered": Forgery(
        swapped_by_number, "link.opening", lambda: without_rows("winners")
    ),
    "the upper of two equal slots": Forgery(lost_tie, "link.opening", no_ties),
    "a margin modulo R in one digit": Forgery(
        lambda: lied_whole(0, 1, 4), "link.opening", lambda: without_rows("digits")
    ),
    "a margin modulo R, the worst": Forgery(
        lambda: lied_whole(39, 0, 1), "link.opening", lambda: without_rows("digits")
    ),
    "a margin modulo R, swapped": Forgery(
        lambda: lied_whole(1, 0, 2), "link.opening", lambda: without_rows("digits")
    ),
    "a digit of a margin is 2": Forgery(digit_two, "link.opening", lambda: without_rows("digits")),
    "margins of 255 bits": Forgery(
        wrapped, "link.size", lambda: instead(Shape, "bits", property(lambda _: 255))
    ),
    # U and A.
    "one loser's own threshold": Forgery(lambda: moved(0, 40), "link.opening", without_places),
    "two chunks with two thresholds": Forgery(
        lambda: moved(0, 600), "link.opening", without_places
    ),
    # The order of the conversation.
    "digits after kappa": Forgery(
        digits_before_kappa, "link.opening", lambda: drawn_early("kappa")
    ),
    "U after c": Forgery(moved_before_c, "link.opening", lambda: drawn_early("c")),
    "T after zeta": Forgery(quotient_after_zeta, "link.opening", lambda: drawn_early("zeta")),
    "values after mu": Forgery(values_after_mu, "link.opening", lambda: drawn_early("mu")),
    # Parts of the claim that are not the verifier's.
    "argued for another query": Forgery(
        argued_for(query=_query()),
        "link.opening",
        lambda: believing("claimed", query=told("query")),
    ),
    "argued for other noise": Forgery(
        argued_for(noise=_noise()),
        "link.opening",
        lambda: believing("claimed", noise=told("noise")),
    ),
    "argued for another index": Forgery(
        argued_for(columns=world(2).claim.columns),
        "link.opening",
        lambda: believing("claimed", columns=told("columns")),
    ),
    "replayed for another query": Forgery(
        replayed(query=_query()), "link.statement", lambda: believing(query=told("query"))
    ),
    "replayed for another index": Forgery(
        replayed(columns=world(2).claim.columns),
        "link.statement",
        lambda: believing(columns=told("columns")),
    ),
    "replayed for another answer": Forgery(
        replayed(ids=world().order[1:4]), "link.statement", lambda: believing(ids=told("ids"))
    ),
    "replayed for another record": Forgery(
        replayed(context=b"record 8"), "link.statement", lambda: believing(context=told("context"))
    ),
    "replayed for another record, under its name": Forgery(
        renamed(context=b"record 8"),
        "link.opening",
        lambda: believing("named", context=told("context")),
    ),
    "replayed for other noise": Forgery(
        replayed(noise=_noise()), "link.noise", lambda: believing(noise=told("noise"))
    ),
    "replayed for other noise, under its name": Forgery(
        renamed(noise=_noise()), "link.opening", lambda: believing("named", noise=told("noise"))
    ),
    "the chunks swapped": Forgery(
        replayed(capacity=600, columns=Columns(told("columns", capacity=600).chunks[::-1])),
        "link.statement",
        lambda: believing(columns=told("columns", capacity=600)),
    ),
    # Claims outside the bounds.
    "a slot named twice": Forgery(slot_twice, "link.claim", unchecked),
    "a slot behind the capacity": Forgery(behind_the_capacity, "link.claim", unchecked),
    "a query that is too long": Forgery(long_query, "link.claim", unchecked),
    "noise beyond the reach": Forgery(loud_noise, "link.claim", unchecked),
    # Bytes.
    "a longer proof": Forgery(
        longer, "link.size", lambda: instead(Proof, "parse", staticmethod(cut_after))
    ),
    "a scalar beyond R": Forgery(
        scalar_beyond, "point.field", lambda: instead(argument, "parse_scalar", _lenient_scalar)
    ),
    "a point beside one of order 3": Forgery(
        beside_the_group(_LOW), "point.subgroup", lenient_points
    ),
    "a point beside one of the cofactor's order": Forgery(
        beside_the_group(_cofactor()), "point.subgroup", lenient_points
    ),
    # Other powers.
    "the worst proved the best, by a trapdoor": Forgery(
        by_a_trapdoor, "link.opening", own_trapdoor
    ),
    "argued over powers of one's own": Forgery(honest_by_a_trapdoor, "link.opening", own_trapdoor),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_and_bites(name: str) -> None:
    forgery = FORGERIES[name]
    with forgery.weak():
        claim, weak = forgery.make()
        assert verdict(claim, weak) == "accepted"
    claim, data = forgery.make()
    assert verdict(claim, data) == forgery.due
    assert verdict(claim, weak) != "accepted"


# --- bytes, and claims, that are none


@pytest.mark.parametrize(
    ("name", "part", "due"),
    [
        ("a point off the curve", _encoded(1), "point.curve"),
        ("a point outside the group", _encoded(4), "point.subgroup"),
        ("a point of order 3", _LOW, "point.subgroup"),
        ("a coordinate beyond P", _encoded(P + 4), "point.curve"),
        ("a flag that is none", _encoded(4, 0), "point.curve"),
        ("infinity with a rest", _encoded(1, 0xC0), "point.encoding"),
        ("infinity", _encoded(0, 0xC0), "link.opening"),
        ("another point", encode_point(curve().G1Point()), "link.opening"),
    ],
)
def test_points_that_are_none(name: str, part: bytes, due: str) -> None:
    width = SHAPE.bits
    for place in (0, width - 1, width, width + 3, width + 4, width + 5):  # of every kind
        claim, data = bent(64 + 48 * place, part)()
        found = verdict(claim, data)
        assert found == due or {found, due} <= {"point.curve", "point.encoding"}, (name, place)


def test_every_scalar_and_every_point_counts() -> None:
    held, data = true()
    form = held.claim.form(SHAPE)
    for at in range(64, form.size, 331):
        flipped = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert verdict(held.claim, flipped) in ("link.opening", "point.curve", "point.subgroup")
    nothing = data[:64] + _encoded(0, 0xC0) * form.points + bytes(32 * form.scalars)
    assert verdict(held.claim, nothing) == "link.opening"
    for wrong in (b"", data[:-1], data[:64], data + b"\0"):
        assert verdict(held.claim, wrong) == "link.size"
    assert verdict(held.claim, bytes(32) + data[32:]) == "link.statement"
    assert verdict(held.claim, data[:32] + bytes(32) + data[64:]) == "link.noise"


@pytest.mark.parametrize(
    "change",
    [
        {"ids": (0, 1)},
        {"ids": (0, 1, 2, 3)},
        {"ids": (0, 1, -1)},
        {"ids": (0, 1, True)},
        {"noise": np.zeros(600, np.int64)},
        {"noise": np.zeros(40, np.int32)},
        {"query": np.zeros(3, np.int64)},
        {"query": np.zeros(4, np.int16)},
        {"columns": Columns(())},
        {"columns": Columns(((b"",),))},
    ],
)
def test_a_claim_outside_the_bounds(change: dict) -> None:
    held, data = true()
    claim = replace(held.claim, **change)
    with pytest.raises(VerificationError) as found:
        check_claim(claim, SHAPE)
    assert found.value.check == "link.claim"
    assert verdict(claim, data) == "link.claim"


def test_a_false_proof_among_many_is_named_by_its_place() -> None:
    held, data = true()
    claim, lie = lied(0, 1, 4)
    true_ones = {f"Proof {i}": (held.claim, data) for i in range(3)}
    verify_answers(SHAPE, true_ones)
    with pytest.raises(VerificationError, match="Proof 2: the named slots"):
        verify_answers(SHAPE, true_ones | {"Proof 2": (claim, lie)})


def test_a_column_of_higher_degree_with_the_same_values_is_no_lie() -> None:
    """Only values on H are spoken of, so no degree is bounded."""
    held = world()
    numbers, [part] = held.parts()
    blinds = [list(pair) for pair in part.bits.blinds]
    made = prove_selection.argue(SHAPE, held.claim, numbers, [part]).encode()
    assert verdict(held.claim, made) == "accepted"
    wide = replace(part, bits=type(part.bits)(part.bits.values, [[0, b[1] * 3] for b in blinds]))
    assert verdict(held.claim, argued(held.claim, numbers, [wide])) == "accepted"


# --- what a proof shows


def test_another_secret_with_the_same_commitments_gives_the_same_bytes() -> None:
    """With tau known: other rows and numbers have randomness under which all bytes agree."""
    tau, domain, _ = trapdoor()
    one = world()
    public = tuple(map(encode_point, one.secret.group(0, SHAPE).commit(domain)))
    claim = replace(one.claim, columns=Columns((public,)))
    first = replace(one, claim=claim)
    numbers, [part] = first.parts()
    masks = list(range(101, 101 + len(numbers) + 2))
    with instead(prove_selection, "draw_scalars", lambda count: masks):
        proof = prove_selection.argue(SHAPE, claim, numbers, [part], domain)
    talk = selection.AnswerConversation(claim.heads(SHAPE))
    _, c = talk.columns(proof.points[:-2])
    split = len(numbers) + 2
    zeta = talk.point(proof.scalars[:split], proof.points[-2])
    # Another index: the best row is longer, so numbers differ.
    best = claim.ids[0]
    rows = one.secret.rows.copy()
    rows[best] += np.sign(claim.query)
    two = replace(first, secret=SecretColumns(rows, one.secret.blinds, claim.columns))
    others, [made] = two.parts()
    assert others != numbers

    def hidden(column: SecretColumn, held: SecretColumn, points: list[int]) -> SecretColumn:
        """Blinds under which a column looks at these points as the other one does."""
        need = []
        for point in points:
            basis, vanish = selection.lagrange_at(SLOTS, point), selection.vanishing(SLOTS, point)
            [there] = held.group.at(basis, vanish, point)
            [here] = replace(column, blinds=[0]).group.at(basis, vanish, point)
            need.append((there - here) * pow(vanish, -1, R) % R)
        if len(points) == 1:
            return replace(column, blinds=need)
        slope = (need[1] - need[0]) * pow(points[1] - points[0], -1, R) % R
        return replace(column, blinds=[(need[0] - slope * points[0]) % R, slope])

    bits = [
        hidden(SecretColumn(v.tolist(), [0]), SecretColumn(w.tolist(), list(b)), [tau, zeta])
        for v, w, b in zip(made.bits.values.T, part.bits.values.T, part.bits.blinds, strict=True)
    ]
    fitted = replace(
        made,
        bits=replace(made.bits, blinds=[column.blinds for column in bits]),
        scores=hidden(made.scores, part.scores, [tau]),
        upper=hidden(made.upper, part.upper, [tau]),
        own=hidden(made.own, part.own, [tau]),
    )
    known = [*others, fitted.upper.blinds[0], fitted.own.blinds[0]]
    drawn = [(r - c * x) % R for r, x in zip(proof.scalars[:split], known, strict=True)]
    with instead(prove_selection, "draw_scalars", lambda count: drawn):
        again = prove_selection.argue(SHAPE, claim, others, [fitted], domain)
    with own_trapdoor():
        assert verdict(claim, proof.encode()) == "accepted"
    assert again.encode() == proof.encode()
