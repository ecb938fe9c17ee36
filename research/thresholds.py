"""Chooses the distance threshold of the study of defenses, on questions that are not evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragwitness.defenses.retrieval import DistanceThreshold
from ragwitness.errors import InputError
from ragwitness.rag.index.dense import DenseIndex
from ragwitness.rag.pipeline import RagSystem


def calibrate_threshold(
    system: RagSystem, questions: Sequence[str], quantile: float = 0.95
) -> DistanceThreshold:
    """Return the strictest threshold that leaves benign questions their nearest passage.

    Args:
        system: An undefended system that retrieves.
        questions: Benign questions, none of which is evaluated later; those that find
            nothing at all are left out.
        quantile: Share of them that must keep at least their nearest passage.

    Raises:
        InputError: The quantile is not in (0, 1], or no question finds anything.
    """
    if not 0 < quantile <= 1:
        raise InputError(f"The quantile must lie in (0, 1], not {quantile}.")
    found = [hits[0].score for hits in map(system.retrieve, questions) if hits]
    if not found:
        raise InputError(
            "No benign question finds a passage, so no threshold can be calibrated.",
            "Give questions that the database answers.",
        )
    # The score that so many of the questions' nearest passages reach.
    keep = math.ceil(quantile * len(found) - 1e-9)
    least = sorted(found, reverse=True)[keep - 1]
    distances = isinstance(system.index, DenseIndex) and system.config.metric == "l2"
    return DistanceThreshold(-least if distances else least)
