"""Private evolution of text: candidates, noisy votes of the records, variations of the chosen.

After Lin et al. 2024 (arXiv 2305.15560, Algorithms 1 and 2) and Xie et al. 2024 (Aug-PE, arXiv
2403.01749, Algorithm 1). No record is ever shown to the model, and nothing of a record reaches a
text but through the noisy votes. The published code draws noise in floating point, writes the
counts without noise beside those with it, and takes the number of texts per label from the records.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.stored_names import stored_text
from ragwitness.core.types import Document
from ragwitness.synthesis.agents import GENERATOR, MakingConfig, ask, shown, together
from ragwitness.synthesis.generator import (
    CorpusSynthesis,
    Fate,
    Keeper,
    Steps,
    StoppedError,
    Synthesis,
    of_one_release,
)
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.private.accounting import (
    Draw,
    Embed,
    best,
    epsilon_of,
    grid,
    group_epsilon,
    nearest,
    shares,
    system_noise,
    variance_for,
    vectors_of,
    with_noise,
)
from ragwitness.synthesis.private.ledger import Spend
from ragwitness.synthesis.response_parsing import read_list
from ragwitness.synthesis.sage import of_form
from ragwitness.text.words import STOP_WORDS, plain_tokens

# Parameters of private evolution, and what its epsilon means in words.

MOST_ROUNDS = 50
_MOST_TEXTS = 10_000
_LARGEST_EPSILON = 100.0
_LEAST_DELTA = 1e-20  # sums of doubles say nothing of less
_GROUPS = (2, 5)


@dataclass(frozen=True)
class PrivateConfig:
    """A privacy budget and what is made with it.

    Attributes:
        epsilon: Privacy parameter of the whole output when one record is added or removed.
        delta: Failure probability of the same; a constant, because one that follows from the
            number of records tells that number.
        texts: Largest number of texts to make.
        rounds: Number of rounds of votes.
        spread: Number of candidates for each text to make.
        floor: Standard deviations of the noise below which a count says nothing.

    Raises:
        InputError: A value is out of range.
    """

    epsilon: float
    delta: float = 1e-6
    texts: int = 50
    rounds: int = 3
    spread: int = 4
    floor: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a budget that is none, and numbers with which nothing can be made."""
        if not 0 < self.epsilon <= _LARGEST_EPSILON:  # also what is no number
            raise InputError(
                f"epsilon must be above 0 and at most {_LARGEST_EPSILON:g}, not {self.epsilon:g}.",
                "Take --epsilon 1 to begin with; above 10 it promises little.",
            )
        if not _LEAST_DELTA <= self.delta < 1:
            raise InputError(
                f"delta must be at least {_LEAST_DELTA:g} and below 1, not {self.delta:g}.",
                "Take one far below 1 / number of records, e.g. --delta 1e-6.",
            )
        if not 1 <= self.texts <= _MOST_TEXTS or not 1 <= self.rounds <= MOST_ROUNDS:
            raise InputError(
                f"texts must be 1 to {_MOST_TEXTS:,} and rounds 1 to {MOST_ROUNDS}, not"
                f" {self.texts} and {self.rounds}.",
                "Leave out --texts and --rounds for the default.",
            )

    @property
    def candidates(self) -> int:
        """Candidates in every round."""
        return self.texts * self.spread

    @cached_property
    def variance(self) -> Fraction:
        """Parameter of the noise on every count of every round.

        Raises:
            InputError: The budget is too small for any choice.
        """
        return variance_for(self.epsilon, self.delta, self.rounds)

    @property
    def least(self) -> float:
        """Count up to which a candidate may have no vote at all."""
        return self.floor * math.sqrt(self.variance)

    def describe(self) -> dict[str, str]:
        """Return what the epsilon covers, and all that it rests on, as label and value."""
        budget = f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        replaced = epsilon_of(self.delta, self.variance, 2 * self.rounds)
        groups = ", ".join(
            f"{group_epsilon(self.delta, self.variance, self.rounds, n):.3g} for {n}"
            for n in _GROUPS
        )
        return {
            "privacy": f"{budget}, for one record added or removed",
            "noise": f"discrete Gaussian, sd {math.sqrt(self.variance):.4g}, on each of"
            f" {self.candidates} counts in {self.rounds} rounds; from the operating system,"
            " not from --seed",
            "a record replaced": f"epsilon {replaced:.3g}",
            "records of one person": f"epsilon at most {groups}",
            "covers": "the texts of --out: their words, number, order and ids",
            "does not cover": "the run folder, the report and this screen, which are for the"
            " corpus's owner; another run over the same records: its epsilon adds up",
            "assumes": "that nobody chose or trained the public texts, the model, the embedder or"
            " these settings by the records",
            "conditions": "on form alone: whether a text shares words or secrets with a record is"
            " not looked at, because withholding it would tell of the record",
            "texts": f"at most {self.texts}, with more than {self.least:.4g} noisy votes",
        }


Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What candidates are made of and compared by; nothing in it may depend on the records.

    Attributes:
        public: Public texts; empty where a model drafts.
        embedder: Name of the embedder, for the report.
        load: Loads it.
        model: Name of the model that makes the variations; None where there is none.
    """

    public: tuple[str, ...]
    embedder: str
    load: Callable[[], Embed]
    model: str | None = None


class PrivateEvolution:
    """Texts chosen by noisy votes of the records.

    Args:
        private: The budget.
        candidates: The source of texts.
        config: Settings of the model, and the domain.
        draw: Noise; the operating system's by default. For tests alone: noise that anybody can
            draw again protects nobody.

    Raises:
        InputError: There is nothing that candidates can be made of.
    """

    name = "private-evolution"

    def __init__(
        self,
        private: PrivateConfig,
        candidates: Candidates,
        config: MakingConfig | None = None,
        draw: Draw = system_noise,
    ) -> None:
        self.private, self.candidates = private, candidates
        self.config = config or MakingConfig()
        self._draw = draw
        _check(candidates, self.config)

    @property
    def asks(self) -> bool:
        """Whether a model drafts or varies."""
        return self.candidates.model is not None

    def describe(self) -> dict[str, str]:
        """Return every setting, and what the epsilon covers."""
        given, how = self.candidates, self.config.describe()
        start = f"{len(given.public):,} public texts" if given.public else "drafts of the model"
        varied = "by the model, which is shown no record" if given.model else "the nearest of them"
        used = {key: how[key] for key in ("domain", "answers") if given.model}
        return {
            "method": self.name,
            **self.private.describe(),
            "candidates": f"{self.private.candidates} of {start}; variations: {varied}",
            "embedder": f"{given.embedder}; it is shown every record",
            **used,
            "first candidates by seed": str(self.config.asking.seed),
        }

    def most(self, records: int) -> int:  # noqa: ARG002
        """Return the most queries; the number of records has no part in it."""
        if not self.asks:
            return 0
        rounds, drafts = self.private.rounds, not self.candidates.public
        texts = self.private.candidates * (rounds - 1 + drafts) + drafts
        return texts * self.config.asking.attempts

    def make_all(
        self, documents: Sequence[Document], guard: SyntheticGuard, keeper: Keeper
    ) -> Steps[CorpusSynthesis]:
        """Return the texts that the records voted for; noisy votes are kept and never redrawn.

        Raises:
            StoppedError: There was nothing to vote on.
            InputError: The keeper holds votes for other settings or another corpus.
        """
        # Noise is drawn once: a round whose votes are kept is never voted on again.
        key = self.key(documents)
        of_one_release(keeper, key)
        voting = _Voting(self, documents, SyntheticGuard((), (), _by_form(guard)))
        rows: list[Row] = []
        # Every round: candidates, votes of the records, noise, and what is kept of it.
        for turn in range(self.private.rounds):
            row = keeper.get(f"{key} {turn}")
            if row is None:
                row = yield from voting.round(rows)
                keeper.put(f"{key} {turn}", row)
            rows.append(row)
        return self._result(rows, len(documents))

    def spend(self) -> Spend:
        """Return what a run spends on each record: one vote in every round."""
        private = self.private
        return Spend(self.name, private.variance, private.rounds, private.epsilon, private.delta)

    def key(self, documents: Sequence[Document]) -> str:
        """Return a content address of all that the votes follow from; as private as the corpus."""
        made_of = [
            [document.text for document in documents],
            self.candidates.public,
            self.candidates.embedder,
            self.candidates.model,
            stored_text(self.config),
            asdict(self.private),
        ]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]

    def _result(self, rows: Sequence[Row], records: int) -> CorpusSynthesis:
        chosen = best(rows[-1]["noisy"], self.private.texts, self.private.least)
        made = [
            Synthesis(f"text-{n + 1}", Fate.PASSED, rows[-1]["texts"][place])
            for n, place in enumerate(chosen)
        ]
        reason = "no other candidate has more votes than noise alone may give"
        empty = range(len(chosen), self.private.texts)
        made += [Synthesis(f"text-{n + 1}", Fate.WITHHELD, reason=reason) for n in empty]
        for turn, row in enumerate(rows):
            for n, (fate, why) in enumerate(row["lost"]):
                made.append(Synthesis(f"draft-{turn + 1}-{n + 1}", Fate(fate), reason=why))
        return CorpusSynthesis(tuple(made), tuple(self._warnings(rows, len(chosen), records)))

    def _warnings(self, rows: Sequence[Row], chosen: int, records: int) -> list[str]:
        found = []
        if self.private.delta * records >= 1:
            found.append(
                f"delta {self.private.delta:g} is not below 1 in {records} records: it allows that"
                " one of them is published whole. Take a smaller --delta."
            )
        if 2 * chosen < self.private.texts:
            found.append(
                f"Only {chosen} of {self.private.texts} texts have more votes than noise alone may"
                " give: the corpus is small for this epsilon. Another run would spend on the same"
                " records again."
            )
        blind = [n + 1 for n, row in enumerate(rows) if max(row["noisy"]) <= self.private.least]
        if blind:
            found.append(f"In round {blind[0]} no candidate stood out; its choice was blind.")
        lost = sum(len(row["lost"]) for row in rows)
        if lost:
            found.append(
                f"{lost} candidates were not voted on: not made as told, or against a condition."
            )
        return found


class _Voting:
    """One start's work: what is loaded is loaded once, and only where a round is to be held."""

    def __init__(
        self, method: PrivateEvolution, documents: Sequence[Document], form: SyntheticGuard
    ) -> None:
        self._method, self._documents, self._form = method, documents, form
        self._embed: Embed | None = None
        self._source: Source | None = None
        self._records: NDArray[np.float32] | None = None

    def round(self, rows: Sequence[Row]) -> Steps[Row]:
        """Return the candidates of a round with their noisy votes."""
        private = self._method.private
        if self._embed is None or self._source is None or self._records is None:
            given = self._method.candidates
            self._embed = given.load()
            config = self._method.config
            self._source = (
                ChatSource(config, given.public)
                if given.model
                else PublicSource(given.public, self._embed)
            )
            self._records = vectors_of([d.text for d in self._documents], self._embed)
        # 1. Candidates: drawn or drafted first, then variations of those with most noisy votes.
        texts, lost = yield from self._candidates(self._source, rows)
        # 2. Votes: each record for its nearest candidate, and noise on every count.
        counts = nearest(self._records, grid(self._embed(texts)))
        noisy = with_noise(counts, private.variance, self._method._draw)
        return {"texts": texts, "noisy": noisy, "lost": lost}

    def _candidates(self, source: Source, rows: Sequence[Row]) -> Steps[tuple[list[str], Any]]:
        private, kept = self._method.private, list[str]()
        if not rows:
            seed = self._method.config.asking.seed
            made = yield from source.start(private.candidates, seed)
        else:
            wanted = self._wanted(rows[-1])
            kept = [text for text, _ in wanted]
            seen = {text for row in rows for text in row["texts"]}
            more = [(text, count) for text, count in wanted if count]
            made = yield from source.vary(more, seen, len(rows))
        lost = [[str(one.fate), str(one)] for one in made if isinstance(one, StoppedError)]
        texts = list(dict.fromkeys([*kept, *(one for one in made if isinstance(one, str))]))
        # On form alone: a condition that looked at records would tell of them.
        fit = []
        for text in texts:
            broken = self._form.violation(text)
            if broken is None:
                fit.append(text)
            else:
                lost.append([str(Fate.WITHHELD), broken.reason])
        if not fit:
            raise StoppedError(Fate.MALFORMED, "there is no candidate to vote on")
        return fit, lost

    def _wanted(self, row: Row) -> Wanted:
        """Return the chosen candidates, the one with most votes first, with their variations."""
        private = self._method.private
        # A place of its own for each chosen text, the others for its variations.
        given = shares(row["noisy"], private.candidates, private.least)
        order = np.argsort(-given, kind="stable")
        return [(row["texts"][n], int(given[n]) - 1) for n in order if given[n]]


def _by_form(guard: SyntheticGuard) -> GuardConfig:
    """Return the conditions that look at no record, whatever else a guard was given."""
    return GuardConfig(run=0, rouge=1.0, pii=guard.config.pii)


def _check(candidates: Candidates, config: MakingConfig) -> None:
    if not candidates.public and candidates.model is None:
        raise InputError(
            "private-evolution has nothing to choose from.",
            "Give public texts with --public FILE, or a model with --model, or both.",
        )
    if not candidates.public and config.domain.name == "auto":
        raise InputError(
            "Without public texts the model drafts from a description of the records, and the"
            " domain auto has none.",
            "Give --public FILE, or --domain medical, wiki or a .toml file.",
        )
    if not candidates.public and candidates.embedder == WORDS:
        raise InputError(
            f"The embedder {WORDS} is made of the words of public texts, and there are none.",
            "Give --public FILE, or another --embedder.",
        )


# Where candidates come from: public texts, or a model that is shown no record.


_MATTERS = 40
_APART = 100_000  # between the seeds of two turns: more than the candidates of a round
_LIST = """\
Name {n} different matters that {records} may deal with, from the commonest to the rare: each a \
few words, of general interest, without names of persons, numbers or addresses.
Write {n} lines, each of the form "- matter", and nothing else."""
_DRAFT = """\
Make up {form}. It deals with: {matter}. No person, place or number in it is real. Write the text \
alone, without a remark before or after it."""
_VARY = """\
Here is a text:
{text}

Write another text of the same kind on the same matter: another case, told in other words, with \
other persons, details and numbers. It must be {form}. Write the text alone, without a remark \
before or after it."""

Made = list[str | StoppedError]
"""Texts, with why there is none in the place of one that could not be made."""

Wanted = Sequence[tuple[str, int]]
"""Texts with the number of variations that each is to have."""


class PublicSource:
    """A pool of public texts; a text's variations are those nearest to it.

    Args:
        pool: The texts.
        embed: Maps texts to vectors.
    """

    def __init__(self, pool: Sequence[str], embed: Embed) -> None:
        self._pool = pool
        self._place = {text: n for n, text in enumerate(pool)}
        self._embed = embed
        self._vectors: NDArray[np.float32] | None = None

    def start(self, count: int, seed: int) -> Steps[Made]:
        """Return some of the pool, drawn at random."""
        yield from ()
        return list(some_of(self._pool, count, seed))

    def vary(self, wanted: Wanted, seen: Collection[str], turn: int) -> Steps[Made]:  # noqa: ARG002
        """Return the nearest texts that were in no round yet, for each text in turn."""
        yield from ()
        if self._vectors is None:
            self._vectors = grid(self._embed(self._pool))
        free = np.ones(len(self._pool), bool)
        free[[self._place[text] for text in seen]] = False
        found: Made = []
        for text, count in wanted:
            # Vectors are whole numbers of one length: the inner product orders as the cosine does.
            closeness = np.where(free, self._vectors @ self._vectors[self._place[text]], -np.inf)
            near = np.argsort(-closeness, kind="stable")[: min(count, int(free.sum()))]
            free[near] = False
            found += [self._pool[n] for n in near]
        return found


class ChatSource:
    """A language model that drafts from the domain's description and varies what it is given.

    Args:
        config: Domain, and how the model is asked.
        pool: Public texts to start from; empty for drafts.
    """

    def __init__(self, config: MakingConfig, pool: Sequence[str] = ()) -> None:
        self._config, self._pool = config, pool

    def start(self, count: int, seed: int) -> Steps[Made]:
        """Return some of the pool, or drafts on matters that the model names.

        Raises:
            StoppedError: The model named no matter.
        """
        if self._pool:
            return list(some_of(self._pool, count, seed))
        domain = self._config.domain
        asked = _LIST.format(n=_MATTERS, records=domain.records)
        matters = yield from ask(
            asked, lambda text: read_list(text) or None, self._config.asking, role=GENERATOR
        )
        prompts = [
            _DRAFT.format(form=domain.form, matter=matters[n % len(matters)]) for n in range(count)
        ]
        return (yield from together(self._ask(p, n) for n, p in enumerate(prompts)))

    def vary(self, wanted: Wanted, seen: Collection[str], turn: int) -> Steps[Made]:  # noqa: ARG002
        """Return new texts on the matter of each, as many as wanted; others in another turn."""
        form = self._config.domain.form
        parts = []
        for text, count in wanted:
            prompt = _VARY.format(text=shown(text), form=form)
            parts += [self._ask(prompt, turn * _APART + n, text) for n in range(count)]
        return (yield from together(parts))

    def _ask(self, prompt: str, turn: int, like: str | None = None) -> Steps[str]:
        config = self._config

        def read(said: str) -> str | None:
            return of_form(said, config)

        return ask(prompt, read, config.asking, role=GENERATOR, like=like, turn=turn)


Source = PublicSource | ChatSource


def some_of(pool: Sequence[str], count: int, seed: int) -> Sequence[str]:
    """Return so many of a pool, drawn without the records."""
    return random.Random(seed).sample(pool, min(count, len(pool)))


# Embedders for votes: any by name, or word weights over public texts, which need no model.

WORDS = "words"
"""Name of the embedder that needs no model."""

_MOST_WORDS = 2048
_FEWEST_TEXTS = 2  # that a word stands in


def load_embedding(name: str, public: Sequence[str]) -> Embed:
    """Return an embedder.

    Args:
        name: :data:`WORDS`, or as for :func:`ragwitness.models.model_registry.load_embedder`.
        public: Public texts, for the words and their weights.

    Raises:
        InputError: No such embedder, or there is no public word.
        MissingExtraError: It needs an extra that is not installed.
        ModelError: It cannot be loaded.
    """
    if name == WORDS:
        return word_weights(public)
    from ragwitness.models.model_registry import load_embedder

    return load_embedder(name).embed


def word_weights(public: Sequence[str]) -> Embed:
    """Return TF-IDF over the words of public texts; words and weights owe nothing to a record.

    Raises:
        InputError: No word stands in two of the texts.
    """
    # IDF from public texts alone: with the records' own it would tell of them.
    counts = Counter(word for text in public for word in set(content_words(text)))
    known = [w for w, count in counts.most_common(_MOST_WORDS) if count >= _FEWEST_TEXTS]
    if not known:
        raise InputError(
            f"The embedder {WORDS} knows the words of public texts, and no word stands in two.",
            "Give more texts with --public, or another --embedder.",
        )
    place = {word: n for n, word in enumerate(known)}
    weights = np.array([math.log((1 + len(public)) / counts[word]) for word in known])

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), len(known)))
        for row, text in zip(found, texts, strict=True):
            for word, count in Counter(w for w in content_words(text) if w in place).items():
                row[place[word]] = 1 + math.log(count)
        found *= weights
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        units: NDArray[np.float32] = (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return units

    return embed


def content_words(text: str) -> list[str]:
    """Return the words of a text without function words."""
    return [word for word in plain_tokens(text) if word not in STOP_WORDS]
