"""Alg. 1 in one pass against its literal loop."""

import math

import numpy as np
import pytest

from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods.srag import SRagConfig, hardest, segment
from ragwitness.text.words import STOP_WORDS, core
from tests.support.copier import Copier

_TEXT = (
    "The ferry to Marrowdale leaves at nine and the captain Quillington keeps a brown dog"
    " called Tamarind that barks at every lighthouse between Oxcombe and the outer islands."
)


def _literal(text: str, k: int) -> list[tuple[int, float]]:
    """Lines 3-12 of Alg. 1, one model call per word."""
    words = text.split()
    half = len(words) // 2
    current, probabilities = words[:half], []
    for word in words[half:]:
        scores = Copier().score([" ".join([*current, word])])[0]
        probabilities.append(math.exp(scores.logprobs[-1]))
        current.append(word)
    n = len(probabilities) // k
    n = len(probabilities) if n < 3 else n  # the published code, not the pseudocode
    chosen = sorted(np.argsort(probabilities, kind="stable")[:n])
    return [(half + i, probabilities[i]) for i in chosen]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_pass_chooses_what_the_loop_chooses(k: int) -> None:
    found = segment(_TEXT, Copier(), SRagConfig(mode="probing", segment_factor=k))
    expected = _literal(_TEXT, k)
    assert [probe.index for probe in found.probes] == [index for index, _ in expected]
    assert [p.baseline for p in found.probes] == pytest.approx([p for _, p in expected], rel=1e-9)


def test_few_words_lie_in_the_second_half_and_are_no_function_words() -> None:
    found = segment(_TEXT, Copier(), SRagConfig())
    assert len(found.probes) > 8
    for probe in found.probes:
        assert probe.index >= len(_TEXT.split()) // 2
        assert _TEXT.startswith(found.before(probe.word))
        assert core(probe.word.text).lower() not in STOP_WORDS


def test_a_repeated_word_is_probed_where_it_stands() -> None:
    # The published code looks words up by their first substring match.
    text = "one two three four five rare six rare seven rarely eight rare"
    found = segment(text, Copier(), SRagConfig(mode="probing", segment_factor=1))
    places = [probe.word.start for probe in found.probes if probe.word.text == "rare"]
    assert places == [text.index("rare", 30), text.rindex("rare")]


def test_hardest_respects_what_is_allowed() -> None:
    logprobs = np.array([-5.0, -4.0, -3.0, -2.0])
    assert hardest(logprobs, np.array([False, True, False, True]), 3) == [1, 3]


@pytest.mark.parametrize("k", [2, 3, 4, 9, 20])
def test_the_preset_probes_all_words_where_the_share_is_below_three(k: int) -> None:
    published = configure("s-rag:paper", {"segment_factor": k})
    found = segment(_TEXT, Copier(), published)
    assert [probe.index for probe in found.probes] == [index for index, _ in _literal(_TEXT, k)]
