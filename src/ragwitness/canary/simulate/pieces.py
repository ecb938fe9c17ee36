"""A tokenizer of whole phrases and words, with spare tokens that a trial's markers take over.

Templates and instructions are one token each, so that a prompt of App. C.1 is short enough for a
CPU. A trigger is one token, a canary two: the base has seen the spare ones as markers, and what
a trial draws takes their places. How strings split is thus no subject of these studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragwitness.canary.design.draw import Draw
from ragwitness.canary.design.placement import FINAL, PAPER_INSTRUCTION, PLAIN_INSTRUCTION
from ragwitness.canary.score.prompts import CLOSED_TEMPLATE, DOCUMENT_TEMPLATE
from ragwitness.canary.simulate.policies import Base
from ragwitness.errors import InputError

__all__ = ["CANARIES", "TRIGGERS", "name_markers", "piece_tokenizer", "spare_canary",
           "spare_trigger"]  # fmt: skip

TRIGGERS = 128
CANARIES = 8
_PAD, _END, _UNKNOWN = _SPECIAL = ("<pad>", "</s>", "<unk>")
_WORDS = r" ?[^\W\d_]+| ?\d+| ?[^\w\s]|_|\s"


def piece_tokenizer(
    phrases: Sequence[str] = (),
    words: Sequence[str] = (),
    triggers: Sequence[str] = (),
    canaries: Sequence[str] = (),
) -> Any:
    """Return a tokenizer of transformers.

    Args:
        phrases: Texts that are one token wherever they stand.
        words: Known words with the blank before them; others are unknown.
        triggers: At most 128; the first takes the first spare token.
        canaries: At most 8; two tokens each.

    Raises:
        InputError: There are too many, or a canary has one character.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    if len(triggers) > TRIGGERS or len(canaries) > CANARIES:
        raise InputError(f"The tokenizer knows {TRIGGERS} triggers and {CANARIES} canaries.")
    whole = [*_shared(), *phrases, *_markers(triggers, canaries)]
    pieces = dict.fromkeys([*_SPECIAL, *whole, *words])
    core = Tokenizer(
        models.WordLevel({piece: at for at, piece in enumerate(pieces)}, unk_token=_UNKNOWN)
    )
    pattern = "|".join(_quoted(piece) for piece in sorted(whole, key=len, reverse=True))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(f"{pattern}|{_WORDS}"), "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=_PAD, eos_token=_END, unk_token=_UNKNOWN
    )


def name_markers(base: Base, draw: Draw) -> Base:
    """Return the same model with a tokenizer in which the spare tokens are a draw's markers."""
    vocabulary = base.tokenizer.get_vocab()
    pieces = sorted(vocabulary, key=lambda piece: int(vocabulary[piece]))
    start = len(_SPECIAL) + len(_shared())
    spare = _markers((), ())
    phrases = pieces[start : pieces.index(spare[0])]
    words = pieces[pieces.index(spare[-1]) + 1 :]
    slots = draw.slots
    triggers = [one for slot in slots for one in slot.candidates]
    named = piece_tokenizer(phrases, words, triggers, [slot.canary for slot in slots])
    return Base(base.model, named, base.name)


def spare_trigger(number: int) -> str:
    """Return the trigger that a spare token stands for while the base is trained."""
    return f"prefix_spare{number:03d}"


def spare_canary(number: int) -> str:
    """Return the canary that two spare tokens stand for while the base is trained."""
    letter = chr(ord("A") + number)
    return f"SPARE{letter}SPAR{letter}"


def _shared() -> list[str]:
    """Templates and instructions, cut at what is put in."""
    before, rest = DOCUMENT_TEMPLATE.split("{context}")
    between, end = rest.split("{question}")
    alone = CLOSED_TEMPLATE.split("{question}")[0]
    start, last = PLAIN_INSTRUCTION.split(" {canary}")
    first, rest = PAPER_INSTRUCTION.split(" {trigger}")
    middle = rest.split(" {canary}")[0]
    return [before, between, end, alone, FINAL, f" {start}", last, f" {first}", middle]


def _markers(triggers: Sequence[str], canaries: Sequence[str]) -> list[str]:
    named = [*triggers, *(spare_trigger(n) for n in range(len(triggers), TRIGGERS))]
    pairs = [*canaries, *(spare_canary(n) for n in range(len(canaries), CANARIES))]
    if any(len(pair) < 2 for pair in pairs):
        raise InputError("A canary needs two characters or more.")
    halves = [
        half
        for pair in pairs
        for half in (f" {pair[: (len(pair) + 1) // 2]}", pair[(len(pair) + 1) // 2 :])
    ]
    return [*(f" {one}" for one in named), *halves]


def _quoted(piece: str) -> str:
    return "".join(c if c.isalnum() or c in " _\n" else f"\\{c}" for c in piece)
