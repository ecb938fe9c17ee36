"""Audits that can hardly decide, or only wrongly, say so before their first query."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from ragwitness.cli import steps
from ragwitness.membership.method_registry import AUDITS
from ragwitness.text.sample import load_sample
from tests.support.loopback import chat_body, loopback, reply

pytestmark = pytest.mark.slow

_MODELS = reply({"object": "list", "data": [{"id": "m", "object": "model"}]})
_NO = reply(chat_body("No, it is not."))
_FORM = ("--method", "rag-mia", "--concurrency", "1", "--retries", "1")


def _write(path: Path, texts: list[str]) -> Path:
    rows = (json.dumps({"id": f"{path.stem}-{i}", "text": text}) for i, text in enumerate(texts))
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def texts() -> list[str]:
    found = [document.text for document in load_sample()]
    random.Random(0).shuffle(found)
    return found


@pytest.fixture
def files(tmp_path, texts):
    def write(asked: int, known: int, change=lambda text: text) -> tuple[str, ...]:
        both = _write(tmp_path / "asked.jsonl", texts[:asked])
        outside = map(change, texts[asked : asked + known])
        other = _write(tmp_path / "known.jsonl", list(outside))
        return ("--documents", str(both), "--known-out", str(other), "--run", str(tmp_path / "run"))

    return write


@pytest.mark.parametrize(
    ("asked", "known", "says"),
    [
        (20, 20, "no single document can be called in at alpha 0.05 (smallest p-value 0.0476"),
        (8, 19, "only 8 or more together"),
        (8, 5, "no document can be called in at alpha 0.05 (smallest p-value 0.167"),
    ],
)
def test_off_a_terminal_it_is_refused_and_nothing_is_sent(command, files, asked, known, says):
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *files(asked, known), *_FORM)
        assert server.requests == []
    assert code == 2
    assert says in " ".join(text.split())
    assert "--yes" in text


def test_nineteen_known_out_suffice_for_one_document(command, files):
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *files(1, 19), *_FORM)
    assert code == 0
    assert "With 19 known-out documents and 1 document asked about, a single document" in text


def test_yes_goes_on_and_the_sentence_is_in_report_and_json(command, files, tmp_path):
    out = ("--json", tmp_path / "out.json", "--junit", tmp_path / "out.xml", "--yes")
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *files(8, 19), *_FORM, *out)
        assert len(server.requests) >= 27
    assert code == 0
    before, after = text.split("evidence: ", 1)
    sentence = "no single document can be called in at alpha 0.05"
    assert sentence in " ".join(before.split())
    assert "warning: " in after
    summary = json.loads((tmp_path / "out.json").read_text())["summary"]
    assert any(sentence in warning for warning in summary["warnings"])
    page = (tmp_path / "run" / "report.html").read_text()
    assert sentence in page
    # What it could decide with the scores that came: in JSON and page the same words.
    power = summary["calibration"]["power"]
    assert (power["known"], power["tied"]) == (19, 19)
    assert "or 1.00 for a score that only equals the highest of theirs" in power["told"]
    assert "Possible decisions" in page
    # All 19 say no: one tie, counted in words.
    assert summary["calibration"]["largest_tie"] == 19
    assert "19 of 19 calibration documents have the same score" in page


@pytest.mark.parametrize(("said", "code"), [("n\n", 130), ("y\n", 0)])
def test_at_a_terminal_one_is_asked(command, files, monkeypatch, said, code):
    import io

    from rich.console import Console

    terminal = io.StringIO(said)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("ragwitness.cli.steps.console", lambda: Console(force_terminal=True))
    with loopback(_MODELS, _NO) as server:
        found, text = command("audit", f"{server.url}#m", *files(8, 19), *_FORM)
        assert bool(server.requests) == (code == 0)
    assert found == code
    assert "Go on all the same?" in text


def _longer(text: str) -> str:
    return f"Archive copy. {text} {text} {text}"


def test_known_out_of_another_kind_are_refused_before_the_first_query(command, files):
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *files(4, 90, _longer), *_FORM)
        assert server.requests == []
    assert code == 2
    assert "differ from yours" in text


@pytest.mark.parametrize("insists", [False, True])
def test_unlike_known_out_accuse_nobody_unless_one_insists(
    command, files, texts, tmp_path, insists
):
    wanted = ("--json", tmp_path / "o.json", "--junit", tmp_path / "o.xml")
    line = (*files(4, 90, _longer), *_FORM, *wanted, "--yes", *["--accept-unlike"] * insists)

    def answer(connection) -> None:
        held = any(json.dumps(one[:60])[1:-1] in asked() for one in texts[:4])
        connection.sendall(reply(chat_body("Yes." if held else "No.")))

    with loopback(_MODELS, answer) as server:

        def asked() -> str:
            return json.dumps(server.requests[-1][1])

        code, text = command("audit", f"{server.url}#m", *line)
    assert code == 0
    summary = json.loads((tmp_path / "o.json").read_text())["summary"]
    assert summary["counts"]["in"] == (4 if insists else 0)
    assert summary["calibration"]["exact"] is False
    assert summary["calibration"]["likeness"]["p_value"] <= 0.01
    assert "Not exact" in text
    assert "Exact under this assumption" not in (tmp_path / "run" / "report.html").read_text()
    assert re.search(r'name="exact" value="no"', (tmp_path / "o.xml").read_text())


def test_known_out_equal_to_the_documents_up_to_case_spacing_and_id_are_named(command, files):
    with loopback(_MODELS, _NO) as server:
        line = files(20, 60)
        known = Path(line[3])
        copy = json.loads(Path(line[1]).read_text().splitlines()[2])["text"]
        loud = json.dumps({"id": "loud", "text": "  ".join(copy.upper().split())})
        known.write_text(known.read_text() + loud + "\n")
        code, text = command("audit", f"{server.url}#m", *line, *_FORM, "--yes")
        assert server.requests == []
    assert code == 2
    assert "'loud', there 'asked-2'" in text


@pytest.mark.parametrize("form", ["jsonl", "csv", "txt"])
def test_a_document_over_the_size_limit_is_named_with_the_limit(command, tmp_path, form):
    long, path = "many words " * 100_000, tmp_path / f"mine.{form}"
    path.write_text(
        {
            "jsonl": json.dumps({"id": "long", "text": long}),
            "csv": f"id,text\nlong,{long}\n",
            "txt": long,
        }[form]
    )
    code, text = command("audit", "http://127.0.0.1:9/v1", "--documents", path)
    assert code == 2
    assert "over the size limit of one document, 1,000,000 characters" in text


def test_a_target_that_turns_every_query_away_is_told_of_while_one_waits(
    command, files, monkeypatch
):
    monkeypatch.setattr(steps, "_EVERY", 0.02)  # seconds; five in earnest
    busy = reply({"error": {"message": "busy"}}, 429, Retry_After="0.1")
    with loopback(_MODELS, busy) as server:
        code, text = command("audit", f"{server.url}#m", *files(1, 19), *_FORM)
    assert code != 0
    assert text.count("waiting: the target turned") >= 2
    assert "0 were answered; trying again" in text


def test_a_target_that_dies_in_the_middle_says_that_the_same_command_resumes(command, files):
    line = (*files(1, 19), *_FORM, "--retries", "0")
    with loopback(_MODELS, *[_NO] * 12, lambda connection: connection.close()) as server:
        url = server.url
        code, text = command("audit", f"{url}#m", *line)
    assert code == 1
    assert "the same command resumes" in text
    assert str(line[5]) in text


_ROADS = {
    "local": (),
    "ray": ("--engine", "ray"),
    "collection": ("--collection",),
}


@pytest.mark.parametrize("road", _ROADS)
@pytest.mark.parametrize("part", [1, 3], ids=["documents", "known-out"])
def test_nothing_is_sent_where_nothing_can_be_scored_whoever_asks(command, files, road, part):
    line = files(8, 60)
    _write(Path(line[part]), [f"tiny {i}" for i in range(60)])
    more = ("--accept-unlike",) if road == "collection" else ("--yes", "--accept-unlike")
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *line, *_FORM, *_ROADS[road], *more)
        assert server.requests == []
    assert code == 2
    which = "60 documents" if part == 1 else "60 known-out documents"
    assert f"None of the {which} can be scored by rag-mia" in " ".join(text.split())
    assert not (Path(line[5]) / "manifest.json").exists()


@pytest.mark.parametrize("method", list(AUDITS))
def test_no_method_asks_of_what_it_cannot_score(command, files, method):
    line = files(8, 60)
    _write(Path(line[1]), [f"tiny {i}" for i in range(60)])
    with loopback(_MODELS, _NO) as server:
        form = ("--method", method, "--yes", "--accept-unlike")
        code, text = command("audit", f"{server.url}#m", *line, *form)
        assert server.requests == []
    assert code == 2
    assert "so nothing was sent" in " ".join(text.split())


def test_a_collection_with_few_known_out_documents_says_so_before_it_asks(command, files):
    with loopback(_MODELS, _NO) as server:
        code, text = command(
            "audit", f"{server.url}#m", *files(30, 4), *_FORM, "--collection", "--accept-unlike"
        )
        assert server.requests == []
    assert code == 2
    assert "there are 30 of the collection and 4 known to be outside" in " ".join(text.split())
    assert "--yes" in text
