"""Stories that know their questions, and the words that they are told in.

A question comes with its answer, a few words that stand in the story. Names and things are drawn,
so no question can be answered without the story.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from research.reader.grammar.words import Values

Asked = list[tuple[str, str]]
"""(question, answer) pairs."""


# Words from WordNet, so that stories are about more than a page of words.


@dataclass(frozen=True)
class Lexicon:
    """Words by kind, and for some of them one other word of the same meaning."""

    nouns: tuple[str, ...] = ()
    adjectives: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    synonyms: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, work: Path) -> Lexicon:
        """Read it from the unpacked Debian package ``wordnet-base``; empty without the package."""
        cache = work / "text" / "lexicon.json"
        if not cache.exists():
            folder = work / "packages" / "wordnet-base" / "usr" / "share" / "wordnet"
            if not folder.is_dir():
                return cls()
            cache.write_text(json.dumps(_read_wordnet(folder)), "utf-8")
        words, synonyms = json.loads(cache.read_text("utf-8"))
        return cls(tuple(words["noun"]), tuple(words["adj"]), tuple(words["verb"]), synonyms)


def _read_wordnet(folder: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Plain words of several senses (the common ones), and a synonym in the first sense."""
    common: dict[str, list[str]] = {}
    synonyms: dict[str, str] = {}
    for kind in ("verb", "adj", "noun"):
        lines = (folder / f"data.{kind}").read_text("utf-8").split("\n")
        members = {
            line[:8]: line.split()[4 : 4 + 2 * int(line.split()[3], 16) : 2]
            for line in lines
            if line[:1].isdigit()
        }
        found = []
        for line in (folder / f"index.{kind}").read_text("utf-8").split("\n"):
            parts = line.split()
            if not (line[:1].isalpha() and parts[0].isalpha() and 2 < len(parts[0]) < 12):
                continue
            word, senses = parts[0], int(parts[2])
            if senses >= 2:
                found.append(word)
            first = next((part for part in parts[4:] if len(part) == 8 and part.isdigit()), "")
            other = [one for one in members.get(first, []) if one.isalpha() and one.islower()]
            other = [one for one in other if one != word]
            if other and len(word) > 3:
                synonyms[word] = other[0]
        common[kind] = found
    return common, synonyms


# Stories: who did what, where, when, why, how they felt, and what they said.

_ADJECTIVES = (
    "old young brave poor clever golden silver little wicked kind proud blind wild lazy tall grey "
    "broken small great strange beautiful ugly hungry rich faithful wise"
).split()
_WHO = (
    "king queen prince princess fisherman giant miller shepherd widow witch hunter sailor maiden "
    "tailor soldier fox wolf dwarf merchant boy girl bear hare fairy ogre cook servant monk crow "
    "farmer smith"
).split()
_THING = (
    "ring sword basket cake horse apple cloak letter key lamp cup fish feather rope boat box bird "
    "stone crown drum shoe bell mirror loaf net coat bread wood water fire meat sheep cow table"
).split()
_PLACE = (
    "forest castle river mill garden well mountain cave bridge town harbour kitchen tower field "
    "island palace stable cottage cellar market sea shore wood road door gate hut hill"
).split()
_IRREGULAR = [
    tuple(pair.split(":"))
    for pair in (
        "took:take found:find hid:hide lost:lose bought:buy sold:sell stole:steal broke:break "
        "threw:throw saw:see made:make kept:keep left:leave gave_away:give_away brought:bring "
        "caught:catch ate:eat forgot:forget wore:wear drank:drink built:build held:hold sent:send "
        "met:meet fed:feed rode:ride drew:draw won:win heard:hear chose:choose cut:cut "
        "picked_up:pick_up carried:carry buried:bury dropped:drop"
    ).split()
]
_REGULAR = (
    "wash paint burn want open mend follow touch kill save help visit watch guard love follow call "
    "ask trust kiss chase clean cook turn push pull wish order answer attack gather fill lock "
    "search"
).split()
_FEELINGS = (
    "sad glad angry afraid proud ashamed lonely tired happy jealous worried grateful surprised "
    "hungry curious miserable scared pleased frightened delighted upset excited"
).split()
_PREPOSITIONS = "in near behind under beside at from into by outside".split()
_NUMBERS = "two three four five six seven nine twelve twenty hundred".split()
_SPEECH = ("said", "said", "cried", "answered", "replied", "asked", "whispered")
_FILL = (
    "And so the day went by.",
    "It was getting dark.",
    "Nobody knew what would happen.",
    "The wind blew and the rain fell.",
    "So it went on for a long time.",
    "There was great rejoicing.",
    "Now this was a great pity.",
    "For a while all was well.",
)


def past(verb: str) -> str:
    """The past form of a regular verb."""
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + "ed"


@dataclass(frozen=True)
class _Event:
    """What a sentence may tell: two persons, two deeds with their things, a place, a feeling."""

    draw: _Words
    subject: str
    named: str
    who: str
    whom: str
    he: str
    did: str
    do: str
    did2: str
    do2: str
    what: str
    other: str
    where: str
    feeling: str


class _Words:
    """Draws the words of a story: mostly from our lists, some from the lexicon."""

    def __init__(self, rng: random.Random, lexicon: Lexicon) -> None:
        self.rng, self.lexicon = rng, lexicon

    def word(self, more: tuple[str, ...], own: Sequence[str]) -> str:
        return self.rng.choice(more) if more and self.rng.random() < 0.35 else self.rng.choice(own)

    def noun(self, own: Sequence[str]) -> str:
        return self.word(self.lexicon.nouns, own)

    def adjective(self) -> str:
        return self.word(self.lexicon.adjectives, _ADJECTIVES)

    def thing(self) -> str:
        rng = self.rng
        noun = self.noun(_THING)
        if rng.random() < 0.4:
            noun = f"{self.adjective()} {noun}"
        made = f"{rng.choice(('the', 'the', 'a', 'his', 'her', 'some', 'the'))} {noun}"
        return f"{made} of the {rng.choice(_WHO)}" if rng.random() < 0.12 else made

    def place(self) -> str:
        noun = self.noun(_PLACE)
        if self.rng.random() < 0.25:
            noun = f"{self.adjective()} {noun}"
        return f"{self.rng.choice(_PREPOSITIONS)} the {noun}"

    def deed(self) -> tuple[str, str]:
        """Past and base form of a verb."""
        if self.rng.random() < 0.5:
            did, do = self.rng.choice(_IRREGULAR)
            return did.replace("_", " "), do.replace("_", " ")
        verb = self.word(self.lexicon.verbs, _REGULAR)
        return past(verb), verb

    def event(self, cast: list[str], last: str) -> _Event:
        """Two persons of ``cast``; who was told of last may be called by a pronoun."""
        rng = self.rng
        subject, other = rng.sample(cast, 2)
        did, do = self.deed()
        did2, do2 = self.deed()
        what, thing, where = self.thing(), self.thing(), self.place()
        he = rng.choice(("he", "she"))
        named = he.capitalize() if subject == last and rng.random() < 0.55 else subject
        more = self.lexicon.adjectives
        feeling = self.word(more, _FEELINGS) if rng.random() < 0.3 else rng.choice(_FEELINGS)
        return _Event(
            self,
            subject,
            named,
            _inside(subject),
            _inside(other),
            he,
            did,
            do,
            did2,
            do2,
            what,
            thing,
            where,
            feeling,
        )


_Told = tuple[str, Asked]
"""A sentence, and what can be asked about it."""


def _did(e: _Event) -> _Told:
    rng = e.draw.rng
    if rng.random() < 0.4:
        with_ = rng.choice((f"with {e.other}", f"for {e.whom}", f"and {e.did2} {e.other}"))
        return f"{e.named} {e.did} {e.what} {e.where} {with_}.", [
            (f"what did {e.who} {e.do} {e.where}?", e.what),
            (f"where did {e.who} {e.do} {e.what}?", e.where),
            (f"who {e.did} {e.what}?", e.subject),
            (f"what did {e.who} do {e.where}?", f"{e.did} {e.what}"),
            (f"what did {e.who} do?", f"{e.did} {e.what} {e.where}"),
        ]
    return f"{e.named} {e.did} {e.what} {e.where}.", [
        (f"what did {e.who} {e.do}?", e.what),
        (f"where did {e.who} {e.do} {e.what}?", e.where),
        (f"who {e.did} {e.what} {e.where}?", e.subject),
        (f"what did {e.who} do {e.where}?", f"{e.did} {e.what}"),
        (f"what happened {e.where}?", f"{e.who} {e.did} {e.what}"),
    ]


def _felt(e: _Event) -> _Told:
    rng = e.draw.rng
    by = rng.choice((e.he, e.whom))
    because = f"{by} {'had ' if rng.random() < 0.3 else ''}{e.did2} {e.other}"
    word = rng.choice(("was", "was", "felt", "became"))
    form = rng.choice(
        (
            f"{e.named} {word} {e.feeling} because {because}.",
            f"{e.named} {word} very {e.feeling}, for {because}.",
            f"When {because}, {e.who} {word} {e.feeling}.",
        )
    )
    return form, [
        (f"how did {e.who} feel?", e.feeling),
        (f"how did {e.who} feel when {because}?", e.feeling),
        (f"why was {e.who} {e.feeling}?", because),
        (f"why did {e.who} feel {e.feeling}?", because),
        (f"who {word} {e.feeling}?", e.subject),
        (f"how was {e.who}?", e.feeling),
    ]


def _when(e: _Event) -> _Told:
    word = e.draw.rng.choice(("When", "As soon as", "While", "After", "Before", "As"))
    low = word.lower()
    return f"{word} {e.whom} {e.did2} {e.other}, {e.who} {e.did} {e.what}.", [
        (f"what did {e.who} do {low} {e.whom} {e.did2} {e.other}?", f"{e.did} {e.what}"),
        (f"what happened {low} {e.whom} {e.did2} {e.other}?", f"{e.who} {e.did} {e.what}"),
        (f"what happened when {e.whom} {e.did2} {e.other}?", f"{e.who} {e.did} {e.what}"),
        (f"what did {e.who} {e.do}?", e.what),
        (f"when did {e.who} {e.do} {e.what}?", f"{low} {e.whom} {e.did2} {e.other}"),
    ]


def _said(e: _Event) -> _Told:
    rng = e.draw.rng
    words = rng.choice(
        (
            f"I have {e.did2} {e.other}",
            f"Give me {e.other}",
            f"You must {e.do2} {e.other} {e.where}",
            f"Who {e.did2} {e.other}?",
            f"I will {e.do2} {e.other} for you",
            f"Do not {e.do2} {e.other}",
            f"Let us {e.do2} {e.other}",
            f"If you {e.do2} {e.other}, I will {e.do} {e.what}",
        )
    )
    end = "" if words.endswith("?") else ","
    told = f"to {e.do2} {e.other} {e.where}"
    asked = [
        (f"what did {e.who} say to {e.whom}?", words),
        (f"who spoke to {e.whom}?", e.subject),
        (f"what did {e.who} tell {e.whom}?", words),
        (f"what did {e.who} say?", words),
    ]
    if words.startswith("You must"):
        asked += [
            (f"what did {e.who} tell {e.whom} to do?", told[3:]),
            (f"what must {e.whom} do?", told[3:]),
        ]
    if words.startswith("I will"):
        asked += [(f"what will {e.who} do?", f"{e.do2} {e.other}")]
    return f'"{words}{end}" {rng.choice(_SPEECH)} {e.who} to {e.whom}.', asked


def _told(e: _Event) -> _Told:
    word, base = e.draw.rng.choice(
        (
            ("told", "tell"),
            ("asked", "ask"),
            ("ordered", "order"),
            ("begged", "beg"),
            ("advised", "advise"),
            ("taught", "teach"),
        )
    )
    return f"{e.named} {word} {e.whom} to {e.do} {e.what} {e.where}.", [
        (f"what did {e.who} {base} {e.whom} to do?", f"{e.do} {e.what} {e.where}"),
        (f"who {word} {e.whom} to {e.do} {e.what}?", e.subject),
        (f"whom did {e.who} {base} to {e.do} {e.what}?", e.whom),
        (f"what did {e.who} {base} {e.whom}?", f"to {e.do} {e.what} {e.where}"),
    ]


def _wanted(e: _Event) -> _Told:
    to = f"the {e.draw.noun(_PLACE)}"
    word, base = e.draw.rng.choice(
        (
            ("wanted", "want"),
            ("wished", "wish"),
            ("tried", "try"),
            ("decided", "decide"),
            ("promised", "promise"),
        )
    )
    return f"{e.named} {word} to {e.do} {e.what}, and so {e.he} went to {to}.", [
        (f"what did {e.who} {base} to do?", f"{e.do} {e.what}"),
        (f"where did {e.who} go?", to),
        (f"why did {e.who} go to {to}?", f"{word} to {e.do} {e.what}"),
        (f"who {word} to {e.do} {e.what}?", e.subject),
    ]


def _went(e: _Event) -> _Told:
    to = f"the {e.draw.noun(_PLACE)}"
    went, go = e.draw.rng.choice(
        (
            ("went", "go"),
            ("ran", "run"),
            ("came", "come"),
            ("hurried", "hurry"),
            ("rode", "ride"),
            ("climbed", "climb"),
        )
    )
    return f"{e.named} {went} to {to} to {e.do} {e.what}.", [
        (f"where did {e.who} {go}?", f"to {to}"),
        (f"why did {e.who} {go} to {to}?", f"to {e.do} {e.what}"),
        (f"who {went} to {to}?", e.subject),
        (f"what did {e.who} want to do?", f"{e.do} {e.what}"),
    ]


def _saw(e: _Event) -> _Told:
    saw, see = e.draw.rng.choice(
        (("saw", "see"), ("met", "meet"), ("found", "find"), ("heard", "hear"))
    )
    return f"{e.named} {saw} {e.whom} {e.where}, who {e.did2} {e.other}.", [
        (f"who did {e.who} {see} {e.where}?", e.whom),
        (f"where did {e.who} {see} {e.whom}?", e.where),
        (f"what did {e.whom} do?", f"{e.did2} {e.other}"),
        (f"who {e.did2} {e.other}?", e.whom),
        (f"who {saw} {e.whom}?", e.subject),
    ]


def _had(e: _Event) -> _Told:
    number, goods = e.draw.rng.choice(_NUMBERS), e.draw.noun(_THING) + "s"
    return f"{e.named} had {number} {goods} and lived {e.where}.", [
        (f"how many {goods} did {e.who} have?", number),
        (f"where did {e.who} live?", e.where),
        (f"what did {e.who} have?", f"{number} {goods}"),
        (f"who lived {e.where}?", e.subject),
    ]


def _gave(e: _Event) -> _Told:
    gave, give = e.draw.rng.choice(
        (
            ("gave", "give"),
            ("promised", "promise"),
            ("showed", "show"),
            ("sent", "send"),
            ("offered", "offer"),
            ("brought", "bring"),
        )
    )
    tail = e.draw.rng.choice((f" in return for {e.other}", f" {e.where}", ""))
    asked = [
        (f"what did {e.who} {give} {e.whom}?", e.what),
        (f"who {gave} {e.whom} {e.what}?", e.subject),
        (f"what did {e.who} {give} to {e.whom}?", e.what),
        (f"whom did {e.who} {give} {e.what}?", e.whom),
    ]
    if "return" in tail:
        asked.append((f"what did {e.who} want in return?", e.other))
    return f"{e.named} {gave} {e.whom} {e.what}{tail}.", asked


def _after(e: _Event) -> _Told:
    first = e.draw.rng.choice((e.he, e.who))
    return f"After {first} {e.did} {e.what}, {e.who} {e.did2} {e.other} {e.where}.", [
        (f"what did {e.who} do after {e.he} {e.did} {e.what}?", f"{e.did2} {e.other}"),
        (f"where did {e.who} {e.do2} {e.other}?", e.where),
        (f"what happened after {e.who} {e.did} {e.what}?", f"{e.who} {e.did2} {e.other} {e.where}"),
    ]


def _because(e: _Event) -> _Told:
    reason = e.draw.rng.choice(
        (
            f"{e.he} was {e.feeling}",
            f"{e.whom} {e.did2} {e.other}",
            f"{e.he} wanted {e.other}",
            f"there was no {e.other.split()[-1]}",
            f"{e.whom} was {e.feeling}",
        )
    )
    word = e.draw.rng.choice(("because", "because", "for", "since", "as"))
    negated = e.draw.rng.random() < 0.3
    told = (
        f"{e.named} did not {e.do} {e.what} {word} {reason}."
        if negated
        else f"{e.named} {e.did} {e.what} {word} {reason}."
    )
    return told, [
        (
            f"why did {e.who} {e.do} {e.what}?"
            if not negated
            else f"why didn't {e.who} {e.do} {e.what}?",
            reason,
        ),
        (
            f"why did {e.who} {e.do} {e.what}?"
            if not negated
            else f"why did {e.who} not {e.do} {e.what}?",
            f"{word} {reason}" if word == "because" else reason,
        ),
        (
            f"what did {e.who} do because {reason}?"
            if not negated
            else f"what did {e.who} not {e.do}?",
            f"{e.did} {e.what}" if not negated else e.what,
        ),
    ]


def _so(e: _Event) -> _Told:
    join = e.draw.rng.choice((", so ", ", and so ", ", and then ", "; therefore ", ", and "))
    return f"{e.named} {e.did} {e.what}{join}{e.whom} {e.did2} {e.other} {e.where}.", [
        (
            f"what happened after {e.who} {e.did} {e.what}?",
            f"{e.whom} {e.did2} {e.other} {e.where}",
        ),
        (f"what happened because {e.who} {e.did} {e.what}?", f"{e.whom} {e.did2} {e.other}"),
        (f"what did {e.whom} do?", f"{e.did2} {e.other} {e.where}"),
        (f"why did {e.whom} {e.do2} {e.other}?", f"{e.who} {e.did} {e.what}"),
        (f"what will happen when {e.who} {e.do}s {e.what}?", f"{e.whom} {e.did2} {e.other}"),
    ]


def _was(e: _Event) -> _Told:
    role = f"{e.draw.rng.choice(('a', 'the'))} {e.draw.adjective()} {e.draw.rng.choice(_WHO)}"
    relation = e.draw.rng.choice(
        "son daughter father mother brother sister wife husband friend".split()
    )
    if e.draw.rng.random() < 0.5:
        return f"{e.named} was the {relation} of {e.whom}, {role}.", [
            (f"who was {e.who}?", f"the {relation} of {e.whom}"),
            (f"who was {e.whom}?", role),
            (f"who was the {relation} of {e.whom}?", e.subject),
            (f"who was {e.whom}'s {relation}?", e.subject),
        ]
    return f"{e.named} was {role} who lived {e.where} with {e.whom}.", [
        (f"who was {e.who}?", role),
        (f"where did {e.who} live?", e.where),
        (f"who lived with {e.whom}?", e.subject),
        (f"with whom did {e.who} live?", e.whom),
        (f"what was {e.who}?", role),
    ]


# How often each is drawn.
_SENTENCES = (
    _did,
    _did,
    _did,
    _felt,
    _when,
    _said,
    _wanted,
    _had,
    _gave,
    _after,
    _because,
    _so,
    _was,
    _told,
    _saw,
    _went,
)


def _inside(name: str) -> str:
    """A name as it stands inside a sentence."""
    return name[0].lower() + name[1:] if name.startswith(("The ", "A ")) else name


def cast_of(rng: random.Random, count: int) -> list[str]:
    """Names for a story: given names, or animals and people by what they are."""
    values, found = Values(rng), list[str]()
    while len(found) < count:
        name = (
            values.first()
            if rng.random() < 0.45
            else " ".join(
                [
                    "The",
                    *([rng.choice(_ADJECTIVES)] if rng.random() < 0.5 else []),
                    rng.choice(_WHO),
                ]
            )
        )
        if name not in found:
            found.append(name)
    return found


def story(rng: random.Random, cast: list[str], words: int, lexicon: Lexicon) -> tuple[str, Asked]:
    """A story of about ``words`` words about ``cast``, and its questions with their answers."""
    draw, text, asked, last = _Words(rng, lexicon), list[str](), Asked(), ""
    while len(" ".join(text).split()) < words:
        if rng.random() < 0.12:
            text.append(rng.choice(_FILL))
            continue
        event = draw.event(cast, last)
        lead = rng.choice(("", "", "", "Then ", "At last ", "One day ", "The next morning ", "So "))
        told, questions = rng.choice(_SENTENCES)(event)
        if lead and told.startswith(event.named):
            pronoun = event.named in ("He", "She")
            name = event.named.lower() if pronoun else _inside(event.named)
            told = lead + name + told[len(event.named) :]
        text.append(told)
        asked += [(question[0].upper() + question[1:], answer) for question, answer in questions]
        last = event.subject
    return " ".join(text), asked
