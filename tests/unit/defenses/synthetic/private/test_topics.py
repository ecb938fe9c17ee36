"""Synthesis by topics: what a record can change, what the noise hides, and who would notice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.audits.synthesis import NamedRows
from ragwitness.defenses.synthetic.agents import Asking, MakingConfig
from ragwitness.defenses.synthetic.base import CorpusMethod, CorpusSynthesis, Fate
from ragwitness.defenses.synthetic.guard import GuardConfig, SyntheticGuard
from ragwitness.defenses.synthetic.private.accounting import delta_of, system_noise, with_noise
from ragwitness.defenses.synthetic.private.evolution import (
    Candidates,
    PrivateConfig,
    PrivateEvolution,
)
from ragwitness.defenses.synthetic.private.sources import load_embedding
from ragwitness.defenses.synthetic.private.topics import PrivateTopics, TopicShape
from ragwitness.errors import InputError
from ragwitness.privacy.sampler.exact import ShakeBits, discrete_gaussian
from ragwitness.stats.intervals import proportion_interval
from ragwitness.types import Answer, Document

_THEMES = {
    "sea": "tide harbour sailor anchor lighthouse ferry",
    "farm": "orchard tractor harvest barn cattle fence",
    "music": "violin concert singer melody rehearsal orchestra",
}
_PUBLIC = tuple(
    f"The {a} was near the {b}. People of the {theme} spoke of the {c} all day."
    for theme, words in _THEMES.items()
    for a, b, c in zip(words.split(), [*words.split()[1:], "day"], words.split()[::-1], strict=True)
)
_SHAPE = TopicShape(clusters=3, overlap=2, words=4, vocabulary=64, told=4, floor=2.0)
_RECORDS = [
    Document(f"r{n}", f"Ada Fenn{n} saw the {words.split()[n % 6]} and the {words.split()[n % 5]}.")
    for words in _THEMES.values()
    for n in range(40)
]


def _method(
    epsilon: float = 8.0,
    shape: TopicShape = _SHAPE,
    draw: Callable[[Fraction], int] = system_noise,
    **config: object,
) -> PrivateTopics:
    public = Candidates(_PUBLIC, "words", lambda: load_embedding("words", _PUBLIC))
    making = MakingConfig(**config)  # type: ignore[arg-type]
    return PrivateTopics(PrivateConfig(epsilon, texts=6), public, making, shape, draw)


def _made(
    method: PrivateTopics, records: Sequence[Document], rows: NamedRows | None = None
) -> CorpusSynthesis:
    guard = SyntheticGuard((), (), GuardConfig(pii="contacts"))
    steps = method.make_all(records, guard, rows or NamedRows(None, "counts"))
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it asked a model")


def _changes(method: PrivateTopics, record: Document, others: Sequence[Document]) -> np.ndarray:
    return method.counted([*others, record]) - method.counted(others)


def _within(changed: np.ndarray, votes: int) -> bool:
    """Whether a change is what the accounting says: so many counts at most, by one each."""
    return bool(set(np.unique(changed)) <= {0, 1} and changed.sum() <= votes)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([w for t in _PUBLIC for w in t.split()]), max_size=60))
def test_a_record_changes_no_more_counts_than_are_accounted(words: list[str]) -> None:
    method = _method()
    changed = _changes(method, Document("x", " ".join(words)), _RECORDS[:5])
    assert _within(changed, method.shape.votes)
    assert method.spend().votes == method.shape.votes == 2 * (1 + 4)


@pytest.mark.parametrize("mutation", ["a word more", "each occurrence", "every cluster"])
def test_a_sensitivity_that_is_too_large_is_noticed(
    mutation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Document("x", " ".join(_PUBLIC[:4]))
    assert _within(_changes(_method(), long, _RECORDS[:5]), _SHAPE.votes)
    honest = PrivateTopics._keywords

    def more(self: PrivateTopics, text: str, public: object) -> list[int]:
        told = honest(self, text, public)  # type: ignore[arg-type]
        return [*told, 60] if mutation == "a word more" else [*told, *told]

    mutated = _method()
    if mutation == "every cluster":
        mutated.shape = TopicShape(clusters=3, overlap=3, words=4, vocabulary=64)
    elif mutation == "a word more":
        monkeypatch.setattr(PrivateTopics, "_keywords", more)
    else:

        def counted(self: PrivateTopics, documents: Sequence[Document]) -> np.ndarray:
            return sum((2 * _HONEST(self, [one]) for one in documents), np.zeros((3, 65), np.int64))

        monkeypatch.setattr(PrivateTopics, "counted", counted)
    assert not _within(_changes(mutated, long, _RECORDS[:5]), _SHAPE.votes)


_HONEST = PrivateTopics.counted


def _audited(noise: Fraction, claimed: Fraction, method: PrivateTopics) -> float:
    """A lower bound of epsilon by the best test between two neighbouring corpora, at 99.9 %.

    Args:
        noise: Variance that is drawn.
        claimed: Variance that the test is made for.
        method: Counts.
    """
    bits = ShakeBits(b"audit")
    with_it, without = (method.counted(records).ravel() for records in (_RECORDS[:6], _RECORDS[:5]))
    changed = with_it != without
    drawn = []
    for counts in (with_it, without):
        released = [
            with_noise(counts[changed], noise, lambda v: discrete_gaussian(v, bits))
            for _ in range(1500)
        ]
        # The log likelihood ratio of the two, up to a constant, is the sum over changed counts.
        drawn.append((np.array(released) - without[changed]).sum(axis=1) / float(claimed))
    inside, outside = drawn
    best = 0.0
    for cut in np.quantile(np.concatenate(drawn), np.linspace(0.02, 0.98, 25)):
        hit, n = int((inside > cut).sum()), len(inside)
        miss = int((outside > cut).sum())
        low = proportion_interval(hit, n, 0.999)[0]
        high = proportion_interval(miss, n, 0.999)[1]
        if low > 1e-6:
            best = max(best, math.log((low - 1e-6) / high))
    return best


def test_neighbouring_corpora_are_told_apart_within_epsilon_alone() -> None:
    method = _method(1.0)
    claimed = method.variance
    assert delta_of(1.0, claimed, method.shape.votes) <= 1e-6
    assert _audited(claimed, claimed, method) <= 1.0
    # The opponent: a hundredth of the noise that is claimed, and the same test sees it.
    assert _audited(claimed / 100, claimed, method) > 1.0


def test_texts_hold_words_of_many_records_and_none_of_one() -> None:
    found = _made(_method(), _RECORDS)
    texts = [one.text for one in found.made if one.fate is Fate.PASSED]
    assert len(texts) >= 3
    words = {word for text in texts for word in text.lower().replace(".", "").split()}
    assert {"tide", "orchard", "violin"} & words
    assert not any("Ada" in text or "Fenn" in text for text in texts)
    # By rules a text is put together from sentences of public texts.
    assert all(part in " ".join(_PUBLIC) for text in texts for part in text.split(". ")[:1])


def test_noisy_counts_are_kept_and_never_drawn_again() -> None:
    rows = NamedRows(None, "counts")
    first = _made(_method(), _RECORDS, rows)
    assert _made(_method(draw=lambda _: pytest.fail("drawn")), _RECORDS, rows) == first
    with pytest.raises(InputError, match="another corpus or of other settings"):
        _made(_method(), _RECORDS[:-1], rows)


def test_a_corpus_of_one_record_gives_nothing_of_it() -> None:
    alone = [Document("r", "Ada Fenn hid the violin in the barn at the lighthouse.")]
    found = _made(_method(1.0), alone)
    assert not any("Ada" in one.text for one in found.made)
    assert sum(one.fate is Fate.PASSED for one in found.made) <= 1
    assert "small for this epsilon" in " ".join(found.warnings) or found.made


def test_a_model_is_shown_keywords_alone_and_its_text_must_hold_them() -> None:
    method = _method(asking=Asking(attempts=1, roles=(("generator", "m"),)))
    assert method.asks
    guard = SyntheticGuard((), (), GuardConfig(pii="contacts"))
    steps = method.make_all(_RECORDS, guard, NamedRows(None, "counts"))
    (*queries,) = next(steps)
    assert not any("Ada" in query.prompt or "Fenn" in query.prompt for query in queries)
    said = ["It is fine, and that is all there is."] * len(queries)
    said[0] = f"We spoke of {queries[0].prompt.partition('fit: ')[2].partition('. No')[0]}."
    with pytest.raises(StopIteration) as stop:
        steps.send([Answer(one, finish_reason="stop") for one in said])
    made = stop.value.value.made
    assert made[0].fate is Fate.PASSED
    assert {one.reason for one in made[1 : len(queries)]} <= {"it does not hold its keywords"}


def test_at_equal_epsilon_both_private_methods_spend_the_same() -> None:
    topics = _method(2.0)
    evolution = PrivateEvolution(topics.private, topics.candidates)
    assert isinstance(topics, CorpusMethod)
    for method in (topics, evolution):
        spend = method.spend()
        assert (spend.epsilon, spend.delta) == (2.0, 1e-6)
        assert delta_of(2.0, spend.variance, spend.votes) <= 1e-6
        less = spend.variance * Fraction(99, 100)
        assert delta_of(2.0, less, spend.votes) > 1e-6


def test_without_public_texts_there_are_no_clusters() -> None:
    nothing = Candidates((), "words", lambda: load_embedding("words", _PUBLIC))
    with pytest.raises(InputError, match="takes its clusters and words from public texts"):
        PrivateTopics(PrivateConfig(1.0), nothing)
