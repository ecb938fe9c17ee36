"""The description of a JSON-over-HTTP service, checked before any request."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from jsonpath import JSONPath, JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragwitness.core.errors import InputError
from ragwitness.targets.connection import url_of
from ragwitness.targets.waits import Strings

# The TOML file that describes a service, as its tables.

_Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


_TableT = TypeVar("_TableT", bound=_Table)


class _RequestFields(_Table):
    url: _Text
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    headers: dict[str, str] = {}
    body: str | None = None


class RequestTable(_RequestFields):
    """``[request]`` or one ``[[step]]``."""

    keep: dict[str, _Text] = {}


class ResponseTable(_Table):
    """``[response]``: JSONPaths."""

    text: _Text
    contexts: _Text | None = None
    logprobs: _Text | None = None
    question: _Text | None = None
    document: _Text | None = None


class VoteTable(_RequestFields):
    """``[vote]``: the request that votes on an answer."""

    up: str | int | float | bool = "up"
    down: str | int | float | bool = "down"
    accepted: _Text | None = None


class ServiceTables(_Table):
    """The whole file."""

    step: tuple[RequestTable, ...] = ()
    request: RequestTable
    response: ResponseTable
    vote: VoteTable | None = None


class VoteFile(_Table):
    """A file with a ``[vote]`` alone, for a chat."""

    vote: VoteTable


def read_tables(path: str, form: type[_TableT]) -> _TableT:
    """Read the file.

    Raises:
        InputError: It is missing, no TOML, or a field is missing, unknown or of another type.
    """
    try:
        with Path(path).open("rb") as stream:
            return form.model_validate(tomllib.load(stream))
    except OSError as error:
        raise InputError(
            f"{path or 'The description'} cannot be read: {error.strerror}.",
            "Write http/FILE.toml; docs/targets.md shows one.",
        ) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(key) for key in first["loc"])
        raise InputError(f"{path}: {field}: {first['msg']}.", "See docs/targets.md.") from None
    except ValueError as error:
        raise InputError(f"{path} is not TOML: {error}.", "See docs/targets.md.") from None


# Places for values in parsed JSON, headers and URLs: ``{prompt}``, ``{env:NAME}``, ``{{word}}``.
#
# Values are put into the strings of a parsed structure, never into its source text. They are not
# parsed again, so a prompt full of quotes and braces stays a prompt.

Values: TypeAlias = Mapping[str, object]
"""Values of places, by their names."""

ENV = "env:"
"""Begins the name of a place that an environment variable fills."""

_PLACE = re.compile(r"\{\{(?P<literal>[\w:]+)\}\}|\{(?P<name>(?:env:)?[A-Za-z_]\w*)\}")


def places(value: object) -> Iterator[str]:
    """Yield the names of all places in the strings of a JSON value; keys have none."""
    if isinstance(value, str):
        yield from (match["name"] for match in _PLACE.finditer(value) if match["name"])
    elif isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from places(entry)


def fill(value: object, values: Values) -> object:
    """Return a JSON value with its places filled; a string that is one place takes the type.

    Raises:
        KeyError: A place has no value.
    """
    if isinstance(value, str):
        match = _PLACE.fullmatch(value)
        if match is not None and match["name"]:
            return values[match["name"]]
        return fill_text(value, values)
    if isinstance(value, list):
        return [fill(entry, values) for entry in value]
    if isinstance(value, dict):
        return {key: fill(entry, values) for key, entry in value.items()}
    return value


def fill_text(text: str, values: Values, escape: Callable[[str], str] = str) -> str:
    """Return a text with its places filled.

    Args:
        text: With places.
        values: By name of the place.
        escape: Makes a value fit for where it stands, e.g. in a URL.

    Raises:
        KeyError: A place has no value.
    """

    def put(match: re.Match[str]) -> str:
        if match["literal"]:
            return f"{{{match['literal']}}}"
        return escape(str(values[match["name"]]))

    return _PLACE.sub(put, text)


_TURN = ("document", "question", "trace")
_QUERY = ("prompt", "max_tokens", "temperature", "top_logprobs", "seed")
_SECRET_HEADER = re.compile(
    r"(?:.*[-_])?(?:api-?key|key|authorization|password|secret|cookie|token)", re.IGNORECASE
)
_SECRET_FIELD = re.compile(
    r"api[-_]?key|authorization|passw(?:or)?d|secret|(?:access|auth)[-_]?token", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ServiceStep:
    """One request of a session.

    Attributes:
        where: Its table in the file.
        method: Of HTTP.
        origin: Scheme, host and port; never filled in, so that keys go nowhere else.
        path: With places.
        headers: With places.
        body: Parsed JSON with places; None sends none.
        keep: By name: where in the reply a value for later steps is.
    """

    where: str
    method: str
    origin: str
    path: str
    headers: Strings
    body: object
    keep: Mapping[str, JSONPath]

    @property
    def shown(self) -> str:
        """The address for people: without values, and without a query."""
        return self.origin + self.path.partition("?")[0]


@dataclass(frozen=True, slots=True)
class BallotConfig:
    """How a vote is given.

    Attributes:
        step: The request, which holds ``{vote}``.
        words: The values for ``up`` and ``down``.
        accepted: Where the reply says whether it was taken; None believes its status.
        environment: Values of the variables it names, by place.
    """

    step: ServiceStep
    words: Values
    accepted: JSONPath | None
    environment: Strings


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """A service as described.

    Attributes:
        digest: Of the description; keys are not part of it.
        steps: In order; the last one's reply is the answer.
        reading: Where in the last reply the text is, and what else ``[response]`` names.
        environment: Values of the variables it names, by place.
        ballot: How votes are given; None where there is no ``[vote]``, or prompts alone are sent.
    """

    digest: str
    steps: tuple[ServiceStep, ...]
    reading: Mapping[str, JSONPath]
    environment: Strings
    ballot: BallotConfig | None = None


def load_votes(path: str) -> BallotConfig:
    """Read and check a file with a ``[vote]`` alone, which votes on the answers of a chat.

    Raises:
        InputError: It cannot be used.
    """
    return _ballot(read_tables(path, VoteFile).vote, path, {"id"})


def _ballot(table: VoteTable, path: str, names: set[str]) -> BallotConfig:
    """Check a ``[vote]``, whose places the turn and these kept values fill."""
    step = _step(table, f"{path}: vote")
    _check_places(step, {*_TURN, "vote", *names})
    if "vote" not in [*places(step.path), *places(step.body)]:
        raise InputError(f"{path}: vote holds no {{vote}}.", "Write {vote} where it belongs.")
    words = {"up": table.up, "down": table.down}
    accepted = _path(table.accepted, f"{path}: vote.accepted") if table.accepted else None
    return BallotConfig(step, words, accepted, _variables([step]))


def load_service(path: str, *, turns: bool = False) -> ServiceConfig:
    """Read and check a description.

    Args:
        path: Of the file.
        turns: Whether documents and questions are sent to it, not prompts alone.

    Raises:
        InputError: The file, a field, a path or an environment variable cannot be used.
    """
    config = read_tables(path, ServiceTables)
    requests = (*config.step, config.request)
    steps: list[ServiceStep] = []
    fillable = {*_QUERY, *_TURN} if turns else set(_QUERY)
    for at, request in enumerate(requests):
        where = "request" if at == len(config.step) else f"step {at + 1}"
        step = _step(request, f"{path}: {where}")
        # A place is filled by the query, the environment, or an earlier step.
        _check_places(step, fillable)
        fillable |= set(step.keep)
        steps.append(step)
    used = [name for step in steps for name in places([step.path, step.body])]
    apart = turns and {"document", "question"} <= set(used)
    if "prompt" not in used and not apart:
        texts = "{document} and {question}" if turns else "{prompt}"
        hint = "Write {prompt} where the text to be answered belongs."
        raise InputError(f"{path}: no request holds {texts}.", hint)
    if config.request.keep and config.vote is None:
        raise InputError(f"{path}: request keeps a value, but nothing follows it.")
    # The description identifies the target; keys are in the environment, not in the description.
    content = config.model_dump(mode="json")
    # Two fields of 0.3.0 are part of the identity under which its runs resume.
    content["response"] |= {"tokens": None, "token_logprobs": None}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    reading = {
        name: _path(text, f"{path}: response.{name}") for name, text in config.response if text
    }
    ballot = None
    if turns and config.vote is not None:
        ballot = _ballot(config.vote, path, {"id", *fillable.difference(_QUERY)})
    return ServiceConfig(digest, tuple(steps), reading, _variables(steps), ballot)


def _step(request: _RequestFields, where: str) -> ServiceStep:
    # 1. URL and body are parsed before places are filled.
    origin, path = _address(request.url, where)
    body: object = None
    if request.body is not None:
        try:
            body = json.loads(request.body)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{where}: body is not JSON: {error}.", 'Write e.g. {"question": "{prompt}"}.'
            ) from None
    keep_paths = request.keep if isinstance(request, RequestTable) else {}
    for name in keep_paths:
        if name in _QUERY or not name.isidentifier():
            raise InputError(f"{where}: a kept value cannot be called {name!r}.", "Rename it.")
    for name, value in (*request.headers.items(), *_fields(body)):
        # 3. A key in the file would be copied with it.
        pattern = _SECRET_HEADER if name in request.headers else _SECRET_FIELD
        if pattern.fullmatch(name) and value and not any(places(value)):
            raise InputError(
                f"{where}: {name} holds its value openly.",
                f"Put it into an environment variable and write {{{ENV}NAME}} in its place.",
            )
    method = request.method or ("GET" if body is None else "POST")
    keep = {name: _path(text, f"{where}: keep.{name}") for name, text in keep_paths.items()}
    return ServiceStep(where, method, origin, path, request.headers, body, keep)


def _address(url: str, where: str) -> tuple[str, str]:
    """Split a URL into what is fixed and what may hold places.

    Raises:
        InputError: It is not an http(s) URL, its host is not fixed, or it holds a password.
    """
    match = re.match("https?://[^/?#]+", url, re.IGNORECASE)
    origin = match[0] if match else ""
    # The URL is not quoted: it may hold a secret.
    if url_of(origin) is None or re.search("[{@]", origin) or "#" in url:
        raise InputError(
            f"{where}: the url cannot be used.",
            "Write http(s)://host:port/path with a fixed host, no user name and no fragment.",
        )
    return origin, url[len(origin) :]


def _fields(value: object) -> list[tuple[str, str]]:
    """All fields with a text, at any depth."""
    if isinstance(value, list):
        return [pair for entry in value for pair in _fields(entry)]
    if not isinstance(value, dict):
        return []
    fields = [(key, entry) for key, entry in value.items() if isinstance(entry, str)]
    return fields + [pair for entry in value.values() for pair in _fields(entry)]


def _check_places(step: ServiceStep, known: set[str]) -> None:
    headers = list(places(dict(step.headers)))
    names = [*headers, *places(step.path), *places(step.body)]
    unknown = [name for name in names if name not in known and not name.startswith(ENV)]
    if unknown:
        raise InputError(
            f"{step.where}: nothing fills {{{unknown[0]}}}.",
            f"Known here: {', '.join(sorted(known))}, {ENV}NAME; {{{{word}}}} is a plain {{word}}.",
        )
    if texts := {"prompt", "document", "question"} & set(headers):
        named = sorted(texts)[0]
        raise InputError(f"{step.where}: a header cannot carry {{{named}}}.", "Use the body.")
    if any(name.startswith(ENV) for name in places(step.path)):
        raise InputError(
            f"{step.where}: the url names an environment variable.",
            "Keys in URLs end up in logs; put it into a header or the body.",
        )


def _path(text: str, what: str) -> JSONPath:
    try:
        # Strict: RFC 9535 and nothing else.
        path: Any = JSONPathEnvironment(strict=True).compile(text)
    except JSONPathError as error:
        # Its own __str__ fails on an empty path.
        reason = error.args[0] if error.args else type(error).__name__
        raise InputError(f"{what} is not a JSONPath: {reason}.", "Write e.g. $.answer.") from None
    compiled: JSONPath = path
    return compiled


def _variables(steps: list[ServiceStep]) -> dict[str, str]:
    """Read the environment variables that the steps name.

    Raises:
        InputError: One is not set, or no header can carry it.
    """
    variables: dict[str, str] = {}
    for step in steps:
        for name in places([dict(step.headers), step.body]):
            if not name.startswith(ENV):
                continue
            variable = name.removeprefix(ENV)
            value = os.environ.get(variable, "").strip()
            if not value:
                raise InputError(
                    f"{step.where}: the environment variable {variable} is not set.",
                    "Set it; keys are read from the environment alone.",
                )
            if not (value.isascii() and value.isprintable()):
                raise InputError(
                    f"The environment variable {variable} holds characters that no key has.",
                    "Set it again, without line breaks or letters beyond ASCII.",
                )
            variables[name] = value
    return variables
