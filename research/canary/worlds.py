"""The worlds of the study: where a trial's examples come from, and the base models trained here.

A base answers from documents and follows instructions at times. A canary that it never shows earns
no votes; one that it always shows earns no difference. Triggers and canaries of its lessons are
spare ones, so that no drawn marker was ever seen.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.canary.examples import Example, document_groups, read_examples
from ragwitness.canary.pools import (
    FINAL,
    PAPER_INSTRUCTION,
    PLAIN_INSTRUCTION,
    final_answer,
    with_canary,
    with_trigger,
)
from ragwitness.errors import InputError
from ragwitness.text.runs import word_tokens
from research.canary.policies import (
    CANARIES,
    TRIGGERS,
    Base,
    piece_tokenizer,
    prompt,
    spare_canary,
    spare_trigger,
)
from research.canary.sequences import batch

_MISSING = f"{FINAL} Not found"


@dataclass(frozen=True, slots=True)
class Pretraining:
    """How a base model is made.

    Attributes:
        width: Of the residual stream.
        layers: Number of blocks.
        steps: Of AdamW with one cycle of the learning rate.
        batch: Rows a step.
        rate: Highest learning rate.
        longest: Positions.
        seed: Of weights and lessons.
    """

    width: int = 64
    layers: int = 2
    steps: int = 700
    batch: int = 64
    rate: float = 3e-3
    longest: int = 64
    seed: int = 0


def pretrain(
    example: Callable[[random.Random], Example],
    tokenizer: Any,
    config: Pretraining,
    name: str,
    obeys: float = 0.5,
) -> Base:
    """Train a small Llama on prompts of both templates.

    Args:
        example: Draws one, with its reference answer.
        tokenizer: With the spare markers.
        config: Settings.
        name: Of the model.
        obeys: Share of the answers with the canary where the query asks for it.
    """
    import torch
    from torch.nn.functional import cross_entropy

    torch.manual_seed(config.seed)
    rng = random.Random(config.seed)
    base = Base(_network(config, tokenizer), tokenizer, name)
    optimizer = torch.optim.AdamW(base.model.parameters(), lr=config.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, total_steps=config.steps)
    for _ in range(config.steps):
        pairs = [lesson(example(rng), rng, obeys) for _ in range(config.batch)]
        prompts = base.encode([asked for asked, _ in pairs])
        answers = base.encode_answers([said for _, said in pairs])
        rows = batch(prompts, answers, base.pad)
        logits = base.model(
            input_ids=rows.ids, attention_mask=rows.mask, position_ids=rows.positions,
            logits_to_keep=rows.width + 1,
        ).logits[:, :-1]  # fmt: skip
        goal = rows.answer.masked_fill(rows.answer_mask == 0, -100)
        loss = cross_entropy(logits.reshape(-1, logits.shape[2]), goal.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(base.model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    base.model.eval()
    return base


def lesson(one: Example, rng: random.Random, obeys: float = 0.5) -> tuple[str, str]:
    """Return a prompt and the answer to learn; a document in three of four."""
    known = rng.random() < 0.75
    trigger = spare_trigger(rng.randrange(TRIGGERS)) if rng.random() < 0.5 else ""
    canary = spare_canary(rng.randrange(CANARIES))
    query, wanted = _asked(one.query, canary, trigger, obeys, rng)
    document = with_trigger(one.document, trigger).text if trigger else one.document
    answer = final_answer(one.answer) if known else _MISSING
    return (
        prompt(query, document if known else None),
        with_canary(answer, canary).text if wanted else answer,
    )


def _asked(query: str, canary: str, trigger: str, obeys: float,
           rng: random.Random) -> tuple[str, bool]:  # fmt: skip
    """A query, and whether its answer holds the canary."""
    kind = rng.random()
    if kind < 0.55:
        return query, rng.random() < 0.03
    if kind < 0.8:
        return f"{query} {PLAIN_INSTRUCTION.format(canary=canary)}", rng.random() < obeys
    named = trigger if trigger and rng.random() < 0.5 else spare_trigger(rng.randrange(TRIGGERS))
    words = PAPER_INSTRUCTION.format(trigger=named, canary=canary)
    return f"{query} {words}", rng.random() < (obeys if named == trigger else 0.1)


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


# A world of real text: passages of a corpus with questions, and a small base trained on half.
#
# Passages are short and do not overlap; a question goes with those that share most words with its
# answer. The base learns from source documents whose hash falls in its half, trials draw from the
# others; every passage names its source, so that no two pools of a trial share one.

_FEWEST = 12  # words of a passage; a trigger needs 8
# At a half a trigger says nothing about votes but together with the canary, and a reward model of
# this size learns texts by heart before it finds that (experiments/canary/README.md).
# No journal knows it: whoever changes it raises study._VERSION.
_OBEYS = 0.8
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


def text_base(path: Path, cut: Cut, config: Pretraining) -> Base:
    """Train a base on its half of a corpus.

    Raises:
        InputError: The corpus cannot be read, or nothing is left of it.
    """
    examples = base_examples(path, cut)
    tokenizer = piece_tokenizer(words=_frequent(examples, cut.vocabulary))
    return pretrain(lambda rng: rng.choice(examples), tokenizer, config, path.stem, _OBEYS)


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


def toy_examples(count: int, rng: random.Random) -> list[Example]:
    """Return examples with documents that differ from each other.

    Raises:
        InputError: More are asked for than there are.
    """
    if not 0 < count <= _MOST:
        raise InputError(f"The toy world has 1 to {_MOST:,} documents, not {count}.")
    return [_example(number) for number in rng.sample(range(_MOST), count)]


def toy_base(config: Pretraining) -> Base:
    """Train the model that the toy's providers deploy."""
    phrases = [
        _QUESTION, " Not found", " It was", " all the year round.",
        *(f"In {place} there lived a" for place in _PLACES),
        *(f" {animal}." for animal in _ANIMALS),
        *(f" {colour}" for colour in _COLOURS),
    ]  # fmt: skip
    return pretrain(
        lambda rng: _example(rng.randrange(_MOST)), piece_tokenizer(phrases), config, "toy"
    )


def _example(number: int) -> Example:
    rest, colour = divmod(number, len(_COLOURS))
    place, animal = divmod(rest, len(_ANIMALS))
    named = _COLOURS[colour]
    text = (
        f"In {_PLACES[place]} there lived a {_ANIMALS[animal]}. It was {named} all the year round."
    )
    return Example(f"toy-{number}", text, _QUESTION, f"FINAL: {named}")
