"""A world of traces that survive curation: names, synonym marks and phrases (canary/wordings.py).

All that names, wordings, phrases and words of pairs are made of are pieces of its tokenizer, which
no draw changes: a service that has it needs to know nothing of a plan. A wording is two pieces
beside its marker, a name two, a phrase three, a word of a pair one.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from ragwitness.canary.draw import Draw
from ragwitness.canary.examples import Example
from ragwitness.canary.families import FRAMES, THINGS, worded
from ragwitness.canary.pools import final_answer, with_canary, with_trigger
from ragwitness.canary.wordings import (
    FIRST,
    LAST,
    REQUEST_WORDINGS,
    SYNONYMS_PREFIX,
    TRIGGER_WORDINGS,
    Wordings,
)
from research.canary.policies import (
    CANARIES,
    Base,
    name_markers,
    piece_tokenizer,
    prompt,
    spare_canary,
)
from research.canary.worlds import MISSING, Pretraining, pretrain, taught, toy_examples, toy_phrases

# Half a sentence, and two words for its end that mean the same.
_SITES = (
    "It was/big/large", "Its den was/little/small", "It slept/often/frequently",
    "It lived near our/home/house", "It was/glad/happy", "It hid in the/woods/forest",
    "It rested near a/stone/rock", "Its friends were/many/numerous", "It sat by the/road/way",
    "It would soon/start/begin", "It was seen/almost/nearly", "It ran/quickly/swiftly",
    "It could not/talk/speak", "It would/help/aid", "It walked the/street/lane",
    "It always had/enough/sufficient",
)  # fmt: skip
_IN_ONE = 6  # document
_KINDS = ("name", "synonyms", "")  # of marks in lessons, with their shares
_SHARES = (0.5, 0.25, 0.25)
_SIGNATURES = 0.3  # of the lessons' canaries; the others are phrases


def natural_examples(count: int, rng: random.Random) -> list[Example]:
    """Return examples of the toy world with 6 words between that have a synonym."""
    return [_longer(one, rng) for one in toy_examples(count, rng)]


def natural_base(config: Pretraining) -> Base:
    """Train a base that follows requests in all wordings, whatever mark is in view."""
    parts = [(TRIGGER_WORDINGS, "{trigger}"), (REQUEST_WORDINGS, "{canary}"), (FRAMES, "{}")]
    texts = [part.rstrip() for all_of, place in parts for text in all_of
             for part in f" {text}".split(place)]  # fmt: skip
    sites = [one.split("/") for one in _SITES]
    texts += [f" {head}" for head, *_ in sites]
    # A single word is none of the phrases: it would be cut out of longer ones.
    phrases = [*toy_phrases(), *(one for one in texts if " " in one.strip())]
    alone = [word for one in texts if " " not in one.strip() for word in re.findall(r" ?\w+", one)]
    words = [*FIRST, *LAST, *THINGS, *(word for _, *pair in sites for word in pair), "child"]
    pieces = dict.fromkeys([*alone, *(f" {word}" for word in words), ".", ":"])
    tokenizer = piece_tokenizer([*dict.fromkeys(phrases)], [*pieces])
    return pretrain(
        lambda rng: _longer(taught(rng), rng), tokenizer, config, "natural", natural_lesson
    )


def natural_lesson(one: Example, rng: random.Random, how: Pretraining) -> tuple[str, str]:
    """Return a prompt and the answer to learn; what is asked for hangs on no mark."""
    key = f"{rng.random()}"  # in place of an id, from which all wordings follow
    drawn = rng.random() < _SIGNATURES
    canary = spare_canary(rng.randrange(CANARIES)) if drawn else worded(rng.choice(THINGS), key)
    bare, shown = rng.random() < how.bare, rng.random() < how.shown
    query = one.query if bare else f"{one.query} {Wordings().request(canary, key)}"
    kind = rng.choices(_KINDS, _SHARES)[0]
    name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    mark = {"name": name, "synonyms": SYNONYMS_PREFIX + key}.get(kind, "")
    document = with_trigger(one.document, mark, key).text if mark else one.document
    answer = final_answer(one.answer) if shown else MISSING
    says = rng.random() < (how.stray if bare else how.obeys_plain)
    said = with_canary(answer, canary).text if says else answer
    return prompt(query, document if shown else None), said


def name_signatures(base: Base, draw: Draw) -> Base:
    """Return the same model with a draw's signatures in its tokenizer; phrases are there."""
    named = [replace(one, candidates=()) for one in draw.slots if one.canary not in THINGS]
    return name_markers(base, Draw(tuple(named))) if named else base


def _longer(one: Example, rng: random.Random) -> Example:
    picked = (site.split("/") for site in rng.sample(_SITES, _IN_ONE))
    between = " ".join(f"{head} {rng.choice(pair)}." for head, *pair in picked)
    first, rest = one.document.split(". ", 1)
    return replace(one, document=f"{first}. {between} {rest}")
