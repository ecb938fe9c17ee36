"""The example: retrieval over HTTP, behind the library's middleware."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ragwitness.rag.protocol import ApiError, parse_request, read_json
from ragwitness.service.middleware import KeyedAccounts, current_principal
from ragwitness.service.principals import read_meters
from ragwitness.service.retrieval import Retriever
from ragwitness.service.store import Store

LONGEST_QUERY = 8_000
"""Characters of a query."""

LARGEST_BODY = 256 * 1024
"""Bytes of a request."""

_SLOWEST_BODY = 30  # seconds
_OPEN = ("/live", "/health")


class RetrievalBody(BaseModel):
    """``POST /v1/retrieval``: a text, or its vector where the client embeds by itself.

    There is no field for a tenant or an account. An unknown field is refused, because its sender
    expects an effect.
    """

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    query: Annotated[str, Field(max_length=LONGEST_QUERY)] | None = None
    vector: Annotated[list[float], Field(min_length=1, max_length=1 << 16)] | None = None

    @model_validator(mode="after")
    def _query_or_vector(self) -> RetrievalBody:
        if (self.query is None) == (self.vector is None):
            raise ValueError("give either query or vector")
        if self.query is not None and not self.query.strip():
            raise ValueError("the query is blank")
        return self


@dataclass(frozen=True, slots=True)
class _Service:
    """Handlers over one database."""

    store: Store
    retriever: Retriever

    async def live(self, _request: Request) -> Response:
        # This process answers, whatever its database does: a supervisor need not restart it.
        return JSONResponse({"status": "ok"})

    async def health(self, _request: Request) -> Response:
        # No key is needed: a load balancer asks every few seconds.
        await asyncio.to_thread(self.store.check)
        return JSONResponse({"status": "ok"})

    async def usage(self, request: Request) -> Response:
        principal, policy = current_principal(), current_principal().policy
        _check_parameters(request)
        claim = policy.claim
        promise: dict[str, object] = {
            "epsilon": claim.epsilon,
            "covers": "ids",
            "not_covered": "texts, and answers that are written from them",
            "texts": policy.texts_shown,
        }
        if policy.placement is not None:
            return JSONResponse({"object": "usage", "promise": promise})
        # A meter is read for free. An account sees its own queries and its payer's alone: the
        # spending of the whole index depends on others, and only an operator sees it.
        window, seconds_left = self.retriever.window(principal)
        used = await asyncio.to_thread(read_meters, self.store, principal, window)
        # Each meter with its limit and the rest.
        limits = {"account": claim.queries, "payer": claim.payer_queries or 0}
        meters = {
            name: {"limit": limit, "used": used[name], "left": max(0, limit - used[name])}
            for name, limit in limits.items()
        }
        body = {
            "object": "usage",
            "window": window,
            "seconds_left": seconds_left,
            "meters": meters,
            "promise": promise | {"delta": claim.delta},
        }
        return JSONResponse(body)

    async def retrieval(self, request: Request) -> Response:
        principal = current_principal()
        _check_parameters(request)
        body = parse_request(RetrievalBody, await _read_json(request))
        content = body.query if body.query is not None else body.vector or ""
        result = await self.retriever.retrieve(principal, content)
        # Slots are public numbers, drawn by lot; no score leaves, noisy or not.
        reply: dict[str, object] = {"object": "retrieval", "ids": list(result.slots)}
        if principal.policy.claim.texts:
            reply["documents"] = list(result.documents)
        return JSONResponse(reply)


def create_app(store: Store, *, retriever: Retriever | None = None) -> Any:
    """Return the ASGI application.

    Args:
        store: The database; its tenants are made by ``ragwitness service tenants``.
        retriever: Used instead of one over ``store``.
    """
    service = _Service(store, retriever or Retriever(store))
    routes = [
        Route("/live", service.live, methods=["GET"]),
        Route("/health", service.health, methods=["GET"]),
        Route("/v1/usage", service.usage, methods=["GET"]),
        Route("/v1/retrieval", service.retrieval, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(KeyedAccounts, store=store, open_paths=_OPEN)],
        exception_handlers={HTTPException: _on_http_error},
    )


def _check_parameters(request: Request) -> None:
    if request.query_params:
        raise ApiError("This service takes no query parameters.")


async def _on_http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse(ApiError("There is nothing here.").body, status)


async def _read_json(request: Request) -> object:
    try:
        async with asyncio.timeout(_SLOWEST_BODY):
            return await read_json(request, LARGEST_BODY)
    except TimeoutError:
        raise ApiError("The request took too long to arrive.", status=408) from None
