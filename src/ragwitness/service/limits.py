"""What replies say of limits: ``RateLimit`` fields, and one refusal for every spent meter.

The fields follow draft-ietf-httpapi-ratelimit-headers-10 and name the account's and the payer's
meters alone. The index's is not shown: how it moves tells how alike the queries of others are.
"""

from __future__ import annotations

from ragwitness.rag.requests import ApiError
from ragwitness.service.meters import Reading
from ragwitness.service.policy import Claim

__all__ = ["SpentRefusal", "limit_headers", "unauthorized", "unavailable"]

_MOST = 999_999_999_999_999
"""Largest integer of a structured field (RFC 9651, 3.3.1)."""


def limit_headers(claim: Claim, reading: Reading, seconds_left: int) -> dict[str, str]:
    """Return ``RateLimit-Policy`` and ``RateLimit``.

    Args:
        claim: Of the tenant.
        reading: The account's meters.
        seconds_left: Until the next window.
    """
    quotas = {"account": claim.queries, "payer": claim.payer_queries or 0}
    used = {"account": reading.account, "payer": reading.payer}
    policy = [f'"{name}";q={min(q, _MOST)};w={claim.window}' for name, q in quotas.items()]
    left = [
        f'"{name}";r={min(max(0, q - used[name]), _MOST)};t={seconds_left}'
        for name, q in quotas.items()
    ]
    return {"RateLimit-Policy": ", ".join(policy), "RateLimit": ", ".join(left)}


class SpentRefusal(ApiError):  # noqa: N818  # a kind of reply, not a fault
    """The refusal of a query that a meter has no room for, whichever it is.

    Args:
        headers: Of :func:`limit_headers`.
        seconds_left: Until the next window.
    """

    def __init__(self, headers: dict[str, str], seconds_left: int) -> None:
        message = "No query is left in this window."
        super().__init__(message, status=429, kind="rate_limit_error", code="budget_spent")
        self.headers = {**headers, "Retry-After": str(seconds_left)}


def unauthorized() -> ApiError:
    """Return the refusal of a missing, malformed, unknown, wrong or revoked key."""
    return ApiError("Incorrect API key provided.", status=401, code="invalid_api_key")


def unavailable() -> ApiError:
    """Return what is said without a database; what was reserved stays spent."""
    message = "The service cannot reach its database."
    return ApiError(message, status=503, kind="server_error", code="unavailable")
