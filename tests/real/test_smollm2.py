"""A small chat model out of a GGUF file behind RAG prompts in use, wherever a model is named."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ragwitness.cli.main import app
from ragwitness.core.errors import CapabilityError, ModelError
from ragwitness.core.types import Answer, Document, Message, Query, Role
from ragwitness.models.base import ChatPrompt, PromptTooLongError
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.lab import lab_target, open_model, rag_config
from ragwitness.rag.server import create_app
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.resolve import open_target
from tests.unit.rag.rag_fakes import served

pytestmark = pytest.mark.slow

TEXTS = [
    "The mill at Oberau grinds spelt on Tuesdays, and its keeper is Henrike Vosskamp.",
    "The ferry of Lake Sarn leaves at seven in the morning, and costs four crowns.",
    "The library of Kolding lends maps for nine days, and closes at noon on Fridays.",
]
CORPUS = [Document(f"d{i}", text) for i, text in enumerate(TEXTS)]
QUERY = Query("Who is the keeper of the mill at Oberau?", 40, top_logprobs=5)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("\n".join(json.dumps({"id": d.id, "text": d.text}) for d in CORPUS))
    return path


def checked(answer: Answer) -> None:
    """Text with its log-probabilities, and the fact that only a passage holds."""
    assert "Vosskamp" in answer.text
    assert answer.tokens
    assert "".join(token.token for token in answer.tokens) == answer.text
    assert all(-30 < token.logprob <= 0 for token in answer.tokens)
    assert all(len(token.top) == 5 for token in answer.tokens)
    # Greedy: no alternative is more probable than what was said.
    assert all(token.logprob >= token.top[0][1] - 1e-6 for token in answer.tokens)


@pytest.mark.parametrize("template", ["langchain", "llamaindex", "strict"])
def test_it_answers_from_the_passages_under_prompts_in_use(template: str, smollm2: str) -> None:
    config = rag_config(generator=smollm2, template=template, k=1)
    target = lab_target(CORPUS, config, "none")
    checked(asyncio.run(target.ask(QUERY)))


def test_an_address_and_a_served_system_answer_alike(smollm2: str, corpus: Path) -> None:
    address = f"lab:{corpus}?generator={smollm2}&template=langchain&k=1"
    target: Any = asyncio.run(open_target(address))
    here = asyncio.run(target.ask(QUERY))
    checked(here)

    async def there(url: str) -> Answer:
        async with await OpenAITarget.connect(url) as far:
            return await far.ask(QUERY)

    with served(create_app(target.system, key="")) as url:
        over_http = asyncio.run(there(url))
    checked(over_http)
    assert over_http.text == here.text  # nor does it depend on what was asked before


def test_doctor_and_audits_meet_it(smollm2: str, corpus: Path) -> None:
    seen = CliRunner().invoke(
        app, ["doctor", f"lab:{corpus}?generator={smollm2}&k=1", "--no-pilot"]
    )
    assert seen.exit_code == 0, seen.output
    # A proxy has to score; this one cannot, and nothing is asked before that is said.
    run = corpus.parent / "run"
    asked = ["audit", f"lab:{corpus}?k=1", "--documents", str(corpus), "--proxy", smollm2]
    said = CliRunner().invoke(app, [*asked, "--method", "s-rag", "--yes", "--run", str(run)])
    assert isinstance(said.exception, CapabilityError), said.output
    assert "cannot score" in said.exception.message
    assert "--proxy reader" in said.exception.hint
    assert not list(run.rglob("answers.jsonl"))


def test_it_plays_a_role_alone_and_samples_by_its_seed(smollm2: str) -> None:
    target: Any = asyncio.run(open_model(smollm2))
    warm = [Query("Name a river.", 12, 1.0, seed=seed) for seed in (1, 1, 2, 3)]
    said = [asyncio.run(target.ask(one)).text for one in warm]
    assert said[0] == said[1]
    assert len(set(said)) > 1


def test_it_counts_by_itself_and_refuses_what_is_too_long(smollm2: str) -> None:
    model = load_language_model(smollm2)
    assert re.fullmatch(r"gguf:smollm2@[0-9a-f]{6}", model.name)
    assert model.context_length == 8192
    assert model.count_tokens("Hello there") == 2
    long = ChatPrompt((Message(Role.USER, "word " * 9000),))
    with pytest.raises(PromptTooLongError, match="9031 tokens"):
        model.generate([long], max_tokens=1)


def test_a_file_cut_short_is_named(smollm2: str, tmp_path: Path) -> None:
    whole = Path(smollm2.removeprefix("gguf:"))
    with whole.open("rb") as stream:
        (tmp_path / "cut.gguf").write_bytes(stream.read(50_000_000))
    with pytest.raises(ModelError, match="cut short") as caught:
        load_language_model(f"gguf:{tmp_path / 'cut.gguf'}")
    assert "sha256" in caught.value.hint
