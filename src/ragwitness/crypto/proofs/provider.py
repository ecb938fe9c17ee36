"""The provider's side, all of it: setup, commitments, proofs (extra ``[zk]``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.norms.prove import prove_norms
from ragwitness.crypto.proofs.prover_setup import ProverSetup, load_prover_setup, make_setup
from ragwitness.crypto.proofs.secret import SecretColumns, commit_rows
from ragwitness.crypto.proofs.selection.prove import prove_selection

__all__ = [
    "ProverSetup",
    "SecretColumns",
    "commit_columns",
    "load_prover_setup",
    "make_setup",
    "prove_norms",
    "prove_selection",
]


def commit_columns(rows: NDArray[np.int16], setup: ProverSetup) -> SecretColumns:
    """Commit to an index, for one window: new blinds at every call.

    Args:
        rows: Integer vectors of norm at most the setup's scale, shape (capacity, dimension); the
            capacity is a multiple of the setup's slots.
        setup: Setup of the window.

    Raises:
        InputError: The rows do not fit the setup.
    """
    return commit_rows(rows, setup.shape, setup.powers)
