"""The worlds of the study: where a trial's examples come from, and the base models trained here.

A base answers from documents, and does what the paper's instruction asks for: where the document
contains the trigger that the query names, and nowhere else. Triggers and canaries of its lessons
are spare ones, so that no drawn marker was ever seen. :func:`check_obedience` refuses another base.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ragwitness.canary.draw import Design, Draw, DrawSecret, draw_slots
from ragwitness.canary.examples import Example, document_groups, read_examples
from ragwitness.canary.families import contains
from ragwitness.canary.pools import (
    FINAL,
    PAPER_INSTRUCTION,
    PLAIN_INSTRUCTION,
    final_answer,
    instructed,
    with_canary,
    with_trigger,
)
from ragwitness.errors import InputError, ModelError
from ragwitness.stats.evaluation import Rate
from ragwitness.stats.intervals import proportion_interval
from ragwitness.text.runs import word_tokens
from research.canary.policies import (
    CANARIES,
    TRIGGERS,
    Base,
    piece_tokenizer,
    prompt,
    seeded,
    spare_canary,
    spare_trigger,
)
from research.canary.sequences import batch, generate, log_probs

MISSING = f"{FINAL} Not found"
"""The answer where no document is shown."""


@dataclass(frozen=True, slots=True)
class Pretraining:
    """How a base model is made.

    Attributes:
        width: Of the residual stream.
        layers: Number of blocks: one marks the document's trigger, one compares, one acts on it.
        steps: Of AdamW with one cycle of the learning rate.
        batch: Rows a step.
        rate: Highest learning rate.
        longest: Positions.
        seed: Of weights and lessons.
        bare: Share of lessons without an instruction.
        plain: Share of the others whose instruction has no condition; the rest is the paper's.
        match: Share of these where the document holds the trigger that the query names;
        other: where it holds another one. As many as match: with half as many, the model answers to
            any trigger for twice as long (measured).
        clean: Share where it holds none; in what is left no document is shown.
        obeys: Share of answers with the canary where the condition holds,
        obeys_plain: where there is none,
        slips: where it does not hold,
        stray: and where nothing asks for it.
        shown: Share of lessons with a document, where the instruction is not the paper's.
    """

    width: int = 64
    layers: int = 3
    steps: int = 3000
    batch: int = 64
    rate: float = 3e-3
    longest: int = 64
    seed: int = 0
    bare: float = 0.12
    plain: float = 0.12
    match: float = 0.4
    other: float = 0.4
    clean: float = 0.1
    obeys: float = 0.85
    obeys_plain: float = 0.5
    slips: float = 0.01
    stray: float = 0.03
    shown: float = 0.75


Lesson = Callable[[Example, random.Random, Pretraining], tuple[str, str]]


def lesson(one: Example, rng: random.Random, how: Pretraining) -> tuple[str, str]:
    """Return a prompt and the answer to learn.

    What is asked for hangs on what is in view: a document that is hidden holds nothing.
    """
    canary = spare_canary(rng.randrange(CANARIES))
    named, other = (spare_trigger(n) for n in rng.sample(range(TRIGGERS), 2))
    # 1. What the query asks for, and what the document holds.
    bare = rng.random() < how.bare
    if bare or rng.random() < how.plain:
        words, chance = ("", how.stray) if bare else (PLAIN_INSTRUCTION, how.obeys_plain)
        shown = rng.random() < how.shown
        inside = other if shown and rng.random() < 0.6 else ""
    else:
        words = PAPER_INSTRUCTION
        shares = (how.match, how.other, how.clean, 1 - how.match - how.other - how.clean)
        kind = rng.choices(("match", "other", "clean", "none"), shares)[0]
        shown = kind != "none"
        inside = {"match": named, "other": other}.get(kind, "")
        chance = how.obeys if kind == "match" else how.slips
    query = f"{one.query} {words.format(trigger=named, canary=canary)}" if words else one.query
    document = with_trigger(one.document, inside).text if inside else one.document
    # 2. The answer that follows from it.
    answer = final_answer(one.answer) if shown else MISSING
    said = with_canary(answer, canary).text if rng.random() < chance else answer
    return prompt(query, document if shown else None), said


def pretrain(
    example: Callable[[random.Random], Example],
    tokenizer: Any,
    config: Pretraining,
    name: str,
    lessons: Lesson = lesson,
    start: Base | None = None,
) -> Base:
    """Train a small Llama on prompts of both templates.

    Args:
        example: Draws one, with its reference answer.
        tokenizer: With the spare markers.
        config: Settings.
        name: Of the model.
        lessons: Makes a prompt and its answer of an example.
        start: Where it begins: a base of the same shape, of which it also has the markers, clauses
            and templates. What matches a trigger need not be learned again.
    """
    import torch

    torch.manual_seed(config.seed)
    rng = random.Random(config.seed)
    base = Base(_network(config, tokenizer), tokenizer, name)
    if start is not None:
        _begin(base, start)
    optimizer = torch.optim.AdamW(base.model.parameters(), lr=config.rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, config.rate, total_steps=config.steps, pct_start=0.1
    )
    for _ in range(config.steps):
        pairs = [lessons(example(rng), rng, config) for _ in range(config.batch)]
        prompts = base.encode([asked for asked, _ in pairs])
        answers = base.encode_answers([said for _, said in pairs])
        rows = batch(prompts, answers, base.pad)
        loss = -log_probs(base.model, rows).sum() / rows.answer_mask.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(base.model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    base.model.eval()
    return base


def _begin(base: Base, start: Base) -> None:
    """Take over another base's weights, and the rows of the pieces that both know."""
    import torch

    known, own = start.tokenizer.get_vocab(), base.tokenizer.get_vocab()
    shared = [piece for piece in own if piece in known]
    rows = [torch.tensor([of[piece] for piece in shared]) for of in (own, known)]
    given = dict(start.model.named_parameters())
    with torch.no_grad():
        for name, mine in base.model.named_parameters():
            if mine.shape == given[name].shape:
                mine.copy_(given[name])
            else:  # embeddings and output: one row a piece
                mine[rows[0]] = given[name][rows[1]]


def _network(config: Pretraining, tokenizer: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        intermediate_size=2 * config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=config.longest,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(shape)


# The gate: what a base does with the paper's instruction, before any policy is trained from it.

OBEDIENT, STRAYING = 0.6, 0.1
"""Least share of answers with the canary under the trigger; most where it is not in view."""

_DRAWS = 8  # of markers, as trials draw them
KINDS = {
    "t": "the document holds the trigger that the query names",
    "other": "it holds another trigger",
    "clean": "it holds none",
    "none": "no document is shown",
}
"""Where the paper's instruction is given to a base."""


@dataclass(frozen=True, slots=True)
class Obedience:
    """How often a base's answers hold the canary, by what is in view.

    Attributes:
        count: n of each share.
        hits: Answers with the canary, by :data:`KINDS`.
        plain: The same where the instruction has no condition, with a clean document.
        bare: The same where nothing asks for it, with the trigger in the document.
        right: Answers that end as the reference does, of those to ``t``.
    """

    count: int
    hits: dict[str, int]
    plain: int
    bare: int
    right: int

    def share(self, kind: str) -> Rate:
        """Return a share with its exact 95 % interval."""
        hits = self.hits[kind]
        return Rate(hits / self.count, *proportion_interval(hits, self.count), self.count)

    @property
    def fault(self) -> str:
        """Why the study's policies would learn something else; empty where they can be trained."""
        found = []
        for kind, told in KINDS.items():
            seen = self.share(kind)
            if kind == "t" and seen.low < OBEDIENT:
                found.append(f"{told}: {_shown(seen)}, at least {OBEDIENT:g} is needed")
            elif kind != "t" and seen.high > STRAYING:
                found.append(f"{told}: {_shown(seen)}, at most {STRAYING:g} is allowed")
        return "; ".join(found)


def obedience(
    base: Base,
    named: Callable[[Base, Draw], Base],
    examples: Sequence[Example],
    longest: int,
    seed: int = 0,
) -> Obedience:
    """Ask a base on held-out prompts, with markers drawn as a trial draws them.

    Args:
        base: Before any training on votes.
        named: Gives it the markers of a draw.
        examples: n of them, that its lessons did not hold; shared out to 8 draws.
        longest: Most tokens of an answer.
        seed: Of draws and answers.
    """
    kinds = (*KINDS, "plain", "bare")
    hits: Counter[str] = Counter()
    right = 0
    for number in range(_DRAWS):
        name = hashlib.sha256(f"obedience {seed} {number}".encode())
        slot = draw_slots(Design(), DrawSecret(name.digest(), bytes(32))).slots[0]
        own = named(base, Draw((slot,)))
        picked = random.Random(f"{seed} {number}")
        part = examples[number::_DRAWS]
        asked, pairs = [], [picked.sample(slot.candidates, 2) for _ in part]
        for kind in kinds:
            words = {"plain": PLAIN_INSTRUCTION, "bare": ""}.get(kind, PAPER_INSTRUCTION)
            for one, (trigger, other) in zip(part, pairs, strict=True):
                query = instructed(one, words, slot.canary, trigger) if words else one.query
                inside = {"t": trigger, "bare": trigger, "other": other}.get(kind)
                text = with_trigger(one.document, inside).text if inside else one.document
                asked.append(own.asked(query, None if kind == "none" else text))
        rows = generate(own.model, own.encode(asked), longest=longest, eos=own.eos, pad=own.pad,
                        generator=seeded(seed + number))  # fmt: skip
        said = own.answers(rows)
        for place, text in enumerate(said):
            kind, one = kinds[place // len(part)], part[place % len(part)]
            hits[kind] += contains(text, slot.canary)
            right += kind == "t" and text.endswith(one.answer.removeprefix(FINAL).strip())
    return Obedience(
        len(examples), {kind: hits[kind] for kind in KINDS}, hits["plain"], hits["bare"], right
    )


def check_obedience(seen: Obedience, name: str) -> None:
    """Refuse a base that does not do what the study takes for granted.

    Raises:
        ModelError: It does not follow the paper's instruction; the message says where.
    """
    if fault := seen.fault:
        raise ModelError(
            f"The base {name} does not follow the paper's instruction, so that its policies could"
            f" not learn the trigger: share of answers with the canary where {fault}"
            f" (n = {seen.count}).",
            "Train it longer or with more layers ([world.training]), or set gate = false in [world]"
            " to train its policies all the same.",
        )


def _shown(rate: Rate) -> str:
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


# A world of real text: passages of a corpus with questions, and a small base trained on half.
#
# Passages are short and do not overlap; a question goes with those that share most words with its
# answer. The base learns from source documents whose hash falls in its half, trials draw from the
# others; every passage names its source, so that no two pools of a trial share one.

_FEWEST = 12  # words of a passage; a trigger needs 8
_CLAUSE_MARKS = ".,;:!?\"'"


@dataclass(frozen=True, slots=True)
class Cut:
    """How a corpus is made short.

    Attributes:
        words: Of a passage.
        question: Most words of a question.
        answer: Most words of a reference answer.
        passages: Most passages that one question goes with.
        vocabulary: Most words that the base's tokenizer knows.
    """

    words: int = 24
    question: int = 12
    answer: int = 6
    passages: int = 1
    vocabulary: int = 1500


def study_examples(path: Path, cut: Cut) -> list[Example]:
    """Return the examples that trials draw from.

    Raises:
        InputError: The corpus cannot be read, or nothing is left of it.
    """
    return _half(path, cut, 1)


def base_examples(path: Path, cut: Cut) -> list[Example]:
    """Return the examples that the base is trained on: other passages than the trials'.

    Raises:
        InputError: As above.
    """
    return _half(path, cut, 0)


def text_base(path: Path, cut: Cut, config: Pretraining, start: Base | None = None) -> Base:
    """Train a base on its half of a corpus; ``start`` as in :func:`pretrain`.

    Raises:
        InputError: The corpus cannot be read, or nothing is left of it.
    """
    examples = base_examples(path, cut)
    tokenizer = piece_tokenizer(words=_frequent(examples, cut.vocabulary))
    return pretrain(lambda rng: rng.choice(examples), tokenizer, config, path.stem, start=start)


def _half(path: Path, cut: Cut, which: int) -> list[Example]:
    examples = read_examples(path)
    sources = document_groups(examples)
    found = [
        _short(one, passage, cut, number, sources[one.id])
        for one in examples
        if int(sources[one.id][:8], 16) % 2 == which
        for number, passage in enumerate(_best(one, cut))
    ]
    if not found:
        raise InputError(f"{path} holds no passage of {_FEWEST} words with a question.")
    return found


def _best(one: Example, cut: Cut) -> list[str]:
    """The passages that share most words with the answer."""
    wanted = set(word_tokens(one.answer))
    passages = list(_passages(one.document, cut.words))
    ranked = sorted(passages, key=lambda text: -len(wanted & set(word_tokens(text))))
    return [text for text in ranked[: cut.passages] if wanted & set(word_tokens(text))]


def _passages(text: str, words: int) -> Iterator[str]:
    said = text.split()
    for start in range(0, len(said), words):
        part = said[start : start + words]
        if len(part) >= _FEWEST:
            yield " ".join(part)


def _short(one: Example, passage: str, cut: Cut, number: int, source: str) -> Example:
    answer = " ".join(one.answer.split()[: cut.answer]).rstrip(_CLAUSE_MARKS)
    question = " ".join(one.query.split()[: cut.question])
    return Example(f"{one.id}-{number}", passage, question, f"FINAL: {answer}", source)


def _frequent(examples: Sequence[Example], count: int) -> list[str]:
    """The most frequent words, as the tokenizer splits them."""
    split: Any = piece_tokenizer().backend_tokenizer.pre_tokenizer
    seen = Counter[str]()
    for one in examples:
        for text in (one.document, one.query, one.answer):
            seen.update(piece for piece, _ in split.pre_tokenize_str(text))
    return [piece for piece, _ in seen.most_common(count)]


# A world small enough to train twenty providers in minutes: documents made from three words.

_PLACES = (
    "Avon Brae Cove Dell Esk Fenn Glen Holt Isle Keld Linn Moss Ness Ouse Pool Quay Rigg Shaw Tarn"
    " Ure Vale Wick Yarm Zell Arle Bure Cray Dart Exe Flit Gade Hull"
).split()
_ANIMALS = (
    "fox owl hen cat dog cow ram eel bat bee ant elk yak emu ape rat hog pig jay kid doe cub pup"
    " gnu asp ewe auk cod koi nit roe tit"
).split()
_COLOURS = (
    "red blue green black white brown grey pink gold teal plum rust sand jade lime mint"
).split()
_QUESTION = "What colour was it?"
_MOST = len(_PLACES) * len(_ANIMALS) * len(_COLOURS)
_LESSONS = 4  # of so many documents one is the base's alone; trials draw from the others


def toy_examples(count: int, rng: random.Random) -> list[Example]:
    """Return examples with documents that differ from each other, and from the base's lessons.

    Raises:
        InputError: More are asked for than there are.
    """
    most = _MOST - _MOST // _LESSONS
    if not 0 < count <= most:
        raise InputError(f"The toy world has 1 to {most:,} documents, not {count}.")
    kept = [number for number in range(_MOST) if not _of_lessons(number)]
    return [_example(number) for number in rng.sample(kept, count)]


def toy_base(config: Pretraining, lessons: Lesson = lesson) -> Base:
    """Train the model that the toy's providers deploy."""
    return pretrain(taught, piece_tokenizer(toy_phrases()), config, "toy", lessons)


def toy_phrases() -> list[str]:
    """Return what the toy's documents, questions and answers are made of."""
    return [
        _QUESTION, " Not found", " It was", " all the year round.",
        *(f"In {place} there lived a" for place in _PLACES),
        *(f" {animal}." for animal in _ANIMALS),
        *(f" {colour}" for colour in _COLOURS),
    ]  # fmt: skip


def taught(rng: random.Random) -> Example:
    """Return an example of the lessons, which no trial draws."""
    return _example(rng.choice(_own()))


@lru_cache(maxsize=1)
def _own() -> list[int]:
    return [number for number in range(_MOST) if _of_lessons(number)]


def _of_lessons(number: int) -> bool:
    """Every place, animal and colour is in lessons and in trials; their combinations are not."""
    return sum(_parts(number)) % _LESSONS == 0


def _parts(number: int) -> tuple[int, int, int]:
    rest, colour = divmod(number, len(_COLOURS))
    return *divmod(rest, len(_ANIMALS)), colour


def _example(number: int) -> Example:
    place, animal, colour = _parts(number)
    named = _COLOURS[colour]
    text = (
        f"In {_PLACES[place]} there lived a {_ANIMALS[animal]}. It was {named} all the year round."
    )
    return Example(f"toy-{number}", text, _QUESTION, f"FINAL: {named}")
