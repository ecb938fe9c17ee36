"""What ``audit`` by default finds at perfect readers that answer, or refuse, in different manners.

::

    PYTHONPATH=. python benchmarks/manners.py DATA.jsonl             # a row for each manner
    PYTHONPATH=. python benchmarks/manners.py DATA.jsonl --nulls 50  # nothing inside, words guessed

DATA.jsonl holds texts under ``text``; those of 400 to 1,000 characters are used. Each target is
simulated: TF-IDF finds the two best passages, and a reader who never errs answers in one manner.
10 documents inside, 10 outside, 60 known to be outside. With ``--nulls`` no document is inside, and
the reader guesses the next word behind a run as often as ``--guess`` says: by ranks among 40 known
documents, by e-values of reference models that guess as often (the limit of the assumption), or by
marks.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ragwitness.api import audit, audit_marks
from ragwitness.core.bet import Bet
from ragwitness.core.types import Answer, Capability, Document, Query
from ragwitness.membership import references
from ragwitness.membership.e_values import Guesses
from ragwitness.membership.marks.key import MarksKey, write_key
from ragwitness.membership.marks.lots import find_lots, word_pool
from ragwitness.stats.rates import proportion_interval
from ragwitness.text.replies import plain_word
from ragwitness.text.words import core, split_words

_SHORTEST, _LONGEST = 400, 1000
_QUOTE = '[\u201c"]\u2026?(.*?) \u2026[\u201d"]'
_RUNS = re.compile(f"{_QUOTE} or {_QUOTE}", re.S)
_MASK = re.compile(r"\[Mask_(\d+)\]")
_UNKNOWN = "I don't know."

FURTHER = 0.4
"""Chance that a reader who guessed a word guesses the next one, too."""


def keys_of(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation."""
    return [plain_word(core(word.text)) for word in split_words(text) if core(word.text)]


def quoted_from(passages: Sequence[str], run: str, more: int) -> str | None:
    """Return a run as a passage has it, with the next words; None where no passage has it."""
    wanted = keys_of(run)
    for passage in passages:
        words = [word for word in split_words(passage) if core(word.text)]
        keys = [plain_word(core(word.text)) for word in words]
        for at in range(len(keys) - len(wanted) + 1):
            if keys[at : at + len(wanted)] == wanted:
                end = min(len(words), at + len(wanted) + more)
                return passage[words[at].start : words[end - 1].end]
    return None


@dataclass(frozen=True)
class Known:
    """What a reader knows about a question.

    Attributes:
        kind: ``run``, ``masks``, ``yes`` or ``other``.
        passage: The passage it is about; None where none was found.
        run: Of a question about two runs: the right one, as it stands.
        longer: The same with the next words.
        masks: Words of the masks, by number.
    """

    kind: str
    passage: str | None = None
    run: str = ""
    longer: str = ""
    masks: tuple[tuple[str, str], ...] = ()


def read(question: str, passages: Sequence[str]) -> Known:
    """Return what the passages say about a question."""
    if runs := _RUNS.search(question):
        for run in (runs[2], runs[1]):
            if longer := quoted_from(passages, run, 14):
                short = quoted_from(passages, run, 0) or ""
                passage = next(p for p in passages if longer in p)
                return Known("run", passage, short, longer)
        return Known("run")
    body = max(re.split('\n\n|[\u201c\u201d"]', question), key=len)
    wanted = set(keys_of(_MASK.sub(" ", body)))
    near = (p for p in passages if len(wanted & set(keys_of(p))) >= 0.85 * len(wanted))
    passage = next(near, None)
    if _MASK.search(question):
        return Known("masks", passage, masks=tuple(_filled(body, passage)) if passage else ())
    kind = "yes" if re.search(r"yes\W+or\W+no", question, re.I) else "other"
    return Known(kind, passage)


def _filled(body: str, passage: str) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    for mask in _MASK.finditer(body):
        before = re.findall(r"\w+", body[: mask.start()])[-3:]
        hit = before and re.search(
            r"\W+".join(map(re.escape, before)) + r"\W+(\w[\w'-]*)", passage, re.I
        )
        found.append((mask[1], hit[1] if hit else "something"))
    return found


# Manners.


def quotes(known: Known, more: bool = True) -> str:
    """Quote the passage, with or without the next words."""
    if known.kind == "yes":
        return "Yes." if known.passage else "No."
    if known.passage is None:
        return _UNKNOWN
    if known.kind == "run":
        return f"The right one is \u201c{known.longer if more else known.run}\u201d."
    if known.kind == "masks":
        return "\n".join(f"[Mask_{number}]: {word}" for number, word in known.masks)
    return known.passage[:300]


def in_german(known: Known) -> str:
    """Answer in German."""
    if known.kind == "yes":
        return "Ja." if known.passage else "Nein."
    if known.passage is None:
        return "Dazu steht in den Unterlagen nichts."
    return (
        f"Laut den Unterlagen lautet es \u201e{known.longer}\u201c." if known.run else quotes(known)
    )


def reworded(known: Known) -> str:
    """Exchange every third word of what would be quoted."""
    words = quotes(known).split()
    return " ".join(w if at % 3 else "another" for at, w in enumerate(words))


def whole_sentence(known: Known) -> str:
    """Give the sentence in which a run ends."""
    if known.passage and known.run:
        for sentence in re.split(r"(?<=[.?!])\s+", known.passage):
            if " ".join(keys_of(known.run)[-3:]) in " ".join(keys_of(sentence)):
                return sentence
    return quotes(known)


MANNERS: dict[str, Callable[[Known], str]] = {
    "quotes the passage": quotes,
    "quotes the whole sentence": whole_sentence,
    "repeats itself first": lambda known: f"{known.run}: {known.run}. {quotes(known)}",
    "begins with a preamble": lambda known: f"Thank you for your question! Sure. {quotes(known)}",
    "declines, then answers": lambda known: f"I am not certain of it. {quotes(known)}",
    "thinks first": lambda known: f"<think>The user asks for words.</think>\n{quotes(known)}",
    "answers within a sentence": lambda known: f"As for that, {quotes(known)} is what I read.",
    "German answers": in_german,
    "yes or no alone": lambda known: "Yes." if known.passage else "No.",
    "says the right run and stops": lambda known: quotes(known, more=False),
    "exchanges every third word": reworded,
    "names its sources only": lambda known: "[1]" if known.passage else "No source.",
}


def withholds(size: int) -> Callable[[str, str, Sequence[str]], str]:
    """Return a filter of answers that have so many words of a passage in a row."""

    def runs(text: str) -> set[tuple[str, ...]]:
        keys = keys_of(text)
        return {tuple(keys[at : at + size]) for at in range(len(keys) - size + 1)}

    def guard(_question: str, answer: str, passages: Sequence[str]) -> str:
        blocked = any(runs(answer) & runs(passage) for passage in passages)
        return "I can't share that." if blocked else answer

    return guard


def refuses_odd_questions(question: str, answer: str, _passages: Sequence[str]) -> str:
    """Refuse what looks like a probe."""
    odd = re.search(r"which (is right|of these)|Mask_|yes or no|context", question, re.I)
    return "Sorry, I can only help with questions about your health." if odd else answer


@dataclass
class Simulated:
    """A RAG system of a perfect reader, as a target.

    Attributes:
        index: Texts.
        manner: Writes an answer from what is known.
        guard: Changes an answer, given the question and the passages.
        threshold: Similarity below which a passage is not shown.
        remembers: Whether earlier questions are searched as well.
        guess: Chance that the next word behind a run is guessed where no passage has it.
        texts: Texts out of which words are guessed.
    """

    index: Sequence[str]
    manner: Callable[[Known], str] = quotes
    guard: Callable[[str, str, Sequence[str]], str] | None = None
    threshold: float = 0.0
    remembers: bool = False
    guess: float = 0.0
    texts: Sequence[str] = ()
    name: str = "simulated"
    capabilities: frozenset[Capability] = frozenset({Capability.TEXT})
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the index."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectors = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        self._matrix = self._vectors.fit_transform(self.index)

    def retrieve(self, question: str) -> list[str]:
        """Return the passages for a question."""
        scores = (self._matrix @ self._vectors.transform([question]).T).toarray().ravel()
        best = scores.argsort()[::-1][:2]
        return [self.index[at] for at in best if scores[at] > self.threshold]

    async def ask(self, query: Query) -> Answer:
        """Return the answer."""
        shown, _, rest = query.prompt.rpartition("\n\n")
        passages = self.retrieve(query.prompt)
        if shown.startswith("Context: "):
            passages.insert(0, shown.removeprefix("Context: "))
        else:
            rest = query.prompt
        if self.remembers:
            passages += [one for one in self.asked if one != query.prompt][-20:]
            self.asked.append(query.prompt)
        known = read(rest, passages)
        if known.passage is None and self.guess and known.kind == "run":
            known = self._guessed(rest)
        answer = self.manner(known)
        return Answer(self.guard(rest, answer, passages) if self.guard else answer)

    def _guessed(self, question: str) -> Known:
        runs = _RUNS.search(question)
        draw, more = random.Random(f"{self.name} {question}"), 0
        while more < 4 and draw.random() < (self.guess if more == 0 else FURTHER):
            more += 1
        run = runs[2] if runs else ""
        holding = [text for text in self.texts if run in text] if more else []
        longer = quoted_from(holding, run, more) or run
        return Known("run", longer, run, longer)

    async def close(self) -> None:
        """Nothing is open."""


TARGETS: dict[str, dict[str, Any]] = {
    **{name: {"manner": manner} for name, manner in MANNERS.items()},
    "quotations of 12 words blocked": {"guard": withholds(12)},
    "quotations of 20 words blocked": {"guard": withholds(20)},
    "similarity threshold .5": {"threshold": 0.5},
    "a guardrail that refuses odd questions": {"guard": refuses_odd_questions},
    "remembers what it was asked": {"remembers": True},
}


def told(count: int, n: int) -> str:
    """Return a count with its exact interval."""
    low, high = proportion_interval(count, n)
    return f"{count}/{n} [{low:.3f}, {high:.3f}]"


def row(name: str, documents: Sequence[Document]) -> str:
    """Return the row of one manner."""
    inside, outside, known = documents[:10], documents[10:20], documents[20:80]
    index = [one.text for one in (*inside, *documents[80:230])]
    target = Simulated(index, name=name, **TARGETS[name])
    asked = random.Random(1).sample([*inside, *outside], 20)
    result = audit(target, asked, known_out=known, yes=True, reference_model=["none"])
    called = {v.document for v in result.verdicts if str(v.decision) == "in"}
    found = [sum(one.id in called for one in side) for side in (inside, outside)]
    each = result.queries / 80
    return f"| {name} | {told(found[0], 10)} | {told(found[1], 10)} | {each:.1f} |"


@dataclass(frozen=True)
class Guessing:
    """Reference models that guess just as the target does: the limit of the e-values' assumption.

    Attributes:
        guess: Chance of the first word; a further one has ``FURTHER``.
    """

    guess: float

    def __call__(self, bets: Iterable[Bet]) -> tuple[tuple[str, ...], Guesses]:
        """Return the nats of each word of each won bet."""
        nats = [-math.log(self.guess), *[-math.log(FURTHER)] * 3]
        return ("guessing",), {bet: tuple(nats[: len(bet.words)]) for bet in bets}


def audited(by: str, target: Simulated, drawn: Sequence[Document], folder: Path) -> Any:
    """Return the result about eight documents that are outside, by ranks, e-values or marks."""
    if by == "marks":
        pool, draw = word_pool(drawn), random.Random(target.name)
        lots = [find_lots(one, 12, pool, draw, braces=False) for one in drawn[:8]]
        key = folder / f"{target.name}.json"
        write_key(key, MarksKey.fresh([one for one in lots if one.lots]))
        return audit_marks(target, key)
    known = {"known_out": drawn[8:], "reference_model": ["none"]}
    alone = {"reference_model": ["guessing"]}
    return audit(target, drawn[:8], yes=True, method="runon", **known if by == "ranks" else alone)


def nulls(by: str, count: int, guess: float, documents: Sequence[Document]) -> None:
    """Print how often anything is called in where nothing is inside."""
    references.references_of = lambda _names: Guessing(guess)  # type: ignore[assignment, return-value]
    texts = [" ".join(one.text.split()) for one in documents]
    accused, values, e_values = 0, list[float](), list[float]()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            drawn = random.Random(number).sample(documents, 48)
            names = {one.id for one in drawn}
            index = [one.text for one in documents if one.id not in names][:60]
            target = Simulated(index, guess=guess, texts=texts, name=f"null {number}")
            result = audited(by, target, drawn, Path(folder))
            rows = result.documents if by == "marks" else result.verdicts
            accused += any(str(row.decision) == "in" for row in rows)
            values += [row.p_value for row in rows if row.p_value is not None]
            e_values += [row.e_value for row in rows if row.e_value is not None]
    seconds = (time.process_time() - began) / count
    print(f"{by}, guess {guess}: audits with a document called in {told(accused, count)};")
    if values:
        print(f"p <= .05: {told(int(np.sum(np.array(values) <= 0.05)), len(values))};")
    if e_values:
        high = int(np.sum(np.array(e_values) >= 20))
        print(f"e >= 20: {told(high, len(e_values))}, mean e {np.mean(e_values):.3f};")
    print(f"{seconds:.2f} s of CPU an audit")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", default=list(TARGETS), metavar="MANNER")
    parser.add_argument("--nulls", type=int, default=0)
    parser.add_argument("--guess", type=float, default=0.2)
    parser.add_argument("--by", choices=("ranks", "e-values", "marks"), default="ranks")
    given = parser.parse_args()
    texts = [json.loads(line)["text"] for line in given.data.open(encoding="utf-8")]
    texts = [t for t in dict.fromkeys(texts) if _SHORTEST <= len(t) <= _LONGEST]
    random.Random(5).shuffle(texts)
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    if given.nulls:
        nulls(given.by, given.nulls, given.guess, documents[:1000])
        return
    print("| target | members in | others in | questions a document |\n|---|---|---|---|")
    for name in given.only:
        print(row(name, documents), flush=True)


if __name__ == "__main__":
    main()
