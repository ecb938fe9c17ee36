"""Private evolution of text: candidates, noisy votes of the records, variations of the chosen.

After Lin et al. 2024 (arXiv 2305.15560, Algorithms 1 and 2) and Xie et al. 2024 (Aug-PE, arXiv
2403.01749, Algorithm 1). The model never sees a record, and a record influences a text only through
the noisy votes. The published code draws noise in floating point, writes the counts without noise
beside those with it, and takes the number of texts per label from the records.
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
from ragwitness.synthesis.generator import Fate, NamedRows, Steps, StoppedError, Synthesis
from ragwitness.synthesis.guard import GuardConfig, SyntheticGuard
from ragwitness.synthesis.private import accounting
from ragwitness.synthesis.private.accounting import Embed
from ragwitness.synthesis.private.ledger import Spend
from ragwitness.synthesis.response_parsing import read_list
from ragwitness.synthesis.sage import ask_text
from ragwitness.text.words import content_tokens

# Parameters of private evolution, and the meaning of its epsilon in words.

_MOST_ROUNDS = 50
_MOST_TEXTS = 10_000
_LARGEST_EPSILON = 100.0
_LEAST_DELTA = 1e-20  # sums of doubles are too coarse below
_GROUPS = (2, 5)


@dataclass(frozen=True)
class PrivateConfig:
    """A privacy budget, and the size of the output.

    Attributes:
        epsilon: Privacy parameter of the whole output when one record is added or removed.
        delta: Failure probability of the same. It is a constant: a delta computed from the number
            of records reveals that number.
        texts: Largest number of texts to make.
        rounds: Number of rounds of votes.
        spread: Number of candidates for each text to make.
        floor: Standard deviations of the noise below which a count is not significant.

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
        """Reject values out of range, NaN included."""
        if not 0 < self.epsilon <= _LARGEST_EPSILON:
            raise InputError(
                f"epsilon must be above 0 and at most {_LARGEST_EPSILON:g}, not {self.epsilon:g}.",
                "Take --epsilon 1 to begin with; above 10 it promises little.",
            )
        if not _LEAST_DELTA <= self.delta < 1:
            raise InputError(
                f"delta must be at least {_LEAST_DELTA:g} and below 1, not {self.delta:g}.",
                "Take one far below 1 / number of records, e.g. --delta 1e-6.",
            )
        if not 1 <= self.texts <= _MOST_TEXTS or not 1 <= self.rounds <= _MOST_ROUNDS:
            raise InputError(
                f"texts must be 1 to {_MOST_TEXTS:,} and rounds 1 to {_MOST_ROUNDS}, not"
                f" {self.texts} and {self.rounds}.",
                "Leave out --texts and --rounds for the default.",
            )

    @property
    def candidates(self) -> int:
        """Candidates in every round."""
        return self.texts * self.spread

    @cached_property
    def variance(self) -> Fraction:
        """Variance of the noise on every count of every round.

        Raises:
            InputError: The budget is too small for any choice.
        """
        return accounting.variance_for(self.epsilon, self.delta, self.rounds)

    @property
    def least(self) -> float:
        """Count up to which a candidate may have no vote at all."""
        return self.floor * math.sqrt(self.variance)

    def describe(self) -> dict[str, str]:
        """Return the scope of epsilon and its assumptions, as label and value."""
        budget = f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        replaced = accounting.epsilon_of(self.delta, self.variance, 2 * self.rounds)
        groups = ", ".join(
            f"{accounting.group_epsilon(self.delta, self.variance, self.rounds, n):.3g} for {n}"
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
    """The source of candidates, and their embedder; nothing of it may depend on the records.

    Attributes:
        public: Public texts; empty where a model drafts.
        embedder: Name of the embedder, for the report.
        load: Loads the embedder.
        model: Name of the model that makes the variations; None where there is none.
    """

    public: tuple[str, ...]
    embedder: str
    load: Callable[[], Embed]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class CorpusSynthesis:
    """The texts of a corpus as a whole.

    Attributes:
        made: One per text, under ids of their own.
        warnings: Warnings on their use.
    """

    made: tuple[Synthesis, ...]
    warnings: tuple[str, ...] = ()


class PrivateEvolution:
    """Texts chosen by noisy votes of the records.

    Args:
        private: The budget.
        candidates: The source of texts.
        config: Settings of the model, and the domain.
        draw: Noise; from the operating system by default. Other noise is for tests: reproducible
            noise protects nobody.

    Raises:
        InputError: There is no source of candidates.
    """

    name = "private-evolution"

    def __init__(
        self,
        private: PrivateConfig,
        candidates: Candidates,
        config: MakingConfig | None = None,
        draw: accounting.Draw = accounting.system_noise,
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
        """Return every setting, and the scope of epsilon."""
        source, how = self.candidates, self.config.describe()
        start = f"{len(source.public):,} public texts" if source.public else "drafts of the model"
        varied = "by the model, which is shown no record" if source.model else "the nearest of them"
        used = {key: how[key] for key in ("domain", "answers") if source.model}
        return {
            "method": self.name,
            **self.private.describe(),
            "candidates": f"{self.private.candidates} of {start}; variations: {varied}",
            "embedder": f"{source.embedder}; it is shown every record",
            **used,
            "first candidates by seed": str(self.config.asking.seed),
        }

    def most(self, records: int) -> int:  # noqa: ARG002
        """Return the most queries, whatever the number of records."""
        if not self.asks:
            return 0
        rounds, drafts = self.private.rounds, not self.candidates.public
        texts = self.private.candidates * (rounds - 1 + drafts) + drafts
        return texts * self.config.asking.attempts

    def make_all(
        self, documents: Sequence[Document], guard: SyntheticGuard, votes: NamedRows
    ) -> Steps[CorpusSynthesis]:
        """Return the texts that the records voted for; noisy votes are kept and never redrawn.

        Raises:
            StoppedError: There is no candidate to vote on.
            InputError: ``votes`` holds those of other settings or of another corpus.
        """
        self.check_votes(documents, votes)
        key, private, source = self.key(documents), self.private, self.candidates
        # The conditions look at form alone: one that looked at records would reveal them.
        form = SyntheticGuard((), (), GuardConfig(run=0, rouge=1.0, pii=guard.config.pii))
        pool: PublicSource | ChatSource | None = None
        rows: list[Row] = []
        for turn in range(private.rounds):
            row = votes.get(f"{key} {turn}")
            if row is None:
                # Embedder and records are loaded once, and only if a round has no votes yet.
                if pool is None:
                    embed = source.load()
                    by_model = ChatSource(self.config, source.public) if source.model else None
                    pool = by_model or PublicSource(source.public, embed)
                    records = accounting.vectors_of([d.text for d in documents], embed)
                # 1. Candidates: first drawn or drafted, then variations of the chosen ones.
                texts, losses = yield from self._candidates(pool, form, rows)
                # 2. Votes: each record for its nearest candidate, and noise on every count.
                counts = accounting.nearest(records, accounting.grid(embed(texts)))
                noisy = accounting.with_noise(counts, private.variance, self._draw)
                row = {"texts": texts, "noisy": noisy, "lost": losses}
                votes.put(f"{key} {turn}", row)
            rows.append(row)
        return self._result(rows, len(documents))

    def check_votes(self, documents: Sequence[Document], votes: NamedRows) -> None:
        """Reject votes of another release, before anything is booked or drawn.

        Raises:
            InputError: They are of other settings or of another corpus.
        """
        key = self.key(documents)
        if not all(name.startswith(key) for name in votes.keys()):  # noqa: SIM118
            raise InputError(
                "This run folder has noisy votes of another corpus or of other settings; two"
                " choices from the same records cost more than one epsilon.",
                "Choose another folder with --run; both epsilons add up.",
            )

    def spend(self) -> Spend:
        """Return the spend of a run on each record: one vote in every round."""
        private = self.private
        return Spend(self.name, private.variance, private.rounds, private.epsilon, private.delta)

    def key(self, documents: Sequence[Document]) -> str:
        """Return a content address of all inputs of the votes; as private as the corpus."""
        content = [
            [document.text for document in documents],
            self.candidates.public,
            self.candidates.embedder,
            self.candidates.model,
            stored_text(self.config),
            asdict(self.private),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def _candidates(
        self, pool: PublicSource | ChatSource, form: SyntheticGuard, rows: Sequence[Row]
    ) -> Steps[tuple[list[str], list[list[str]]]]:
        """Return the candidates of a round, and why others were lost."""
        private, chosen = self.private, list[str]()
        if not rows:
            drafts = yield from pool.start(private.candidates, self.config.asking.seed)
        else:
            # One place for each chosen text, the most voted first; the others for its variations.
            noisy, texts = rows[-1]["noisy"], rows[-1]["texts"]
            slots = accounting.shares(noisy, private.candidates, private.least)
            order = [n for n in np.argsort(-slots, kind="stable") if slots[n]]
            chosen = [texts[n] for n in order]
            variations = [(texts[n], int(slots[n]) - 1) for n in order if slots[n] > 1]
            earlier = {text for row in rows for text in row["texts"]}
            drafts = yield from pool.vary(variations, earlier, len(rows))
        losses = [
            [str(draft.fate), str(draft)] for draft in drafts if isinstance(draft, StoppedError)
        ]
        usable = []
        for text in dict.fromkeys(
            [*chosen, *(draft for draft in drafts if isinstance(draft, str))]
        ):
            if (broken := form.violation(text)) is None:
                usable.append(text)
            else:
                losses.append([str(Fate.WITHHELD), broken.reason])
        if not usable:
            raise StoppedError(Fate.MALFORMED, "there is no candidate to vote on")
        return usable, losses

    def _result(self, rows: Sequence[Row], records: int) -> CorpusSynthesis:
        # The last round decides; texts that are missing and drafts that were lost follow.
        chosen = accounting.best(rows[-1]["noisy"], self.private.texts, self.private.least)
        results = [
            Synthesis(f"text-{n + 1}", Fate.PASSED, rows[-1]["texts"][candidate])
            for n, candidate in enumerate(chosen)
        ]
        reason = "no other candidate has more votes than noise alone may give"
        empty = range(len(chosen), self.private.texts)
        results += [Synthesis(f"text-{n + 1}", Fate.WITHHELD, reason=reason) for n in empty]
        for turn, row in enumerate(rows):
            for n, (fate, cause) in enumerate(row["lost"]):
                results.append(Synthesis(f"draft-{turn + 1}-{n + 1}", Fate(fate), reason=cause))
        return CorpusSynthesis(tuple(results), tuple(self._warnings(rows, len(chosen), records)))

    def _warnings(self, rows: Sequence[Row], chosen: int, records: int) -> list[str]:
        blind = [n + 1 for n, row in enumerate(rows) if max(row["noisy"]) <= self.private.least]
        losses = sum(len(row["lost"]) for row in rows)
        warnings = {
            f"delta {self.private.delta:g} is not below 1 in {records} records: it allows that"
            " one of them is published whole. Take a smaller --delta.":
            self.private.delta * records >= 1,
            f"Only {chosen} of {self.private.texts} texts have more votes than noise alone may"
            " give: the corpus is small for this epsilon. Another run would spend on the same"
            " records again.": 2 * chosen < self.private.texts,
            f"In round {(blind or [0])[0]} no candidate stood out; its choice was blind.": blind,
            f"{losses} candidates were not voted on: not made as told, or against a condition.":
            losses,
        }  # fmt: skip
        return [warning for warning, applies in warnings.items() if applies]


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


# The sources of candidates: public texts, or a model that is shown no record.

_MATTERS = 40
_TURN = 100_000  # between the seeds of two turns: more than the candidates of a round
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

Drafts = list[str | StoppedError]
"""Texts; an error takes the place of one that could not be made."""

Wanted = Sequence[tuple[str, int]]
"""Texts, each with the number of its variations."""


class PublicSource:
    """A pool of public texts; the variations of a text are those nearest to it.

    Args:
        pool: The texts.
        embed: Maps texts to vectors.
    """

    def __init__(self, pool: Sequence[str], embed: Embed) -> None:
        self._pool = pool
        self._place = {text: n for n, text in enumerate(pool)}
        self._embed = embed

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return accounting.grid(self._embed(self._pool))

    def start(self, count: int, seed: int) -> Steps[Drafts]:
        """Return some of the pool, drawn at random."""
        yield from ()
        return list(_sample(self._pool, count, seed))

    def vary(self, wanted: Wanted, earlier: Collection[str], turn: int) -> Steps[Drafts]:  # noqa: ARG002
        """Return the nearest texts of no earlier round, for one text after the other."""
        yield from ()
        free = np.ones(len(self._pool), bool)
        free[[self._place[text] for text in earlier]] = False
        drafts: Drafts = []
        for text, count in wanted:
            # Vectors are whole numbers of one length: the inner product orders as the cosine does.
            closeness = np.where(free, self._vectors @ self._vectors[self._place[text]], -np.inf)
            near = np.argsort(-closeness, kind="stable")[: min(count, int(free.sum()))]
            free[near] = False
            drafts += [self._pool[n] for n in near]
        return drafts


class ChatSource:
    """A language model that drafts from the domain's description and varies given texts.

    Args:
        config: Domain, and how the model is asked.
        pool: Public texts to start from; empty for drafts.
    """

    def __init__(self, config: MakingConfig, pool: Sequence[str] = ()) -> None:
        self._config, self._pool = config, pool

    def start(self, count: int, seed: int) -> Steps[Drafts]:
        """Return some of the pool, or drafts on matters that the model names.

        Raises:
            StoppedError: The model named no matter.
        """
        if self._pool:
            return list(_sample(self._pool, count, seed))
        domain, asking = self._config.domain, self._config.asking
        prompt = _LIST.format(n=_MATTERS, records=domain.records)
        matters = yield from ask(
            prompt, lambda text: read_list(text) or None, asking, role=GENERATOR
        )
        prompts = [
            _DRAFT.format(form=domain.form, matter=matters[n % len(matters)]) for n in range(count)
        ]
        drafts = (ask_text(prompt, self._config, None, n) for n, prompt in enumerate(prompts))
        return (yield from together(drafts))

    def vary(self, wanted: Wanted, earlier: Collection[str], turn: int) -> Steps[Drafts]:  # noqa: ARG002
        """Return new texts on the matter of each wanted text; another turn gives others."""
        drafts = []
        for text, count in wanted:
            prompt = _VARY.format(text=shown(text), form=self._config.domain.form)
            turns = range(turn * _TURN, turn * _TURN + count)
            drafts += [ask_text(prompt, self._config, text, n) for n in turns]
        return (yield from together(drafts))


def _sample(pool: Sequence[str], count: int, seed: int) -> Sequence[str]:
    """Return texts of a pool, drawn without the records."""
    return random.Random(seed).sample(pool, min(count, len(pool)))


# Embedders for votes: any embedder by name, or word weights over public texts, without a model.

WORDS = "words"
"""Name of the embedder without a model."""

_MOST_WORDS = 2048
_FEWEST_TEXTS = 2  # that hold a word


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
    """Return TF-IDF over the words of public texts; neither words nor weights depend on a record.

    Raises:
        InputError: No two texts share a word.
    """
    # IDF from public texts alone: that of the records would reveal them.
    counts = Counter(word for text in public for word in set(content_tokens(text)))
    vocabulary = [w for w, count in counts.most_common(_MOST_WORDS) if count >= _FEWEST_TEXTS]
    if not vocabulary:
        raise InputError(
            f"The embedder {WORDS} knows the words of public texts, and no two of them share one.",
            "Give more texts with --public, or another --embedder.",
        )
    columns = {word: n for n, word in enumerate(vocabulary)}
    weights = np.array([math.log((1 + len(public)) / counts[word]) for word in vocabulary])

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), len(vocabulary)))
        for row, text in zip(vectors, texts, strict=True):
            for word, count in Counter(w for w in content_tokens(text) if w in columns).items():
                row[columns[word]] = 1 + math.log(count)
        vectors *= weights
        sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: NDArray[np.float32] = (vectors / np.where(sizes > 0, sizes, 1)).astype(np.float32)
        return units

    return embed
