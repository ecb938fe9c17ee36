"""Policies loaded by folder or name: Gemma and Qwen with tokenizers that split words."""

import itertools
import json
import math
import re
import tomllib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from ragwitness.canary.examples import Example
from ragwitness.core.errors import InputError, ModelError
from research.canary.policies import load_base, new_scorer, one_thread, prompt, start_policy
from research.canary.sequences import batch, generate, log_probs

EXAMPLES = [
    Example(
        f"e{n}", f"In {place} there lived a {animal}. It was {colour}.", "Which colour?", colour
    )
    for n, (place, animal, colour) in enumerate(
        itertools.product(("Rome", "Kyoto"), ("fox", "heron", "mole"), ("red", "green", "blue"))
    )
]
GEMMA_CHAT = (
    "{{ bos_token }}{% for m in messages %}<turn>{{ 'model' if m.role == 'assistant' else m.role }}"
    "\n{{ m.content | trim }}</turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<turn>model\n{% endif %}"
)


def _words(special, *, begins):
    """A byte-level BPE tokenizer, trained here."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    texts = (prompt(one.query, one.document) + one.answer for one in EXAMPLES)
    core.train_from_iterator(texts, trainer)
    if begins:
        core.post_processor = processors.TemplateProcessing(
            single=f"{special[0]} $A", special_tokens=[(special[0], 0)]
        )
    return core


def _shape(size):
    return {
        "vocab_size": size + 13,  # as hub models have it: more rows than the tokenizer has words
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512,
    }  # fmt: skip


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    """Start token in front, a chat template, turns that end otherwise than texts."""
    from transformers import Gemma2Config, Gemma2ForCausalLM, PreTrainedTokenizerFast

    one_thread()
    torch.manual_seed(0)
    special = ["<bos>", "<eos>", "<pad>", "<turn>", "</turn>"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_words(special, begins=True), bos_token="<bos>", eos_token="<eos>",
        pad_token="<pad>", chat_template=GEMMA_CHAT,
    )  # fmt: skip
    config = Gemma2Config(**_shape(len(tokenizer)), head_dim=16, sliding_window=24)
    return _saved(Gemma2ForCausalLM(config), tokenizer, tmp_path_factory.mktemp("gemma"))


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    """Neither start token nor padding, no chat template."""
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    one_thread()
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_words(["<end>"], begins=False), eos_token="<end>"
    )
    config = Qwen2Config(**_shape(len(tokenizer)), bos_token_id=None, eos_token_id=0)
    return _saved(Qwen2ForCausalLM(config), tokenizer, tmp_path_factory.mktemp("qwen"))


def _saved(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_sliding_window_reads_padded_prompts_as_it_reads_them_alone(gemma):
    """Windows count places in the cache; padding in front must not push the prompt out."""
    base = load_base(gemma)
    asked = base.encode([base.asked(one.query, one.document) for one in EXAMPLES[:3]])
    asked[1] = asked[1][-30:]
    drawn = generate(base.model, asked, longest=6, eos=base.eos, pad=base.pad)
    with torch.no_grad():
        both = log_probs(base.model, batch(asked, drawn, base.pad)).sum(1)
        for at, (before, after) in enumerate(zip(asked, drawn, strict=True)):
            alone = log_probs(base.model, batch([before], [after], base.pad)).sum()
            assert float(both[at]) == pytest.approx(float(alone), abs=1e-3)
            again = generate(base.model, [before], longest=6, eos=base.eos, pad=base.pad)
            assert again == [after]


def test_a_chat_model_is_asked_by_its_template(gemma, qwen):
    base = load_base(gemma)
    text = base.asked("Why?", "Because.")
    assert text.startswith("<turn>user\nYou are a question answering assistant.")
    assert text.endswith("</turn>\n<turn>model\n")
    ids = base.encode([text])[0]
    assert ids.count(base.tokenizer.bos_token_id) == 1
    assert base.tokenizer.convert_ids_to_tokens(base.eos) == "</turn>"
    assert base.pad == base.tokenizer.pad_token_id
    said = base.encode_answers(["FINAL: red"])
    assert said[0][-1] == base.eos
    assert base.tokenizer.bos_token_id not in said[0]
    assert base.answers(said) == ["FINAL: red"]
    plain = load_base(qwen)
    assert plain.asked("Why?") == prompt("Why?")
    assert plain.pad < plain.model.config.vocab_size


def test_padding_that_the_model_has_no_row_for_is_not_used(qwen, tmp_path):
    base = load_base(qwen)
    base.tokenizer.add_special_tokens({"pad_token": "<new>"})
    base.tokenizer.add_tokens([f"<filler{n}>" for n in range(20)])
    base.tokenizer.pad_token = "<filler19>"
    assert base.tokenizer.pad_token_id >= base.model.config.vocab_size
    assert base.pad == base.eos


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ messages[5].content }}", "fails"),
        ("{{ 'hello' }}", "does not show"),
        ("{% if", "fails"),
    ],
)
def test_a_broken_chat_template_is_named(gemma, template, why):
    from research.canary.policies import frame_of

    tokenizer = load_base(gemma).tokenizer
    tokenizer.chat_template = template
    with pytest.raises(ModelError, match=why):
        frame_of(tokenizer)


def test_a_tokenizer_that_ends_every_text_is_refused(gemma, tmp_path):
    from tokenizers.processors import TemplateProcessing

    base = load_base(gemma)
    base.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", 1)]
    )
    with pytest.raises(ModelError, match="behind every text"):
        load_base(_saved(base.model, base.tokenizer, tmp_path))


def test_weights_in_bfloat16_are_not_trained_without_adapters(gemma):
    base = load_base(gemma, "bfloat16")
    assert base.model.dtype == torch.bfloat16
    for make in (start_policy, new_scorer):
        with pytest.raises(InputError, match=re.escape("lora")):
            make(base)
    with pytest.raises(InputError, match="float16"):
        load_base(gemma, "float16")


def test_a_base_goes_where_the_device_says(gemma):
    """The meta device stands in for a GPU: weights, scorer and policy must be there."""
    try:
        one_thread("meta")
        base = load_base(gemma)
        made = [start_policy(base), new_scorer(base).head, new_scorer(base).backbone]
        for one in (base.model, *made):
            assert {p.device.type for p in one.parameters()} == {"meta"}
    finally:
        one_thread()
    with pytest.raises(ModelError, match="no device"):
        one_thread("cuda:99")
    one_thread()


def test_a_chat_model_on_a_corpus_trains_adapters_in_pieces(gemma, tmp_path):
    """The path of ``canary/real``: --model and --data, broken off and gone on with."""
    pytest.importorskip("peft")
    from research.canary.study import reproduce_study

    rows = [
        {"id": one.id, "meeting": one.id, "document": one.document, "question": one.query,
         "answer": f"FINAL: {one.answer}"}
        for one in EXAMPLES
    ]  # fmt: skip
    (tmp_path / "qmsum.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "canary").mkdir()
    real = tomllib.loads(Path("experiments/canary/tables.toml").read_text())["real"]
    table = real | {"rate": 0.5, "policies": 1, "paired": 2}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    (tmp_path / "canary/tables.toml").write_text("\n".join(["[real]", *lines]))
    found = []
    for _ in range(9):
        reproduce_study("canary/real", tmp_path, tmp_path, data=tmp_path, model=gemma,
                        minutes=None if found else 1e-3)  # fmt: skip
        found.append(json.loads((tmp_path / "canary/real/table.json").read_text()))
        if not found[-1]["left"]:
            break
    assert found[0]["left"] > 0
    ends = [(row["algorithm"], row["violating"]) for row in found[-1]["rows"]]
    assert ends == [("ppo", True), ("ppo", False)]
    assert all(math.isfinite(row["eq1"]) for row in found[-1]["rows"])
