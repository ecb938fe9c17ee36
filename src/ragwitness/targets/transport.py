"""JSON over HTTP: keys, limits of size, time and connections, and repeated attempts."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import json
import math
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpx2

from ragwitness.errors import InputError
from ragwitness.kit.quotes import hide_in
from ragwitness.targets.failures import Failures, Key, check_name

# When and how long to wait before asking again: pure functions of attempt, reply and clock.

RETRIED = frozenset({408, 409, 425, 429})
"""Statuses below 500 that may go away by themselves."""

OVERLOAD = frozenset({429, 503})
"""Statuses that say: too many requests."""


@dataclass(frozen=True, slots=True)
class Setback:
    """A request that brought no answer.

    Attributes:
        overload: The server is asked too much, or did not reply in time.
        refused: It was turned away before anything was worked on, so nothing is billed.
        again: It will be repeated.
    """

    overload: bool
    refused: bool
    again: bool


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is repeated.

    Attributes:
        retries: Repetitions after the first attempt.
        first: Upper limit of the first wait, in seconds; it doubles with every attempt.
        longest: Upper limit of any wait of our choosing, in seconds.
        patience: Longest wait that the server may ask for, in seconds.
    """

    retries: int = 5
    first: float = 0.5
    longest: float = 30.0
    patience: float = 120.0

    def wait(self, attempt: int, rng: random.Random) -> float:
        """Return the seconds to wait after a failed attempt (0 is the first): full jitter.

        Clients that failed together must not come back together.
        """
        return rng.uniform(0.0, min(self.longest, self.first * 2.0**attempt))

    def repeats(self, status: int) -> bool:
        """Whether a status may go away by itself."""
        return status in RETRIED or status >= 500


def retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for.

    Args:
        header: Seconds or an HTTP date (RFC 9110, Sec. 10.2.3).
        now: Seconds since the epoch.

    Returns:
        None where there is no header or it cannot be read; never negative.
    """
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.replace(".", "", 1).isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How a target is reached.

    Attributes:
        connect_timeout: Seconds to open a connection.
        read_timeout: Seconds for one whole reply.
        retry: How failed attempts are repeated.
        concurrency: Connections open at a time. How many queries are under way is decided by
            the governor of a run.
        key_env: Name of the environment variable with the key. None sends ``OPENAI_API_KEY``
            to ``https://api.openai.com`` and no key to any other host: the audited system may
            be the adversary.
        verify: Whether TLS certificates are checked.
        largest_body: Bytes of a reply that are read at most.
        setback: Told of every request that brought no answer, before it is repeated; what it
            raises ends the attempts.

    Raises:
        InputError: A number is out of range, or ``key_env`` is not the name of a variable.
    """

    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    concurrency: int = 4
    key_env: str | None = None
    verify: bool = True
    largest_body: int = 20 * 2**20
    setback: Callable[[Setback], None] | None = None

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.retry.retries < 0:
            raise InputError(
                "The target needs at least 1 connection and no fewer than 0 retries.",
                "Correct the option.",
            )
        if not all(0 < limit < math.inf for limit in (self.connect_timeout, self.read_timeout)):
            raise InputError(
                "A timeout of the target is not a number of seconds above 0.",
                "Give seconds, e.g. --timeout 120.",
            )
        if self.key_env is not None:
            check_name(self.key_env)


@dataclass(frozen=True, slots=True)
class Clock:
    """Everything that is not decided by arguments, so that tests need not wait.

    Attributes:
        sleep: Waits some seconds.
        now: Seconds since the epoch.
        rng: Spreads waits.
    """

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time
    rng: random.Random = field(default_factory=random.Random)


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    method: str
    path: str
    payload: object
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _HttpReply:
    status: int
    content_type: str
    retry_after: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class _Silence:
    """No reply: why, whether time ran out, and whether the request may have arrived."""

    reason: str
    late: bool
    arrived: bool


class JsonClient:
    """Sends JSON to one API and returns JSON, or says why it cannot.

    Args:
        base_url: Without a trailing slash, e.g. ``"http://host:port/v1"``.
        key: Sent as a bearer token where it has a value.
        options: Limits.
        clock: Time and chance.
        failures: Words what goes wrong; None words it for the OpenAI protocol. Its secrets
            are taken out of every reply.
    """

    def __init__(
        self,
        base_url: str,
        key: Key,
        options: TransportOptions,
        clock: Clock | None = None,
        failures: Failures | None = None,
    ) -> None:
        self._base = base_url
        self._options = options
        self._clock = clock or Clock()
        self.failures = failures or Failures(base_url, key)
        # No proxy stands between this machine and itself.
        outside = not _is_loopback(httpx2.URL(base_url).host)
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key.value}"} if key.value else {},
            timeout=httpx2.Timeout(
                options.read_timeout, connect=options.connect_timeout, pool=None
            ),
            limits=httpx2.Limits(max_connections=options.concurrency),
            verify=_certificates(options.verify, outside),
            trust_env=outside,
        )

    async def get(self, path: str) -> object:
        """Fetch ``path``; see :meth:`send`."""
        return await self.send("GET", path)

    async def post(self, path: str, payload: Mapping[str, object]) -> object:
        """Send a payload; see :meth:`send`."""
        return await self.send("POST", path, payload)

    async def send(
        self,
        method: str,
        path: str,
        payload: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> object:
        """Send one request and return the reply's JSON, without our secrets.

        Args:
            method: Of HTTP, in capitals.
            path: Added to the base URL.
            payload: Sent as JSON; None sends no body.
            headers: Further headers.

        Raises:
            TargetUnreachableError: No connection, or no complete reply in time, after all
                retries.
            TargetResponseError: A refusal, a server that fails after all retries, or a reply
                that is not JSON or too large.
            CapabilityError: The target refuses log-probabilities.
        """
        # 1. Attempts, until a reply stands.
        reply = await self._repeat(_HttpRequest(method, path, payload, headers or {}))
        # 2. A refusal, in words.
        if reply.status >= 300:
            self._report(Setback(reply.status in OVERLOAD, refused=True, again=False))
            raise self.failures.status(reply.status, reply.content_type, reply.body)
        try:
            # A target that repeats our key must not carry it into journal and report.
            body = hide_in(json.loads(reply.body), self.failures.secrets)
        except (ValueError, RecursionError):
            raise self.failures.not_json(reply.content_type, reply.body) from None
        # 3. Some send their errors with status 200.
        if isinstance(body, dict) and body.get("error"):
            raise self.failures.reported(body)
        return body

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _repeat(self, request: _HttpRequest) -> _HttpReply:
        """Attempt until there is a reply that another attempt would not change."""
        policy = self._options.retry
        attempt = 0
        while True:
            reply = await self._attempt(request)
            if isinstance(reply, _HttpReply) and not policy.repeats(reply.status):
                return reply
            # The governor hears of every setback before the wait, and may end the attempts.
            asked = self._asked(reply)
            again = attempt < policy.retries and (asked or 0.0) <= policy.patience
            self._report(_setback(reply, overload=asked is not None, again=again))
            if attempt == policy.retries:
                if isinstance(reply, _Silence):
                    raise self.failures.unreachable(reply.reason, attempt + 1)
                raise self.failures.overloaded(reply.status, reply.body, attempt + 1)
            await self._clock.sleep(self._wait(attempt, reply))
            attempt += 1

    def _report(self, setback: Setback) -> None:
        if self._options.setback is not None:
            self._options.setback(setback)

    def _asked(self, reply: _HttpReply | _Silence) -> float | None:
        """Seconds that the server asks to wait; None where it does not."""
        if isinstance(reply, _Silence):
            return None
        return retry_after(reply.retry_after, self._clock.now())

    def _wait(self, attempt: int, reply: _HttpReply | _Silence) -> float:
        policy = self._options.retry
        wait, asked = policy.wait(attempt, self._clock.rng), self._asked(reply)
        if asked is None or isinstance(reply, _Silence):
            return wait
        if asked > policy.patience:
            raise self.failures.asks_too_long(reply.status, asked)
        return max(asked, wait)  # "0" is no reason to come back together at once

    async def _attempt(self, request: _HttpRequest) -> _HttpReply | _Silence:
        """One request: its reply, or why there is none."""
        seconds = self._options.connect_timeout + self._options.read_timeout
        try:
            # The client's own limit is per packet; this one also ends a reply that trickles.
            async with asyncio.timeout(seconds):
                return await self._exchange(request)
        except (TimeoutError, httpx2.TimeoutException) as error:
            connecting = isinstance(error, httpx2.ConnectTimeout)
            what = "no connection" if connecting else "no complete reply"
            limit = self._options.connect_timeout if connecting else self._options.read_timeout
            return _Silence(f"{what} within {limit:g} s", late=True, arrived=not connecting)
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            if "certificate" in reason.lower() or "ssl" in reason.lower():
                self._report(Setback(overload=False, refused=True, again=False))
                raise self.failures.certificate(reason) from None
            arrived = not isinstance(error, httpx2.ConnectError)
            return _Silence(reason.rstrip("."), late=False, arrived=arrived)
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise self.failures.unreachable(str(error), 1) from None

    async def _exchange(self, request: _HttpRequest) -> _HttpReply:
        content, headers = None, httpx2.Headers(dict(request.headers))
        if request.payload is not None:
            # ASCII escapes carry any text, broken Unicode included, for the server to judge.
            content = json.dumps(request.payload).encode()
            headers.setdefault("Content-Type", "application/json")
        method, url = request.method, self._base + request.path
        body = bytearray()
        async with self._http.stream(method, url, content=content, headers=headers) as response:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > self._options.largest_body:
                    raise self.failures.too_large(self._options.largest_body)
        got = response.headers
        return _HttpReply(
            response.status_code, got.get("content-type", ""), got.get("retry-after"), bytes(body)
        )


def _setback(reply: _HttpReply | _Silence, *, overload: bool, again: bool) -> Setback:
    if isinstance(reply, _Silence):
        return Setback(overload=reply.late, refused=not reply.arrived, again=again)
    # 503 turns a request away; after another 5xx nobody knows what was worked on and billed.
    refused = reply.status < 500 or reply.status in OVERLOAD
    return Setback(overload or reply.status in OVERLOAD, refused, again)


@functools.cache  # reading those of the system takes longer than many a request
def _certificates(verify: bool, trust_env: bool) -> ssl.SSLContext:
    return httpx2.create_ssl_context(verify, trust_env=trust_env)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
