"""The base models trained here: they answer from documents, and follow instructions at times.

A canary that the base never shows earns no votes; one that it always shows earns no difference.
Triggers and canaries of the lessons are spare ones, so that no drawn marker was ever seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ragwitness.canary.design.placement import (
    FINAL,
    PAPER_INSTRUCTION,
    PLAIN_INSTRUCTION,
    final_answer,
    with_canary,
    with_trigger,
)
from ragwitness.canary.examples import Example
from ragwitness.canary.simulate.pieces import CANARIES, TRIGGERS, spare_canary, spare_trigger
from ragwitness.canary.simulate.policies import Base
from ragwitness.canary.simulate.sequences import batch
from ragwitness.canary.simulate.templates import prompt

__all__ = ["Pretraining", "lesson", "pretrain"]

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
