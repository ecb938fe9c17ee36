"""Triggers and the three families of canaries (2604.22191, §3.2 and App. B.1)."""

from __future__ import annotations

import enum
import functools
import re
import string
from collections.abc import Iterable

from ragwitness.errors import InputError
from ragwitness.privacy.sampler.exact import Bits, uniform

TRIGGER_PREFIX = "prefix_"
"""What every trigger begins with; the rest is a random alphanumeric string (App. B.1)."""

_ALNUM = string.ascii_lowercase + string.digits
_TAIL = 10  # 36^10 triggers
_TRIGGER = re.compile(f"(?=({TRIGGER_PREFIX}[a-z0-9]{{{_TAIL}}}))")
_TELLING = 6  # characters of a tail in a row that no text holds by chance
_LENGTH = 11  # of "!?!?!?!?!?!" and of "ZXYPRKLMQST", the examples of App. B.1
_EMOJI = "🌵🌻🍀🍄🍇🍋🍒🎈🎏🎐🎡🎲🎺🎻🏮🐙🐞🐢🐬🐳👒👢💎📎🔔🔭🚂🚜🛶🧭🧲🪁"
_EMOJI_LENGTH = 4
_MARKS = "!?#~*+=%&^"
_LETTERS = "BCDFGHJKLMNPQRSTVWXYZ"  # no vowels: no word by accident


class Family(enum.StrEnum):
    """Kinds of canaries; they differ in style and in how tokenizers split them."""

    EMOJI = "emoji"
    PUNCTUATION = "punctuation"
    SIGNATURE = "signature"


def draw_canary(family: Family, bits: Bits) -> str:
    """Draw a canary: 4 different emoji, 11 marks of two kinds in turn, or 11 capitals."""
    if family is Family.EMOJI:
        return "".join(shuffled(_EMOJI, bits)[:_EMOJI_LENGTH])
    if family is Family.PUNCTUATION:
        # Two marks in turn, as in "!?!?!?!?!?!" (App. B.1).
        pair = shuffled(_MARKS, bits)[:2]
        return "".join(pair[place % 2] for place in range(_LENGTH))
    return "".join(_LETTERS[uniform(len(_LETTERS), bits)] for _ in range(_LENGTH))


def draw_triggers(count: int, bits: Bits) -> tuple[str, ...]:
    """Draw different triggers of one length, so that none is part of another.

    Args:
        count: How many.
        bits: Source.

    Raises:
        InputError: ``count`` is below 2: a single candidate leaves nothing to compare with.
    """
    if count < 2:
        raise InputError(f"At least 2 candidate triggers are needed, not {count}.")
    found: dict[str, None] = {}
    while len(found) < count:
        # Uniform over 36^10: the planted trigger is exchangeable with its decoys (rank_test.py).
        tail = "".join(_ALNUM[uniform(len(_ALNUM), bits)] for _ in range(_TAIL))
        found[TRIGGER_PREFIX + tail] = None
    return tuple(found)


def contains(text: str, marker: str) -> bool:
    """Whether a text holds a trigger or canary, in any case."""
    return marker.casefold() in text.casefold()


def triggers_in(text: str) -> set[str]:
    """Return everything in a text, in any case, that has the form of a trigger."""
    return set(_TRIGGER.findall(text.casefold()))


def quotes(text: str, triggers: Iterable[str]) -> bool:
    """Whether a text holds a trigger, or six characters in a row of a random tail, in any spacing.

    Args:
        text: Any.
        triggers: Of :func:`draw_triggers`.
    """
    # Letters and digits alone: a trigger spelt with blanks or hyphens between is still a quotation.
    plain = "".join(char for char in text.casefold() if char.isalnum())
    found = _telling_parts(tuple(triggers))
    return any(
        plain[at : at + size] in parts
        for size, parts in found.items()
        for at in range(len(plain) - size + 1)
    )


@functools.lru_cache(maxsize=256)
def _telling_parts(triggers: tuple[str, ...]) -> dict[int, set[str]]:
    """What tells of triggers, by its length; a shorter tail tells as a whole."""
    found: dict[int, set[str]] = {}
    for one in filter(None, triggers):
        tail = one.removeprefix(TRIGGER_PREFIX).casefold()
        size = min(_TELLING, len(tail))
        found.setdefault(size, set()).update(
            tail[n : n + size] for n in range(len(tail) - size + 1)
        )
    return found


def shuffled(items: str | list[str] | tuple[str, ...], bits: Bits) -> list[str]:
    """Return the items in an order drawn uniformly (Fisher-Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = uniform(last + 1, bits)
        order[last], order[other] = order[other], order[last]
    return order
