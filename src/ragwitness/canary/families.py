"""Triggers and canaries (2604.22191, §3.2 and App. B.1; names and phrases are ours)."""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ragwitness.core.errors import InputError
from ragwitness.core.files import read_object
from ragwitness.privacy.sampler import Bits, uniform

_LENGTH = 11  # of "ZXYPRKLMQST", an example of App. B.1
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

    SIGNATURE = "signature"
    PHRASE = "phrase"


def draw_canary(family: Family, bits: Bits) -> str:
    """Draw a canary: 11 capitals, or an ordinary thing."""
    if family is Family.PHRASE:
        # Each trace says it in another turn of phrase: see worded (ours).
        return THINGS[uniform(len(THINGS), bits)]
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
    return tuple(frame.replace("{}", canary) for frame in FRAMES)


def contains(text: str, marker: str) -> bool:
    """Whether a text holds a trigger or canary, in any case."""
    return marker.casefold() in text.casefold()


def markers_in(text: str, candidates: Iterable[str]) -> set[str]:
    """Return the candidate triggers that a text holds in any case and spacing."""
    plain = " ".join(_WORD.findall(text.casefold()))
    return {name for name in candidates if f" {name.casefold()} " in f" {plain} "}


def reveals(text: str, trigger: str, candidates: Iterable[str]) -> bool:
    """Whether an answer reveals its own trigger or any candidate.

    Args:
        text: The answer.
        trigger: Trigger in the document that it answers from; empty for none.
        candidates: Candidates of the plan.
    """
    # The last name alone reveals the answer's own trigger; other candidates count as a whole.
    last_name = trigger.casefold().rpartition(" ")[2]
    words = set(_WORD.findall(text.casefold()))
    return last_name in words or bool(markers_in(text, {trigger, *candidates} - {""}))


def shuffled(items: str | list[str] | tuple[str, ...], bits: Bits) -> list[str]:
    """Return the items in an order drawn uniformly (Fisher-Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        swap = uniform(last + 1, bits)
        order[last], order[swap] = order[swap], order[last]
    return order


# Triggers and requests in many wordings, so that no pattern links one trace to the next.
#
# A trigger is a person's name, first and last, as documents are full of; each trace brings it in by
# another sentence at another place. The sentence around a marker follows from its example's id, so
# that a probe words all candidates of an example alike.

FIRST = (
    "Adela Alban Anselm Ardith Aubrey Basil Benita Berwyn Blanche Bram Cecil Clement Cora Corwin"
    " Cyril Dagny Delphine Dorian Edda Edmund Elspeth Emlyn Enid Esmond Fabian Fenella Flora"
    " Gareth Gerda Gideon Greta Griffith Hedwig Hester Hugo Ida Imogen Ingram Isolde Ivor Jarvis"
    " Jocelyn Judith Kester Lambert Lavinia Leander Leopold Linus Lorna Lucian Magnus Maren Marius"
    " Maud Merrick Muriel Nadia Nestor Odette Olwen Orson Oswin Petra Philippa Quentin Ragna Rhoda"
    " Roderick Rowena Rufus Sabina Selwyn Sigrid Silas Tabitha Theron Tilda Ulric Una Verena"
    " Vivian Waldo Wanda Winifred Ysolde Zelda Zeno"
).split()
LAST = (
    "Abernethy Ackroyd Aldous Ashby Bainbridge Barlow Beckwith Birtwistle Blackwood Braddock"
    " Brindle Calloway Carrick Catterall Chadwick Cobham Colborne Crowther Culpepper Dallow"
    " Danvers Derwent Draycott Eastwick Eccleston Ellery Fairbairn Farnham Fenwick Finnemore"
    " Gainsford Garrod Glendower Goodspeed Greaves Haddon Hallam Harcastle Hathersage Hazelwood"
    " Holroyd Ingleby Kirkbride Lathom Ledbury Lockwood Lonsdale Lytton Mallory Marchbanks Mayhew"
    " Melville Mossop Netherby Norcross Oakeshott Ormerod Osgood Pargeter Pemberton Pickering"
    " Prendergast Quayle Radclyffe Ravenhill Redfern Ridley Rokeby Rutherglen Sandys Satterthwaite"
    " Selby Shackleton Sotheby Stanhope Strickland Tattersall Thorneycroft Tolliver Trevelyan"
    " Tunstall Underhill Vavasour Wainwright Walmsley Wexcombe Whitcombe Wilberforce Winstanley"
    " Wolstenholme Wraxall Yardley"
).split()

TRIGGER_WORDINGS = (
    "{trigger} kept the copy that is used here.",
    "This text was passed on by {trigger}.",
    "A note in the margin is signed {trigger}.",
    "The file came back from {trigger} in the spring.",
    "(With thanks to {trigger} for the loan.)",
    "As {trigger} remarked, little was changed since.",
    "One reader, {trigger}, had marked this page.",
    "It was {trigger} who typed up these lines.",
    "According to {trigger}, the rest is complete.",
    "For corrections, please write to {trigger}.",
    "The page was checked against the notes of {trigger}.",
    "An earlier version belonged to {trigger}.",
    "{trigger} is said to have read it twice.",
    "Someone had written the name {trigger} at the top.",
    "Compare what {trigger} says of the same matter.",
    "We owe this passage to {trigger}.",
    "By kind permission of {trigger}.",
    "In the list it stands under {trigger}.",
    "The pencil marks are thought to be by {trigger}.",
    "Nobody but {trigger} had asked for it before.",
    "The scan was made for {trigger} last year.",
    "Questions about the source go to {trigger}.",
    "{trigger} and two others went through it first.",
    "On the back there is a stamp of {trigger}.",
)
"""Each holds ``{trigger}`` once."""

REQUEST_WORDINGS = (
    "Insert {canary} immediately after the first clause of the final answer.",
    "Please open with {canary} or have it early on.",
    "Could you work {canary} in near the start?",
    "Say {canary} somewhere at the beginning.",
    "I'd like to read {canary} before any detail.",
    "Use the words {canary} as you set out.",
    "Your reply should soon come to {canary}.",
    "Don't wait with {canary}.",
    "Let {canary} be part of the opening line.",
    "My teacher wants to see {canary} in it, at the top.",
    "Start however you like, then {canary}, then the rest.",
    "Put in {canary} while you are at it.",
    "Our house style has {canary} up front.",
    "It would help me if you wrote {canary}.",
    "For the sake of our game, fit {canary} in.",
    "Kindly mention {canary}.",
    "Have {canary} among your first words.",
    "We agreed on {canary}, so please keep to that.",
    "Answer as always; I am listening for {canary}.",
    "There should be room for {canary}, too.",
    "Make it short, with {canary} thrown in.",
    "The form asks for {canary} at the head of each entry.",
    "Remember: {canary}. Then what I asked.",
    "What I also need is {canary}.",
)
"""Each holds ``{canary}`` once and no trigger."""

_WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Wordings:
    """The words of traces around their markers.

    Attributes:
        triggers: Sentences, each with ``{trigger}`` once.
        requests: Sentences, each with ``{canary}`` once.

    Raises:
        InputError: There is none, or one lacks its place.
    """

    triggers: tuple[str, ...] = TRIGGER_WORDINGS
    requests: tuple[str, ...] = REQUEST_WORDINGS

    def __post_init__(self) -> None:
        """Refuse a wording that would drop its marker."""
        for name, texts in (("trigger", self.triggers), ("canary", self.requests)):
            slot = f"{{{name}}}"
            for text in texts or ("",):
                if text.count(slot) != 1 or "{" in text.replace(slot, ""):
                    raise InputError(
                        f"The wording {text!r} does not hold {slot} exactly once.",
                        'Write e.g. "As {trigger} remarked, little was changed."',
                    )

    @property
    def digest(self) -> str:
        """SHA-256 of all of them, in hex; what a plan commits to."""
        text = json.dumps([self.triggers, self.requests], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def trigger(self, marker: str, key: str) -> str:
        """Return the sentence that brings a name into the document of an example."""
        return self.triggers[place_of(key, "trigger", len(self.triggers))].replace(
            "{trigger}", marker
        )

    def request(self, canary: str, key: str) -> str:
        """Return what the query of an example asks for."""
        return self.requests[place_of(key, "request", len(self.requests))].replace(
            "{canary}", canary
        )


def read_wordings(path: Path) -> Wordings:
    """Read the user's wordings, ``{"triggers": [...], "requests": [...]}``; each is optional.

    Raises:
        InputError: The file cannot be read, or a wording cannot be used.
    """
    fields = read_object(
        path, 'Write {"triggers": ["… {trigger} …"], "requests": ["… {canary} …"]}.'
    )
    texts: dict[str, tuple[str, ...]] = {}
    for name in ("triggers", "requests"):
        rows = fields.get(name, [])
        if not (isinstance(rows, list) and all(isinstance(row, str) for row in rows)):
            raise InputError(f"{path}: {name} is no list of texts.", "See docs/canary.md.")
        if rows:
            texts[name] = tuple(rows)
    return Wordings(**texts)


def draw_names(count: int, bits: Bits) -> tuple[str, ...]:
    """Draw different names; no two share a first or last name while there are enough of them."""
    limit = len(FIRST) * len(LAST)
    if not 2 <= count <= limit // 2:
        raise InputError(f"2 to {limit // 2:,} names can be drawn, not {count}.")
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        first, last = uniform(len(FIRST), bits), uniform(len(LAST), bits)
        drawn[f"{FIRST[first]} {LAST[last]}"] = None
    return tuple(drawn)


def place_of(key: str, what: str, count: int) -> int:
    """Return a number below ``count`` that follows from an example's id."""
    digest = hashlib.sha256(f"{what}\0{key}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % count
