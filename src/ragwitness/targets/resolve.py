"""Opens a target by its address: a URL, or ``SCHEME/...``.

Each scheme is a factory, loaded on first use. Other packages add theirs as entry points of the
group ``ragwitness.targets``. Such an entry point is a callable that takes an
:class:`~ragwitness.targets.transport.Address`. It returns a target, or anything that
:func:`ragwitness.targets.objects.wrap` accepts, or an awaitable of either.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.quotes import quote, quote_error
from ragwitness.core.registry import Listing, Registry
from ragwitness.core.types import Target
from ragwitness.targets.openai import OPTIONS, Endpoint, OpenAITarget, parse_endpoint
from ragwitness.targets.service_config import load_service
from ragwitness.targets.transport import Address, TransportOptions

GROUP = "ragwitness.targets"
"""Entry-point group of other packages' schemes."""

# A system of ours is built by a layer above; it is named here and never imported from here.
SCHEMES = Registry(
    "target",
    {
        "lab": Listing("ragwitness.rag.lab:open_lab", form="lab:CORPUS[?k=4&retrieval=minilm]"),
        "hf": Listing("ragwitness.rag.lab:open_alone", form="hf:NAME_OR_FOLDER"),
        "gguf": Listing("ragwitness.rag.lab:open_alone", form="gguf:FILE"),
        "openai": Listing("ragwitness.targets.resolve:open_openai", form="openai/MODEL"),
        "openai-api": Listing(
            "ragwitness.targets.resolve:open_named", form="openai-api/NAME/MODEL"
        ),
        "http": Listing("ragwitness.targets.service:open_service", form="http/CONFIG.toml"),
        "python": Listing("ragwitness.targets.objects:open_object", form="python:MODULE:OBJECT"),
        "replay": Listing(
            "ragwitness.runner.replay:open_replay", form="replay/FILE.jsonl or replay/RUN_FOLDER"
        ),
    },
    group=GROUP,
)
"""The schemes: how each is written, and its factory."""

_FORM = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)[:/](.*)", re.DOTALL)


def target_schemes() -> tuple[str, ...]:
    """Return every known form of an address, including those of other packages."""
    ours = [entry.form for entry in SCHEMES.values()]
    return ("http(s)://HOST/v1[#MODEL]", *ours, *(f"{name}/…" for name in SCHEMES.plugins()))


async def open_target(spec: str, options: TransportOptions | None = None) -> Target:
    """Open the target at an address; ``docs/targets.md`` describes each kind.

    Args:
        spec: A URL of an OpenAI-compatible endpoint, or ``SCHEME/...``.
        options: Timeouts, retries, concurrency, name of the key's variable.

    Raises:
        InputError: An unknown scheme, or an address, file or key that cannot be used.
        TargetError: The target does not answer.
    """
    address = check_address(spec, options)
    if address is None:
        return await OpenAITarget.connect(spec, options)
    # Our own schemes go first: a package cannot take one over.
    factory = SCHEMES.load(address.scheme)
    if address.scheme in SCHEMES:
        target: Target = await factory(address)
        return target
    return await _open_plugin(factory, address)


def check_address(spec: str, options: TransportOptions | None = None) -> Address | None:
    """Parse an address and refuse one that cannot be opened; open nothing.

    Returns:
        The address; None for the URL of an endpoint.

    Raises:
        InputError: An unknown scheme, or a URL or description that cannot be used.
    """
    if spec.strip().lower().startswith(("http://", "https://")):
        parse_endpoint(spec)
        return None
    match = _FORM.fullmatch(spec.strip())
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in SCHEMES.names():
        # A mistyped URL may hold a password: only its beginning is repeated.
        form = f"{scheme}/…" if match else quote(spec[:40].partition("@")[0])
        raise InputError(
            f"There is no target of the form {form!r}.",
            f"Known forms: {'; '.join(target_schemes())} (e.g. http://127.0.0.1:8000/v1).",
        )
    address = Address(scheme, match[2], options or TransportOptions())
    if scheme == "http":
        address.refuse_key()
        load_service(address.rest)
    return address


async def _open_plugin(factory: Callable[[Address], Any], address: Address) -> Target:
    """Open a target of another package, which may fail in any way."""
    from ragwitness.targets.objects import wrap

    try:
        system = factory(address)
        system = await system if inspect.isawaitable(system) else system
    except RagwitnessError:
        raise
    except Exception as error:
        raise InputError(
            f"The plug-in for {address.scheme}/ failed: {quote_error(error)}.",
            "See the documentation of the package that brings it.",
        ) from None
    # Options may hold secrets, so the name has their hash; it keeps two systems apart.
    path, _, rest = address.rest.partition("?")
    mark = f"#{hashlib.sha256(rest.encode()).hexdigest()[:12]}" if rest else ""
    return wrap(system, name=f"{address.scheme}/{path}{mark}", options=address.transport)


# OpenAI-compatible providers by name: ``openai/MODEL`` and ``openai-api/NAME/MODEL``.

_OPENAI = "https://api.openai.com/v1"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


async def open_openai(address: Address) -> OpenAITarget:
    """Open ``openai/MODEL`` at api.openai.com with ``OPENAI_API_KEY``.

    Raises:
        InputError: No model, an unknown option, or an unusable key.
    """
    model, options = address.split(OPTIONS)
    if not model:
        raise InputError("openai/ names no model.", "Write openai/MODEL, e.g. openai/gpt-4.1.")
    endpoint = Endpoint(_OPENAI, model).with_options(options)
    return await OpenAITarget.at(endpoint, address.transport)


async def open_named(address: Address) -> OpenAITarget:
    """Open ``openai-api/NAME/MODEL``: URL and key from ``NAME_BASE_URL`` and ``NAME_API_KEY``.

    Raises:
        InputError: No such name or URL, an unknown option, or an unusable key; or no model,
            and the endpoint lists several.
        TargetError: No model, and the endpoint lists none.
    """
    path, options = address.split(OPTIONS)
    name, _, model = path.partition("/")
    if not _NAME.fullmatch(name):
        raise InputError(
            "openai-api/ needs the name of a provider: letters, digits, - and _.",
            "Write openai-api/NAME/MODEL and set NAME_BASE_URL.",
        )
    prefix = name.upper().replace("-", "_")
    url = os.environ.get(f"{prefix}_BASE_URL", "").strip()
    if not url:
        raise InputError(
            f"The address of openai-api/{name} is not known: {prefix}_BASE_URL is not set.",
            f"Set {prefix}_BASE_URL to its base URL, e.g. http://host:port/v1.",
        )
    try:
        endpoint = parse_endpoint(url)
    except InputError as error:
        raise InputError(f"{prefix}_BASE_URL: {error.message}", error.hint) from None
    transport = address.transport
    if transport.key_env is None:
        transport = replace(transport, key_env=f"{prefix}_API_KEY")
    endpoint = replace(endpoint, model=model or endpoint.model).with_options(options)
    return await OpenAITarget.at(endpoint, transport)
