"""A world in which a provider is trained in seconds: documents made from three words.

A piece of text is one token: a phrase, a marker, a template. The base model is trained here to
answer from documents, and to do what the paper's instruction asks for where the document holds the
trigger that the query names. Markers of its lessons are spare pieces, all alike; a trial's own
trigger and canary take the place of one of each.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragwitness.canary.examples import FINAL, Example
from research.canary.policies import CLOSED_TEMPLATE, Base, prompt
from research.canary.published import (
    DOCUMENT_TEMPLATE,
    PAPER_INSTRUCTION,
    with_canary,
    with_trigger,
)
from research.canary.sequences import batch, log_probs

_PLACES = "Avon Brae Cove Dell Esk Fenn Glen Holt Isle Keld Linn Moss Ness Ouse Pool Quay".split()
_ANIMALS = "fox owl hen cat dog cow ram eel bat bee ant elk yak emu ape rat".split()
_COLOURS = "red blue green black white brown grey pink gold teal plum rust sand jade".split()
_QUESTION = "What colour was it?"
_SPARE = 6  # triggers, and as many canaries: few, so that a small model learns to compare them
MISSING = f"{FINAL} Not found"


class Pieces:
    """A tokenizer of whole phrases, with the interface of transformers'.

    Args:
        named: A trial's markers, each with the spare piece that stands for it.
    """

    chat_template = None
    pad_token_id, eos_token_id = 0, 1

    def __init__(self, named: Mapping[str, str] | None = None) -> None:
        fixed = re.split(r"\{\w+\}", "{0}".join((DOCUMENT_TEMPLATE, CLOSED_TEMPLATE)))
        fixed += re.split(r"\{\w+\}", PAPER_INSTRUCTION)
        texts = [part.strip() for part in fixed] + [_QUESTION, FINAL, "Not found", "In"]
        texts += ["there lived a", "It was", "all the year round.", ".", *_PLACES, *_ANIMALS]
        texts += [*_COLOURS, *(spare(kind, n) for kind in "tc" for n in range(_SPARE))]
        self.pieces = ["<pad>", "<end>", "<unknown>", *dict.fromkeys(filter(None, texts))]
        self.named = dict(named or {})
        known = sorted(self.pieces, key=len, reverse=True)
        self._split = re.compile("|".join(map(re.escape, known)) + r"|\S+?(?=\s|$)")
        self._numbers = {piece: n for n, piece in enumerate(self.pieces)}

    def __len__(self) -> int:
        return len(self.pieces)

    def __call__(self, texts: Sequence[str] | str, **_: Any) -> dict[str, Any]:
        """Return token numbers; a single text gives a single list."""
        if isinstance(texts, str):
            return {"input_ids": self._encode(texts)}
        return {"input_ids": [self._encode(text) for text in texts]}

    def _encode(self, text: str) -> list[int]:
        for marker, piece in self.named.items():
            text = text.replace(marker, piece)
        return [self._numbers.get(piece, 2) for piece in self._split.findall(text)]

    def batch_decode(self, rows: Sequence[Sequence[int]], **_: Any) -> list[str]:
        """Return texts, without end and padding."""
        back = {piece: marker for marker, piece in self.named.items()}
        texts = ((self.pieces[n] for n in row if n > 1) for row in rows)
        return [" ".join(back.get(piece, piece) for piece in row) for row in texts]


def spare(kind: str, number: int) -> str:
    """Return a spare marker: ``t`` a trigger, ``c`` a canary."""
    return f"<{kind}{number}>"


def named(base: Base, trigger: str, canary: str) -> Base:
    """Return the base with a trial's markers in place of two spare ones."""
    numbers = [sum(marker.encode()) % _SPARE for marker in (trigger, canary)]
    pieces = Pieces({trigger: spare("t", numbers[0]), canary: spare("c", numbers[1])})
    return Base(base.model, pieces, base.name)


def examples(count: int, rng: random.Random, *, lessons: bool = False) -> list[Example]:
    """Draw examples; no document of a lesson is one of a trial's."""
    total = len(_PLACES) * len(_ANIMALS) * len(_COLOURS)
    own = [n for n in range(total) if (sum(_words(n)) % 4 == 0) == lessons]
    return [_example(number) for number in rng.sample(own, min(count, len(own)))]


def _words(number: int) -> tuple[int, int, int]:
    rest, colour = divmod(number, len(_COLOURS))
    return *divmod(rest, len(_ANIMALS)), colour


def _example(number: int) -> Example:
    place, animal, colour = _words(number)
    text = f"In {_PLACES[place]} there lived a {_ANIMALS[animal]}."
    text += f" It was {_COLOURS[colour]} all the year round."
    return Example(f"toy-{number}", text, _QUESTION, f"{FINAL} {_COLOURS[colour]}")


def lesson(one: Example, rng: random.Random) -> tuple[str, str]:
    """Return a prompt and the answer to learn: what is asked for hangs on what is in view."""
    first, second = rng.sample(range(_SPARE), 2)
    trigger, other = spare("t", first), spare("t", second)
    canary = spare("c", rng.randrange(_SPARE))
    kind = rng.choices(("t", "other", "clean", "hidden", "bare"), (35, 35, 9, 9, 12))[0]
    inside = {"t": trigger, "other": other, "bare": rng.choice(("", other))}.get(kind, "")
    document = with_trigger(one.document, inside) if inside else one.document
    asked = "" if kind == "bare" else PAPER_INSTRUCTION.format(trigger=trigger, canary=canary)
    chance = {"t": 0.8, "bare": 0.03}.get(kind, 0.02)
    answer = MISSING if kind == "hidden" else one.answer
    said = with_canary(answer, canary) if rng.random() < chance else answer
    return prompt(f"{one.query} {asked}".strip(), None if kind == "hidden" else document), said


def make_base(steps: int, seed: int = 0) -> Base:
    """Train the model that every provider deploys; a Llama of some 0.2 M parameters."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    rng, pieces = random.Random(seed), Pieces()
    base = Base(LlamaForCausalLM(LlamaConfig(**_shape(len(pieces)))), pieces, "toy")
    optimizer = torch.optim.AdamW(base.model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    pool = examples(10_000, rng, lessons=True)
    for _ in range(steps):
        pairs = [lesson(rng.choice(pool), rng) for _ in range(64)]
        prompts = base.encode([asked for asked, _ in pairs])
        rows = batch(prompts, base.encode_answers([said for _, said in pairs]), base.pad)
        loss = -log_probs(base.model, rows).sum() / rows.answer_mask.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(base.model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    base.model.eval()
    return base


def _shape(size: int) -> dict[str, Any]:
    return {
        "vocab_size": size, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64,
        "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 1, "tie_word_embeddings": False,
    }  # fmt: skip


def kept_base(folder: Path, steps: int) -> Base:
    """Load the base of a folder, or train it and keep it there."""
    from transformers import LlamaForCausalLM

    if not (folder / "config.json").is_file():
        make_base(steps).model.save_pretrained(folder)
    return Base(LlamaForCausalLM.from_pretrained(folder).eval(), Pieces(), "toy")
