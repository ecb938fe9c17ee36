"""Sessions, waits, proxies and certificates."""

import asyncio
import gzip
import json
from email.utils import formatdate
from pathlib import Path

import httpx2
import pytest

from ragwitness.core.errors import InputError, TargetResponseError, TargetUnreachableError
from ragwitness.core.types import Query
from ragwitness.targets import connection
from ragwitness.targets.connection import certificates, proxy_of
from ragwitness.targets.conversation import Turn, open_conversation
from ragwitness.targets.openai import OpenAITarget
from ragwitness.targets.service import ServiceTarget
from ragwitness.targets.service_config import load_service
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from ragwitness.targets.waits import requested_wait
from tests.support.loopback import chat_body, loopback, reply
from tests.unit.targets.test_failures import ask

pytestmark = pytest.mark.face("connections")

NOW = 1_800_000_000.0
SESSION = """
[[step]]
url = "URL/login"
body = '{"user": "a"}'
[request]
url = "URL/ask"
body = '{"question": "{question}", "document": "{document}{prompt}"}'
[response]
text = "$.answer"
[vote]
url = "URL/vote"
body = '{"value": "{vote}"}'
"""


def cookies(heads: list[str]) -> list[str]:
    """The Cookie header of each request; empty where there is none."""
    rows = [dict(line.split(": ", 1) for line in head.splitlines()[1:] if line) for head in heads]
    return [next((v for k, v in row.items() if k.lower() == "cookie"), "") for row in rows]


def test_no_question_finds_the_cookie_of_another() -> None:
    async def two(url: str) -> None:
        async with await OpenAITarget.connect(f"{url}#m") as target:
            for _ in range(2):
                await target.ask(Query("q", 5))

    with loopback(reply(chat_body(), Set_Cookie="sid=1; Path=/")) as server:
        asyncio.run(two(server.url))
    assert cookies(server.headers) == ["", ""]


def test_a_question_sent_again_stays_in_its_session() -> None:
    busy = reply({}, 503, Set_Cookie="sid=1; Path=/")
    with loopback(busy, reply(chat_body())) as server:
        ask(server.url, retry=RetryPolicy(retries=1, first=0.01))
    assert cookies(server.headers) == ["", "sid=1"]


def test_the_steps_of_a_session_and_its_vote_share_their_cookies(tmp_path: Path) -> None:
    login = reply({}, Set_Cookie="sid=7; Path=/; HttpOnly")
    answer = reply({"answer": "x"}, Set_Cookie="turn=1; Path=/")
    file = tmp_path / "service.toml"

    async def main() -> None:
        service = await open_conversation(f"http/{file}", TransportOptions())
        turn = Turn("t", "d", "q")
        assert await service.vote(turn, await service.send(turn), "up")
        await service.close()
        target = ServiceTarget(load_service(str(file), turns=True), TransportOptions())
        await target.converse({"document": "d", "question": "q", "trace": "t"})
        await target.close()

    with loopback(login, answer, reply({}), login, answer) as server:
        file.write_text(SESSION.replace("URL", server.url))
        asyncio.run(main())
    assert cookies(server.headers) == ["", "sid=7", "sid=7; turn=1", "", "sid=7"]


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, {}, None),
        ({"retry-after": "7"}, {}, 7.0),
        ({"retry-after": formatdate(NOW + 7, usegmt=True)}, {}, 7.0),
        ({"retry-after-ms": "700", "retry-after": "1"}, {}, 0.7),
        ({"x-ms-retry-after-ms": "700"}, {}, 0.7),
        ({"x-ratelimit-reset-requests": "1m7.5s"}, {}, 67.5),
        ({"x-ratelimit-reset-tokens": "90ms"}, {}, 0.09),
        ({"x-ratelimit-reset": str(int(NOW) + 7)}, {}, 7.0),
        ({"x-ratelimit-reset": str((int(NOW) + 7) * 1000)}, {}, 7.0),
        ({"anthropic-ratelimit-requests-reset": "2027-01-15T08:00:07Z"}, {}, 7.0),
        ({"x-ratelimit-reset-a": "9", "x-ratelimit-remaining-a": "3"}, {}, None),
        ({"x-ratelimit-reset-a": "9", "x-ratelimit-remaining-a": "0"}, {}, 9.0),
        ({"x-ratelimit-reset-tokens": "1h"}, {"error": "Please try again in 7s."}, 7.0),
        ({}, {"error": {"details": [RETRY_INFO]}}, 7.0),
        ({}, {"details": [RETRY_INFO | {"retryDelay": {"seconds": 7}}]}, 7.0),
        ({}, {"message": "Limit: 3 / min. Please try again in 20s."}, 20.0),
        ({}, {"message": "Please retry in 7.25s."}, 7.25),
        ({}, {"message": "try again in 1m30s"}, 90.0),
        ({}, {"message": "Retry after 2 minutes and 5 seconds"}, 125.0),
        ({}, {"message": "Wait 250 milliseconds"}, 0.25),
        ({}, {"retry_after": 7.5}, 7.5),
        ({"x-retry-after": "7"}, {}, 7.0),
        ({"x-ratelimit-retry-after": "in 7 seconds"}, {}, 7.0),
        ({"retry-after": '"7"'}, {}, 7.0),
        ({"ratelimit": "limit=9, remaining=0, reset=7"}, {}, 7.0),
        ({"ratelimit": '"default";r=3;t=7'}, {}, None),
        ({}, {"message": "Please try again in a minute"}, 60.0),
        ({}, {"message": "Back off for 7 more seconds"}, 7.0),
        ({}, {"wait_seconds": 7}, 7.0),
        ({}, {"cooldown": "7s"}, 7.0),
        ({}, {"message": "Capacity will be available in 2 minutes"}, 120.0),
        ({}, {"message": "We are available 24 hours a day"}, None),
        ({}, {"retry_after_ms": 750}, 0.75),
        ({}, {"error": "Model is loading", "estimated_time": 20.0}, 20.0),
        ({}, {"message": "Try again later; 5 seats are free"}, None),
        ({}, {"message": "You made 30 requests in 60 seconds"}, None),
    ],
)
def test_a_service_may_say_in_many_forms_how_long_to_wait(
    headers: dict[str, str], body: object, seconds: float | None
) -> None:
    asked = requested_wait(headers, json.dumps(body).encode(), NOW)
    assert asked == (None if seconds is None else pytest.approx(seconds))


def _environment(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [
        ("", False),
        ("rag.example", True),
        (".example", True),
        ("*.example", True),
        ("a.test, rag.example", True),
        ("a.test rag.example", True),
        ("rag.example:8080", False),
        ("ag.example", False),
        ("*", True),
        ("fe80::/10,[::1]:8080", False),
    ],
)
def test_no_proxy_names_hosts(monkeypatch: pytest.MonkeyPatch, no_proxy: str, direct: bool) -> None:
    _environment(monkeypatch, HTTPS_PROXY="127.0.0.1:3128", NO_PROXY=no_proxy)
    assert (proxy_of(httpx2.URL("https://rag.example/v1")) is None) is direct


def test_no_proxy_names_networks_and_this_machine_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _environment(monkeypatch, ALL_PROXY="http://proxy:1", no_proxy="10.0.0.0/8,fd00::/8")
    for host, direct in (("10.1.2.3", True), ("11.1.2.3", False), ("[fd00::7]", True)):
        assert (proxy_of(httpx2.URL(f"http://{host}/v1")) is None) is direct
    assert proxy_of(httpx2.URL("http://127.0.0.1:8000/v1")) is None
    assert proxy_of(httpx2.URL("https://localhost/v1")) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks://127.0.0.1:9/"),
        ("HTTPS_PROXY", "ftp://u:hidden-word@h"),
        ("https_proxy", "http://[::1"),
        ("HTTPS_PROXY", "http://:80"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    _environment(monkeypatch, **{name: value})
    with pytest.raises(InputError) as caught:
        ask("https://rag.example/v1")
    assert name.upper() in caught.value.message
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["", "http://", "socks5://", "socks5h://"])
def test_a_proxy_that_does_not_answer_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    _environment(monkeypatch, https_proxy=f"{scheme}127.0.0.1:9")
    with pytest.raises(TargetUnreachableError) as caught:
        ask("https://rag.example/v1")
    assert "through the proxy of HTTPS_PROXY" in caught.value.message
    assert "NO_PROXY" in caught.value.hint


def test_a_proxy_is_asked_for_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(reply(gzip.compress(json.dumps(chat_body("by proxy")).encode()))) as server:
        _environment(monkeypatch, http_proxy=server.url.removesuffix("/v1"))
        assert ask("http://rag.example/v1").text == "by proxy"
    assert server.headers[0].startswith("POST http://rag.example/v1/chat/completions")
    with loopback(reply({}, 407)) as server:
        monkeypatch.setenv("http_proxy", server.url)
        with pytest.raises(TargetResponseError, match="wants a password"):
            ask("http://rag.example/v1")


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"])
def test_certificates_that_are_gone_are_named_by_their_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for other in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, str(tmp_path / "gone.pem"))
    connection._context.cache_clear()
    for broken in (False, True):
        if broken:
            (tmp_path / "gone.pem").write_text("no certificate")
        with pytest.raises(InputError, match=f"variable {name} names certificates"):
            ask("https://rag.example/v1")
    with loopback(reply(chat_body("hello"))) as server:
        assert ask(server.url).text == "hello"  # no TLS, no trouble


def test_a_bundle_for_requests_is_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cryptography import x509

    from tests.unit.targets.test_failures import _certificate

    file, _ = _certificate(tmp_path, x509.DNSName("rag.example"), 9)
    connection._context.cache_clear()
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(file))
    trusted = certificates(httpx2.URL("https://h")).cert_store_stats()
    connection._context.cache_clear()
    assert trusted["x509"] == 1
