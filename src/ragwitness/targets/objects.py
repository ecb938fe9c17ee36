"""A RAG system in this process as a target: a function, or an object of a known framework."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ragwitness.errors import (
    InputError,
    RagwitnessError,
    TargetError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.quoting import environment_secrets, hide, quote_error
from ragwitness.targets.address import Address
from ragwitness.targets.calls import Call, find_call
from ragwitness.targets.replies import read_reply
from ragwitness.targets.transport import TransportOptions
from ragwitness.types import Answer, Capability, Query, Target

__all__ = ["ObjectTarget", "open_object", "wrap"]

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
                    value = await self._value(query.prompt)
            except RagwitnessError as error:
                raise self._own(error) from None
            except (ConnectionError, TimeoutError) as error:
                raise TargetUnreachableError(
                    f"{self._name} gave no answer within {self._seconds:g} s or found no "
                    f"connection: {quote_error(error)}.",
                    "Check what the system itself needs to reach.",
                ) from None
            except (Exception, SystemExit) as error:
                raise TargetResponseError(
                    f"{self._name} raised {quote_error(error)}.",
                    "Call it by hand; ?input=KEY names the key where it takes a dict.",
                ) from None
        return _without_secrets(self._read(value))

    async def close(self) -> None:
        """Nothing to release; the object is its owner's."""

    async def _value(self, prompt: str) -> object:
        call = self._call
        given = functools.partial(call.function, call.wrap(prompt), **call.extra)
        value = given() if call.is_async else await asyncio.to_thread(_in_thread, given)
        return await value if inspect.isawaitable(value) else value

    def _own(self, error: RagwitnessError) -> TargetError:
        """An error that the system raised on purpose, as one of a target."""
        if isinstance(error, TargetError):
            return error
        return TargetResponseError(f"{self._name}: {error.message}", error.hint)

    def _read(self, value: object) -> Answer:
        try:
            return read_reply(value)
        except TargetError as error:
            raise type(error)(f"{self._name}: {error.message}", error.hint) from None


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
        name: Its identity in journals and reports; the object's type by default.
        key: Name under which it wants the question, in a dict; found out where possible.
        options: Of these, the time for one answer and how many are under way at a time.

    Raises:
        InputError: It cannot be asked.
    """
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
    address.without_key()
    path, options = address.split(("input",))
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise InputError(
            f"python:{path} names no object.", "Write python:MODULE:OBJECT, e.g. python:my.rag:ask."
        )
    found = _attribute(await asyncio.to_thread(_imported, module), module, attribute)
    if inspect.isfunction(found) and not inspect.signature(found).parameters:
        found = await _made(found, path)
    return wrap(found, name=f"python:{path}", key=options.get("input"), options=address.transport)


def _in_thread(given: Callable[[], object]) -> object:
    """Call it; no future could carry a StopIteration, and the answer would never come."""
    try:
        return given()
    except StopIteration:
        raise RuntimeError("StopIteration left the function") from None


def _imported(module: str) -> Any:
    """Import a module of the user's.

    Raises:
        InputError: It is not there, or raises.
    """
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
        made = await asyncio.to_thread(_in_thread, factory)
        return await made if inspect.isawaitable(made) else made
    except RagwitnessError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"{path}() raised {quote_error(error)}.", "Call it by hand.") from None


def _without_secrets(answer: Answer) -> Answer:
    """An answer may repeat a key of the environment; a journal must not."""
    secrets = environment_secrets(_SHORTEST_KEY)
    contexts = answer.contexts
    return replace(
        answer,
        text=hide(answer.text, secrets),
        contexts=None if contexts is None else tuple(hide(entry, secrets) for entry in contexts),
    )
