"""``ragwitness lab reproduce``: a table of a paper, published and ours side by side, in a checkout.

Code that reproduces papers is in ``research/`` and ``experiments/`` of the repository, not in
the wheel.
"""

from __future__ import annotations

from typing import Annotated

from ragwitness.core.errors import InputError
from ragwitness.core.options import Arg
from ragwitness.core.registry import of_checkout

_VERB = "research.reproduce.command:reproduce"


def _without_checkout(
    name: Annotated[list[str] | None, Arg()] = None,  # noqa: ARG001  # the checkout reads it
) -> None:
    """Run a table of a paper and print it beside the published one.

    The tables and their scripts are in the repository, not in the installed package.

    Args:
        name: paper/table, e.g. mba/table2.
    """
    of_checkout(_VERB)


try:
    reproduce = of_checkout(_VERB)
except InputError:
    reproduce = _without_checkout
