"""Private synthesis by topics: soft clusters, private keywords, rephrasing, a filter.

After DP-SynRAG (arXiv 2510.06719): records are gathered in overlapping clusters, each cluster gives
noisy counts of keywords, and texts are written from these. There the clusters follow from a noisy
histogram and the texts from a model that reads the records under noise (private prediction); here
clusters and vocabulary are those of public texts, and whoever writes is shown noisy keywords alone,
so that all of epsilon is spent on counts and accounted exactly, as for private evolution.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragwitness.defenses.synthetic.agents import MakingConfig, ask, together
from ragwitness.defenses.synthetic.base import (
    CorpusSynthesis,
    Fate,
    Keeper,
    Steps,
    StoppedError,
    Synthesis,
    of_one_release,
)
from ragwitness.defenses.synthetic.guard import GuardConfig, SyntheticGuard
from ragwitness.defenses.synthetic.private.accounting import (
    Draw,
    epsilon_of,
    grid,
    shares,
    system_noise,
    variance_for,
    vectors_of,
    with_noise,
)
from ragwitness.defenses.synthetic.private.evolution import Candidates, PrivateConfig
from ragwitness.defenses.synthetic.private.ledger import Spend
from ragwitness.defenses.synthetic.private.sources import content_words
from ragwitness.defenses.synthetic.roles import GENERATOR, RULES
from ragwitness.defenses.synthetic.rules import sentences_of
from ragwitness.defenses.synthetic.sage import of_form
from ragwitness.errors import InputError
from ragwitness.kit.stored_names import stored_text
from ragwitness.types import Document

_WRITE = """\
Make up {form}. It deals with matters that these words stand for, and uses them where they fit: \
{words}. No person, place or number in it is real. Write the text alone, without a remark before \
or after it."""
_FEWEST_TEXTS = 2  # public texts that a word of the vocabulary stands in
_LEAST_WORDS = 3  # of a text
_SENTENCES = 5  # of public texts, in a text by rules


@dataclass(frozen=True, slots=True)
class TopicShape:
    """How many counts a record changes, and what a text is written from.

    Attributes:
        clusters: Number of clusters of the public texts.
        overlap: Number of nearest clusters that a record belongs to (the paper's soft clustering).
        words: Number of keywords that a record gives to each of them.
        vocabulary: Number of words of the public texts that are counted.
        told: Largest number of keywords in a text.
        floor: Standard deviations of the noise below which a keyword says nothing.
        kept: Share of its keywords that a text must hold (the paper's self-filter).
    """

    clusters: int = 10
    overlap: int = 2
    words: int = 6
    vocabulary: int = 1024
    told: int = 8
    floor: float = 3.0
    kept: float = 0.5

    @property
    def votes(self) -> int:
        """Counts that a record changes by one: of each of its clusters the size and its words."""
        return self.overlap * (1 + self.words)


@dataclass(frozen=True, slots=True)
class _Public:
    """What is known before any record is looked at."""

    centres: NDArray[np.float32]
    words: dict[str, int]
    weights: NDArray[np.float64]


class PrivateTopics:
    """Texts written from noisy keywords of overlapping clusters.

    Args:
        private: The budget; its rounds, spread and floor are private evolution's.
        candidates: Public texts, the embedder, and the model that writes, if any.
        config: Settings of the model, and the domain.
        shape: Limits on what a record counts.
        draw: Noise, as for :class:`~.evolution.PrivateEvolution`.

    Raises:
        InputError: There are no public texts for clusters and words.
    """

    name = "private-topics"

    def __init__(
        self,
        private: PrivateConfig,
        candidates: Candidates,
        config: MakingConfig | None = None,
        shape: TopicShape | None = None,
        draw: Draw = system_noise,
    ) -> None:
        self.private, self.candidates = private, candidates
        self.config, self.shape = config or MakingConfig(), shape or TopicShape()
        self._draw = draw
        if len(candidates.public) < self.shape.clusters:
            raise InputError(
                "private-topics takes its clusters and words from public texts, and needs at least"
                f" {self.shape.clusters} of them.",
                "Give them with --public FILE.",
            )

    @property
    def asks(self) -> bool:
        """Whether a model writes; else rules put sentences of public texts together."""
        role = dict(self.config.asking.roles).get(GENERATOR)
        return role != RULES if role else self.candidates.model is not None

    @cached_property
    def variance(self) -> Fraction:
        """Parameter of the noise on every count.

        Raises:
            InputError: The budget is too small for any count.
        """
        return variance_for(self.private.epsilon, self.private.delta, self.shape.votes)

    @property
    def _least(self) -> float:
        return self.shape.floor * math.sqrt(self.variance)

    def spend(self) -> Spend:
        """Return what a run spends on each record."""
        private = self.private
        return Spend(self.name, self.variance, self.shape.votes, private.epsilon, private.delta)

    def describe(self) -> dict[str, str]:
        """Return every setting, and what the epsilon covers."""
        private, shape, how = self.private, self.shape, self.config.describe()
        replaced = epsilon_of(private.delta, self.variance, 2 * shape.votes)
        used = {key: how[key] for key in ("domain", "answers") if self.asks}
        by = (
            "a model, which is shown noisy keywords and no record"
            if self.asks
            else "rules (no language model): sentences of public texts that hold the keywords"
        )
        return {
            "method": self.name,
            "privacy": f"epsilon {private.epsilon:g}, delta {private.delta:g}, for one record"
            " added or removed",
            "noise": f"discrete Gaussian, sd {math.sqrt(self.variance):.4g}, on each of"
            f" {shape.clusters * (1 + shape.vocabulary)} counts, of which a record changes at most"
            f" {shape.votes} by one; from the operating system, not from --seed",
            "a record replaced": f"epsilon {replaced:.3g}",
            "covers": "the texts of --out: their words, number, order and ids",
            "does not cover": "the run folder, the report and this screen, which are for the"
            " corpus's owner; another run over the same records: its epsilon adds up",
            "assumes": "that nobody chose or trained the public texts, the model, the embedder or"
            " these settings by the records",
            "clusters": f"{shape.clusters} of {len(self.candidates.public):,} public texts; a"
            f" record is in {shape.overlap} and gives {shape.words} keywords to each",
            "keywords": f"those with more than {self._least:.4g} noisy counts; at most"
            f" {shape.told} of a text",
            "written by": by,
            "embedder": f"{self.candidates.embedder}; it is shown every record",
            **used,
        }

    def most(self, records: int) -> int:  # noqa: ARG002
        """Return the most queries."""
        return self.private.texts * self.config.asking.attempts if self.asks else 0

    def key(self, documents: Sequence[Document]) -> str:
        """Return a content address of all that the counts follow from."""
        made_of = [
            self.name,
            [document.text for document in documents],
            self.candidates.public,
            self.candidates.embedder,
            self.candidates.model,
            stored_text(self.config),
            asdict(self.private),
            asdict(self.shape),
        ]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]

    def make_all(
        self, documents: Sequence[Document], guard: SyntheticGuard, keeper: Keeper
    ) -> Steps[CorpusSynthesis]:
        """Return the texts; noisy counts are kept and never redrawn.

        Raises:
            InputError: The keeper holds counts for other settings or another corpus.
        """
        key = self.key(documents)
        of_one_release(keeper, key)
        public = self._public()
        row = keeper.get(f"{key} 0")
        if row is None:
            counts = self.counted(documents, public)
            row = {"noisy": with_noise(counts.ravel(), self.variance, self._draw)}
            keeper.put(f"{key} 0", row)
        # From here on no record is looked at: what follows costs no privacy.
        noisy = np.array(row["noisy"]).reshape(self.shape.clusters, -1)
        form = SyntheticGuard((), (), GuardConfig(run=0, rouge=1.0, pii=guard.config.pii))
        return (yield from self._told(noisy, public, form))

    def _public(self) -> _Public:
        """Clusters and words of the public texts; they owe nothing to a record."""
        from sklearn.cluster import KMeans

        texts = self.candidates.public
        vectors = self.candidates.load()(texts)
        # The seed is a constant: --seed is for the model, and centres are public anyway.
        found = KMeans(self.shape.clusters, random_state=0, n_init=3).fit(vectors)
        lengths = np.linalg.norm(found.cluster_centers_, axis=1, keepdims=True)
        centres = found.cluster_centers_ / np.where(lengths > 0, lengths, 1)
        counts = Counter(word for text in texts for word in set(content_words(text)))
        known = [w for w, n in counts.most_common() if n >= _FEWEST_TEXTS and w.isalpha()]
        known = known[: self.shape.vocabulary]
        weights = np.array([math.log((1 + len(texts)) / counts[word]) for word in known])
        words = {word: n for n, word in enumerate(known)}
        return _Public(grid(centres.astype(np.float32)), words, weights)

    def counted(
        self, documents: Sequence[Document], public: _Public | None = None
    ) -> NDArray[np.int64]:
        """Count sizes and keywords, without noise: for tests and for :meth:`make_all` alone.

        Args:
            documents: The records.
            public: Clusters and words.

        Returns:
            Shape (clusters, 1 + words): the size of each cluster, then its keywords. A record
            changes at most ``shape.votes`` of them, each by one, whatever the others are.
        """
        public = public or self._public()
        counts = np.zeros((self.shape.clusters, 1 + self.shape.vocabulary), np.int64)
        embed = self.candidates.load()
        for document in documents:
            vector = vectors_of([document.text], embed)[0]
            if not vector.any():  # without a direction a record is in no cluster
                continue
            # Whole numbers in doubles are exact: no other record moves this one's clusters.
            near = -(public.centres.astype(np.float64) @ vector.astype(np.float64))
            mine = np.argsort(near, kind="stable")[: self.shape.overlap]
            told = self._keywords(document.text, public)
            counts[mine, 0] += 1
            for cluster in mine:
                counts[cluster, told] += 1
        return counts

    def _keywords(self, text: str, public: _Public) -> list[int]:
        """Columns of a record's keywords, each once: its most telling words that are public."""
        held = Counter(public.words[w] for w in content_words(text) if w in public.words)
        weight = {n: (1 + math.log(count)) * public.weights[n] for n, count in held.items()}
        best = sorted(weight, key=lambda n: (-weight[n], n))[: self.shape.words]
        return [1 + n for n in best]

    def _told(
        self, noisy: NDArray[np.int64], public: _Public, form: SyntheticGuard
    ) -> Steps[CorpusSynthesis]:
        """Write a text for every group of keywords of every cluster."""
        groups, names = [], list(public.words)
        places = shares(noisy[:, 0].tolist(), self.private.texts, self._least)
        for cluster, count in enumerate(places.tolist()):
            columns = noisy[cluster, 1 : 1 + len(names)]
            order = np.argsort(-columns, kind="stable")
            kept = [names[n] for n in order[: count * self.shape.told] if columns[n] > self._least]
            # Dealt out like cards, so that every text of a cluster has some of its first words.
            groups += [kept[n :: max(1, count)] for n in range(count)]
        fit = [group for group in dict.fromkeys(map(tuple, groups)) if len(group) >= _LEAST_WORDS]
        made = yield from together(self._written(n, group) for n, group in enumerate(fit))
        found: list[Synthesis] = []
        for place, (text, group) in enumerate(zip(made, fit, strict=True)):
            name = f"text-{place + 1}"
            if isinstance(text, StoppedError):
                found.append(Synthesis(name, text.fate, reason=text.reason))
                continue
            held = set(content_words(text))
            broken = form.violation(text)
            if sum(word in held for word in group) < self.shape.kept * len(group):
                reason = "it does not hold its keywords"
                found.append(Synthesis(name, Fate.WITHHELD, reason=reason))
            elif broken is not None:
                found.append(Synthesis(name, Fate.WITHHELD, reason=broken.reason))
            else:
                found.append(Synthesis(name, Fate.PASSED, text))
        reason = "no other keywords have more counts than noise alone may give"
        missing = range(len(fit), self.private.texts)
        found += [Synthesis(f"text-{n + 1}", Fate.WITHHELD, reason=reason) for n in missing]
        warnings = []
        if 2 * len(fit) < self.private.texts:
            warnings.append(
                f"Only {len(fit)} of {self.private.texts} texts have keywords above the noise: the"
                " corpus is small for this epsilon. Take a larger --epsilon or fewer --texts."
            )
        return CorpusSynthesis(tuple(found), tuple(warnings))

    def _written(self, turn: int, words: Sequence[str]) -> Steps[str]:
        if not self.asks:
            yield from ()
            return self._by_rules(words)
        prompt = _WRITE.format(form=self.config.domain.form, words=", ".join(words))

        def read(said: str) -> str | None:
            return of_form(said, self.config)

        return (yield from ask(prompt, read, self.config.asking, role=GENERATOR, turn=turn))

    def _by_rules(self, words: Sequence[str]) -> str:
        """Sentences of public texts that hold the most of the keywords not told yet."""
        left, told = set(words), list[str]()
        held = self._sentences
        while left and len(told) < _SENTENCES:
            gains = ((len(left & one) / (5 + len(one)), -n) for n, (_, one) in enumerate(held))
            gain, place = max(gains, default=(0.0, 0))
            if not gain:
                break
            text, holds = held[-place]
            told.append(text)
            left -= holds
        return " ".join(told)

    @cached_property
    def _sentences(self) -> list[tuple[str, frozenset[str]]]:
        found = dict.fromkeys(one for text in self.candidates.public for one in sentences_of(text))
        return [(one, frozenset(content_words(one))) for one in found if len(one) > len("a b c d")]
