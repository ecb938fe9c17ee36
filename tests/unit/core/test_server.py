"""A running server against clients that send too much, too slowly, or never finish."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from ragwitness.core import server as kit
from ragwitness.core.server import LARGEST_HEAD, listen, serve_app

_READ: list[int] = []


async def _app(scope, receive, send) -> None:
    """Reads the body of a POST; answers a GET at once, whatever body follows it."""
    length = 0
    while scope["method"] == "POST":
        event = await receive()
        if event["type"] == "http.disconnect":
            _READ.append(-1)
            return
        length += len(event.get("body", b""))
        if not event.get("more_body"):
            break
    _READ.append(length)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server with short patience, in a thread."""
    monkeypatch.setattr(kit, "HEAD_PATIENCE", 0.6)
    monkeypatch.setattr(kit, "REQUEST_PATIENCE", 1.2)
    _READ.clear()
    listener, started = listen("127.0.0.1", 0), threading.Event()
    number = listener.getsockname()[1]
    servers: list[uvicorn.Server] = []
    kept = kit._Server.startup

    async def remember(self, sockets=None) -> None:
        servers.append(self)
        await kept(self, sockets)

    monkeypatch.setattr(kit._Server, "startup", remember)
    thread = threading.Thread(target=serve_app, args=(_app, listener, started.set), daemon=True)
    thread.start()
    assert started.wait(60)
    yield number
    servers[0].should_exit = True
    thread.join(60)
    assert not thread.is_alive()


def _open(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _rest(client: socket.socket) -> bytes:
    """All that still comes, until the server ends the connection."""
    found = b""
    try:
        while part := client.recv(65536):
            found += part
    except ConnectionError:
        pass
    return found


def _trickle(client: socket.socket, forever: bytes, most: float = 60.0) -> bool:
    """Send a byte again and again; whether the server cut it off."""
    deadline = time.monotonic() + most
    client.settimeout(0.1)
    while time.monotonic() < deadline:
        try:
            client.sendall(forever)
            if client.recv(65536) == b"":
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


def test_an_ordinary_request_is_answered_and_the_connection_kept(port: int) -> None:
    with _open(port) as client:
        for at in range(3):
            head = f"POST /{at} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n".encode()
            for part in (head[:20], head[20:], b"he", b"llo"):
                client.sendall(part)
                time.sleep(0.01)
            answer = b""
            while not answer.endswith(b"\r\n\r\nok"):  # head and body may come apart
                part = client.recv(65536)
                assert part, answer
                answer += part
            assert b"200 OK" in answer
    assert _READ == [5, 5, 5]


@pytest.mark.parametrize("begins", [b"GET /", b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: "])
def test_a_head_of_200_mb_is_cut_off_early(port: int, begins: bytes) -> None:
    """A request line or a header without end, sent as fast as the server takes it."""
    sent = 0
    with _open(port) as client:
        client.sendall(begins)
        try:
            while sent < 200_000_000:
                sent += client.send(b"a" * 65536)
        except ConnectionError:
            pass
    # What the sockets' buffers hold may be sent in vain, and no more.
    assert sent < 30_000_000
    assert _READ == []


def test_a_head_behind_another_request_may_be_no_longer(port: int) -> None:
    first, long = b"GET / HTTP/1.1\r\nHost: a\r\n", b"A: " + b"b" * 120_000
    with _open(port) as client:
        client.sendall(first + b"\r\n" + first + long + b"\r\n\r\n")
        said = _rest(client)
    assert (said.count(b" 200 "), said.count(b" 400 ")) == (1, 1)


@pytest.mark.parametrize("size", [LARGEST_HEAD + 1000, 60_000, 120_000])
def test_a_head_that_comes_whole_may_be_no_longer(port: int, size: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"b" * size + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_many_small_headers_count_together(port: int) -> None:
    with _open(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * (LARGEST_HEAD // 6 + 1))
        assert b" 400 " in _rest(client)
    assert _READ == []


@pytest.mark.parametrize("begins", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX: "])
def test_a_head_that_never_ends_is_cut_off(port: int, begins: bytes) -> None:
    """Byte by byte, so that no pause is ever long; and a connection on which nothing comes."""
    with _open(port) as client:
        client.sendall(begins)
        if begins:
            assert _trickle(client, b"a")
        assert _rest(client) == b""
    assert _READ == []


def test_a_second_head_on_a_kept_connection_has_no_more_time(port: int) -> None:
    with _open(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200 OK" in client.recv(65536)
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert _trickle(client, b"a")
    assert _READ == [0]


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_body_that_never_ends_is_cut_off_read_or_not(port: int, method: str) -> None:
    with _open(port) as client:
        client.sendall(f"{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n".encode())
        assert _trickle(client, b"a")
    deadline = time.monotonic() + 60
    while not _READ and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [-1 if method == "POST" else 0] == _READ


def test_clients_that_wait_do_not_keep_others_waiting(port: int) -> None:
    """A hundred unfinished requests, and one that is finished."""
    idle = [_open(port) for _ in range(100)]
    for one in idle:
        one.sendall(b"GET / HT")
    with _open(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert _rest(client).endswith(b"ok")
    for one in idle:
        assert _rest(one) == b""
        one.close()


def test_another_parser_that_is_installed_changes_nothing() -> None:
    config = []

    class StopError(Exception):
        pass

    def keep(self, given, _announce) -> None:
        config.append(given)
        raise StopError

    before, kit._Server.__init__ = kit._Server.__init__, keep
    try:
        with pytest.raises(StopError):
            serve_app(_app, listen("127.0.0.1", 0), lambda: None)
    finally:
        kit._Server.__init__ = before
    config[0].load()
    assert config[0].http_protocol_class is kit._Protocol
    assert asyncio.iscoroutinefunction(_app)
