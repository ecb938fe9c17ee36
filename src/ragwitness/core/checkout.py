"""What only reproduces papers: in ``research/`` of a checkout, not in the installed package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ragwitness.core.errors import InputError


def of_checkout(home: str) -> Any:
    """Return a thing of the checkout around this package.

    Args:
        home: ``"research.module:attribute"``.

    Raises:
        InputError: This is the installed package alone.
    """
    # The wheel has no research/: only a checkout around this file has it.
    root = Path(__file__).resolve().parents[3]
    if not ((root / "research").is_dir() and (root / "experiments").is_dir()):
        raise InputError(
            "What reproduces papers is in a checkout of the repository; this is the installed"
            " package alone.",
            "Clone the repository (its address: pip show ragwitness), run pip install -e . in the"
            " clone, then the same command.",
        )
    if str(root) not in sys.path:
        sys.path.append(str(root))
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(module), attribute)
