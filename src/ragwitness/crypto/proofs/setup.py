"""What a window is checked with: the setup's public part, one file of canonical JSON."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.hashing import parse_hex
from ragwitness.crypto.proofs.curve import Term, parse_g2, product_holds
from ragwitness.crypto.proofs.groth16 import VerifyingKey
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G1_GENERATOR,
    G2,
    G2_BYTES,
    G2_GENERATOR,
    R,
    encode_g1,
    encode_g2,
    negate,
    parse_g1,
)
from ragwitness.errors import InputError, VerificationError

# What fixes the circuits: sizes and bounds, nothing about an index's contents.

MASKS = 3
"""Random coefficients behind the slots of every column and of every sum of columns."""

MOST_SLOTS = 1 << 12
MOST_TOP = 32
MOST_DIMENSION = 1 << 14
MOST_SCALE = 1 << 12
MOST_REACH = 1 << 40


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one setup. An index larger than ``slots`` is cut into chunks of that many.

    Attributes:
        slots: Number of slots of one chunk, n; 2 to 4,096.
        top: Slots that an answer names, K; 1 to 32, and at most ``slots``.
        dimension: Dimension of the vectors, d.
        scale: Bound on the norm of rows and of queries, S.
        reach: Largest size of the noise that the sampler gives.

    Raises:
        InputError: A value is outside its range; the message names it.
    """

    slots: int
    top: int
    dimension: int
    scale: int
    reach: int

    def __post_init__(self) -> None:
        _within("slots", self.slots, 2, MOST_SLOTS)
        _within("top", self.top, 1, min(self.slots, MOST_TOP))
        _within("dimension", self.dimension, 1, MOST_DIMENSION)
        _within("scale", self.scale, 1, MOST_SCALE)
        _within("reach", self.reach, 0, MOST_REACH)

    @property
    def bits(self) -> int:
        """Such that the difference of two doubled noisy scores, ties and all, is below 2^bits."""
        return (4 * (self.scale**2 + self.reach) + 4).bit_length()

    @property
    def coefficients(self) -> int:
        """Of a committed polynomial, D = n + 3: the slots, then the masks."""
        return self.slots + MASKS


def _within(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(
            f"A proof's shape needs {name} from {least:,} to {most:,}, not {value!r}.",
            "Larger indexes are cut into chunks: choose slots, and a capacity that it divides.",
        )


VERSION = "ragwitness/setup/v1"
CEREMONY_VERSION = "ragwitness/setup/v2"
MOST_SETUP_BYTES = 1 << 16

_NORM_PUBLICS = 6
_ROUNDS = 2  # of a ceremony
_HINT = "Use the setup.json that `ragwitness attest setup` wrote with this version."


@dataclass(frozen=True, slots=True)
class CeremonySeal:
    """What a setup says of its ceremony: the transcript's SHA-256, and the names, by round."""

    transcript: str
    contributors: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class VerifierSetup:
    """Everything that a verifier needs of a setup. Its digest is what a verifier has to trust.

    Attributes:
        shape: Sizes and bounds.
        tau: [τ]₂.
        masks: [τⁿ], [τⁿ⁺¹], [τⁿ⁺²].
        link: Verifying key of the selection circuit.
        norm: Verifying key of the norm circuit.
        ceremony: How many made it together; None for one party, who could prove anything.
    """

    shape: Shape
    tau: G2
    masks: tuple[G1, ...]
    link: VerifyingKey
    norm: VerifyingKey
    ceremony: CeremonySeal | None = None

    def encode(self) -> bytes:
        """Return the file; the field of a ceremony stands only where there was one."""
        fields = {
            "link": self.link.encode().hex(),
            "masks": [encode_g1(point).hex() for point in self.masks],
            "norm": self.norm.encode().hex(),
            "shape": asdict(self.shape),
            "tau": encode_g2(self.tau).hex(),
            "version": VERSION,
        }
        if self.ceremony:
            fields |= {"ceremony": asdict(self.ceremony), "version": CEREMONY_VERSION}
        return canonical(fields)

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`encode` in hex."""
        return self.digest_bytes.hex()

    @property
    def digest_bytes(self) -> bytes:
        """SHA-256 of :meth:`encode`, 32 bytes."""
        return hashlib.sha256(self.encode()).digest()

    @classmethod
    def parse(cls, data: bytes) -> VerifierSetup:
        """Return what :meth:`encode` wrote; every point is checked.

        Raises:
            VerificationError: ``setup.version``, ``setup.fields``, ``setup.shape``, another
                ``setup.…`` for JSON that is not canonical or points that are none.
            MissingExtraError: py_ecc is not installed.
        """
        fields = parse(data, MOST_SETUP_BYTES, "setup")
        if not isinstance(fields, dict) or fields.get("version") not in (VERSION, CEREMONY_VERSION):
            raise VerificationError(
                "setup.version", f"This is not a setup of {VERSION} or {CEREMONY_VERSION}.", _HINT
            )
        names = {"link", "masks", "norm", "shape", "tau", "version"}
        ceremony = None
        if fields["version"] == CEREMONY_VERSION:
            names.add("ceremony")
            ceremony = _seal(fields.get("ceremony"))
        if set(fields) != names or not isinstance(fields["masks"], list):
            raise VerificationError("setup.fields", "A field of the setup is missing, or too many.")
        shape = parse_shape(fields["shape"])
        if len(fields["masks"]) != MASKS:
            raise VerificationError("setup.fields", f"A setup has {MASKS} points for masks.")
        masks = tuple(parse_g1(_bytes(text, G1_BYTES), "setup") for text in fields["masks"])
        tau = parse_g2(_bytes(fields["tau"], G2_BYTES), "setup")
        if (0, 0) in masks or tau == ((0, 0), (0, 0)):
            raise VerificationError("setup.fields", "A power of τ is the point at infinity.")
        link = _key(fields["link"], 4 + 3 * shape.top - 1)
        return cls(shape, tau, masks, link, _key(fields["norm"], _NORM_PUBLICS), ceremony)


def _seal(found: object) -> CeremonySeal:
    if not isinstance(found, dict) or found.keys() != {"contributors", "transcript"}:
        raise VerificationError("setup.ceremony", "The setup does not say what ceremony made it.")
    rounds, transcript = found["contributors"], found["transcript"]
    named = isinstance(rounds, list) and len(rounds) == _ROUNDS and all(map(_names, rounds))
    if not named or not isinstance(transcript, str):
        raise VerificationError("setup.ceremony", "The setup does not name who made it.")
    parse_hex(transcript, 32, "setup.hex")
    return CeremonySeal(transcript, tuple(map(tuple, rounds)))


def _names(found: object) -> bool:
    return isinstance(found, list) and found != [] and all(isinstance(one, str) for one in found)


def parse_shape(fields: object) -> Shape:
    """Return a shape out of a file.

    Raises:
        VerificationError: ``setup.shape``.
    """
    names = {"slots", "top", "dimension", "scale", "reach"}
    if not isinstance(fields, dict) or set(fields) != names:
        raise VerificationError("setup.shape", "The setup's shape has missing or unknown fields.")
    try:
        return Shape(**fields)
    except InputError as error:
        raise VerificationError("setup.shape", error.message) from error


def _bytes(text: object, size: int) -> bytes:
    if not isinstance(text, str):
        raise VerificationError("setup.fields", "A point of the setup is not a text.")
    return parse_hex(text, size, "setup.hex")


def _key(text: object, publics: int) -> VerifyingKey:
    if not isinstance(text, str):
        raise VerificationError("setup.fields", "A key of the setup is not a text.")
    data = parse_hex(text, len(text) // 2, "setup.hex")
    try:
        return VerifyingKey.parse(data, publics)
    except VerificationError as error:
        raise VerificationError("setup.key", f"A verifying key is none: {error.message}") from error


# The structured reference string: powers of a number that nobody keeps, as points.
#
# It holds exactly as many powers as a committed polynomial has coefficients, D = n + 3, so a
# commitment binds to a polynomial of degree below D and to no higher one (algebraic group model).

_MAGIC = b"ragwitness/srs/v1\n"
_WEIGHT_BITS = 128


@dataclass(frozen=True, slots=True)
class Srs:
    """Powers of τ.

    Attributes:
        powers: [1], [τ], …, [τ^(D-1)] in G1.
        tau: [τ] in G2.
    """

    powers: tuple[G1, ...]
    tau: G2

    def encode(self) -> bytes:
        """Return the file: a line of text, [τ]₂, the powers."""
        return _MAGIC + encode_g2(self.tau) + b"".join(map(encode_g1, self.powers))

    @classmethod
    def parse(cls, data: bytes, shape: Shape) -> Srs:
        """Return what :meth:`encode` wrote, points checked and the powers not yet.

        Raises:
            VerificationError: ``srs.size``, ``srs.format`` or one of ``srs.field``, ``.curve``,
                ``.subgroup``.
        """
        head = len(_MAGIC) + G2_BYTES
        due = head + shape.coefficients * G1_BYTES
        if len(data) != due:
            raise VerificationError("srs.size", f"The powers take {due:,} bytes, not {len(data):,}")
        if not data.startswith(_MAGIC):
            raise VerificationError("srs.format", "The file does not start as powers of v1 do.")
        tau = parse_g2(data[len(_MAGIC) : head], "srs")
        starts = range(head, due, G1_BYTES)
        return cls(tuple(parse_g1(data[i : i + G1_BYTES], "srs") for i in starts), tau)


def make_srs(shape: Shape) -> Srs:
    """Draw τ, return its powers and forget it.

    Whoever runs this could keep τ, and with it open every commitment to anything: it has to be
    someone whom the verifier trusts not to (the auditor).

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    from ragwitness.crypto.proofs import native

    # τ, its powers in the field, and those as points; only the points are returned.
    tau = secrets.randbelow(R - 1) + 1
    scalars = [1]
    while len(scalars) < shape.coefficients:
        scalars.append(scalars[-1] * tau % R)
    points = native.native_multiples(native.to_native_g1(G1_GENERATOR), scalars)
    [second] = native.native_multiples(native.to_native_g2(G2_GENERATOR), [tau])
    return Srs(tuple(map(native.from_native_g1, points)), native.from_native_g2(second))


def check_powers(srs: Srs) -> None:
    """Check that the points are powers of one number other than 0, 1 and -1, whoever made them.

    A prover's blinds hide only under such powers. Checked is one random combination of all
    neighbours, e(Σ w_i P_(i+1), [1]) = e(Σ w_i P_i, [τ]); wrong powers pass with probability
    2⁻¹²⁸.

    Raises:
        VerificationError: ``srs.powers``.
        MissingExtraError: zksnake or py_ecc is not installed.
    """
    # [1] is the generator, and τ is not one of the numbers under which masks cancel (norms.md).
    first, second = srs.powers[:2]
    if first != G1_GENERATOR or second in ((0, 0), first, negate(first)):
        raise VerificationError("srs.powers", "The powers do not start at 1, or τ is 0, 1 or -1.")
    # Every power is τ times the one before: e(Σ w_i P_(i+1), [1]) = e(Σ w_i P_i, [τ]).
    weights = [secrets.randbits(_WEIGHT_BITS) for _ in srs.powers[1:]]
    upper = _sum(srs.powers[1:], weights)
    lower = _sum(srs.powers[:-1], weights)
    if not product_holds([Term(1, upper, G2_GENERATOR), Term(1, negate(lower), srs.tau)]):
        raise VerificationError(
            "srs.powers",
            "The setup's points are not the powers of one number, so blinds would not hide.",
            "Ask for a new setup, from someone else.",
        )


def _sum(points: Sequence[G1], weights: Sequence[int]) -> G1:
    """Σ weights · points."""
    from ragwitness.crypto.proofs import native

    held = [native.to_native_g1(point) for point in points]
    return native.from_native_g1(native.native_msm(held, weights))
