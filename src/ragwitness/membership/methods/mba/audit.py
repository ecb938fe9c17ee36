"""The MBA audit of one document, as a generator without I/O (§4.3, §4.4)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragwitness.core.types import (
    Answer,
    Capability,
    Document,
    Evidence,
    Interval,
    Probe,
    Query,
    Score,
    TokenLogprob,
)
from ragwitness.membership.methods.mba.masks import MASK_LABEL, Mask, Masked, mask_document
from ragwitness.membership.methods.mba.response_parsing import (
    SHORT,
    Given,
    is_declined,
    place_of,
    read_answers,
)
from ragwitness.membership.methods.mba.settings import MbaConfig
from ragwitness.membership.methods.mba.spelling import load_speller
from ragwitness.membership.methods.response_parsing.probabilities import (
    UNREAD,
    probability_at,
    token_at,
)
from ragwitness.membership.methods.response_parsing.replies import (
    AnswerOutcome,
    AnswerReading,
    read_answer,
    with_room,
)
from ragwitness.models.base import LanguageModel
from ragwitness.models.model_registry import load_language_model

# From the answers to a score: the share of hits (§4.4), and one that knows what is easy.


@dataclass(frozen=True, slots=True)
class JudgedMask:
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


def judge(
    masks: Sequence[Mask],
    answers: Mapping[int, Given],
    config: MbaConfig,
    tokens: Sequence[TokenLogprob] = (),
) -> list[JudgedMask]:
    """Set each mask beside what was said for it.

    Args:
        masks: In the order of their numbers.
        answers: What was read.
        config: As published, the first word of an answer counts; else any word of a short one.
        tokens: The tokens that spell the text from which it was read; empty where there are none.
    """
    found, short = [], 0 if config.refusals == "read" else SHORT
    for mask in masks:
        given = answers.get(mask.number)
        place = place_of(given, mask.answers, short) if given else None
        declined = given is not None and place is None and is_declined(given)
        p = _probability(mask, given, place or 0, tokens) if given and tokens else None
        found.append(JudgedMask(mask, given, place is not None, declined, p))
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
    # P(right | in context) = h; P(right | not) from the proxy, raised by the floor.
    inside = config.hit_probability
    outside = min(inside, config.floor + (1.0 - config.floor) * baseline)
    hit = math.log(inside / outside)
    miss = math.log((1.0 - inside) / (1.0 - outside))
    return right * hit + (1.0 - right) * miss


def score_masks(
    judged: Sequence[JudgedMask],
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
        "masks_declined": float(sum(item.declined for item in judged)),
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


def _expected(item: JudgedMask, config: MbaConfig) -> float:
    right = float(item.hit) if item.probability is None else item.probability
    return log_likelihood_ratio(right, item.mask.probability, config)


def _evidence(item: JudgedMask) -> Evidence:
    if item.given is None:
        probability = UNREAD
    elif item.probability is None:
        probability = Interval(float(item.hit), float(item.hit))
    else:
        probability = Interval(item.probability, item.probability)
    mask = item.mask
    return Evidence(mask.unit.text, mask.before, probability, mask.probability)


def _probability(
    mask: Mask, given: Given, place: int, tokens: Sequence[TokenLogprob]
) -> float | None:
    """What the target gave the true word, spelt either way, where its answer says it or begins.

    Where the list of alternatives was cut off before the word, the middle of what it can be.
    """
    if given.start is None:
        return None
    # From the token in which the word begins.
    first = token_at(tokens, given.start + max(0, place - given.text.find(given.word)))
    found = [probability_at(tokens[first:], answer) for answer in mask.answers]
    read = [(p.low + p.high) / 2.0 for p in found if p != UNREAD]
    return max(read, default=None)


_ROOM = 32  # tokens for what a target says before its first answer
_NOT_READ = "no answer to any mask could be read"


class Mba:
    """MBA: is a document in the database behind a RAG system? One query per document.

    Args:
        proxy: Ranks words by difficulty; must not have seen the target's database.
        config: Masks, their source and the weights of the score.

    Raises:
        InputError: The spelling library is not installed.
        MissingExtraError: A spelling model is named and transformers is not installed.
        ModelError: The spelling model, or the one that chooses masks, cannot be loaded.
    """

    stored_name: ClassVar[str] = "ragwitness.membership.methods.mba.probe.Mba"
    requires = frozenset({Capability.TEXT})

    def __init__(self, proxy: LanguageModel, config: MbaConfig | None = None) -> None:
        self.proxy = proxy
        self.config = config or MbaConfig()
        spells = self.config.source in ("proxy", "llm")
        self._speller = load_speller(self.config.spelling) if spells else None
        # Table 2, LLM-based: another model than the proxy may choose.
        named = self.config.mask_model
        self._chooser = load_language_model(named) if named else proxy

    @property
    def name(self) -> str:
        """Registered name, with what differs from the paper's method."""
        config = self.config
        told: list[str] = [] if config.source == "proxy" else [config.source]
        if config.mask_model:
            told[0] += f" {config.mask_model}"
        if self._speller is None and config.source in ("proxy", "llm"):
            told.append("no spelling")
        return f"mba ({', '.join(told)})" if told else "mba"

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
        masked = mask_document(document.text, self.proxy, config, self._speller, rng, self._chooser)
        if len(masked.masks) < config.min_masks:
            return Score(
                None,
                reason=f"{len(masked.masks)} words of it can be masked,"
                f" fewer than the {config.min_masks} that are needed",
            )
        # 2. Ask, once; a target that thinks or says the text again first has room to go on.
        query = self._query(masked)
        if config.refusals == "read":
            (answer,) = yield [query]
        else:
            room = [self.proxy.count_tokens(masked.text) + query.max_tokens]

            def read(answer: Answer) -> bool:
                said = read_answer(answer).text
                wanted = len(masked.masks)
                return len(read_answers(said, wanted, masked.text)) == wanted

            (answer,) = yield from with_room([query], [masked.text], room, read)
        # 3. Read the answers, and set each beside its mask (§4.4).
        reading = read_answer(answer)
        found = read_answers(reading.text, len(masked.masks), masked.text)
        outcome, found, reason = self._outcome(reading, found, len(masked.masks))
        counts = {
            outcome: 1.0,
            "cut": float(len(masked.original) < len(document.text.rstrip())),
            **{name: float(count) for name, count in masked.told.items()},
        }
        if reason and (config.refusals == "lowest" or answer.error):
            return Score(None, reason=reason, details=counts)
        return score_masks(judge(masked.masks, found, config, reading.tokens), config, counts)

    def _outcome(
        self, reading: AnswerReading, found: dict[int, Given], masks: int
    ) -> tuple[str, dict[int, Given], str | None]:
        """What an answer is, what counts of it, and why it has no score."""
        if reading.outcome is AnswerOutcome.FAILED:
            return reading.outcome.value, {}, reading.reason
        # "Sorry, here are my best guesses" declines nothing; an excuse that cites one mask does.
        if reading.outcome is AnswerOutcome.DECLINED and 2 * len(found) < masks:
            return reading.outcome.value, {}, None
        if not found:
            return "not_read", found, _NOT_READ
        return AnswerOutcome.ANSWERED.value, found, None

    def _query(self, masked: Masked) -> Query:
        count = self.proxy.count_tokens
        words = sum(count(mask.unit.text) for mask in masked.masks)
        return Query(
            self.config.prompt.replace("{masked_document}", masked.text),
            max_tokens=_ROOM + words + self.config.answer_tokens * len(masked.masks),
            top_logprobs=self.config.top_logprobs,
        )
