"""Numbers for Prometheus, and the rate of each key: what an operator watches and sets.

Numbers tell how often the service was asked and how long it took, never what, and name neither
tenant nor account.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError, import_extra

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Where the processes of one server put their numbers together, as prometheus-client reads it."""

_SHORTEST = 16


class Metrics:
    """Counts requests, refusals and seconds; several processes are counted as one.

    Args:
        token: Whoever sends it as a bearer may read the numbers.

    Raises:
        MissingExtraError: prometheus-client is not installed.
    """

    def __init__(self, token: str) -> None:
        prometheus = import_extra("prometheus_client", "The service's metrics", "service")
        self._token = token.encode()
        self._registry = registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "ragwitness_requests", "Requests answered.", ["path", "status"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "ragwitness_request_seconds", "From a request to its answer.", ["path"],
            registry=registry,
        )  # fmt: skip
        self._refused = prometheus.Counter(
            "ragwitness_refused", "Queries refused, by the meter.", ["by"], registry=registry
        )

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def refused(self, by: str) -> None:
        """Count a refusal."""
        self._refused.labels(by).inc()

    def admits(self, header: str | None) -> bool:
        """Whether an ``Authorization`` header holds the token."""
        scheme, _, given = (header or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._token)
        return same and scheme.lower() == "bearer"

    def text(self) -> tuple[bytes, str]:
        """Return the numbers of all processes, and their media type."""
        import os

        import prometheus_client as prometheus
        from prometheus_client import multiprocess

        registry: Any = self._registry
        if os.environ.get(FOLDER_VARIABLE):
            registry = prometheus.CollectorRegistry()
            collect: Any = multiprocess.MultiProcessCollector
            collect(registry)
        return prometheus.generate_latest(registry), str(prometheus.CONTENT_TYPE_LATEST)


def read_token(path: Path) -> str:
    """Return the token of a file, without the space around it.

    Raises:
        InputError: The file cannot be read, or its token is short.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        raise InputError(f"The token of {path} cannot be read.", "Check the path.") from None
    if len(token) < _SHORTEST:
        raise InputError(
            f"The token of {path} has under {_SHORTEST} characters.",
            f"Make one with: openssl rand -hex 32 > {path}",
        )
    return token


class KeyRates:
    """Requests per second of each account, by a bucket that refills (in this process alone).

    Args:
        rate: Requests per second; a bucket holds two seconds of them, and at least one.
        clock: Clock of seconds that never go back.

    Raises:
        InputError: The rate is not above 0.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not (math.isfinite(rate) and rate > 0):
            raise InputError(f"The rate of a key is above 0 requests per second, not {rate:g}.")
        self._rate, self._clock = rate, clock
        self._most = max(1.0, 2 * rate)
        self._left: dict[int, tuple[float, float]] = {}  # by account; only real ones get here

    def wait(self, account: int) -> float:
        """Take one request of an account; return 0, or the seconds until there is one."""
        now = self._clock()
        left, then = self._left.get(account, (self._most, now))
        left = min(self._most, left + (now - then) * self._rate)
        admitted = left >= 1
        self._left[account] = (left - admitted, now)
        return 0.0 if admitted else (1 - left) / self._rate
