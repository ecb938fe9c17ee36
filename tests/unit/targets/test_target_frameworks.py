"""Objects of the real frameworks; skipped where an extra is not installed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragwitness.targets import wrap
from ragwitness.types import Answer, Query

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_PASSAGE = "Jean lives in Paris."


def ask(system: Any, **options: Any) -> Answer:
    return asyncio.run(wrap(system, **options).ask(Query("Where does Jean live?")))


def test_langchain() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    model = FakeListChatModel(responses=["In Paris."])
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    retriever = RunnableLambda(lambda question: [Document(page_content=_PASSAGE)])
    plain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model
    assert ask(plain).text == "In Paris."
    assert ask(plain | StrOutputParser()).text == "In Paris."
    one = ChatPromptTemplate.from_template("{question}") | model
    assert ask(one).text == "In Paris."
    assert ask(model).text == "In Paris."
    # As create_retrieval_chain builds it.
    with_sources = RunnablePassthrough.assign(
        context=(lambda given: given["input"]) | retriever
    ).assign(answer=lambda given: "In Paris.")
    # Its own schema does not always name the key.
    assert ask(with_sources, key="input") == Answer("In Paris.", contexts=(_PASSAGE,))


def test_llamaindex() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class One(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return [NodeWithScore(node=TextNode(text=_PASSAGE), score=1.0)]

    answer = ask(RetrieverQueryEngine.from_args(One(), llm=MockLLM()))
    assert "Where does Jean live?" in answer.text  # the mock repeats its prompt
    assert answer.contexts == (_PASSAGE,)


def test_haystack() -> None:
    pytest.importorskip("haystack")
    from haystack import Document, Pipeline, component
    from haystack.components.builders import PromptBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class Parrot:
        @component.output_types(replies=list[str])
        def run(self, prompt: str) -> dict[str, list[str]]:
            return {"replies": [prompt]}

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=_PASSAGE), Document(content="Rome is old.")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    template = "{% for d in documents %}{{ d.content }}{% endfor %} {{ question }}"
    pipeline.add_component("builder", PromptBuilder(template))
    pipeline.add_component("llm", Parrot())
    pipeline.connect("retriever.documents", "builder.documents")
    pipeline.connect("builder.prompt", "llm.prompt")
    answer = ask(pipeline)
    assert answer.text == f"{_PASSAGE} Where does Jean live?"
    assert answer.contexts == (_PASSAGE,)
