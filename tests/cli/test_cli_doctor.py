"""doctor at services that behave as real ones do: what it shows, and what it says."""

import socket
import sys
import time

import pytest

from ragwitness.cli.main import run
from tests.support.loopback import Step, chat_body, loopback, reply

_MODELS = reply({"data": [{"id": "m"}]})
_NO_ECHO = reply({"error": {"message": "Not Found"}}, 404)


@pytest.fixture
def doctor(monkeypatch, capfd):
    def call(*steps: Step, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        with loopback(_MODELS, *steps) as server:
            arguments = ["ragwitness", "doctor", server.url, "--no-pilot", *options]
            monkeypatch.setattr(sys, "argv", arguments)
            code = 0
            try:
                run()
            except SystemExit as stop:
                code = int(stop.code or 0)
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        assert "ragwitness doctor" not in out + err  # no advice to do what was just done
        return code, out, err

    return call


def test_each_answer_is_shown_as_it_comes(doctor) -> None:
    said = reply(chat_body("Hello, " + "you " * 99))
    code, out, err = doctor(said, _NO_ECHO)
    assert code == 0
    (line,) = [line for line in err.splitlines() if line.startswith("answer 1 after")]
    assert "Hello" in line
    assert len(line) <= 80
    assert "text" in out


def test_a_dialect_is_told(doctor) -> None:
    refused = reply({"error": {"message": "Only the default (1) temperature is supported."}}, 400)
    code, out, _ = doctor(refused, reply(chat_body("Hello.")), _NO_ECHO)
    assert code == 0
    assert "refuses the temperature" in " ".join(out.split())


def test_a_tool_call_is_called_so_and_nothing_is_possible(doctor) -> None:
    call = reply(chat_body(None, tool_calls=[{"id": "1", "function": {"name": "search"}}]))
    code, out, err = doctor(call, call, _NO_ECHO)
    assert code == 5
    assert "audits possible: none" in out
    assert "it called a tool instead of answering" in err


def test_a_slow_service_is_told_apart_from_one_that_is_down(doctor) -> None:
    def slow(_: socket.socket) -> None:
        time.sleep(1)

    code, _, err = doctor(slow, options=("--timeout", "0.3"))
    assert code == 1
    assert "not answered in time; it is asked again" in err
    assert "no complete reply within 0.3 s" in err
    assert "--timeout" in err
    assert "host and port" not in err


def test_a_header_comes_from_the_environment(doctor, monkeypatch) -> None:
    refused = reply({"error": {"message": "missing X-API-Key"}}, 401)
    code, _, err = doctor(refused)
    assert code == 1
    assert "--header X-API-Key=VARIABLE" in " ".join(err.split())
    monkeypatch.setenv("THEIR_KEY", "v4lue-of-the-key")
    options = ("--header", "X-API-Key=THEIR_KEY")
    code, out, err = doctor(reply(chat_body("v4lue-of-the-key")), _NO_ECHO, options=options)
    assert code == 0
    assert "v4lue" not in out + err
