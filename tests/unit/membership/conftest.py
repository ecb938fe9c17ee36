"""What tests of whole audits share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ragwitness.membership import shadow
from ragwitness.models.base import TextScores
from ragwitness.models.reader.model import Reader


@pytest.fixture(scope="module", autouse=True)
def small_forests() -> Iterator[None]:
    """Small classifiers: which family reads best is tested where classifiers are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shadow, "_TREES", 8)
        yield


_scored: dict[tuple[Any, ...], TextScores] = {}


@pytest.fixture(scope="module", autouse=True)
def one_score_a_text() -> Iterator[None]:
    """The reader scores each text once for all tests: the same text has the same score."""
    score = Reader._score_one

    def remembered(reader: Reader, text: str, prompt: np.ndarray, top: int) -> TextScores:
        key = (id(reader), text, prompt.tobytes(), top)
        if key not in _scored:
            _scored[key] = score(reader, text, prompt, top)
        return _scored[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "_score_one", remembered)
        yield
