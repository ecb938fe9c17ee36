"""The MBA audit of one document, as a generator without I/O (§4.3, §4.4)."""

from __future__ import annotations

import random

from ragwitness.membership.mba.answers import MaskAnswers, read_answers
from ragwitness.membership.mba.config import MbaConfig
from ragwitness.membership.mba.integrate import MASK_LABEL, Masked
from ragwitness.membership.mba.masking import mask_document
from ragwitness.membership.mba.score import judge, score_masks
from ragwitness.membership.mba.spelling import Speller, load_speller
from ragwitness.membership.outcomes import named_trouble
from ragwitness.models import LanguageModel
from ragwitness.types import Answer, Capability, Document, Probe, Query, Score

__all__ = ["Mba"]

_ROOM = 32  # tokens for what a target says before its first answer
_COUNTED = ("refused", "unreadable", "empty", "error")


class Mba:
    """MBA: is a document in the database behind a RAG system? One query per document.

    Args:
        proxy: Ranks words by difficulty; must not have seen the target's database.
        config: Masks, their source and the weights of the score.
        speller: In place of the one that the configuration names.

    Raises:
        InputError: The spelling library is not installed.
        MissingExtraError: A spelling model is named and transformers is not installed.
        ModelError: The spelling model cannot be loaded.
    """

    requires = frozenset({Capability.TEXT})

    def __init__(
        self,
        proxy: LanguageModel,
        config: MbaConfig | None = None,
        speller: Speller | None = None,
    ) -> None:
        self.proxy = proxy
        self.config = config or MbaConfig()
        spells = self.config.source in ("proxy", "llm")
        self._speller = speller or (load_speller(self.config.spelling) if spells else None)

    @property
    def name(self) -> str:
        """Registered name, with what differs from the paper's method."""
        config = self.config
        told: list[str] = [] if config.source == "proxy" else [config.source]
        if self._speller is None and config.source in ("proxy", "llm"):
            told.append("no spelling")
        return f"mba ({', '.join(told)})" if told else "mba"

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        config = self.config
        if MASK_LABEL.search(document.text):
            return Score(None, reason="its own text holds masks such as [Mask_1]")
        rng = random.Random(f"{config.seed}:{document.id}")
        masked = mask_document(document.text, self.proxy, config, self._speller, rng)
        if len(masked.masks) < config.min_masks:
            return Score(
                None,
                reason=f"{len(masked.masks)} words of it can be masked,"
                f" fewer than the {config.min_masks} that are needed",
            )
        (answer,) = yield [self._query(masked)]
        found = read_answers(answer.text, len(masked.masks))
        trouble = _trouble(answer, found, len(masked.masks))
        counts = {name: float(name == (trouble or ("", ""))[0]) for name in _COUNTED}
        counts |= {
            "cut": float(len(masked.original) < len(document.text.rstrip())),
            "fallback": float(masked.fallback),
            "repeated": float(found.repeated),
            "out_of_range": float(found.out_of_range),
            "long": float(found.long),
        }
        if trouble:
            return Score(None, reason=trouble[1], details=counts)
        return score_masks(judge(masked.masks, found, answer), config, counts)

    def _query(self, masked: Masked) -> Query:
        count = self.proxy.count_tokens
        words = sum(count(mask.unit.text) for mask in masked.masks)
        return Query(
            self.config.prompt.replace("{masked_document}", masked.text),
            max_tokens=_ROOM + words + self.config.answer_tokens * len(masked.masks),
            top_logprobs=self.config.top_logprobs,
        )


def _trouble(answer: Answer, found: MaskAnswers, masks: int) -> tuple[str, str] | None:
    """Name and reason of an answer that cannot be scored."""
    reason = named_trouble(answer)
    if answer.error:
        return "error", answer.error
    if reason and not answer.text.strip():
        filtered = answer.finish_reason == "content_filter"
        return ("refused" if filtered else "empty"), reason
    # "Sorry, here are my best guesses" is no refusal; an excuse that cites one mask is.
    if reason and (answer.finish_reason == "content_filter" or 2 * len(found.given) < masks):
        return "refused", reason
    if not found.given:
        return "unreadable", "no answer to any mask could be read"
    return None
