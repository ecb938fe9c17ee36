r"""Marks: documents whose words are drawn by lot before they are shared, at real chat models.

::

    PYTHONPATH=. python experiments/real/marks.py ask MODEL DATA fairytaleqa.jsonl \
        --marker SMOLLM2 --condition plain --work WORK
    PYTHONPATH=. python experiments/real/marks.py table --work WORK

MODEL and the marker are folders of transformers (``weights.py convert``) or GGUF files.

Of each document some words are drawn by lot, each from two that read about equally well: its own,
and one that a small chat model (the marker) finds the likeliest in its place among some words of
other documents that end alike. Ten marked documents are indexed beside three hundred others, ten
are not. Each mark is asked about once, in a wording that is drawn by lot too: "go on" asks which
of two runs before the mark is right, as ``runon`` does, and reads which of the pair the answer goes
on with; "choose" names both words, in an order by lot. No
question depends on a lot, so the answers about a document that is not indexed do not either: its
hits are Binomial(answered, 1/2), whatever the target knows, remembers or prefers. The level is
measured by drawing the lots anew, 3,000 times, against the answers that were given.

Conditions: ``plain`` (LangChain's prompt), ``own words`` (a prompt that forbids repeating what was
retrieved), ``German`` (generated German documents and German questions). A filter that withholds
every answer with six words of a passage in a row is applied to each of them afterwards.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

MARKS = 9
"""Marks of a document at most."""

LEFT, RIGHT = 10, 3
"""Words of the document before and behind a mark that a question quotes."""

CANDIDATES = 12
"""Words that are tried in the place of a word."""

DOCUMENTS = 10
"""Marked documents that are indexed, and as many that are not."""

ROOM = 48
"""Tokens of an answer at most."""

ENOUGH = 20.0
"""E-value from which on a document is asked about no further."""

DRAWS = 3_000
"""Documents with lots drawn anew, by which the level is measured."""

STAKE = 0.9
"""Share of the wealth that is bet on each answer."""

WORDINGS = {
    ("go on", "en"): (
        "Which is right, \u201c\u2026{altered} \u2026\u201d or \u201c\u2026{left} \u2026\u201d?",
        'Which of these stands in the text: "{altered} \u2026" or "{left} \u2026"?'
        " Give the whole sentence.",
    ),
    ("go on", "de"): (
        "Was ist richtig, \u201e\u2026{altered} \u2026\u201c oder \u201e\u2026{left} \u2026\u201c?",
        'Welches davon steht im Text: "{altered} \u2026" oder "{left} \u2026"?'
        " Gib den ganzen Satz wieder.",
    ),
    ("choose", "en"): (
        "Is it \u201c\u2026{left} {a} {right}\u2026\u201d"
        " or \u201c\u2026{left} {b} {right}\u2026\u201d?",
        "I remember \u201c\u2026{left} \u2026\u201d,"
        " then either \u201c{a}\u201d or \u201c{b}\u201d. Which one was it?",
    ),
    ("choose", "de"): (
        "Hei\u00dft es \u201e\u2026{left} {a} {right}\u2026\u201c"
        " oder \u201e\u2026{left} {b} {right}\u2026\u201c?",
        "Ich erinnere mich an \u201e\u2026{left} \u2026\u201c,"
        " dann entweder \u201e{a}\u201c oder \u201e{b}\u201c. Was davon war es?",
    ),
}
"""Questions, by form and language. 'Go on' sends neither word: what is asked ends before it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A word of a document that is drawn by lot.

    Attributes:
        place: Number of the word.
        pair: The document's own word and the other.
        left: The words before it.
        altered: The same with one word exchanged.
        right: The words behind it.
    """

    place: int
    pair: tuple[str, str]
    left: str
    altered: str
    right: str


def find_marks(text: str, pool: Sequence[str], marker: Any, seed: str) -> list[Mark]:
    """Choose the words that are marked, apart from each other, and the other word of each.

    Args:
        text: The document.
        pool: Words of other documents.
        marker: Says how well a text reads: texts to log-probabilities.
        seed: Of the choice.
    """
    words, draw = text.split(), random.Random(seed)
    counts = Counter(re.findall(r"\w+", text))

    def alike(word: str) -> list[str]:
        """Words of other documents that end alike and that this one lacks."""
        forms = (one for one in pool if one[-2:] == word[-2:] and one not in counts)
        return [one for one in forms if one[0].isupper() == word[0].isupper()]

    places = [
        place
        for place, word in enumerate(words)
        if LEFT <= place < len(words) - RIGHT
        and re.fullmatch(r"[^\W\d_]{5,11}", word)
        and counts[word] == 1
        # A quotation stops at a comma, and would end early at a mark of its own.
        and words[place - 1][-1].isalnum()
        and not re.search('["\u201c\u201d\u201e]', " ".join(words[place - LEFT : place]))
    ]
    draw.shuffle(places)
    chosen, found = list[int](), list[Mark]()
    for place in places:
        if len(found) == MARKS:
            break
        # No question quotes another mark.
        if any(abs(place - one) <= LEFT for one in chosen) or len(alike(words[place])) < 3:
            continue
        # 1. The word that is exchanged in the question, three or more before the mark.
        left = words[place - LEFT : place]
        able = [n for n in range(2, LEFT - 3) if re.fullmatch(r"[^\W\d_]{4,}", left[n])]
        able = [n for n in able if alike(left[n])]
        if not able:
            continue
        at = able[-1]
        altered = [*left[:at], draw.choice(alike(left[at])), *left[at + 1 :]]
        # 2. The other word of the mark: the one that reads best.
        tried = draw.sample(alike(words[place]), min(CANDIDATES, len(alike(words[place]))))
        before = " ".join(words[max(0, place - 2 * LEFT) : place])
        behind = " ".join(words[place + 1 : place + 1 + 2 * RIGHT])
        told = marker([f"{before} {one} {behind}" for one in tried])
        other = tried[max(range(len(tried)), key=lambda n: told[n])]
        right = " ".join(words[place + 1 : place + 1 + RIGHT])
        found.append(Mark(place, (words[place], other), " ".join(left), " ".join(altered), right))
        chosen.append(place)
    return found


def marked(text: str, marks: Sequence[Mark], lots: Sequence[int]) -> str:
    """Return the copy that is shared."""
    words = text.split()
    for mark, lot in zip(marks, lots, strict=True):
        words[mark.place] = mark.pair[lot]
    return " ".join(words)


def question(mark: Mark, form: str, language: str, draw: random.Random) -> tuple[str, int]:
    """Return a question about a mark, and the number of its wording."""
    a, b = draw.sample(mark.pair, 2)
    wordings = WORDINGS[form, language]
    number = draw.randrange(len(wordings))
    said = wordings[number].format(left=mark.left, altered=mark.altered, right=mark.right, a=a, b=b)
    return said, number


def chosen(answer: str, pair: Sequence[str]) -> int | None:
    """Return which of the two words an answer names; None where it names none or both."""
    said = set(re.findall(r"\w+", answer.lower()))
    named = [place for place, word in enumerate(pair) if word.lower() in said]
    return named[0] if len(named) == 1 else None


def withheld(answer: str, passages: Sequence[str], size: int = 6) -> bool:
    """Whether an answer holds so many words of a passage in a row."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}

    return bool(runs(answer) & set().union(*map(runs, passages)))


# Asking.


def reads_well(source: Path) -> Any:
    """Return a function from texts to log-probabilities under a chat model."""
    import torch

    from experiments.real.weights import load

    torch.set_num_threads(1)
    model, tokenizer = load(source)
    tokenizer.padding_side = "right"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token

    def told(texts: Sequence[str]) -> list[float]:
        given = tokenizer(list(texts), return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            logits = model(**given).logits[:, :-1].float()
        each = torch.log_softmax(logits, -1).gather(2, given.input_ids[:, 1:, None])[..., 0]
        return list((each * given.attention_mask[:, 1:]).sum(1).tolist())

    return told


def german_texts(count: int) -> list[str]:
    """Return generated German documents of nine sentences or so."""
    from experiments.real.collect import documents_of

    parts = [one.text for one in documents_of("de", 3 * count)]
    return [" ".join(parts[3 * n : 3 * n + 3]) for n in range(count)]


def ask(given: argparse.Namespace) -> None:
    """Mark, index, ask about every mark, and keep what was answered."""
    from experiments.real.table import Application, RealModel, texts_of
    from ragwitness.targets.wire import read_chat

    language = "de" if given.condition == "German" else "en"
    prompt = "defended" if given.condition == "own words" else "langchain"
    # 1. Texts, in another order than that of the other measurements.
    texts = [t for t in texts_of(given.data / given.corpus) if 110 <= len(t.split()) <= 220]
    random.Random(7).shuffle(texts)
    if language == "de":
        texts = german_texts(150)
    ours, others = texts[: 2 * DOCUMENTS], texts[2 * DOCUMENTS : 2 * DOCUMENTS + 300]
    pool = sorted({w for text in others for w in re.findall(r"[^\W\d_]{5,11}", text)})
    # 2. Marks and lots; a document's marks do not depend on its lots.
    kept = given.work / f"marks-of-{language}.json"
    if kept.exists():
        stored = json.loads(kept.read_text("utf-8"))
        marks = [[Mark(at, tuple(pair), *sides) for at, pair, *sides in one] for one in stored]
    else:
        marker = reads_well(given.marker)
        marks = [find_marks(text, pool, marker, f"marks {n}") for n, text in enumerate(ours)]
        plain = [[[m.place, m.pair, m.left, m.altered, m.right] for m in each] for each in marks]
        kept.write_text(json.dumps(plain, ensure_ascii=False), "utf-8")
    key = random.Random("key of the owner")
    lots = [[key.randrange(2) for _ in each] for each in marks]
    shared = [marked(t, m, lot) for t, m, lot in zip(ours, marks, lots, strict=True)]
    # 3. Half of them are indexed.
    application = Application([*shared[:DOCUMENTS], *others], *given.passages, prompt)
    model = RealModel(
        given.model, given.work / f"marks-{given.model.stem}.jsonl", given.batch, "cpu", 16
    )
    rows, bodies = list[dict[str, Any]](), list[dict[str, Any]]()
    for number, (each, lot) in enumerate(zip(marks, lots, strict=True)):
        draw = random.Random(f"questions {number}")
        for mark, one in zip(each, lot, strict=True):
            said, wording = question(mark, given.form, language, draw)
            passages = application.retrieve(said)
            row = {"model": given.model.stem, "condition": given.condition, "document": number}
            row |= {"form": given.form}
            row |= {"inside": number < DOCUMENTS, "lot": one, "pair": mark.pair, "wording": wording}
            there = f"{mark.left} {mark.pair[one]}"
            row |= {
                "retrieved": any(there in passage for passage in passages),
                "passages": passages,
            }
            rows.append(row)
            messages = application.messages(said)
            bodies.append({"messages": messages, "max_tokens": ROOM, "temperature": 0.0})
    print(f"{given.condition}: {len(bodies)} questions", file=sys.stderr, flush=True)
    with (given.work / "marks-rows.jsonl").open("a", encoding="utf-8") as out:
        for row, body in zip(rows, model.ask(bodies), strict=True):
            answer = read_chat(body).text
            row |= {"answer": answer, "chosen": chosen(answer, row["pair"])}
            row["withheld"] = withheld(answer, row.pop("passages"))
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


# What the answers tell.


def verdict(hits: Sequence[bool | None]) -> tuple[float, float, int]:
    """Return p-value, e-value and number of questions of one document.

    The p-value is that of all marks that were answered, whose number does not depend on the lots.
    For the e-value a document is asked no further once it is enough, or cannot be any more.
    """
    told = [hit for hit in hits if hit is not None]
    tail = sum(comb(len(told), n) for n in range(sum(told), len(told) + 1)) / 2 ** len(told)
    wealth, asked = 1.0, 0
    for place, hit in enumerate(hits):
        if wealth >= ENOUGH or wealth * (1 + STAKE) ** (len(hits) - place) < ENOUGH:
            break
        asked += 1
        if hit is not None:
            wealth *= 1 + STAKE if hit else 1 - STAKE
    return tail, wealth, asked


@dataclass(frozen=True)
class Told:
    """The answers about all documents of one model and condition.

    Attributes:
        rows: A mark each.
        filtered: Whether the filter withholds answers.
    """

    rows: Sequence[Mapping[str, Any]]
    filtered: bool

    def named(self, row: Mapping[str, Any]) -> int | None:
        """Return which word of the pair was named, as far as the filter lets it through."""
        return None if self.filtered and row["withheld"] else row["chosen"]

    def side(self, inside: bool) -> list[Mapping[str, Any]]:
        """Return the marks of the documents inside, or of the others."""
        return [row for row in self.rows if row["inside"] == inside]

    def right(self, inside: bool) -> str:
        """Return how many answers name the word that the lot chose, of those that name one."""
        answered = [row for row in self.side(inside) if self.named(row) is not None]
        hits = sum(self.named(row) == row["lot"] for row in answered)
        return f"{hits} of {len(answered)} of {len(self.side(inside))}"

    def verdicts(
        self, inside: bool, draw: random.Random | None = None
    ) -> list[tuple[float, float, int]]:
        """Return the verdict of each document; with lots drawn anew where there is a draw."""
        found = defaultdict[int, list[bool | None]](list)
        for row in self.side(inside):
            lot, said = row["lot"] if draw is None else draw.randrange(2), self.named(row)
            found[row["document"]].append(None if said is None else said == lot)
        return [verdict(hits) for hits in found.values()]


def line(model: str, condition: str, told: Told) -> str:
    """Return a line of the table."""
    from ragwitness.stats.evaluation import proportion_interval

    members, others = told.verdicts(True), told.verdicts(False)
    draw, anew = random.Random(3), list[tuple[float, float, int]]()
    while len(anew) < DRAWS:
        anew += told.verdicts(False, draw)
    found = sum(e >= ENOUGH for _, e, _ in members)
    low, high = proportion_interval(found, len(members))
    retrieved = sum(row["retrieved"] for row in told.side(True))
    asked = [sum(n for *_, n in side) / len(side) for side in (members, others)]
    cells = [
        model,
        condition + (", filter of 6 words" if told.filtered else ""),
        f"{retrieved}/{len(told.side(True))}",
        told.right(True),
        told.right(False),
        f"{found}/{len(members)} [{low:.2f}, {high:.2f}]",
        f"{sum(p <= 0.05 for p, _, _ in members)}/{len(members)}",
        f"{sum(e >= ENOUGH for _, e, _ in others)}/{len(others)}",
        f"{sum(p <= 0.05 for p, _, _ in others)}/{len(others)}",
        f"{asked[0]:.1f}, {asked[1]:.1f}",
        f"{sum(e >= ENOUGH for _, e, _ in anew)}, {sum(p <= 0.05 for p, _, _ in anew)}"
        f" of {len(anew)}",
    ]
    return "| " + " | ".join(cells) + " |"


def table(work: Path) -> str:
    """Return what was found, by condition, and the level over lots drawn anew."""
    latest = {}
    for text in (work / "marks-rows.jsonl").read_bytes().splitlines():
        row = json.loads(text)
        latest[row["model"], row["condition"], row["form"], row["document"], *row["pair"]] = row
    groups = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for row in latest.values():
        groups[row["model"], f"{row['condition']}, {row['form']}"].append(row)
    lines = [
        "| model | condition | marks retrieved | right of answered of asked, inside | the same,"
        " others | members e >= 20 | members p <= .05 | others e >= 20 | others p <= .05 |"
        " questions: members, others | lots anew: e >= 20, p <= .05 |",
        "|---" * 11 + "|",
    ]
    for (model, condition), rows in sorted(groups.items()):
        lines += [line(model, condition, Told(rows, filtered)) for filtered in (False, True)]
    lines += ["", "Right of answered by wording, inside:", ""]
    for (model, condition), rows in sorted(groups.items()):
        for number in sorted({row["wording"] for row in rows}):
            part = [row for row in rows if row["wording"] == number]
            right = Told(part, False).right(True)
            lines.append(f"- {model}, {condition}, wording {number + 1}: {right}")
    return "\n".join(lines)


def main() -> None:
    """Ask, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("ask", "table"):
        step = steps.add_parser(name)
        step.add_argument("--work", type=Path, required=True)
        if name == "ask":
            step.add_argument("model", type=Path)
            step.add_argument("data", type=Path)
            step.add_argument("corpus")
            step.add_argument("--marker", type=Path, required=True)
            step.add_argument(
                "--condition", default="plain", choices=("plain", "own words", "German")
            )
            step.add_argument("--form", default="go on", choices=("go on", "choose"))
            step.add_argument("--passages", nargs=3, type=int, default=[500, 100, 2], metavar="N")
            step.add_argument("--batch", type=int, default=32)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.step == "ask":
        ask(given)
    else:
        print(table(given.work))


if __name__ == "__main__":
    main()
