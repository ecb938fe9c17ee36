"""From the answers to a score: the share of hits (§4.4), and one that knows what is easy."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragwitness.membership.mba.answers import Given, MaskAnswers, is_declined, matches
from ragwitness.membership.mba.config import MbaConfig
from ragwitness.membership.mba.integrate import Mask
from ragwitness.membership.srag.reading import UNREAD, word_probability
from ragwitness.types import Answer, Evidence, Interval, Score, TokenLogprob

__all__ = ["Judged", "judge", "log_likelihood_ratio", "score_masks"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What the target made of one mask.

    Attributes:
        mask: The mask.
        given: What was said for it; None where nothing was.
        hit: Whether that is the word or its correction.
        declined: Whether the target said that it does not know.
        probability: What the target gave the true word, where log-probabilities tell; None
            where only the text does.
    """

    mask: Mask
    given: Given | None
    hit: bool
    declined: bool
    probability: float | None = None


def judge(masks: Sequence[Mask], answers: MaskAnswers, answer: Answer) -> list[Judged]:
    """Set each mask beside what was said for it.

    Args:
        masks: In the order of their numbers.
        answers: Read from the text of ``answer``.
        answer: The target's answer, with log-probabilities where it gave any.
    """
    tokens = answer.tokens or ()
    joined = "".join(token.token for token in tokens) == answer.text
    found = []
    for mask in masks:
        given = answers.given.get(mask.number)
        hit = given is not None and matches(given, mask.answers)
        declined = given is not None and not hit and is_declined(given)
        p = _probability(mask, given, tokens) if joined and given else None
        found.append(Judged(mask, given, hit, declined, p))
    return found


def log_likelihood_ratio(right: float, baseline: float, config: MbaConfig) -> float:
    """Return log P(what was said | in context) - log P(what was said | not in context).

    Args:
        right: 1 for a hit, 0 for a miss, between the two for the target's probability of the
            right answer: the expectation over what it might have said.
        baseline: Probability of the word under the proxy, which reads only what comes before.
        config: ``hit_probability`` h and ``floor``; the chance of a right answer without the
            document is ``floor + (1 - floor) * baseline``, for a target knows more than the
            proxy and reads what comes after, too. Where even that exceeds h, the mask says
            nothing against membership, and is held to h.
    """
    inside = config.hit_probability
    outside = min(inside, config.floor + (1.0 - config.floor) * baseline)
    hit = math.log(inside / outside)
    miss = math.log((1.0 - inside) / (1.0 - outside))
    return right * hit + (1.0 - right) * miss


def score_masks(
    judged: Sequence[Judged],
    config: MbaConfig,
    counts: Mapping[str, float],
) -> Score:
    """Score one document.

    ``value`` is the paper's: hits / M. ``score/weighted`` averages the log-likelihood ratio of
    hit or miss over the masks. ``score/expected``, where log-probabilities could be read, puts
    the target's probability of the right answer in place of the hit. In all three a mask without
    an answer is a miss: the same answer must not score higher for breaking off early.

    Args:
        judged: All masks of the document.
        config: Weights, and gamma where the paper's decision is wanted.
        counts: Named outcomes of reading, reported as they are.
    """
    total = len(judged)
    hits = sum(item.hit for item in judged)
    soft = [item.probability for item in judged if item.probability is not None]
    weights = [
        log_likelihood_ratio(float(item.hit), item.mask.probability, config) for item in judged
    ]
    details = {
        **counts,
        "masks": float(total),
        "hits": float(hits),
        "missing": float(sum(item.given is None for item in judged)),
        "declined": float(sum(item.declined for item in judged)),
        "misspelt": float(sum(len(item.mask.answers) > 1 for item in judged)),
        "read_probabilities": float(len(soft)),
        "score/weighted": sum(weights) / total,
    }
    if soft:
        details["score/expected"] = sum(_expected(item, config) for item in judged) / total
    if config.gamma is not None:
        details["gamma_member"] = float(hits > config.gamma * total)  # §4.4
    order = sorted(range(total), key=lambda i: (-abs(weights[i]), judged[i].mask.number))
    return Score(
        value=hits / total,
        evidence=tuple(_evidence(judged[i]) for i in order),
        details=details,
    )


def _expected(item: Judged, config: MbaConfig) -> float:
    right = float(item.hit) if item.probability is None else item.probability
    return log_likelihood_ratio(right, item.mask.probability, config)


def _evidence(item: Judged) -> Evidence:
    if item.given is None:
        probability = UNREAD
    elif item.probability is None:
        probability = Interval(float(item.hit), float(item.hit))
    else:
        probability = Interval(item.probability, item.probability)
    mask = item.mask
    return Evidence(mask.unit.text, mask.before, probability, mask.probability)


def _probability(mask: Mask, given: Given, tokens: Sequence[TokenLogprob]) -> float | None:
    """What the target gave the true word, spelt either way, where its answer begins.

    Where the list of alternatives was cut off before the word, the middle of what it can be.
    """
    if given.start is None:
        return None
    starts, position = [], 0
    for token in tokens:
        starts.append(position)
        position += len(token.token)
    place = max(0, bisect_right(starts, given.start) - 1)
    found = [word_probability(tokens[place:], answer) for answer in mask.answers]
    read = [(p.low + p.high) / 2.0 for p in found if p != UNREAD]
    return max(read, default=None)
