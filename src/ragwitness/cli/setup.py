"""``ragwitness attest setup``: the keys of the proofs, made by one party or by many in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.attest import new_file, print_values
from ragwitness.cli.options import AsJson, Output
from ragwitness.kit.files import read_file
from ragwitness.kit.options import Arg, Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.ceremony import Ceremony

Policy = Annotated[
    Path, PathRole.READS, Opt(help="The policy (TOML) whose indexes are to be proved.")
]
Held = Annotated[Path, PathRole.READS, Arg(help="The ceremony's file, from whoever had it last.")]
Folder = Annotated[
    Path, PathRole.FILLS, Opt("--out", short="-o", help="The folder of the setup, to be made.")
]


def alone(policy: Policy, output: Folder, as_json: AsJson = False) -> None:
    """Make the keys of the proofs by one party.

    The auditor does this and notes the digest. Whoever makes the setup could prove anything, if
    they kept the secret that is drawn and forgotten here; so the provider must not make it. One
    setup serves all windows with indexes of the same shape.
    """
    from dataclasses import asdict

    from ragwitness.attest.commitments import proof_shape
    from ragwitness.attest.policy import read_policy
    from ragwitness.crypto.proofs.provider import make_setup

    # Only the shape of the indexes enters, so that one setup serves many windows.
    shape = proof_shape(read_policy(policy))
    made = make_setup(output, shape)
    print_values({"setup": str(output), "digest": made.digest, **asdict(shape)}, as_json=as_json)


def begin(policy: Policy, output: Output, as_json: AsJson = False) -> None:
    """Begin a setup by many.

    It writes the ceremony's file, which then goes from one contributor to the next. Nothing in it
    is secret, and anybody can begin. If one contributor in each of the two rounds is honest, nobody
    can forge proofs.
    """
    from ragwitness.attest.commitments import proof_shape
    from ragwitness.attest.policy import read_policy
    from ragwitness.crypto.proofs import ceremony as rounds

    new_file(output, rounds.begin(proof_shape(read_policy(policy))).encode())
    print_values({"ceremony": str(output), "round": 1}, as_json=as_json)


def contribute(
    ceremony: Held,
    output: Output,
    name: str,
    as_json: AsJson = False,
) -> None:
    """Add secret numbers of your own, and forget them.

    It checks all that came before, and refuses by name what is wrong. Note the digest that it
    prints, and look for it in what ragwitness attest setup check says of the finished setup: that
    is how you know that your numbers are in it. Contribute in both rounds.

    Args:
        name: Your name, for the transcript.
    """
    from ragwitness.crypto.proofs import ceremony as rounds

    made = rounds.contribute(_read(ceremony), name)
    new_file(output, made.encode())
    step = made.transcript.rounds[-1][-1]
    values = {"round": len(made.transcript.rounds), "name": step.name, "digest": step.digest}
    print_values({"ceremony": str(output), **values}, as_json=as_json)


def next_round(ceremony: Held, output: Output, as_json: AsJson = False) -> None:
    """End the first round and open the second.

    It computes the circuits' keys from the first round's numbers. Nothing is drawn, and whoever
    does it is not trusted: every contributor of the second round checks it.
    """
    from ragwitness.crypto.proofs import ceremony as rounds

    made = rounds.move_on(_read(ceremony))
    new_file(output, made.encode())
    print_values({"ceremony": str(output), "round": 2, **_steps(made)}, as_json=as_json)


def finish(ceremony: Held, output: Folder, as_json: AsJson = False) -> None:
    """Write the setup that the ceremony ends with.

    The folder also holds the ceremony's file. Everybody who finishes the same file gets the same
    setup, and a trust.json pins its digest, which covers the transcript.
    """
    from ragwitness.crypto.proofs import ceremony as rounds

    held = _read(ceremony)
    digest = rounds.finish(held, output).digest
    print_values({"setup": str(output), "digest": digest, **_steps(held)}, as_json=as_json)


def check(
    ceremony: Annotated[Path, PathRole.READS, Arg()],
    as_json: AsJson = False,
) -> None:
    """Check a setup by many, from its file alone.

    Of a setup's folder it also checks that setup.json is what the ceremony ends with. It exits with
    3 and the name of what is wrong; a setup by one party has nothing to check.

    Args:
        ceremony: A ceremony's file, or the folder of a setup.
    """
    from ragwitness.crypto.proofs import ceremony as rounds
    from ragwitness.errors import VerificationError

    folder = ceremony.is_dir()
    path = ceremony / rounds.CEREMONY_FILE if folder else ceremony
    if folder and not path.exists():
        raise VerificationError(
            "ceremony.none",
            "One party made this setup, and could prove anything: there is no transcript to check.",
            "Make one with others: ragwitness attest setup begin.",
        )
    held = _read(path)
    rounds.check(held, read_file(ceremony / "setup.json", 1 << 20) if folder else None)
    values = {"digest": held.verifier.digest} if folder else {}
    print_values({"holds": True, **values, **_steps(held)}, as_json=as_json)


def _read(path: Path) -> Ceremony:
    from ragwitness.crypto.proofs import ceremony as rounds

    return rounds.Ceremony.parse(read_file(path, 1 << 30))


def _steps(ceremony: Ceremony) -> dict[str, object]:
    found: dict[str, object] = {"transcript": ceremony.transcript.seal.transcript}
    for number, steps in enumerate(ceremony.transcript.rounds, 1):
        found[f"round_{number}"] = {step.name: step.digest for step in steps}
    return found
