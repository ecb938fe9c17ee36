"""JSON over HTTP: keys, limits of size, time and concurrency, and repeated attempts."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx2

from ragwitness.errors import InputError
from ragwitness.targets.failures import Failures
from ragwitness.targets.keys import Key, check_name
from ragwitness.targets.retry import RetryPolicy, retry_after

__all__ = ["Clock", "JsonClient", "TransportOptions"]


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How a target is reached.

    Attributes:
        connect_timeout: Seconds to open a connection.
        read_timeout: Seconds for one whole reply.
        retry: How failed attempts are repeated.
        concurrency: Requests under way at a time.
        key_env: Name of the environment variable with the key. None sends ``OPENAI_API_KEY``
            to ``https://api.openai.com`` and no key to any other host: the audited system may
            be the adversary.
        verify: Whether TLS certificates are checked.
        largest_body: Bytes of a reply that are read at most.

    Raises:
        InputError: A number is out of range, or ``key_env`` is no name of a variable.
    """

    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    concurrency: int = 4
    key_env: str | None = None
    verify: bool = True
    largest_body: int = 20 * 2**20

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
class _Reply:
    status: int
    content_type: str
    retry_after: str | None
    body: bytes


class JsonClient:
    """Sends JSON to one API and returns JSON, or says why it cannot.

    Args:
        base_url: Without a trailing slash, e.g. ``"http://host:port/v1"``.
        key: Sent as a bearer token where it has a value.
        options: Limits.
        clock: Time and chance.
        transport: Replaces the network in tests.
    """

    def __init__(
        self,
        base_url: str,
        key: Key,
        options: TransportOptions,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._base = base_url
        self._options = options
        self._clock = clock or Clock()
        self._free = asyncio.Semaphore(options.concurrency)
        self.failures = Failures(base_url, key)
        self.attempts = 0
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key.value}"} if key.value else {},
            timeout=httpx2.Timeout(options.read_timeout, connect=options.connect_timeout),
            limits=httpx2.Limits(max_connections=options.concurrency),
            verify=options.verify,
            transport=transport,
            # No proxy stands between this machine and itself.
            trust_env=not _is_loopback(httpx2.URL(base_url).host),
        )

    async def get(self, path: str) -> object:
        """Fetch ``path``; see :meth:`post`."""
        return await self._send("GET", path, None)

    async def post(self, path: str, payload: dict[str, object]) -> object:
        """Send a payload and return the reply's JSON.

        Raises:
            TargetUnreachableError: No connection, or no complete reply in time, after all
                retries.
            TargetResponseError: A refusal, a server that fails after all retries, or a reply
                that is not JSON or too large.
            CapabilityError: The target refuses log-probabilities.
        """
        return await self._send("POST", path, payload)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, payload: dict[str, object] | None) -> object:
        # Waits happen inside the limit too: a server in trouble sees fewer requests.
        async with self._free:
            reply = await self._repeat(method, path, payload)
        if reply.status >= 300:
            raise self.failures.status(reply.status, reply.content_type, reply.body)
        try:
            body: object = json.loads(reply.body)
        except (ValueError, RecursionError):
            raise self.failures.not_json(reply.content_type, reply.body) from None
        if isinstance(body, dict) and body.get("error"):
            raise self.failures.reported(body)
        return body

    async def _repeat(self, method: str, path: str, payload: dict[str, object] | None) -> _Reply:
        """Attempt until there is a reply that another attempt would not change."""
        policy = self._options.retry
        attempt = 0
        while True:
            reply, reason = await self._attempt(method, path, payload)
            if reply is not None and not policy.repeats(reply.status):
                return reply
            if attempt == policy.retries:
                if reply is None:
                    raise self.failures.unreachable(reason, attempt + 1)
                raise self.failures.overloaded(reply.status, reply.body, attempt + 1)
            await self._clock.sleep(self._wait(attempt, reply))
            attempt += 1

    def _wait(self, attempt: int, reply: _Reply | None) -> float:
        policy = self._options.retry
        wait = policy.wait(attempt, self._clock.rng)
        if reply is None:
            return wait
        asked = retry_after(reply.retry_after, self._clock.now())
        if asked is None:
            return wait
        if asked > policy.patience:
            raise self.failures.asks_too_long(reply.status, asked)
        return max(asked, wait)  # "0" is no reason to come back together at once

    async def _attempt(
        self, method: str, path: str, payload: dict[str, object] | None
    ) -> tuple[_Reply | None, str]:
        """One request: its reply, or the reason why there is none."""
        self.attempts += 1
        seconds = self._options.connect_timeout + self._options.read_timeout
        try:
            # The client's own limit is per packet; this one also ends a reply that trickles.
            async with asyncio.timeout(seconds):
                return await self._exchange(method, path, payload), ""
        except (TimeoutError, httpx2.TimeoutException) as error:
            connecting = isinstance(error, httpx2.ConnectTimeout)
            what = "no connection" if connecting else "no complete reply"
            limit = self._options.connect_timeout if connecting else self._options.read_timeout
            return None, f"{what} within {limit:g} s"
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            if "certificate" in reason.lower() or "ssl" in reason.lower():
                raise self.failures.certificate(reason) from None
            return None, reason.rstrip(".")
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise self.failures.unreachable(str(error), 1) from None

    async def _exchange(self, method: str, path: str, payload: dict[str, object] | None) -> _Reply:
        # ASCII escapes carry any text, broken Unicode included, for the server to judge.
        content = None if payload is None else json.dumps(payload).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        url = self._base + path
        body = bytearray()
        async with self._http.stream(method, url, content=content, headers=headers) as response:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > self._options.largest_body:
                    raise self.failures.too_large(self._options.largest_body)
        got = response.headers
        return _Reply(
            response.status_code,
            got.get("content-type", ""),
            got.get("retry-after"),
            bytes(body),
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
