"""Private evolution of text: candidates, noisy votes of the records, variations of the chosen.

After Lin et al. 2024 (arXiv 2305.15560, Algorithms 1 and 2) and Xie et al. 2024 (Aug-PE, arXiv
2403.01749, Algorithm 1). No record is ever shown to the model, and nothing of a record reaches a
text but through the noisy votes. The published code draws noise in floating point, writes the
counts without noise beside those with it, and takes the number of texts per label from the records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.defenses.synthetic.asking import StoppedError
from ragwitness.defenses.synthetic.base import CorpusSynthesis, Fate, Keeper, Steps, Synthesis
from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.defenses.synthetic.guard import Guard, GuardConfig
from ragwitness.defenses.synthetic.private.choosing import best, shares
from ragwitness.defenses.synthetic.private.config import PrivateConfig
from ragwitness.defenses.synthetic.private.embedding import WORDS
from ragwitness.defenses.synthetic.private.sources import ChatSource, PublicSource, Source, Wanted
from ragwitness.defenses.synthetic.private.votes import (
    Draw,
    Embed,
    grid,
    nearest,
    system_noise,
    vectors_of,
    with_noise,
)
from ragwitness.errors import InputError
from ragwitness.types import Document

__all__ = ["Candidates", "PrivateEvolution"]

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
        candidates: Where texts come from.
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
        self, documents: Sequence[Document], guard: Guard, keeper: Keeper
    ) -> Steps[CorpusSynthesis]:
        """Return the texts that the records voted for; noisy votes are kept and never redrawn.

        Raises:
            StoppedError: There was nothing to vote on.
            InputError: The keeper holds votes for other settings or another corpus.
        """
        key = self._key(documents)
        if any(not known.startswith(key) for known in keeper.keys()):  # noqa: SIM118
            raise InputError(
                "This run folder has noisy votes of another corpus or of other settings; two"
                " choices from the same records cost more than one epsilon.",
                "Choose another folder with --run; both epsilons add up.",
            )
        voting = _Voting(self, documents, Guard((), (), _by_form(guard)))
        rows: list[Row] = []
        for turn in range(self.private.rounds):
            row = keeper.get(f"{key} {turn}")
            if row is None:
                row = yield from voting.round(rows)
                keeper.put(f"{key} {turn}", row)
            rows.append(row)
        return self._result(rows, len(documents))

    def _key(self, documents: Sequence[Document]) -> str:
        """Return a content address of all that the votes follow from; as private as the corpus."""
        made_of = [
            [document.text for document in documents],
            self.candidates.public,
            self.candidates.embedder,
            self.candidates.model,
            repr(self.config),
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
                " give: the corpus is small for this epsilon. Take a larger --epsilon, fewer"
                " --texts or fewer --rounds."
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
        self, method: PrivateEvolution, documents: Sequence[Document], form: Guard
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
        texts, lost = yield from self._candidates(self._source, rows)
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
        given = shares(row["noisy"], private.candidates, private.least)
        order = np.argsort(-given, kind="stable")
        return [(row["texts"][n], int(given[n]) - 1) for n in order if given[n]]


def _by_form(guard: Guard) -> GuardConfig:
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
