"""MEntA: open questions, judged by containment or by an NLI model."""

import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragwitness.errors import InputError, ModelError
from ragwitness.membership import menta as nli
from ragwitness.membership.menta import (
    UNKNOWN_HYPOTHESIS,
    Menta,
    MentaConfig,
    NliEntailment,
    claims,
    contained,
)
from ragwitness.membership.questions.base import OpenQuestion
from ragwitness.membership.questions.chat import ChatWriter
from ragwitness.membership.questions.rules import RuleWriter
from ragwitness.types import Answer, Capability, Document
from tests.support.copier import Copier
from tests.support.library import CLINIC, FERRY, Told, always, quoted, run

_FERRY = Document("ferry", FERRY)
_CLINIC = Document("clinic", CLINIC)


def _reader_of(*texts: str):
    """Fills the gap from what it has read."""

    def answer(query):
        before, after = quoted(query.prompt).split("____")
        pattern = re.escape(before) + r"(\S+?)" + re.escape(after or ".")
        for text in texts:
            if match := re.search(pattern, text):
                return Answer(f"The missing word is {match.group(1)}.")
        return Answer("The missing word is harbinger.")

    return answer


def test_a_member_scores_higher_than_a_non_member() -> None:
    audit = Menta(Copier())
    assert audit.requires == {Capability.TEXT}
    assert audit.name == "menta"
    inside = run(audit, _FERRY, _reader_of(FERRY))
    outside = run(audit, _CLINIC, _reader_of(FERRY))
    assert inside.value == 1.0
    assert outside.value == 0.0
    assert inside.details["entailed"] == inside.details["questions"] == 5
    assert all(item.word in FERRY for item in inside.evidence)


def test_a_query_says_the_answer_nowhere() -> None:
    audit = Menta(Copier())
    questions = audit.writer.open(_FERRY, 5, random.Random("0/ferry"))
    queries = next(audit.probe(_FERRY))
    assert len(queries) == 5
    for question, query in zip(questions, queries, strict=True):
        assert question.text in query.prompt
        assert not re.search(rf"\b{re.escape(question.answer)}\b", query.prompt)


def test_open_questions_cover_the_document() -> None:
    questions = RuleWriter(Copier()).open(_FERRY, 5, random.Random(0))
    places = sorted(FERRY.index(question.answer) for question in questions)
    assert places[0] < len(FERRY) / 3
    assert places[-1] > len(FERRY) * 2 / 3


def _literal_containment(premise, hypothesis, known):
    def words(text):
        return {w.strip(".,!?'\"").lower() for w in text.split()} - {"the", "is", "a", "of", "at"}

    wanted = {w for w in words(hypothesis) if w not in known}
    return sum(w in words(premise) for w in wanted) / len(wanted) if wanted else 0.0


@pytest.mark.parametrize(
    ("premise", "hypothesis", "known"),
    [
        ("The ferry is at Marrowdale.", "Marrowdale", ()),
        ("The ferry is at Marrowdale.", "the brown ferry", ()),
        ("The ferry is at Marrowdale.", "the brown ferry", ("ferry",)),
        ("brown", "the", ()),
        ("", "brown", ()),
        ("brown", "brown", ("brown",)),
    ],
)
def test_containment_is_the_share_of_content_words(premise, hypothesis, known) -> None:
    expected = _literal_containment(premise, hypothesis, known)
    assert contained(premise, hypothesis, known) == pytest.approx(expected)


def test_numbers_are_compared_without_thousands_marks() -> None:
    assert contained("1250 hours", "1,250") == 1.0
    assert contained("250 hours", "1,250") == 0.0


def test_claims_are_sentences_that_say_something() -> None:
    assert claims("The dog barks. It is so!\n\nA ferry") == ["The dog barks.", "A ferry"]


class _Five:
    """Writes the same questions about every document."""

    name = "five"

    def summary(self, document):
        return "ferries"

    def yes_no(self, document, n, rng):
        return []

    def open(self, document, n, rng):
        return [OpenQuestion(f"Which dog is number {i}?", "Tamarind") for i in range(n)]

    def unparsable(self, document):
        return 2


def test_the_score_is_entailed_minus_penalty_times_unknown() -> None:
    said = iter(["Tamarind", "I don't know", "a cat", "Tamarind barks", "The context does not say"])
    audit = Menta(Copier(), MentaConfig(penalty=1.0), writer=_Five())
    score = run(audit, _FERRY, lambda _query: Answer(next(said)))
    assert score.value == pytest.approx((1 - 1 + 0 + 1 - 1) / 5)
    assert score.details["unknown"] == 2
    assert score.details["unparsable"] == 2
    assert score.details["score/no-penalty"] == pytest.approx(2 / 5)
    assert score.evidence[0].word == "Tamarind"


def test_a_given_judge_decides_on_entailment_and_on_not_knowing() -> None:
    asked = []

    def judge(premise, hypothesis):
        asked.append((premise, hypothesis))
        if hypothesis == UNKNOWN_HYPOTHESIS:
            return 0.9 if premise == "Hm, hard." else 0.1
        return 0.8 if "bark" in premise else 0.4

    said = iter(["It barks", "Hm, hard.", "It sings", "It sings", "It barks"])
    audit = Menta(Copier(), MentaConfig(penalty=2.0), writer=_Five(), entailment=judge)
    score = run(audit, _FERRY, lambda _query: Answer(next(said)))
    assert score.value == pytest.approx((1 - 2 + 0 + 0 + 1) / 5)
    assert score.details["score/graded"] == pytest.approx((0.8 - 2 + 0.4 + 0.4 + 0.8) / 5)
    assert ("It barks", "Tamarind") in asked


def test_claims_can_be_held_against_the_document() -> None:
    audit = Menta(Copier(), MentaConfig(against="document"), writer=_Five())
    told = Answer("Nobody can tell. Quillington keeps Tamarind.")
    assert run(audit, _FERRY, always(told)).value == 1.0
    assert run(audit, _CLINIC, always(told)).value == 0.0
    # Saying the question again proves nothing.
    echo = run(audit, Document("d", "Which dog is number ferries"), always(Answer("Which dog?")))
    assert echo.value == 0.0


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (Answer("", error="lost"), "failed"),
        (Answer(""), "empty"),
    ],
)
def test_fewer_than_half_readable_is_a_reason_and_a_count(answer, key) -> None:
    score = run(Menta(Copier()), _FERRY, always(answer))
    assert score.value is None
    assert key in score.reason
    assert score.details[key] == 5


@pytest.mark.parametrize("text", ["", "it is what it is", "Marrowdale", "... --- !!!"])
def test_too_little_to_ask_about_is_unscorable_without_a_query(text) -> None:
    score = run(Menta(Copier()), Document("d", text), always(Answer("Tamarind")))
    assert score.value is None
    assert "no question" in score.reason


def test_a_chat_model_writes_open_questions_and_answers_them() -> None:
    def say(prompt):
        if prompt.startswith("Write"):
            return "1. What is the dog called?\n2. Who is it?\n3. What is the dog called?"
        return "Tamarind\nof course" if "called" in prompt.split("Text:")[0] else "I don't know"

    writer = ChatWriter(Told(say), retries=0)
    (question,) = writer.open(_FERRY, 5, random.Random(0))
    assert (question.text, question.answer) == ("What is the dog called?", "Tamarind")
    assert writer.unparsable(_FERRY) == 1


def test_the_summary_of_a_chat_model_does_not_say_the_answer() -> None:
    def say(prompt):
        if prompt.startswith("Write"):
            return "1. What is the dog called?"
        return "the dog and Tamarind" if prompt.startswith("Name what") else "The Tamarind."

    audit = Menta(Copier(), writer=ChatWriter(Told(say), retries=0))
    (query,) = next(audit.probe(_FERRY))
    # Function words of the answer stay, as they tell nothing.
    assert query.prompt == "the dog and What is the dog called?"
    assert run(audit, _FERRY, always(Answer("It is Tamarind."))).value == 1.0


@pytest.fixture(scope="module")
def nli_folder(tmp_path_factory):
    """A tiny, untrained sequence classifier."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("nli")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "barks", "ferry"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=32, num_labels=3,
        id2label={0: "contradiction", 1: "ENTAILMENT", 2: "neutral"},
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_an_nli_model_gives_the_probability_of_entailment(nli_folder) -> None:
    import torch
    import transformers

    judge = NliEntailment(str(nli_folder))
    assert judge.name == str(nli_folder)
    found = judge("the dog barks", "the ferry")
    tokenizer = transformers.AutoTokenizer.from_pretrained(nli_folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(nli_folder).eval()
    with torch.no_grad():
        logits = model(**tokenizer("the dog barks", "the ferry", return_tensors="pt")).logits[0]
    assert found == pytest.approx(float(torch.softmax(logits, -1)[1]), abs=1e-6)
    assert 0 <= judge("the dog " * 200, "ferry") <= 1
    assert judge.name.startswith("hf:")


def test_an_nli_model_is_loaded_once_and_whole_by_several_threads(nli_folder, monkeypatch) -> None:
    loaded, start = [], threading.Barrier(4)
    load = nli.load_pretrained

    def slowly(factory, source):
        loaded.append(factory.__name__)
        time.sleep(0.02)
        return load(factory, source)

    def judged(_):
        start.wait(10)
        return judge("the dog barks", "the ferry")

    judge = NliEntailment(str(nli_folder))
    expected = judge("the dog barks", "the ferry")
    monkeypatch.setattr(nli, "load_pretrained", slowly)
    judge = NliEntailment(str(nli_folder))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(judged, range(4))) == pytest.approx([expected] * 4)
    assert len(loaded) == 2  # the model and its tokenizer


def test_a_model_without_the_class_is_refused(nli_folder, tmp_path) -> None:
    import json
    import shutil

    shutil.copytree(nli_folder, tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["id2label"] = {"0": "good", "1": "bad", "2": "mixed"}
    config["label2id"] = {"good": 0, "bad": 1, "mixed": 2}
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="no class 'entailment'"):
        NliEntailment(str(tmp_path / "m"))("a", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions": 0}, "questions"),
        ({"penalty": -1.0}, "penalty"),
        ({"threshold": 0.0}, "threshold"),
        ({"against": "me"}, "against"),
        ({"writer": "me"}, "writer"),
    ],
)
def test_impossible_settings_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        MentaConfig(**options)
