"""In how many processes the embedded reader works."""

from __future__ import annotations

import os

from ragwitness.core.errors import InputError

VARIABLE = "RAGWITNESS_WORKERS"
"""Holds the number of processes; ``all`` is one for each core, and the command line's default.

Where it is not set there is this process alone: others begin by importing the program's script,
which must allow that (``if __name__ == "__main__"``)."""

ALL = "all"


def workers(given: int | None = None) -> int:
    """Return the number of processes wanted, at most one for each core that may be used.

    What may be used follows from the process's affinity and from its container's share.

    Args:
        given: Replaces the variable from now on; None leaves it.

    Raises:
        InputError: That is no number of processes.
    """
    wanted = os.environ.get(VARIABLE, "1") if given is None else str(given)
    if wanted != ALL and not (wanted.isdecimal() and int(wanted)):
        raise InputError(
            f"At least 1 worker is needed, not {wanted!r}.",
            f"Correct --workers or {VARIABLE}: a whole number, or {ALL}.",
        )
    if given is not None:
        os.environ[VARIABLE] = wanted
    if wanted == "1":
        return 1
    from joblib import cpu_count

    cores = int(cpu_count())
    return cores if wanted == ALL else min(int(wanted), cores)
