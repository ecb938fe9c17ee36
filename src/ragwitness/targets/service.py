"""Any service that speaks JSON over HTTP, as its owner describes it: ``http/CONFIG.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote as escape

import httpx2
from jsonpath import JSONPath

from ragwitness.core.errors import RagwitnessError, TargetResponseError
from ragwitness.core.quotes import hide, hide_in
from ragwitness.core.types import Answer, Capability, Query
from ragwitness.targets.failures import Failures, Key
from ragwitness.targets.service_config import (
    ENV,
    BallotConfig,
    ServiceConfig,
    ServiceStep,
    Values,
    fill,
    fill_text,
    load_service,
    places,
)
from ragwitness.targets.transport import Address, Clock, JsonClient, Session, TransportOptions
from ragwitness.targets.waits import Strings
from ragwitness.targets.wire import (
    Events,
    Tokens,
    content_text,
    join_texts,
    read_logprobs,
    show_channels,
)


class _ServiceFailures(Failures):
    """Words failures for somebody who wrote a description."""

    html_guess = "."

    def __init__(self, step: ServiceStep, secrets: Strings) -> None:
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
    """The outcome of a session.

    Attributes:
        text: The answer.
        kept: Values that the steps kept, by name.
        question: As the service repeats it; None where the description says nowhere.
        document: Likewise.
    """

    text: str
    kept: Strings
    question: str | None = None
    document: str | None = None


class VoteBox:
    """Gives votes by a description.

    Args:
        config: Of the ``[vote]``.
        options: Limits.
    """

    def __init__(self, config: BallotConfig, options: TransportOptions) -> None:
        self._config = config
        step = config.step
        failures = _ServiceFailures(step, _variables_of(step, config.environment))
        self._client = JsonClient(step.origin, Key(), options, failures=failures)

    async def vote(self, values: Values, vote: str, cookies: Session = None) -> bool:
        """Vote; False where the reply says that the vote was not taken.

        Args:
            values: By place.
            vote: ``up`` or ``down``.
            cookies: Of the session in which the answer was given.

        Raises:
            TargetError: The service fails or refuses.
        """
        step, config = self._config.step, self._config
        fields = {**values, **config.environment, "vote": config.words[vote]}
        body = await _request(step, self._client, fields, cookies)
        if config.accepted is None:
            return True
        accepted = _values_at(config.accepted, body)
        # Nothing, null, false, 0 and an empty text all say no.
        return len(accepted) == 1 and bool(accepted[0])

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


class ServiceTarget:
    """Asks a described service; every query is a new session.

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
                failures=_ServiceFailures(step, _variables_of(step, service.environment)),
                join=None,
            )
            for step in service.steps
        ]

    @property
    def name(self) -> str:
        """Address of the last request and a hash of the description."""
        address = self._service.steps[-1].shown.partition("://")[2]
        return f"http/{address}#{self._service.digest}"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those for which the description has a path."""
        reading = self._service.reading
        claimed = {Capability.TEXT}
        if "contexts" in reading:
            claimed.add(Capability.CONTEXTS)
        if "logprobs" in reading:
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
        session: dict[str, object] = {}
        try:
            body = await self._session(query, session)
            return self._read(body, session)
        except RagwitnessError as error:
            secrets = [value for value in session.values() if isinstance(value, str)]
            raise type(error)(hide(error.message, secrets), error.hint) from None

    async def converse(self, values: Values, cookies: Session = None) -> SessionReply:
        """Send the requests of one session about a document.

        Args:
            values: ``document``, ``question`` and ``trace``.
            cookies: Of the session; None begins one.

        Raises:
            TargetError: The service refuses or fails, or its reply lacks what the description
                says is there.
        """
        prompt = f"{values['document']}\n\n{values['question']}"
        session: dict[str, object] = {}
        body = await self._session(Query(prompt), session, values, cookies)
        reading = self._service.reading
        names = {k: str(v) for k, v in session.items()}
        # The service may repeat question and document, which shows whether it rewrote them.
        repeated = {
            name: next(iter(_texts(self._values(reading[name], body, session))), "")
            for name in ("question", "document")
            if name in reading
        }
        return SessionReply(self._read(body, session).text, names, **repeated)

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.close()

    async def _session(
        self,
        query: Query,
        kept: dict[str, object],
        turn: Values | None = None,
        cookies: Session = None,
    ) -> object:
        fields: dict[str, object] = {
            **(turn or {}),
            "prompt": query.prompt,
            "max_tokens": query.max_tokens,
            "temperature": query.temperature,
            "top_logprobs": query.top_logprobs,
            "seed": query.seed,
        }
        body: object = None
        cookies = httpx2.Cookies() if cookies is None else cookies
        # Requests in order: each may use what an earlier reply brought.
        for step, client in zip(self._service.steps, self._clients, strict=True):
            values = {**fields, **self._service.environment, **kept}
            body = await _request(step, client, values, cookies)
            for name, where in step.keep.items():
                kept[name] = _value_at(where, body, step, f"keep.{name}")
        return body

    def _secrets(self, kept: Values) -> tuple[str, ...]:
        """Return the keys of a session, and the kept values that went into its headers."""
        used = {name for step in self._service.steps for name in places(dict(step.headers))}
        tokens = (str(value) for name, value in kept.items() if name in used)
        return (*tokens, *self._clients[-1].failures.secrets)

    def _values(self, path: JSONPath, body: object, kept: Values) -> list[object]:
        """All values at a path, without the secrets that opened the session: answers are stored.

        In a stream they come from one event after the other, and may spell a secret together.
        """
        return hide_in(_values_at(path, body), self._secrets(kept))  # type: ignore[return-value]  # as given

    def _read(self, body: object, kept: Values) -> Answer:
        reading, step = self._service.reading, self._service.steps[-1]
        values = _values_at(reading["text"], body)
        text: object
        if not isinstance(body, Events):
            text = _only(reading["text"], values, body, step, "response.text")
            # Some send a text in parts.
            text = (content_text(text) or text) if isinstance(text, list) else text
        elif values:
            pieces = (value for value in values if isinstance(value, str | list))
            text = join_texts([content_text(piece) or "" for piece in pieces])
        else:
            raise _misread(step, f"response.text ({reading['text']})", "nothing in its stream")
        if not isinstance(text, str):
            raise _misread(step, "response.text", f"a {type(text).__name__}, not a text")
        # Passages and log-probabilities, where the description has a path to them.
        contexts = None
        if "contexts" in reading:
            contexts = tuple(_texts(self._values(reading["contexts"], body, kept)))
            if isinstance(body, Events):  # some repeat them with every event
                contexts = tuple(dict.fromkeys(contexts))
        text = hide(text, self._secrets(kept))
        answer = Answer(text, tokens=self._tokens(body, kept), contexts=contexts)
        return show_channels(answer, hide_in([body], self._secrets(kept)))

    def _tokens(self, body: object, kept: Values) -> Tokens | None:
        path = self._service.reading.get("logprobs")
        if path is None:
            return None
        entries = self._values(path, body, kept)
        if len(entries) == 1 and not (isinstance(entries[0], dict) and "token" in entries[0]):
            return read_logprobs(entries[0])
        return read_logprobs(entries) if entries else None  # [*] finds the entries themselves


async def open_service(address: Address) -> ServiceTarget:
    """Open ``http/CONFIG.toml``.

    Raises:
        InputError: The description or an environment variable cannot be used.
    """
    address.refuse_key()
    return ServiceTarget(load_service(address.rest), address.transport)


async def _request(
    step: ServiceStep,
    client: JsonClient,
    values: Values,
    cookies: Session,
) -> object:
    """Fill in one request, send it, and return the reply."""
    # Values are escaped for the URL, checked for headers, and typed in the body.
    path = fill_text(step.path, values, lambda value: escape(value, safe=""))
    headers = {name: _header(step, text, values) for name, text in step.headers.items()}
    return await client.send(step.method, path, fill(step.body, values), headers, session=cookies)


def _variables_of(step: ServiceStep, environment: Strings) -> dict[str, str]:
    """The environment's values that a step sends."""
    names = set(places([dict(step.headers), step.body]))
    return {name: value for name, value in environment.items() if name in names}


def _header(step: ServiceStep, text: str, values: Values) -> str:
    filled = fill_text(text, values)
    if not (filled.isascii() and filled.isprintable()):
        raise _misread(step, "headers", "characters that no header can carry")
    return filled


def _values_at(path: JSONPath, body: object) -> list[object]:
    """All values at a path, of a stream in each of its events."""
    if isinstance(body, Events):
        return [value for event in body for value in _values_at(path, event)]
    if isinstance(body, dict | list):
        return path.findall(body)
    # The library would read a text as JSON once more.
    return [body] if str(path) == "$" else []


def _value_at(path: JSONPath, body: object, step: ServiceStep, field: str) -> object:
    """The one value at a path, in a stream the first one.

    Raises:
        TargetResponseError: There is none, or more than one.
    """
    values = _values_at(path, body)
    return _only(path, values[:1] if isinstance(body, Events) else values, body, step, field)


def _only(
    path: JSONPath, values: list[object], body: object, step: ServiceStep, field: str
) -> object:
    if len(values) == 1 and values[0] is not None:
        return values[0]
    result = f"{len(values)} values" if len(values) > 1 else "null" if values else "nothing"
    if isinstance(body, dict):
        result += f" in a reply with {', '.join(list(body)[:8]) or 'no field'}"
    raise _misread(step, f"{field} ({path})", result)


def _texts(values: list[object]) -> list[str]:
    """Texts among what a path found, those in lists included."""
    lists = (entry if isinstance(entry, list) else [entry] for entry in values)
    return [text for entries in lists for text in entries if isinstance(text, str)]


def _misread(step: ServiceStep, field: str, what: str) -> TargetResponseError:
    return TargetResponseError(
        f"{step.shown} answered otherwise than described: {field} finds {what}.",
        f"Look at one reply of it and correct the path ({step.where}).",
    )
