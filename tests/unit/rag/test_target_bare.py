"""A model alone as target and server: raw texts are read as they stand, and scored as written."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import httpx2
import numpy as np
import pytest

from ragwitness.core.errors import InputError, TargetResponseError
from ragwitness.core.types import Query
from ragwitness.models.base import ChatPrompt
from ragwitness.rag.server import create_app
from ragwitness.rag.target import BareSystem, LabTarget
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.resolve import open_target
from tests.unit.rag.rag_fakes import served

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.slow  # torch takes seconds to load

from ragwitness.models.hf import HFLanguageModel

TEXT = "one two three two one two"
_WORDS = ["<eos>", "<bos>", "<unk>", "one", " one", "two", " two", "three", " three"]


@pytest.fixture(scope="module", params=["no bos", "bos"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    core = Tokenizer(models.WordLevel({w: n for n, w in enumerate(_WORDS)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?\w+"), "isolated")
    core.decoder = decoders.Fuse()
    begin = {"bos_token": "<bos>"} if request.param == "bos" else {}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<eos>", unk_token="<unk>", **begin
    )
    tokenizer.chat_template = "{{ messages[-1]['content'] }}"
    torch.manual_seed(0)
    shape = transformers.LlamaConfig(
        vocab_size=len(_WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=16, bos_token_id=None, eos_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("alone")
    transformers.LlamaForCausalLM(shape).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def _truth(folder: Path, text: str) -> list[float]:
    """Log-probabilities by transformers itself; NaN for a token with nothing before it."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    before = [tokenizer.bos_token_id] if tokenizer.bos_token else []
    with torch.no_grad():
        scores = model(input_ids=torch.tensor([before + ids])).logits[0].log_softmax(1)
    found = [float(scores[n, one]) for n, one in enumerate([*before, *ids][1:])]
    return found if before else [math.nan, *found]


def test_a_raw_text_is_scored_as_it_stands(folder: Path) -> None:
    model = HFLanguageModel(folder, device="cpu")
    texts = [TEXT, "two"]
    for text, scores in zip(texts, model.score(texts, after=[ChatPrompt(())] * 2, top=2),
                            strict=True):  # fmt: skip
        np.testing.assert_allclose(scores.logprobs, _truth(folder, text), atol=1e-5)
        assert len(scores.tokens) == len(scores.ids) == len(scores.ranks)
        assert scores.tokens[-1].token.strip() == text.split()[-1]


def test_what_is_echoed_is_what_it_writes_by(folder: Path) -> None:
    """Over HTTP and in this process alike."""

    async def ask(target: LabTarget | OpenAITarget) -> tuple[list[float], float, str]:
        echoed = await target.echo(TEXT, 1)
        wrote = await target.go_on(Query("one two three two one", 1, top_logprobs=9))
        listed = dict((wrote.tokens or ())[0].top)
        chat = await target.ask(Query("one two three two one", 1))
        await target.close()
        assert chat.text == wrote.text  # the query is all that is read
        return [one.logprob for one in echoed], listed[" two"], wrote.text

    own = asyncio.run(open_target(f"hf:{folder}"))
    assert isinstance(own, LabTarget)
    with served(create_app(BareSystem(HFLanguageModel(folder)), key="")) as url:
        over_http = asyncio.run(ask(asyncio.run(open_target(url))))
    here = asyncio.run(ask(own))
    assert over_http[2] == here[2]
    for scores, listed, _ in (here, over_http):
        np.testing.assert_allclose(scores[1:], _truth(folder, TEXT)[1:], atol=1e-4)
        assert scores[-1] == pytest.approx(listed, abs=1e-4)


def test_what_cannot_be_read_is_refused_by_name(folder: Path) -> None:
    target = LabTarget(BareSystem(HFLanguageModel(folder)))
    with pytest.raises(TargetResponseError, match="17 tokens"):
        asyncio.run(target.go_on(Query("one" + " two" * 15, 1)))
    with served(create_app(target.system, key="")) as url:
        body = {"messages": [{"role": "user", "content": "one" + " two" * 15}]}
        reply = httpx2.post(f"{url}/chat/completions", json=body, timeout=10, trust_env=False)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_the_reader_is_not_served_alone() -> None:
    from ragwitness.rag.lab import bare_target

    with pytest.raises(InputError, match="without a corpus"):
        bare_target("reader")
