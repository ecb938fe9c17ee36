"""How a RAG system in Python wants to be asked, found by its methods: no framework is imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ragwitness.errors import InputError

__all__ = ["Call", "find_call"]

# The asynchronous twin first; `answer` is the adapter of rag-redteam.
_METHODS = (
    "ask", "ainvoke", "invoke", "aquery", "query", "run_async", "run", "answer",
)  # fmt: skip

# What pipelines call the user's question; further inputs are settings.
_QUESTIONS = frozenset({"query", "question", "user_query", "input", "user_input"})


@dataclass(frozen=True, slots=True)
class Call:
    """One way to ask a system.

    Attributes:
        function: What is called with the question.
        is_async: Whether it is a coroutine function.
        wrap: Puts the prompt into the form the function wants.
        extra: Further arguments.
    """

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
    for name in _METHODS:
        method = getattr(system, name, None)
        if callable(method):
            break
    else:
        if not callable(system):
            raise InputError(
                f"A {type(system).__name__} cannot be asked: it is no function and has none of "
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
    inputs = getattr(system, "inputs", None)
    if method in ("run", "run_async") and callable(inputs):
        names = frozenset((key,)) if key else _pipeline_inputs(inputs())
        return (lambda prompt: dict.fromkeys(names, prompt)), _pipeline_extra(system)
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
    # "root" is what LangChain calls an input that is no dict.
    return str(required[0]) if len(required) == 1 and required[0] != "root" else None


def _pipeline_inputs(inputs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> frozenset[str]:
    """Names of a Haystack pipeline's inputs that take the question.

    Raises:
        InputError: It needs something that is no text, or nothing takes a question.
    """
    sockets = [item for component in inputs.values() for item in component.items()]
    needed = {name for name, socket in sockets if socket.get("is_mandatory")}
    odd = sorted(n for n, s in sockets if n in needed and n not in _QUESTIONS and not _texts(s))
    names = needed | {name for name, _ in sockets if name in _QUESTIONS}
    if odd or not names:
        lacks = f"needs an input {odd[0]!r} that is no text" if odd else "takes no question"
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
