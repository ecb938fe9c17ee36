"""The privacy budget of ``ragwitness synthesize``: read before anything is asked."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.defenses.synthetic.private.config import PrivateConfig
    from ragwitness.defenses.synthetic.private.evolution import Candidates

__all__ = ["check_options", "only_run", "private_of"]

_LONGEST = 20_000  # characters of a public text, as of a record


def check_options(
    method: str, corpus: str, epsilon: float | None, public: Path | None, *, looks: bool
) -> None:
    """Refuse options that mean nothing, or the opposite, for a method.

    Args:
        method: Name.
        corpus: The private records.
        epsilon: Of the budget, where one is given.
        public: File of public texts, where one is given.
        looks: Whether secrets of the records are to be looked for.

    Raises:
        InputError: A budget for a method without one, secrets for one with a budget, or the
            private records as public texts.
    """
    from ragwitness.defenses.synthetic.registry import METHODS

    if method not in METHODS or not METHODS[method].private:
        if epsilon is not None or public is not None:
            given = "--epsilon" if epsilon is not None else "--public"
            raise InputError(
                f"{method} is not differentially private and has no use for {given}.",
                "Take --method private-evolution, or leave it out.",
            )
    elif looks:
        raise InputError(
            f"{method} cannot look for secrets of the records: a text that is withheld for one"
            " tells that a record holds it, and epsilon would not cover that.",
            "Leave out --secrets and --contacts.",
        )
    both = public is not None and os.path.exists(corpus) and public.exists()
    if both and os.path.samefile(corpus, str(public)):
        raise InputError(
            f"--public {public} is the private corpus itself: its records would be written as"
            " they are.",
            "Give texts that are no secret, e.g. a published collection of the same kind.",
        )


def private_of(
    epsilon: float | None,
    delta: float,
    texts: int,
    rounds: int,
    public: Path | None,
    embedder: str,
    text_field: str | None,
    model: str | None,
) -> tuple[PrivateConfig, Candidates] | None:
    """Return a budget with what it is spent on; None without an epsilon.

    Raises:
        InputError: A number is out of range, the file of public texts cannot be used, or has too
            few to choose among.
    """
    if epsilon is None:
        return None
    from ragwitness.defenses.synthetic.private.config import PrivateConfig
    from ragwitness.defenses.synthetic.private.embedding import load_embedding
    from ragwitness.defenses.synthetic.private.evolution import Candidates

    config = PrivateConfig(epsilon, delta, texts, rounds)
    pool = _texts_of(public, text_field) if public is not None else ()
    load = partial(load_embedding, embedder, pool)
    return config, Candidates(pool, embedder, load, model)


def only_run(folder: Path) -> Path:
    """Return the one folder of a command, also where its run is finished.

    Elsewhere a finished run is followed by a new one; here that would spend epsilon again.

    Args:
        folder: As :func:`ragwitness.cli.common.run_folder` names it, ending with a number.
    """
    return folder.with_name(f"{folder.name.rpartition('-')[0]}-1")


def _texts_of(public: Path, text_field: str | None) -> tuple[str, ...]:
    from ragwitness.defenses.synthetic.base import flaw
    from ragwitness.text.documents import load_documents

    if not public.exists():
        raise InputError(f"--public {public} does not exist.", "Check the path.")
    found = (d.text for d in load_documents(public, text_field=text_field).documents)
    texts = tuple(dict.fromkeys(text for text in found if flaw(text, _LONGEST) is None))
    if len(texts) < 2:
        raise InputError(
            f"--public {public} has {len(texts)} usable texts, which is nothing to choose among.",
            "Give many more texts than --texts.",
        )
    return texts
