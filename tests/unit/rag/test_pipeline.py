import asyncio

import pytest

from ragwitness.core.errors import InputError, TargetResponseError
from ragwitness.core.types import Capability, Query, Role, Target
from ragwitness.rag.chunk import chunk_documents, fit_passages
from ragwitness.rag.config import TEMPLATES, RagConfig
from ragwitness.rag.index import LexicalIndex
from ragwitness.rag.pipeline import PARALLEL, QueryTooLongError, RagSystem, build_system
from ragwitness.rag.target import LabTarget
from tests.unit.rag.rag_fakes import CORPUS, FakeEmbedder, FakeModel, make_system

HALF = "Maria Keller came on 2024-03-01 with a"


def test_passages_stand_in_the_system_message_and_the_query_verbatim() -> None:
    prompt = make_system(k=1).prompt(f" {HALF}\n")
    system, user = prompt.messages
    assert (system.role, user.role, user.content) == (Role.SYSTEM, Role.USER, f" {HALF}\n")
    assert system.content == TEMPLATES["plain"].system + CORPUS[0].text
    assert prompt.prefill == ""


def test_best_passage_comes_first() -> None:
    text = make_system(k=3).prompt(HALF).messages[0].content
    assert text.startswith(TEMPLATES["plain"].system + CORPUS[0].text + "\n\n")


def test_answer_uses_the_database_and_the_control_does_not() -> None:
    query = Query(HALF, max_tokens=4, top_logprobs=5)
    answer = make_system().answer(query)
    assert answer.text == " fever of 39.4 degrees"
    assert answer.finish_reason == "length"
    assert answer.contexts is None
    assert answer.tokens is not None
    assert len(answer.tokens) == 4
    control = make_system(retrieve=False)
    assert control.retrieve(HALF) == []
    assert control.answer(query).text == ""
    assert make_system().answer(Query(HALF)).tokens is None


def test_dense_retrieval_with_a_given_embedder() -> None:
    system = make_system(retrieval="any", metric="ip", k=1)
    assert system.retrieve(CORPUS[1].text)[0].index == 1
    assert system.describe()["retrieval"] == "exact IP over hashes@1"


def test_fit_drops_whole_passages_then_cuts_the_last_at_a_word() -> None:
    passages = ["one two three four five", "six seven", "eight"]

    def fits(limit: int):
        return lambda kept: sum(len(p.split()) for p in kept) <= limit

    assert fit_passages(passages, fits(8)) == passages
    assert fit_passages(passages, fits(7)) == passages[:2]
    assert fit_passages(passages, fits(5)) == passages[:1]
    assert fit_passages(passages, fits(3)) == ["one two three"]
    assert fit_passages(passages, fits(0)) == []
    assert fit_passages([], fits(0)) == []


@pytest.mark.parametrize("text", ["字" * 3000, "ก" * 3000, "x" * 3000])
def test_fit_cuts_text_without_spaces_and_drops_none_of_it_whole(text: str) -> None:
    [kept] = fit_passages([text], lambda kept: sum(map(len, kept)) <= 1234)
    assert text.startswith(kept)
    assert 1234 - 100 < len(kept) <= 1234


def test_every_length_fits_the_model_and_is_counted() -> None:
    for length in range(56, 200, 8):
        system = make_system(FakeModel(context_length=length), k=4)
        system.answer(Query(HALF + " the and", max_tokens=20))  # the fake refuses what is too long
        assert system.prompts == 1
    tight = make_system(FakeModel(context_length=80), k=4)
    tight.prompt(HALF + " the and", 20)
    assert tight.shortened == 1


def test_generous_limits_cost_no_passages() -> None:
    system = make_system(FakeModel(context_length=150))
    answer = system.answer(Query(HALF, max_tokens=100_000))
    assert answer.text.startswith(" fever of 39.4")
    assert system.shortened == 0


def test_query_beyond_the_context_is_refused_in_one_line() -> None:
    with pytest.raises(QueryTooLongError, match="reads at most 400"):
        make_system().answer(Query("word " * 500))


def test_blank_corpus_wrong_index_and_zero_k_are_refused() -> None:
    with pytest.raises(InputError, match="no text"):
        build_system([], generator=FakeModel())
    with pytest.raises(InputError, match="holds 1 passages"):
        RagSystem(chunk_documents(CORPUS), LexicalIndex(["x"]), FakeModel(), RagConfig())
    with pytest.raises(InputError, match="k is 0"):
        RagConfig(k=0)


def test_description_names_everything_in_use() -> None:
    assert make_system().describe() == {
        "documents": 6,
        "passages": 6,
        "words per passage": "at most 200, 20 shared",
        "retrieval": "lexical (BM25)",
        "k": 2,
        "template": "plain",
        "generator": "fake@1",
        "context length": 400,
    }
    assert make_system(retrieve=False).describe()["retrieval"] == "off"


def test_completion_prompt_keeps_the_text_out_of_the_users_turn() -> None:
    prompt = make_system().completion_prompt(HALF)
    assert prompt.prefill == HALF
    assert HALF not in prompt.messages[1].content
    assert CORPUS[0].text in prompt.messages[0].content


def test_lab_target_answers_like_its_system() -> None:
    target: Target = LabTarget(make_system())
    query = Query(HALF, max_tokens=4, top_logprobs=3)
    assert asyncio.run(target.ask(query)) == make_system().answer(query)
    assert Capability.CONTEXTS not in target.capabilities
    with pytest.raises(TargetResponseError, match="reads at most"):
        asyncio.run(target.ask(Query("word " * 500)))
    asyncio.run(target.close())


def test_lab_target_name_is_the_identity_of_the_system() -> None:
    base = LabTarget(make_system()).name
    assert base == LabTarget(make_system()).name
    assert base.startswith("lab:")
    other = FakeModel()
    other.name = "fake@2"
    fewer = build_system(CORPUS[1:], RagConfig(k=2), generator=FakeModel())
    changed = [make_system(k=3), make_system(other), make_system(retrieve=False), fewer]
    changed.append(make_system(retrieval="any"))
    assert len({base, *(LabTarget(system).name for system in changed)}) == 6
    assert FakeEmbedder().name not in base


def test_lab_target_runs_one_model_call_per_core_at_a_time() -> None:
    model = FakeModel(delay=0.01)
    target = LabTarget(make_system(model))
    before = model.calls  # the system was measured

    async def main() -> None:
        await asyncio.gather(*(target.ask(Query(HALF, 2)) for _ in range(6)))

    asyncio.run(main())
    assert model.calls == before + 6
    assert model.most_running <= PARALLEL
