"""SAGE (EMNLP 2025): a record becomes attributes, these a new text, and two agents refine it.

One step of the paper, one file: :mod:`~.attributes` (§3.1, once per corpus), :mod:`~.extract`,
:mod:`~.generate`, :mod:`~.privacy` and :mod:`~.rewrite` (§3.2), :mod:`~.sage` (the loop) and
:mod:`~.published` (the loop as its code has it, for evaluation). Every prompt is in our words.
"""

from ragwitness.defenses.sage.published import PublishedSage
from ragwitness.defenses.sage.sage import Sage

__all__ = ["PublishedSage", "Sage"]
