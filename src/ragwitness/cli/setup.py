"""``ragwitness setup``: the keys of the proofs, made once by somebody whom both sides trust."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.signing import Json, print_values

__all__ = ["setup"]


def setup(
    policy: Annotated[Path, typer.Option(help="Policy (TOML) whose indexes are to be proved.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for it.")],
    as_json: Json = False,
) -> None:
    """Make the setup of a policy's proofs. The auditor does this, and notes its digest.

    Whoever makes it could prove anything, if they kept the secret that is drawn and forgotten
    here: so not the provider. It serves all windows with indexes of the same shape.
    """
    from dataclasses import asdict

    from ragwitness.attest.index import proof_shape
    from ragwitness.attest.policy_file import read_policy
    from ragwitness.crypto.proofs.proving import make_setup

    shape = proof_shape(read_policy(policy))
    made = make_setup(output, shape)
    print_values({"setup": str(output), "digest": made.digest, **asdict(shape)}, as_json=as_json)
