"""Questions about records of our own and about any text, each with words of the text as its answer.

A record's grammar knows the value of every slot. Of other text a run of words is asked for with
the words around it: rough questions, which teach where an answer stands rather than grammar.
"""

from __future__ import annotations

import random
import re

from research.reader.grammar.domains import DOMAINS
from research.reader.grammar.words import PHRASES, Values
from research.reader.stories import Asked, Lexicon
from research.reader.turns import STOP_WORDS

# Records: the pattern of every sentence is known, and so is what may be asked about its slots.

_SLOT = re.compile(r"\{(\w+)\}")
_WH = {
    "person": "who",
    "first": "who",
    "last": "who",
    "doctor": "which doctor",
    "place": "where",
    "org": "which organisation",
    "street": "at which address",
    "phone": "on which number",
    "email": "at which address",
    "date": "when",
    "time": "at what time",
    "year": "in which year",
    "age": "how old",
    "money": "how much",
    "small": "how many",
    "number": "how many",
    "big": "how many",
    "drug": "which drug",
    "condition": "which illness",
    "symptom": "what",
    "test": "which test",
    "part": "which part",
    "food": "which food",
    "product": "which product",
    "fault": "what",
    "department": "which department",
    "skill": "what",
    "job": "what",
    "dose": "how much",
    "frequency": "how often",
    "code": "which number",
    "specialist": "which specialist",
}


def filled(pattern: str, values: Values, kept: dict[str, list[str]]) -> str:
    """The pattern with a value in each slot; the values are added to ``kept`` by slot."""

    def value(match: re.Match[str]) -> str:
        slot = match.group(1)
        made = values.rng.choice(PHRASES[slot]) if slot in PHRASES else values.makers[slot]()
        kept.setdefault(slot, []).append(made)
        return made

    return _SLOT.sub(value, pattern)


def record_text(
    rng: random.Random, name: str, sentences: int = 4
) -> tuple[str, dict[str, list[str]], list[tuple[str, str]]]:
    """A record of the domain ``name``, the values of its slots, its (pattern, sentence) pairs."""
    domain, values, kept = DOMAINS[name], Values(rng), dict[str, list[str]]()
    first, second = (
        rng.sample(patterns, min(len(patterns), rng.randint(2, sentences)))
        for patterns in (domain.first, domain.second)
    )
    made = [(pattern, filled(pattern, values, kept)) for pattern in (*first, *second)]
    cut = len(first)
    opening, middle = filled(rng.choice(domain.openings), values, {}), rng.choice(domain.middles)
    halves = [" ".join(sentence for _, sentence in part) for part in (made[:cut], made[cut:])]
    return f"{opening}{halves[0]} {middle}{halves[1]}", kept, made


def record_questions(rng: random.Random, made: list[tuple[str, str]]) -> Asked:
    """Questions about the slots of a record's sentences."""
    asked = []
    for pattern, sentence in made:
        slots = [slot for slot in _SLOT.findall(pattern) if slot in _WH]
        if not slots:
            continue
        slot = rng.choice(slots)
        parts = re.split(r"\{\w+\}", pattern)
        at = _SLOT.findall(pattern).index(slot)
        match = re.match("(?s)" + "(.+?)".join(re.escape(part) for part in parts) + "$", sentence)
        if match:
            before, after = (
                sentence[: match.start(at + 1)].split(),
                sentence[match.end(at + 1) :].split(),
            )
            rest = [
                w
                for w in (*before[-8:], *after[:8])
                if w.lower() not in STOP_WORDS or rng.random() < 0.6
            ]
            asked.append((_question(_WH[slot], rest, rng), match.group(at + 1)))
    return asked


def _question(asks: str, rest: list[str], rng: random.Random) -> str:
    helper = rng.choice(("", "", "did ", "is ", "was ", "does "))
    text = " ".join(word.strip('.,;:?!"()') for word in rest)
    return f"{asks[0].upper()}{asks[1:]} {helper}{text}?"


# Any text: definitions, reasons, and runs of words that are asked for.

_JOINTS = {
    "because": "Why",
    "since": "Why",
    "so": "What for",
    "by": "How",
    "when": "When",
    "if": "When",
    "which": "What",
    "that": "What",
    "to": "What for",
    "in": "Where",
    "for": "What for",
    "with": "With what",
    "from": "From where",
    "until": "Until when",
    "before": "When",
    "after": "When",
}


def free_question(words: list[str], rng: random.Random, lexicon: Lexicon) -> tuple[str, str] | None:
    """A rough question about a stretch of ``words``; None where none can be made."""
    kind = rng.random()
    if kind < 0.25:
        return _definition(words, rng)
    if kind < 0.6:
        return _clause(words, rng, lexicon)
    return _run(words, rng, lexicon)


def _definition(words: list[str], rng: random.Random) -> tuple[str, str] | None:
    heads = [i for i in range(len(words) - 4) if words[i].endswith(":") and words[i][:-1].isalpha()]
    if not heads:
        return None
    at = rng.choice(heads)
    answer = []
    for word in words[at + 1 : at + 18]:
        answer.append(word)
        if word[-1:] in ".;:":
            break
    text = " ".join(answer).strip(' .,;:"()')
    head = words[at][:-1]
    ask = rng.choice(
        (
            f"What is {head}?",
            f"What does {head} mean?",
            f"What is meant by {head}?",
            f"Define {head}.",
            f"Explain {head}.",
            f"What is a {head}?",
        )
    )
    return (ask, text) if len(text.split()) > 1 else None


def _reworded(words: list[str], rng: random.Random, lexicon: Lexicon) -> list[str]:
    """Words of a question: some function words lost, a few words exchanged for synonyms."""
    keep = rng.uniform(0.4, 1.0)
    made = []
    for word in words:
        core = word.strip('.,;:?!"()').lower()
        if core in STOP_WORDS and rng.random() > keep:
            continue
        other = lexicon.synonyms.get(core)
        made.append(other if other and rng.random() < 0.12 else word.strip('.,;:?!"()'))
    return [word for word in made if word]


def _clause(words: list[str], rng: random.Random, lexicon: Lexicon) -> tuple[str, str] | None:
    """What follows a joint is asked for with what precedes it."""
    places = [
        i
        for i in range(4, len(words) - 2)
        if words[i].lower() in _JOINTS and not any(w[-1:] in ".?!;:" for w in words[i - 3 : i])
    ]
    if not places:
        return None
    at = rng.choice(places)
    start = max(
        (i + 1 for i in range(max(0, at - 14), at) if words[i][-1:] in ".?!;:"),
        default=max(0, at - 14),
    )
    answer = []
    for word in words[at : at + rng.choice((6, 9, 12))]:
        answer.append(word)
        if word[-1:] in ".,;:?!)":
            break
    text = " ".join(answer[1:] if rng.random() < 0.6 else answer).strip(' .,;:"()')
    asks = _JOINTS[words[at].lower()]
    rest = _reworded(words[start:at], rng, lexicon)
    helper = rng.choice(("", "did", "does", "is", "was", "are", "do"))
    question = " ".join([asks, *([helper] if helper else []), *rest]) + "?"
    return (question, text) if text and len(rest) > 1 else None


def _run(words: list[str], rng: random.Random, lexicon: Lexicon) -> tuple[str, str] | None:
    """A run of one to six words is asked for with the words around it."""
    at = rng.randrange(max(1, len(words) - 10))
    window = words[at : at + rng.randint(8, 18)]
    size = rng.choice((1, 1, 2, 2, 3, 4, 6))
    starts = [
        i
        for i in range(1, len(window) - size)
        if window[i - 1].lower() in STOP_WORDS or rng.random() < 0.2
    ]
    if not starts:
        return None
    i = rng.choice(starts)
    span = " ".join(window[i : i + size]).strip(' .,;:?!"()')
    before, after = window[:i], window[i + size :]
    if not span or span.lower() in STOP_WORDS or any(mark in span for mark in ".?!\n"):
        return None
    asks = "What"
    if span[0].isdigit():
        asks = rng.choice(("How many", "What number", "How much", "When"))
    elif before[-1].lower() in ("in", "at", "near", "from", "into"):
        asks = rng.choice(("Where", "What"))
    elif span[0].isupper():
        asks = rng.choice(("Who", "What", "Which"))
    rest = _reworded([*before[:-1], *after], rng, lexicon)
    helper = rng.choice(("", "did", "does", "is", "was", "are"))
    return " ".join([asks, *([helper] if helper else []), *rest]) + "?", span
