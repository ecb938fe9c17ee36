"""``--method auto`` at the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.chatting import answering
from tests.support.loopback import chat_body, loopback, reply

pytestmark = pytest.mark.slow

_MODELS = reply({"object": "list", "data": [{"id": "m", "object": "model"}]})
_NO = reply(chat_body("No, it is not."))


@pytest.fixture
def files(tmp_path) -> list[object]:
    rows = [json.dumps({"id": d.id, "text": d.text}) for d in load_sample()]
    asked, known = tmp_path / "asked.jsonl", tmp_path / "known.jsonl"
    asked.write_text("\n".join(rows[:2]) + "\n")
    known.write_text("\n".join(rows[200:240]) + "\n")
    return ["--documents", asked, "--known-out", known, "--run", tmp_path / "run"]


def test_auto_says_what_it_chose_and_why_and_resumes(command, files, tmp_path):
    line = ("--method", "auto", "--concurrency", "1", "--yes", "--accept-unlike")
    with loopback(answering(lambda: server)) as server:
        code, text = command("audit", f"{server.url}#m", *files, *line)
        assert code == 0, text
        first = len(server.requests)
        code, again = command("audit", f"{server.url}#m", *files, *line)
        assert code == 0, again
        # The same answers; what the target gives was kept too.
        assert len(server.requests) == first
    result = json.loads((tmp_path / "run" / "result.json").read_text())["summary"]
    told = result["settings"]["chosen"]
    assert told.startswith(f"auto chose {result['method']}")
    assert re.search(r"1 query a document|queries a document", told)
    assert "4 of 4 texts shown in the question stood out" in told
    assert told in " ".join(text.split())
    assert told in " ".join(again.split())
    # A reader of the report learns it too.
    assert "auto chose" in (tmp_path / "run" / "report.html").read_text()


def test_a_target_that_no_method_can_read_is_asked_and_the_result_says_so(command, files):
    with loopback(_MODELS, _NO) as server:
        line = ("--method", "auto", "--yes", "--accept-unlike")
        code, text = command("audit", f"{server.url}#m", *files, *line)
    assert code == 0
    said = " ".join(text.split())
    assert "0 of 4 texts shown in the question stood out" in said
    assert "it is asked all the same" in said
    assert "0 of 2 documents: in the database" in said
    assert "warning: " in said


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--set", "top=3"), "top belongs to one"),
        (("--k", "9"), "--k is for a shadow system, and auto asks none"),
    ],
)
def test_auto_refuses_what_only_a_named_method_can_mean(command, files, more, says):
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *files, "--method", "auto", *more)
        assert server.requests == []
    assert code == 2
    assert says in " ".join(text.split())


def test_auto_sends_nothing_where_no_method_could_score_anything(command, files):
    Path(files[1]).write_text("".join(json.dumps({"text": f"tiny {i}"}) + "\n" for i in range(9)))
    with loopback(_MODELS, _NO) as server:
        line = ("--method", "auto", "--yes", "--accept-unlike")
        code, text = command("audit", f"{server.url}#m", *files, *line)
        assert server.requests == []
    assert code == 2
    assert "so nothing was sent" in " ".join(text.split())


def test_auto_is_the_default_and_a_dry_run_says_what_it_would_be(command, files):
    with loopback(_MODELS, _NO) as server:
        code, text = command("audit", f"{server.url}#m", *files, "--dry-run")
        assert server.requests == []
    assert code == 0
    assert "without that, it would be joint" in text
    assert "Nothing was sent." in text


def test_options_of_a_shadow_system_need_a_method_that_asks_one(command, files):
    lines = (("--k", "9"), ("--generator", "repeat"), ("--retrieval", "minilm"), ("--automl",))
    for line in lines:
        for method in ("s-rag", "rag-mia"):
            code, text = command("audit", "http://x/v1#m", *files, *line, "--method", method)
            assert code == 2
            assert f"{line[0]} is for a shadow system, and {method} asks none" in text
    learns = ("--method", "s2mia:m", "--k", "9", "--dry-run")
    assert command("audit", "http://x/v1#m", *files, *learns)[0] == 0


def test_a_folder_given_to_another_question_keeps_the_first_ones_result(command, files, tmp_path):
    line = ("--method", "rag-mia", "--concurrency", "1", "--yes", "--accept-unlike")
    asked, folder = files[1], tmp_path / "run"
    with loopback(_MODELS, _NO) as server:
        assert command("audit", f"{server.url}#m", *files, *line)[0] == 0
        # The same question again: nothing is kept twice.
        code, text = command("audit", f"{server.url}#m", *files, *line)
        assert code == 0, text
        assert "earlier result" not in text
        assert not list(folder.glob("result-*"))
        first = (folder / "result.json").read_bytes()
        rows = asked.read_text().splitlines()
        asked.write_text(rows[1].replace("a", "e") + "\n")
        code, text = command("audit", f"{server.url}#m", *files, *line)
        assert code == 0, text
    assert "earlier result is kept" in " ".join(text.split())
    assert (folder / "result-1.json").read_bytes() == first
    assert (folder / "result.json").read_bytes() != first
    # What was kept is no place for an output.
    named = ("--json", folder / "result-1.json")
    code, text = command("audit", "http://127.0.0.1:9#m", *files, *line, *named)
    assert code == 2
    assert "would replace a file that --run" in " ".join(text.split())
    assert (folder / "result-1.json").read_bytes() == first
