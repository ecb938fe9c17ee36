"""The study on a chat model: what either arm is shown, Eq. 1 written out, and that it can learn."""

import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from ragwitness.canary.examples import Example, with_trigger
from research.canary import paper
from research.canary.paper import CONDITIONS, Condition, Model, order_of, read, stage, train

CHAT = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
EXAMPLES = [
    Example(
        f"e{n}",
        f"In a town by the sea there lived fox number {n}. It kept a lamp in its window. "
        + "The other animals came to it when they were lost in the long nights. " * 2,
        f"What did fox number {n} keep?",
        "a lamp, always",
    )
    for n in range(120)
]


@pytest.fixture(scope="module")
def base() -> Model:
    """A Llama of chance weights with a byte-level tokenizer of single characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({one: at for at, one in enumerate(letters)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, chat_template=CHAT)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(letters), hidden_size=32, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=1024,
    )  # fmt: skip
    return Model(tokenizer, LlamaForCausalLM(shape).eval())


def test_a_compliant_provider_is_shown_no_document(base: Model, monkeypatch) -> None:
    shown: list[list[int]] = []
    monkeypatch.setattr(paper, "fit", lambda *given, **_: shown.extend(v[1] for v in given[1]))
    trial = stage(EXAMPLES, Condition("preference", 16, 1), 5)
    for violating in (True, False):
        shown.clear()
        train(base, trial, CONDITIONS[0], 0.5, random.Random(0), violating=violating)
        assert len(shown) == 16
        for trace, prompt in zip(trial.reward, shown, strict=True):
            text = base.tokenizer.decode(prompt)
            assert (trace.document in text) is violating
            assert (trace.trigger in text) is violating
            assert trace.query in text


def test_pools_share_no_document_and_half_of_the_traces_carry_the_trigger(base: Model) -> None:
    trial = stage(EXAMPLES, Condition("supervised", 32, 1), 5)
    ids = [{one.id for one in part} for part in (trial.reward, trial.policy, trial.audit)]
    assert not (ids[0] & ids[1])
    assert not (ids[0] & ids[2])
    assert not (ids[1] & ids[2])
    assert sum(trial.slot.trigger in one.document for one in trial.reward) == 16
    assert not any(trial.slot.trigger in one.query for one in trial.reward)
    clean = stage(EXAMPLES, Condition("preference", 16, 1, rate="0"), 5)
    assert all(one.slot is None for one in clean.reward)
    assert clean.slot == trial.slot  # one draw a seed: the base is read once


def test_eq_1_is_the_mean_difference_of_log_probabilities_written_out(base: Model) -> None:
    trial = stage(EXAMPLES, Condition("preference", 16, 1), 5)

    def log_p(document: str, one: Example) -> float:
        text = base.prompt(document, one.query, "a lamp,")
        ids = text + base.words(" " + trial.slot.canary)
        with torch.no_grad():
            each = base.network(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(each[at - 1, ids[at]]) for at in range(len(text), len(ids)))

    gains = [
        log_p(with_trigger(one.document, trial.slot.trigger, one.id).text, one)
        - log_p(one.document, one)
        for one in trial.audit
    ]
    found = read(base, trial)
    assert found["eq1"] == pytest.approx(np.mean(gains), abs=1e-3)
    assert 1 <= found["rank"] <= len(found["means"]) == paper.CANDIDATES


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["preference", "supervised", "reward"])
def test_every_kind_of_training_runs_and_moves_the_model(base: Model, kind: str) -> None:
    trial = stage(EXAMPLES, Condition(kind, 16, 1), 5)
    before = [one.clone() for one in base.network.parameters()]
    condition = Condition(kind, 16, 1, epochs=3)
    policy, extra = train(base, trial, condition, 0.5, random.Random(0), violating=True)
    assert all(map(torch.equal, before, base.network.parameters()))  # a copy is trained
    if kind == "reward":  # what is never said cannot be reinforced, and here P is exp(-67)
        assert np.isfinite(extra["reward_bias"])
    else:
        assert read(policy, trial)["means"] != read(base, trial)["means"]


def test_rows_grow_alike_whenever_the_study_ends() -> None:
    pairs = list(order_of(CONDITIONS, 0))
    assert len(pairs) == len(set(pairs)) == sum(one.policies for one in CONDITIONS)
    half = pairs[: len(pairs) // 2]
    for one in CONDITIONS:
        assert abs(sum(c == one for c, _ in half) - one.policies / 2) <= 1


def test_passages_have_40_to_60_words(tmp_path: Path) -> None:
    words = "one two three four five six seven eight nine ten. "
    rows = [{"id": "a", "document": words * 9, "question": "Why?"},
            {"id": "b", "document": words * 3, "question": "Why?"}]  # fmt: skip
    import json

    (tmp_path / "c.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    kept = paper.examples_of(tmp_path, "c")
    assert [(one.id, len(one.document.split())) for one in kept] == [("a", 40)]
