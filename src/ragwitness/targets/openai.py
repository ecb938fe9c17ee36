"""Any OpenAI-compatible endpoint as a target."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from ragwitness.core.errors import CapabilityError, InputError, TargetResponseError
from ragwitness.core.types import Answer, Capability, Message, Query, Role
from ragwitness.targets.connection import url_of
from ragwitness.targets.failures import Key, find_key
from ragwitness.targets.transport import Clock, JsonClient, Session, TransportOptions
from ragwitness.targets.wire import (
    JsonObject,
    Tokens,
    drop_after,
    drop_before,
    read_chat,
    read_completion,
    read_models,
)

# Requests of the OpenAI protocol; pure functions.


def chat_payload(
    model: str, messages: Sequence[Message], query: Query, stop: Sequence[str]
) -> JsonObject:
    """Return the body for ``/chat/completions``.

    Args:
        model: The model asked.
        messages: The conversation.
        query: How it is to be answered; its prompt is not looked at.
        stop: Strings that end the answer.
    """
    turns = [{"role": str(turn.role), "content": turn.content} for turn in messages]
    top = {"logprobs": True, "top_logprobs": query.top_logprobs} if query.top_logprobs else {}
    return _payload(model, query, {"messages": turns}, top | ({"stop": list(stop)} if stop else {}))


def completion_payload(model: str, query: Query) -> JsonObject:
    """Return the body for ``/completions``: the prompt as it is, without a conversation."""
    top = {"logprobs": query.top_logprobs} if query.top_logprobs else {}
    return _payload(model, query, {"prompt": query.prompt}, top)


def _payload(
    model: str, query: Query, asked: Mapping[str, object], further: Mapping[str, object]
) -> JsonObject:
    limits = {"max_tokens": query.max_tokens, "temperature": query.temperature}
    seed = {} if query.seed is None else {"seed": query.seed}
    return {"model": model, **asked, **limits, **further, **seed}


# Dialects: deviations of an endpoint from the protocol, learned from its refusals.


@dataclass(frozen=True, slots=True)
class _Dialect:
    """One row.

    Attributes:
        field: Of the request; the row applies to requests that have it.
        signs: Words of a refusal that show it, as a regular expression.
        rewrite: Makes the request that the endpoint accepts.
        remark: One sentence for the report.
    """

    field: str
    signs: str
    rewrite: Callable[[JsonObject], JsonObject]
    remark: str


def _without(name: str) -> Callable[[JsonObject], JsonObject]:
    return lambda sent: {field: value for field, value in sent.items() if field != name}


def _limit_renamed(sent: JsonObject) -> JsonObject:
    return _without("max_tokens")(sent) | {"max_completion_tokens": sent["max_tokens"]}


def _logprobs_switched(sent: JsonObject) -> JsonObject:
    return sent if sent["logprobs"] is True else sent | {
        "logprobs": True, "top_logprobs": sent["logprobs"]
    }  # fmt: skip


_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}

_DIALECTS = (
    _Dialect("max_tokens", "max_completion_tokens", _limit_renamed,
             "It takes the limit of tokens as max_completion_tokens."),
    _Dialect("temperature", "temperature", _without("temperature"),
             "It refuses the temperature, so that it answers at its own: the same question may"
             " have other answers."),
    _Dialect("seed", r"\bseed\b", _without("seed"), "It takes no seed."),
    _Dialect("model", r"\bstream\b", lambda sent: sent | _STREAMED,
             "It answers in streams alone."),
    _Dialect("model", "stream_options|include_usage", _without("stream_options"),
             "It does not count the tokens of its streams."),
    _Dialect("logprobs", r"logprobs.{0,60}(bool|\btrue\b)|top_logprobs.{0,40}required",
             _logprobs_switched, "It takes logprobs as a switch, with top_logprobs beside it."),
    _Dialect("top_logprobs", "top_logprobs.{0,40}(not (supported|permitted|allowed)|unsupported"
             "|unrecognized|unknown|unexpected)|(extra|unrecognized|unknown|unexpected).{0,60}"
             "top_logprobs", _without("top_logprobs"),
             "It gives no alternatives of a token (top_logprobs)."),
)  # fmt: skip


_log = logging.getLogger(__name__)

_FORM = "Give a base URL such as http://host:port/v1, the model after '#' where there are several."

# Options of an address; any other query is sent to the service.
OPTIONS = ("endpoint",)
_SECRET_PARAMETER = re.compile(
    r"key|token|secret|passw|credential|authoriz|^(?:auth|code|sig|signature)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a target is.

    Attributes:
        url: Base URL without a trailing slash.
        model: The model asked for; None takes the only one there is.
        api: ``"chat"`` sends a query as a message, ``"completions"`` as it is.
        query: Of every request, such as ``"?api-version=2024-10-21"``; may be empty.
    """

    url: str
    model: str | None = None
    api: Literal["chat", "completions"] = "chat"
    query: str = ""

    def with_options(self, options: Mapping[str, str]) -> Endpoint:
        """Return it with the options of an address.

        Raises:
            InputError: A value is unknown.
        """
        api = options.get("endpoint", self.api)
        if api not in ("chat", "completions"):
            raise InputError(f"The option endpoint cannot be {api!r}.", "Use: chat, completions.")
        return replace(self, api=api)  # type: ignore[arg-type]  # checked above


def parse_endpoint(spec: str) -> Endpoint:
    """Read ``URL``, ``URL#MODEL`` or ``URL?QUERY#MODEL``, with or without its last words.

    Raises:
        InputError: It is not an http(s) URL, or holds a user, password or key.
    """
    # 1. The URL must be usable, and hold no secret.
    url, _, model = spec.strip().partition("#")
    if (parsed := url_of(url)) is None:
        raise InputError("The target's URL cannot be read.", _FORM)
    pairs = parse_qsl(parsed.query.decode(), keep_blank_values=True)
    if parsed.userinfo or any(_SECRET_PARAMETER.search(name) for name, _ in pairs):
        # The URL is not quoted: it may hold a secret.
        raise InputError(
            "The target's URL holds a user name, a password or a key.",
            "Leave them out; a key belongs into an environment variable: --key-env NAME, or"
            " --header HEADER=NAME.",
        )
    # 2. Providers show the whole address of a request; its last words name the interface.
    chat = url.partition("?")[0].rstrip("/").removesuffix("/chat/completions")
    base = chat.removesuffix("/completions")
    query = urlencode([pair for pair in pairs if pair[0] not in OPTIONS])
    options = {"endpoint": "completions"} if base != chat else {}
    options |= {name: value for name, value in pairs if name in OPTIONS}
    return Endpoint(base, model or None, query=f"?{query}" if query else "").with_options(options)


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
        capabilities: Those of the protocol; see
            :func:`ragwitness.runner.capabilities.probe_capabilities`.
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
        key = key or find_key(endpoint.url, options.key_env, options.headers)
        self._client = JsonClient(endpoint.url, key, options, clock)
        self._learned: set[_Dialect] = set()

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
            key = find_key(endpoint.url, options.key_env, options.headers)
            client = JsonClient(endpoint.url, key, options, clock)
            try:
                model = await _only_model(client, endpoint)
            finally:
                await client.close()
            endpoint = replace(endpoint, model=model)
        return cls(endpoint, options, clock=clock)

    @property
    def name(self) -> str:
        """Base URL and model, and the interface where it is not the chat."""
        suffix = "" if self._endpoint.api == "chat" else f"?endpoint={self._endpoint.api}"
        return f"{self._endpoint.url}{self._endpoint.query}#{self.model}{suffix}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Deviations from the protocol that were learned, a line each."""
        return tuple(row.remark for row in _DIALECTS if row in self._learned)

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
        payload = chat_payload(self.model, messages, query, stop)
        return read_chat(await self._post("/chat/completions", payload))

    async def listed(self) -> JsonObject:
        """Return the entry of this model in the endpoint's list; empty where it is not listed.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint gives no list.
        """
        body: Any = await self._client.send("GET", f"/models{self._endpoint.query}")
        read_models(body)
        models = (entry for entry in body["data"] if isinstance(entry, dict))
        return next((model for model in models if model.get("id") == self.model), {})

    async def go_on(self, query: Query) -> Answer:
        """Continue a text through ``/completions``, whatever :meth:`ask` uses.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint refuses or fails, or its reply does not follow
                the protocol.
        """
        payload = completion_payload(self.model, query)
        return read_completion(await self._post("/completions", payload))

    async def echo(self, text: str, top: int = 5) -> Tokens:
        """Score a text's own tokens through ``/completions``.

        Args:
            text: The text to score.
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
        # Not 0 tokens: some servers refuse that, and llama.cpp's then writes without a limit.
        payload = {"model": self.model, "prompt": text, "max_tokens": 1, "temperature": 0}
        body = await self._post("/completions", payload | {"echo": True, "logprobs": top})
        scored = read_completion(body).tokens or ()
        tokens = drop_after(drop_before(scored, text), text)
        if not tokens:
            raise CapabilityError(
                f"{self._endpoint.url} does not return log-probabilities of the prompt.",
                "Use an audit that reads those of generated tokens.",
            )
        return tokens

    async def _post(self, path: str, payload: JsonObject, cookies: Session = None) -> object:
        """Send a payload in the endpoint's dialect, which its refusals teach."""

        def rewritten() -> JsonObject:
            request = payload
            for row in _DIALECTS:
                if row in self._learned and row.field in request:
                    request = row.rewrite(request)
            return request

        def revise(refusal: str, sent: object) -> object:
            fitting = (row for row in _DIALECTS if re.search(row.signs, refusal, re.IGNORECASE))
            learned = {row for row in fitting if row.field in payload} - self._learned
            for row in learned:
                _log.info("%s: %s", self._endpoint.url, row.remark)
            self._learned |= learned
            # Another question may have learned it meanwhile.
            return request if (request := rewritten()) != sent else None

        path += self._endpoint.query
        return await self._client.send("POST", path, rewritten(), revise=revise, session=cookies)

    async def converse(
        self,
        messages: Sequence[Mapping[str, object]],
        max_tokens: int,
        temperature: float | None = None,
        cookies: Session = None,
    ) -> tuple[Answer, str]:
        """Send messages unchanged; return the answer and its id at the endpoint.

        Without a temperature the endpoint's own holds, and without cookies a session begins.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The endpoint refuses or fails, or its reply does not follow
                the protocol.
        """
        payload = {"model": self.model, "messages": list(messages), "max_tokens": max_tokens}
        if temperature is not None:
            payload["temperature"] = temperature
        body = await self._post("/chat/completions", payload, cookies)
        name = body.get("id") if isinstance(body, dict) else None
        return read_chat(body), str(name or "")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def __aenter__(self) -> OpenAITarget:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _only_model(client: JsonClient, endpoint: Endpoint) -> str:
    url = endpoint.url + endpoint.query
    try:
        models = read_models(await client.send("GET", f"/models{endpoint.query}"))
    except TargetResponseError as error:
        raise TargetResponseError(error.message, f"{error.hint} {_FORM}") from None
    if len(models) == 1:
        return models[0]
    if not models:
        raise InputError(f"{url} lists no model.", f"Name one: {url}#MODEL")
    names = ", ".join(models[:10]) + (f" and {len(models) - 10} more" if len(models) > 10 else "")
    raise InputError(f"{url} has {len(models)} models: {names}.", f"Name one: {url}#{models[0]}")
