"""A setup's folder: made once by someone the verifier trusts, used by the provider to prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from ragwitness.crypto.proofs.circuits.link import link_circuit
from ragwitness.crypto.proofs.circuits.norm import norm_circuit
from ragwitness.crypto.proofs.groth16 import Proof
from ragwitness.crypto.proofs.groth16.zksnake import ProvingKey, make_key, prove
from ragwitness.crypto.proofs.native import to_native_g1
from ragwitness.crypto.proofs.setup import (
    MOST_SETUP_BYTES,
    Shape,
    Srs,
    VerifierSetup,
    check_powers,
    make_srs,
)
from ragwitness.errors import InputError, VerificationError
from ragwitness.kit.files import replace_file

_HINT = "Fetch the folder again from whoever ran `ragwitness attest setup`."
_MOST_KEY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class ProverSetup:
    """What proofs are made with.

    Attributes:
        verifier: The public part.
        powers: [1], [τ], …, [τ^(D-1)], as zksnake's points.
        keys: Name of a circuit's file, ``"link.key"`` or ``"norm.key"``, to its proving key: read
            on first use, since reading takes seconds and few commands need both.
    """

    verifier: VerifierSetup
    powers: Sequence[Any]
    keys: Callable[[str], ProvingKey]

    @property
    def shape(self) -> Shape:
        """Sizes and bounds."""
        return self.verifier.shape

    def prove_link(self, inputs: Mapping[str, Sequence[int]]) -> Proof:
        """Return a proof of the selection circuit.

        Args:
            inputs: Numbers by name, public ones too (:func:`~.circuits.link.link_circuit`).

        Raises:
            InputError: A constraint fails; the message names it.
        """
        circuit = link_circuit(self.shape)
        return prove(self.keys("link.key"), circuit, circuit.witness(inputs))

    def prove_norm(self, inputs: Mapping[str, Sequence[int]]) -> Proof:
        """Return a proof of the norm circuit.

        Args:
            inputs: Numbers by name, public ones too (:func:`~.circuits.norm.norm_circuit`).

        Raises:
            InputError: A constraint fails; the message names it.
        """
        circuit = norm_circuit(self.shape)
        return prove(self.keys("norm.key"), circuit, circuit.witness(inputs))


def make_setup(folder: Path, shape: Shape) -> VerifierSetup:
    """Draw a setup, write its files and forget its trapdoors.

    Written are ``setup.json`` (all that a verifier needs), ``srs.bin``, ``link.key`` and
    ``norm.key`` (what the provider needs besides). Whoever runs this could keep the trapdoors and
    forge proofs, so it has to be someone the verifier trusts: best the verifier.

    Args:
        folder: Made where it is missing; without files of an earlier setup.
        shape: Sizes and bounds.

    Raises:
        InputError: The folder holds a setup already, or cannot be written.
        MissingExtraError: zksnake is not installed.
    """
    if (folder / "setup.json").exists():
        raise InputError(f"{folder} holds a setup already.", "Name another folder.")
    # Three independent trapdoors: KZG's τ, and one set for each circuit.
    srs = make_srs(shape)
    keys = {"link": make_key(link_circuit(shape)), "norm": make_key(norm_circuit(shape))}
    masks = srs.powers[shape.slots :]
    verifier = VerifierSetup(shape, srs.tau, masks, keys["link"].verifying, keys["norm"].verifying)
    write_setup(folder, verifier, srs, keys)
    return verifier


def write_setup(
    folder: Path,
    verifier: VerifierSetup,
    srs: Srs,
    keys: Mapping[str, ProvingKey],
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write a setup's files, and ``more`` by name, into the folder of :func:`make_setup`."""
    if (folder / "setup.json").exists():
        raise InputError(f"{folder} holds a setup already.", "Name another folder.")
    files = {
        **(more or {}),
        "srs.bin": srs.encode(),
        **{f"{name}.key": key.encode() for name, key in keys.items()},
        "setup.json": verifier.encode(),  # last: a folder with it is complete
    }
    for name, data in files.items():
        replace_file(folder / name, data, hint="Name another folder.")


def load_prover_setup(folder: Path) -> ProverSetup:
    """Read a setup and check its powers, on which hiding rests, whoever made it.

    The circuits' keys are read where a proof first needs them, their points checked then and their
    relations not: each proof is verified and blinded anew before it leaves, which keeps its witness
    (docs/design/circuits.md).

    Args:
        folder: Folder from :func:`make_setup`.

    Raises:
        InputError: A file cannot be read.
        VerificationError: ``setup.…``, ``srs.…``, or another; the file is not what it should be.
        MissingExtraError: zksnake or py_ecc is not installed.
    """
    # The public part, the powers, and that both are of one setup.
    verifier = VerifierSetup.parse(_read(folder / "setup.json", MOST_SETUP_BYTES))
    shape = verifier.shape
    srs = Srs.parse(_read(folder / "srs.bin", _MOST_KEY_BYTES), shape)
    if srs.tau != verifier.tau or srs.powers[shape.slots :] != verifier.masks:
        raise VerificationError("srs.setup", "srs.bin and setup.json are of two setups.", _HINT)
    # Hiding rests on the powers being those of one number (norms.md, zero knowledge).
    check_powers(srs)
    powers = [to_native_g1(point) for point in srs.powers]
    return ProverSetup(verifier, powers, cache(partial(_key, folder, verifier)))


def _key(folder: Path, verifier: VerifierSetup, name: str) -> ProvingKey:
    key = ProvingKey.parse(_read(folder / name, _MOST_KEY_BYTES))
    if key.verifying != {"link.key": verifier.link, "norm.key": verifier.norm}[name]:
        raise VerificationError("setup.key", f"{name} and setup.json are of two setups.", _HINT)
    return key


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.", _HINT) from error
    if len(data) > most:
        raise InputError(f"{path} has more than {most:,} bytes.", _HINT)
    return data
