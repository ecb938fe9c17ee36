"""Bad input ends in one clear line, a next step and the right exit code; never a traceback."""

import json
from pathlib import Path

import pytest

from ragwitness.runner.task_runtime import as_documents
from ragwitness.text.sample import load_sample

_GOOD = '{"id": "a", "text": "one two three four five six seven eight nine ten eleven twelve"}\n'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    path.write_text(_GOOD)
    return path


_NOBODY = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02\xff" * 50, "binary"),
        (b'{"id": "a"}\n', "bad.jsonl:1"),
        (b"not json\n", "JSON"),
        (b"[1, 2]\n", "object"),
    ],
    ids=["empty", "binary", "no text", "no json", "no object"],
)
def test_unusable_document_files_are_named(command, tmp_path, content, says) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    code, text = command("audit", _NOBODY, "--documents", path)
    assert code == 2
    assert "bad.jsonl" in text
    assert says in text


@pytest.mark.parametrize("by", ["command line", "file"])
def test_a_run_folder_without_a_name_is_not_the_current_one(
    by, command, good, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    options = tmp_path / "run.toml"
    options.write_text('run = ""\n')
    given = ("--run", "") if by == "command line" else ("--config", options)
    code, text = command("leak", _NOBODY, "--corpus", good, *given)
    assert code == 2
    assert "names no folder" in text
    assert {one.name for one in tmp_path.iterdir()} == {"good.jsonl", "run.toml"}


@pytest.mark.parametrize("by", ["command line", "file"])
@pytest.mark.parametrize("option", ["secrets", "background", "json"])
def test_an_empty_path_is_refused_by_name(option, by, command, good, tmp_path):
    options = tmp_path / "run.toml"
    options.write_text(f'{option} = ""\n')
    given = (f"--{option}", "") if by == "command line" else ("--config", options)
    code, text = command("leak", _NOBODY, "--corpus", good, *given)
    assert code == 2
    assert option in text
    assert "names nothing" in text


def test_missing_file_is_named(command, tmp_path) -> None:
    code, text = command("audit", _NOBODY, "--documents", tmp_path / "nowhere.jsonl")
    assert code == 2
    assert "nowhere.jsonl" in text


def test_endpoint_that_is_down_is_named(command, good, tmp_path) -> None:
    code, text = command(
        "audit", _NOBODY, "--documents", good, "--run", tmp_path / "run", "--retries", 0
    )
    assert code == 1
    assert "127.0.0.1:9" in text
    assert "next:" in text


@pytest.mark.parametrize("target", ["nonsense", "ftp://host/v1", "lab:", "lab:/no/such/file.jsonl"])
def test_unknown_targets_are_named(command, good, target) -> None:
    code, text = command("audit", target, "--documents", good)
    assert code == 2
    assert "error:" in text


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--alpha", "1.5", "alpha"),
        ("--method", "magic", "s-rag"),
        ("--retrieval", "nope", "nope"),
        ("--proxy", "gpt", "gpt"),
    ],
)
def test_impossible_options_are_named(command, good, tmp_path, option, value, says) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(_GOOD)
    code, text = command(
        "audit", f"lab:{corpus}", "--documents", good, "--run", tmp_path / "run",
        "--method", "s-rag:paper", option, value,
    )  # fmt: skip
    assert code == 2
    assert says in text


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("k=none", "option k must be"),
        ("colour=red", "'colour'"),
        ("metric=cosine", "'cosine'"),
        ("template=nope", "nope"),
    ],
)
def test_impossible_lab_options_are_named(command, good, option, says) -> None:
    code, text = command("audit", f"lab:{good}?{option}", "--documents", good)
    assert code == 2
    assert says in text


def test_an_empty_known_out_is_not_ignored(command, good) -> None:
    code, _ = command("audit", _NOBODY, "--documents", good, "--known-out", "")
    assert code == 2


def test_an_unwritable_result_is_named_before_anything_is_sent(command, good, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    code, text = command("audit", _NOBODY, "--documents", good, "--json", tmp_path / "file" / "o")
    assert code == 2
    assert "Cannot write" in text


def test_report_of_an_unknown_run_says_what_to_do(command, tmp_path) -> None:
    code, text = command("report", tmp_path)
    assert code == 2
    assert "result.json does not exist" in " ".join(text.split())
    assert "next:" in text


def test_report_of_a_broken_result_names_the_file(command, tmp_path) -> None:
    (tmp_path / "result.json").write_text('{"documents": 3}')
    code, text = command("report", tmp_path)
    assert code == 2
    assert "documents" in text or "result.json" in text


@pytest.mark.parametrize("task", ["audit", "collection", "leak", "compare"])
def test_rows_left_out_are_told_in_the_result_too(command, tmp_path, monkeypatch, task) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [" ".join(one.text.split()[:15]) for one in load_sample()[:26]]

    def write(name: str, part: list[str]) -> Path:
        rows = [json.dumps({"id": f"{name}{n}", "text": text}) for n, text in enumerate(part)]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join([*rows, '{"id": "hollow"}', ""]))
        return path

    asked, known = write("asked", texts[:6]), write("known", texts[6:])
    held, run = f"lab:{asked}?generator=repeat", ("--run", tmp_path / "run")
    code, text = {
        "audit": lambda: command(
            "audit", f"lab:{asked}?k=1", "--documents", asked, "--known-out", known, "--method",
            "rag-mia", "--yes", *run,
        ),
        "collection": lambda: command(
            "audit", f"lab:{asked}?k=1", "--documents", asked, "--known-out", known, "--method",
            "rag-mia", "--collection", "--accept-unlike", "--yes", *run,
        ),
        "leak": lambda: command(
            "leak", held, "--corpus", asked, "--attacks", "composite", "--prompts", 2, *run
        ),
        "compare": lambda: command(
            "compare", asked, "--no-utility", "--method", "redact", "--attacks", "composite",
            "--prompts", 2, "--generator", "repeat", "--pii", "contacts", *run,
        ),
    }[task]()  # fmt: skip
    assert code == 0, text
    # Of the documents in question, and of those beside them, each by its name: everywhere.
    stored = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    lost = (stored.get("summary") or stored)["left_out"]
    assert (lost[0]["file"], lost[0]["line"]) == ("asked.jsonl", 7)
    for shown in (text, (tmp_path / "run" / "report.html").read_text(encoding="utf-8")):
        assert "asked.jsonl:7" in shown
        assert "could not be read and" in shown


def test_python_warns_of_rows_left_out(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(_GOOD + '{"id": "hollow"}\n')
    with pytest.warns(UserWarning, match="left out: rows.jsonl:2: no field"):
        assert len(as_documents(path)) == 1
    path.write_text(_GOOD)
    assert len(as_documents(path)) == 1
