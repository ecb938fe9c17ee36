"""Mirabel: which passages stay."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.rag.chunk import Passage
from ragwitness.rag.config import RagConfig
from ragwitness.rag.defenses.base import defend
from ragwitness.rag.defenses.mirabel import Mirabel, hide_threshold
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import Lookup, build_system
from tests.support.copier import Copier
from tests.unit.rag.defenses.defense_fakes import CORPUS, dense, lexical


def _lookup(query: str, texts: list[str], k: int = 2, distances: bool = False) -> Lookup:
    passages = [Passage(f"d{i // 2}", 0, len(text), text) for i, text in enumerate(texts)]
    return Lookup(query, k, passages, distances)


def _slow_threshold(scores: list[float], rho: float) -> float:
    """Algorithm 1 line by line."""
    n = len(scores)
    rest = sorted(scores)[:-1]
    mu = sum(rest) / len(rest)
    sigma = math.sqrt(sum((s - mu) ** 2 for s in rest) / len(rest))
    mu_n = mu + sigma * math.sqrt(2 * math.log(n))
    c = -math.log(-math.log(1 - rho))
    return mu_n + c * sigma / math.sqrt(2 * math.log(n))


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("n", [6, 40, 1000])
def test_threshold_equals_the_algorithm_line_by_line(rho: float, n: int) -> None:
    scores = np.random.default_rng(n).normal(0.4, 0.1, n).tolist()
    assert hide_threshold(scores, rho) == pytest.approx(_slow_threshold(scores, rho))


def test_threshold_is_exceeded_by_gumbel_maxima_at_the_level() -> None:
    """If the maximum were exactly Gumbel(mu_n, beta_n), rho of them would be hidden (Eq. 6-8)."""
    rng, rho, draws = np.random.default_rng(5), 0.05, 4000
    others = rng.normal(size=999)
    root = math.sqrt(2 * math.log(1000))
    mu_n, beta_n = others.mean() + others.std() * root, others.std() / root
    maxima = rng.gumbel(mu_n, beta_n, draws)
    maxima = np.maximum(maxima, others.max())
    threshold = hide_threshold(np.append(others, maxima[0]), rho)
    hidden = int((maxima > threshold).sum())
    assert binom.ppf(0.0005, draws, rho) <= hidden <= binom.ppf(0.9995, draws, rho)


def test_the_published_threshold_hides_fewer_than_rho_of_normal_scores() -> None:
    rng, draws = np.random.default_rng(1), 2000
    scores = rng.normal(size=(draws, 1000))
    hidden = sum(row.max() > hide_threshold(row, 0.05) for row in scores)
    # Of 1000 normal scores, one beyond 3.717 + 2.970 / 3.717 deviations: 0.3 %.
    assert hidden <= binom.ppf(0.9995, draws, 0.0045)


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 0.2], [0.5] * 9, [9.0, *[0.5] * 9]])
def test_without_a_spread_nothing_is_said(scores: list[float]) -> None:
    assert hide_threshold(scores) is None
    hits = [Hit(i, s) for i, s in enumerate(sorted(scores, reverse=True))]
    assert Mirabel().select(hits, _lookup("q", ["x"] * len(scores))) == hits


def test_an_outlier_is_hidden_and_the_next_passages_move_up() -> None:
    spread = [1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5, 1.1, 1.15, 1.55]
    system = dense([0.0, *spread], k=2)
    assert [hit.index for hit in system.retrieve("0.01")] == [0, 8]
    defended = defend(system, Mirabel())
    assert [hit.index for hit in defended.retrieve("0.01")] == [8, 9]
    same = defend(dense(spread, k=2), Mirabel())
    assert same.retrieve("1.3") == dense(spread, k=2).retrieve("1.3")


def test_distances_are_read_as_cosines() -> None:
    angles = [0.0, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    lookup = _lookup("0.1", [str(angle) for angle in angles], distances=True)
    hits = dense(angles, k=8).retrieve("0.1")
    cosines = [math.cos(angle - 0.1) for angle in angles]
    for rho in (0.001, 0.05, 0.2, 0.5):
        expected = max(cosines) > _slow_threshold(cosines, rho)
        assert Mirabel(rho).detects([hit.score for hit in hits], lookup) == expected


def test_passages_that_an_approximate_index_misses_are_not_near() -> None:
    far = [-1.2 - i / 100 for i in range(19)]
    lookup = _lookup("q", ["x"] * 20, distances=True)
    assert not Mirabel().detects(far, lookup)
    assert Mirabel().detects([-0.1, *far[1:]], lookup)


def test_passages_that_the_index_does_not_return_score_zero() -> None:
    found = [3.0, 1.0, 0.8]
    lookup = _lookup("q", ["x"] * 12)
    threshold = _slow_threshold([*found, *[0.0] * 9], 0.05)
    assert Mirabel().detects(found, lookup) == (found[0] > threshold)
    assert Mirabel().detects([1.1, 1.0, 0.8], lookup) is False


def test_mirabel_over_words_hides_the_document_that_a_query_copies() -> None:
    filler = [
        Document(f"f{i}", f"the {i} came in with a {'red' if i % 2 else 'blue'} hat")
        for i in range(30)
    ]
    system = build_system([*CORPUS, *filler], RagConfig(k=2), generator=Copier())
    copied = "Maria Keller came in March with a fever and a red rash"
    assert system.retrieve(copied)[0].index == 0
    defended = defend(system, Mirabel())
    assert 0 not in [hit.index for hit in defended.retrieve(copied)]
    assert CORPUS[0].text not in defended.prompt(copied).messages[0].content
    assert len(defended.retrieve(copied)) == 2


def test_a_blank_query_finds_nothing_and_hides_nothing() -> None:
    assert defend(lexical(), Mirabel()).retrieve(" ") == []


def test_bad_settings_of_mirabel() -> None:
    for rho in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InputError, match="rho"):
            Mirabel(rho)
