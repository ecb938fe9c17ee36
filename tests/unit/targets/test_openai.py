import asyncio
import random
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from ragwitness.errors import (
    CapabilityError,
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.targets.failures import find_key
from ragwitness.targets.openai import OpenAITarget, parse_endpoint
from ragwitness.targets.resolve import open_target
from ragwitness.targets.transport import Clock, RetryPolicy, TransportOptions
from ragwitness.types import Answer, Query, Target
from tests.support.loopback import Step, chat_body, loopback, reply

KEY = "sk-very-secret-0123456789"
OK = reply(chat_body("hello"))


class Waits:
    """A clock that only notes how long it should have slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.clock = Clock(self._sleep, lambda: 1_800_000_000.0, random.Random(0))

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def ask(url: str, query: Query | None = None, waits: Waits | None = None, **options: Any) -> Answer:
    options = {"key_env": "OPENAI_API_KEY"} | options

    async def main() -> Answer:
        clock = (waits or Waits()).clock
        target = await OpenAITarget.connect(f"{url}#m", TransportOptions(**options), clock=clock)
        async with target:
            return await target.ask(query or Query("q", 5))

    return asyncio.run(main())


def failure(*steps: Step, query: Query | None = None, **options: Any) -> RagwitnessError:
    """What asking a server with these steps raises: one line, without the key."""
    with loopback(*steps) as server, pytest.raises(RagwitnessError) as caught:
        ask(server.url, query, **options)
    error = caught.value
    assert "\n" not in str(error)
    assert error.hint
    assert KEY not in str(error) + repr(error)
    assert error.__cause__ is None
    return error


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")


def test_sends_what_the_protocol_wants() -> None:
    with loopback(OK) as server:
        query = Query("Say \ud800 ü", 7, 0.5, top_logprobs=20, seed=3)
        assert ask(server.url, query).text == "hello"
    assert server.requests == [
        (
            "/v1/chat/completions",
            {
                "model": "m",
                "messages": [{"role": "user", "content": "Say \ud800 ü"}],
                "max_tokens": 7,
                "temperature": 0.5,
                "logprobs": True,
                "top_logprobs": 20,
                "seed": 3,
            },
        )
    ]
    assert f"Bearer {KEY}" in server.headers[0]


def test_plain_query_asks_for_no_logprobs_and_no_key_is_sent_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with loopback(OK) as server:
        ask(server.url)
    assert set(server.requests[0][1]) == {"model", "messages", "max_tokens", "temperature"}
    assert "authorization" not in server.headers[0].lower()


def test_openais_key_is_sent_to_openai_alone() -> None:
    for url in ("https://api.openai.com/v1", "https://API.OpenAI.com:443/v1"):
        assert find_key(url, None).value == KEY
    for url in (
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com",
        "https://openai.com/v1",
        "http://127.0.0.1:8000/v1",
        "http://localhost/v1",
    ):
        assert find_key(url, None).value is None
        assert find_key(url, "OPENAI_API_KEY").value == KEY
    assert KEY not in repr(find_key("https://api.openai.com/v1", None))


def test_stranger_that_asks_for_a_key_gets_none_and_the_user_learns_how() -> None:
    with loopback(reply({"error": "unauthorized"}, 401)) as server:
        with pytest.raises(TargetResponseError, match="none was sent") as caught:
            ask(server.url, key_env=None)
        with pytest.raises(TargetResponseError, match="none was sent"):
            connect(server.url)  # the list of models too
        assert not any("authorization" in head.lower() for head in server.headers)
    assert "--key-env NAME" in caught.value.hint


@pytest.mark.parametrize(
    "given", [KEY, "", "MY KEY", "1KEY", "SCHLÜSSEL", "NAME\n", "gsk_aB3dE5gH7jK9mN1pQ3s"]
)
def test_key_given_in_place_of_its_name_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(InputError, match="takes the NAME") as caught:
        TransportOptions(key_env=given)
    assert not given or given not in str(caught.value)
    assert TransportOptions(key_env="_My_KEY2").key_env == "_My_KEY2"


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["connect_timeout", "read_timeout"])
def test_impossible_timeouts_are_refused(name: str, seconds: float) -> None:
    with pytest.raises(InputError, match="timeout"):
        TransportOptions(**{name: seconds})


def test_dropped_logprobs_are_none_not_zero() -> None:
    with loopback(OK) as server:
        assert ask(server.url, Query("q", top_logprobs=5)).tokens is None


def test_refusal_is_an_answer() -> None:
    with loopback(reply(chat_body(content=None, refusal="No."))) as server:
        assert ask(server.url).text == "No."


def test_429_waits_as_told_and_asks_again() -> None:
    waits = Waits()
    busy = reply({"error": {"message": "slow down"}}, 429, Retry_After="17")
    date = reply({}, 503, Retry_After="Fri, 15 Jan 2027 08:00:09 GMT")  # now + 9 s
    with loopback(busy, date, OK) as server:
        assert ask(server.url, waits=waits).text == "hello"
    assert waits.slept == [17.0, 9.0]


def test_told_to_come_back_at_once_still_waits() -> None:
    waits = Waits()
    busy = reply({}, 429, Retry_After="0")
    with loopback(busy, busy, OK) as server:
        ask(server.url, waits=waits)
    rng = random.Random(0)
    assert waits.slept == [rng.uniform(0.0, 0.5), rng.uniform(0.0, 1.0)]


def test_500_for_ever_ends_after_all_retries() -> None:
    waits = Waits()
    with loopback(reply({"error": {"message": f"boom {KEY}"}}, 500)) as server:
        with pytest.raises(TargetResponseError, match="status 500 after 6 attempts: boom") as e:
            ask(server.url, waits=waits)
        assert len(server.requests) == 6
    assert KEY not in str(e.value)
    assert len(waits.slept) == 5
    assert all(wait <= 0.5 * 2**i for i, wait in enumerate(waits.slept))


def test_rate_limit_for_ever_and_a_wait_too_long() -> None:
    error = failure(reply({}, 429), retry=RetryPolicy(retries=1))
    assert isinstance(error, TargetResponseError)  # the server is there
    assert "limits the rate of requests: status 429 after 2 attempts" in error.message
    error = failure(reply({}, 429, Retry_After="3600"))
    assert isinstance(error, TargetResponseError)
    assert "asks to wait 3600 s" in error.message


def test_server_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    waits = Waits()
    with pytest.raises(TargetUnreachableError, match="6 attempts") as caught:
        ask(f"http://127.0.0.1:{port}/v1", waits=waits)
    assert f"127.0.0.1:{port}" in caught.value.message
    assert "server runs" in caught.value.hint
    assert len(waits.slept) == 5


def _slow(connection: socket.socket) -> None:
    time.sleep(3)


def _drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 999\r\n\r\n")
    for _ in range(40):
        connection.sendall(b"{")
        time.sleep(0.1)


@pytest.mark.parametrize("step", [_slow, _drip])
def test_slow_server_is_given_up(step: Callable[[socket.socket], None]) -> None:
    started = time.perf_counter()
    options = {"read_timeout": 0.2, "connect_timeout": 0.5, "retry": RetryPolicy(retries=1)}
    error = failure(step, **options)
    assert isinstance(error, TargetUnreachableError)
    assert "no complete reply within 0.2 s" in error.message
    assert time.perf_counter() - started < 2.5


def test_cut_reply_is_asked_for_again() -> None:
    with loopback(OK[:-9], OK) as server:
        assert ask(server.url).text == "hello"
        assert len(server.requests) == 2
    error = failure(OK[:-9], retry=RetryPolicy(retries=0))
    assert isinstance(error, TargetUnreachableError)
    assert "1 attempt" in error.message


HTML = b"\n<!DOCTYPE html><html><body>Welcome</body></html>"


@pytest.mark.parametrize(
    "step", [reply(HTML, kind="text/html"), reply(HTML), reply(HTML, 404, "text/html")]
)
def test_html_is_called_html(step: bytes) -> None:
    error = failure(step)
    assert isinstance(error, TargetResponseError)
    assert "answered with HTML (a web page), not JSON; is /v1 missing" in error.message


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (reply(b'{"choices": [{"mess', kind="application/json"), "not JSON (it begins"),
        (reply(b""), "an empty reply"),
        (reply(b"\xff\xfe\x00"), "not JSON"),
        (reply(b"[" * 100_000), "not JSON"),
        (reply({"choices": []}), "list of choices is empty"),
        (reply({"ok": 1}), "there are no choices"),
        (reply({"error": {"message": "model crashed"}}), "with an error: model crashed"),
        (reply({"error": "model crashed"}), "with an error: model crashed"),
        (reply({"detail": "x" * 999}, 422), "status 422"),
        (reply({}, 301, Location="http://elsewhere"), "redirect"),
        (b"nonsense\r\n\r\n", "Cannot get an answer"),
    ],
)
def test_other_replies_are_named(step: bytes, said: str) -> None:
    error = failure(step, retry=RetryPolicy(retries=0))
    assert said in error.message
    assert len(error.message) < 500


@pytest.mark.parametrize("status", [401, 403])
def test_refused_and_missing_keys_name_the_variable(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = reply({"error": {"message": f"Incorrect API key provided: {KEY}."}}, status)
    assert "was refused" in failure(step).message
    monkeypatch.setenv("OTHER_KEY", "")
    error = failure(step, key_env="OTHER_KEY")
    assert "OTHER_KEY is not set" in error.message
    assert "OTHER_KEY" in error.hint


def test_keys_that_the_server_shows_in_part_are_hidden_too() -> None:
    said = f"Incorrect API key provided: {KEY[:6]}******{KEY[-4:]}."
    error = failure(reply({"error": {"message": said}}, 401))
    assert KEY[-4:] not in str(error)
    assert "[key]" in str(error)


def test_unknown_model() -> None:
    step = reply({"error": {"message": "The model 'm' does not exist."}}, 404)
    error = failure(step)
    assert "The model 'm' does not exist" in error.message
    assert "#" in error.hint


@pytest.mark.parametrize("status", [400, 403])
def test_refused_logprobs_are_a_missing_capability(status: int) -> None:
    step = reply({"error": {"message": "You may not request logprobs from this model"}}, status)
    assert isinstance(failure(step), CapabilityError)


def test_limit_is_sent_under_its_new_name_where_the_old_is_refused() -> None:
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with loopback(reply({"error": {"message": said}}, 400), OK) as server:
        assert ask(server.url).text == "hello"
    assert server.requests[1][1]["max_completion_tokens"] == 5
    assert "max_tokens" not in server.requests[1][1]


def test_huge_reply_is_not_read_to_its_end() -> None:
    error = failure(reply(b" " * 3_000_000), largest_body=2**20)
    assert "more than 1 MB" in error.message


def test_concurrency_is_bounded() -> None:
    running, most = 0, 0

    def slow(connection: socket.socket) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.05)
        running -= 1
        connection.sendall(OK)

    async def main(url: str) -> None:
        options = TransportOptions(concurrency=3)
        async with await OpenAITarget.connect(f"{url}#m", options) as target:
            await asyncio.gather(*(target.ask(Query("q")) for _ in range(12)))

    with loopback(slow) as server:
        asyncio.run(main(server.url))
    assert most == 3


MODELS = reply({"data": [{"id": "one"}, {"id": "two"}]})


def connect(url: str) -> str:
    async def main() -> str:
        target: Target = await open_target(url, clock=Waits().clock)
        await target.close()
        return target.name

    return asyncio.run(main())


def test_only_model_is_taken_and_several_are_listed() -> None:
    with loopback(reply({"data": [{"id": "one"}]})) as server:
        assert connect(server.url + "/") == f"{server.url}#one"
        assert server.requests[0][0] == "/v1/models"
    with loopback(MODELS) as server:
        with pytest.raises(InputError, match="has 2 models: one, two"):
            connect(server.url)
        assert connect(f"{server.url}#two") == f"{server.url}#two"
    with loopback(reply({"data": []})) as server, pytest.raises(InputError, match="no model"):
        connect(server.url)
    with loopback(reply({}, 404)) as server, pytest.raises(TargetResponseError, match="#"):
        connect(server.url)


@pytest.mark.parametrize(
    "spec",
    [
        "ftp://host/v1",
        "",
        "http://",
        "http://h:x/v1",
        "http://[::1/v1",
        "https:/v1",
    ],
)
def test_other_targets_are_refused_with_the_valid_forms(spec: str) -> None:
    with pytest.raises(InputError) as caught:
        connect(spec)
    assert "http://" in caught.value.hint


@pytest.mark.parametrize("spec", [f"http://user:{KEY}@h/v1", f"http://h/v1?api-key={KEY}"])
def test_secrets_in_the_url_are_refused_and_not_repeated(spec: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_endpoint(spec)
    assert KEY not in str(caught.value)


def test_key_that_no_header_can_carry_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bad in ("sk-schlüssel", "sk-two\nlines"):
        monkeypatch.setenv("OPENAI_API_KEY", bad)
        with pytest.raises(InputError, match="OPENAI_API_KEY") as caught:
            ask("http://127.0.0.1:9/v1")
        assert bad not in str(caught.value)
