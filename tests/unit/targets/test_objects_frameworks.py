"""RAG systems built with the real frameworks: index, retrieval, prompt, the embedded reader.

Skipped where an extra is not installed; ``.ci/run`` installs all of them.
"""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import Any
from zlib import crc32

import pytest

from ragwitness.core.types import Answer, Capability, Message, Query, Role
from ragwitness.models.base import ChatPrompt
from ragwitness.models.model_registry import load_language_model
from ragwitness.targets.objects import wrap

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_CORPUS = (
    "Maria Keller came on 1 March with a fever of 39.4 degrees and a red rash.",
    "The contract with Nordwind ends in 2027 and pays 5200 euros every month.",
    "My router loses its connection whenever the microwave oven is running.",
    "Penguins of the southern coast hunt krill in small and noisy groups.",
)
_QUESTIONS = {
    "When does the contract with Nordwind end?": _CORPUS[1],
    "Why is the connection of my router lost?": _CORPUS[2],
}


def ask(system: Any, question: str, **options: Any) -> Answer:
    return asyncio.run(wrap(system, **options).ask(Query(question)))


@cache
def said(prompt: str) -> str:
    """What the embedded reader answers."""
    reader = load_language_model("reader")
    (made,) = reader.generate([ChatPrompt((Message(Role.USER, prompt),))], max_tokens=12)
    return made.text


def vector(text: str) -> list[float]:
    """Words by hash: neighbours share words."""
    found = [0.0] * 256
    for word in re.findall(r"\w+", text.lower()):
        found[crc32(word.encode()) % 256] += 1.0
    length = sum(x * x for x in found) ** 0.5
    return [x / (length or 1.0) for x in found]


def check(system: Any, prompt: str, **options: Any) -> None:
    """Every question retrieves its passage, and the reader answers the prompt made of both."""
    for question, passage in _QUESTIONS.items():
        expected = said(prompt.format(context=passage, question=question))
        assert expected.strip()
        answer = ask(system, question, **options)
        assert answer.text == expected
        assert answer.contexts == (passage,)
        assert answer.tokens is None


def test_langchain() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import LLM
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore

    class Hashed(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [vector(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return vector(text)

    class Reader(LLM):
        @property
        def _llm_type(self) -> str:
            return "reader"

        def _call(self, prompt: str, stop: Any = None, run_manager: Any = None, **_: Any) -> str:
            return said(prompt)

    def joined(documents: list[Any]) -> str:
        return " ".join(document.page_content for document in documents)

    store = InMemoryVectorStore(Hashed())
    store.add_documents([Document(page_content=text) for text in _CORPUS])
    retriever = store.as_retriever(search_kwargs={"k": 1})
    template = "{context}\n\n{question}"
    prompt, model = PromptTemplate.from_template(template), Reader()
    found = {"context": retriever | joined, "question": RunnablePassthrough()}
    for chain in (found | prompt | model, found | prompt | model | StrOutputParser()):
        for question, passage in _QUESTIONS.items():
            answer = ask(chain, question)
            assert answer == Answer(said(template.format(context=passage, question=question)))
    # A chat prompt is written out with its role for a model of texts.
    chat = found | ChatPromptTemplate.from_template(template) | model
    question, passage = next(iter(_QUESTIONS.items()))
    assert ask(chat, question).text == said(
        f"Human: {template.format(context=passage, question=question)}"
    )
    # As create_retrieval_chain builds it; its own schema does not always name the key.
    answering = RunnableLambda(
        lambda given: {"context": joined(given["context"]), "question": given["input"]}
    )
    with_sources = RunnablePassthrough.assign(
        context=RunnableLambda(lambda given: given["input"]) | retriever
    ).assign(answer=answering | prompt | model)
    check(with_sources, template, key="input")


def test_llamaindex() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core import PromptTemplate, VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.schema import TextNode

    class Hashed(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return vector(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return vector(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vector(query)

    class Reader(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(context_window=2048, num_output=12, model_name="reader")

        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            return CompletionResponse(text=said(prompt))

        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            yield self.complete(prompt)

    index = VectorStoreIndex(
        [TextNode(text=text) for text in _CORPUS], embed_model=Hashed(model_name="hashed")
    )
    engine = index.as_query_engine(
        llm=Reader(),
        similarity_top_k=1,
        text_qa_template=PromptTemplate("{context_str}\n\n{query_str}"),
    )
    check(engine, "{context}\n\n{question}")


def test_haystack() -> None:
    pytest.importorskip("haystack")
    from haystack import Document, Pipeline, component
    from haystack.components.builders import PromptBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class Reader:
        @component.output_types(replies=list[str])
        def run(self, prompt: str) -> dict[str, list[str]]:
            return {"replies": [said(prompt)]}

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in _CORPUS])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    template = "{% for d in documents %}{{ d.content }}{% endfor %}\n\n{{ question }}"
    pipeline.add_component("builder", PromptBuilder(template, required_variables="*"))
    pipeline.add_component("llm", Reader())
    pipeline.connect("retriever.documents", "builder.documents")
    pipeline.connect("builder.prompt", "llm.prompt")
    check(pipeline, "{context}\n\n{question}")


def test_what_a_framework_shows_is_what_doctor_finds() -> None:
    pytest.importorskip("haystack")
    from haystack import Pipeline, component

    from ragwitness.runner.capabilities import probe_capabilities

    @component
    class Reader:
        @component.output_types(replies=list[str])
        def run(self, question: str) -> dict[str, list[str]]:
            return {"replies": [said(question)]}

    pipeline = Pipeline()
    pipeline.add_component("llm", Reader())
    found = asyncio.run(probe_capabilities(wrap(pipeline)))
    assert found.capabilities == {Capability.TEXT}
    assert not found.dropped_logprobs  # nothing could be asked for
