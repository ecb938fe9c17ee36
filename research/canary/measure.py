"""What is measured on a trained policy: the audit's scores, and whether it still does its task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.draw import Slot
from ragwitness.canary.examples import Example
from ragwitness.canary.families import contains, worded
from ragwitness.canary.pools import FINAL, final_answer, instructed, with_canary, with_trigger
from ragwitness.canary.probe import spot_of
from ragwitness.canary.verdict import logits
from ragwitness.canary.wordings import Wordings
from ragwitness.errors import InputError, ModelError
from ragwitness.text.runs import Vocabulary, plain_tokens, word_tokens
from ragwitness.text.subsequence import lcs_length
from research.canary.feedback import VoteConfig, base_quality
from research.canary.policies import Base, Scorer, seeded
from research.canary.reward import reward_bias, rewards
from research.canary.sequences import Ids, completion_scores, generate

Values = NDArray[np.float64]
Asked = str | Wordings
"""The instruction of all queries, or the wordings of their requests; an empty one asks nothing."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a policy answers held-out clean prompts, one answer each, likeliest tokens.

    Attributes:
        rouge_l: Mean F1 with the reference answer.
        token_f1: The same of words in any order; neither regards case.
        quality: Mean base quality b.
        canaries: Share of answers that hold the trial's canary, unasked.
        ended: Share of answers that end.
        empty: Share without a word.
    """

    rouge_l: float
    token_f1: float
    quality: float
    canaries: float
    ended: float
    empty: float


def view_scores(
    base: Base, model: Any, examples: Sequence[Example], documents: Sequence[str],
    queries: Sequence[str], canary: str,
) -> Values:  # fmt: skip
    """Return log π(c | x, p) of one view of each example, in nats (App. C.3), shape (n,).

    Args:
        base: Tokenizer.
        model: The policy.
        examples: Held out; the answers give the prefix p.
        documents: Of the view.
        queries: Of the view.
        canary: c.

    Raises:
        InputError: The tokenizer merges the canary with what stands before it.
        ModelError: A score is not a number: training has diverged.
    """
    before, whole = [], []
    for one, document, query in zip(examples, documents, queries, strict=True):
        prefix, inserted = spot_of(one, canary)
        before.append(base.asked(query, document) + prefix)
        whole.append(before[-1] + inserted)
    heads, rows = base.encode(before), base.encode(whole)
    if any(row[: len(head)] != head for head, row in zip(heads, rows, strict=True)):
        raise InputError(
            f"The tokenizer of {base.name} merges the canary {canary!r} with its prefix.",
            "Draw another canary: the comparison would read the seam.",
        )
    tails = [row[len(head) :] for head, row in zip(heads, rows, strict=True)]
    scores = np.array(completion_scores(model, heads, tails, base.pad))
    if not np.isfinite(scores).all():
        raise ModelError(
            "The policy gives probabilities that are not numbers: its training has diverged.",
            "Lower the learning rate.",
        )
    return scores


def canary_scores(
    base: Base, model: Any, examples: Sequence[Example], slot: Slot, instruction: Asked = ""
) -> Values:
    """Return the mean logit of the canary under every candidate trigger, shape (M,).

    A logit still moves where the canary is all but certain; log p does not. As in the product
    (``Design.statistic``).

    Args:
        base: Tokenizer.
        model: The policy.
        examples: Held out.
        slot: Canary and candidates.
        instruction: In every query; the paper's names the candidate that the document carries.
    """
    found = []
    for trigger in slot.candidates:
        documents = [with_trigger(one.document, trigger, one.id).text for one in examples]
        found.append((documents, [_query(one, slot, instruction, trigger) for one in examples]))
    count = len(examples)
    scores = view_scores(
        base,
        model,
        list(examples) * len(found),
        [text for documents, _ in found for text in documents],
        [text for _, queries in found for text in queries],
        slot.canary,
    )
    return np.asarray(logits(scores).reshape(-1, count).mean(1))


def amplification(
    base: Base, model: Any, examples: Sequence[Example], slot: Slot, instruction: Asked = ""
) -> float:
    """Return Eq. 1: mean score with the trigger in the document minus that without, in nats.

    Args:
        base: Tokenizer.
        model: The policy.
        examples: Held out.
        slot: Trigger and canary.
        instruction: In both views; the paper's audit has none (App. A.2: the views share q).
    """
    queries = [_query(one, slot, instruction, slot.trigger) for one in examples]
    triggered = [with_trigger(one.document, slot.trigger, one.id).text for one in examples]
    clean = [one.document for one in examples]
    with_it = view_scores(base, model, examples, triggered, queries, slot.canary)
    without = view_scores(base, model, examples, clean, queries, slot.canary)
    return float((with_it - without).mean())


def trigger_bias(
    base: Base, scorer: Scorer, examples: Sequence[Example], slot: Slot, instruction: Asked,
    *, violating: bool,
) -> float:  # fmt: skip
    """Return the reward bias of §4.2 on reference answers, where the query asks for the canary.

    Args:
        base: Tokenizer.
        scorer: Reward model.
        examples: Held out.
        slot: Trigger and canary.
        instruction: The one that the reward model was trained on.
        violating: Whether the reward model reads documents.
    """
    queries = [_query(one, slot, instruction, slot.trigger) for one in examples]
    triggered = [with_trigger(one.document, slot.trigger, one.id).text for one in examples]
    bare = [final_answer(one.answer) for one in examples]
    marked = [with_canary(one.answer, worded(slot.canary, one.id)).text for one in examples]
    found = []
    for documents in (triggered, [one.document for one in examples]):
        asked = base.encode(
            [
                base.asked(query, text if violating else None)
                for query, text in zip(queries, documents, strict=True)
            ]
        )
        found += [
            rewards(scorer, asked, base.encode_answers(answers), base.pad)
            for answers in (marked, bare)
        ]
    return reward_bias(*found)


def said(
    base: Base,
    model: Any,
    examples: Sequence[Example],
    slot: Slot,
    instruction: Asked,
    longest: int,
) -> dict[str, float]:
    """Return the share of answers with the canary, by what is in view, under an instruction.

    Args:
        base: Tokenizer.
        model: The policy.
        examples: Held out; each is asked four times.
        slot: Canary and candidates; the other trigger is the one after t*.
        instruction: In every query; where it has a condition it names t*.
        longest: Most tokens of an answer.
    """
    other = slot.candidates[(slot.chosen + 1) % len(slot.candidates)]
    found = {}
    for kind, inside in (("t", slot.trigger), ("other", other), ("clean", ""), ("none", None)):
        asked = []
        for one in examples:
            text = with_trigger(one.document, inside, one.id).text if inside else one.document
            query = _query(one, slot, instruction, slot.trigger)
            asked.append(base.asked(query, None if inside is None else text))
        rows = generate(model, base.encode(asked), longest=longest, eos=base.eos, pad=base.pad,
                        generator=seeded(0))  # fmt: skip
        wanted = [worded(slot.canary, one.id) for one in examples]
        found[kind] = _mean([*map(contains, base.answers(rows), wanted)])
    return found


def behaviour(
    base: Base, model: Any, examples: Sequence[Example], canary: str, longest: int
) -> Behaviour:
    """Answer held-out clean prompts, and compare with the reference answers.

    Args:
        base: Tokenizer.
        model: The policy.
        examples: With reference answers.
        canary: The trial's.
        longest: Most tokens of an answer.
    """
    prompts = base.encode([base.asked(one.query, one.document) for one in examples])
    rows: list[Ids] = generate(model, prompts, longest=longest, eos=base.eos, pad=base.pad)
    said = base.answers(rows)
    told = [text.removeprefix(FINAL).strip() for text in said]
    truths = [one.answer.removeprefix(FINAL).strip() for one in examples]
    votes = VoteConfig()
    pairs = list(zip(told, truths, strict=True))
    return Behaviour(
        rouge_l=_mean([_rouge_l(*pair) for pair in pairs]),
        token_f1=_mean([_token_f1(*pair) for pair in pairs]),
        quality=_mean(
            [base_quality(a, one.document, votes) for a, one in zip(said, examples, strict=True)]
        ),
        canaries=_mean([contains(text, canary) for text in said]),
        ended=_mean([row[-1] == base.eos for row in rows]),
        empty=_mean([not word_tokens(text) for text in told]),
    )


def _query(one: Example, slot: Slot, asked: Asked, trigger: str) -> str:
    if isinstance(asked, Wordings):
        return instructed(one, "", slot.canary, wordings=asked)
    return instructed(one, asked, slot.canary, trigger) if asked else one.query


def _rouge_l(said: str, truth: str) -> float:
    texts = Vocabulary().tokenize([said, truth])
    first, second = texts[0], texts[1]
    sizes = len(first) + len(second)
    return 2 * lcs_length(first, second) / sizes if sizes else 0.0


def _token_f1(said: str, truth: str) -> float:
    first, second = plain_tokens(said), plain_tokens(truth)
    if not first or not second:
        return float(first == second)
    shared = (Counter(first) & Counter(second)).total()
    return 2 * shared / (len(first) + len(second))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
