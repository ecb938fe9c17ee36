"""``ragwitness lab reproduce``: a table of a paper, published and ours side by side, in a checkout.

What reproduces papers lies in ``research/`` and ``experiments/`` at the root of the repository,
not in the package that is installed.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ragwitness.errors import InputError
from ragwitness.kit.checkout import of_checkout

_VERB = "research.reproduce.command:reproduce"


def _without_checkout(
    name: Annotated[  # noqa: ARG001  # read by the verb in the checkout
        list[str] | None, typer.Argument(help="paper/table, e.g. mba/table2.")
    ] = None,
) -> None:
    """Run a table of a paper and print it beside the published one.

    The tables and their scripts are in the repository, not in the installed package.
    """
    of_checkout(_VERB)


try:
    reproduce = of_checkout(_VERB)
except InputError:
    reproduce = _without_checkout
