"""Who is let in, and what every reply says to the browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from ragwitness.web.app import create_app
from ragwitness.web.security import HEADERS, Access

OPEN, CLOSED = Access(), Access("right-token", "ragwitness-1")


def get(
    address: str, access: Access = OPEN, root: Path = Path("no-runs"), **headers: str
) -> httpx2.Response:
    """One request to the app, in this process."""

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=create_app([root], access))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(address, headers=headers)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 200),
        ("localhost:9000", 200),  # a tunnel may have another port
        ("LOCALHOST", 200),
        ("[::1]:8765", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8765", 421),
        ("localhost.evil.example", 421),
        ("[::1].evil.example", 421),
        ("192.168.0.2:8765", 421),
        ("", 421),
    ],
)
def test_on_the_loopback_the_host_must_be_the_loopback(host: str, status: int) -> None:
    assert get("/", Host=host).status_code == status


@pytest.mark.parametrize("address", ["/", "/nothing", "/style.css", "/run/no-such-run"])
@pytest.mark.parametrize(("access", "host"), [(OPEN, "localhost"), (OPEN, "evil"), (CLOSED, "x")])
def test_every_reply_has_the_headers(address: str, access: Access, host: str) -> None:
    reply = get(address, access, Host=host)
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS
    assert "script-src" not in HEADERS["Content-Security-Policy"]  # default-src 'none' holds
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert "server" not in reply.headers


def test_elsewhere_nothing_is_shown_without_the_token() -> None:
    for address in ("/", "/style.css", "/run/x", "/?token=wrong", "/?token=", "/?token=right-toke"):
        assert get(address, CLOSED).status_code == 401
    for cookie in ("ragwitness-1=wrong", "ragwitness=right-token", "x", 'ragwitness-1="'):
        assert get("/", CLOSED, Cookie=cookie).status_code == 401
    assert get("/", CLOSED, Cookie="a=1; ragwitness-1=right-token").status_code == 200


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    reply = get("/compare?first=a%26b&token=right-token", CLOSED, Host="audit.example")
    assert reply.status_code == 303
    assert reply.headers["location"] == "/compare?first=a%26b"
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("ragwitness-1=right-token;")
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "///evil.example"])
def test_the_way_back_never_leaves_the_site(path: str) -> None:
    reply = get(f"http://127.0.0.1{path}?token=right-token", CLOSED)
    assert reply.headers["location"].startswith("/")
    assert reply.headers["location"][1:2] not in {"/", "\\"}


def test_nothing_but_reading() -> None:
    async def post() -> int:
        transport = httpx2.ASGITransport(app=create_app([Path("no-runs")]))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post("/")).status_code

    assert asyncio.run(post()) == 405
