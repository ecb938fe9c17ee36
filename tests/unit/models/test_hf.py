from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import MissingExtraError, ModelError
from ragwitness.models.base import map_to_words
from ragwitness.models.hf import joined
from ragwitness.models.reader.model import Reader
from tests.unit.models.models_fakes import TEXT, conversation

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from ragwitness.models.embedders import HFEmbedder
from ragwitness.models.hf import HFLanguageModel

pytestmark = pytest.mark.slow  # torch takes seconds to load
PROMPTS = [
    conversation(TEXT, "What?", "the doctor"),
    conversation(TEXT, "Who?"),
    conversation("x", "y"),
]
TEXTS = ["gave 500 mg", "the patient came back", "日本語 naïve"]


@pytest.fixture(scope="module")
def model(folder: Path) -> HFLanguageModel:
    return HFLanguageModel(folder, device="cpu")


@pytest.mark.parametrize("with_context", [False, True])
def test_scores_equal_the_reader(model: HFLanguageModel, folder: Path, with_context: bool) -> None:
    reader = Reader.load(folder)
    after = PROMPTS if with_context else None
    texts = TEXTS if with_context else [" " + text for text in TEXTS]
    for ours, theirs in zip(
        model.score(texts, after=after, top=4),
        reader.score(texts, after=after, top=4),
        strict=True,
    ):
        np.testing.assert_array_equal(ours.ids, theirs.ids)
        np.testing.assert_array_equal(ours.offsets, theirs.offsets)
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-3)
        assert ours.prompt_tokens == theirs.prompt_tokens
        for one, other in zip(ours.tokens, theirs.tokens, strict=True):
            assert one.token == other.token
            assert [text for text, _ in one.top] == [text for text, _ in other.top]


def test_answers_equal_the_reader(model: HFLanguageModel, folder: Path) -> None:
    reader = Reader.load(folder)
    for options in ({}, {"temperature": 1.0, "seed": 5}, {"stop": ["e"]}):
        ours = model.generate(PROMPTS, max_tokens=7, top_logprobs=3, **options)
        theirs = reader.generate(PROMPTS, max_tokens=7, top_logprobs=3, **options)
        assert [a.text for a in ours] == [a.text for a in theirs]
        assert [a.finish_reason for a in ours] == [a.finish_reason for a in theirs]
        assert [a.prompt_tokens for a in ours] == [a.prompt_tokens for a in theirs]
        assert [a.completion_tokens for a in ours] == [a.completion_tokens for a in theirs]


def test_identity(model: HFLanguageModel, folder: Path) -> None:
    assert model.name.startswith("hf:tiny@")
    assert model.name.endswith(Reader.load(folder).name.removeprefix("reader@"))
    assert model.context_length == 1024
    assert model.count_tokens(" the doctor") == 2


def test_too_long_is_an_error(model: HFLanguageModel) -> None:
    with pytest.raises(ModelError, match="reads 1024"):
        model.score(["the " * 1100])
    with pytest.raises(ModelError, match="reads 1024"):
        model.generate([conversation("the " * 1100, "?")], max_tokens=1)


@pytest.mark.parametrize(
    ("before", "text", "whole"),
    [("a", "b", "a b"), ("a\n", "b", "a\nb"), ("a", " b", "a b"), ("", "b", "b"), ("a", "", "a")],
)
def test_joining(before: str, text: str, whole: str) -> None:
    assert joined(before, text) == whole


def test_plain_model_without_layout(folder: Path, tmp_path: Path) -> None:
    """GPT-2's kind: no chat template, a BOS token, messages joined by blank lines."""
    copy = Path(shutil.copytree(folder, tmp_path / "plain"))
    (copy / "chat_template.jinja").unlink()
    names = {"bos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (copy / "tokenizer_config.json").write_text(json.dumps(names))
    model = HFLanguageModel(copy, device="cpu")
    rendered = f"Context: {TEXT}\n\nWhat? the doctor"
    scores = model.score(["gave 12"], after=[PROMPTS[0]])[0]
    assert scores.prompt_tokens == 1 + model.count_tokens(rendered)
    whole = model.score([rendered + " gave 12"])[0]
    np.testing.assert_allclose(scores.logprobs, whole.logprobs[-len(scores.ids) :], atol=1e-4)
    assert [word.word for word in map_to_words("gave 12", scores)] == ["gave", "12"]


def test_unknown_models(tmp_path: Path) -> None:
    for factory in (HFLanguageModel, HFEmbedder):
        with pytest.raises(ModelError, match="cannot load") as caught:
            factory(tmp_path / "nothing")
        assert caught.value.hint


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for factory in (HFLanguageModel, HFEmbedder):
        with pytest.raises(MissingExtraError, match=r"ragwitness\[hf\]"):
            factory(folder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=24,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("first", [False, True])
def test_pooling_follows_the_folder(encoder: Path, tmp_path: Path, first: bool) -> None:
    copy = Path(shutil.copytree(encoder, tmp_path / "copy"))
    (copy / "1_Pooling").mkdir()
    stated = f'{{"pooling_mode_cls_token": {str(first).lower()}}}'
    (copy / "1_Pooling" / "config.json").write_text(stated)
    texts = ["a b c", "d", "e f g h i j k l m n o p q r s t u v w x y z a b c d e f", ""]
    vectors = HFEmbedder(copy).embed(texts)
    assert vectors.shape == (4, 16)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    model = transformers.AutoModel.from_pretrained(copy)
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    for text, vector in zip(texts, vectors, strict=True):
        inputs = tokenizer([text], return_tensors="pt", truncation=True, max_length=24)
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state[0]
        pooled = states[0] if first else states.mean(0)
        np.testing.assert_allclose(vector, pooled / pooled.norm(), atol=1e-5)
    assert HFEmbedder(copy).embed([]).shape == (0, 16)
