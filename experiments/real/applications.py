"""RAG applications of two frameworks over a real chat model, audited in each way they are reached.

    PYTHONPATH=. python experiments/real/applications.py MODEL.gguf [--only lcel:stream …]

Needs ``pip install 'ragwitness[chat]' langchain langchain-openai langchain-community rank-bm25
llama-index-core llama-index-llms-openai-like llama-index-retrievers-bm25``. MODEL is served by
llama.cpp on one thread. Each application is built as its framework's tutorial has it, holds half of
the documents in question, and is audited as a Python object, as an OpenAI-compatible endpoint that
answers whole or always streams, and as a JSON service by a description. A row says how each ended.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragwitness.core.files import write_rows
from ragwitness.models.smollm2 import sha256
from ragwitness.text.sample import load_sample

_ROOM = 40  # tokens of an answer
_PASSAGES = 1  # of some 100 words, so that a question takes seconds on one thread
_TEMPLATE = (
    "You are an assistant for question-answering tasks. Use the following pieces of retrieved"
    " context to answer the question. If you don't know the answer, just say that you don't know."
    " Use three sentences maximum and keep the answer concise.\nQuestion: {question}\nContext:"
    " {context}\nAnswer:"
)
_SERVICE = """[request]
url = "{url}/ask"
body = '{{"question": "{{prompt}}"}}'

[response]
text = "$.answer"
contexts = "$.sources[*]"
"""

# The applications: each is made without arguments, as python:MODULE:OBJECT wants it.


def _texts() -> list[str]:
    lines = Path(os.environ["APPLICATION_CORPUS"]).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


@functools.cache
def _langchain_parts() -> tuple[Any, Any]:
    from langchain_community.retrievers import BM25Retriever
    from langchain_openai import ChatOpenAI

    url = os.environ["APPLICATION_MODEL"]
    model = ChatOpenAI(
        base_url=url, api_key="none", model="m", temperature=0, max_tokens=_ROOM, timeout=600
    )
    return BM25Retriever.from_texts(_texts(), k=_PASSAGES), model


def lcel() -> Any:
    """LangChain's retrieval chain in its expression language."""
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    retriever, model = _langchain_parts()
    context = retriever | (lambda found: "\n\n".join(one.page_content for one in found))
    given = {"context": context, "question": RunnablePassthrough()}
    return given | ChatPromptTemplate.from_template(_TEMPLATE) | model | StrOutputParser()


def agent() -> Any:
    """LangChain's agent whose prompt holds what was retrieved, as its tutorial on RAG ends."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import dynamic_prompt

    retriever, model = _langchain_parts()

    @dynamic_prompt
    def with_context(request: Any) -> str:
        found = retriever.invoke(request.state["messages"][-1].text)
        context = "\n\n".join(one.page_content for one in found)
        return f"You are a helpful assistant. Use the following context:\n\n{context}"

    return create_agent(model, tools=[], middleware=[with_context])


def engine() -> Any:
    """LlamaIndex's query engine."""
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import TextNode
    from llama_index.llms.openai_like import OpenAILike
    from llama_index.retrievers.bm25 import BM25Retriever

    model = OpenAILike(
        model="m",
        api_base=os.environ["APPLICATION_MODEL"],
        api_key="none",
        is_chat_model=True,
        context_window=2048,
        temperature=0,
        max_tokens=_ROOM,
        timeout=600,
    )
    nodes = [TextNode(text=text) for text in _texts()]
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=_PASSAGES)
    return RetrieverQueryEngine.from_args(retriever, llm=model)


@functools.cache
def _made(name: str) -> Any:
    return {"lcel": lcel, "agent": agent, "engine": engine}[name]()


def _ask_lcel(question: str) -> tuple[str, list[str]]:
    retriever, _ = _langchain_parts()
    return _made("lcel").invoke(question), [one.page_content for one in retriever.invoke(question)]


def _ask_agent(question: str) -> tuple[str, list[str]]:
    retriever, _ = _langchain_parts()
    messages = {"messages": [{"role": "user", "content": question}]}
    said = _made("agent").invoke(messages)["messages"][-1]
    return said.text, [one.page_content for one in retriever.invoke(question)]


def _ask_engine(question: str) -> tuple[str, list[str]]:
    said = _made("engine").query(question)
    return str(said), [one.node.get_content() for one in said.source_nodes]


APPLICATIONS: dict[str, Callable[[str], tuple[str, list[str]]]] = {
    "lcel": _ask_lcel,
    "agent": _ask_agent,
    "engine": _ask_engine,
}
WAYS = ("object", "openai", "stream", "json")

# One server for the three HTTP ways.


def serve(name: str, port: int) -> None:
    """Serve an application on the loopback until the process is ended."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    ask = APPLICATIONS[name]

    def models(_request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "rag", "object": "model"}]})

    async def chat(request: Request) -> Response:
        body = await request.json()
        answer, _ = await _in_thread(ask, body["messages"][-1]["content"])
        if not request.url.path.startswith("/stream"):
            choice = {"index": 0, "finish_reason": "stop"}
            choice["message"] = {"role": "assistant", "content": answer}
            return JSONResponse({"object": "chat.completion", "choices": [choice]})
        deltas: list[tuple[dict[str, str], str | None]] = [
            ({"content": f" {word}" if n else word}, None)
            for n, word in enumerate(answer.split(" "))
        ]

        def events() -> Iterator[str]:
            for delta, ends in [*deltas, ({}, "stop")]:
                choice = {"index": 0, "delta": delta, "finish_reason": ends}
                yield f"data: {json.dumps({'choices': [choice]})}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def plain(request: Request) -> Response:
        answer, sources = await _in_thread(ask, (await request.json())["question"])
        return JSONResponse({"answer": answer, "sources": sources})

    routes = [Route("/ask", plain, methods=["POST"])]
    for prefix in ("/v1", "/stream/v1"):
        routes += [
            Route(f"{prefix}/models", models),
            Route(f"{prefix}/chat/completions", chat, methods=["POST"]),
        ]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning")


async def _in_thread(ask: Callable[[str], tuple[str, list[str]]], question: str) -> Any:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(ask, question)


# The audits.


@contextmanager
def _running(*command: str, port: int, log: Path) -> Iterator[str]:
    """Run a server until the block is left; return its address."""
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, *command], stdout=out, stderr=out)
    try:
        for _ in range(240):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _write_documents(work: Path, held: int, others: int, known: int) -> None:
    texts = [{"id": one.id, "text": one.text} for one in load_sample()]
    inside, outside = texts[:60], texts[600:]
    write_rows(work / "corpus.jsonl", inside)
    write_rows(work / "mine.jsonl", [*inside[:held], *outside[:others]])
    write_rows(work / "never-shared.jsonl", outside[others : others + known])


def _audit(name: str, way: str, url: str, work: Path, options: list[str]) -> dict[str, Any]:
    description = work / f"{name}.toml"
    description.write_text(_SERVICE.format(url=url), encoding="utf-8")
    target = {
        "object": f"python:experiments.real.applications:{name}",
        "openai": f"{url}/v1",
        "stream": f"{url}/stream/v1",
        "json": f"http/{description}",
    }[way]
    out = work / f"{name}.{way}.json"
    command = [sys.executable, "-m", "ragwitness", "audit", target, *options]
    command += ["--documents", f"{work}/mine.jsonl", "--known-out", f"{work}/never-shared.jsonl"]
    command += ["--run", f"{work}/{name}.{way}", "--json", f"{out}", "--concurrency", "1"]
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    (work / f"{name}.{way}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    row = {"application": name, "way": way, "seconds": round(time.monotonic() - began)}
    if not out.exists():
        return row | {"failed": (done.stdout + done.stderr)[-600:]}
    result = json.loads(out.read_text())
    held = {json.loads(line)["id"] for line in (work / "corpus.jsonl").open(encoding="utf-8")}
    sides = {"held": [], "other": []}  # type: dict[str, list[str]]
    for one in result["documents"]:
        sides["held" if one["id"] in held else "other"].append(one["verdict"])
    summary = result["summary"]
    row |= {"method": summary["method"], "queries": summary["spent"]["queries"]}
    for side, verdicts in sides.items():
        row[side] = f"{verdicts.count('in')} of {len(verdicts)} in"
    scores = [one for one in result["documents"] if one["score"] is None]
    return row | {"without a score": len(scores)}


def main() -> None:
    """Serve the model and each application, audit it, and print a row for each way."""
    cells = [f"{name}:{way}" for name in APPLICATIONS for way in WAYS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--only", nargs="+", choices=cells, default=cells)
    parser.add_argument("--n", nargs=3, type=int, default=[5, 5, 40], metavar="N")
    parser.add_argument("--work", type=Path, default=Path("build/applications"))
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--option", nargs=argparse.REMAINDER, default=[], help="of the audits")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    _write_documents(asked.work, *asked.n)
    os.environ["APPLICATION_CORPUS"] = str(asked.work / "corpus.jsonl")
    os.environ["APPLICATION_MODEL"] = f"http://127.0.0.1:{asked.port}/v1"
    print(f"{asked.model.name}, sha256 {sha256(asked.model)[:12]}", flush=True)
    llama = ("-m", "tests.support.llama_server", str(asked.model), str(asked.port), "2048")
    with _running(*llama, port=asked.port, log=asked.work / "model.log"):
        for name in APPLICATIONS:
            ways = [way for way in WAYS if f"{name}:{way}" in asked.only]
            if not ways:
                continue
            program = f"from experiments.real.applications import serve; serve({name!r}, {{}})"
            port = asked.port + 1
            log = asked.work / f"{name}.log"
            with _running("-c", program.format(port), port=port, log=log) as url:
                for way in ways:
                    row = _audit(name, way, url, asked.work, asked.option)
                    print(json.dumps(row), flush=True)
                    with (asked.work / "rows.jsonl").open("a", encoding="utf-8") as rows:
                        rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
