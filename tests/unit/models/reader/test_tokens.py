from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import ModelError
from ragwitness.core.types import Message, Role
from ragwitness.models.base import close_gaps
from ragwitness.models.reader.tokens import ReaderTokenizer, spoken


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> ReaderTokenizer:
    return ReaderTokenizer(folder)


MESSAGES = (
    Message(Role.SYSTEM, "Context: the doctor gave 500 mg.\n"),
    Message(Role.USER, "What did the doctor give?"),
    Message(Role.ASSISTANT, " paracetamol"),
    Message(Role.USER, "Fill in: the [Mask_1] came from [Mask_2]."),
)


@pytest.mark.slow
def test_layout_equals_transformers(folder: Path, tokenizer: ReaderTokenizer) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    turns = [{"role": str(m.role), "content": m.content} for m in MESSAGES]
    rendered = theirs.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert tokenizer.render(MESSAGES) == rendered
    ids = theirs(rendered, add_special_tokens=False)["input_ids"]
    assert tokenizer.encode_prompt(MESSAGES).tolist() == ids


def test_layout_by_hand(tokenizer: ReaderTokenizer) -> None:
    text = tokenizer.render(MESSAGES)
    assert text.startswith("<|system|>Context: the doctor gave 500 mg.\n<|user|>What")
    assert "<|assistant|> paracetamol<|end|><|user|>" in text
    assert text.endswith("[Mask_2].<|assistant|>")
    assert tokenizer.encode_prompt(MESSAGES)[[0, -1]].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [("word", " word"), (" word", " word"), ("\nword", "\nword"), ("", ""), (", and", " , and")],
)
def test_leading_space_rule(text: str, said: str) -> None:
    assert spoken(text) == said


def test_prefill_continues_like_one_text(tokenizer: ReaderTokenizer) -> None:
    """Prefill and text, tokenised apart, give the tokens of the whole answer."""
    base = tokenizer.encode_prompt(MESSAGES)
    whole = tokenizer.encode_spoken("the doctor gave 12 mg")[0]
    for prefill, rest in (("the doctor", "gave 12 mg"), ("the doctor gave ", " 12 mg")):
        with_prefill = tokenizer.encode_prompt(MESSAGES, prefill)
        parts = np.concatenate((with_prefill, tokenizer.encode_spoken(rest)[0]))
        np.testing.assert_array_equal(parts, np.concatenate((base, whole)))


@pytest.mark.parametrize(
    "text",
    [
        "the doctor gave 500 mg",
        " the doctor",
        "  two  spaces\n\nand lines ",
        "Émile naïve 日本語 🙂 Ж",
        "fill [Mask_1] and [Mask_20].",
        "it's 10.6 \u2014 \u2018quoted\u2019",
    ],
)
def test_offsets_cover_the_text(tokenizer: ReaderTokenizer, text: str) -> None:
    ids, offsets = tokenizer.encode_spoken(text)
    assert offsets.shape == (len(ids), 2)
    assert offsets[0, 0] == 0
    assert offsets[-1, 1] == len(text)
    starts, ends = offsets[1:, 0], offsets[:-1, 1]
    assert (starts <= ends).all(), "no gaps: a space belongs to the token after it"
    assert ((starts == ends) | (starts == offsets[:-1, 0])).all(), "overlap only inside a character"
    for token, (start, end) in zip(ids.tolist(), offsets.tolist(), strict=True):
        piece = tokenizer.token_text(token)
        if "\ufffd" not in piece and not piece.startswith("[Mask_"):
            assert text[start:end] in (piece, piece.lstrip(" ")), "the leading space is ours"


def test_space_belongs_to_its_token(tokenizer: ReaderTokenizer) -> None:
    _, offsets = tokenizer.encode_spoken("the doctor [Mask_3] gave")
    assert [0, 3] in offsets.tolist()
    assert [3, 10] in offsets.tolist()
    assert [10, 19] in offsets.tolist()


def test_trimmed_offsets_are_closed() -> None:
    offsets = np.array([[0, 3], [4, 7], [7, 8], [9, 10], [9, 10]])
    assert close_gaps(offsets).tolist() == [[0, 3], [3, 7], [7, 8], [8, 10], [9, 10]]
    assert close_gaps(np.empty((0, 2), np.int64)).shape == (0, 2)


@pytest.mark.parametrize("text", ["naïve 日本語 🙂", "tabs\tand\nlines", "500 mg, it's fine"])
def test_decoding_inverts_encoding(tokenizer: ReaderTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).tolist()) == text


def test_partial_characters_become_the_replacement(tokenizer: ReaderTokenizer) -> None:
    ids = tokenizer.encode("🙂").tolist()
    assert len(ids) > 1
    assert {tokenizer.token_text(token) for token in ids} == {"\ufffd"}
    assert tokenizer.decode(ids[:-1]).strip("\ufffd") == ""
    assert tokenizer.decode(ids[:-1]).encode("utf-8")


def test_control_tokens_are_not_text(tokenizer: ReaderTokenizer) -> None:
    ids = [*tokenizer.encode(" the").tolist(), 4]
    assert tokenizer.decode(ids) == " the"
    assert tokenizer.token_text(4) == "<|end|>"
    assert tokenizer.stop_ids == frozenset(range(5))
    assert tokenizer.token_text(639) == "", "a row of the embedding that no token uses"


def _copy(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target / "copy"))


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("chat_template.jinja", "{% if %}", "does not compile"),
        ("generation_config.json", "{}", "no eos_token_id"),
        ("tokenizer.json", '{"decoder": {"type": "WordPiece"}}', "not byte-level"),
    ],
)
def test_unusable_files(folder: Path, tmp_path: Path, file: str, content: str, says: str) -> None:
    copy = _copy(folder, tmp_path)
    (copy / file).write_text(content)
    with pytest.raises(ModelError, match=says):
        ReaderTokenizer(copy)


def test_template_can_fail(folder: Path, tmp_path: Path) -> None:
    copy = _copy(folder, tmp_path)
    (copy / "chat_template.jinja").write_text("{{ messages[0]['role'] }}")
    with pytest.raises(ModelError, match="cannot lay the conversation out"):
        ReaderTokenizer(copy).render([])


def test_template_can_refuse(folder: Path, tmp_path: Path) -> None:
    copy = _copy(folder, tmp_path)
    (copy / "chat_template.jinja").write_text("{{ raise_exception('no system turn') }}")
    with pytest.raises(ModelError, match="no system turn"):
        ReaderTokenizer(copy).render(MESSAGES)
