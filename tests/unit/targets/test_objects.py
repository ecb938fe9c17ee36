"""Functions and objects as targets, shaped like those of three frameworks."""

from __future__ import annotations

import asyncio
import functools
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import (
    InputError,
    ModelError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.types import Answer, Capability, Query
from ragwitness.targets.objects import load_object, wrap
from ragwitness.targets.resolve import open_target
from ragwitness.targets.transport import TransportOptions

SECRET = "s3nt1nel-value-of-a-key"


def ask(system: Any, prompt: str = "hi", **options: Any) -> Answer:
    return asyncio.run(wrap(system, **options).ask(Query(prompt)))


async def shout(prompt: str) -> str:
    return prompt.upper()


class Callable:
    async def __call__(self, prompt: str) -> str:
        return prompt.upper()


class Only:
    """An object with some methods, sync or not."""

    def __init__(self, *names: str) -> None:
        for name in names:
            setattr(self, name, self._one(name))

    @staticmethod
    def _one(name: str) -> Any:
        def sync(prompt: object) -> str:
            return f"{name} {prompt}"

        async def later(prompt: object) -> str:
            return f"{name} {prompt}"

        return later if name.startswith("a") or name.endswith("async") else sync


@pytest.mark.parametrize(
    "system",
    [shout, str.upper, lambda p: shout(p), functools.partial(shout), Callable()],
)
def test_functions_of_every_kind(system: Any) -> None:
    assert ask(system).text == "HI"


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (("invoke", "ainvoke"), "ainvoke"),
        (("invoke",), "invoke"),
        (("query", "aquery"), "aquery"),
        (("query",), "query"),
        (("run", "run_async"), "run_async"),
        (("run",), "run"),
        (("answer",), "answer"),
        (("ask", "run", "invoke"), "ask"),
    ],
)
def test_methods_in_order(names: tuple[str, ...], first: str) -> None:
    assert ask(Only(*names)).text == f"{first} hi"


@pytest.mark.parametrize("together", [2, 24])  # 24 are more than asyncio's own threads
def test_what_is_not_asynchronous_runs_in_threads_as_many_as_allowed(together: int) -> None:
    running = most = 0
    lock, all_here = threading.Lock(), threading.Barrier(together)

    def slow(prompt: str) -> str:
        nonlocal running, most
        assert threading.current_thread() is not threading.main_thread()
        with lock:
            running += 1
            most = max(most, running)
        all_here.wait(20)
        with lock:
            running -= 1
        return prompt

    async def main() -> None:
        target = wrap(slow, options=TransportOptions(concurrency=together))
        await asyncio.gather(*(target.ask(Query("q")) for _ in range(4 * together)))

    asyncio.run(main())
    assert most == together


def test_targets_are_left_alone_and_names_are_stable() -> None:
    target = wrap(shout, name="mine")
    assert wrap(target) is target
    assert target.name == "mine"
    assert target.capabilities == {Capability.TEXT}
    assert wrap(shout).name == f"python:{__name__}:shout"
    assert wrap(Only("ask")).name == f"python:{__name__}:Only"


@pytest.mark.parametrize(("system", "says"), [(3, "int cannot be asked"), (Callable, "is a class")])
def test_what_cannot_be_asked_is_refused(system: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        wrap(system)


# -- replies ---------------------------------------------------------------------------------


@dataclass
class Document:
    page_content: str


@dataclass
class AIMessage:
    content: Any
    response_metadata: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        raise AssertionError("a method is no text")


@dataclass
class Node:
    content: str

    def get_content(self) -> str:
        return self.content


@dataclass
class NodeWithScore:
    node: Node
    score: float = 0.5


@dataclass
class Response:
    response: str | None
    source_nodes: list[NodeWithScore]


@dataclass
class GeneratedAnswer:
    data: str
    query: str
    documents: list[Any]


_ENTRY = {"token": "a", "logprob": -1.0, "top_logprobs": [{"token": "a", "logprob": -1.0}]}


@pytest.mark.parametrize(
    ("value", "text", "contexts"),
    [
        ({"answer": "a"}, "a", None),
        ({"input": "q", "context": [Document("p")], "answer": "a"}, "a", ("p",)),
        ({"query": "q", "result": "a", "source_documents": [Document("p")]}, "a", ("p",)),
        ({"answer": AIMessage("a"), "context": "p"}, "a", ("p",)),
        ({"output": "a", "error": None, "contexts": []}, "a", ()),
        ({"messages": ["q", AIMessage("a")]}, "a", None),
        (AIMessage("a"), "a", None),
        (AIMessage([{"type": "text", "text": "a"}, {"type": "image"}, "b"]), "ab", None),
        (Response("a", [NodeWithScore(Node("p"))]), "a", ("p",)),
        ({"llm": {"replies": ["a"]}}, "a", None),
        ({"l": {"replies": [AIMessage("a")]}, "r": {"documents": [Node("p")]}}, "a", ("p",)),
        ({"ab": {"answers": [GeneratedAnswer("a", "q", [Node("p")])]}}, "a", ("p",)),
    ],
)  # fmt: skip
def test_replies_of_every_shape(value: Any, text: str, contexts: tuple[str, ...] | None) -> None:
    answer = ask(lambda prompt: value)
    assert replace(answer, channels=()) == Answer(text, contexts=contexts)


@pytest.mark.parametrize(
    "value",
    [
        {"answer": "a", "logprobs": [_ENTRY]},
        AIMessage("a", {"logprobs": {"content": [_ENTRY]}}),
        {"answer": AIMessage("a", {"logprobs": {"content": [_ENTRY]}})},
    ],
)
def test_logprobs_come_along(value: Any) -> None:
    tokens = ask(lambda prompt: value).tokens
    assert tokens is not None
    assert tokens[0].top == (("a", -1.0),)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "NoneType"),
        (3, "int"),
        ({}, "a dict with nothing"),
        ({"foo": "x"}, "a dict with foo"),
        ({"answer": None}, "a dict with answer"),
        (Response(None, []), "Response"),
        ({"error": f"no {SECRET}"}, "answered with an error"),
        ({"llm": {"replies": []}}, "no reply"),
        ([1], "list"),
        ({"answer": "a", "logprobs": [{"logprob": 1}]}, "no token"),
    ],
)
def test_replies_without_an_answer_are_named(value: object, says: str) -> None:
    with pytest.raises(TargetResponseError, match=says) as caught:
        ask(lambda prompt: value, name="mine")
    assert caught.value.message.startswith("mine: ")
    assert SECRET not in str(caught.value)


def raising(error: BaseException) -> Any:
    def call(prompt: str) -> str:
        raise error

    return call


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (ValueError("odd\nprompt"), TargetResponseError, "raised ValueError: odd prompt"),
        (KeyError("question"), TargetResponseError, "raised KeyError: 'question'"),
        (RuntimeError(f"401 {SECRET}"), TargetResponseError, "raised RuntimeError: 401 [key]"),
        (MuteError(), TargetResponseError, "raised MuteError."),
        (SystemExit(3), TargetResponseError, "raised SystemExit: 3"),
        (StopIteration(), TargetResponseError, "raised RuntimeError: StopIteration"),
        (ConnectionRefusedError("no"), TargetUnreachableError, "no connection"),
        (TargetUnreachableError("gone"), TargetUnreachableError, "gone"),
        (ModelError("no weights"), TargetResponseError, "mine: no weights"),
    ],
)
def test_what_the_object_raises_becomes_an_error_of_a_target(
    error: BaseException, kind: type[RagwitnessError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    with pytest.raises(kind) as caught:
        ask(raising(error), name="mine")
    assert says in caught.value.message
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_system_that_takes_too_long_is_given_up() -> None:
    async def slow(prompt: str) -> str:
        await asyncio.sleep(5)
        return prompt

    with pytest.raises(TargetUnreachableError, match=r"within 0\.05 s") as caught:
        ask(slow, options=TransportOptions(read_timeout=0.05))
    assert "--timeout" in caught.value.hint


def test_a_key_in_an_answer_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    monkeypatch.setenv("OTHER_KEY", "sunday")  # a word is no key
    value = {"answer": f"{SECRET} on sunday", "contexts": [SECRET]}
    assert ask(lambda prompt: value) == Answer("[key] on sunday", contexts=("[key]",))
    pieces = ["So", SECRET[:5], SECRET[5:9], SECRET[9:] + " it", " is"]
    rows = [
        {"token": one, "logprob": -1, "top_logprobs": [{"token": one, "logprob": -1}]}
        for one in pieces
    ]
    answer = ask(lambda prompt: {"answer": "".join(pieces), "logprobs": {"content": rows}})
    assert [one.token for one in answer.tokens] == ["So", "[key]", "", " it", " is"]
    assert [len(one.top) for one in answer.tokens] == [1, 0, 0, 0, 1]


# -- frameworks ------------------------------------------------------------------------------


class Runnable:
    """As LangChain's: both methods, and a schema of the input."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def get_input_jsonschema(self) -> Any:
        if isinstance(self.schema, Exception):
            raise self.schema
        return self.schema

    def invoke(self, given: Any) -> Any:
        return AIMessage(repr(given))


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"type": "string"}, "'hi'"),
        ({"type": "object", "required": ["question"]}, "{'question': 'hi'}"),
        ({"type": "object", "required": ["root"]}, "'hi'"),
        ({"type": "object", "required": ["a", "b"]}, "'hi'"),
        ({"anyOf": []}, "'hi'"),
        (TypeError("no schema"), "'hi'"),
        (
            {"type": "object", "required": ["messages"]},
            "{'messages': [{'role': 'user', 'content': 'hi'}]}",
        ),
    ],
)
def test_langchains_runnables_get_what_they_want(schema: Any, given: str) -> None:
    assert ask(Runnable(schema)).text == given
    assert ask(Runnable(schema), key="input").text == "{'input': 'hi'}"


class Pipeline:
    """As Haystack's: inputs by component, outputs of inner components on request."""

    def __init__(self, inputs: dict[str, dict[str, Any]]) -> None:
        self._inputs = inputs

    def inputs(self) -> dict[str, dict[str, Any]]:
        return self._inputs

    def outputs(self, include_components_with_connected_outputs: bool = False) -> dict[str, Any]:
        inner = (
            {"retriever": {"documents": {}}} if include_components_with_connected_outputs else {}
        )
        return {**inner, "llm": {"replies": {}}}

    def run(self, data: Any, include_outputs_from: set[str] | None = None) -> Any:
        result: dict[str, Any] = {"llm": {"replies": [repr(sorted(data.items()))]}}
        if include_outputs_from:
            result["retriever"] = {"documents": [{"content": "p"}]}
        return result


def test_haystacks_pipelines_are_asked_by_their_inputs() -> None:
    query = {"type": str, "is_mandatory": True}
    inputs = {
        "retriever": {"query": query, "top_k": {"type": int | None, "is_mandatory": False}},
        "builder": {"question": {"type": Any, "is_mandatory": False}},
        "embedder": {"text": query},
    }
    answer = ask(Pipeline(inputs))
    assert answer.text == "[('query', 'hi'), ('question', 'hi'), ('text', 'hi')]"
    assert answer.contexts == ("p",)
    assert ask(Pipeline(inputs), key="topic").text == "[('topic', 'hi')]"
    inputs["agent"] = {"messages": {"type": list[str], "is_mandatory": True}}
    with pytest.raises(InputError, match="needs an input 'messages' that is not text"):
        wrap(Pipeline(inputs))
    with pytest.raises(InputError, match="takes no question"):
        wrap(Pipeline({}))


# -- python:MODULE:OBJECT --------------------------------------------------------------------

_MODULE = """
import os
calls = 0
def ask(prompt): return prompt.upper()
class Rag:
    def query(self, prompt): return prompt + "!"
class Holder:
    rag = Rag()
def build():
    global calls
    calls += 1
    return Rag()
async def build_later(): return {"question": 1}.__class__ and Rag()
def build_badly(): raise ValueError(os.environ["SOME_API_KEY"])
def dictionary(given): return given["question"]
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rw_user_rag.py").write_text(_MODULE)
    (tmp_path / "rw_user_bad.py").write_text(f"raise RuntimeError('{SECRET}')")
    (tmp_path / "rw_user_needs.py").write_text("import no_such_package_at_all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", __import__("sys").path[:])
    monkeypatch.setenv("SOME_API_KEY", SECRET)


def said(spec: str) -> str:
    async def main() -> str:
        target = await open_target(spec)
        assert target.name == spec.partition("?")[0]
        answers = [(await target.ask(Query("hi"))).text for _ in range(2)]
        await target.close()
        return answers[1]

    return asyncio.run(main())


@pytest.mark.usefixtures("module")
def test_objects_by_address() -> None:
    assert said("python:rw_user_rag:ask") == "HI"
    assert said("python:rw_user_rag:Holder.rag") == "hi!"
    assert said("python:rw_user_rag:build") == "hi!"
    assert said("python:rw_user_rag:build_later") == "hi!"
    assert said("python:rw_user_rag:dictionary?input=question") == "hi"
    import rw_user_rag  # type: ignore[import-not-found]

    assert rw_user_rag.calls == 1


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("python:", "names no object"),
        ("python:rw_user_rag", "names no object"),
        ("python:rw_user_rag:", "names no object"),
        ("python:no_such_module:x", "There is no module no_such_module"),
        ("python:rw_user_rag.sub:x", "There is no module rw_user_rag.sub"),
        ("python:rw_user_needs:x", "needs no_such_package_at_all, which is not installed"),
        ("python:rw_user_bad:x", "Importing rw_user_bad failed: RuntimeError"),
        ("python:rw_user_rag:nothing", "has no nothing"),
        ("python:rw_user_rag:number", "int cannot be asked"),
        ("python:rw_user_rag:Rag", "Rag is a class"),
        ("python:rw_user_rag:build_badly", "raised ValueError"),
        ("python:rw_user_rag:ask?k=4", "Unknown python option 'k'"),
        ("python:..:x", "There is no module|Importing"),
    ],
)
def test_unusable_addresses_are_named(spec: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        said(spec)
    assert SECRET not in str(caught.value)


def test_a_maker_that_keeps_what_it_made_is_called(tmp_path, monkeypatch) -> None:
    (tmp_path / "cached_app.py").write_text(
        "import functools\n\n\n@functools.cache\ndef app():\n    return lambda question: question\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    answer = asyncio.run(load_object("cached_app:app"))
    assert answer("said") == "said"
