"""Says in one line why a target gave no answer, and what to do; never shows the key."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx2

from ragwitness.core.errors import (
    CapabilityError,
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.quotes import quote

# Which key a target gets: OpenAI's goes to OpenAI alone, any other host's is named by the user.
#
# The audited system may be the adversary; a key that lies in the environment is not for it.

_DEFAULT_VARIABLE = "OPENAI_API_KEY"
_DEFAULT_HOST = "api.openai.com"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Some keys could be names as well (hf_..., gsk_...): long, of small letters and digits.
_KEY_LIKE = re.compile(r"(?=.*[a-z])(?=.*[0-9]).{20,}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, Sec. 5.6.2
_OWN_HEADER = re.compile(r"\bx-[a-z][\w-]*\b|\b[\w-]+-key\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Key:
    """The credentials for a target, and their source.

    Attributes:
        variable: The environment variable the key is read from; None where none is meant for
            this target.
        value: The key, sent as a bearer token; None where there is none to send.
        headers: Values of further headers, by name.
        variables: The environment variables they are read from.
    """

    variable: str | None = None
    value: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: tuple[str, ...] = ()

    def sent(self) -> dict[str, str]:
        """Return the headers of every request."""
        bearer = {"Authorization": f"Bearer {self.value}"} if self.value else {}
        return {**bearer, **self.headers}


def check_name(variable: str, option: str = "--key-env ") -> None:
    """Refuse what is not the name of an environment variable, without repeating it.

    Args:
        variable: The name as given.
        option: How the option is written before it.

    Raises:
        InputError: It is probably the key itself.
    """
    if not _NAME.fullmatch(variable) or _KEY_LIKE.fullmatch(variable):
        raise InputError(
            f"{option.split()[0]} takes the NAME of an environment variable, not the key itself.",
            f"Put the key into a variable, e.g. MY_KEY, and give {option}MY_KEY.",
        )


def check_header(pair: str) -> tuple[str, str]:
    """Read ``HEADER=VARIABLE`` into the two names.

    Raises:
        InputError: It is not of this form, or holds a value in place of its variable's name.
    """
    name, equals, variable = pair.partition("=")
    if not (equals and _HEADER.fullmatch(name)):
        raise InputError(
            "--header takes the name of a header and the NAME of an environment variable.",
            "Write --header api-key=MY_KEY, with the value in the variable MY_KEY.",
        )
    check_name(variable, f"--header {name}=")
    return name, variable


def find_key(url: str, variable: str | None, headers: Sequence[str] = ()) -> Key:
    """Return the key for the target at ``url``.

    Args:
        url: Its base URL.
        variable: The environment variable the user named; None takes ``OPENAI_API_KEY`` for
            ``https://api.openai.com`` and no key for any other host, the loopback included.
        headers: Further headers, as ``HEADER=VARIABLE``.

    Raises:
        InputError: A variable holds characters that no header can carry, or that of a header is
            not set.
    """
    named = dict(map(check_header, headers))
    further = {name: _value_of(named[name]) for name in named}
    for name in named:
        if not further[name]:
            raise InputError(
                f"The environment variable {named[name]} of the header {name} is not set.",
                "Set it; values of headers are read from the environment alone.",
            )
    # Parsed by what connects, so that both see the same host.
    parsed = httpx2.URL(url)
    if variable is None and (parsed.scheme, parsed.host) == ("https", _DEFAULT_HOST):
        variable = _DEFAULT_VARIABLE
    value = _value_of(variable) if variable else ""
    return Key(variable, value or None, further, tuple(named.values()))


def _value_of(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not (value.isascii() and (value + "x").isprintable()):
        raise InputError(
            f"The environment variable {variable} holds characters that no key has.",
            "Set it again, without line breaks or letters beyond ASCII.",
        )
    return value


# Why there is no answer, and what to do: one row for each cause, of which the first that fits is
# taken. Servers that behave so are in tests/unit/targets/test_failures.py.


@dataclass(frozen=True, slots=True)
class _Cause:
    """One row.

    Attributes:
        signs: Words by which it shows, as a regular expression.
        hint: The next step, or the name of one in :attr:`Failures.hints`.
        what: The behaviour of the service; empty where a connection failed.
        statuses: Of HTTP; none stands for any.
    """

    signs: str
    hint: str
    what: str = ""
    statuses: tuple[int, ...] = ()


def _cause(rows: Iterable[_Cause], words: str, status: int = 0) -> _Cause:
    """Return the first row that fits; the last one of a table fits all."""
    return next(
        row
        for row in rows
        if (not row.statuses or status in row.statuses)
        and re.search(row.signs, words, re.IGNORECASE)
    )


_NO_CONNECTION = (
    _Cause("through the proxy", "Check the proxy that this variable names; NO_PROXY lists hosts"
           " that are asked without one."),
    _Cause("stream broke off", "See the service's log: it ended its answer in the middle. A stream"
           " ends with a finish_reason or data: [DONE]."),
    _Cause("decompress|decod|brotli|zstd", "Let the service, or a proxy before it, send its answers"
           " uncompressed, or with the Content-Encoding that they have."),
    _Cause("stream had not ended", "Let the service end its streams (data: [DONE]); where it is"
           " slow, give it more time: --timeout SECONDS."),
    _Cause("no complete reply within", "Give it more time: --timeout SECONDS. The server's log"
           " says whether it works on the question at all."),
    _Cause("no connection within", "Check host and port: nothing there accepts or refuses a"
           " connection, as behind a firewall."),
    _Cause("name or service|nodename|name resolution|getaddrinfo", "Check the host's name: this"
           " machine does not know it."),
    _Cause("connection attempts failed|refused", "Check that the server runs and that host and"
           " port are right."),
    _Cause("self.signed|unable to get (local )?issuer", "Put the certificate of whoever signed it"
           " into a file, and the file's path into the environment variable SSL_CERT_FILE."),
    _Cause("mismatch", "Write the host as the certificate names it."),
    _Cause("expired|not yet valid", "Renew the certificate; or set this machine's clock right."),
    _Cause("wrong.version.number|record.layer|unknown.protocol", "Write http:// in place of"
           " https://: no TLS is spoken there."),
    _Cause("without sending|closed|reset|incomplete|broken", "See the server's log: it ended the"
           " connection itself."),
    _Cause("", "Ask the address by another client, such as curl, which may say more."),
)  # fmt: skip

_REFUSED = (
    _Cause("content_filter|content management policy|responsibleai", "The service's own rules"
           " decide this; such a question has no score.",
           "withheld the answer by a content filter"),
    _Cause("", "Ask shorter questions, or raise the server's limit.",
           "takes no request of this length", (413,)),
    _Cause(r"not a chat model|chat.?template|not support(ed)? (for )?chat|v1/completions", "chat",
           "has no chat for this model"),
    _Cause("api.version|query (string|parameter)", "Write it behind the URL, as in"
           " https://host/path?api-version=VERSION.", "asks for a query in the URL"),
    _Cause("HTTP request (was sent )?to (an )?HTTPS", "Write https:// in place of http://.",
           "speaks TLS alone"),
    _Cause(r"\bmodels?\b|\bdeployment", "model", "knows no such model", (404,)),
    _Cause("", "address", "knows no such address", (404, 405)),
    _Cause("", "Write name and password into the variable that names the proxy, such as"
           " HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT.",
           "is behind a proxy that wants a password", (407,)),
    _Cause("", "Its own words say why; docs/targets.md says what it is sent.",
           "refused the request"),
)  # fmt: skip


def _tries(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"


class Failures:
    """Words failures of one target; the hints are those of the OpenAI protocol.

    Args:
        url: Its base URL, for people.
        key: Its key, taken out of whatever the target says.
        secrets: Further values that are taken out.
    """

    hints: Mapping[str, str] = {
        "address": "Give the base URL of the OpenAI-compatible API, e.g. http://host:port/v1.",
        "model": "Name one of its models: after '#', or in the URL itself.",
        "chat": "Name a chat model after '#'; or let it go on with texts: ?endpoint=completions"
        " behind the URL.",
    }
    html_guess = "; is /v1 missing from the URL?"

    def __init__(self, url: str, key: Key, secrets: Sequence[str] = ()) -> None:
        self._url = url
        self._key = key
        self.secrets = tuple(filter(None, (key.value, *key.headers.values(), *secrets)))

    def quote(self, text: str, longest: int = 240) -> str:
        """Return a target's words on one line, shortened, without keys."""
        return quote(text, self.secrets, longest)

    def unreachable(self, reason: str, attempts: int) -> TargetUnreachableError:
        """No usable connection after all attempts."""
        return TargetUnreachableError(
            f"Cannot get an answer from {self._url} ({_tries(attempts)}): {self.quote(reason)}.",
            _cause(_NO_CONNECTION, reason).hint,
        )

    def overloaded(self, status: int, body: bytes, attempts: int) -> TargetResponseError:
        """A status that did not go away; the server is there, so other queries may pass."""
        words = self._message(body)
        problem = "limits the rate of requests" if status == 429 else "fails"
        return TargetResponseError(
            f"{self._url} {problem}: status {status} after {_tries(attempts)}{words}.",
            "Ask again later, or with fewer connections at a time.",
        )

    def asks_too_long(self, status: int, seconds: float) -> TargetResponseError:
        """A wait beyond the limit of time."""
        return TargetResponseError(
            f"{self._url} answered with status {status} and asks to wait {seconds:.0f} s, which is"
            " beyond the limit of time.",
            "Issue the same command again after that time; or let it wait: --timeout"
            f" {math.ceil(seconds)}.",
        )

    def redirected(self, status: int, address: str) -> TargetResponseError:
        """A redirect that is not followed: it may lead a key to another host."""
        return TargetResponseError(
            f"{self._url} answered with a redirect (status {status}) to {self.quote(address)}.",
            "Give that address, if it is the service's own.",
        )

    def status(self, status: int, content_type: str, body: bytes) -> RagwitnessError:
        """A status that asking again cannot change."""
        words = self._message(body)
        # First: some refuse log-probabilities with 403.
        if "logprob" in words.lower():
            return CapabilityError(
                f"{self._url} refuses log-probabilities{words}.",
                "Use an audit that needs text only.",
            )
        if status in (401, 403):
            return self._forbidden(status, words)
        if (status == 404 or not words) and self._looks_like_html(content_type, body):
            return self.html()
        # The whole body, because error codes are outside the message.
        cause = _cause(_REFUSED, body[:65536].decode("utf-8", "replace"), status)
        hint = self.hints.get(cause.hint, cause.hint)
        return TargetResponseError(f"{self._url} {cause.what} (status {status}){words}.", hint)

    def html(self) -> TargetResponseError:
        """A web page instead of JSON."""
        return TargetResponseError(
            f"{self._url} answered with HTML (a web page), not JSON{self.html_guess}",
            self.hints["address"],
        )

    def not_json(
        self, content_type: str, body: bytes, why: Exception, coding: str = ""
    ) -> TargetResponseError:
        """A body that cannot be read."""
        if self._looks_like_html(content_type, body):
            return self.html()
        # Quoted first, then cut: half a key would not be recognised.
        start = self.quote(body[:4096].decode("utf-8", "replace"))[:80]
        content, hint = f"something that is not JSON (it begins {start!r})", self.hints["address"]
        if coding:
            content = f"a body whose Content-Encoding ({coding.strip()}) cannot be read"
            hint = "Let the service send it uncompressed, or as gzip."
        elif not start:
            content = "an empty reply, not JSON"
        elif isinstance(why, UnicodeDecodeError):
            content = f"text that is not UTF-8 (it begins {start!r})"
            hint = "Let the service send UTF-8, or name the encoding: Content-Type with charset."
        return TargetResponseError(f"{self._url} answered with {content}.", hint)

    def too_large(self, limit: int) -> TargetResponseError:
        """A body beyond the limit."""
        return TargetResponseError(
            f"{self._url} answered with more than {limit // 2**20} MB; the rest was not read.",
            self.hints["address"],
        )

    def reported(self, body: dict[str, object]) -> TargetResponseError:
        """An error sent with status 200."""
        words = self._message(json.dumps(body, default=str).encode())
        return TargetResponseError(
            f"{self._url} answered with an error{words}.", "The target's own log may say more."
        )

    def message(self, body: bytes, longest: int = 240) -> str:
        """Return an error's message, cut to ``longest`` characters; empty without one."""
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
        if isinstance(error, dict):
            error = error.get("message") or error.get("detail") or ""
        return self.quote(error if isinstance(error, str) else json.dumps(error), longest)

    def _message(self, body: bytes) -> str:
        message = self.message(body).rstrip(".")
        return f": {message}" if message else ""

    def _forbidden(self, status: int, said: str) -> TargetResponseError:
        variable, variables = self._key.variable, self._key.variables
        # The hint depends on how the user gave credentials.
        if variables:
            return TargetResponseError(
                f"{self._url} refuses access (status {status}){said}.",
                "Check the headers and the environment variables they are read from:"
                f" {', '.join(variables)}.",
            )
        # A service that names the header it wants takes no bearer token.
        if header := _OWN_HEADER.search(said):
            return TargetResponseError(
                f"{self._url} asks for the header {header[0]} (status {status}){said}.",
                "Name the environment variable that holds its value:"
                f" --header {header[0]}=VARIABLE.",
            )
        if variable is None:
            return TargetResponseError(
                f"{self._url} asks for a key, and none was sent (status {status}){said}.",
                "Name the environment variable that holds its key: --key-env NAME"
                " (OPENAI_API_KEY is sent to https://api.openai.com alone unless named), or"
                " --header HEADER=NAME where a header of its own carries it.",
            )
        state = "was refused" if self._key.value else f"is missing: {variable} is not set"
        return TargetResponseError(
            f"{self._url} asks for a key, and it {state} (status {status}){said}.",
            f"Put the key into the environment variable {variable}, or name another: "
            "--key-env NAME; --header HEADER=NAME where a header of its own carries it.",
        )

    @staticmethod
    def _looks_like_html(content_type: str, body: bytes) -> bool:
        return "html" in content_type.lower() or body.lstrip()[:1] == b"<"
