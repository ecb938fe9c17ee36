"""Opens a target by what the user calls it: a URL, or ``SCHEME/...``.

Each scheme is a factory, loaded on first use. Other packages add theirs as entry points of the
group ``ragwitness.targets``: a callable that takes an :class:`Address` and returns a target, or
anything :func:`ragwitness.targets.wrap` accepts, or an awaitable of either.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.plugins import load_plugin, plugin_names
from ragwitness.quoting import quote, quote_error
from ragwitness.targets.address import Address, parse_address
from ragwitness.targets.transport import Clock, TransportOptions
from ragwitness.types import Target

__all__ = ["GROUP", "SCHEMES", "open_target", "target_schemes"]

GROUP = "ragwitness.targets"
"""Entry-point group of other packages' schemes."""

# A system of ours is built by a layer above; it is named here and never imported from here.
SCHEMES: Mapping[str, tuple[str, str]] = {
    "lab": ("lab:CORPUS[?k=4&retrieval=minilm]", "ragwitness.lab:open_lab"),
    "hf": ("hf/MODEL?corpus=FILE[&k=4]", "ragwitness.lab:open_hf"),
    "openai": ("openai/MODEL", "ragwitness.targets.providers:open_openai"),
    "openai-api": ("openai-api/NAME/MODEL", "ragwitness.targets.providers:open_named"),
    "http": ("http/CONFIG.toml", "ragwitness.targets.service:open_service"),
    "python": ("python:MODULE:OBJECT", "ragwitness.targets.objects:open_object"),
    "replay": ("replay/FILE.jsonl or replay/RUN_FOLDER", "ragwitness.runs.replay:open_replay"),
}
"""By name: the form for people, and the factory."""

_URLS = ("http://", "https://")


def target_schemes() -> tuple[str, ...]:
    """Return every known form of an address, those of other packages included."""
    forms = ["http(s)://HOST/v1[#MODEL]", *(form for form, _ in SCHEMES.values())]
    return (*forms, *(f"{name}/…" for name in plugin_names(GROUP) if name not in SCHEMES))


async def open_target(
    spec: str, options: TransportOptions | None = None, *, clock: Clock | None = None
) -> Target:
    """Open the target at an address; ``docs/targets.md`` describes each kind.

    Args:
        spec: A URL of an OpenAI-compatible endpoint, or ``SCHEME/...``.
        options: Timeouts, retries, concurrency, name of the key's variable.
        clock: Time and chance, for tests.

    Raises:
        InputError: An unknown scheme, or an address, file or key that cannot be used.
        TargetError: The target does not answer.
    """
    if spec.strip().lower().startswith(_URLS):
        from ragwitness.targets.openai import OpenAITarget

        return await OpenAITarget.connect(spec, options, clock=clock)
    address = parse_address(spec, options, clock)
    factory = _factory(address.scheme) if address is not None else None
    if address is None or factory is None:
        # A mistyped URL may hold a password: only its beginning is repeated.
        said = quote(spec[:40].partition("@")[0]) if address is None else f"{address.scheme}/…"
        raise InputError(
            f"There is no target of the form {said!r}.",
            f"Known forms: {'; '.join(target_schemes())} (e.g. http://127.0.0.1:8000/v1).",
        )
    if address.scheme in SCHEMES:
        target: Target = await factory(address)
        return target
    return await _foreign(factory, address)


def _factory(scheme: str) -> Callable[[Address], Any] | None:
    if scheme not in SCHEMES:
        return load_plugin(GROUP, scheme)
    module, _, name = SCHEMES[scheme][1].partition(":")
    factory: Callable[[Address], Any] = getattr(importlib.import_module(module), name)
    return factory


async def _foreign(factory: Callable[[Address], Any], address: Address) -> Target:
    """Open a target of another package, which may fail in any way."""
    from ragwitness.targets.objects import wrap

    try:
        made = factory(address)
        opened = await made if inspect.isawaitable(made) else made
    except RagwitnessError:
        raise
    except Exception as error:
        raise InputError(
            f"The plug-in for {address.scheme}/ failed: {quote_error(error)}.",
            "See the documentation of the package that brings it.",
        ) from None
    # Options may hold what is not for a report; the hash keeps two systems apart.
    path, _, rest = address.rest.partition("?")
    mark = f"#{hashlib.sha256(rest.encode()).hexdigest()[:12]}" if rest else ""
    return wrap(opened, name=f"{address.scheme}/{path}{mark}", options=address.transport)
