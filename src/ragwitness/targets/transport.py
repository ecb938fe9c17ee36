"""JSON over HTTP: keys, limits of size, time and connections, and repeated attempts."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeAlias
from urllib.parse import parse_qsl

import httpx2

from ragwitness.core.errors import InputError, TargetResponseError
from ragwitness.core.quotes import hide_in
from ragwitness.core.types import ANSWER_SECONDS
from ragwitness.targets.connection import certificates, is_same_host, proxy_of
from ragwitness.targets.failures import Failures, Key, check_header, check_name
from ragwitness.targets.waits import Strings, requested_wait
from ragwitness.targets.wire import STREAM, STREAM_END, Events, error_status, join_chunks, read_body

# When and how long to wait before asking again: pure functions of attempt, reply and clock.

RETRIED = frozenset({408, 409, 425, 429})
"""Statuses below 500 that may go away by themselves."""

OVERLOAD = frozenset({429, 503})
"""Statuses that say: too many requests."""

_log = logging.getLogger(__name__)

_HOPS = 5  # redirects on one host

_CODINGS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by how their data begin

Session: TypeAlias = httpx2.Cookies | None
"""The cookies of the requests of one session; None begins one."""

Revise: TypeAlias = Callable[[str, object], object]
"""Given the words of a refusal and the payload, what to send instead; None knows nothing better."""


@dataclass(frozen=True, slots=True)
class Setback:
    """A request that brought no answer.

    Attributes:
        overload: The server is asked too much, or did not reply in time.
        refused: It was turned away before anything was worked on, so nothing is billed.
        again: It will be repeated.
        late: It was sent, and the limit of time passed; the server may still work on it.
    """

    overload: bool
    refused: bool
    again: bool
    late: bool = False


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a request is repeated.

    Attributes:
        retries: Repetitions after the first attempt.
        first: Upper limit of the first wait, in seconds; it doubles with every attempt.
        longest: Upper limit of any wait of our choosing, in seconds.
    """

    retries: int = 5
    first: float = 0.5
    longest: float = 30.0

    def wait(self, attempt: int, rng: random.Random) -> float:
        """Return the seconds to wait after a failed attempt (0 is the first): full jitter.

        Clients that failed together must not come back together.
        """
        return rng.uniform(0.0, min(self.longest, self.first * 2.0**attempt))

    def repeats(self, status: int) -> bool:
        """Whether a status may go away by itself."""
        return status in RETRIED or status >= 500


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How a target is reached.

    Attributes:
        connect_timeout: Seconds to open a connection.
        read_timeout: Seconds for one whole reply, and the longest wait a server may ask for.
        retry: How failed attempts are repeated.
        concurrency: Connections open at a time. How many queries are under way is decided by
            the rate limiter of a run.
        key_env: Name of the environment variable with the key. None sends ``OPENAI_API_KEY``
            to ``https://api.openai.com`` and no key to any other host: the audited system may
            be the adversary.
        headers: Further headers, each as ``HEADER=VARIABLE``; the values stay in the environment.
        largest_body: Bytes of a reply that are read at most.
        setback: Told of every request that brought no answer, before it is repeated; what it
            raises ends the attempts.

    Raises:
        InputError: A number is out of range, or ``key_env`` or a header does not name a variable.
    """

    connect_timeout: float = 10.0
    read_timeout: float = ANSWER_SECONDS
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    concurrency: int = 4
    key_env: str | None = None
    headers: tuple[str, ...] = ()
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
        for pair in self.headers:
            check_header(pair)


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
class Address:
    """A target's address and how to reach it: the argument of a scheme's factory.

    Attributes:
        scheme: Before the first ``/`` or ``:``, in small letters.
        rest: The text behind it.
        transport: Timeouts, retries, concurrency, name of the key's variable.
    """

    scheme: str
    rest: str
    transport: TransportOptions = field(default_factory=TransportOptions)

    def split(self, known: Iterable[str] = ()) -> tuple[str, dict[str, str]]:
        """Return the path before a ``?``, and the options after it.

        Args:
            known: Names of the options that exist.

        Raises:
            InputError: An option is unknown or given twice.
        """
        path, _, options = self.rest.partition("?")
        # A plus is a plus: defense=prompt+mirabel.
        pairs = parse_qsl(options.replace("+", "%2B"), keep_blank_values=True)
        values, names = dict(pairs), tuple(known)
        if len(values) < len(pairs):
            raise InputError(f"An option of the {self.scheme} target is given twice.")
        if unknown := sorted(set(values) - set(names)):
            raise InputError(
                f"Unknown {self.scheme} option {unknown[0]!r}.",
                f"Use: {', '.join(sorted(names))}." if names else "It takes none.",
            )
        return path, values

    def refuse_key(self) -> None:
        """Refuse ``--key-env`` and ``--header`` for a scheme that sends neither.

        Raises:
            InputError: The user named a variable.
        """
        if self.transport.key_env is not None or self.transport.headers:
            raise InputError(
                f"--key-env and --header do not apply to {self.scheme} targets.",
                "Leave it out; docs/targets.md says where each kind of target has its keys.",
            )


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    method: str
    path: str
    payload: object
    headers: Strings
    session: httpx2.Cookies


@dataclass(frozen=True, slots=True)
class _HttpReply:
    status: int
    headers: httpx2.Headers
    body: bytes
    content: object = None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


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
        join: Makes the events of a stream one reply; None returns them with their secrets, which
            may be spread over several.
    """

    def __init__(
        self,
        base_url: str,
        key: Key,
        options: TransportOptions,
        clock: Clock | None = None,
        failures: Failures | None = None,
        join: Callable[[Events], object] | None = join_chunks,
    ) -> None:
        self._base = base_url
        self._options = options
        self._clock = clock or Clock()
        self.failures = failures or Failures(base_url, key)
        self._join = join
        self._alone = asyncio.Lock()
        url = httpx2.URL(base_url)
        proxy = proxy_of(url)
        self._route = f" through the proxy of {proxy[0]}" if proxy else ""
        self._http = httpx2.AsyncClient(
            headers=key.sent(),
            # Each question has a separate session; the client itself takes no cookie.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx2.Timeout(
                options.read_timeout, connect=options.connect_timeout, pool=None
            ),
            limits=httpx2.Limits(max_connections=options.concurrency),
            verify=certificates(url),
            proxy=proxy and proxy[1],
            trust_env=False,
        )

    async def send(
        self,
        method: str,
        path: str,
        payload: object = None,
        headers: Strings | None = None,
        revise: Revise | None = None,
        session: Session = None,
    ) -> object:
        """Send one request and return the reply's JSON, without our secrets.

        Args:
            method: Of HTTP, in capitals.
            path: Added to the base URL.
            payload: Sent as JSON; None sends no body.
            headers: Further headers.
            revise: Given the words of a refusal and the payload, returns what to send instead;
                None where it knows nothing better.
            session: The cookies of earlier requests; None begins a session.

        Raises:
            TargetUnreachableError: No connection, or no complete reply in time, after all
                retries.
            TargetResponseError: A refusal, a server that fails after all retries, or a reply
                that is not JSON or too large.
            CapabilityError: The target refuses log-probabilities.
        """
        session = httpx2.Cookies() if session is None else session
        request = _HttpRequest(method, path, payload, headers or {}, session)
        while True:
            # 1. Attempts, until a reply stands.
            reply = await self._repeat(request)
            if reply.status < 300:
                break
            # 2. A refusal: the service's dialect is learned from it, or it is put into words.
            refusal = self.failures.message(reply.body, 4096)
            revised = revise(refusal, request.payload) if revise and reply.status < 500 else None
            if revised is None:
                self._report(Setback(reply.status in OVERLOAD, refused=True, again=False))
                raise self.failures.status(reply.status, reply.content_type, reply.body)
            request = replace(request, payload=revised)
        # 3. Some send their errors with status 200.
        content = reply.content
        if isinstance(content, ValueError | RecursionError):
            raise self._unreadable(reply, content)
        if isinstance(content, dict) and content.get("error"):
            raise self.failures.reported(content)
        # 4. A stream is joined first: a secret may be spread over its events.
        if isinstance(content, Events):
            if self._join is None:
                return content
            content = self._join(content)
        # A target may repeat our key; it must not reach stored answers and reports.
        try:
            return hide_in(content, self.failures.secrets)
        except RecursionError as error:
            raise self._unreadable(reply, error) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _repeat(self, request: _HttpRequest) -> _HttpReply:
        """Attempt until there is a reply that another attempt would not change."""
        policy = self._options.retry
        attempt = late = 0
        while True:
            # After one that came too late, one at a time: the server may still work on the first.
            async with self._alone if late else nullcontext():
                reply = await self._attempt(request)
            if isinstance(reply, _HttpReply):
                reply = _understood(reply, says_so=self._join is not None)
            if isinstance(reply, _HttpReply) and not policy.repeats(reply.status):
                return reply
            # A second one in vain, and a third would only burden the server.
            late += _late(reply)
            last = attempt == policy.retries or late == 2
            # The rate limiter gets every setback before the wait, and may end the attempts.
            wait = self._asked(reply)
            again = not last and (wait or 0.0) <= self._options.read_timeout
            self._report(_setback(reply, overload=wait is not None, again=again))
            if last:
                if isinstance(reply, _Silence):
                    raise self.failures.unreachable(reply.reason, attempt + 1)
                raise self.failures.overloaded(reply.status, reply.body, attempt + 1)
            if isinstance(reply, _HttpReply) and not again:
                raise self.failures.asks_too_long(reply.status, wait or 0.0)
            # "0" is no reason to come back together at once.
            seconds = max(wait or 0.0, policy.wait(attempt, self._clock.rng))
            reason = reply.reason if isinstance(reply, _Silence) else f"status {reply.status}"
            _log.info("%s: %s; attempt %d in %.1f s", self._base, reason, attempt + 2, seconds)
            await self._clock.sleep(seconds)
            attempt += 1

    def _report(self, setback: Setback) -> None:
        if self._options.setback is not None:
            self._options.setback(setback)

    def _asked(self, reply: _HttpReply | _Silence) -> float | None:
        """Seconds that the server asks to wait; None where it does not."""
        if isinstance(reply, _Silence):
            return None
        return requested_wait(reply.headers, reply.body, self._clock.now())

    def _unreadable(self, reply: _HttpReply, why: Exception) -> TargetResponseError:
        readable = f"identity, {self._http.headers['accept-encoding']}"
        coding = reply.headers.get("content-encoding", "").lower()
        strange = [name for name in coding.split(",") if name.strip() not in readable]
        return self.failures.not_json(reply.content_type, reply.body, why, ",".join(strange))

    async def _attempt(self, request: _HttpRequest) -> _HttpReply | _Silence:
        """One request: its reply, or why there is none."""
        connect, read = self._options.connect_timeout, self._options.read_timeout
        streams: list[str] = []
        try:
            # The client's own limit is per packet; this one also ends a reply that trickles.
            async with asyncio.timeout(connect + read):
                return await self._exchange(request, streams)
        except httpx2.ConnectTimeout:
            reason = f"no connection{self._route} within {connect:g} s"
            return _Silence(reason, late=True, arrived=False)
        except (TimeoutError, httpx2.TimeoutException):
            problem = (
                "no complete reply within" if not streams else "the stream had not ended after"
            )
            return _Silence(f"{problem} {read:g} s", late=True, arrived=True)
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            if "certificate" in reason.lower() or "ssl" in reason.lower():
                self._report(Setback(overload=False, refused=True, again=False))
                raise self.failures.unreachable(reason, 1) from None
            arrived = not isinstance(error, httpx2.ConnectError | httpx2.ProxyError)
            reason = reason.rstrip(".") + self._route * (not arrived)
            return _Silence(reason, late=False, arrived=arrived)
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise self.failures.unreachable(str(error), 1) from None

    async def _exchange(self, request: _HttpRequest, streams: list[str]) -> _HttpReply:
        """Send one request and read its reply, by redirects on its own host too.

        Args:
            request: The request.
            streams: Takes note of a stream that has begun.
        """
        # Build the request once; redirects on the same host repeat it.
        content, headers = None, httpx2.Headers(dict(request.headers))
        if request.payload is not None:
            # ASCII escapes carry any text, broken Unicode included, for the server to judge.
            content = json.dumps(request.payload).encode()
            headers.setdefault("Content-Type", "application/json")
        method, url = request.method, httpx2.URL(self._base + request.path)
        for _ in range(_HOPS):
            sending = self._http.build_request(method, url, content=content, headers=headers)
            request.session.set_cookie_header(sending)
            async with aclosing(await self._http.send(sending, stream=True)) as response:
                request.session.extract_cookies(response)
                following = response.next_request
                if following is None:
                    kind = response.headers.get("content-type", "")
                    streams += [kind] * (STREAM in kind)
                    body = await self._whole(response)
                    return _HttpReply(response.status_code, response.headers, body)
            # The key and the question go to no other host, and a question stays one.
            sent, url = url, following.url
            if following.method != method or not is_same_host(sent, url):
                break
        self._report(Setback(overload=False, refused=True, again=False))
        address = str(url.copy_with(query=None, fragment=None))
        raise self.failures.redirected(response.status_code, address)

    async def _whole(self, response: httpx2.Response) -> bytes:
        """Read a body, also one whose compression is not named."""
        body = await self._within(response)
        coding = next((name for begin, name in _CODINGS.items() if body.startswith(begin)), None)
        if coding is None:
            return body
        packed = httpx2.ByteStream(body)
        return await self._within(
            httpx2.Response(200, headers={"content-encoding": coding}, stream=packed)
        )

    async def _within(self, response: httpx2.Response) -> bytes:
        """Read a body within the limit of size, a stream up to its last event."""
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self._options.largest_body:
                raise self.failures.too_large(self._options.largest_body)
            if STREAM_END.search(body, max(0, len(body) - len(chunk) - 32)):
                break  # some keep the connection open behind it
        return bytes(body)


def _understood(reply: _HttpReply, *, says_so: bool) -> _HttpReply | _Silence:
    """Read the body of a success; an error in it counts as the status that it names.

    A stream that broke off is no reply.
    """
    if reply.status >= 300:
        return reply
    try:
        content = read_body(reply.content_type, reply.body)
        if isinstance(content, Events) and not content.is_whole(says_so=says_so):
            return _Silence("the stream broke off before its end", late=False, arrived=True)
    except (ValueError, RecursionError) as error:
        content = error
    status = error_status(content)
    if status is None:
        return replace(reply, content=content)
    body = json.dumps(content, default=str).encode()
    return replace(reply, status=status, body=body, content=content)


def _late(reply: _HttpReply | _Silence) -> bool:
    """Whether the server may still work on a request that was given up."""
    return isinstance(reply, _Silence) and reply.late and reply.arrived


def _setback(reply: _HttpReply | _Silence, *, overload: bool, again: bool) -> Setback:
    if isinstance(reply, _Silence):
        return Setback(reply.late, refused=not reply.arrived, again=again, late=_late(reply))
    # 503 turns a request away; after any other 5xx the work may have been billed.
    refused = reply.status < 500 or reply.status in OVERLOAD
    return Setback(overload or reply.status in OVERLOAD, refused, again)
