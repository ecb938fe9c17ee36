"""Any OpenAI-compatible endpoint as a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2

from ragwitness.errors import CapabilityError, InputError, TargetResponseError
from ragwitness.targets.failures import Key, find_key
from ragwitness.targets.transport import Clock, JsonClient, TransportOptions
from ragwitness.targets.wire import (
    drop_after,
    drop_before,
    read_chat,
    read_completion,
    read_models,
    read_prompt_scores,
)
from ragwitness.types import Answer, Capability, Message, Query, Role, TokenLogprob

# Requests of the OpenAI protocol; pure functions.


def chat_payload(
    model: str, messages: Sequence[Message], query: Query, limit_name: str, stop: Sequence[str]
) -> dict[str, object]:
    """Return the body for ``/chat/completions``.

    Args:
        model: The model asked.
        messages: The conversation.
        query: How it is to be answered; its prompt is not looked at.
        limit_name: What the endpoint calls the limit of generated tokens.
        stop: Strings that end the answer.
    """
    payload: dict[str, object] = {
        "model": model,
        "messages": [{"role": str(one.role), "content": one.content} for one in messages],
        limit_name: query.max_tokens,
        "temperature": query.temperature,
    }
    if query.top_logprobs:
        payload |= {"logprobs": True, "top_logprobs": query.top_logprobs}
    if stop:
        payload["stop"] = list(stop)
    return _seeded(payload, query)


def completion_payload(model: str, query: Query) -> dict[str, object]:
    """Return the body for ``/completions``: the prompt as it is, without a conversation."""
    payload: dict[str, object] = {
        "model": model,
        "prompt": query.prompt,
        "max_tokens": query.max_tokens,
        "temperature": query.temperature,
    }
    if query.top_logprobs:
        payload["logprobs"] = query.top_logprobs
    return _seeded(payload, query)


def echo_payload(model: str, text: str, top: int) -> dict[str, object]:
    """Return the body for ``/completions`` that scores a text by repeating it."""
    # Not 0 tokens: some servers refuse that, and llama.cpp's then writes without a limit.
    return _scored(model, text) | {"echo": True, "logprobs": top}


def prompt_scores_payload(model: str, text: str, top: int) -> dict[str, object]:
    """Return the body for ``/completions`` that scores a text by vLLM's ``prompt_logprobs``."""
    # Streaming would drop the field, and no token at all is refused.
    return _scored(model, text) | {"prompt_logprobs": top}


def _scored(model: str, text: str) -> dict[str, object]:
    return {"model": model, "prompt": text, "max_tokens": 1, "temperature": 0}


def _seeded(payload: dict[str, object], query: Query) -> dict[str, object]:
    return payload if query.seed is None else payload | {"seed": query.seed}


_FORM = "Give a base URL such as http://host:port/v1, the model after '#' where there are several."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a target is.

    Attributes:
        url: Base URL without a trailing slash.
        model: The model asked for; None takes the only one there is.
        api: ``"chat"`` sends a query as a message, ``"completions"`` as it is.
        echo: How a prompt is scored: ``"echo"`` repeats it; ``"prompt_logprobs"`` is vLLM's
            extension, for servers that refuse to repeat.
    """

    url: str
    model: str | None = None
    api: Literal["chat", "completions"] = "chat"
    echo: Literal["echo", "prompt_logprobs"] = "echo"


def parse_endpoint(spec: str) -> Endpoint:
    """Read ``URL`` or ``URL#MODEL``.

    Raises:
        InputError: It is not an http(s) URL, or holds a user, password or query.
    """
    url, _, model = spec.strip().partition("#")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises where it is not a number
        httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        raise InputError("The target's URL cannot be read.", _FORM)
    if parts.username or parts.password or parts.query:
        # Not repeated here: what stands there may be a secret.
        raise InputError(
            "The target's URL holds a user name, a password or a query.",
            "Leave them out; a key belongs into an environment variable: --key-env NAME.",
        )
    return Endpoint(url.rstrip("/"), model or None)


class OpenAITarget:
    """Asks an OpenAI-compatible endpoint; make one with :meth:`connect`.

    Args:
        endpoint: Where it is; its model must be known.
        options: Limits and key.
        clock: Time and chance.
        key: Sent in place of the one that ``options`` names.

    Raises:
        InputError: No model, or an unusable key.

    Attributes:
        model: The model asked.
        capabilities: What the protocol promises; see
            :func:`ragwitness.targets.probe.probe_capabilities`.
    """

    capabilities = frozenset({Capability.TEXT, Capability.TOP_LOGPROBS})

    def __init__(
        self,
        endpoint: Endpoint,
        options: TransportOptions | None = None,
        *,
        clock: Clock | None = None,
        key: Key | None = None,
    ) -> None:
        if endpoint.model is None:
            raise InputError(f"Which model of {endpoint.url} is meant is not known.", _FORM)
        options = options or TransportOptions()
        self._endpoint = endpoint
        self.model = endpoint.model
        key = key or find_key(endpoint.url, options.key_env)
        self._client = JsonClient(endpoint.url, key, options, clock)
        self._limit_name = "max_tokens"

    @classmethod
    async def connect(
        cls, spec: str, options: TransportOptions | None = None, *, clock: Clock | None = None
    ) -> OpenAITarget:
        """Open ``URL`` or ``URL#MODEL``; see :meth:`at`."""
        return await cls.at(parse_endpoint(spec), options, clock=clock)

    @classmethod
    async def at(
        cls,
        endpoint: Endpoint,
        options: TransportOptions | None = None,
        *,
        clock: Clock | None = None,
    ) -> OpenAITarget:
        """Open an endpoint; without a model, ask which one there is.

        Raises:
            InputError: An unusable URL or key, or several models and none named.
            TargetError: The endpoint gives no list of models.
        """
        if endpoint.model is None:
            options = options or TransportOptions()
            key = find_key(endpoint.url, options.key_env)
            client = JsonClient(endpoint.url, key, options, clock)
            try:
                model = await _only_model(client, endpoint.url)
            finally:
                await client.close()
            endpoint = replace(endpoint, model=model)
        return cls(endpoint, options, clock=clock)

    @property
    def name(self) -> str:
        """Base URL and model, and the interface where it is not the chat."""
        way = "" if self._endpoint.api == "chat" else f"?endpoint={self._endpoint.api}"
        return f"{self._endpoint.url}#{self.model}{way}"

    async def ask(self, query: Query) -> Answer:
        """Send one query.

        ``tokens`` of the answer is None where the endpoint sent no log-probabilities.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint refuses or fails, or its reply does not follow
                the protocol.
            CapabilityError: The endpoint refuses log-probabilities.
        """
        if self._endpoint.api == "completions":
            return await self.go_on(query)
        return await self.chat((Message(Role.USER, query.prompt),), query)

    async def chat(
        self, messages: Sequence[Message], query: Query, stop: Sequence[str] = ()
    ) -> Answer:
        """Send a conversation, to be answered as a query says; see :meth:`ask`."""
        limit_name = self._limit_name
        try:
            return await self._chat(messages, query, stop)
        except TargetResponseError as error:
            # Reasoning models take the limit under its new name alone.
            if limit_name != "max_tokens" or "max_completion_tokens" not in error.message:
                raise
            self._limit_name = "max_completion_tokens"
        return await self._chat(messages, query, stop)

    async def listed(self) -> dict[str, Any]:
        """Return what the endpoint's list of models says of this one; nothing where it is not.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint gives no list.
        """
        body: Any = await self._client.get("/models")
        read_models(body)
        entries = (entry for entry in body["data"] if isinstance(entry, dict))
        return next((entry for entry in entries if entry.get("id") == self.model), {})

    async def go_on(self, query: Query) -> Answer:
        """Continue a text as it is through ``/completions``, whatever :meth:`ask` uses.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint refuses or fails, or its reply does not follow
                the protocol.
        """
        payload = completion_payload(self.model, query)
        return read_completion(await self._client.post("/completions", payload))

    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        """Score a text's own tokens through ``/completions``.

        Args:
            text: What is scored.
            top: Alternatives per token.

        Returns:
            One entry per token of the text; the first has the log-probability NaN where the
            endpoint puts nothing before it.

        Raises:
            CapabilityError: The endpoint does not score prompts.
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint refuses or fails, or its reply does not follow
                the protocol.
        """
        # Servers put a start token before the text and write a token after it.
        tokens = drop_after(drop_before(await self._scores(text, top), text), text)
        if not tokens:
            raise CapabilityError(
                f"{self._endpoint.url} does not return log-probabilities of the prompt.",
                "Use an audit that reads those of generated tokens.",
            )
        return tokens

    async def _scores(self, text: str, top: int) -> tuple[TokenLogprob, ...]:
        if self._endpoint.echo == "prompt_logprobs":
            payload = prompt_scores_payload(self.model, text, top)
            return read_prompt_scores(await self._client.post("/completions", payload), text)
        payload = echo_payload(self.model, text, top)
        return read_completion(await self._client.post("/completions", payload)).tokens or ()

    async def _chat(self, messages: Sequence[Message], query: Query, stop: Sequence[str]) -> Answer:
        payload = chat_payload(self.model, messages, query, self._limit_name, stop)
        return read_chat(await self._client.post("/chat/completions", payload))

    async def converse(
        self, messages: Sequence[Mapping[str, object]], max_tokens: int
    ) -> tuple[Answer, str]:
        """Send messages as they are; return the answer and the id that the endpoint gave it.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint refuses or fails, or its reply does not follow
                the protocol.
        """
        payload = {"model": self.model, "messages": list(messages), self._limit_name: max_tokens}
        body = await self._client.post("/chat/completions", payload)
        name = body.get("id") if isinstance(body, dict) else None
        return read_chat(body), str(name or "")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def __aenter__(self) -> OpenAITarget:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _only_model(client: JsonClient, url: str) -> str:
    try:
        models = read_models(await client.get("/models"))
    except TargetResponseError as error:
        raise TargetResponseError(error.message, f"{error.hint} {_FORM}") from None
    if len(models) == 1:
        return models[0]
    if not models:
        raise InputError(f"{url} lists no model.", f"Name one: {url}#MODEL")
    shown = ", ".join(models[:10]) + (f" and {len(models) - 10} more" if len(models) > 10 else "")
    raise InputError(f"{url} has {len(models)} models: {shown}.", f"Name one: {url}#{models[0]}")
