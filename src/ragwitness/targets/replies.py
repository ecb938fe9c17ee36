"""Reads what a RAG system in Python returns, by its shape: no framework is imported.

==============  ==================================================================
plain           ``str``; a dict or object with an answer, contexts and logprobs
LangChain       messages; ``{"answer": …, "context": [Document]}``; ``{"messages": […]}``
LlamaIndex      ``Response`` with ``response`` and ``source_nodes``
Haystack        ``{component: {"replies" | "answers" | "documents": […]}}``
==============  ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragwitness.errors import TargetResponseError
from ragwitness.targets.wire import read_logprobs
from ragwitness.types import Answer, TokenLogprob

__all__ = ["read_reply"]

_ANSWERS = ("answer", "output", "output_text", "result", "response", "text", "content", "data")
_CONTEXTS = ("contexts", "context", "source_documents", "source_nodes", "documents", "sources")
_PASSAGES = ("page_content", "content", "text", "node")

_HINT = "Return a text, or a dict with the text as 'answer' (and the passages as 'contexts')."


def read_reply(value: object) -> Answer:
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
        if _is_haystack(value):
            return _haystack(value)
        messages = value.get("messages")
        if isinstance(messages, list | tuple) and messages:
            return _shaped(messages[-1], _contexts(value))
    return _shaped(value, _contexts(value))


def _shaped(value: object, contexts: tuple[str, ...] | None) -> Answer:
    """An answer from the first field that holds a text, or another shape that does."""
    if isinstance(value, str):
        return Answer(value, contexts=contexts)
    for name in _ANSWERS:
        inner = _field(value, name)
        if isinstance(inner, list):
            inner = _joined(inner)
        if isinstance(inner, str):
            return Answer(inner, tokens=_tokens(value), contexts=contexts)
        # {"answer": AIMessage(...)}
        if inner is not None and isinstance(_field(inner, "content"), str | list):
            found = _shaped(inner, contexts)
            return Answer(found.text, tokens=found.tokens or _tokens(value), contexts=contexts)
    shown = type(value).__name__
    if isinstance(value, Mapping):
        shown = f"a dict with {', '.join(str(key) for key in list(value)[:8]) or 'nothing'}"
    raise TargetResponseError(f"The system returned no answer that can be read: {shown}.", _HINT)


def _field(value: object, name: str) -> Any:
    """An entry of a mapping or an attribute of an object; None where there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    found = getattr(value, name, None)
    return None if callable(found) else found


def _joined(parts: list[object]) -> str | None:
    """The text of a message in parts; None where there is none."""
    texts = [part if isinstance(part, str) else _field(part, "text") for part in parts]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _tokens(value: object) -> tuple[TokenLogprob, ...] | None:
    """Log-probabilities in the shapes of the OpenAI protocol, as messages carry them."""
    metadata = _field(value, "response_metadata") or _field(value, "meta")
    for holder in (value, metadata):
        if holder is not None and (found := _field(holder, "logprobs")) is not None:
            return read_logprobs(found)
    return None


def _contexts(value: object) -> tuple[str, ...] | None:
    """The passages that came along; None where there are none to be found."""
    for name in _CONTEXTS:
        found = _field(value, name)
        if isinstance(found, str):
            return (found,)
        if isinstance(found, Iterable) and not isinstance(found, Mapping):
            return _passages(found)
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
        inner = _field(entry, name)
        if isinstance(inner, str):
            return inner
        if name == "node" and inner is not None:
            return _passage(inner)
    return None


def _is_haystack(value: Mapping[Any, Any]) -> bool:
    """Whether it is one dict of outputs per component."""
    outputs = [entry for entry in value.values() if isinstance(entry, Mapping)]
    return bool(outputs) and any({"replies", "answers"} & set(entry) for entry in outputs)


def _haystack(value: Mapping[Any, Any]) -> Answer:
    """The answer of the component that ends the pipeline, the documents of a retriever."""
    outputs = [entry for entry in value.values() if isinstance(entry, Mapping)]
    found = [entry["documents"] for entry in outputs if entry.get("documents")]
    contexts = _passages(found[-1]) if found else None
    for name in ("answers", "replies"):
        for entry in outputs:
            if not entry.get(name):
                continue
            first = entry[name][0]
            own = _contexts(first) if name == "answers" else None
            return _shaped(first, own or contexts)
    raise TargetResponseError("The pipeline returned no reply.", "Let a component return replies.")
