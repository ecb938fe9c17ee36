"""``ragwitness compare`` and ``reproduce sage/...``: end to end, judged, resumed, bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ragwitness.text.pii import pii_finder
from ragwitness.text.sample import load_sample
from tests.support.parrot import parrot_speaks
from tests.support.writers import good, writers

Command = Callable[..., tuple[int, str]]


class Letters:
    """Vectors of letters, in place of an embedder that takes seconds to load."""

    name = "letters"

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        rows = np.array([[text.lower().count(c) + 0.1 for c in "abcdefghij"] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    parrot_speaks(monkeypatch)
    monkeypatch.setattr(
        "ragwitness.models.model_registry.load_embedder", lambda _spec="": Letters()
    )
    rows = [
        {
            "id": one.id,
            "text": f"{one.text} Call 212-555-0{100 + i}.",
            "question": " ".join(one.text.split()[:6]),
            "answer": " ".join(one.text.split()[6:12]),
        }
        for i, one in enumerate(load_sample()[:20])
    ]
    return _write(tmp_path / "corpus.jsonl", rows)


def compare(command: Command, corpus: Path, *more: object) -> tuple[int, str]:
    fixed = ("--prompts", 3, "--answer-tokens", 24, "--held-out", 3, "--contacts")
    folder = ("--pii", "contacts", "--run", corpus.parent / "run")
    return command("compare", corpus, *fixed, *folder, *more)


def result_of(corpus: Path) -> dict[str, object]:
    return json.loads((corpus.parent / "run" / "result.json").read_text())


@pytest.mark.slow
def test_a_page_shows_what_data_buys_and_costs(command: Command, corpus: Path) -> None:
    safe = _write(corpus.parent / "safe.jsonl", [
        {"id": one.id, "text": f"somebody wrote about {one.text.split()[3]}"}
        for one in load_sample()[:20]
    ])  # fmt: skip
    out = corpus.parent / "out.json"
    options = ["--with", f"mine={safe}", "--method", "redact"]
    options += ["--method", "zero-shot", "--defense", "prompt", "--json", out]
    code, said = compare(command, corpus, *options)
    assert code == 0, said
    found = result_of(corpus)
    assert json.loads(out.read_text()) == found
    names = [one["name"] for one in found["variants"]]
    assert names == ["origin", "mine", "redact", "zero-shot", "prompt"]
    leaks = {one["name"]: _count(one, "repeat prompts 10") for one in found["variants"]}
    assert leaks["origin"] >= 1
    assert leaks["mine"] == leaks["zero-shot"] == 0
    assert (found["records"], found["background"], found["questions"]) == (17, 3, 3)
    assert found["variants"][1]["indexed"] == 17  # texts of held-out records are not indexed
    assert found["spent"] is None
    page = (corpus.parent / "run" / "report.html").read_text()
    assert page.count("<circle") >= 5
    for text in (said, page, out.read_text()):  # no record is shown
        assert load_sample()[0].text[:40] not in text
        assert "212-555-01" not in text
    code, told = command("report", corpus.parent / "run")
    assert code == 0, told
    assert "original records" in told
    code, told = command("report", corpus.parent / "run", "--fail-on", "in")
    assert (code, "is not a condition" in told) == (2, True)


def _count(variant: dict[str, object], label: str) -> float:
    name, _, key = label.rpartition(" ")
    return next(
        one["count"]
        for one in variant["together"]  # type: ignore[attr-defined]
        if (one["name"], one["key"]) == (name, key)
    )


@pytest.mark.slow
def test_a_chat_model_makes_texts_and_judges_answers(command: Command, corpus: Path) -> None:
    def script(kind: str, prompt: str) -> str:
        if "Break the answer below" in prompt:
            return "I cannot" if "nothing known" in prompt else '["It is said.", "It is so."]'
        if "decide whether the text supports" in prompt:
            return json.dumps([True] * prompt.count("\n2.") + [False])
        return good(kind, prompt)

    with writers(script) as server:
        model = f"{server.url}#m"
        options = ["--method", "stage-1", "--method", "zero-shot", "--model", model]
        options += ["--judge", model, "--retrieve-by", "original"]
        code, said = compare(command, corpus, *options, "--dry-run")
        assert code == 0, said
        assert "at most 36 queries to judge" in said
        assert not server.prompts
        code, said = compare(command, corpus, *options, "--max-queries", 100)
        assert code == 0, said
        asked = len(server.prompts)
        assert compare(command, corpus, *options, "--max-queries", 100)[0] == 0
        assert len(server.prompts) == asked
    found = result_of(corpus)
    base, made, none = found["variants"]
    name = "correctness (judged)"
    judged = base["usefulness"][name]
    # two statements on each side, one supported: F1 .5, of which three quarters count
    assert 0.375 < judged["mean"]["value"] <= 0.625
    assert made["usefulness"][name]["gain"]["n"] == 3
    assert none["unjudged"] == {"the judge's answer is not the JSON list asked for": 3}
    assert name not in none["usefulness"]
    assert found["spent"]["queries"] == asked
    assert "holds the private records" in " ".join(said.split())
    assert made["indexed"] >= 1


@pytest.mark.slow
def test_a_cap_stops_the_judge_and_a_higher_one_goes_on(command: Command, corpus: Path) -> None:
    def script(_kind: str, prompt: str) -> str:
        return '["It is said."]' if "Break" in prompt else "[true]"

    with writers(script) as server:
        options = ["--method", "redact", "--judge", f"{server.url}#m", "--concurrency", 1]
        code, said = compare(command, corpus, *options, "--max-queries", 5)
        assert code == 0, said
        assert len(server.prompts) == 5
        assert "5 of at most 5 queries" in said
        assert "query cap reached" in (corpus.parent / "run" / "report.html").read_text()
        assert result_of(corpus)["spent"]["stopped_by"] == "query"
        code, said = compare(command, corpus, *options, "--max-queries", 50)
        assert code == 0, said
        assert len(set(server.prompts)) == len(server.prompts)
        assert result_of(corpus)["spent"]["stopped_by"] is None


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--method", "magic"), "no method 'magic'"),
        (("--method", "sage"), "asks a chat model, and there is none"),
        (("--method", "private-evolution"), "spends a privacy budget"),
        (("--method", "redact", "--method", "redact"), "Two variants are called redact"),
        (("--with", "mine"), "names no file"),
        (("--with", "origin=corpus.jsonl"), "a name of our own"),
        (("--with", "../x=corpus.jsonl"), "cannot name a variant"),
        (("--with", "mine=none.jsonl"), "no file none.jsonl"),
        (("--with", "mine=empty.jsonl"), "is empty"),
        (("--with", "mine=binary.jsonl"), "binary"),
        (("--with", "mine=rows.jsonl"), "no usable document"),
        (("--with", "mine=other.jsonl", "--retrieve-by", "original"), "no record's id"),
        (("--retrieve-by", "both"), "own or original"),
        (("--questions", "none.jsonl"), "Cannot read"),
        (("--questions", "empty.jsonl"), "holds no question"),
        (("--questions", "other.jsonl"), "is no question"),
        (("--no-utility", "--questions", "other.jsonl"), "--questions is for measuring use"),
        (("--no-utility", "--judge", "openai/x"), "--judge is for measuring use"),
        (("--held-out", 0), "no questions"),
        (("--held-out", 20), "cannot be held out"),
        (("--attacks", "magic"), "magic"),
        (("--defense", "magic"), "magic"),
        (("--prompts", 0), "at least 1"),
    ],
)
def test_bad_input_is_named_and_nothing_is_asked(
    command: Command, corpus: Path, options: tuple[object, ...], cause: str
) -> None:
    folder = corpus.parent
    (folder / "empty.jsonl").write_text("")
    (folder / "binary.jsonl").write_bytes(b"\x00\x01\x02" * 50)
    (folder / "rows.jsonl").write_text('{"id": "a", "text": "a\\u0000b"}\n{"id": "b"}\n')
    _write(folder / "other.jsonl", [{"id": "stranger", "text": "of no record"}])
    code, said = compare(command, corpus, *options)
    assert code == 2, said
    assert cause in said
    assert not list(folder.glob("run/*/answers.jsonl"))


def test_a_corpus_without_questions_is_compared_for_privacy_alone(
    command: Command, corpus: Path
) -> None:
    bare = [{"id": d.id, "text": d.text} for d in load_sample()[:8]]
    path = _write(corpus.parent / "bare.jsonl", bare)
    code, said = command("compare", path, "--prompts", 2, "--method", "redact")
    assert code == 2
    assert "no JSON lines with fields question and answer" in said
    code, said = compare(command, path, "--method", "redact", "--no-utility")
    assert code == 0, said
    assert "equal length" not in said


_TABLE = """
[t1]
kind = "compare"
title = "A table"
prompts = 2
asked = 2
rows = {Origin = "origin", "0-shot" = "zero-shot", Words = "redact", SAGE = "sage-published"}
[[t1.case]]
label = "Dialogues"
corpus = "corpus.jsonl"
attack = "composite"
questions = "own"
published = {Origin = {RP = "12 / 3"}, SAGE = {RP = "0 / 0"}}
[t1.case.columns]
RP = "published repeat prompts 10"
RL = "use ROUGE-L"
W = "words"
L = "worst published repeat contexts 10"
J = "use correctness (judged)"
[[t1.case]]
label = "Others"
refused = "they are not at hand"

[t2]
kind = "compare"
title = "Models only"
prompts = 0
asked = 0
rows = {SAGE = "sage"}
[[t2.case]]
label = "Planted"
corpus = "prose.txt"
make = "wiki-pii"
columns = {rounds = "rounds", L = "worst published targeted information contacts"}
published = {SAGE = {rounds = "3.49"}}
"""


@pytest.mark.slow
def test_a_table_of_a_paper_stands_beside_ours(
    command: Command, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Presidio takes seconds to load, and has its own tests.
    finder = "ragwitness.synthesis.guard.pii_finder"
    monkeypatch.setattr(finder, lambda _kind: pii_finder("contacts"))
    folder = corpus.parent
    (folder / "paper").mkdir()
    (folder / "paper" / "tables.toml").write_text(_TABLE)
    (folder / "prose.txt").write_text("\n\n".join(one.text for one in load_sample()[:12]))
    common = ("--tables", folder, "--out", folder / "out", "--data", folder)
    code, said = command("lab", "reproduce", "paper/t1", *common)
    assert code == 0, said
    assert re.search(r"\| Dialogues \| Origin \| RP \| 12 / 3 \| [12] \| \d to 2 \| 2 \|", said)
    assert "| Dialogues | SAGE | RP | 0 / 0 | not run: needs --model |" in said
    assert "| Dialogues | Words | J | – | not run: needs --judge |" in said  # noqa: RUF001
    assert "not run: they are not at hand" in said
    stored = json.loads((folder / "out" / "paper" / "t1" / "table.json").read_text())
    assert stored["cases"][1]["result"] is None
    assert (folder / "out" / "paper" / "t1" / "case-1.html").exists()
    code, said = command("lab", "reproduce", "paper/t2", *common)
    assert code == 2
    assert "asks a chat model" in said
    with writers() as server:
        code, said = command("lab", "reproduce", "paper/t2", *common, "--model", f"{server.url}#m")
    assert code == 0, said
    assert re.search(r"\| Planted \| SAGE \| rounds \| 3.49 \| 1.00 \|", said)
    code, said = command("lab", "reproduce", "list", "--tables", folder)
    assert "Models only" in said
    arguments = ("paper/t1", "--tables", folder, "--data", folder / "none")
    code, said = command("lab", "reproduce", *arguments)
    assert code == 2
    assert "needs the file corpus.jsonl" in said


def test_tables_of_audits_ask_no_judge(command: Command) -> None:
    tables = Path(__file__).parents[2] / "experiments"
    code, said = command("lab", "reproduce", "mba/table1", "--tables", tables, "--judge", "x/y")
    assert code == 2
    assert "do not apply" in said
