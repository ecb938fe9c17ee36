r"""Evidence on an absolute scale, at real chat models: a verdict that needs no other document.

::

    PYTHONPATH=. python experiments/real/absolute.py recorded tests/real/answers.jsonl.xz \
        --proxies SMOLLM2 QWEN05 --work WORK
    PYTHONPATH=. python experiments/real/absolute.py ask MODEL DATA fairytaleqa.jsonl langchain \
        --proxies SMOLLM2 QWEN05 --work WORK
    PYTHONPATH=. python experiments/real/absolute.py nulls MODEL \
        --proxies SMOLLM2 QWEN05 --work WORK
    PYTHONPATH=. python experiments/real/absolute.py table --work WORK

MODEL and the proxies are folders of transformers (``weights.py convert``) or GGUF files, DATA the
folder of the data sets. All answers and guesses are kept under WORK; the same command goes on.
``--questions 2`` asks no more than two about a document, and a later run with more goes on.

What is measured. A document is asked about by the questions of ``runon``, each document by itself:
nobody else's documents are known, not even for how rare a word is. Where an answer has just said
the run's last words, a bet on the document's next words is open: it was fixed before the question
was sent, and is lost unless the answer goes on with them letter by letter. It pays
1 / (guess of these words), and the guess is the largest that a chat model without the passage
(a proxy) has, given the question and the answer so far. If no guess lies below the probability at a
target that lacks the passage, the expected pay is at most 1, whatever else it does: an e-value.
Pays of one document multiply, and asking ends where they reach 20.

Three points keep that so. An answer that says the run twice opens two bets, one after the other,
not one on the better of the two. What is paid for is exactly the document's spelling: other
punctuation than the document's loses the bet. And a place at which the target went on is not asked
about in the other wording, for its second answer would be the first again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MOST_WORDS = 8
"""Words behind the run that are bet on."""

STAKES = (0.5, 0.25)
"""Shares of the wealth that are bet where an answer says the run for the first time, and later."""

CAP = 3.0
"""Nats that one word may tell at most, for a proxy is not the target (chosen by ``recorded``)."""

ENOUGH = 20.0
"""A document is asked about no further from this e-value on."""

QUESTIONS = 6
"""Most questions about a document."""


# The bet.


@dataclass(frozen=True, slots=True)
class Occasion:
    """One place of an answer where it has just said the run's last words.

    Attributes:
        before: The answer up to there.
        words: What it goes on with of the document's next words, as they stand, with what is
            before each of them.
    """

    before: str
    words: tuple[str, ...]


def next_words(document: str, run: str) -> list[str] | None:
    """Return the words behind a run, each with what stands before it; None without the run."""
    from ragwitness.text.words import core, split_words

    text = " ".join(document.split())
    at = text.find(run)
    if at < 0:
        return None
    ahead, words, end = text[at + len(run) :], list[str](), 0
    for word in split_words(ahead):
        if stem := core(word.text):
            stop = word.start + word.text.find(stem) + len(stem)
            words.append(ahead[end:stop])
            end = stop
        if len(words) == MOST_WORDS:
            break
    return words


def occasions(answer: str, tail: Sequence[str], ahead: Sequence[str]) -> list[Occasion]:
    """Return each place where an answer says the run's last words, and what it goes on with.

    Args:
        answer: The answer.
        tail: The run's last words, without case and punctuation.
        ahead: What :func:`next_words` returns.
    """
    from ragwitness.text.replies import plain_word
    from ragwitness.text.words import core, split_words

    answer = " ".join(answer.split())
    said = [word for word in split_words(answer) if core(word.text)]
    keys = [plain_word(core(word.text)) for word in said]
    found, free = list[Occasion](), 0
    for start in range(len(keys) - len(tail) + 1):
        last = said[start + len(tail) - 1]
        stem = core(last.text)
        at = last.start + last.text.find(stem) + len(stem)
        if keys[start : start + len(tail)] != list(tail) or at < free:
            continue
        words, end = list[str](), at
        for word in ahead:
            stop = end + len(word)
            if answer[end:stop] != word or answer[stop : stop + 1].isalnum():
                break
            words.append(word)
            end = stop
        found.append(Occasion(answer[:at], tuple(words)))
        free = end
    return found


def pay(won: Sequence[float], stake: float, cap: float) -> float:
    """Return what one bet pays: half of the stake is on the next word, a quarter on two, and so on.

    Args:
        won: Nats of each word that was said: minus the log of its guess.
        stake: Share of the wealth that is bet.
        cap: Nats of a word at most.
    """
    total, nats, share = 1.0 - stake, 0.0, stake / 2
    for place, one in enumerate(won):
        nats += min(one, cap)
        # The last bet gets what is left, so that the shares add up to the stake.
        total += share * (2 if place == MOST_WORDS - 1 else 1) * math.exp(nats)
        share /= 2
    return total


def worth(
    row: Mapping[str, Any], cap: float, proxies: Sequence[str], stakes: Sequence[float] = STAKES
) -> float:
    """Return the e-value of one answer; the largest guess of these proxies counts."""
    wealth = 1.0
    for place, one in enumerate(row["occasions"]):
        nats = [min(each) for each in zip(*(one["nats"][name] for name in proxies), strict=True)]
        wealth *= pay(nats, stakes[min(place, len(stakes) - 1)], cap)
    return wealth


# What a model that lacks the passage guesses.


class Proxy:
    """A chat model that is asked how likely it would say some words.

    Args:
        source: A folder of transformers or a GGUF file.
        kept: File of the guesses made so far.
    """

    def __init__(self, source: Path, kept: Path) -> None:
        self.source, self.name, self.kept = source, source.stem, kept
        self.known = {row["key"]: row["nats"] for row in rows_of(kept)}
        self._loaded: tuple[Any, Any] | None = None

    def nats(self, question: str, before: str, words: Sequence[str]) -> list[float]:
        """Return minus the log-probability of each word behind the answer so far."""
        if not words:
            return []
        key = json.dumps([question, before, *words], ensure_ascii=False)
        if key not in self.known:
            self.known[key] = self._guess(question, before, words)
            with self.kept.open("a", encoding="utf-8") as out:
                out.write(
                    json.dumps({"key": key, "nats": self.known[key]}, ensure_ascii=False) + "\n"
                )
        return list(self.known[key])

    def _guess(self, question: str, before: str, words: Sequence[str]) -> list[float]:
        import torch

        if self._loaded is None:
            from experiments.real.weights import load

            torch.set_num_threads(1)
            self._loaded = load(self.source)
        model, tokenizer = self._loaded
        asked = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
        prompt += before
        given = tokenizer(
            prompt + "".join(words),
            return_tensors="pt",
            add_special_tokens=False,
            return_offsets_mapping=True,
        )
        ids, spans = given.input_ids, given.offset_mapping[0].tolist()
        with torch.inference_mode():
            logits = model(input_ids=ids).logits[0].float()
        told = torch.log_softmax(logits[:-1], -1).gather(1, ids[0, 1:, None])[:, 0].tolist()
        ends = [len(prompt) + sum(map(len, words[: n + 1])) for n in range(len(words))]
        # A token belongs to the word in which it ends.
        totals = [0.0] * len(words)
        for (_, stop), logprob in zip(spans[1:], told, strict=True):
            if stop > len(prompt):
                totals[next(n for n, end in enumerate(ends) if stop <= end)] -= logprob
        return [round(one, 3) for one in totals]


def rated(
    question: str, found: Iterable[Occasion], proxies: Sequence[Proxy]
) -> list[dict[str, Any]]:
    """Return the occasions of an answer with every proxy's nats."""
    return [
        {
            "words": list(one.words),
            "nats": {proxy.name: proxy.nats(question, one.before, one.words) for proxy in proxies},
        }
        for one in found
    ]


# Recorded answers, on which the cap is chosen.


def tail_of(run: str, size: int = 3) -> list[str]:
    """Return the last words of a run, without case and punctuation."""
    from ragwitness.text.replies import plain_word
    from ragwitness.text.words import core, split_words

    return [plain_word(core(word.text)) for word in split_words(run) if core(word.text)][-size:]


def run_in(question: str, document: str) -> str | None:
    """Return the true run that a question of ``runon`` quotes."""
    text = " ".join(document.split())
    quoted = re.findall(r"[\u201c\"]\u2026?(.+?) \u2026[\u201d\"]", question)
    return next((one for one in quoted if one in text), None)


def read_recorded(answers: Path, proxies: Sequence[Proxy]) -> Iterator[dict[str, Any]]:
    """Yield a row for each recorded answer to a question of ``runon``."""
    for line in lzma.decompress(answers.read_bytes()).splitlines():
        row = json.loads(line)
        question, text = row["query"]["prompt"], row["text"]
        if row["method"] != "runon" or (run := run_in(question, text)) is None:
            continue
        found = occasions(row["answer"]["text"], tail_of(run), next_words(text, run) or ())
        kept = {name: row[name] for name in ("model", "language", "template", "document")}
        yield kept | {"inside": row["shown"], "occasions": rated(question, found, proxies)}


# Real models behind an application.


Asked = tuple[str, Any, list[str], list[str]]
"""A run, the query about it, the run's last words, and the document's next ones."""


def asked_about(document: Any, most: int, audit: Any) -> list[Asked]:
    """Return what ``runon`` may ask about a document, in order.

    Args:
        document: The document.
        most: Questions at most.
        audit: The method. Where it was given no documents, this one is by itself, beside the
            packaged sample, as it is for somebody who has one document.
    """
    made = list[Asked]()
    for place, query in audit._asked(document)[:most]:
        ahead = next_words(document.text, place.true)
        if ahead is not None:
            made.append((place.true, replace(query, top_logprobs=0), list(place.tail), ahead))
    return made


def runon_among(pool: Sequence[Any] = ()) -> Any:
    """Return the method, which takes from a pool of documents how rare a word is."""
    from ragwitness.membership.method_registry import build_audit, configure
    from ragwitness.membership.plan import among
    from ragwitness.membership.windows import WindowedAudit
    from ragwitness.models.model_registry import load_language_model

    audit = build_audit("runon", load_language_model("reader"), configure("runon"))
    placed = among(audit, pool) if pool else audit
    return placed.inner if isinstance(placed, WindowedAudit) else placed


def asked_once(documents: Sequence[Any], kept: Path) -> dict[str, list[Asked]]:
    """Return what is asked about each document, by its id; it takes seconds each, so it is kept."""
    from ragwitness.core.types import Query

    known = {row["text"]: row["asked"] for row in rows_of(kept)}
    found, audit = dict[str, list[Asked]](), runon_among()
    for one in documents:
        key = hashlib.sha256(one.text.encode()).hexdigest()
        if key not in known:
            made = asked_about(one, QUESTIONS, audit)
            known[key] = [
                [run, query.prompt, query.max_tokens, tail, ahead]
                for run, query, tail, ahead in made
            ]
            with kept.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"text": key, "asked": known[key]}, ensure_ascii=False) + "\n")
        found[one.id] = [
            (run, Query(prompt, room), tail, ahead) for run, prompt, room, tail, ahead in known[key]
        ]
    return found


def audited(
    cell: str,
    documents: Sequence[Any],
    answers_to: Callable[[Sequence[tuple[Any, Any]]], Sequence[str]],
    proxies: Sequence[Proxy],
    out: Path,
    most: int = QUESTIONS,
) -> None:
    """Ask about all documents side by side, each until its pays reach what is enough.

    Args:
        cell: Name of model, corpus and prompt.
        documents: In question; ``member`` says which are inside.
        answers_to: Answers a list of (document, query).
        proxies: Guess.
        out: File of the rows, written anew after each round.
        most: Questions of a document at most.
    """
    names = [proxy.name for proxy in proxies]
    asked = asked_once(documents, out.parent / "asked.jsonl")
    wealth = dict.fromkeys(asked, 1.0)
    ran_on: defaultdict[str, set[str]] = defaultdict(set)
    rows = list[dict[str, Any]]()
    for turn in range(most):
        live = []
        for one in documents:
            listed = asked[one.id]
            # A place at which the target went on is not asked about in the other wording: the
            # second answer would be the first again.
            if (
                turn < len(listed)
                and wealth[one.id] < ENOUGH
                and listed[turn][0] not in ran_on[one.id]
            ):
                live.append((one, listed[turn]))
        print(f"{cell}: question {turn + 1}, {len(live)} documents", file=sys.stderr, flush=True)
        answers = answers_to([(one, query) for one, (_, query, _, _) in live])
        for (one, (run, query, tail, ahead)), answer in zip(live, answers, strict=True):
            found = occasions(answer, tail, ahead)
            row = {"cell": cell, "document": one.id, "inside": bool(one.member), "turn": turn}
            row |= {"places": len({run for run, *_ in asked[one.id]})}
            row |= {"occasions": rated(query.prompt, found, proxies)}
            rows.append(row)
            wealth[one.id] *= worth(row, CAP, names)
            if any(each.words for each in found):
                ran_on[one.id].add(run)
        empty = [
            {
                "cell": cell,
                "document": one.id,
                "inside": bool(one.member),
                "turn": -1,
                "places": 0,
                "occasions": [],
            }
            for one in documents
            if not asked[one.id]
        ]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows + empty]
        out.write_text("".join(lines), "utf-8")
    if most == QUESTIONS:
        out.with_suffix(".done").touch()


def ask(given: argparse.Namespace, proxies: Sequence[Proxy]) -> None:
    """Measure one model on one corpus."""
    import asyncio

    from experiments.real.table import Cell

    given.n = [*given.n, 0]
    cell = Cell(given)

    def answers_to(asked: Sequence[tuple[Any, Any]]) -> list[str]:
        queries = [query for _, query in asked]
        cell.target.model.ask(cell.target.bodies(queries))
        return [asyncio.run(cell.target.ask(query)).text for query in queries]

    name = f"{given.model.stem} {given.corpus.partition('.')[0]} {given.prompt}"
    audited(
        name,
        cell.question,
        answers_to,
        proxies,
        given.work / f"cell-{name.replace(' ', '-')}.jsonl",
        given.questions,
    )


def nulls(given: argparse.Namespace, proxies: Sequence[Proxy]) -> None:
    """Ask about generated documents that no passage holds: three languages, five prompts."""
    from experiments.real.collect import LANGUAGES, POOL, PROMPTS, documents_of
    from experiments.real.table import RealModel
    from ragwitness.rag.config import TEMPLATES
    from ragwitness.targets.wire import read_chat

    model = RealModel(
        given.model, given.work / f"nulls-{given.model.stem}.jsonl", given.batch, "cpu", 16
    )
    out = given.work / f"null-rows-{given.model.stem}.jsonl"
    rows, bodies = list[dict[str, Any]](), list[dict[str, Any]]()
    for language in LANGUAGES:
        pool = documents_of(language, POOL)
        draw, audit = random.Random(f"{language} absolute"), runon_among(pool)
        # The first 60 or so are in the recorded answers, on which the cap is chosen.
        for number, document in enumerate(pool[-given.documents :]):
            others = [one.text for one in draw.sample(pool, 3) if one.text != document.text][:2]
            prompt = list(PROMPTS)[number % len(PROMPTS)]
            for _, query, tail, ahead in asked_about(document, given.each, audit):
                sent = TEMPLATES[prompt].messages(others, query.prompt)
                messages = [{"role": str(one.role), "content": one.content} for one in sent]
                bodies.append(
                    {"messages": messages, "max_tokens": query.max_tokens, "temperature": 0.0}
                )
                row = {"model": given.model.stem, "language": language, "template": prompt}
                row |= {"document": document.id, "inside": False, "question": query.prompt}
                rows.append(row | {"tail": tail, "ahead": ahead})
    order = list(range(len(rows)))
    random.Random(2).shuffle(order)  # what is done when time is up is a sample of all
    done = list[str]()
    for start in range(0, len(order), given.batch * 4):
        part = order[start : start + given.batch * 4]
        told = model.ask([bodies[one] for one in part])
        for one, body in zip(part, told, strict=True):
            row = dict(rows[one])
            found = occasions(read_chat(body).text, row.pop("tail"), row.pop("ahead"))
            row["occasions"] = rated(row.pop("question"), found, proxies)
            done.append(json.dumps(row, ensure_ascii=False) + "\n")
        out.write_text("".join(done), "utf-8")


# Tables.


def mean_interval(values: Mapping[str, Sequence[float]]) -> str:
    """Return a mean and its 95 % interval by the bootstrap over documents (4,000 draws).

    A pay that is rare and large, and did not occur, is not in such an interval.

    Args:
        values: Of each document.
    """
    import numpy as np

    if not values:
        return "none"
    sums = np.array([(sum(one), len(one)) for one in values.values()], float)
    drawn = np.random.default_rng(1).integers(len(sums), size=(4_000, len(sums)))
    draws = sums[drawn].sum(1)
    low, high = np.quantile(draws[:, 0] / draws[:, 1], (0.025, 0.975))
    total, count = sums.sum(0)
    return f"{total / count:.3f} [{low:.3f}, {high:.3f}] of {count:.0f}"


def share(hits: int, of: int) -> str:
    """Return a share with its exact 95 % interval (Clopper and Pearson)."""
    from ragwitness.stats.evaluation import proportion_interval

    low, high = proportion_interval(hits, of)
    return f"{hits}/{of} [{low:.3f}, {high:.3f}]"


def by_document(
    rows: Iterable[Mapping[str, Any]],
    cap: float,
    proxies: Sequence[str],
    stakes: Sequence[float] = STAKES,
) -> dict[str, list[float]]:
    """Return each document's e-value after each of its questions; 1 where it has none."""
    found: dict[str, list[float]] = {}
    for row in rows:
        path = found.setdefault(row["document"], [])
        before = path[-1] if path else 1.0
        path.append(before * worth(row, cap, proxies, stakes))
    return found


def pays(
    rows: Iterable[Mapping[str, Any]], cap: float, proxies: Sequence[str]
) -> dict[str, list[float]]:
    """Return what each question paid, by document."""
    found = defaultdict[str, list[float]](list)
    for row in rows:
        if row.get("turn", 0) >= 0:
            found[f"{row.get('model')} {row['document']}"].append(worth(row, cap, proxies))
    return found


def returned(
    rows: Iterable[Mapping[str, Any]], cap: float, proxies: Sequence[str]
) -> dict[str, list[float]]:
    """Return what each opened bet gave back for its stake, by document.

    This is the sharper test: the pay of a question also holds what was never bet.
    """
    found = defaultdict[str, list[float]](list)
    for row in rows:
        for one in row["occasions"]:
            nats = [min(each) for each in zip(*(one["nats"][n] for n in proxies), strict=True)]
            found[f"{row.get('model')} {row['document']}"].append(pay(nats, 1.0, cap))
    return found


_CELL = (
    "| cell | guesses of | cap | members e >= 20 | e >= 1,000 | others e >= 20 | mean pay of a"
    " question about others | mean e of others | largest | questions: members, others |"
)


def cell_line(rows: Sequence[Mapping[str, Any]], cap: float, proxies: Sequence[str]) -> str:
    """Return a line of the table for one cell."""
    sides = {side: [row for row in rows if row["inside"] == side] for side in (True, False)}
    paths = {side: by_document(part, cap, proxies) for side, part in sides.items()}
    ends = {side: [path[-1] for path in part.values()] for side, part in paths.items()}
    asked = {side: sum(row["turn"] >= 0 for row in part) for side, part in sides.items()}
    cells = [
        rows[0]["cell"],
        " + ".join(proxies),
        f"{cap:g}",
        share(sum(one >= ENOUGH for one in ends[True]), len(ends[True])),
        str(sum(one >= 1000 for one in ends[True])),
        share(sum(one >= ENOUGH for one in ends[False]), len(ends[False])),
        mean_interval(pays(sides[False], cap, proxies)),
        f"{sum(ends[False]) / len(ends[False]):.3f}",
        f"{max(ends[False]):.1f}",
        ", ".join(f"{asked[side] / len(ends[side]):.1f}" for side in (True, False)),
    ]
    return "| " + " | ".join(cells) + " |"


def by_turn(rows: Sequence[Mapping[str, Any]], cap: float, proxies: Sequence[str]) -> str:
    """Return how many members have reached what is enough after each number of questions."""
    paths = by_document([row for row in rows if row["inside"]], cap, proxies).values()
    turns = range(1, 1 + max(len(path) for path in paths))
    found = [sum(any(one >= ENOUGH for one in path[:turn]) for path in paths) for turn in turns]
    return f"{rows[0]['cell']}: " + ", ".join(map(str, found))


def null_lines(rows: Sequence[Mapping[str, Any]], proxies: Sequence[str], title: str) -> list[str]:
    """Return the mean pay of null questions by language and by prompt."""
    rows = [row for row in rows if not row["inside"]]
    lines = [f"| {title} | all | {mean_interval(pays(rows, CAP, proxies))} |"]
    for part in ("language", "template"):
        for value in sorted({row[part] for row in rows if part in row}):
            told = mean_interval(pays([r for r in rows if r.get(part) == value], CAP, proxies))
            lines.append(f"| {title} | {value} | {told} |")
    told = mean_interval(returned(rows, CAP, proxies))
    lines.append(f"| {title} | what bets that were opened return | {told} |")
    went_on = sum(any(one["words"] for one in row["occasions"]) for row in rows)
    lines.append(f"| {title} | went on by a word or more | {share(went_on, len(rows))} |")
    return lines


def table(work: Path) -> str:
    """Return all tables, in Markdown, of what was measured so far."""
    lines = ["## One document, none known", "", _CELL, "|---" * 10 + "|"]
    cells = [rows_of(path) for path in sorted(work.glob("cell-*.jsonl"))]
    cells = [rows for rows in cells if rows]
    for rows in cells:
        every = sorted({n for row in rows for one in row["occasions"] for n in one["nats"]})
        own = rows[0]["cell"].split()[0]
        foreign = [name for name in every if name != own]
        lines.append(cell_line(rows, CAP, every))
        if foreign != every:
            lines.append(cell_line(rows, CAP, foreign))
    lines += ["", "Other caps, all proxies:", "", _CELL, "|---" * 10 + "|"]
    for rows in cells:
        every = sorted({n for row in rows for one in row["occasions"] for n in one["nats"]})
        lines += [cell_line(rows, cap, every) for cap in (2.0, 4.0, 6.0)]
    lines += ["", "With a guess of a proxy that is shown the document without these words", ""]
    lines += [_CELL, "|---" * 10 + "|"]
    for rows in filter(
        None, (rows_of(path) for path in sorted(work.glob("shown-*-langchain.jsonl")))
    ):
        every = sorted({n for row in rows for one in row["occasions"] for n in one["nats"]})
        lines += [cell_line(rows, cap, every) for cap in (CAP, 4.0, 6.0)]
    lines += ["", "Members with e >= 20 after 1, 2, ... questions:", ""]
    for rows in cells:
        every = sorted({n for row in rows for one in row["occasions"] for n in one["nats"]})
        lines.append("- " + by_turn(rows, CAP, every))
    lines += [
        "",
        "## Mean pay of null questions",
        "",
        "| what | part | mean pay |",
        "|---|---|---|",
    ]
    sources = {
        "recorded answers": [work / "recorded.jsonl"],
        "generated documents": sorted(work.glob("null-rows-*.jsonl")),
        "others of the cells": sorted(work.glob("cell-*.jsonl")),
    }
    together = list[dict[str, Any]]()
    for title, paths in sources.items():
        rows = [row for path in paths if path.exists() for row in rows_of(path)]
        rows = [row | {"model": row.get("model", row.get("cell"))} for row in rows]
        rows = [row for row in rows if row.get("turn", 0) >= 0]
        together += rows
        if any(not row["inside"] for row in rows):
            every = sorted({n for row in rows for one in row["occasions"] for n in one["nats"]})
            lines += null_lines(rows, every, title)
    every = sorted({n for row in together for one in row["occasions"] for n in one["nats"]})
    if together:
        lines += null_lines(together, every, "all together")
    return "\n".join(lines)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON Lines; none where there is no file."""
    # Bytes: a text may hold signs at which strings are split into lines too.
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def main() -> None:
    """Run one of the four steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("recorded", "ask", "nulls", "table"):
        step = steps.add_parser(name)
        step.add_argument("--work", type=Path, required=True)
        if name != "table":
            step.add_argument("--proxies", type=Path, nargs="+", required=True)
        if name == "recorded":
            step.add_argument("answers", type=Path)
        if name in ("ask", "nulls"):
            step.add_argument("model", type=Path)
            step.add_argument("--batch", type=int, default=32)
        if name == "ask":
            step.add_argument(
                "--questions", type=int, default=QUESTIONS, help="of a document at most"
            )
            step.add_argument("data", type=Path)
            step.add_argument("corpus")
            step.add_argument("prompt")
            step.add_argument("--n", nargs=2, type=int, default=[60, 60], metavar="N")
            step.add_argument("--passages", nargs=3, type=int, default=[500, 100, 2], metavar="N")
            step.add_argument("--bits", type=int, default=16, choices=(8, 16))
            step.set_defaults(device="cpu")
        if name == "nulls":
            step.add_argument("--documents", type=int, default=100, help="of each language")
            step.add_argument("--each", type=int, default=4, help="questions of a document at most")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.step == "table":
        print(table(given.work))
        return
    proxies = [Proxy(one, given.work / f"guesses-{one.stem}.jsonl") for one in given.proxies]
    if given.step == "recorded":
        rows = read_recorded(given.answers, proxies)
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (given.work / "recorded.jsonl").write_text("".join(lines), "utf-8")
    elif given.step == "ask":
        ask(given, proxies)
    else:
        nulls(given, proxies)


if __name__ == "__main__":
    main()
