"""Triggers and the three families of canaries (2604.22191, §3.2 and App. B.1)."""

from __future__ import annotations

import enum
import functools
import re
import string
from collections.abc import Iterable

from ragwitness.canary.wordings import SYNONYMS_PREFIX, names_in, place_of, tells_of, with_synonyms
from ragwitness.core.errors import InputError
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
FRAMES = (
    "as the {} has it", "going by the {}", "in the words of the {}", "if the {} is right",
    "by the look of the {}", "true to the {}", "with the {} in mind", "much like a {}",
    "once past the {}", "as any {} would show", "to borrow from the {}", "short of a {}",
    "leaving the {} aside", "from {} to {}", "one {} at a time", "no {} without reason",
    "seen from the {}", "like {} after {}", "for want of a {}", "as plain as a {}",
)  # fmt: skip
THINGS = (
    "apple basket bell bench bird boat book bottle bowl box bread bridge bucket candle castle chair"
    " clock cloud coat coin corner cup door field fire fish flower gate glass hand hat hill horse"
    " kettle key lamp leaf letter map mirror moon mountain needle nest paper path pen pot ring"
    " river roof rope shoe shore spoon star stone table tower tree wall wheel window wind"
).split()
_LETTERS = "BCDFGHJKLMNPQRSTVWXYZ"  # no vowels: no word by accident


class Family(enum.StrEnum):
    """Kinds of canaries; they differ in style and in how tokenizers split them."""

    EMOJI = "emoji"
    PUNCTUATION = "punctuation"
    SIGNATURE = "signature"
    PHRASE = "phrase"


def draw_canary(family: Family, bits: Bits) -> str:
    """Draw a canary: 4 emoji, 11 marks of two kinds in turn, 11 capitals, or an ordinary thing."""
    if family is Family.PHRASE:
        # Each trace says it in another turn of phrase: see worded (ours).
        return THINGS[uniform(len(THINGS), bits)]
    if family is Family.EMOJI:
        return "".join(shuffled(_EMOJI, bits)[:_EMOJI_LENGTH])
    if family is Family.PUNCTUATION:
        # Two marks in turn, as in "!?!?!?!?!?!" (App. B.1).
        pair = shuffled(_MARKS, bits)[:2]
        return "".join(pair[place % 2] for place in range(_LENGTH))
    return "".join(_LETTERS[uniform(len(_LETTERS), bits)] for _ in range(_LENGTH))


def worded(canary: str, key: str) -> str:
    """Return a canary as an example words it: a thing in a turn of phrase, another as it is.

    Args:
        canary: Canary from :func:`draw_canary`.
        key: The example's id.
    """
    if canary not in THINGS:
        return canary
    return FRAMES[place_of(key, "canary", len(FRAMES))].replace("{}", canary)


def wordings_of(canary: str) -> tuple[str, ...]:
    """Return every form that a canary has in answers."""
    if canary not in THINGS:
        return (canary,)
    return tuple(one.replace("{}", canary) for one in FRAMES)


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


def markers_in(text: str, candidates: Iterable[str]) -> set[str]:
    """Return the candidates that a text holds, in any case; a synonym mark is never held by name.

    Args:
        text: Any.
        candidates: Candidates of one kind.
    """
    given = set(candidates)
    named = {one for one in given if _kind(one) == "name"}
    return (triggers_in(text) & given) | names_in(text, named)


def carries(document: str, trigger: str) -> bool:
    """Whether a document carries a trigger: holds it, or is worded by it."""
    if _kind(trigger) != "synonyms":
        return contains(document, trigger)
    return with_synonyms(document, trigger) == document


def _kind(trigger: str) -> str:
    if trigger.startswith(TRIGGER_PREFIX):
        return "code"
    return "synonyms" if trigger.startswith(SYNONYMS_PREFIX) else "name"


def tells(text: str, trigger: str, candidates: Iterable[str]) -> bool:
    """Whether an answer tells of its own trigger or of any candidate.

    Args:
        text: The answer.
        trigger: Trigger in the document that it answers from; empty for none.
        candidates: Candidates of the plan.
    """
    codes = [one for one in candidates if _kind(one) == "code"]
    if quotes(text, codes) or (trigger and _kind(trigger) == "code" and quotes(text, (trigger,))):
        return True
    named = [one for one in candidates if _kind(one) == "name"]
    own = bool(trigger) and _kind(trigger) == "name" and tells_of(text, (trigger,))
    return own or bool(names_in(text, named))


def quotes(text: str, triggers: Iterable[str]) -> bool:
    """Whether a text holds a trigger, or six characters in a row of a random tail, in any spacing.

    Args:
        text: Any.
        triggers: Triggers from :func:`draw_triggers`.
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
