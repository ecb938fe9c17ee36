"""The commands of the README, in their own processes, over HTTP, with the packaged reader."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ragwitness.text.sample import load_sample

_CLI = [sys.executable, "-m", "ragwitness"]


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _journal(run: Path) -> Path:
    """The journal of a run, packed or not."""
    [found] = run.glob("answers.jsonl*")
    return found


def _opening(text: str) -> str:
    """The first words of a document: its length is not what is tried here, and costs time."""
    return " ".join(text.split()[:30])


def _unscorable(documents: list[dict[str, object]]) -> int:
    return sum(row["score"] is None for row in documents)


def _call(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_CLI, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("audit")
    rows = [{"id": d.id, "text": _opening(d.text)} for d in load_sample()[::7]]
    questions = [{**row, "member": True} for row in rows[:3]]
    questions += [{**row, "member": False} for row in rows[42:45]]
    questions.append({"id": "<script>alert(1)</script>", "text": "two words", "member": False})
    return {
        "corpus": _write(folder / "corpus.jsonl", rows[:40]),
        "documents": _write(folder / "documents.jsonl", questions),
        "known": _write(folder / "known.jsonl", rows[48:56]),
        "folder": folder,
    }


@pytest.fixture(scope="module")
def lab(files) -> Iterator[str]:
    yield from _served(files)


@pytest.fixture(scope="module")
def repeating(files) -> Iterator[str]:
    """A lab whose answers cost no time. The audit's own model is the reader all the same."""
    yield from _served(files, "--generator", "repeat")


def _served(files, *options: str) -> Iterator[str]:
    command = [*_CLI, "lab", "serve", "--corpus", str(files["corpus"]), "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if found := re.search(r"http://\S+/v1", line):
                yield found.group()
                break
        else:
            pytest.fail("the lab did not start")
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


@pytest.fixture(scope="module")
def audited(files, repeating) -> dict[str, object]:
    out = files["folder"] / "out.json"
    arguments = [
        "audit",
        "--yes",
        repeating,
        "--documents",
        files["documents"],
        "--known-out",
        files["known"],
    ]
    arguments += ["--run", files["folder"] / "run"]
    done = _call(*arguments, "--json", out)
    assert done.returncode == 0, done.stderr
    return {"stdout": done.stdout, "json": json.loads(out.read_text()), "arguments": arguments}


@pytest.mark.slow
def test_doctor_measures_the_lab(lab) -> None:
    done = _call("doctor", lab)
    assert done.returncode == 0
    assert "top_logprobs" in done.stdout
    assert "s-rag" in done.stdout


def test_json_has_the_promised_shape(audited) -> None:
    documents = audited["json"]["documents"]
    assert len(documents) == 7
    for row in documents:
        assert row["verdict"] in {"in", "out", "inconclusive"}
        assert isinstance(row["queries"], int)
        if row["score"] is None:
            assert row["reason"]
            assert row["p_value"] is None
        else:
            assert 0 < row["p_value"] <= 1
    assert documents[-1]["score"] is None
    # The reader declines now and then where it cannot know: no score, and it says so.
    assert {row["reason"] for row in documents[:-1] if row["score"] is None} <= {
        "the target refused to answer"
    }
    assert audited["json"]["summary"]["evaluation"]["unscorable"] == _unscorable(documents) <= 3


def test_members_score_higher_than_non_members(audited, files) -> None:
    asked = map(json.loads, files["documents"].read_text(encoding="utf-8").splitlines())
    members = {row["id"] for row in asked if row["member"]}
    rows = [row for row in audited["json"]["documents"] if row["score"] is not None]
    inside = [row["score"] for row in rows if row["id"] in members]
    outside = [row["score"] for row in rows if row["id"] not in members]
    wins = sum((a > b) + (a == b) / 2 for a in inside for b in outside)
    assert wins / (len(inside) * len(outside)) > 0.8


def test_terminal_output_fits_eighty_columns(audited) -> None:
    lines = [line for line in audited["stdout"].splitlines() if not line.startswith("report:")]
    assert max(map(len, lines)) <= 80


def test_report_is_one_escaped_page(audited, files) -> None:
    page = (files["folder"] / "run" / "report.html").read_text()
    assert "<script>alert" not in page
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)
    HTMLParser().feed(page)


@pytest.mark.slow
def test_the_same_command_with_formats_is_answered_from_the_journal(audited, files) -> None:
    journal, out = _journal(files["folder"] / "run"), files["folder"] / "ci"
    before = journal.read_bytes()
    wanted = ["--fail-on", "unscorable:5%", "--junit", f"{out}.xml", "--jsonl", f"{out}.jsonl"]
    done = _call(*audited["arguments"], *wanted)
    assert done.returncode == 3, done.stderr
    unscorable = _unscorable(audited["json"]["documents"])
    assert f"fails --fail-on unscorable:5% ({unscorable} of 7 documents)" in done.stdout
    assert journal.read_bytes() == before
    lines = Path(f"{out}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == audited["json"]["documents"]
    root = ElementTree.parse(f"{out}.xml").getroot()  # noqa: S314
    failed = [
        case.get("name") for case in root.iter("testcase") if case.find("failure") is not None
    ]
    rows = audited["json"]["documents"]
    assert failed == [row["id"] for row in rows if row["score"] is None]


def test_report_renders_a_stored_run_again(audited, files) -> None:
    done = _call("report", files["folder"] / "run", "--html", files["folder"] / "other.html")
    assert done.returncode == 0
    assert (files["folder"] / "other.html").stat().st_size > 10_000
