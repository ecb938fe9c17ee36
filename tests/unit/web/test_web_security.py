"""Who is let in, and what every reply says to the browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from ragwitness.web.app import create_app
from ragwitness.web.security import HEADERS, LIVE_POLICY, Access


def closed(*, loopback: bool = False) -> Access:
    return Access("right-token", "ragwitness-1", loopback=loopback)


def get(
    address: str, access: Access | None = None, root: Path = Path("no-runs"), **headers: str
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


def test_another_host_name_is_refused_whatever_the_cookie_and_the_token_say() -> None:
    access = closed(loopback=True)
    cookie = f"ragwitness-1={access.session}"
    reply = get("/?token=right-token", access, Host="evil.example", Cookie=cookie)
    assert reply.status_code == 421
    assert "another host name" in reply.text
    assert "set-cookie" not in reply.headers
    # The token was not used up by it.
    assert get("/?token=right-token", access, Host="localhost").status_code == 200


@pytest.mark.parametrize("address", ["/", "/nothing", "/style.css", "/live.js", "/run/no-such-run"])
@pytest.mark.parametrize(("shut", "host"), [(False, "localhost"), (False, "evil"), (True, "x")])
def test_every_reply_has_the_headers(address: str, shut: bool, host: str) -> None:
    reply = get(address, closed() if shut else None, Host=host)
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS
    assert "script-src" not in HEADERS["Content-Security-Policy"]  # default-src 'none' holds
    assert "unsafe" not in HEADERS["Content-Security-Policy"] + LIVE_POLICY
    assert "server" not in reply.headers


def test_nothing_is_shown_without_the_token() -> None:
    access = closed()
    for address in ("/", "/style.css", "/run/x", "/?token=wrong", "/?token=", "/?token=right-toke"):
        assert get(address, access).status_code == 401
    # The token is no cookie: only what it was exchanged for is.
    for cookie in ("ragwitness-1=right-token", "ragwitness-1=wrong", "x", 'ragwitness-1="'):
        assert get("/", access, Cookie=cookie).status_code == 401
    assert get("/", access, Cookie=f"ragwitness={access.session}").status_code == 401
    assert get("/", access, Cookie=f"a=1; ragwitness-1={access.session}").status_code == 200


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    access = closed()
    reply = get("/run/x?first=a%26b&token=right-token", access, Host="audit.example")
    assert reply.status_code == 200
    assert 'content="0; url=/run/x?first=a%26b"' in reply.text
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"ragwitness-1={access.session};")
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))
    assert "right-token" not in cookie + reply.text


def test_a_token_works_once() -> None:
    access = closed()
    assert get("/?token=right-token", access).status_code == 200
    # From another machine, or another browser: it has no cookie.
    again = get("/?token=right-token", access)
    assert (again.status_code, "set-cookie" in again.headers) == (401, False)
    assert "works once" in again.text
    # The browser that used it may open the printed address again.
    cookie = f"ragwitness-1={access.session}"
    back = get("/?token=right-token", access, Cookie=cookie)
    assert (back.status_code, back.headers["location"]) == (303, "/")


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "///evil.example"])
def test_the_way_back_never_leaves_the_site(path: str) -> None:
    reply = get(f"http://127.0.0.1{path}?token=right-token", closed())
    place = reply.text.split("url=")[1]
    assert place.startswith("/")
    assert place[1:2] not in {"/", "\\"}


def test_markup_in_the_way_back_stays_text() -> None:
    reply = get('/"><b>x?token=right-token', closed())
    assert "<b>" not in reply.text


def test_nothing_but_reading_where_nothing_can_be_begun() -> None:
    async def post(address: str) -> int:
        transport = httpx2.ASGITransport(app=create_app([Path("no-runs")]))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post(address, headers={"Origin": "http://127.0.0.1"})).status_code

    assert asyncio.run(post("/")) == 405
    assert asyncio.run(post("/begin/audit")) == 404
