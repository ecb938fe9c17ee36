"""SAGE's roles as turns: name attributes, extract them, write from them, judge, rewrite.

Records come from the grammars, and the grammar knows the value of every slot: it labels what a
large model would have to be asked for. Names, contacts, addresses and reference numbers identify:
they are never extracted, are replaced in what is written, and are a judge's ground. The requests
are those that :mod:`ragwitness.defenses.synthetic` sends, taken from its own generators.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from ragwitness.defenses.synthetic.agents import (
    BEGIN,
    DOMAINS,
    END,
    SAFE,
    SUGGEST,
    Domain,
    MakingConfig,
)
from ragwitness.defenses.synthetic.base import Steps
from ragwitness.defenses.synthetic.guard import SyntheticGuard
from ragwitness.defenses.synthetic.sage import (
    Attribute,
    extract,
    generate,
    identify,
    judge,
    rewrite,
)
from ragwitness.types import Document
from research.reader.grammar.domains import DOMAINS as GRAMMARS
from research.reader.questions import record_text

TRAINED = ("clinic", "chat", "support", "contract", "biography", "news", "encyclopedia")
HELD_OUT = ("personnel",)
ROLES = {"identify": 0.1, "extract": 0.34, "write": 0.2, "judge": 0.24, "rewrite": 0.12}
_SLOT = re.compile(r"\{(\w+)\}")

NAMES = {
    "symptom": ("symptoms", "complaints"),
    "condition": ("diagnosis", "illness", "condition"),
    "drug": ("treatment", "medication", "medicine"),
    "test": ("next steps", "examination", "tests"),
    "part": ("affected part", "part of the body"),
    "food": ("diet", "food"),
    "advice": ("advice for prevention", "advice"),
    "product": ("product", "goods"),
    "fault": ("problem", "what is wrong", "fault"),
    "money": ("costs", "amounts", "price"),
    "department": ("department", "team"),
    "skill": ("skills", "training"),
    "job": ("occupation", "trade", "job"),
    "clause": ("terms", "duties"),
    "sight": ("surroundings", "sights"),
    "dish": ("food", "dishes"),
    "lab": ("measurements", "values"),
    "topic": ("topic", "subject"),
    "creature": ("species", "animal"),
    "habitat": ("habitat", "where it lives"),
    "thing": ("project", "what is planned"),
    "colour": ("colour",),
    "specialist": ("specialist", "whom to see"),
    "dose": ("dose", "amount"),
    "frequency": ("how often", "frequency"),
    "opinion": ("opinion", "judgement"),
    "feeling": ("mood", "worries"),
    "trait": ("character", "traits"),
}
GENERIC = {
    "person": "somebody",
    "first": "the person",
    "last": "the person",
    "doctor": "a specialist",
    "place": "the town",
    "org": "the organisation",
    "street": "the address",
    "phone": "the given number",
    "email": "the given address",
    "code": "the reference",
    "date": "that day",
    "age": "some",
    "year": "that year",
}
GROUNDS = {
    "person": "names",
    "first": "names",
    "last": "names",
    "doctor": "names",
    "street": "addresses",
    "phone": "telephone numbers",
    "email": "e-mail addresses",
    "code": "reference numbers",
}
_PLAIN_FORMS = ("one text of the same kind, in the same language", "one record of the same kind")

# The medical domain's attributes are sentences of a kind, not values of a slot.
_MEDICAL = {
    "symptoms": lambda p: "{symptom}" in p and "?" not in p,
    "medical history": lambda p: any(
        w in p for w in ("diagnosed", "also take", "relatives had", "same problem", "surgery")
    ),
    "worries": lambda p: "{feeling}" in p or "worse" in p,
    "recent events": lambda p: any(
        w in p for w in ("went to", "was given", "after I ate", "{test} on {date}", "report says")
    ),
    "what is asked": lambda p: "?" in p,
    "assessment": lambda p: any(
        w in p for w in ("looks like", "cause is", "due to", "caused by", "a little high")
    ),
    "reassurance": lambda p: any(
        w in p
        for w in (
            "nothing to worry",
            "settle in",
            "understand your",
            "Wish you",
            "Take care",
            "gone through",
        )
    ),
    "treatment": lambda p: "{drug}" in p and "{dose}" in p,
    "next steps": lambda p: any(
        w in p for w in ("need a {test}", "consult a", "Follow up", "will show")
    ),
    "advice for prevention": lambda p: any(
        w in p for w in ("{advice}", "Avoid {food}", "glasses of water", "Rest the")
    ),
}


@dataclass
class RoleTurn:
    """One request of an agent with its answer, and what a check of an answer needs."""

    role: str
    user: str
    answer: str
    first: float = 3.0
    pairs: list[tuple[str, list[str]]] = field(default_factory=list)
    unsafe: bool = False
    text: str = ""
    private: list[str] = field(default_factory=list)


@lru_cache(maxsize=1)
def _guard() -> SyntheticGuard:
    """A guard that is never asked: naming attributes is one question before any check."""
    return SyntheticGuard([])


def _sent(steps: Steps[object]) -> str:
    """The prompt that a step of the defense sends first."""
    return next(steps)[0].prompt


def _domain(
    parts: tuple[str, ...], names: tuple[tuple[str, ...], ...], records: str, form: str
) -> MakingConfig:
    return MakingConfig(
        domain=Domain("own", records=records, parts=parts, attributes=names, form=form)
    )


def _slots(pattern: str) -> list[str]:
    return _SLOT.findall(pattern)


def _identifying(pattern: str) -> bool:
    return any(slot in GROUNDS for slot in _slots(pattern))


class _Record:
    """A record, the values of its slots, and a new text that tells the same without persons."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.text, self.kept, self.made = record_text(rng, name)
        self.private = [
            value for slot, values in self.kept.items() if slot in GROUNDS for value in values
        ]

    def pairs(self, absent: int = 1) -> list[tuple[str, str, list[str]]]:
        """(slot, attribute, values), ``absent`` of them without values."""
        rng = self.rng
        slots = [slot for slot in self.kept if slot in NAMES]
        others = [slot for slot in NAMES if slot not in self.kept]
        rng.shuffle(slots)
        slots = slots[: rng.randint(2, 5)] + rng.sample(others, absent)
        rng.shuffle(slots)
        return [
            (s, rng.choice(NAMES[s]), list(dict.fromkeys(self.kept.get(s, [])))[:3]) for s in slots
        ]

    def medical(self) -> list[tuple[str, str, list[str]]]:
        """(part, attribute, sentences) of a patient's and a doctor's attributes."""
        patient, doctor = DOMAINS["medical"].attributes
        found = []
        for part, names in (("Patient", patient), ("Doctor", doctor)):
            own = GRAMMARS[self.name].first if part == "Patient" else GRAMMARS[self.name].second
            for name in names:
                able = [
                    s
                    for p, s in self.made
                    if p in own and _MEDICAL[name](p) and not _identifying(p)
                ]
                found.append((part, name, able[:2]))
        return found

    def generic(self, pattern: str, sentence: str) -> str:
        """The sentence with general words for what identifies."""
        parts = re.split(r"\{\w+\}", pattern)
        match = re.match("(?s)" + "(.+?)".join(map(re.escape, parts)) + "$", sentence)
        if match is None:
            return sentence
        made, values = parts[0], match.groups()
        for slot, value, part in zip(_slots(pattern), values, parts[1:], strict=True):
            made += (
                GENERIC[slot] if slot in GENERIC and slot not in ("age", "date", "year") else value
            ) + part
        return made

    def rewritten(self, pairs: list[tuple[str, str, list[str]]]) -> str:
        """A text with every value of ``pairs``, in their order, in sentences of the domain."""
        domain, rng, parts = GRAMMARS[self.name], self.rng, list[str]()
        for slot, attribute, values in pairs:
            for value in values:
                able = [
                    p
                    for p in (*domain.first, *domain.second)
                    if _slots(p).count(slot) == 1
                    and all(s == slot or s in GENERIC for s in _slots(p))
                ]
                pattern = (
                    rng.choice(able)
                    if able and rng.random() < 0.6
                    else f"The {attribute}: {{{slot}}}."
                )
                parts.append(_told(pattern, slot, value))
        return " ".join(parts)


def _told(pattern: str, slot: str, value: str) -> str:
    """The pattern with ``value`` in ``slot`` and general words in every other."""
    return _SLOT.sub(lambda m: value if m.group(1) == slot else GENERIC[m.group(1)], pattern)


def role_turn(rng: random.Random, held_out: bool = False, role: str | None = None) -> RoleTurn:
    """A turn of one of ``ROLES`` about a fresh record; ``held_out`` takes an untrained kind."""
    role = role or rng.choices(list(ROLES), list(ROLES.values()))[0]
    record = _Record(rng, rng.choice(HELD_OUT if held_out else TRAINED))
    makers: dict[str, Callable[[_Record], RoleTurn]] = {
        "identify": _identify,
        "extract": _extract,
        "write": _write,
        "judge": _judge,
        "rewrite": _rewrite,
    }
    return makers[role](record)


def _identify(record: _Record) -> RoleTurn:
    rng = record.rng
    records = [record, *(_Record(rng, record.name) for _ in range(rng.randint(1, 2)))]
    counts: dict[str, int] = {}
    for one in records:
        for slot in one.kept:
            if slot in NAMES:
                counts[slot] = counts.get(slot, 0) + len(one.kept[slot])
    names = list(dict.fromkeys(NAMES[s][0] for s in sorted(counts, key=lambda s: (-counts[s], s))))[
        :5
    ]
    config = MakingConfig(domain=Domain("auto", count=5), shots=len(records))
    documents = [Document(id=str(n), text=one.text) for n, one in enumerate(records)]
    user = _sent(identify(documents, config, _guard()))
    return RoleTurn("identify", user, "\n".join(f"- [{name}]" for name in names))


def _extract(record: _Record) -> RoleTurn:
    rng = record.rng
    medical = record.name in ("clinic", "chat") and rng.random() < 0.5
    if medical:
        triples = record.medical()
        config = MakingConfig(domain=DOMAINS["medical"])
        attributes: list[Attribute] = [(part, name) for part, name, _ in triples]
    else:
        triples = record.pairs()
        records = rng.choice(("a record", "a text", "a record", "a letter"))
        config = _domain((), (tuple(n for _, n, _ in triples),), records, _PLAIN_FORMS[0])
        attributes = [("", name) for _, name, _ in triples]
    user = _sent(extract(Document(id="r", text=record.text), attributes, config))
    lines, part = [], ""
    for (of, name), (_, _, values) in zip(attributes, triples, strict=True):
        if of != part:
            lines.append(f"{of}:")
            part = of
        lines.append(f"- [{name}]: {(' ' if medical else ', ').join(values) or 'none'}")
    pairs = [(name, values) for (_, name, values) in triples]
    return RoleTurn("extract", user, "\n".join(lines), 1.0, pairs=pairs, private=record.private)


def _write(record: _Record) -> RoleTurn:
    rng = record.rng
    medical = record.name in ("clinic", "chat") and rng.random() < 0.5
    if medical:
        triples = [t for t in record.medical() if t[2]]
        config = MakingConfig(domain=DOMAINS["medical"])
        told = [((part, name), " ".join(values)) for part, name, values in triples]
        halves = [
            [v for p, _, values in triples if p == part for v in values]
            for part in ("Patient", "Doctor")
        ]
        new = f"Patient: {' '.join(dict.fromkeys(halves[0])) or 'What should I do?'}\nDoctor: " + (
            " ".join(dict.fromkeys(halves[1])) or "Please see a doctor."
        )
        pairs = [(name, values) for _, name, values in triples]
    else:
        slots = record.pairs(absent=0)
        config = _domain((), (tuple(n for _, n, _ in slots),), "a record", rng.choice(_PLAIN_FORMS))
        told = [(("", name), ", ".join(values)) for _, name, values in slots]
        new, pairs = record.rewritten(slots), [(name, values) for _, name, values in slots]
        if record.private and rng.random() < 0.3:  # a name slipped in: it is not written on
            told.insert(rng.randrange(len(told) + 1), (("", "from"), rng.choice(record.private)))
    user = _sent(generate(told, config, record.text))
    return RoleTurn("write", user, new, pairs=pairs, private=record.private)


def _version(record: _Record, unsafe: bool) -> tuple[str, list[str]]:
    """A new text for the record; an unsafe one has sentences that identify, and their grounds."""
    rng, domain = record.rng, GRAMMARS[record.name]
    if rng.random() < 0.5:
        sentences = [record.generic(p, s) for p, s in record.made]
        rng.shuffle(sentences)
        sentences = sentences[: rng.randint(2, 6)]
    else:
        sentences = re.split(r"(?<=[.?!])\s+", record.rewritten(record.pairs(0))) or [
            domain.first[0]
        ]
    grounds: set[str] = set()
    leaks = [(p, s) for p, s in record.made if _identifying(p)]
    if unsafe and leaks:
        for pattern, sentence in rng.sample(leaks, min(len(leaks), rng.randint(1, 2))):
            grounds |= {GROUNDS[s] for s in _slots(pattern) if s in GROUNDS}
            sentences.insert(rng.randrange(len(sentences) + 1), sentence)
    return " ".join(sentences), sorted(grounds)


def _config_for(record: _Record) -> MakingConfig:
    medical = record.name in ("clinic", "chat") and record.rng.random() < 0.5
    if medical:
        return MakingConfig(domain=DOMAINS["medical"])
    return _domain((), (("topic",),), "a record", record.rng.choice(_PLAIN_FORMS))


def _judge(record: _Record) -> RoleTurn:
    text, grounds = _version(record, record.rng.random() < 0.55)
    config = _config_for(record)
    user = _sent(judge(text, Document(id="r", text=record.text), config, 0))
    answer = (
        f"{SUGGEST}\nRemove the {' and the '.join(grounds)}."
        if grounds
        else f"SAFE_DATA: {BEGIN}{text}{END}{SAFE}"
    )
    return RoleTurn("judge", user, answer, 8.0, unsafe=bool(grounds), text=text)


def _rewrite(record: _Record) -> RoleTurn:
    rng = record.rng
    pairs = [(p, s) for p, s in record.made]
    rng.shuffle(pairs)
    pairs = pairs[: rng.randint(2, 6)]
    text = " ".join(sentence for _, sentence in pairs)
    grounds = sorted({GROUNDS[s] for p, _ in pairs for s in _slots(p) if s in GROUNDS})
    feedback = f"Remove the {' and the '.join(grounds)}." if grounds else "Say it in other words."
    config = _domain((), (("topic",),), "a record", rng.choice(_PLAIN_FORMS))
    user = _sent(rewrite(text, feedback, config, 0, record.text))
    new = " ".join(record.generic(p, s) for p, s in pairs)
    private = [v for p, s in pairs for v in record.private if v in s]
    return RoleTurn("rewrite", user, new, 3.0, text=text, private=private)
