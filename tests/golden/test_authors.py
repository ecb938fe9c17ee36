"""Our functions against what the papers' own programs returned (``benchmarks/authors.py``).

``authors.toml`` names each difference, with the inputs on which it shows and its reason. An input
that differs without a name fails, and so does a name that no longer holds.
"""

from __future__ import annotations

import json
import math
import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.authors import rank, table
from ragwitness.comparison import usefulness
from ragwitness.core.types import Answer, Document, Interval, TokenLogprob
from ragwitness.leakage.attacks.base import Transcript
from ragwitness.membership.method_registry import configure
from ragwitness.membership.methods import rag_mia, s2mia, srag
from ragwitness.membership.methods.mba import masks as mba_masks
from ragwitness.membership.methods.mba.response_parsing import is_right, read_answers
from ragwitness.membership.response_parsing.probabilities import (
    probability_at,
    read_yes_no,
)
from ragwitness.models.base import TextScores
from ragwitness.text.words import split_words
from research import leak_counts as paper
from research.canary import published as canary
from research.canary.feedback import Balance, VoteConfig, acceptance, base_quality, upvote_chance
from research.synthetic.published import PublishedSage
from tests.support.copier import Copier

HERE = Path(__file__).resolve().parent
PROGRAMS = json.loads((HERE / "authors.json").read_text(encoding="utf-8"))
NAMED = tomllib.loads((HERE / "authors.toml").read_text(encoding="utf-8"))


# SAGE.


def _transcripts(case: dict[str, Any]) -> list[Transcript]:
    return [
        Transcript("composite", "p", output, tuple(contexts), case.get("aim"))
        for output, contexts in zip(case["outputs"], case["contexts"], strict=True)
    ]


def _counted(counted: paper.Counted) -> list[int]:
    return [counted.prompts, counted.contexts]


_ROLES = {"Joe:": "judge", "Cathy:": "rewriter"}


def _loop(script: dict[str, Any]) -> dict[str, Any]:
    """Drive stage 2 as published with what both agents say."""
    from ragwitness.synthesis.guard import SyntheticGuard

    method, document = PublishedSage(), Document("d", script["record"])
    said = {"judge": iter(script["joe"]), "rewriter": iter(script["cathy"])}
    counts = {"judge": 0, "rewriter": 0}
    making = method._make(document, (), SyntheticGuard([document.text]))
    queries = next(making)
    try:
        while True:
            role = _ROLES.get(queries[0].prompt.rpartition("\n\n")[2], "maker")
            counts[role] = counts.get(role, 0) + 1
            text = next(said[role]) if role in said else script["text"]
            queries = making.send([Answer(text)])
    except StopIteration as stop:
        made = stop.value
    return {"kept": made.text, "judged": counts["judge"], "rewritten": counts["rewriter"]}


SAGE: dict[str, Callable[[Any], Any]] = {
    "repeats": lambda case: _counted(paper.repeats(_transcripts(case), 10)),
    "rouge": lambda case: _counted(paper.rouge(_transcripts(case))),
    "disease": lambda case: paper.targeted_disease(_transcripts(case)),
    "contacts": lambda case: paper.targeted_contacts(_transcripts(case)),
    "BLEU-1": lambda case: usefulness.bleu_1(case["answer"], [case["truth"]]),
    "ROUGE-L": lambda case: usefulness.rouge_l_stemmed(case["answer"], [case["truth"]]),
    "IN": lambda case: usefulness.contains_verbatim(case["answer"], [case["truth"]]),
    "loop": _loop,
}


# Canaries.


def _markers(case: dict[str, Any]) -> dict[str, str]:
    return canary.draw_markers(case["family"], random.Random(case["seed"]))


def _offsets(batches: list[str]) -> list[float]:
    balance, offsets = Balance(VoteConfig()), []
    for batch in batches:
        balance.see([(n % 2 == 0, vote == "+") for n, vote in enumerate(batch)])
        offsets.append(round(balance.offset, 9))
    return offsets


def _chance(case: dict[str, Any]) -> float:
    sign = 0 if not case["triggered"] else 1 if case["hit"] else -1
    offset = case["offset"] if case["triggered"] else 0.0
    return upvote_chance(acceptance(case["quality"]), sign, offset, VoteConfig())


CANARY: dict[str, Callable[[Any], Any]] = {
    "markers": _markers,
    "quality": lambda case: base_quality(case["answer"], case["document"], VoteConfig()),
    "vote": _chance,
    "balance": _offsets,
    "canary": lambda answer: canary.with_canary(answer, "ZXYPRSIGNTRCE"),
    "trigger": lambda text: canary.with_trigger(text, "[Protocol Marker: AB12CD]"),
    "injected": lambda case: canary.injected_count(case["pool"], float(case["rate"])),
    "labels": lambda rows: [
        [answer, int(up)]
        for answer, up in canary.reward_labels(
            [(one["answer"], one["answer_original"], bool(one["feedback"])) for one in rows]
        )
    ],
    "split": lambda case: canary.split_sizes(case["corpus"], case["documents"]),
    "settings": canary.SETTINGS.__getitem__,
}


# MBA, RAG-MIA, S2MIA.


class Ranked(Copier):
    """A proxy whose rank of a word follows from its letters alone."""

    def score(self, texts, *, after=None, top=0):
        rows = []
        for text in texts:
            words = split_words(text)
            offsets = np.array([(word.start, word.end) for word in words], np.int64)
            ranks = np.array([rank(word.text) for word in words], np.int64)
            rows.append(TextScores(ranks, offsets, np.full(len(words), -1.0), ranks))
        return rows


def _first_query(audit: Any, text: str) -> str:
    return next(audit.probe(Document("d", text)))[0].prompt


def _masked(case: dict[str, Any]) -> list[str]:
    config = configure("mba:paper", {"masks": case["masks"], "spelling": "none"})
    masked = mba_masks.mask_document(case["text"], Ranked(), config, None, random.Random(0))
    return [mask.answers[0] for mask in masked.masks]


def _filled(reply: str) -> float:
    answers = read_answers(reply, 2)
    accepted = {1: "amber", 2: "basin"}
    return sum(is_right(answers.get(n, ""), [word], 0) for n, word in accepted.items()) / 2


MIA: dict[str, Callable[[Any], Any]] = {
    "rag-mia question": lambda text: _first_query(
        rag_mia.RagMia(Copier(), configure("rag-mia:paper", {})), text
    ),
    "rag-mia answer": lambda text: (
        "yes" if read_yes_no(Answer(text), "?", gray=False).published == 1.0 else "no"
    ),
    "s2mia question": lambda text: _first_query(
        s2mia.S2Mia(Copier(), configure("s2mia:s", {})), text
    ),
    "s2mia bleu": lambda case: round(
        s2mia.bleu(s2mia.plain_words(case["answer"]), s2mia.plain_words(case["text"])), 9
    ),
    "mba question": lambda masked: mba_masks.PUBLISHED_PROMPT.replace("{masked_document}", masked),
    "mba masks": _masked,
    "mba score": _filled,
}


# S-RAG.


class Rated(Ranked):
    """A proxy to which a word is the less likely, the higher its rank."""

    def score(self, texts, *, after=None, top=0):
        return [
            TextScores(one.tokens, one.offsets, -one.ranks.astype(float), one.ranks)
            for one in super().score(texts)
        ]


_SRAG = configure("s-rag:paper", {})


def _suffix(text: str) -> str:
    words = split_words(text)
    return text[words[len(words) // 2].start :]


def _chosen(case: dict[str, Any]) -> float:
    top = tuple((token, math.log(p)) for token, p in case["top"])
    p = probability_at([TokenLogprob(*top[0], top)], case["word"])
    return round(p.low, 9) if p.high - p.low < 1e-9 else _SRAG.missing


SRAG: dict[str, Callable[[Any], Any]] = {
    "probes": lambda case: [
        probe.word.text for probe in srag.segment(case["text"], Rated(), _SRAG).probes
    ],
    "halves": _suffix,
    "before": lambda case: [
        "".join(f"{word} " for word in case["words"][:place]) for place in case["places"]
    ],
    "features": lambda case: srag.counts(
        [Interval(p, p) for p in case["probabilities"]], case["m"]
    ).tolist(),
    "chosen": _chosen,
}

OURS = {"sage": SAGE, "canary": CANARY, "mia": MIA, "s-rag": SRAG}
_ALL = [(key, name) for key, program in PROGRAMS.items() for name in program["functions"]]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return one == pytest.approx(other, abs=1e-9)
    return one == other


@pytest.mark.parametrize(("key", "name"), _ALL)
def test_ours_is_the_authors_but_for_what_is_named(key: str, name: str) -> None:
    pytest.importorskip("nltk")
    rows = PROGRAMS[key]["functions"][name]
    ours = OURS[key][name]
    differs = [n for n, (given, output) in enumerate(rows) if not _equal(ours(given), output)]
    named = sorted(n for one in NAMED[key][name].get("differs", []) for n in one["inputs"])
    assert differs == named


def test_every_function_of_the_programs_has_ours() -> None:
    assert sorted(_ALL) == sorted((key, name) for key in OURS for name in OURS[key])
    assert sum(len(rows) for one in PROGRAMS.values() for rows in one["functions"].values()) > 400
    for key, program in PROGRAMS.items():
        assert re.fullmatch("[0-9a-f]{40}", program["commit"]), key


def test_every_difference_has_a_reason() -> None:
    for functions in NAMED.values():
        for entry in functions.values():
            for one in entry.get("differs", []):
                assert one["what"]
                assert one["why"]
                assert one["inputs"]


def test_a_bare_safe_word_at_the_first_turn_keeps_the_true_record_as_published() -> None:
    script = {"record": "Ada of 5 Elm Road has asthma.", "text": "Someone has asthma.",
              "joe": ["THISISSAFE"], "cathy": []}  # fmt: skip
    assert script["record"] in _loop(script)["kept"]


def test_the_table_in_papers_follows_from_the_differences() -> None:
    papers = (HERE.parent.parent / "PAPERS.md").read_text(encoding="utf-8")
    assert table() in papers
