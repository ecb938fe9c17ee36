"""The commands of docs/chat-models.md, at a chat endpoint that stands in for a model."""

from __future__ import annotations

import json
import re

from ragwitness.rag.config import TEMPLATES
from tests.cli import conftest
from tests.support.chatting import answering
from tests.support.loopback import loopback
from tests.support.pages import ROOT

command = conftest.command
_PAGE = (ROOT / "docs/chat-models.md").read_text(encoding="utf-8")


def test_a_lab_system_over_an_endpoint_is_looked_at_as_the_page_says(
    command,
    tmp_path,
) -> None:
    (shown,) = re.findall(r'^ragwitness doctor "lab:corpus.jsonl\?(.*)"$', _PAGE, re.M)
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"id": str(i), "text": f"Note {i} of the harbour master."} for i in range(5)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with loopback(answering(lambda: server)) as server:
        address = shown.replace("http://127.0.0.1:8080/v1#qwen", f"{server.url}#m")
        assert address != shown
        code, said = command("doctor", f"lab:{corpus}?{address}", "--no-pilot")
        assert code == 0, said
        asked = [body for path, body in server.requests if path.endswith("/chat/completions")]
    assert "rag-mia" in said
    # The strict prompt of the address reached the model.
    opening = TEMPLATES["strict"].system[:40]
    assert opening in str(asked[-1]["messages"])


def test_the_options_and_templates_of_the_page_exist(command) -> None:
    (options,) = re.findall(r"^ragwitness lab serve (.*)$", _PAGE, re.M)
    code, helped = command("lab", "serve", "--help")
    assert code == 0
    for option in re.findall(r"--[a-z-]+", options):
        assert option in helped
    assert set(re.findall(r"--template (\w+)", options)) <= set(TEMPLATES)
