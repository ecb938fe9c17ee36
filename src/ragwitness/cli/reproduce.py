"""``ragwitness lab reproduce``: a table of a paper, published and ours side by side, in a checkout.

What reproduces papers lies in ``research/`` and ``experiments/`` at the root of the repository,
not in the package that is installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ragwitness.errors import InputError


def _without_checkout(
    name: Annotated[  # noqa: ARG001  # read by the verb in the checkout
        list[str] | None, typer.Argument(help="paper/table, e.g. mba/table2.")
    ] = None,
) -> None:
    """Run a table of a paper and print it beside the published one.

    The tables and their scripts are in the repository, not in the installed package.
    """
    raise InputError(
        "Published tables are reproduced from a checkout of the repository; this is the"
        " installed package alone.",
        "Clone the repository (its address: pip show ragwitness), run pip install -e . in the"
        " clone, then ragwitness lab reproduce list.",
    )


def _of_checkout() -> Callable[..., None]:
    """Return the verb of the checkout around this package, else one that says how to get one."""
    # The wheel has no research/: only a checkout around this file can run it.
    root = Path(__file__).resolve().parents[3]
    if not ((root / "research").is_dir() and (root / "experiments").is_dir()):
        return _without_checkout
    if str(root) not in sys.path:
        sys.path.append(str(root))
    verb: Callable[..., None] = importlib.import_module("research.reproduce.command").reproduce
    return verb


reproduce = _of_checkout()
