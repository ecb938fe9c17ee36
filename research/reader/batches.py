"""Rows of tokens and loss weights.

A row depends on (seed, step, row) alone, so a resumed run continues with exactly the rows it would
have seen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from research.reader import forms as prompts
from research.reader.config import DataConfig, Phase, TrainConfig
from research.reader.corpus import Vocabulary
from research.reader.forms import STYLES, style, to_pieces
from research.reader.grammar.domains import DOMAINS, cluster
from research.reader.lessons import LessonMaker
from research.reader.stories import Lexicon
from research.reader.turns import Rendered, Turn, TurnMaker
from research.reader.wordings import system_prompt

_WORDS_PER_TOKEN = 0.62
_CONTEXT_WEIGHT, _PLAIN_WEIGHT = 0.1, 0.3
_COUNTS_SHORT, _COUNTS_LONG = (
    (0.04, 0.20, 0.30, 0.28, 0.18, 0.0),
    (0.03, 0.08, 0.19, 0.30, 0.30, 0.10),
)


@dataclass(frozen=True)
class Batch:
    """``tokens`` (rows, time), int64, and ``weights`` (rows, time) of predicting each of them."""

    tokens: Tensor
    weights: Tensor


class RowMaker:
    """Draws whole rows: a context of documents, then turns about texts in it or not in it."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        sources: dict[str, list[str]],
        config: DataConfig,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.vocabulary, self.sources, self.config = vocabulary, sources, config
        self.lessons = LessonMaker(self, lexicon or Lexicon())
        self._names = list(sources)
        self._shares = [len(sources[name]) ** 0.5 for name in self._names]

    def row(
        self, rng: random.Random, length: int, focus: float = 1.0, absent: float = 1.0
    ) -> Rendered:
        """One row of at most ``length`` tokens; ``focus`` and ``absent`` as in ``Phase``."""
        if rng.random() < self.config.plain_share:
            made = self._plain(rng, length)
        else:
            made = self._conversation(rng, length, focus, absent)
        return Rendered(made.tokens[:length], made.weights[:length])

    def documents(self, rng: random.Random, count: int, words: int) -> list[list[str]]:
        """``count`` documents as pieces: near-duplicates or neighbours, in one style."""
        if rng.random() < self.config.real_share:
            raw = self._real(rng, count, words)
        elif rng.random() < 0.75:
            raw = cluster(rng.choice(list(DOMAINS)), rng, count, words)
        else:
            raw = [cluster(rng.choice(list(DOMAINS)), rng, 1, words)[0] for _ in range(count)]
        noisy = rng.random() < self.config.noise_share
        name = rng.choice(STYLES[1:]) if noisy else "clean"
        keep_breaks = name == "broken" or rng.random() < 0.15
        made = []
        for document in raw:
            # One generator state per cluster would give siblings equal typos: too easy a tell.
            pieces = to_pieces(style(document, name, rng), keep_breaks)
            made.append(
                pieces if len(pieces) >= 16 else pieces + to_pieces(self._stretch(rng, 24), False)
            )
        return made

    def _stretch(self, rng: random.Random, words: int) -> list[str]:
        source = self.sources[rng.choices(self._names, self._shares)[0]]
        start = rng.randrange(max(1, len(source) - words))
        return source[start : start + words]

    def _real(self, rng: random.Random, count: int, words: int) -> list[list[str]]:
        """Neighbouring stretches of one source (alike in topic), or stretches from anywhere."""
        sizes = [max(20, int(words * rng.uniform(0.6, 1.4))) for _ in range(count)]
        if rng.random() < 0.5:
            return [
                self._sentence_start(self._stretch(rng, size + 20), size, rng) for size in sizes
            ]
        run = self._stretch(rng, sum(sizes) + 20)
        result, at = [], 0
        for size in sizes:
            result.append(run[at : at + size])
            at += size
        rng.shuffle(result)
        return [document if len(document) >= 16 else self._stretch(rng, 40) for document in result]

    @staticmethod
    def _sentence_start(words: list[str], size: int, rng: random.Random) -> list[str]:
        """Mostly begin where a sentence begins, as documents do."""
        starts = [index + 1 for index, word in enumerate(words[:20]) if word[-1:] in ".?!"]
        start = starts[0] if starts and rng.random() < 0.7 else 0
        return words[start : start + size]

    def _plain(self, rng: random.Random, length: int) -> Rendered:
        """Text without a conversation: what the no-context score of a word is read from."""
        made = Rendered([self.vocabulary.end], [0.0])
        while len(made.tokens) < length:
            pieces = self.documents(rng, 1, rng.randint(25, 250))[0]
            made.add(self.vocabulary.pieces(pieces), _PLAIN_WEIGHT)
            made.add([self.vocabulary.end], _PLAIN_WEIGHT)
        return made

    def _conversation(
        self, rng: random.Random, length: int, focus: float, absent: float
    ) -> Rendered:
        counts = _COUNTS_LONG if length >= 1024 else _COUNTS_SHORT
        count = rng.choices(range(6), counts)[0]
        # Long rows are for long contexts; short ones leave room for more questions.
        share = rng.uniform(0.35, 0.7) if length >= 1024 else rng.uniform(0.25, 0.55)
        words = int(min(250, max(25, length * _WORDS_PER_TOKEN * share / max(1, count))))
        if rng.random() < 0.25:
            words = rng.randint(25, words)
        everything = self.documents(rng, count + 3, words)
        inside, outside = everything[:count], everything[count:]
        defended = rng.random() < self.config.defended_share
        in_user = count > 0 and rng.random() < 0.2
        made = self.opening(rng, inside, defended, in_user)
        maker, context = (
            TurnMaker(self.vocabulary, rng, self.config, focus, absent),
            self._joined(rng, inside) if in_user else None,
        )
        tasks = self.config.tasks
        for _ in range(12):
            present = bool(inside) and rng.random() < self.config.present_share
            if len(made.tokens) > length - 40 or not (present or outside):
                break
            target = rng.choice(inside) if present else outside.pop()
            if rng.random() < 0.3:
                target = [" " + piece.strip() for piece in target]
            task = rng.choices(list(tasks), list(tasks.values()))[0]
            turn = maker.make(task, Turn(target, inside, present, defended, context))
            if len(made.tokens) + len(turn.tokens) > length and task in ("yes_no", "repeat"):
                continue
            made.extend(turn)
            context = None
        return made

    def opening(
        self, rng: random.Random, inside: list[list[str]], defended: bool, in_user: bool
    ) -> Rendered:
        """The system turn, with the documents unless they belong inside the user's text."""
        made = Rendered([self.vocabulary.system], [0.0])
        text = rng.choice(prompts.DEFENDED if defended else prompts.SYSTEM)
        if self.config.composed and not defended and rng.random() < self.config.composed:
            text = system_prompt(rng, "plain")
        if in_user:
            text = rng.choice(
                ["", "You are a helpful assistant.", text.partition("\n[context]:\n")[0]]
            )
        made.add(self.vocabulary.encode(text) if text else [], 0.0)
        if not in_user:
            spaced = rng.random() < 0.5
            for index, document in enumerate(inside):
                made.add(self.document(document, index, spaced), _CONTEXT_WEIGHT)
        return made

    def document(self, pieces: list[str], index: int, spaced: bool) -> list[int]:
        """A document after its separator; clients join either raw texts or texts with a space."""
        separator = "\n\n" if index else ""
        if not spaced:
            return self.vocabulary.pieces([separator + pieces[0].strip(), *pieces[1:]])
        return [
            *(self.vocabulary.encode(separator) if separator else ()),
            *self.vocabulary.pieces(pieces),
        ]

    @staticmethod
    def _joined(rng: random.Random, inside: list[list[str]]) -> str:
        texts = ["".join(pieces) for pieces in inside]
        return "\n\n".join(texts if rng.random() < 0.4 else [text.strip() for text in texts])


def phase_at(config: TrainConfig, step: int) -> Phase:
    """The phase that ``step`` belongs to."""
    schedule = config.schedule
    share = (step - schedule.begin) / (schedule.steps - schedule.begin)
    return next(
        (phase for phase in config.schedule.phases if share < phase.until),
        config.schedule.phases[-1],
    )


def batch_at(
    maker: RowMaker, config: TrainConfig, step: int, rank: int = 0, ranks: int = 1
) -> Batch:
    """The rows of ``step`` that fall to process ``rank`` of ``ranks``, whatever ran before."""
    phase = phase_at(config, step)
    length = phase.row_tokens
    # An even number of rows, so that two processes share them evenly.
    rows = range(rank, 2 * max(1, -(-config.schedule.step_tokens // (2 * length))), ranks)
    tokens = torch.zeros(len(rows), length, dtype=torch.long)
    weights = torch.zeros(len(rows), length)
    for place, index in enumerate(rows):
        made = _row_at(maker, config, step, index, phase)
        tokens[place, : len(made.tokens)] = torch.tensor(made.tokens)
        weights[place, : len(made.weights)] = torch.tensor(made.weights)
    return Batch(tokens, weights)


def _row_at(maker: RowMaker, config: TrainConfig, step: int, index: int, phase: Phase) -> Rendered:
    """One row; rows 2n and 2n + 1 are of one kind, and twins where that is "pair"."""
    rng = random.Random(f"{config.seed}/{step}/{index}")
    length, focus, absent = phase.row_tokens, phase.focus, phase.absent
    shared = random.Random(f"{config.seed}/{step}/pair/{index // 2}")
    kind = shared.choices(list(config.data.rows), list(config.data.rows.values()))[0]
    if kind == "pair":
        return maker.lessons.pair(shared, index % 2 == 0, length, focus, absent)
    if kind == "drill":
        return maker.lessons.drill(rng, length, focus)
    if kind == "ask":
        return maker.lessons.ask(rng, length, focus, absent)
    if kind == "role":
        return maker.lessons.role(rng, length)
    return maker.row(rng, length, focus, absent)
