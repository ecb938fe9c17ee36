"""Whatever the text: offsets cover it, words lose no token, decoding gives it back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.models.base import map_to_words
from ragwitness.models.reader.model import Reader
from ragwitness.models.reader.tokens import spoken
from ragwitness.text.words import split_words

TEXTS = st.text(
    st.one_of(st.sampled_from(" \n\t.,'-05aeZé日\u3000\u00a0[]"), st.characters(codec="utf-8")),
    min_size=1,
    max_size=40,
)


@pytest.fixture(scope="module")
def model(folder: Path) -> Reader:
    return Reader.load(folder)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_offsets_and_words(model: Reader, text: str) -> None:
    scores = model.score([text])[0]
    ids, offsets = scores.ids, scores.offsets
    assert model.tokenizer.decode(ids.tolist()) == spoken(text)
    assert offsets[0, 0] == 0
    assert offsets[-1, 1] == len(text)
    assert (offsets[1:, 0] <= offsets[:-1, 1]).all()
    assert (offsets[:, 0] <= offsets[:, 1]).all()
    assert np.isfinite(scores.logprobs).all()
    assert (scores.logprobs <= 0).all()
    words = map_to_words(text, scores)
    assert [(word.word, word.start) for word in words] == [
        (word.text, word.start) for word in split_words(text)
    ]
    assert all(word.tokens > 0 and word.logprob <= 0 for word in words)
