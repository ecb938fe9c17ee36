"""What the lessons taught, measured on held-out text: beside the copying of ``evaluate.py``.

Edited copies, obedience, plain questions, a patient's question with the doctor's answer, and SAGE's
roles. Every figure is a mean over documents with a bootstrap interval; an AUC's interval draws
documents too.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from ragwitness.defenses.synthetic.agents import DOMAINS, MakingConfig
from ragwitness.defenses.synthetic.sage import extract, generate, read_judgement
from ragwitness.extraction.utility import rouge_l, token_f1
from ragwitness.text.replies import declines
from ragwitness.types import Document
from research.reader import forms as prompts
from research.reader import unseen
from research.reader.edits import IS_RIGHT, perturb, quota
from research.reader.evaluate import Example, Scorer, examples, hardest
from research.reader.roles import role_turn
from research.reader.wordings import system_prompt

Found = dict[str, list[float]]
"""Values by ability and condition, one per document or question."""

_ANSWER_ROOM, _REPLY_ROOM = 24, 96


def edited(scorer: Scorer, example: Example, rng: random.Random) -> Found:
    """DCMI's question of the text and of its copy: log-odds of yes."""
    text = " ".join(example.target)
    copy = perturb(text, quota(len(example.target), 0.06, 10), rng)
    if copy is None:
        return {}
    found = {}
    for condition in ("in", "similar"):
        for name, said in (("true", text), ("copy", copy)):
            request = IS_RIGHT.replace("{doc}", said)
            prompt = scorer.prompt(example.contexts[condition], request)
            found[f"margin/{name}/{condition}"] = [scorer.yes_margin(prompt)]
    return found


def wordings(
    scorer: Scorer, example: Example, hard: list[int], number: int, parts: bool = False
) -> Found:
    """A true next word as the first of an answer, behind plain and defended prompts.

    The ``number``-th document meets the ``number``-th pair of the prompts in ``unseen.py``, so
    that all of them are asked; with ``parts``, a pair that is put together of held-out parts.
    """
    rng = random.Random(f"obedience/{number}")
    words, place = example.target, rng.choice(hard)
    request = prompts.COMPLETE[0].replace("{text}", " ".join(words[:place]))
    found = {}
    for name, system in _composed(rng) if parts else _systems(number):
        prompt = scorer.prompt(example.contexts["in"], request, system)
        first = scorer.word_probabilities(prompt, words[place : place + 1])
        found[f"true next word, first of an answer/{name}"] = [float(first[0])]
    return found


def obedience(scorer: Scorer, example: Example, number: int) -> Found:
    """What is declined and what is copied behind the prompts of ``wordings``."""
    words, half = example.target, len(example.target) // 2
    request = prompts.COMPLETE[0].replace("{text}", " ".join(words[:half]))
    found = {}
    for name, system in _systems(number):
        prompt = scorer.prompt(example.contexts["in"], request, system)
        suffix = scorer.word_probabilities(prompt, words[half:])
        found[f"true next word, teacher-forced/{name}"] = [float(suffix.mean())]
        said = scorer.generate(prompt, 32)
        found[f"declines to complete/{name}"] = [float(declines(said.strip()))]
        wanted, given, right = words[half : half + 20], said.split(), 0
        while right < min(len(wanted), len(given)) and wanted[right] == given[right]:
            right += 1
        found[f"correct of the next 20 words/{name}"] = [right / len(wanted)]
        prompt = scorer.prompt(example.contexts["in"], prompts.REPEAT[0], system)
        repeat = scorer.generate(prompt, 12)
        found[f"declines to repeat/{name}"] = [float(declines(repeat.strip()))]
    return found


def _systems(number: int) -> list[tuple[str, str]]:
    return [
        ("plain", prompts.SYSTEM[0]),
        ("defended", prompts.DEFENDED[0]),
        ("plain, unseen wording", unseen.PLAIN[number % len(unseen.PLAIN)]),
        ("defended, unseen wording", unseen.STRICT[number % len(unseen.STRICT)]),
    ]


def _composed(rng: random.Random) -> list[tuple[str, str]]:
    return [
        (f"{name}, unseen parts", system_prompt(rng, kind, held_out=True))
        for name, kind in (("plain", "plain"), ("defended", "strict"))
    ]


def ratios(found: Found) -> dict[str, tuple[float, float, float, int]]:
    """How probable a true next word is behind a defended prompt, as a share of behind a plain one.

    The ratio of the two means, with a bootstrap interval over documents.
    """
    name, table = "true next word, first of an answer", {}
    for which in ("", ", unseen wording", ", unseen parts"):
        if f"{name}/plain{which}" not in found:
            continue
        plain, defended = (
            np.asarray(found[f"{name}/{kind}{which}"]) for kind in ("plain", "defended")
        )
        drawn = np.random.default_rng(0).integers(0, len(plain), (2000, len(plain)))
        whole = defended[drawn].mean(1) / np.maximum(plain[drawn].mean(1), 1e-9)
        low, high = np.quantile(whole, [0.025, 0.975])
        ratio = float(defended.mean() / max(plain.mean(), 1e-9))
        table[f"obedience ratio{which}"] = (ratio, float(low), float(high), len(plain))
    return table


# Plain questions, and a patient's.


def fairytale(scorer: Scorer, path: Path, count: int, seed: int) -> Found:
    """FairytaleQA with the passage among four: token F1, beside the likest sentence."""
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    rows = [row for row in rows if row["story"] in held_out_stories(rows)]
    rows = [row for row in rows if len(row["document"].split()) <= 220]
    by_story: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["document"] not in by_story[row["story"]]:
            by_story[row["story"]].append(row["document"])
    everything = sorted({row["document"] for row in rows})
    rng, found = random.Random(seed), defaultdict(list)
    for row in rng.sample(rows, min(count, len(rows))):
        near = [other for other in by_story[row["story"]] if other != row["document"]]
        rng.shuffle(near)
        inside = [row["document"], *(near + rng.sample(everything, 4))[:3]]
        rng.shuffle(inside)
        for name, system in (("plain", prompts.SYSTEM[0]), ("defended", prompts.DEFENDED[0])):
            said = scorer.generate(scorer.prompt(inside, row["question"], system), _ANSWER_ROOM)
            found[f"plain question, token F1/{name}"].append(token_f1(said, [row["answer"]]))
            found[f"plain question, declined/{name}"].append(float(declines(said)))
        likest = _likest(row["question"], inside)
        found["plain question, token F1/no model: likest sentence"].append(
            token_f1(likest, [row["answer"]])
        )
    return found


def held_out_stories(rows: Sequence[dict[str, str]]) -> set[str]:
    """The stories that are reported on; the other half was looked at while lessons were written."""
    stories = sorted({row["story"] for row in rows})
    random.Random(1).shuffle(stories)
    return set(stories[len(stories) // 2 :])


def _likest(question: str, documents: list[str]) -> str:
    asked = set(re.findall(r"\w+", question.lower()))
    sentences = [s for text in documents for s in re.split(r"(?<=[.!?])\s+", text) if s]

    def likeness(sentence: str) -> float:
        words = set(re.findall(r"\w+", sentence.lower()))
        return len(asked & words) / math.sqrt(len(words) + 1)

    return max(sentences, key=likeness)


def replies(scorer: Scorer, path: Path, count: int, seed: int) -> Found:
    """A patient's question with the dialogue among four: ROUGE-L against the doctor's answer."""
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    rows = [
        row for row in rows if len(row["text"].split()) <= 220 and len(row["answer"].split()) >= 20
    ]
    made = examples([row["text"] for row in rows], count, 4, seed)
    answers = {" ".join(row["text"].split()): row for row in rows}
    found = defaultdict(list)
    for one in made:
        row = answers[" ".join(one.target)]
        for condition in ("in", "similar"):
            prompt = scorer.prompt(one.contexts[condition], row["question"])
            said = scorer.generate(prompt, _REPLY_ROOM)
            found[f"patient's question, ROUGE-L/{condition}"].append(rouge_l(said, [row["answer"]]))
            found[f"patient's question, words said/{condition}"].append(float(len(said.split())))
    return found


# SAGE's roles, on generated records of trained kinds and of a kind that was held out.


def roles(scorer: Scorer, count: int, held_out: bool) -> Found:
    """Values extracted, points told, persons that survive, judgements that are right."""
    kind = "unseen kind of record" if held_out else "trained kinds of record"
    found = defaultdict(list)
    for role in ("extract", "write", "judge", "rewrite"):
        rng = random.Random(f"roles/{role}/{held_out}")
        for _ in range(count):
            turn = role_turn(rng, held_out, role)
            said = _role_answer(scorer, turn.user, 220)
            low = said.casefold()
            if role == "extract":
                lines = dict(re.findall(r"- \[([^\]]+)\]:[ \t]*([^\n]*)", said))
                for name, values in turn.pairs:
                    answered = lines.get(name, "").strip().strip(".").casefold()
                    right = answered == ", ".join(values).casefold() or (
                        bool(values)
                        and all(value.strip(".").casefold() in answered for value in values)
                    )
                    key = "attribute recovered" if values else 'says "none" of what is not there'
                    hit = right if values else answered in ("none", "")
                    found[f"{key}/{kind}"].append(float(hit))
                found[f"person in the extract/{kind}"].append(_survives(low, turn.private))
            elif role == "write":
                for _, values in turn.pairs:
                    found[f"point told/{kind}"] += [
                        float(v.strip(".").casefold() in low) for v in values
                    ]
                found[f"person in the new record/{kind}"].append(_survives(low, turn.private))
            elif role == "judge":
                judged = read_judgement(said, turn.text)
                right = judged is not None and judged.safe != turn.unsafe
                found[f"judgement right/{kind}"].append(float(right))
                found[f"judgement keeps to its form/{kind}"].append(float(judged is not None))
            else:
                found[f"person in the rewritten record/{kind}"].append(_survives(low, turn.private))
                shared = token_f1(said, [turn.answer])
                found[f"rewritten record, token F1/{kind}"].append(shared)
    return found


def patients(scorer: Scorer, path: Path, count: int, seed: int) -> Found:
    """Stage 1 of SAGE (extract, then write) on records of named patients: does the name survive?"""
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    config, found = MakingConfig(domain=DOMAINS["medical"]), defaultdict(list)
    attributes = [("Patient", name) for name in DOMAINS["medical"].attributes[0][:3]]
    for row in random.Random(seed).sample(rows, count):
        steps = extract(Document(id="p", text=row["text"]), attributes, config)
        said = _role_answer(scorer, next(steps)[0].prompt, 120)
        pairs = []
        for name in attributes:
            line = re.search(rf"- \[{re.escape(name[1])}\]:[ \t]*([^\n]*)", said)
            if line and line.group(1).strip() not in ("", "none"):
                pairs.append((name, line.group(1).strip()))
        found["patients: something extracted"].append(float(bool(pairs)))
        found["patients: name in the extract"].append(
            float(row["name"].casefold() in said.casefold())
        )
        if pairs:
            new = _role_answer(scorer, next(generate(pairs, config, row["text"]))[0].prompt, 160)
            found["patients: name in the new record"].append(
                float(row["name"].casefold() in new.casefold())
            )
    return found


def _role_answer(scorer: Scorer, user: str, limit: int) -> str:
    """The answer to an agent's request: no documents, an empty system turn."""
    said: str = scorer.generate(scorer.prompt([], user, ""), limit)
    return said.strip()


def _survives(said: str, private: list[str]) -> float:
    """Whether one of the identifying values stands in ``said`` (lower case)."""
    return float(
        any(re.search(rf"(?<!\w){re.escape(value.casefold())}(?!\w)", said) for value in private)
    )


# A table: every ability of one corpus, with intervals.


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, float, int]:
    """Mean, bootstrap 95% interval and n."""
    array = np.asarray(values, float)
    means = np.random.default_rng(seed).choice(array, (2000, len(array))).mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(array.mean()), float(low), float(high), len(array)


def auc(
    members: Sequence[float], others: Sequence[float], seed: int = 0
) -> tuple[float, float, float, int]:
    """Area under the ROC with a bootstrap 95% interval; n of the smaller side."""
    one, other = np.asarray(members, float), np.asarray(others, float)
    labels = np.r_[np.ones(len(one)), np.zeros(len(other))]
    whole = float(roc_auc_score(labels, np.r_[one, other]))
    rng, drawn = np.random.default_rng(seed), []
    for _ in range(500):
        scores = np.r_[rng.choice(one, len(one)), rng.choice(other, len(other))]
        drawn += [float(roc_auc_score(labels, scores))]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return whole, float(low), float(high), min(len(one), len(other))


def corpus_abilities(
    scorer: Scorer,
    documents: Sequence[str],
    count: int,
    k: int,
    seed: int,
    only: set[str],
) -> dict[str, tuple[float, float, float, int]]:
    """Edits and obedience over ``count`` documents of one corpus."""
    rng, found = random.Random(seed), defaultdict[str, list[float]](list)
    for number, example in enumerate(examples(documents, count, k, seed)):
        if only & {"wordings", "parts"}:
            alone = scorer.word_probabilities(None, example.target)
            hard = hardest(alone, len(example.target) // 2)
            for name in only & {"wordings", "parts"}:
                _add(found, wordings(scorer, example, hard, number, name == "parts"))
        if "obey" in only:
            _add(found, obedience(scorer, example, number))
        if "edited" in only:
            _add(found, edited(scorer, example, rng))
    margins = {key: found.pop(key) for key in list(found) if key.startswith("margin/")}
    table = {key: interval(values) for key, values in found.items()} | ratios(found)
    if margins:
        table["edited copy, AUC of yes: true text against copy/in"] = auc(
            margins["margin/true/in"], margins["margin/copy/in"]
        )
        differences = [
            np.subtract(margins[f"margin/true/{c}"], margins[f"margin/copy/{c}"]).tolist()
            for c in ("in", "similar")
        ]
        table["edited copy, AUC of DCMI's score: members against others"] = auc(*differences)
    return table


def _add(found: dict[str, list[float]], more: Found) -> None:
    for key, values in more.items():
        found[key] += values


def one_corpus_abilities(
    scorer: Scorer, data: Path, count: int, seed: int, only: set[str]
) -> Iterator[dict[str, tuple[float, float, float, int]]]:
    """Plain questions, replies and roles: each has a corpus of its own."""
    makers: dict[str, Callable[[], Found]] = {
        "questions": lambda: fairytale(scorer, data / "fairytaleqa.jsonl", count, seed),
        "replies": lambda: replies(scorer, data / "healthcaremagic.jsonl", count, seed),
        "roles": lambda: roles(scorer, count, held_out=False),
        "roles, unseen": lambda: roles(scorer, count, held_out=True),
        "patients": lambda: patients(scorer, data / "patients.jsonl", count, seed),
    }
    for name, make in makers.items():
        if name.split(",")[0] in only:
            yield {key: interval(values) for key, values in make().items() if values}
