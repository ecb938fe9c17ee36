"""OpenAI-compatible providers by name: ``openai/MODEL`` and ``openai-api/NAME/MODEL``."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from ragwitness.errors import InputError
from ragwitness.targets.address import Address
from ragwitness.targets.openai import Endpoint, OpenAITarget, parse_endpoint

__all__ = ["open_named", "open_openai"]

_OPENAI = "https://api.openai.com/v1"
_OPTIONS = {"endpoint": ("chat", "completions"), "echo": ("echo", "prompt_logprobs")}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


async def open_openai(address: Address) -> OpenAITarget:
    """Open ``openai/MODEL`` at api.openai.com with ``OPENAI_API_KEY``.

    Raises:
        InputError: No model, an unknown option, or an unusable key.
    """
    model, options = address.split(_OPTIONS)
    if not model:
        raise InputError("openai/ names no model.", "Write openai/MODEL, e.g. openai/gpt-4.1.")
    endpoint = _with(Endpoint(_OPENAI, model), options)
    return await OpenAITarget.at(endpoint, address.transport, clock=address.clock)


async def open_named(address: Address) -> OpenAITarget:
    """Open ``openai-api/NAME/MODEL``: URL and key from ``NAME_BASE_URL`` and ``NAME_API_KEY``.

    Raises:
        InputError: No such name or URL, an unknown option, or an unusable key; or no model,
            and the endpoint lists several.
        TargetError: No model, and the endpoint lists none.
    """
    path, options = address.split(_OPTIONS)
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
    endpoint = _with(replace(endpoint, model=model or endpoint.model), options)
    return await OpenAITarget.at(endpoint, transport, clock=address.clock)


def _with(endpoint: Endpoint, options: dict[str, str]) -> Endpoint:
    """Add the address's options.

    Raises:
        InputError: A value is unknown.
    """
    for name, value in options.items():
        if value not in _OPTIONS[name]:
            raise InputError(
                f"The option {name} cannot be {value!r}.", f"Use: {', '.join(_OPTIONS[name])}."
            )
    api, echo = options.get("endpoint", endpoint.api), options.get("echo", endpoint.echo)
    return replace(endpoint, api=api, echo=echo)  # type: ignore[arg-type]  # checked above
