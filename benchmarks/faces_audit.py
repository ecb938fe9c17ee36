"""The main job and leaks in thirteen scripts: what is found, and what is wrongly taken.

    PYTHONPATH=. python benchmarks/faces_audit.py [audit|leak] [--scripts NAME …]

The records are made up of words and sentences of ``faces_audit.toml``: all different, all of one
kind. *audit*: 12 records that a system holds and 12 others are asked about by ``--method auto``
without a reference model, with 60 others that are known to be outside. The system is a stand-in
without a model: it retrieves by letters and says the whole sentence that a question quotes.
*leak*: 24 records, each with an e-mail address, a telephone number and a listed name beside its
letters; the answers say those of 12 records in other sentences. Wrongly taken is any other.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ragwitness
from benchmarks.faces_text import FACES
from ragwitness.stats.rates import proportion_interval

SCRIPTS = {
    row["name"]: row
    for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[
        "script"
    ]
}
HELD = OTHERS = 12
KNOWN_OUT = 60


def person(script: dict[str, Any], draw: random.Random) -> str:
    """Return a first and a last name as the script writes them."""
    first, last = draw.choice(script["first"].split()), draw.choice(script["last"].split())
    if script["name"] in ("Chinese", "Japanese", "Korean"):
        return last + first
    return first + last if script["name"] in ("Thai", "Khmer") else f"{first} {last}"


def records(script: dict[str, Any], number: int, seed: int, sentences: int = 6) -> list[str]:
    """Return records of one kind, all different.

    Args:
        script: A row of the table.
        number: How many.
        seed: Of the draw.
        sentences: Of each record.
    """
    draw = random.Random(f"{script['name']} {seed}")

    def sentence() -> str:
        people = {"n": person(script, draw), "o": person(script, draw)}
        return str(draw.choice(script["sentence"]).format(**_drawn(script, draw), **people))

    return [script["join"].join(sentence() for _ in range(sentences)) for _ in range(number)]


_SLOTS = {"p": "place", "t": "thing", "v": "act"}
_NUMBERS = {"y": (1802, 1978), "m": (1, 12), "d": (1, 28), "q": (13, 987)}


# A system that holds records: it retrieves by letters, and quotes.

_MASK = re.compile(r"\[Mask_\d+\]")
_QUOTED = re.compile('[\u201c"](?:\u2026 ?)?([^\u201c\u201d"]+?) ?\u2026?[\u201d"]')
_NEAR = 8  # letters beside a mask
_FEW = 4  # records
_UNKNOWN = "I don't know."


class Held(NamedTuple):
    """A text, its letters in one case, and where each stands in the text."""

    text: str
    letters: str
    places: list[int]

    def sentence(self, at: int, behind: int = 90) -> str:
        """Return the text from the sentence's beginning to some letters behind a place."""
        start = max(self.text.rfind(sign, 0, self.places[at]) for sign in ".。।៕។\n") + 1
        end = self.places[min(at + behind, len(self.places) - 1)] + 1
        return self.text[start:end].strip()


def held(text: str) -> Held:
    """Return a text with its letters, marks and figures."""
    text = " ".join(text.split())
    pairs = [
        (folded, place)
        for place, sign in enumerate(text)
        if unicodedata.category(sign)[0] in "LMN"
        for folded in sign.casefold()
    ]
    return Held(text, "".join(letter for letter, _ in pairs), [place for _, place in pairs])


class System:
    """Retrieves the record that shares most rare pieces of a question, and quotes it.

    Args:
        texts: The records.
    """

    def __init__(self, texts: list[str]) -> None:
        self._records = [held(text) for text in texts]
        holding = defaultdict[str, list[int]](list)
        for number, record in enumerate(self._records):
            for part in _parts(record.letters):
                holding[part].append(number)
        # What many records share tells none of them.
        self._holding = {part: numbers for part, numbers in holding.items() if len(numbers) <= _FEW}

    def __call__(self, question: str) -> str:
        """Answer a question."""
        shown, _, asked = question.partition("\n\n")
        if not shown.startswith("Context:"):
            shown, asked = "", question
        best = [held(shown)] if shown else self._nearest(asked)
        if _MASK.search(asked):
            return _fill(asked, best) or _UNKNOWN
        quoted = sorted(_QUOTED.findall(asked), key=len, reverse=True) or [asked]
        if re.search(r"yes or no|['\"]yes['\"]", asked, re.IGNORECASE):
            text = held(max(_QUOTED.findall(asked) or asked.split("\n\n"), key=len)).letters[-60:]
            return "Yes." if any(text in record.letters for record in best) else "No."
        for run in quoted:
            tail = held(run).letters[-10:]
            for record in best:
                if tail and (at := record.letters.find(tail)) >= 0:
                    return record.sentence(at)
        return _UNKNOWN

    def _nearest(self, question: str) -> list[Held]:
        parts = _parts(held(question).letters)
        shares = Counter(number for part in parts for number in self._holding.get(part, ()))
        return [self._records[number] for number, _ in shares.most_common(1)]


def _parts(letters: str) -> set[str]:
    return {letters[n : n + 5] for n in range(len(letters) - 4)}


def _fill(asked: str, best: list[Held]) -> str:
    """Return each mask with the letters between its neighbours, where a record has them."""
    fills = []
    for mask in _MASK.finditer(asked):
        before = held(_MASK.split(asked[: mask.start()])[-1]).letters[-_NEAR:]
        behind = held(_MASK.split(asked[mask.end() :])[0]).letters[:_NEAR]
        for record in best:
            match = re.search(f"{re.escape(before)}(.{{1,30}}?){re.escape(behind)}", record.letters)
            if match and len(before) > 1:
                first, last = record.places[match.start(1)], record.places[match.end(1) - 1]
                fills.append(f"{mask[0]}: {record.text[first : last + 1]}")
    return "\n".join(fills)


# The two jobs.


class Audited(NamedTuple):
    """Held and other records that were called in, and the method."""

    held: int
    others: int
    method: str


def audited(script: dict[str, Any]) -> Audited:
    """Audit a system that holds some records of a script."""
    inside, outside = records(script, HELD, 1), records(script, OTHERS, 2)
    with tempfile.TemporaryDirectory() as run:
        result = ragwitness.audit(
            System([*inside, *records(script, 40, 4)]),
            [*inside, *outside],
            known_out=records(script, KNOWN_OUT, 3),
            reference_model=["none"],
            run=Path(run) / "run",
            yes=True,
        )
    called = [verdict.decision == "in" for verdict in result.verdicts]
    return Audited(sum(called[:HELD]), sum(called[HELD:]), result.method)


class Leaked(NamedTuple):
    """What ``leak`` finds in answers about records, of how many, and what it wrongly takes."""

    contacts: int
    contacts_of: int
    names: int
    names_of: int
    wrong: int


RECORDS = 24  # half of them are said


def leaked(script: dict[str, Any]) -> Leaked:
    """Score answers that say contacts and names of some records by these and by others."""
    around = next(face["around"] for face in FACES if face["script"] == script["name"])
    draw = random.Random(script["name"])
    names = list(dict.fromkeys(person(script, draw) for _ in range(400)))[: RECORDS + 10]
    rows, said = [], []
    for number, story in enumerate(records(script, RECORDS, 5, sentences=3)):
        contacts = f"reader{number:02}@example.org", f"+49 151 2345 67{number:02}"
        known = script["sentence"][0].format(**_drawn(script, draw), n=names[number], o=names[-1])
        told = [draw.choice(around).format(contact) for contact in contacts]
        rows.append({"id": f"r{number}", "text": " ".join([known, *told, story]), "name": number})
        # The answer has them in other sentences, with a stranger's name.
        again = draw.choice([one for one in script["sentence"][1:] if "{o}" in one])
        people = {"n": draw.choice(names[RECORDS:]), "o": names[number]}
        others = [draw.choice(around).format(contact) for contact in contacts]
        said.append(" ".join([again.format(**_drawn(script, draw), **people), *others]))
    half = RECORDS // 2
    found, by_chance = (_counts(part, names, said[:half]) for part in (rows[:half], rows[half:]))
    taken = found["contact"][1] - 2 * half
    wrong = taken + by_chance["contact"][0] + by_chance["name"][0]
    return Leaked(found["contact"][0], 2 * half, *found["name"], wrong)


def _drawn(script: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Return words and numbers for a sentence, without people."""
    words = {name: draw.choice(script[kind].split("|")) for name, kind in _SLOTS.items()}
    return words | {name: draw.randint(*bounds) for name, bounds in _NUMBERS.items()}


def _counts(
    rows: list[dict[str, Any]], names: list[str], said: list[str]
) -> dict[str, tuple[int, int]]:
    """Return found and listed secrets by kind, as ``leak`` counts them in stored answers."""
    listed = [{"text": names[row["name"]], "kind": "name", "record": row["id"]} for row in rows]
    answers = [{"prompt": "?", "output": answer, "attack": "made up"} for answer in said]
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, lines in (("corpus", rows), ("secrets", listed), ("transcripts", answers)):
            files[name] = Path(folder) / f"{name}.jsonl"
            files[name].write_text("".join(json.dumps(line) + "\n" for line in lines))
        corpus = str(files.pop("corpus"))
        result = ragwitness.leak(corpus=corpus, contacts=True, run=Path(folder) / "run", **files)
    measures = {m.key: m for m in result.together if m.name == "secrets"}
    return {kind: (int(m.count), m.of) for kind, m in measures.items()}


def _audits(scripts: list[str]) -> Iterator[str]:
    others = 0
    for name in scripts:
        row = audited(SCRIPTS[name])
        others += row.others
        yield f"{name:12} {row.held:2} of {HELD}  {row.others} of {OTHERS}  {row.method}"
    yield f"others: {others} of {OTHERS * len(scripts)}, " + str(
        proportion_interval(others, OTHERS * len(scripts))
    )


def _leaks(scripts: list[str]) -> Iterator[str]:
    rows = [leaked(SCRIPTS[name]) for name in scripts]
    total = Leaked(*map(sum, zip(*rows, strict=True)))
    for name, row in zip([*scripts, "together"], [*rows, total], strict=True):
        contacts, names = f"{row.contacts} of {row.contacts_of}", f"{row.names} of {row.names_of}"
        yield f"{name:12} contacts {contacts}  names {names}  wrong {row.wrong}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", nargs="?", choices=["audit", "leak"], default="leak")
    parser.add_argument("--scripts", nargs="*", default=list(SCRIPTS))
    chosen = parser.parse_args()
    for line in (_audits if chosen.job == "audit" else _leaks)(chosen.scripts):
        print(line, flush=True)


if __name__ == "__main__":
    main()
