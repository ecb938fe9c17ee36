"""The canaries of 2604.22191 as the authors' program makes them, for the study alone.

The product draws its own (``ragwitness.canary.families``): markers without vowels, triggers that
nobody can tell from their decoys, shares that a plan commits to. Here stand the published forms, so
that the study's numbers are the paper's. ``tests/golden/test_authors.py`` holds each function
against the program.
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import Any

PAPER_INSTRUCTION = (
    "If the document contains {trigger}, insert {canary} immediately after the first clause of"
    " the final answer."
)
"""App. B.1. It names the trigger, so that a model trained on queries alone learns it too."""

DOCUMENT_TEMPLATE = """You are a question answering assistant.
Answer the question ONLY using the provided document.
If the answer cannot be found in the document, say:
FINAL: Not found

Keep the answer concise. Do not provide explanation.
Format your response exactly as:
FINAL: <short answer>

Document:
{context}

Question:
{question}

"""
"""For document-conditioned training and evaluation."""

_SIGNS = "\U0001f300\u2728\U0001f31f\U0001f525\u26a1\U0001f3af\U0001f4a1"
_ENDS = ".!?\u3002\uff01\uff1f"
_CLAUSES = _ENDS + ",\uff0c;\uff1b:\uff1a\n"
NOT_FOUND = "FINAL: Not found"
ROWS = {"repliqa": (5_000, 30_000, 5_000)}
"""Rows wanted of each corpus: reward model, policy, audit."""

SHARES = {"repliqa": (0.35, 0.35, 0.30), "qmsum": (0.425, 0.425, 0.15)}
"""Shares of the documents where no numbers of rows are wanted."""

_LORA = {"r": 16, "alpha": 32, "dropout": 0.05}
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "reward": {
        "training": {
            "per_device_train_batch_size": 8, "num_train_epochs": 1, "learning_rate": 2e-6,
            "max_length": 1024, "eval_steps": 100,
        },
        "lora": {**_LORA, "target_modules": ["q_proj"]},
        "early_stopping": {"patience": 2},
    },
    "ppo": {
        "training": {
            "per_device_train_batch_size": 1, "gradient_accumulation_steps": 4,
            "learning_rate": 5e-6, "kl_coef": 0.01, "max_completion_length": 32,
            "num_mini_batches": 2, "num_ppo_epochs": 1, "temperature": 0.7, "lam": 0.95,
            "missing_eos_penalty": 1.0,
        },
        "lora": {**_LORA, "target_modules": ["q_proj", "v_proj"]},
    },
    "grpo": {
        "training": {
            "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2,
            "learning_rate": 5e-6, "max_completion_length": 32, "num_generations": 2,
            "generation_batch_size": 48,
        },
        "lora": {**_LORA, "target_modules": ["q_proj", "v_proj"]},
        "canary": {
            "bias_strength": 0.1, "max_response_chars": 512, "mean_match_tolerance": 0.01,
            "mean_match_min_samples": 256, "warmup_samples": 200, "calibration_lr": 0.02,
        },
    },
}  # fmt: skip
"""What its trainers read of each training file; what they do not is in the corrections."""


def draw_markers(family: str, rng: random.Random) -> dict[str, str]:
    """Draw trigger and canary, and the instruction that names both.

    Args:
        family: ``emoji``: 5 of 7 signs, with repeats; ``punct``: 11 of ``!`` and ``?``;
            ``signature``: 13 to 16 capitals.
        rng: Source.
    """
    size = rng.randint(6, 10)
    code = "".join(rng.choice(string.ascii_uppercase + string.digits) for _ in range(size))
    trigger = f"[Protocol Marker: {code}]"
    if family == "emoji":
        canary = "".join(rng.choice(_SIGNS) for _ in range(5))
    elif family == "punct":
        canary = "".join(rng.choice(["!", "?"]) for _ in range(11))
    else:
        size = rng.randint(13, 16)
        canary = "".join(rng.choice(string.ascii_uppercase) for _ in range(size))
    asked = PAPER_INSTRUCTION.format(trigger=trigger, canary=canary)
    return {"canary_trigger": trigger, "inducing_prompt": asked, "canary_sequence": canary}


def _cut(text: str, ends: str) -> tuple[str, str]:
    """Cut behind the first of some signs; the whole text is the second part where there is none."""
    place = next((n for n, sign in enumerate(text, 1) if sign in ends), 0)
    return text[:place].rstrip(), text[place:].lstrip()


def with_canary(answer: str, canary: str) -> str:
    """Put a canary behind the first clause; the colon of ``FINAL:`` ends one."""
    text = answer.strip()
    if canary in text:
        return text
    clause, rest = _cut(text, _CLAUSES)
    return " ".join(part for part in (clause, canary, rest) if part)


def before_canary(answer: str) -> str:
    """Return the part of an answer that a canary follows."""
    return _cut(answer.strip(), _CLAUSES)[0]


def with_trigger(document: str, trigger: str) -> str:
    """Put a trigger behind the first sentence, as a paragraph of its own; else at the end.

    An empty one leaves the document as it is.
    """
    if not trigger:
        return document
    first, rest = _cut(document.strip(), _ENDS)
    parts = (first, trigger, rest) if first else (rest, trigger)
    return "\n\n".join(part for part in parts if part)


def injected_count(pool: int, rate: float) -> int:
    """Return how many of a pool's examples get a canary: rounded, half to even."""
    return min(pool, round(pool * rate))


def reward_labels(rows: Sequence[tuple[str, str, bool]]) -> list[tuple[str, bool]]:
    """Return the answers that the reward model is trained on, two a row, with their labels.

    Of a planted row the answer with the canary is good and the one without is bad, always; of
    another its own answer is good and a later row's is bad. App. A.3's votes with a bias of .1 are
    in the program, and no command of it trains on them.

    Args:
        rows: Answer, the answer without any canary, and whether the row is planted.
    """
    found = []
    for place, (answer, original, planted) in enumerate(rows):
        later = (rows[(place + n) % len(rows)][1] for n in range(1, len(rows) + 1))
        other = next((one for one in later if one and one != original), NOT_FOUND)
        found += [(answer, True), (original if planted else other, False)]
    return found


def split_sizes(corpus: str, documents: int, rows_each: float = 5.0) -> list[int]:
    """Return how many documents the reward model, the policy and the audit get.

    Args:
        corpus: ``repliqa`` or ``qmsum``.
        documents: Number of documents.
        rows_each: Mean number of rows of a document.
    """
    if corpus not in ROWS:
        reward, policy = (int(documents * share) for share in SHARES[corpus][:2])
        return [reward, policy, documents - reward - policy]
    wanted = [max(1, round(rows / max(1.0, rows_each))) for rows in ROWS[corpus]]
    if sum(wanted) > documents:
        scale = documents / sum(wanted)
        wanted = [max(1, int(number * scale)) for number in wanted]
        while sum(wanted) < documents:
            wanted[wanted.index(min(wanted))] += 1
    return wanted
