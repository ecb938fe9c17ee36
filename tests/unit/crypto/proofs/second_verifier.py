"""A second verifier of a window's proofs, written from docs/design/link.md and norms.md alone.

It shares no code with the package, and computes with another library (py_ecc): whoever doubts the
first one reads these lines. Slow, and checks one proof at a time. It answers True or False.
"""

from __future__ import annotations

import hashlib
import json
import math

from py_ecc.bls.point_compression import compress_G1, decompress_G1, decompress_G2
from py_ecc.optimized_bls12_381 import G1, G2, Z1, add, curve_order, eq, multiply, pairing

R = curve_order
TAU = bytes.fromhex(
    "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d2914e5870cb452d2afaaab24f3499f72"
    "185cbfee53492714734429b7b38608e23926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2"
)
PAIRS = 309  # random projections


# Hashes.


def tagged(domain: str, *parts: bytes) -> bytes:
    """SHA-256 over parts, each with its length before it."""
    digest = hashlib.sha256()
    for part in (domain.encode(), *parts):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


class Talk:
    """SHAKE256 over kind, label and content of every message."""

    def __init__(self, domain: str, statement: bytes) -> None:
        self.shake = hashlib.shake_256()
        self.put("domain", domain, statement)

    def put(self, kind: str, label: str, content: bytes) -> None:
        for part in (kind.encode(), label.encode(), content):
            self.shake.update(len(part).to_bytes(8, "big") + part)

    def draw(self, label: str, size: int) -> bytes:
        self.put("squeeze", label, size.to_bytes(8, "big"))
        return self.shake.copy().digest(size)

    def challenge(self, label: str) -> int:
        return int.from_bytes(self.draw(label, 64), "big") % R


# The group, and polynomials on the roots of unity.


def point(data: bytes):
    """A point in its one encoding, on the curve and in the group of order R; else ValueError."""
    read = decompress_G1(int.from_bytes(data, "big"))
    if compress_G1(read).to_bytes(48, "big") != data or not eq(multiply(read, R), Z1):
        raise ValueError("no point of the group in its one encoding")
    return read


def number(data: bytes) -> int:
    value = int.from_bytes(data, "big")
    if value >= R:
        raise ValueError("not below R")
    return value


def total(terms) -> tuple:
    result = Z1
    for value, factor in terms:
        if factor % R:
            result = add(result, multiply(value, factor % R))
    return result


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def root(n: int) -> int:
    return pow(7, (R - 1) // n, R)


def lagrange(n: int, x: int) -> list[int]:
    """L_j(x) = (x^n - 1) w^j / (n (x - w^j))."""
    w, zero = root(n), (pow(x, n, R) - 1) % R
    places = [pow(w, j, R) for j in range(n)]
    return [zero * p * pow(n * (x - p), -1, R) % R for p in places]


def opens(terms, constant: int, x: int, quotient, tau: bytes) -> bool:
    """Whether Σ terms + constant is 0 at x: e(E + xπ, [1]) = e(π, [τ])."""
    left = total([*terms, (G1, constant), (quotient, x)])
    second = decompress_G2((int.from_bytes(tau[:48], "big"), int.from_bytes(tau[48:], "big")))
    return bool(pairing(G2, left) == pairing(second, quotient))


def shape_digest(shape: dict[str, int]) -> bytes:
    text = json.dumps(shape, sort_keys=True, separators=(",", ":")).encode()
    return tagged("ragwitness/proof-shape/v1", text, TAU)


# NORM: every row of the index has a norm of at most S.


def norms_hold(shape: dict[str, int], columns: bytes, context: bytes, proof: bytes,
               tau: bytes = TAU) -> bool:  # fmt: skip
    """Whether a norm proof holds, chunk by chunk (norms.md)."""
    n, d, scale = shape["slots"], shape["dimension"], shape["scale"]
    reach = n * scale * (math.isqrt(d - 1) + 1)
    small, long = (scale * scale).bit_length(), reach.bit_length() + 1
    width = small + long
    size = 32 + 48 * (width + 4) + 32 * (d + width + 1)
    chunks = pieces(columns, 48 * d)
    if len(proof) != size * len(chunks):
        return False
    for at, data in enumerate(pieces(proof, size)):
        head = tagged("ragwitness/norm-statement/v2", shape_digest(shape), columns, context,
                      str(at).encode())  # fmt: skip
        if data[:32] != head:
            return False
        encoded = pieces(data[32 : 32 + 48 * (width + 4)], 48)
        raw = pieces(data[32 + 48 * (width + 4) :], 32)
        try:
            held = [point(p) for p in pieces(chunks[at], 48)]
            *bits, running, quotient, first, second = map(point, encoded)
            values = [number(v) for v in raw]
        except ValueError:
            return False
        # Rounds 1 to 5.
        talk = Talk("ragwitness/norm/v2", head)
        row = (d + 7) // 8 + n // 8
        drawn = pieces(talk.draw("projections", PAIRS * row), row)
        talk.put("points", "bits", b"".join(encoded[:width]))
        xi = talk.challenge("xi")
        talk.put("points", "running", encoded[width])
        kappa = talk.challenge("kappa")
        talk.put("points", "quotient", encoded[width + 1])
        zeta = talk.challenge("zeta")
        talk.put("scalars", "values", b"".join(raw))
        mu = talk.challenge("mu")
        # Round 6: F(ζ) = Z(ζ) T(ζ), where F is the sum of the rows under powers of κ.
        zero, basis = (pow(zeta, n, R) - 1) % R, lagrange(n, zeta)
        v, digits, turned = values[:d], values[d:-1], values[-1]
        rows = sum(pow(kappa, i, R) * (x * x - x) for i, x in enumerate(digits))
        squares, sums = pow(kappa, width, R), pow(kappa, width + 1, R)
        norm = sum(x * x for x in v) + sum(x << i for i, x in enumerate(digits[:small]))
        rows += squares * (norm - scale * scale)
        shown = sum(x << i for i, x in enumerate(digits[small:])) - (1 << long - 1)
        crossed = 0
        for i, text in enumerate(drawn):
            flat = [byte >> 7 - bit & 1 for byte in text for bit in range(8)]
            a, b = flat[:d], flat[-n:]
            side = sum(y for x, y in zip(b, basis, strict=True) if x)
            across = sum(y for x, y in zip(a, v, strict=True) if x)
            crossed += pow(xi, i, R) * (side * across - basis[i] * shown)
        rows += sums * (turned - crossed)  # and - sums · G, which is not opened at ζ
        last = pow(mu, d + width, R)
        terms = [(p, pow(mu, i, R)) for i, p in enumerate([*held, *bits])]
        terms += [(running, -last * sums), (quotient, -last * zero)]
        constant = last * rows - sum(pow(mu, i, R) * x for i, x in enumerate(values[:-1]))
        if not opens(terms, constant, zeta, first, tau):
            return False
        if not opens([(running, 1)], -turned, zeta * root(n) % R, second, tau):
            return False
    return True


# LINK: the answer names the K highest of V·q + noise.


def answer_holds(
    shape: dict[str, int], columns: bytes, query: list[int], noise: list[int], ids: list[int],
    context: bytes, proof: bytes, tau: bytes = TAU,
) -> bool:  # fmt: skip
    """Whether the proof of an answer holds (link.md)."""
    n, d, top = shape["slots"], shape["dimension"], shape["top"]
    width = (2 * (shape["scale"] ** 2 + shape["reach"])).bit_length()
    chunks = pieces(columns, 48 * d)
    count, size = len(chunks), width + 4
    # Bounds, within which the arithmetic is that of integers.
    if len(query) != d or sum(x * x for x in query) > shape["scale"] ** 2:
        return False
    if -(-len(noise) // n) != count or any(abs(e) > shape["reach"] for e in noise):
        return False
    if len(set(ids)) != top or len(ids) != top or not all(0 <= i < len(noise) for i in ids):
        return False
    statement = tagged(
        "ragwitness/answer-statement/v1", shape_digest(shape), columns,
        b"".join(x.to_bytes(2, "little", signed=True) for x in query),
        b"".join(i.to_bytes(8, "little") for i in ids), context,
    )  # fmt: skip
    loud = b"".join(e.to_bytes(8, "little", signed=True) for e in noise)
    head = statement + tagged("ragwitness/answer-noise/v1", loud)
    points, split = 48 * (size * count + 2), top + 2 * count
    if len(proof) != 64 + points + 32 * (split + width * count) or proof[:64] != head:
        return False
    encoded, raw = pieces(proof[64 : 64 + points], 48), pieces(proof[64 + points :], 32)
    try:
        held = [[point(p) for p in pieces(chunk, 48)] for chunk in chunks]
        *sent, quotient, opening = map(point, encoded)
        numbers = [number(v) for v in raw]
    except ValueError:
        return False
    # Rounds 1 to 4.
    talk = Talk("ragwitness/answer/v1", head)
    talk.put("points", "columns", b"".join(encoded[:-2]))
    kappa, c = talk.challenge("kappa"), talk.challenge("c")
    talk.put("scalars", "responses", b"".join(raw[:split]))
    talk.put("points", "quotient", encoded[-2])
    zeta = talk.challenge("zeta")
    talk.put("scalars", "values", b"".join(raw[split:]))
    mu = talk.challenge("mu")
    # Round 5.
    responses, values = numbers[:split], numbers[split:]
    zero, basis = (pow(zeta, n, R) - 1) % R, lagrange(n, zeta)
    behind = len(values)
    last = pow(mu, behind + 2 * count, R)
    terms, constant = [(quotient, -last * zero)], 0
    for at in range(count):
        *bits, upper, own, mask_u, mask_a = sent[at * size : (at + 1) * size]
        digits = values[at * width : (at + 1) * width]
        for i, (p, x) in enumerate(zip(bits, digits, strict=True), at * width):
            terms.append((p, pow(mu, i, R)))
            constant -= pow(mu, i, R) * x
        # The public polynomials at ζ: s, o, e, and those of the winners' numbers.
        real = min(n, len(noise) - at * n)
        late = [int(at * n + j < ids[-1]) for j in range(real)]
        winners = [0] * top
        for k, slot in enumerate(ids):
            if slot // n == at:
                winners[k] = basis[slot % n]
                late[slot % n] = int(k + 1 < top and slot > ids[k + 1])
        s = sum(winners)
        o = sum(x * y for x, y in zip(late, basis, strict=False))
        e = sum(x * y for x, y in zip(noise[at * n : at * n + real], basis, strict=False))
        # Rows: M² = M; (1 - 2s)(U - y) - o = Σ 2^i M_i; s (y - A) = 0, with y = Σ q_c C_c + e.
        power = [pow(kappa, at * (width + 3) + i, R) for i in range(width + 3)]
        margin, winner = power[width + 1], power[width + 2]
        rows = sum(w * (x * x - x) for w, x in zip(power, digits, strict=False))
        rows -= margin * (o + sum(x << i for i, x in enumerate(digits)))
        rows += (winner * s - margin * (1 - 2 * s)) * e
        constant += last * rows
        for p, q in zip(held[at], query, strict=True):
            terms.append((p, last * (winner * s - margin * (1 - 2 * s)) * q))
        terms += [(upper, last * margin * (1 - 2 * s)), (own, -last * winner * s)]
        # Places: R_U + c U = Σ r_k u_k + r Z, and the same for A.
        nexts = [0, *winners[:-1]] if top > 1 else [0]
        nexts[-1] = sum(basis[:real]) - sum(winners[: top - 2])
        for i, (mask, p, places) in enumerate(((mask_u, upper, nexts), (mask_a, own, winners))):
            factor = pow(mu, behind + 2 * at + i, R)
            terms += [(mask, factor), (p, factor * c)]
            due = sum(x * y for x, y in zip(places, responses[:top], strict=True))
            constant -= factor * (due + responses[top + 2 * at + i] * zero)
    return opens(terms, constant, zeta, opening, tau)
