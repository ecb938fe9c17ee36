"""The verbs for many audits and whole collections, with the packaged reader in process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragwitness.cli.common import console
from ragwitness.text.sample import load_sample

_TABLES = Path(__file__).parents[2] / "experiments"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _rows(words: int) -> list[dict[str, object]]:
    # The first words alone: how long documents are is not what is tried here, and costs time.
    return [{"id": d.id, "text": " ".join(d.text.split()[:words])} for d in load_sample()[::9]]


@pytest.fixture
def rows() -> list[dict[str, object]]:
    return _rows(48)


@pytest.mark.slow
def test_evaluate_prints_writes_json_and_a_page(command, rows, tmp_path: Path) -> None:
    corpus = _write(tmp_path / "corpus.jsonl", rows[:60])
    arguments = ["evaluate", "--corpus", corpus, "--audits", "rag-mia,mba", "--limit", 8]
    arguments += ["--set", "mba.masks=5", "--calibration", 4]
    arguments += ["--run", tmp_path / "run", "--json", tmp_path / "out.json"]
    code, said = command(*arguments)
    assert code == 0, said
    data = json.loads((tmp_path / "out.json").read_text())
    assert {"rag-mia", "mba", "mba/weighted"} <= set(data["audits"])
    for name in ("blind words", "blind length", "retrieval off: mba", "near-duplicates: mba"):
        low, high = data["controls"][name]["auc_interval"]
        assert 0 <= low <= data["controls"][name]["auc"] <= high <= 1
    assert data["audits"]["mba"]["auc"] > 0.7
    assert "mba" in said
    assert "/weighted" in said
    assert "evaluation.html" in said
    assert "retrieval off: mba" in (tmp_path / "run" / "evaluation.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--audits", "nonsense"], "There is no audit 'nonsense'"),
        (["--set", "mba.colour=red"], "no option 'colour'"),
        (["--set", "colour=red"], "names no audit"),
        (["--set", "mba.masks"], "has no value"),
        (["--set", "mba.masks=many"], "cannot be 'many'"),
        (["--defense", "armour"], "no defense 'armour'"),
        (["--audits", "mba"], "too few to divide"),
    ],
)
def test_evaluate_refuses_in_one_line(command, rows, tmp_path: Path, arguments, says) -> None:
    corpus = _write(tmp_path / "corpus.jsonl", rows[: 50 if "--defense" in arguments else 20])
    code, said = command("evaluate", "--corpus", corpus, *arguments)
    assert code == 2
    assert says in said


@pytest.mark.long
def test_owner_asks_until_it_is_decided(command, tmp_path: Path) -> None:
    rows = _rows(48)
    mine = _write(tmp_path / "mine.jsonl", rows[:20])
    known = _write(tmp_path / "known.jsonl", rows[60:84])
    arguments = ["audit", "--collection", f"lab:{mine}", "--documents", mine, "--known-out", known]
    arguments += ["--run", tmp_path / "run"]
    code, said = command(*arguments, "--json", tmp_path / "owner.json")
    assert code == 0, said
    assert command(*arguments, "--fail-on", "in")[0] == 3
    found = json.loads((tmp_path / "owner.json").read_text())
    assert found["decided"]
    assert found["documents_asked"] < 20
    assert "is not like documents outside" in said


def test_owner_reads_another_column_and_refuses_retries_below_none(
    command, rows, tmp_path: Path
) -> None:
    renamed = [{"id": row["id"], "body": row["text"]} for row in rows[:4]]
    mine = _write(tmp_path / "mine.jsonl", renamed)
    corpus = _write(tmp_path / "corpus.jsonl", rows[:4])
    arguments = ["audit", "--collection", f"lab:{corpus}", "--documents", mine, "--known-out", mine]
    code, said = command(*arguments)
    assert (code, "--text-field" in said) == (2, True)
    code, said = command(*arguments, "--text-field", "body", "--retries", -1)
    assert (code, "retries" in said) == (2, True)


@pytest.mark.long
def test_owner_does_not_accuse_a_system_without_the_collection(
    command, rows, tmp_path: Path
) -> None:
    other = _write(tmp_path / "other.jsonl", rows[90:120])
    mine = _write(tmp_path / "mine.jsonl", rows[:12])
    known = _write(tmp_path / "known.jsonl", rows[60:80])
    arguments = ["audit", "--collection", f"lab:{other}", "--documents", mine, "--known-out", known]
    arguments += ["--run", tmp_path / "run"]
    code, said = command(*arguments)
    assert code == 0, said
    assert "Not decided" in said
    assert command(*arguments, "--fail-on", "in")[0] == 4
    assert command(*arguments, "--fail-on", "inconclusive")[0] == 3


@pytest.mark.long
def test_text_only_audit_says_out_with_documents_known_to_be_inside(
    command, rows, tmp_path: Path
) -> None:
    corpus = _write(tmp_path / "corpus.jsonl", rows[:40])
    questions = _write(tmp_path / "asked.jsonl", [*rows[:4], *rows[40:44]])
    known_out = _write(tmp_path / "out.jsonl", rows[50:90])
    known_in = _write(tmp_path / "in.jsonl", rows[4:40])
    arguments = ["audit", f"lab:{corpus}", "--method", "mba", "--documents", questions]
    arguments += ["--known-out", known_out, "--known-in", known_in, "--json", tmp_path / "o.json"]
    code, said = command(*arguments)
    assert code == 0, said
    verdicts = {
        d["id"]: d["verdict"] for d in json.loads((tmp_path / "o.json").read_text())["documents"]
    }
    assert not any(verdicts[row["id"]] == "in" for row in rows[40:44])
    assert sum(verdicts[row["id"]] == "in" for row in rows[:4]) >= 2


def test_reproduce_lists_and_names_what_is_missing(command, tmp_path: Path) -> None:
    code, said = command("lab", "reproduce", "list", "--tables", _TABLES)
    assert code == 0
    assert "mba/table2" in said
    code, said = command("lab", "reproduce", "mba/none", "--tables", _TABLES)
    assert code == 2
    assert "no table 'mba/none'" in said
    code, said = command("lab", "reproduce", "mba/table2", "--tables", _TABLES)
    assert code == 2
    assert "--data DIR" in said
    code, said = command("lab", "reproduce", "mba/table2", "--tables", _TABLES, "--data", tmp_path)
    assert code == 2
    assert "healthcaremagic.jsonl, which is not there" in said.replace("\n", "")
    code, said = command("lab", "reproduce", "mba/table2", "--tables", tmp_path)
    assert code == 2
    for arguments, says in (
        (["--world", "easy", "--generator", "reader:x"], "A world sets the generator"),
        (["--world", "harder"], "no world 'harder'"),
        (["--model", "reader"], "--model does not apply"),
        (["--cases", "Enron"], "No case of s-rag/fig6 begins with 'Enron'"),
    ):
        code, said = command(
            "lab", "reproduce", "s-rag/fig6", "--tables", _TABLES, "--data", tmp_path, *arguments
        )
        assert (code, says in said.replace("\n", " ")) == (2, True), said


def test_a_preset_before_a_colon_is_not_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("s2mia:m: classifier", markup=False)
    assert capsys.readouterr().out == "s2mia:m: classifier\n"


@pytest.mark.slow
def test_reproduce_writes_every_column_and_what_was_left_out(command, rows, tmp_path: Path) -> None:
    _write(tmp_path / "corpus.jsonl", rows[:60])
    (tmp_path / "t" / "x").mkdir(parents=True)
    (tmp_path / "t" / "worlds.toml").write_text(
        '[plain]\ngenerator = "reader"\nwhy = "the packaged reader"\n'
        '[twins]\ngenerator = "reader"\ntwins = true\nwhy = "edited copies"\n'
    )
    (tmp_path / "t" / "x" / "tables.toml").write_text(
        """[t]
title = "A table"
audits = ["rag-mia:paper", "mba:paper"]
control = false
differs = ["It is small."]
[[t.case]]
label = "plain"
corpus = "corpus.jsonl"
published."rag-mia:paper" = {auc = 0.743, accuracy = 0.742, f1 = 0.789}
[[t.case]]
label = "by a model"
corpus = "corpus.jsonl"
defense = "paraphrase"
by_model = true
"""
    )
    arguments = ["lab", "reproduce", "x/t", "--tables", tmp_path / "t", "--data", tmp_path]
    arguments += ["--limit", 8, "--calibration", 4, "--out", tmp_path / "out", "--world", "plain"]
    code, said = command(*arguments, "--audits", "rag-mia:paper")
    assert code == 0, said
    folder = tmp_path / "out" / "x" / "t-plain"
    text = (folder / "table.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| plain"))
    assert [cell.split(" / ")[0].strip() for cell in row.split("|")[3:6]] == [
        ".743",
        ".742",
        ".789",
    ]
    assert "| rag-mia:paper | threshold 0.5, the method's own |" in text
    assert "Left out: by a model (it needs --model)" in text
    assert "World: plain (reader): the packaged reader" in text
    assert "--limit 8 --calibration 4 --audits rag-mia:paper --world plain" in text
    data = json.loads((folder / "table.json").read_text())
    assert set(data["cases"][0]["audits"]) == {"rag-mia:paper"}
    # In a world of near-duplicates each of the indexed documents has a copy beside it.
    code, said = command(*arguments[:-1], "twins", "--audits", "rag-mia:paper", "--cases", "plain")
    assert code == 0, said
    twins = json.loads((tmp_path / "out" / "x" / "t-twins" / "table.json").read_text())["cases"][0]
    assert twins["settings"]["documents"] == str(2 * twins["sizes"]["indexed"])
    # The same case again: its answers are kept.
    before = (folder / "answers.jsonl").stat().st_size
    code, said = command(*arguments, "--audits", "rag-mia:paper", "--cases", "plain")
    assert code == 0, said
    assert (folder / "answers.jsonl").stat().st_size == before
