import asyncio
import json
import random
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from ragwitness.core.errors import (
    CapabilityError,
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.types import Answer, Query, Target
from ragwitness.targets.failures import find_key
from ragwitness.targets.openai import OpenAITarget, parse_endpoint
from ragwitness.targets.resolve import open_target
from ragwitness.targets.transport import Clock, RetryPolicy, TransportOptions
from tests.support.loopback import Loopback, Step, chat_body, loopback, reply

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
        (reply(b"\xff\xfe\x00"), "not UTF-8"),
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


Refusal = tuple[str, Callable[[dict[str, Any]], bool]]


def refusing(server: Loopback, *rows: Refusal) -> Step:
    """A step that refuses in its own words what it does not take, a row after the other."""

    def step(connection: socket.socket) -> None:
        body = server.requests[-1][1]
        message = next((words for words, refuses in rows if refuses(body)), None)
        connection.sendall(OK if message is None else reply({"error": {"message": message}}, 400))

    return step


LIMIT = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model."


def dialect(
    *rows: Refusal, query: Query | None = None
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """What is sent when the same is asked twice, and what is said of it."""
    with loopback(OK) as server:
        server.steps = (refusing(server, *rows),)

        async def main() -> tuple[str, ...]:
            async with await OpenAITarget.connect(f"{server.url}#m") as target:
                for _ in range(2):
                    assert (await target.ask(query or Query("q", 5, seed=1))).text == "hello"
                return target.remarks

        remarks = asyncio.run(main())
    return [sent for _, sent in server.requests], remarks


def test_a_dialect_is_learned_once_and_told() -> None:
    sent, remarks = dialect(
        (LIMIT, lambda body: "max_tokens" in body),
        (TEMPERATURE, lambda body: body.get("temperature", 1) != 1),
        ("seed: Extra inputs are not permitted", lambda body: "seed" in body),
        ("This model only supports stream mode: set 'stream'", lambda body: "stream" not in body),
        ("stream_options: Extra inputs are not permitted", lambda body: "stream_options" in body),
    )
    assert len(sent) == 7  # five refusals, then two answers without one
    plain = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    assert sent[4]["stream_options"] == {"include_usage": True}
    assert sent[5] == sent[6] == plain | {"max_completion_tokens": 5, "stream": True}
    assert [len(line) > 10 for line in remarks] == [True] * 5
    assert "the same question may have other answers" in " ".join(remarks)


def test_alternatives_that_are_refused_are_not_asked_for_and_numbers_are_no_refusal() -> None:
    query = Query("q", 5, top_logprobs=5)
    sent, remarks = dialect(
        ("top_logprobs is not supported", lambda body: "top_logprobs" in body), query=query
    )
    assert (sent[-1]["logprobs"], "top_logprobs" in sent[-1]) == (True, False)
    assert "no alternatives" in remarks[0]
    with pytest.raises(CapabilityError):
        dialect(("top_logprobs must be at most 4", lambda body: "top_logprobs" in body),
                query=query)  # fmt: skip


def test_questions_that_are_refused_together_all_learn() -> None:
    with loopback(OK) as server:

        def slow(connection: socket.socket) -> None:
            body = server.requests[-1][1]
            time.sleep(0.1)
            message = {"error": {"message": LIMIT}}
            connection.sendall(reply(message, 400) if "max_tokens" in body else OK)

        server.steps = (slow,)

        async def main() -> list[str]:
            async with await OpenAITarget.connect(f"{server.url}#m") as target:
                answers = await asyncio.gather(*(target.ask(Query("q")) for _ in range(4)))
                return [answer.text for answer in answers]

        assert asyncio.run(main()) == ["hello"] * 4


def test_a_refusal_that_is_no_dialect_is_asked_once() -> None:
    with loopback(reply({"error": {"message": TEMPERATURE}}, 400)) as server:
        with pytest.raises(TargetResponseError, match="temperature"):
            ask(server.url)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("error", "times"),
    [
        ({"message": "slow down", "code": 429}, 3),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, 3),
        ({"message": "Overloaded", "type": "overloaded_error"}, 3),
        ({"message": "x", "type": "server_error"}, 3),
        ("Too many requests", 3),
        ({"message": "bad", "code": 400}, 1),
        ({"message": "no such thing"}, 1),
    ],
)
def test_an_error_within_a_success_is_asked_again_as_it_demands(error: Any, times: int) -> None:
    with loopback(reply({"error": error})) as server:
        with pytest.raises(TargetResponseError):
            ask(server.url, retry=RetryPolicy(retries=2))
        assert len(server.requests) == times
    with loopback(reply({"error": error}), OK) as server:
        passing = times > 1
        if passing:
            assert ask(server.url).text == "hello"


def chunks(*deltas: dict[str, Any], ends: str = "stop", done: bool = True) -> bytes:
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": ends}]})
    events.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    body = ": a comment\n\n" + "".join(lines) + "data: [DONE]\n\n" * done
    return reply(body.encode(), kind="text/event-stream; charset=utf-8")


def test_a_stream_is_joined() -> None:
    row = {"token": "x", "logprob": -0.1, "top_logprobs": []}
    whole = chunks({"role": "assistant", "content": ""}, {"content": "hel"}, {"content": "lo ü"})
    with loopback(whole, chunks({"content": "x"}, done=False)) as server:
        answer = ask(server.url)
        assert ask(server.url).text == "x"
    assert (answer.text, answer.finish_reason) == ("hello ü", "stop")
    assert (answer.prompt_tokens, answer.completion_tokens) == (3, 2)
    parts = [
        {"choices": [{"delta": {"content": "x"}, "logprobs": {"content": [row]}}]} for _ in "ab"
    ]
    body = "".join(f"data: {json.dumps(part)}\r\n\r\n" for part in parts) + "data: [DONE]"
    with loopback(reply(body.encode(), kind="text/plain")) as server:
        tokens = ask(server.url).tokens
    assert [token.token for token in tokens or ()] == ["x", "x"]


def test_a_stream_that_stays_open_behind_its_end_is_read() -> None:
    def step(connection: socket.socket) -> None:
        head, _, body = chunks({"content": "hello"}).partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if b"Length" not in line]
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        time.sleep(3)

    started = time.monotonic()
    with loopback(step) as server:
        assert ask(server.url).text == "hello"
    assert time.monotonic() - started < 2


def test_a_key_that_is_spread_over_a_stream_does_not_reach_an_answer() -> None:
    with loopback(chunks({"content": KEY[:9]}, {"content": KEY[9:]})) as server:
        assert ask(server.url).text == "[key]"


def test_an_error_within_a_stream_is_asked_again() -> None:
    failed = b'data: {"error": {"code": 503, "message": "busy"}}\n\n'
    with loopback(reply(failed, kind="text/event-stream"), OK) as server:
        assert ask(server.url).text == "hello"


def test_parts_thoughts_tools_and_filters_are_told_apart() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}, {"text": "b"}]
    for message, text, finish in (
        ({"content": parts}, "ab", "stop"),
        ({"content": "so", "reasoning_content": "Hm."}, "so", "stop"),
        ({"content": None, "reasoning_content": "Hm"}, "<think>Hm", "stop"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "", "tool_calls"),
    ):
        with loopback(reply(chat_body(**message))) as server:
            answer = ask(server.url)
        assert (answer.text, answer.finish_reason) == (text, finish)


def test_log_probabilities_of_either_shape_on_either_path() -> None:
    older = {"tokens": ["hi"], "token_logprobs": [-0.5], "top_logprobs": [{"hi": -0.5}]}
    newer = {"content": [{"token": "hi", "logprob": -0.5,
                          "top_logprobs": [{"token": "hi", "logprob": -0.5}]}]}  # fmt: skip
    for logprobs in (older, newer):
        with loopback(reply(chat_body("hi", logprobs))) as server:
            chat = ask(server.url, Query("q", top_logprobs=1))
        plain = {"choices": [{"text": "hi", "logprobs": logprobs, "finish_reason": "stop"}]}
        with loopback(reply(plain)) as server:
            text = ask(f"{server.url}?endpoint=completions", Query("q", top_logprobs=1))
            assert server.requests[0][0] == "/v1/completions"
        assert chat.tokens == text.tokens
        assert [(one.token, one.logprob, one.top) for one in text.tokens or ()] == [
            ("hi", -0.5, (("hi", -0.5),))
        ]


def test_an_address_as_azure_shows_it() -> None:
    version = "?api-version=2024-10-21"
    with loopback(OK) as server:
        url = server.url.replace("/v1", "/openai/deployments/d")
        assert ask(f"{url}/chat/completions{version}").text == "hello"
        assert server.requests[0][0] == f"/openai/deployments/d/chat/completions{version}"
    endpoint = parse_endpoint(f"{url}/chat/completions{version}#gpt")
    assert (endpoint.url, endpoint.query, endpoint.model) == (url, version, "gpt")
    assert OpenAITarget(endpoint).name == f"{url}{version}#gpt"
    assert parse_endpoint("http://h/v1/completions").api == "completions"
    assert parse_endpoint("http://h/v1?endpoint=completions&a=b").query == "?a=b"
    with pytest.raises(InputError, match="option endpoint"):
        parse_endpoint("http://h/v1?endpoint=other")


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_on_the_same_host_is_followed(status: int) -> None:
    with loopback(reply({}, status, Location="/v2/chat/completions"), OK) as server:
        assert ask(server.url).text == "hello"
    (_, first), (path, second) = server.requests
    assert path == "/v2/chat/completions"
    assert first == second
    assert KEY in server.headers[1]


def test_a_redirect_elsewhere_or_without_end_is_named() -> None:
    with loopback(OK) as other:
        for status in (307, 308):
            error = failure(reply({}, status, Location=other.url))
            assert f"to {other.url}" in error.message
        assert other.requests == []
    assert "redirect" in failure(reply({}, 307, Location="/v1/chat/completions")).message
    assert "redirect" in failure(reply({}, 301, Location="/v1/chat")).message


def test_what_came_too_late_is_asked_again_once_and_alone() -> None:
    running, most, setbacks = 0, 0, []

    def slow(connection: socket.socket) -> None:
        nonlocal running, most
        if len(server.requests) <= 4:
            time.sleep(0.6)
            return
        running += 1
        most = max(most, running)
        time.sleep(0.1)
        running -= 1
        connection.sendall(OK)

    with loopback(slow) as server:
        options = TransportOptions(read_timeout=0.3, setback=setbacks.append)

        async def main() -> list[str]:
            async with await OpenAITarget.connect(f"{server.url}#m", options) as target:
                answers = await asyncio.gather(*(target.ask(Query("q")) for _ in range(4)))
                return [answer.text for answer in answers]

        assert asyncio.run(main()) == ["hello"] * 4
    assert most == 1
    assert [one.late for one in setbacks] == [True] * 4
    with loopback(_slow) as server:
        with pytest.raises(TargetUnreachableError, match="2 attempts"):
            ask(server.url, read_timeout=0.2)
        assert len(server.requests) == 2


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
        target: Target = await open_target(url, TransportOptions(retry=RetryPolicy(0)))
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
