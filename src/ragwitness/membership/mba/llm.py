"""Masks that a language model chooses by writing the masked text (Table 2, LLM-based)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from ragwitness.errors import ModelError
from ragwitness.membership.mba.config import MbaConfig
from ragwitness.membership.mba.fragments import Unit
from ragwitness.membership.mba.integrate import MASK_LABEL
from ragwitness.models import ChatPrompt, LanguageModel
from ragwitness.text.words import core, split_words
from ragwitness.types import Message, Role

__all__ = ["aligned_words", "llm_choice"]

_MASKED = "\0"  # no word of a document
_LABEL_TOKENS = 8


def llm_choice(
    text: str,
    units: Sequence[Unit],
    spare: Sequence[Unit],
    model: LanguageModel,
    config: MbaConfig,
) -> tuple[list[Unit], int]:
    """Return the words to mask and how many of them the proxy had to choose.

    A mask counts where the words around it are the document's and it stands for one word; the
    others, and those the model never set, fall back to the proxy's choice, one by one.

    Args:
        text: The document.
        units: Its words.
        spare: What the proxy would mask.
        model: Writes the masked text.
        config: Number of masks and the prompt.
    """
    places = {unit.index: unit for unit in units}
    chosen: list[Unit] = []
    for index in aligned_words(text, _written(text, model, config)):
        unit = places.get(index)
        if unit is not None and index >= config.skip_words and _clear(unit, chosen, config):
            chosen.append(unit)
    chosen = chosen[: config.masks]
    own = len(chosen)
    for unit in sorted(spare, key=lambda unit: -unit.rank):
        if len(chosen) < config.masks and _clear(unit, chosen, config):
            chosen.append(unit)
    return chosen, len(chosen) - own


def aligned_words(text: str, masked: str) -> Iterator[int]:
    """Yield the number of each word that a mask stands for, where the two texts align.

    Args:
        text: The document.
        masked: What the model wrote.
    """
    ours = [_key(word.text) for word in split_words(text)]
    theirs = [
        _MASKED if MASK_LABEL.search(word.text) else _key(word.text)
        for word in split_words(MASK_LABEL.sub("[Mask]", masked))
    ]
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, low, high, first, last in matcher.get_opcodes():
        # Only where as many words went as came can a mask be laid upon its word.
        if kind == "replace" and high - low == last - first:
            yield from (low + i for i in range(high - low) if theirs[first + i] == _MASKED)


def _written(text: str, model: LanguageModel, config: MbaConfig) -> str:
    asked = config.mask_prompt.replace("{masks}", str(config.masks)).replace("{document}", text)
    room = model.count_tokens(text) + _LABEL_TOKENS * config.masks
    prompt = ChatPrompt((Message(Role.USER, asked),))
    try:
        return model.generate([prompt], max_tokens=room)[0].text
    except ModelError:
        return ""  # it does not fit: every mask falls back, and is counted


def _clear(unit: Unit, chosen: Sequence[Unit], config: MbaConfig) -> bool:
    reach = 1 if config.avoid_adjacent else 0
    return all(abs(unit.index - other.index) > reach for other in chosen)


def _key(word: str) -> str:
    return (core(word) or word).casefold()
