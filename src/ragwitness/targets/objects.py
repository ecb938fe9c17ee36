"""A RAG system in this process as a target: a function, or an object of a known framework."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragwitness.core.errors import (
    InputError,
    RagwitnessError,
    TargetError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.quotes import environment_secrets, hide, hide_across, quote_error
from ragwitness.core.threads import in_thread
from ragwitness.core.types import Answer, Capability, Query, Target, TokenLogprob
from ragwitness.targets.transport import Address, TransportOptions
from ragwitness.targets.wire import content_text, read_logprobs, show_channels

# How a RAG system in Python wants to be asked, found by its methods: no framework is imported.

# The asynchronous twin first; `answer` is the adapter of rag-redteam.
_METHODS = (
    "ask", "ainvoke", "invoke", "aquery", "query", "run_async", "run", "answer",
)  # fmt: skip

# What pipelines call the user's question; further inputs are settings.
_QUESTIONS = frozenset({"query", "question", "user_query", "input", "user_input"})


@dataclass(frozen=True, slots=True)
class Call:
    """One way to ask: a function, what makes its input of a prompt, and further arguments."""

    function: Callable[..., Any]
    is_async: bool
    wrap: Callable[[str], object]
    extra: Mapping[str, object]


def find_call(system: object, key: str | None = None) -> Call:
    """Find out how to ask a system.

    Args:
        system: A function, or an object with one of the methods of the known frameworks.
        key: Name under which it wants the question, in a dict; None finds out.

    Raises:
        InputError: It is a class, or there is no way to ask it, or it needs more than a
            question.
    """
    if inspect.isclass(system):
        raise InputError(
            f"{system.__name__} is a class.",
            "Name an instance of it, or a function that makes one.",
        )
    # The first known method counts; a plain function is called itself.
    for name in _METHODS:
        method = getattr(system, name, None)
        if callable(method):
            break
    else:
        if not callable(system):
            raise InputError(
                f"A {type(system).__name__} cannot be asked: it is not a function and has none of "
                f"the methods {', '.join(_METHODS)}.",
                "Give a function from a question to an answer.",
            )
        name, method = "", system
    wrap, extra = _shape(system, name, key)
    called = method if inspect.isroutine(method) else getattr(method, "__call__", method)  # noqa: B004
    return Call(method, inspect.iscoroutinefunction(called), wrap, extra)


def _shape(
    system: object, method: str, key: str | None
) -> tuple[Callable[[str], object], Mapping[str, object]]:
    """How the question is wrapped, and what else is given."""
    # 1. A Haystack pipeline: the question goes to each input that takes it.
    inputs = getattr(system, "inputs", None)
    if method in ("run", "run_async") and callable(inputs):
        names = frozenset((key,)) if key else _pipeline_inputs(inputs())
        return (lambda prompt: dict.fromkeys(names, prompt)), _pipeline_extra(system)
    # 2. A LangChain Runnable states the key of its dict; else the text is given as it is.
    if key is None and method in ("invoke", "ainvoke"):
        key = _runnable_key(system)
    if key is None:
        return (lambda prompt: prompt), {}
    name = key
    if name == "messages":
        return (lambda prompt: {name: [{"role": "user", "content": prompt}]}), {}
    return (lambda prompt: {name: prompt}), {}


def _runnable_key(system: object) -> str | None:
    """The one key of the dict that a LangChain Runnable wants; None where it takes a text."""
    try:
        schema = system.get_input_jsonschema()  # type: ignore[attr-defined]
        required = list(schema.get("required", ())) if schema.get("type") == "object" else []
    except Exception:  # no schema, or one that cannot be made
        return None
    # "root" is what LangChain calls an input that is not a dict.
    return str(required[0]) if len(required) == 1 and required[0] != "root" else None


def _pipeline_inputs(inputs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> frozenset[str]:
    """Names of a Haystack pipeline's inputs that take the question; it needs no other."""
    sockets = [item for component in inputs.values() for item in component.items()]
    needed = {name for name, socket in sockets if socket.get("is_mandatory")}
    odd = sorted(n for n, s in sockets if n in needed and n not in _QUESTIONS and not _texts(s))
    names = needed | {name for name, _ in sockets if name in _QUESTIONS}
    if odd or not names:
        lacks = f"needs an input {odd[0]!r} that is not text" if odd else "takes no question"
        raise InputError(
            f"The pipeline {lacks}.",
            "Give a function instead that takes the question and runs the pipeline.",
        )
    return frozenset(names)


def _texts(socket: Mapping[str, Any]) -> bool:
    return socket.get("type") in (str, "str") or "str" in str(socket.get("type")).split(" | ")


def _pipeline_extra(system: object) -> dict[str, object]:
    """Ask a Haystack pipeline for the documents too, which it keeps to itself otherwise."""
    try:
        outputs = system.outputs(  # type: ignore[attr-defined]
            include_components_with_connected_outputs=True
        )
        sources = {name for name, sockets in outputs.items() if "documents" in sockets}
    except Exception:  # an older or another pipeline
        return {}
    return {"include_outputs_from": sources} if sources else {}


# Reading replies by their shape; no framework is imported:
#
# ==============  ==================================================================
# plain           ``str``; a dict or object with an answer, contexts and logprobs
# LangChain       messages; ``{"answer": …, "context": [Document]}``; ``{"messages": […]}``
# LlamaIndex      ``Response`` with ``response`` and ``source_nodes``
# Haystack        ``{component: {"replies" | "answers" | "documents": […]}}``
# ==============  ==================================================================

_ANSWERS = ("answer", "output", "output_text", "result", "response", "text", "content", "data")
_CONTEXTS = ("contexts", "context", "source_documents", "source_nodes", "documents", "sources")
_PASSAGES = ("page_content", "content", "text", "node")

_HINT = "Return a text, or a dict with the text as 'answer' (and the passages as 'contexts')."


def read_reply(value: object) -> Answer:
    """Turn a returned value into an answer, with all else that it shows; see :func:`_answered`."""
    answer = _answered(value)
    return answer if isinstance(value, Answer) else show_channels(answer, value)


def _answered(value: object) -> Answer:
    """Turn what an object returned into an answer.

    Args:
        value: A text, one of the shapes above, or an :class:`Answer`.

    Raises:
        TargetResponseError: No answer can be found in it, or it carries an error.
    """
    if isinstance(value, Answer):
        return value
    if isinstance(value, str):
        return Answer(value)
    if isinstance(value, Mapping):
        if value.get("error"):
            raise TargetResponseError("The system answered with an error.", "See its own log.")
        # One dict of outputs per component, or one message after the other, or plain fields.
        outputs = [entry for entry in value.values() if isinstance(entry, Mapping)]
        if any({"replies", "answers"} & set(entry) for entry in outputs):
            return _haystack(outputs)
        messages = value.get("messages")
        if isinstance(messages, list | tuple) and messages:
            return _shaped(messages[-1], _contexts(value))
    return _shaped(value, _contexts(value))


def _shaped(value: object, contexts: tuple[str, ...] | None) -> Answer:
    """An answer from the first field that holds a text, or another shape that does."""
    if isinstance(value, str):
        return Answer(value, contexts=contexts)
    # The first field with a text counts; a message may hold it in parts.
    for name in _ANSWERS:
        inner = field_of(value, name)
        if isinstance(inner, list):
            inner = content_text(inner) or None
        if isinstance(inner, str):
            return Answer(inner, tokens=_tokens(value), contexts=contexts)
        # {"answer": AIMessage(...)}
        if inner is not None and isinstance(field_of(inner, "content"), str | list):
            answer = _shaped(inner, contexts)
            return Answer(answer.text, tokens=answer.tokens or _tokens(value), contexts=contexts)
    shape = type(value).__name__
    if isinstance(value, Mapping):
        shape = f"a dict with {', '.join(str(key) for key in list(value)[:8]) or 'nothing'}"
    raise TargetResponseError(f"The system returned no answer that can be read: {shape}.", _HINT)


def field_of(value: object, name: str) -> Any:
    """An entry of a mapping or an attribute of an object; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    value_found = getattr(value, name, None)
    return None if callable(value_found) else value_found


def _tokens(value: object) -> tuple[TokenLogprob, ...] | None:
    """Log-probabilities in the shapes of the OpenAI protocol, as messages carry them."""
    metadata = field_of(value, "response_metadata") or field_of(value, "meta")
    for holder in (value, metadata):
        if holder is not None and (logprobs := field_of(holder, "logprobs")) is not None:
            return read_logprobs(logprobs)
    return None


def _contexts(value: object) -> tuple[str, ...] | None:
    """The passages that came along; None where there are none to be found."""
    for name in _CONTEXTS:
        entries = field_of(value, name)
        if isinstance(entries, str):
            return (entries,)
        if isinstance(entries, Iterable) and not isinstance(entries, Mapping):
            return _passages(entries)
    return None


def _passages(entries: Iterable[object]) -> tuple[str, ...]:
    texts = (_passage(entry) for entry in entries)
    return tuple(text for text in texts if text is not None)


def _passage(entry: object) -> str | None:
    """The text of a passage: of a string, a document, a node or a node with a score."""
    if isinstance(entry, str):
        return entry
    getter = getattr(entry, "get_content", None)
    if callable(getter):
        return str(getter())
    for name in _PASSAGES:
        inner = field_of(entry, name)
        if isinstance(inner, str):
            return inner
        if name == "node" and inner is not None:
            return _passage(inner)
    return None


def _haystack(outputs: Sequence[Mapping[Any, Any]]) -> Answer:
    """The answer of the component that ends the pipeline, the documents of a retriever."""
    documents = [entry["documents"] for entry in outputs if entry.get("documents")]
    contexts = _passages(documents[-1]) if documents else None
    # Extracted answers come before generated replies; their own passages count first.
    for name in ("answers", "replies"):
        for entry in outputs:
            if not entry.get(name):
                continue
            first = entry[name][0]
            passages = _contexts(first) if name == "answers" else None
            return _shaped(first, passages or contexts)
    raise TargetResponseError("The pipeline returned no reply.", "Let a component return replies.")


# Shorter values may be words, and words of an answer are evidence.
_SHORTEST_KEY = 16


class ObjectTarget:
    """Asks a function or object; make one with :func:`wrap`.

    Args:
        name: Stable identity: the same name means the same system.
        call: How it is asked.
        options: Of these, the time for one answer and how many are under way at a time.
    """

    def __init__(self, name: str, call: Call, options: TransportOptions) -> None:
        self._name = name
        self._call = call
        self._seconds = options.read_timeout
        self._free = asyncio.Semaphore(options.concurrency)

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Text; what else comes along is known after asking."""
        return frozenset({Capability.TEXT})

    async def ask(self, query: Query) -> Answer:
        """Ask it; what is not asynchronous runs in a thread.

        The prompt alone is handed on: how an answer is generated is the system's own affair.

        Raises:
            TargetUnreachableError: It found no connection, or took too long; a thread cannot
                be stopped and goes on.
            TargetResponseError: It raised something else, or returned no answer.
        """
        async with self._free:
            try:
                async with asyncio.timeout(self._seconds):
                    answer = read_reply(await self._value(query.prompt))
            except RagwitnessError as error:
                kind = type(error) if isinstance(error, TargetError) else TargetResponseError
                raise kind(f"{self._name}: {error.message}", error.hint) from None
            except TimeoutError as error:
                raise TargetUnreachableError(
                    f"{self._name} gave no answer within {self._seconds:g} s, or waited in vain"
                    f" itself: {quote_error(error)}.",
                    "Give it more time: --timeout SECONDS.",
                ) from None
            except ConnectionError as error:
                raise TargetUnreachableError(
                    f"{self._name} found no connection: {quote_error(error)}.",
                    "Check what the system itself needs to reach.",
                ) from None
            except (Exception, SystemExit) as error:
                raise TargetResponseError(
                    f"{self._name} raised {quote_error(error)}.",
                    "Call it by hand; ?input=KEY names the key where it takes a dict.",
                ) from None
        return _without_secrets(answer)

    async def close(self) -> None:
        """Nothing to release; the object is its owner's."""

    async def _value(self, prompt: str) -> object:
        call = self._call
        bound = functools.partial(call.function, call.wrap(prompt), **call.extra)
        value = bound() if call.is_async else await in_thread(_in_thread, bound)
        return await value if inspect.isawaitable(value) else value


def wrap(
    system: object,
    *,
    name: str | None = None,
    key: str | None = None,
    options: TransportOptions | None = None,
) -> Target:
    """Return any RAG system in Python as a target.

    Args:
        system: A function from a question to an answer, asynchronous or not; or an object
            with ``ask``, ``ainvoke``/``invoke`` (LangChain), ``aquery``/``query``
            (LlamaIndex), ``run_async``/``run`` (Haystack) or ``answer``. A target is returned
            as it is.
        name: Its identity in stored answers and reports; the object's type by default.
        key: Name under which it wants the question, in a dict; found out where possible.
        options: Of these, the time for one answer and how many are under way at a time.

    Raises:
        InputError: It cannot be asked.
    """
    # A target stays unchanged.
    if isinstance(system, Target) and not inspect.isclass(system):
        return system
    call = find_call(system, key)
    owner = system if inspect.isroutine(system) else type(system)
    module = getattr(owner, "__module__", None) or "builtins"
    name = name or f"python:{module}:{getattr(owner, '__qualname__', 'object')}"
    return ObjectTarget(name, call, options or TransportOptions())


async def open_object(address: Address) -> Target:
    """Open ``python:MODULE:OBJECT[?input=KEY]``.

    A function without parameters is called once and returns the system. The current folder
    is searched last.

    Raises:
        InputError: The module or object cannot be found, imported or asked.
    """
    address.refuse_key()
    path, options = address.split(("input",))
    system = await load_object(path)
    return wrap(system, name=f"python:{path}", key=options.get("input"), options=address.transport)


async def load_object(path: str) -> Any:
    """Return the object at ``MODULE:OBJECT``; a function without parameters makes it.

    Raises:
        InputError: The module or object cannot be found or imported.
    """
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise InputError(
            f"python:{path} names no object.", "Write python:MODULE:OBJECT, e.g. python:my.rag:ask."
        )
    loaded = _attribute(await in_thread(_imported, module), module, attribute)
    # Decorated too, as by functools.cache: what is wrapped is a function.
    if inspect.isfunction(inspect.unwrap(loaded)) and not inspect.signature(loaded).parameters:
        loaded = await _made(loaded, path)
    return loaded


def _in_thread(given: Callable[[], object]) -> object:
    """Call it; no future could carry a StopIteration, and the answer would never come."""
    try:
        return given()
    except StopIteration:
        raise RuntimeError("StopIteration left the function") from None


def _imported(module: str) -> Any:
    """Import a module of the user's; an InputError says why it cannot be."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise InputError(
                f"The module {module} needs {error.name}, which is not installed.",
                "Install it into the environment that ragwitness runs in.",
            ) from None
        raise InputError(
            f"There is no module {module}.", "Run in the folder it lies in, or install it."
        ) from None
    except (Exception, SystemExit) as error:
        raise InputError(
            f"Importing {module} failed: {quote_error(error)}.", "Import it by hand."
        ) from None


def _attribute(module: object, name: str, path: str) -> Any:
    try:
        return functools.reduce(getattr, path.split("."), module)
    except AttributeError:
        public = [key for key in vars(module) if not key.startswith("_")]
        raise InputError(
            f"The module {name} has no {path}.", f"It has: {', '.join(public[:12]) or 'nothing'}."
        ) from None


async def _made(factory: Any, path: str) -> object:
    try:
        system = await in_thread(_in_thread, factory)
        return await system if inspect.isawaitable(system) else system
    except RagwitnessError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}() raised {quote_error(error)}.", "Call it by hand.") from None


def _without_secrets(answer: Answer) -> Answer:
    """An answer may repeat a key of the environment; stored answers must not."""
    secrets = environment_secrets(_SHORTEST_KEY)
    contexts, tokens = answer.contexts, answer.tokens or ()
    spelled = zip(tokens, hide_across([token.token for token in tokens], secrets), strict=True)
    plain = (
        replace(t, token=new, top=tuple((hide(w, secrets), p) for w, p in t.top if new == t.token))
        for t, new in spelled
    )
    return replace(
        answer,
        text=hide(answer.text, secrets),
        tokens=answer.tokens and tuple(plain),
        contexts=None if contexts is None else tuple(hide(entry, secrets) for entry in contexts),
        channels=tuple((name, hide(text, secrets)) for name, text in answer.channels),
    )
