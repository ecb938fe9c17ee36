from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import ModelError
from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.models.reader.model import Reader
from tests.unit.models.models_fakes import TEXT, conversation

PROMPTS = [conversation(TEXT, question) for question in ("What?", "Who came back?", "500", "Why")]


def test_scores_are_those_of_the_whole_distribution(reader: Reader) -> None:
    text = "the doctor gave 500 mg"
    scores = reader.score([text], after=[PROMPTS[0]], top=640)[0]
    assert scores.prompt_tokens == len(reader.tokenizer.encode_prompt(PROMPTS[0].messages))
    assert scores.ids.shape == scores.logprobs.shape == scores.ranks.shape
    for position, token in enumerate(scores.tokens):
        values = np.array([logprob for _, logprob in token.top])
        assert np.exp(values).sum() == pytest.approx(1, abs=1e-5)
        assert (np.diff(values) <= 0).all()
        assert token.logprob == pytest.approx(scores.logprobs[position])
        assert values[scores.ranks[position]] == pytest.approx(token.logprob, abs=1e-6)
    assert "".join(token.token for token in scores.tokens) == " " + text


def test_scores_without_context_start_after_the_end_token(reader: Reader) -> None:
    scores = reader.score(["the doctor"])[0]
    assert scores.prompt_tokens == 1
    assert scores.tokens == ()
    first = reader.score(["the doctor"], after=[ChatPrompt((), "")])[0]
    assert first.logprobs[0] != pytest.approx(scores.logprobs[0])


def test_prefill_shifts_what_is_scored(reader: Reader) -> None:
    whole = reader.score(["the doctor gave 12"], after=[PROMPTS[0]])[0]
    prompt = ChatPrompt(PROMPTS[0].messages, "the doctor")
    rest = reader.score(["gave 12"], after=[prompt])[0]
    np.testing.assert_allclose(rest.logprobs, whole.logprobs[-len(rest.ids) :], atol=1e-4)


def test_empty_text(reader: Reader) -> None:
    scores = reader.score([""], after=[PROMPTS[0]], top=3)[0]
    assert scores.ids.shape == (0,)
    assert scores.offsets.shape == (0, 2)
    assert reader.score([]) == []
    assert reader.generate([], max_tokens=3) == []


def test_after_must_match(reader: Reader) -> None:
    with pytest.raises(ValueError, match="one conversation per text"):
        reader.score(["a", "b"], after=PROMPTS[:1])


def test_greedy_agrees_with_scores(reader: Reader) -> None:
    answer = reader.generate(PROMPTS[:1], max_tokens=6, top_logprobs=20)[0]
    assert answer.completion_tokens >= len(answer.tokens) > 0
    for token in answer.tokens:
        assert len(token.top) == 20
        assert token.top[0] == (token.token, pytest.approx(token.logprob, abs=1e-5))


def test_batch_equals_single(reader: Reader) -> None:
    together = reader.generate(PROMPTS * 3, max_tokens=9, top_logprobs=3)
    for prompt, ours in zip(PROMPTS * 3, together, strict=True):
        alone = reader.generate([prompt], max_tokens=9, top_logprobs=3)[0]
        assert (ours.text, ours.finish_reason) == (alone.text, alone.finish_reason)
        np.testing.assert_allclose(
            [token.logprob for token in ours.tokens],
            [token.logprob for token in alone.tokens],
            atol=1e-4,
        )


def test_seed_does_not_depend_on_the_batch(reader: Reader) -> None:
    options = {"max_tokens": 9, "temperature": 1.0, "seed": 7}
    together = [answer.text for answer in reader.generate(PROMPTS, **options)]
    reverse = [answer.text for answer in reader.generate(PROMPTS[::-1], **options)]
    alone = [reader.generate([prompt], **options)[0].text for prompt in PROMPTS]
    assert together == reverse[::-1] == alone
    other = reader.generate(PROMPTS, max_tokens=9, temperature=1.0, seed=8)
    assert [answer.text for answer in other] != together


def test_logprobs_are_before_temperature(reader: Reader) -> None:
    hot = reader.generate(PROMPTS[:1], max_tokens=1, temperature=5.0, top_logprobs=20, seed=1)[0]
    cold = reader.generate(PROMPTS[:1], max_tokens=1, top_logprobs=20)[0]
    if hot.tokens and cold.tokens:
        assert dict(hot.tokens[0].top) == pytest.approx(dict(cold.tokens[0].top), abs=1e-4)


def test_max_tokens_and_context_end(reader: Reader) -> None:
    short = reader.generate(PROMPTS[:1], max_tokens=1)[0]
    assert short.completion_tokens == 1
    none = reader.generate(PROMPTS[:1], max_tokens=0)[0]
    assert (none.text, none.completion_tokens, none.finish_reason) == ("", 0, "length")
    filler = ChatPrompt(PROMPTS[0].messages, " the" * 900)
    room = reader.context_length - reader.generate([filler], max_tokens=0)[0].prompt_tokens
    full = reader.generate([filler], max_tokens=10_000)[0]
    assert full.finish_reason == "stop" or full.completion_tokens == room


def test_too_long_is_an_error_never_a_cut(reader: Reader) -> None:
    long = ChatPrompt(PROMPTS[0].messages, " the" * 1100)
    with pytest.raises(ModelError, match=r"has 1\d\d\d tokens; .* reads 1024"):
        reader.generate([PROMPTS[0], long], max_tokens=1)
    with pytest.raises(ModelError, match="reads 1024"):
        reader.score(["the " * 1100])
    with pytest.raises(ModelError, match="reads 1024"):
        reader.score(["the"], after=[long])


def test_stop_strings_are_left_out(reader: Reader) -> None:
    free = reader.generate(PROMPTS[1:2], max_tokens=12, top_logprobs=1)[0]
    stop = free.text[4:6]
    cut = reader.generate(PROMPTS[1:2], max_tokens=12, top_logprobs=1, stop=["\0", stop])[0]
    assert cut.text == free.text[: free.text.index(stop)]
    assert cut.finish_reason == "stop"
    assert "".join(token.token for token in cut.tokens) == cut.text
    assert cut.completion_tokens <= free.completion_tokens


def test_the_end_token_stops(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    free = reader.generate(PROMPTS[1:2], max_tokens=4)[0]
    assert free.finish_reason == "length"
    everything = frozenset(range(640))
    monkeypatch.setattr(reader._vocabulary, "stop_ids", everything)
    ended = reader.generate(PROMPTS[1:2], max_tokens=4)[0]
    assert (ended.text, ended.tokens, ended.finish_reason) == ("", (), "stop")
    assert ended.completion_tokens == 1, "the end token was generated, and counts"


def test_text_is_valid_utf8(reader: Reader) -> None:
    """Random weights utter random bytes; what comes back is text all the same."""
    for answer in reader.generate(PROMPTS * 4, max_tokens=12, temperature=3.0, seed=3):
        assert answer.text.encode("utf-8").decode("utf-8") == answer.text
        if "\ufffd" not in answer.text:
            assert "".join(token.token for token in answer.tokens) == answer.text


def test_identity_and_protocol(reader: Reader, folder: Path, tmp_path: Path) -> None:
    model: LanguageModel = reader
    assert model.name.startswith("reader@")
    assert len(model.name) == len("reader@") + 6
    assert Reader.load(str(folder)).name == model.name
    assert model.context_length == 1024
    assert model.count_tokens("the doctor") == 2
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(bytes(content))
    assert Reader.load(copy).name != model.name


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model folder") as caught:
        Reader.load(tmp_path / "nothing")
    assert caught.value.hint


def _broken(folder: Path, tmp_path: Path, how: str) -> Path:
    from safetensors.numpy import load_file, save_file

    copy = Path(shutil.copytree(folder, tmp_path / how))
    file = copy / "model.safetensors"
    if how == "cut short":
        file.write_bytes(file.read_bytes()[:-100])
        return copy
    weights = load_file(file)
    name = "model.norm.weight"
    other = weights[name][:-1] if how == "another shape" else weights[name] * np.float32("nan")
    save_file({**weights, name: np.ascontiguousarray(other)}, file)
    return copy


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("cut short", "not a whole safetensors file"),
        ("another shape", r"model\.norm\.weight is of shape"),
        ("not a number", r"no numbers, in model\.norm\.weight"),
    ],
)
def test_broken_weights_are_named_in_one_line(
    folder: Path, tmp_path: Path, how: str, says: str
) -> None:
    copy = _broken(folder, tmp_path, how)
    with pytest.raises(ModelError, match=says) as caught:
        Reader.load(copy)
    assert str(copy) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_reader_at_a_temperature_answers_warmer_and_the_same_each_time(folder: Path) -> None:
    warm, cold = Reader.load(f"{folder}@2.0"), Reader.load(folder)
    assert warm.name == f"{cold.name} T=2"
    first, again = ([one.text for one in warm.generate(PROMPTS, max_tokens=12)] for _ in range(2))
    assert first == again
    assert first != [one.text for one in cold.generate(PROMPTS, max_tokens=12)]
    asked = {"max_tokens": 12, "temperature": 2.0, "seed": 0}
    assert first == [one.text for one in cold.generate(PROMPTS, **asked)]


def test_importing_is_cheap() -> None:
    program = (
        "import sys, ragwitness.models, ragwitness.models.reader\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'jinja2', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
