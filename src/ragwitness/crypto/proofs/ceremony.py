"""A setup by many: begin, contribute, move on, finish; and one check that anybody can make.

One honest contributor in each round suffices (docs/design/ceremony.md). A step takes a point B, the
one that the step before left, to x·B. With it stands a proof of knowledge of x (Schnorr), whose
challenge covers the name and the digest of the step before: a step cannot be moved, left out from
the middle, or handed in again by another.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.hashing import parse_hex
from ragwitness.crypto.proofs.ceremony_points import (
    LagrangePoints,
    Powers,
    check_key,
    check_powers,
    circuit_key,
    with_delta,
)
from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.circuits.norm import norm_circuit
from ragwitness.crypto.proofs.curve import msm
from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.groth16.zksnake import ProvingKey, domain_of
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G1_GENERATOR,
    SCALAR_BYTES,
    R,
    encode_g1,
    encode_scalar,
    parse_g1,
    parse_scalar,
)
from ragwitness.crypto.proofs.prover_setup import write_setup
from ragwitness.crypto.proofs.r1cs import Circuit
from ragwitness.crypto.proofs.setup import CeremonySeal, Shape, VerifierSetup, parse_shape
from ragwitness.crypto.proofs.setup import check_powers as check_srs
from ragwitness.errors import InputError, VerificationError

CEREMONY_VERSION = "ragwitness/ceremony/v1"
ROUNDS = (("alpha", "beta", "kzg", "tau"), ("link", "norm"))
"""Names of the numbers that a step multiplies in: of the powers, then each circuit's delta."""

MOST_STEPS = 100
_LONGEST_NAME = 60
_MOST_BYTES = 1 << 20
_PROOF = G1_BYTES + SCALAR_BYTES


@dataclass(frozen=True, slots=True)
class Step:
    """What one contributor did in one round.

    Attributes:
        name: The contributor's, as it was given; nothing proves whose it is.
        prior: Digest of the step before, in hex.
        points: Name of a number to [product of all factors so far]₁.
        proofs: Name of a number to the proof of knowledge of this step's factor.
    """

    name: str
    prior: str
    points: Mapping[str, G1]
    proofs: Mapping[str, tuple[G1, int]]

    def fields(self) -> dict[str, str]:
        """Return what stands in the transcript: points and proofs in order of their names."""
        points = b"".join(map(encode_g1, self.points.values())).hex()
        proofs = b"".join(encode_g1(a) + encode_scalar(z) for a, z in self.proofs.values()).hex()
        return {"name": self.name, "points": points, "prior": self.prior, "proofs": proofs}

    @property
    def digest(self) -> str:
        """SHA-256 in hex: what a contributor notes, and later looks for in the transcript."""
        return hashlib.sha256(canonical(self.fields())).hexdigest()


@dataclass(frozen=True, slots=True)
class CeremonyTranscript:
    """All steps, by rounds: one tuple of them until the round of the powers is finished."""

    shape: Shape
    rounds: tuple[tuple[Step, ...], ...] = ((),)

    def encode(self) -> bytes:
        """Return canonical JSON."""
        rounds = [[step.fields() for step in steps] for steps in self.rounds]
        fields = {"rounds": rounds, "shape": asdict(self.shape), "version": CEREMONY_VERSION}
        return canonical(fields)

    @property
    def seal(self) -> CeremonySeal:
        """What a setup says of its ceremony."""
        names = tuple(tuple(step.name for step in steps) for steps in self.rounds)
        return CeremonySeal(hashlib.sha256(self.encode()).hexdigest(), names)

    @property
    def last(self) -> str:
        """Digest of the last step; of the shape before there is one."""
        steps = [step for steps in self.rounds for step in steps]
        return steps[-1].digest if steps else _start(self.shape)

    @property
    def points(self) -> dict[str, G1]:
        """Name of each number to where its steps have left it."""
        found = {label: G1_GENERATOR for labels in ROUNDS for label in labels}
        for steps in self.rounds:
            for step in steps:
                found.update(step.points)
        return found

    @classmethod
    def parse(cls, data: bytes) -> CeremonyTranscript:
        """Return what :meth:`encode` wrote; no step is checked yet.

        Raises:
            VerificationError: ``ceremony.version``, ``ceremony.fields``, ``setup.shape``, or
                another ``ceremony.…`` of JSON or points that are none.
        """
        found = parse(data, _MOST_BYTES, "ceremony")
        if not isinstance(found, dict) or found.get("version") != CEREMONY_VERSION:
            raise _refused("version", f"This is not a transcript of {CEREMONY_VERSION}.")
        rounds = found.get("rounds")
        if found.keys() != {"rounds", "shape", "version"} or not isinstance(rounds, list):
            raise _fields("its fields are not those of a transcript")
        if len(rounds) not in (1, 2):
            raise _fields("it has neither one round nor two")
        made = []
        for labels, steps in zip(ROUNDS, rounds, strict=False):
            if not isinstance(steps, list) or len(steps) > MOST_STEPS:
                raise _fields(f"a round is no list of at most {MOST_STEPS} steps")
            made.append(tuple(_step(step, labels) for step in steps))
        return cls(parse_shape(found["shape"]), tuple(made))

    def added(self, name: str, factors: Mapping[str, int]) -> CeremonyTranscript:
        """Return the transcript with one more step of the open round, by secret factors."""
        steps = self.rounds[-1]
        if not _plain(name):
            raise InputError(f"A contributor's name has 1 to {_LONGEST_NAME} plain characters.")
        if name in {step.name for step in steps}:
            raise InputError(f"{name!r} has contributed to this round.", "Give another name.")
        prior, before = self.last, self.points
        points = {label: msm([before[label]], [factor]) for label, factor in factors.items()}
        # Schnorr, all numbers together: k·B, then k + c·x, with c from all that this step says.
        nonces = {label: 1 + secrets.randbelow(R - 1) for label in factors}
        firsts = {label: msm([before[label]], [nonce]) for label, nonce in nonces.items()}
        drawn = _challenge(prior, name, (before, points, firsts), ROUNDS[len(self.rounds) - 1])
        proofs = {
            label: (firsts[label], (nonces[label] + drawn * factor) % R)
            for label, factor in factors.items()
        }
        step = Step(name, prior, points, proofs)
        return CeremonyTranscript(self.shape, (*self.rounds[:-1], (*steps, step)))


def check_steps(transcript: CeremonyTranscript) -> None:
    """Check every step against those before it.

    Raises:
        VerificationError: ``ceremony.zero``, ``.identity``, ``.repeated``, ``.name``, ``.chain``
            or ``.proof``; the message names the contributor.
    """
    held = {label: G1_GENERATOR for labels in ROUNDS for label in labels}
    seen: set[object] = set()
    prior = _start(transcript.shape)
    for number, steps in enumerate(transcript.rounds, 1):
        names: set[str] = set()
        for step in steps:
            who = f"Round {number}: {step.name!r}"
            # 1. Nothing of it is another's step again.
            if seen & {*step.proofs.values()}:
                raise _refused("repeated", f"{who} handed in what stands before it.")
            # 2. Every number is multiplied by one that is neither 0 nor 1.
            for label, point in step.points.items():
                if point == (0, 0):
                    raise _refused("zero", f"{who} multiplied {label} by 0.")
                if point == held[label]:
                    raise _refused("identity", f"{who} left {label} as it was.")
            if not _plain(step.name) or step.name in names:
                raise _refused("name", f"{who} has no plain name of its own in this round.")
            # 3. It follows the step before, and knows its own factors.
            if step.prior != prior:
                raise _refused(
                    "chain", f"{who} followed another step: one was removed, added or moved."
                )
            firsts = {label: first for label, (first, _) in step.proofs.items()}
            drawn = _challenge(prior, step.name, (held, step.points, firsts), ROUNDS[number - 1])
            for label, (first, response) in step.proofs.items():
                # response · B = first + c · after.
                terms = [held[label], first, step.points[label]]
                if msm(terms, [response, -1, -drawn]) != (0, 0):
                    raise _refused("proof", f"{who} does not show the factor of {label}.")
            held.update(step.points)
            seen.update(step.proofs.values())
            names.add(step.name)
            prior = step.digest


def _start(shape: Shape) -> str:
    fields = {"shape": asdict(shape), "version": CEREMONY_VERSION}
    return hashlib.sha256(canonical(fields)).hexdigest()


def _challenge(
    prior: str, name: str, parts: Sequence[Mapping[str, G1]], labels: Sequence[str]
) -> int:
    talk = ProofTranscript("ragwitness/ceremony-step/v1")
    talk.absorb("prior", prior.encode())
    talk.absorb("name", name.encode())
    for label in labels:
        talk.absorb_points(label, [part[label] for part in parts])
    return talk.challenge("factors")


def _step(found: object, labels: Sequence[str]) -> Step:
    names = {"name", "points", "prior", "proofs"}
    if not isinstance(found, dict) or found.keys() != names:
        raise _fields("a step has missing or unknown fields")
    if not all(isinstance(value, str) for value in found.values()):
        raise _fields("a field of a step is no text")
    parse_hex(found["prior"], 32, "ceremony.hex")
    points, proofs = {}, {}
    for label, data in zip(labels, _cut(found["points"], G1_BYTES, labels), strict=True):
        points[label] = parse_g1(data, "ceremony")
    for label, data in zip(labels, _cut(found["proofs"], _PROOF, labels), strict=True):
        response = parse_scalar(data[G1_BYTES:], "ceremony")
        proofs[label] = parse_g1(data[:G1_BYTES], "ceremony"), response
    return Step(found["name"], found["prior"], points, proofs)


def _cut(text: str, size: int, labels: Sequence[str]) -> list[bytes]:
    data = parse_hex(text, size * len(labels), "ceremony.hex")
    return [data[i : i + size] for i in range(0, len(data), size)]


def _plain(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()


def _fields(why: str) -> VerificationError:
    return VerificationError("ceremony.fields", f"The transcript cannot be read: {why}.")


def _refused(check: str, message: str) -> VerificationError:
    return VerificationError(f"ceremony.{check}", message)


# The rounds: everything is one file that goes from hand to hand, and whoever takes it checks all
# that is in it first.

CEREMONY_FILE = "ceremony.bin"  # in a setup's folder
_MAGIC = b"ragwitness/ceremony-file/v1\n"
_HASH = 32
_AGAIN = "Fetch it again from whoever had it last."


@dataclass(frozen=True, slots=True, eq=False)
class Ceremony:
    """Where a ceremony stands: its steps, round 1's powers, and in round 2 the circuits' keys."""

    transcript: CeremonyTranscript
    powers: Powers
    keys: Mapping[str, ProvingKey]

    @property
    def verifier(self) -> VerifierSetup:
        """The setup that follows from it: two people who finish it get the same."""
        shape, srs = self.transcript.shape, self.powers.srs
        link, norm = (self.keys[name].verifying for name in ROUNDS[1])
        masks = srs.powers[shape.slots :]
        return VerifierSetup(shape, srs.tau, masks, link, norm, self.transcript.seal)

    def encode(self) -> bytes:
        """Return the file: transcript, powers and keys, each behind its length, and a SHA-256."""
        parts = [self.transcript.encode(), self.powers.encode()]
        parts += [self.keys[name].encode() for name in self.keys]
        framed = (len(part).to_bytes(8, "big") + part for part in parts)
        data = _MAGIC + b"".join(framed)
        return data + hashlib.sha256(data).digest()

    @classmethod
    def parse(cls, data: bytes) -> Ceremony:
        """Return what :meth:`encode` wrote: every point on its curve, nothing else checked.

        Raises:
            VerificationError: ``ceremony.file``, or as the parts' own readers.
            MissingExtraError: zksnake is not installed.
        """
        body = data[:-_HASH]
        if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[-_HASH:]:
            raise VerificationError(
                "ceremony.file",
                "This is no file of a ceremony, or it is damaged or cut off.",
                _AGAIN,
            )
        parts, at = [], len(_MAGIC)
        while at < len(body):
            size = int.from_bytes(body[at : at + 8], "big")
            parts.append(body[at + 8 : at + 8 + size])
            at += 8 + size
        transcript = CeremonyTranscript.parse(parts[0])
        if at != len(body) or len(parts) != 2 * len(transcript.rounds):  # a key for each circuit
            raise VerificationError("ceremony.file", "The file's parts are not those of its round.")
        domain = max(map(domain_of, circuits(transcript.shape).values()))
        powers = Powers.parse(parts[1], transcript.shape.coefficients, domain)
        try:
            keys = dict(zip(ROUNDS[1], map(ProvingKey.parse, parts[2:]), strict=False))
        except InputError as error:
            raise VerificationError("ceremony.keys", error.message) from error
        return cls(transcript, powers, keys)


def circuits(shape: Shape) -> dict[str, Circuit]:
    """Return the circuits whose keys are made, by the name of their delta."""
    return {"link": link_circuit(shape), "norm": norm_circuit(shape)}


def begin(shape: Shape) -> Ceremony:
    """Return a ceremony without steps: all numbers are 1, and everybody can see that."""
    domain = max(map(domain_of, circuits(shape).values()))
    return Ceremony(CeremonyTranscript(shape), Powers.start(shape.coefficients, domain), {})


def contribute(ceremony: Ceremony, name: str) -> Ceremony:
    """Check all that came before, multiply secret numbers in, and forget them.

    Raises:
        VerificationError: As :func:`check`; what was handed on is not what its steps say.
        InputError: The name is taken, or cannot be one.
    """
    # 1. Whoever adds to a false ceremony would put a good name under it.
    check(ceremony)
    # 2. The factors: gone when this function returns.
    labels = ROUNDS[len(ceremony.transcript.rounds) - 1]
    factors = {label: 2 + secrets.randbelow(R - 2) for label in labels}
    transcript = ceremony.transcript.added(name, factors)
    # 3. All points that hold one of these numbers.
    if not ceremony.keys:
        return replace(ceremony, transcript=transcript, powers=ceremony.powers.raised(factors))
    keys = {label: with_delta(key, factors[label]) for label, key in ceremony.keys.items()}
    return replace(ceremony, transcript=transcript, keys=keys)


def move_on(ceremony: Ceremony) -> Ceremony:
    """Finish round 1: compute the circuits' keys out of the powers. Nothing is drawn.

    Raises:
        InputError: Round 2 has begun, or nobody has contributed to round 1.
        VerificationError: As :func:`check`.
    """
    if ceremony.keys or not ceremony.transcript.rounds[0]:
        raise InputError("Round 1 is finished once, after its contributions.")
    check(ceremony)
    powers, keys = ceremony.powers, {}
    bases: dict[int, LagrangePoints] = {}
    for name, circuit in circuits(ceremony.transcript.shape).items():
        domain = domain_of(circuit)
        basis = bases.setdefault(domain, bases.get(domain) or LagrangePoints.of(powers, domain))
        keys[name] = circuit_key(powers, basis, circuit)
    rounds = (*ceremony.transcript.rounds, ())
    return Ceremony(replace(ceremony.transcript, rounds=rounds), powers, keys)


def finish(ceremony: Ceremony, folder: Path) -> VerifierSetup:
    """Write the setup that follows from a ceremony, with the ceremony's file beside it.

    Raises:
        InputError: Round 2 has no contribution, or the folder holds a setup.
        VerificationError: As :func:`check`.
    """
    if not ceremony.keys or not ceremony.transcript.rounds[1]:
        raise InputError("A setup needs contributions to both rounds.")
    check(ceremony)
    files = {CEREMONY_FILE: ceremony.encode()}
    write_setup(folder, ceremony.verifier, ceremony.powers.srs, ceremony.keys, files)
    return ceremony.verifier


def check(ceremony: Ceremony, setup: bytes | None = None) -> None:
    """Check a ceremony from its file alone, and that a ``setup.json`` is what it ends with.

    Raises:
        VerificationError: ``ceremony.zero``, ``.identity``, ``.repeated``, ``.name``, ``.chain``,
            ``.proof`` (a step); ``.subgroup``, ``.powers``, ``.keys``, ``srs.powers`` (the points);
            ``.setup``.
    """
    done = ceremony.keys and ceremony.transcript.rounds[1]
    if setup is not None and not (done and setup == ceremony.verifier.encode()):
        raise VerificationError(
            "ceremony.setup", "setup.json is not what this ceremony ends with.", _AGAIN
        )
    # 1. Every step follows the one before and knows its factors.
    check_steps(ceremony.transcript)
    points = ceremony.transcript.points
    # 2. The powers are those of the numbers that the steps lead to.
    check_powers(ceremony.powers, points)
    if not ceremony.keys:
        return
    # 3. So are the circuits' keys; and the commitments' number hides (0 and ±1 do not).
    check_srs(ceremony.powers.srs)
    for name, circuit in circuits(ceremony.transcript.shape).items():
        check_key(ceremony.powers, ceremony.keys[name], circuit, points[name])
