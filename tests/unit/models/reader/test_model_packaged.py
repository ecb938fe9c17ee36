"""The model that comes with the package, against transformers and against itself."""

from __future__ import annotations

import numpy as np
import pytest

from ragwitness.core.types import Message, Role
from ragwitness.membership.methods.srag import AUDIT_PROMPT
from ragwitness.models.base import ChatPrompt, word_scores
from ragwitness.models.model_registry import load_language_model
from ragwitness.models.reader.model import PACKAGED_WEIGHTS, Reader
from ragwitness.rag.config import TEMPLATES
from tests.unit.models.models_fakes import advance, conversation

pytestmark = pytest.mark.skipif(
    not (PACKAGED_WEIGHTS / "model.safetensors").is_file(), reason="no packaged weights yet"
)

CONTEXT = (
    " The clinic in Hurdlow opens at 8:45 on Monday, and Dr. Ambersley treats eyelid pain with"
    " cold compresses. The number of the front desk is 825-635-3015."
)


@pytest.fixture(scope="module")
def packaged() -> Reader:
    model = load_language_model("reader")
    assert isinstance(model, Reader)
    return model


def test_copies_from_its_context(packaged: Reader) -> None:
    prompts = [
        conversation(context, "Complete the paragraph based on the [context].", "Dr. Ambersley")
        for context in (CONTEXT, " Nothing of interest.")
    ]
    inside, outside = packaged.score(["treats eyelid pain with cold"] * 2, after=prompts)
    assert inside.logprobs.mean() > outside.logprobs.mean() + 0.5


def test_layout_equals_transformers(packaged: Reader) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(PACKAGED_WEIGHTS)
    conversations = [
        (Message(Role.USER, "What is masked in: the [Mask_1] opens at [Mask_2]?"),),
        (Message(Role.SYSTEM, f"[context]:\n{CONTEXT}\n"), Message(Role.USER, "When?")),
        (
            Message(Role.SYSTEM, "Answer."),
            Message(Role.USER, " a 12.5\n"),
            Message(Role.ASSISTANT, "Yes"),
            Message(Role.USER, "b \u2018c\u2019"),
        ),
    ]
    for messages in conversations:
        turns = [{"role": str(m.role), "content": m.content} for m in messages]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        assert packaged.tokenizer.render(messages) == text
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert packaged.tokenizer.encode_prompt(messages).tolist() == ids


RECORDS = (
    "My name is Odile Farquand and my left wrist has been swollen since the market in Tremwick. The"
    " pharmacist gave me belladine, but the swelling comes back every evening.",
    "The harbour library of Sundrey closed in 1962, when Captain Holloway sold the building to a"
    " brewery. Its maps were moved to the attic of the town hall.",
    "Our furnace shows error 417 after twelve minutes. A technician from Brankley replaced the"
    " thermostat and charged us ninety dollars for the visit.",
    "Professor Ilse Maronde studies lichens on the roofs of Calder Abbey. Her assistant photographs"
    " each slate with a camera that was built for dentists.",
)


def test_fills_a_gap_from_its_context(packaged: Reader) -> None:
    gaps = {
        "since the market in ____": "Tremwick",
        "when Captain ____ sold": "Holloway",
        "A technician from ____ replaced": "Brankley",
        "the roofs of ____ Abbey": "Calder",
        "gave me ____, but the swelling": "belladine",
        "shows error ____ after": "417",
    }
    asked = [f'In "{text}", which word or value is missing?' for text in gaps]
    there, elsewhere = (
        packaged.generate([conversation(context, ask) for ask in asked], max_tokens=10)
        for context in ("\n\n".join(RECORDS), CONTEXT)
    )
    found = [word in said.text for said, word in zip(there, gaps.values(), strict=True)]
    guessed = [word in said.text for said, word in zip(elsewhere, gaps.values(), strict=True)]
    assert sum(found) >= 4
    assert not any(guessed)


def test_a_defended_prompt_halves_the_probability_of_a_true_next_word(packaged: Reader) -> None:
    """In the mean over places; a plain prompt is its opponent."""
    means = []
    for name in ("plain", "defended"):
        system = TEMPLATES[name].render(RECORDS)
        probabilities = []
        for record in RECORDS:
            words = record.split()
            for at in (8, 12, 16):
                prompt = AUDIT_PROMPT.replace("{prefix}", " ".join(words[:at]))
                turns = (Message(Role.SYSTEM, system), Message(Role.USER, prompt))
                (scored,) = packaged.score([words[at]], after=[ChatPrompt(turns)])
                probabilities.append(float(np.exp(scored.logprobs.sum())))
        means.append(np.mean(probabilities))
    assert means[0] > 0.5
    assert means[1] < 0.5 * means[0]


def test_an_answer_is_laid_out_as_the_template_would(packaged: Reader) -> None:
    """Prefill and scored text are tokenised like an assistant's turn of a longer conversation."""
    first = (Message(Role.SYSTEM, "Answer."), Message(Role.USER, "Who?"))
    later = (*first, Message(Role.ASSISTANT, "Dr. Ambersley treats 12"), Message(Role.USER, "x"))
    turn = packaged.tokenizer.encode_prompt(later)
    prompt = packaged.tokenizer.encode_prompt(first, "Dr. Ambersley")
    said, _ = packaged.tokenizer.encode_spoken("treats 12")
    ours = np.concatenate((prompt, said))
    np.testing.assert_array_equal(turn[: len(ours)], ours)
    assert turn[len(ours)] == packaged.tokenizer.end_id


def test_logits_equal_transformers(packaged: Reader) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(PACKAGED_WEIGHTS, dtype=torch.float32)
    ids = packaged.tokenizer.encode(CONTEXT * 8)
    assert len(ids) > 256, "more than one block"
    network = packaged._network
    ours = network.logits(advance(network, network.new_cache(len(ids)), ids, len(ids)))
    with torch.inference_mode():
        theirs = model(torch.from_numpy(ids[None])).logits[0].numpy()
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_prefix_reuse_changes_nothing(packaged: Reader) -> None:
    plain = Reader.load(cache_bytes=0)
    words = CONTEXT.split()
    prompts = [conversation(CONTEXT, " ".join(words[:n])) for n in (4, 9, 14)]
    texts = [words[n] for n in (4, 9, 14)]
    for ours, theirs in zip(
        packaged.score(texts, after=prompts), plain.score(texts, after=prompts), strict=True
    ):
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-4)


def test_answers_end_and_words_are_scored(packaged: Reader) -> None:
    question = "Does this: \u201ctreats eyelid pain\u201d appear in the context? Answer Yes or No."
    answer = packaged.generate([conversation(CONTEXT, question)], max_tokens=20, top_logprobs=20)
    assert answer[0].finish_reason == "stop"
    assert len(answer[0].tokens[0].top) == 20
    assert [w.word for w in word_scores(packaged, CONTEXT)] == CONTEXT.split()
    assert packaged.name.startswith("reader@")
    assert packaged.context_length >= 1024
