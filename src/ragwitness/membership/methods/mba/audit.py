"""The MBA audit of one document, as a generator without I/O (§4.3, §4.4)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ragwitness.core.bet import Bet
from ragwitness.core.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
)
from ragwitness.membership.e_values import STAKES
from ragwitness.membership.methods.mba.masks import MASK_LABEL, Mask, MbaConfig, mask_document
from ragwitness.membership.methods.mba.response_parsing import (
    SHORT,
    is_declined,
    is_right,
    read_answers,
)
from ragwitness.membership.methods.mba.spelling import load_speller
from ragwitness.membership.response_parsing.probabilities import UNREAD
from ragwitness.membership.response_parsing.replies import (
    AnswerOutcome,
    AnswerReading,
    read_answer,
    with_room,
)
from ragwitness.models.base import LanguageModel
from ragwitness.text.words import core

# From the answers to a score: the share of hits (§4.4), and one that knows which words are easy.


@dataclass(frozen=True, slots=True)
class JudgedMask:
    """A mask with its answer.

    Attributes:
        mask: The mask.
        answer: The target's answer; None where it gave none.
        hit: Whether that is the word or its correction.
        declined: Whether the target said that it does not know.
    """

    mask: Mask
    answer: str | None
    hit: bool
    declined: bool


def judge_masks(
    masks: Sequence[Mask], answers: Mapping[int, str], config: MbaConfig
) -> list[JudgedMask]:
    """Compare each mask with its answer.

    Args:
        masks: In the order of their numbers.
        answers: By mask number.
        config: As published, the first word of an answer counts; else any word of a short one.
    """
    judged, short = [], 0 if config.refusals == "read" else SHORT
    for mask in masks:
        answer = answers.get(mask.number)
        hit = answer is not None and is_right(answer, mask.answers, short)
        declined = answer is not None and not hit and is_declined(answer)
        judged.append(JudgedMask(mask, answer, hit, declined))
    return judged


def log_likelihood_ratio(hit: bool, baseline: float, config: MbaConfig) -> float:
    """Return log P(answer | in context) - log P(answer | not in context).

    Args:
        hit: Whether the answer is right.
        baseline: Probability of the word under the proxy, which reads only the text before it.
        config: ``hit_probability`` h and ``floor``. The chance of a right answer without the
            document is ``floor + (1 - floor) * baseline``, since a target knows more than the
            proxy and also reads the text behind the mask. It is at most h: an easy mask is no
            evidence against membership.
    """
    # P(right | in context) = h; P(right | not) from the proxy, raised by the floor.
    inside = config.hit_probability
    outside = min(inside, config.floor + (1.0 - config.floor) * baseline)
    return math.log(inside / outside if hit else (1.0 - inside) / (1.0 - outside))


def score_masks(
    judged: Sequence[JudgedMask], config: MbaConfig, counts: Mapping[str, float]
) -> Score:
    """Score one document.

    ``value`` is the paper's: hits / M. ``score/weighted`` averages the log-likelihood ratio of
    hit or miss over the masks. In both a mask without an answer is a miss: the same answer must
    not score higher for breaking off early.

    Args:
        judged: All masks of the document.
        config: Weights, and gamma for the paper's decision.
        counts: Named outcomes of reading, reported unchanged.
    """
    total = len(judged)
    hits = sum(item.hit for item in judged)
    weights = [log_likelihood_ratio(item.hit, item.mask.probability, config) for item in judged]
    details = {
        **counts,
        "masks": float(total),
        "hits": float(hits),
        "missing": float(sum(item.answer is None for item in judged)),
        "masks_declined": float(sum(item.declined for item in judged)),
        "misspelt": float(sum(len(item.mask.answers) > 1 for item in judged)),
        "score/weighted": sum(weights) / total,
    }
    if config.gamma is not None:
        details["gamma_member"] = float(hits > config.gamma * total)  # §4.4
    # The masks that tell most come first in the report.
    order = sorted(range(total), key=lambda i: (-abs(weights[i]), judged[i].mask.number))
    return Score(hits / total, evidence=tuple(_evidence(judged[i]) for i in order), details=details)


def _evidence(item: JudgedMask) -> Evidence:
    hit, mask = float(item.hit), item.mask
    probability = UNREAD if item.answer is None else Interval(hit, hit)
    return Evidence(mask.unit.text, mask.before, probability, mask.probability)


def bets_on_masks(query: Query, judged: Sequence[JudgedMask]) -> tuple[Bet, ...]:
    """Return a bet for each mask; it is won by the word alone, as the document spells it."""
    bets, before = list[Bet](), ""
    for item in judged:
        label, word = f"[Mask_{item.mask.number}]:", core(item.mask.unit.text)
        if word and item.answer is not None and core(item.answer) == word:
            bets.append(Bet(STAKES[0], 1, (f" {word}",), query.prompt, before + label))
        else:
            bets.append(Bet(STAKES[0], 1))
        before += f"{label} {item.answer or ''}\n"
    return tuple(bets)


_ROOM = 32  # tokens before the first answer, such as a greeting
_NOT_READ = "no answer to any mask could be read"


class Mba:
    """MBA: is a document in the database behind a RAG system? One query per document.

    Args:
        proxy: Ranks words by difficulty; must not have seen the target's database.
        config: Masks, their source and the weights of the score.

    Raises:
        InputError: The spelling library is not installed.
        MissingExtraError: A spelling model is named and transformers is not installed.
        ModelError: The spelling model cannot be loaded.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.mba.probe.Mba"
    requires = frozenset({Capability.TEXT})

    def __init__(self, proxy: LanguageModel, config: MbaConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or MbaConfig()
        proxied = self.config.source == "proxy"
        self._speller = load_speller(self.config.spelling) if proxied else None

    @property
    def name(self) -> str:
        """Registered name, with what differs from the paper's method."""
        if self.config.source != "proxy":
            return f"mba ({self.config.source})"
        return "mba" if self._speller else "mba (no spelling)"

    @property
    def threshold(self) -> float | None:
        """The paper's decision, hits > gamma * M (§4.4), on the scale of the value: hits / M."""
        gamma = self.config.gamma
        return None if gamma is None else math.nextafter(gamma, math.inf)

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        if MASK_LABEL.search(document.text):
            return Score(None, reason="its own text holds masks such as [Mask_1]")
        rng = random.Random(f"{config.seed}:{document.id}")
        # 1. Mask (§4.3).
        masked = mask_document(document.text, self.proxy, config, self._speller, rng)
        total = len(masked.masks)
        if total < config.min_masks:
            return Score(
                None,
                reason=f"{total} words of it can be masked,"
                f" fewer than the {config.min_masks} that are needed",
            )

        def answers_in(reading: AnswerReading) -> dict[int, str]:
            return read_answers(reading.text, total, masked.text)

        # 2. Ask, once; a target that thinks or repeats the text gets room to continue.
        words = sum(self.proxy.count_tokens(mask.unit.text) for mask in masked.masks)
        query = Query(
            config.prompt.replace("{masked_document}", masked.text),
            max_tokens=_ROOM + words + config.answer_tokens * total,
        )
        if config.refusals == "read":
            (answer,) = yield [query]
        else:
            room = [self.proxy.count_tokens(masked.text) + query.max_tokens]

            def complete(answer: Answer) -> bool:
                return len(answers_in(read_answer(answer))) == total

            (answer,) = yield from with_room([query], [masked.text], room, complete)
        # 3. Read the answers, and compare each with its mask (§4.4).
        reading = read_answer(answer)
        answers, outcome, reason = answers_in(reading), reading.outcome.value, None
        if reading.outcome is AnswerOutcome.FAILED:
            answers, reason = {}, reading.reason
        elif reading.outcome is AnswerOutcome.DECLINED and 2 * len(answers) < total:
            # "Sorry, here are my best guesses" declines nothing; an excuse that cites one mask
            # does.
            answers = {}
        elif not answers:
            outcome, reason = "not_read", _NOT_READ
        else:
            outcome = AnswerOutcome.ANSWERED.value
        counts = {outcome: 1.0, "cut": float(len(masked.original) < len(document.text.rstrip()))}
        if reason and (config.refusals == "lowest" or answer.error):
            return Score(None, reason=reason, details=counts)
        judged = judge_masks(masked.masks, answers, config)
        return replace(score_masks(judged, config, counts), bets=bets_on_masks(query, judged))
