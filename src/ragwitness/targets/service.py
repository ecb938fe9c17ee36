"""Any service that speaks JSON over HTTP, as its owner describes it: ``http/CONFIG.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote as escape

from jsonpath import JSONPath

from ragwitness.core.errors import RagwitnessError, TargetResponseError
from ragwitness.core.quotes import hide, hide_in
from ragwitness.core.types import Answer, Capability, Query, TokenLogprob
from ragwitness.targets.failures import Failures, Key
from ragwitness.targets.service_config import (
    ENV,
    BallotConfig,
    ServiceConfig,
    ServiceStep,
    fill,
    fill_text,
    load_service,
    places,
)
from ragwitness.targets.transport import Address, Clock, JsonClient, TransportOptions
from ragwitness.targets.wire import Events, content_text, read_logprobs


class _ServiceFailures(Failures):
    """Words failures for somebody who wrote a description."""

    html_guess = "."

    def __init__(self, step: ServiceStep, secrets: Mapping[str, str]) -> None:
        super().__init__(step.shown, Key(), tuple(secrets.values()))
        self.hints = dict.fromkeys(self.hints, f"Check url and method ({step.where}).")
        self._where = step.where
        self._variables = [name.removeprefix(ENV) for name in secrets]

    def _forbidden(self, status: int, said: str) -> TargetResponseError:
        named = ", ".join(self._variables) or "none named"
        return TargetResponseError(
            f"{self._url} refuses access (status {status}){said}.",
            f"Check its headers ({self._where}) and the environment variables they name: {named}.",
        )


@dataclass(frozen=True, slots=True)
class SessionReply:
    """What a session brought.

    Attributes:
        text: The answer.
        kept: Values that the steps kept, by name.
        question: As the service repeats it; None where the description says nowhere.
        document: Likewise.
    """

    text: str
    kept: Mapping[str, str]
    question: str | None = None
    document: str | None = None


class VoteBox:
    """Gives votes by a description.

    Args:
        config: Of the ``[vote]``.
        options: Limits.
    """

    def __init__(self, config: BallotConfig | None, options: TransportOptions) -> None:
        if config is None:
            raise ValueError("no description of votes")
        self._config = config
        step = config.step
        failures = _ServiceFailures(step, _own(step, config.environment))
        self._client = JsonClient(step.origin, Key(), options, failures=failures)

    async def vote(self, values: Mapping[str, object], vote: str) -> bool:
        """Vote; False where the reply says that the vote was not taken.

        Args:
            values: By place.
            vote: ``up`` or ``down``.

        Raises:
            TargetError: The service fails or refuses.
        """
        step, config = self._config.step, self._config
        given = {**values, **config.environment, "vote": config.words[vote]}
        body = await _request(step, self._client, given)
        if config.accepted is None:
            return True
        found = _found(config.accepted, body)
        # Nothing, null, false, 0 and an empty text all say no.
        return len(found) == 1 and bool(found[0])

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


class ServiceTarget:
    """Asks a described service; every query is a session of its own.

    Args:
        service: The description.
        options: Limits; the key's variable is not used.
        clock: Time and chance.
    """

    def __init__(
        self, service: ServiceConfig, options: TransportOptions, clock: Clock | None = None
    ) -> None:
        self._service = service
        self._clients = [
            JsonClient(
                step.origin,
                Key(),
                options,
                clock,
                failures=_ServiceFailures(step, _own(step, service.environment)),
                join=None,
            )
            for step in service.steps
        ]

    @property
    def name(self) -> str:
        """Address of the last request and a hash of the description."""
        shown = self._service.steps[-1].shown.partition("://")[2]
        return f"http/{shown}#{self._service.digest}"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the description says where to find."""
        reading = self._service.reading
        claimed = {Capability.TEXT}
        if reading.contexts is not None:
            claimed.add(Capability.CONTEXTS)
        if reading.logprobs is not None:
            claimed.add(Capability.TOP_LOGPROBS)
        return frozenset(claimed)

    async def ask(self, query: Query) -> Answer:
        """Send the requests of one session.

        ``tokens`` of the answer is None where the reply has no log-probabilities.

        Raises:
            TargetUnreachableError: No connection or no complete reply after all retries.
            TargetResponseError: The service refuses or fails, or its reply lacks what the
                description says is there.
            CapabilityError: The service refuses log-probabilities.
        """
        kept: dict[str, object] = {}
        try:
            body = await self._session(query, kept)
            return self._read(body, kept)
        except RagwitnessError as error:
            secrets = [value for value in kept.values() if isinstance(value, str)]
            raise type(error)(hide(error.message, secrets), error.hint) from None

    async def converse(self, values: Mapping[str, object]) -> SessionReply:
        """Send the requests of one session about a document.

        Args:
            values: ``document``, ``question`` and ``trace``.

        Raises:
            TargetError: The service refuses or fails, or its reply lacks what the description
                says is there.
        """
        prompt = f"{values['document']}\n\n{values['question']}"
        kept: dict[str, object] = {}
        body = await self._session(Query(prompt), kept, values)
        reading = self._service.reading
        names = {k: str(v) for k, v in kept.items()}
        texts = [
            None if path is None else next(iter(_texts(self._values(path, body, kept))), "")
            for path in (reading.question, reading.document)
        ]
        return SessionReply(self._read(body, kept).text, names, *texts)

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.close()

    async def _session(
        self, query: Query, kept: dict[str, object], turn: Mapping[str, object] | None = None
    ) -> object:
        asked: dict[str, object] = {
            **(turn or {}),
            "prompt": query.prompt,
            "max_tokens": query.max_tokens,
            "temperature": query.temperature,
            "top_logprobs": query.top_logprobs,
            "seed": query.seed,
        }
        body: object = None
        # Requests in order: each may use what an earlier reply brought.
        for step, client in zip(self._service.steps, self._clients, strict=True):
            values = {**asked, **self._service.environment, **kept}
            body = await _request(step, client, values)
            for name, where in step.keep.items():
                kept[name] = _one(where, body, step, f"keep.{name}")
        return body

    def _tokens_of_access(self, kept: Mapping[str, object]) -> list[str]:
        """Kept values that went into a header."""
        used = {name for step in self._service.steps for name in places(dict(step.headers))}
        return [str(value) for name, value in kept.items() if name in used]

    def _values(self, path: JSONPath, body: object, kept: Mapping[str, object]) -> list[object]:
        """All values at a path, without what opened the session: an answer goes into a journal.

        In a stream they come from one event after the other, and may spell a secret together.
        """
        secrets = (*self._tokens_of_access(kept), *self._clients[-1].failures.secrets)
        values: list[object] = hide_in(_found(path, body), secrets)  # type: ignore[assignment]  # as given
        return values

    def _read(self, body: object, kept: Mapping[str, object]) -> Answer:
        reading, step = self._service.reading, self._service.steps[-1]
        values = self._values(reading.text, body, kept)
        text: object = "".join(_texts(values))
        if not isinstance(body, Events):
            text = _only(reading.text, values, body, step, "response.text")
            # Some send a text in parts.
            text = (content_text(text) or text) if isinstance(text, list) else text
        elif not values:
            raise _misread(step, f"response.text ({reading.text})", "nothing in its stream")
        if not isinstance(text, str):
            raise _misread(step, "response.text", f"a {type(text).__name__}, not a text")
        contexts = None
        if reading.contexts is not None:
            contexts = tuple(_texts(self._values(reading.contexts, body, kept)))
        return Answer(text, tokens=self._tokens(body, kept), contexts=contexts)

    def _tokens(self, body: object, kept: Mapping[str, object]) -> tuple[TokenLogprob, ...] | None:
        reading, step = self._service.reading, self._service.steps[-1]
        if reading.logprobs is not None:
            found = self._values(reading.logprobs, body, kept)
            if len(found) == 1 and not (isinstance(found[0], dict) and "token" in found[0]):
                return read_logprobs(found[0])
            return read_logprobs(found) if found else None  # [*] finds the entries themselves
        if reading.tokens is None or reading.token_logprobs is None:
            return None
        tokens = self._values(reading.tokens, body, kept)
        values = _found(reading.token_logprobs, body)
        if len(tokens) != len(values):
            lengths = f"{len(tokens)} values, but token_logprobs {len(values)}"
            raise _misread(step, "response.tokens", lengths)
        return read_logprobs({"tokens": tokens, "token_logprobs": values}) if tokens else None


async def open_service(address: Address) -> ServiceTarget:
    """Open ``http/CONFIG.toml``.

    Raises:
        InputError: The description or an environment variable cannot be used.
    """
    address.refuse_key()
    return ServiceTarget(load_service(address.rest), address.transport)


async def _request(step: ServiceStep, client: JsonClient, values: Mapping[str, object]) -> object:
    """Fill in one request, send it, and return the reply."""
    path = fill_text(step.path, values, lambda value: escape(value, safe=""))
    headers = {name: _header(step, text, values) for name, text in step.headers.items()}
    return await client.send(step.method, path, fill(step.body, values), headers)


def _own(step: ServiceStep, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment's values that a step sends."""
    names = set(places([dict(step.headers), step.body]))
    return {name: value for name, value in environment.items() if name in names}


def _header(step: ServiceStep, text: str, values: Mapping[str, object]) -> str:
    filled = fill_text(text, values)
    if not (filled.isascii() and filled.isprintable()):
        raise _misread(step, "headers", "characters that no header can carry")
    return filled


def _found(path: JSONPath, body: object) -> list[object]:
    """All values at a path, of a stream in each of its events."""
    if isinstance(body, Events):
        return [value for event in body for value in _found(path, event)]
    if isinstance(body, dict | list):
        return path.findall(body)
    # The library would read a text as JSON once more.
    return [body] if str(path) == "$" else []


def _one(path: JSONPath, body: object, step: ServiceStep, field: str) -> object:
    """The one value at a path, in a stream the first one.

    Raises:
        TargetResponseError: There is none, or more than one.
    """
    found = _found(path, body)
    return _only(path, found[:1] if isinstance(body, Events) else found, body, step, field)


def _only(
    path: JSONPath, found: list[object], body: object, step: ServiceStep, field: str
) -> object:
    if len(found) == 1 and found[0] is not None:
        return found[0]
    what = f"{len(found)} values" if len(found) > 1 else "null" if found else "nothing"
    if isinstance(body, dict):
        what += f" in a reply with {', '.join(list(body)[:8]) or 'no field'}"
    raise _misread(step, f"{field} ({path})", what)


def _texts(found: list[object]) -> list[str]:
    """Texts among what a path found, those in lists included."""
    texts: list[str] = []
    for entry in found:
        inner = entry if isinstance(entry, list) else [entry]
        texts += [text for text in inner if isinstance(text, str)]
    return texts


def _misread(step: ServiceStep, field: str, what: str) -> TargetResponseError:
    return TargetResponseError(
        f"{step.shown} answered otherwise than described: {field} finds {what}.",
        f"Look at one reply of it and correct the path ({step.where}).",
    )
