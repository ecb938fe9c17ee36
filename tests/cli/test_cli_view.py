"""`ragwitness view`: what it serves by default, to whom, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.web.web_runs import unfinished_run

Command = Callable[..., tuple[int, str]]


def fetch(app: Any, address: str, said: str = "") -> httpx2.Response:
    """Open the address that was printed, where it is given, and then a page with its cookie."""

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            if said:
                assert (await client.get(f"/?token={token_in(said)}")).status_code == 200
            return await client.get(address)

    return asyncio.run(ask())


def token_in(said: str) -> str:
    return said.split("?token=")[1].split()[0]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The apps that a command would serve; nothing waits for a client."""
    apps: list[Any] = []

    def take(app: Any, listener: socket.socket, ready: Callable[[], None]) -> None:
        listener.close()
        apps.append(app)

    def announced(app: Any, listener: socket.socket, ready: Callable[[], None]) -> None:
        ready()
        take(app, listener, ready)

    monkeypatch.setattr("ragwitness.web.app.serve_app", announced)
    return apps


def test_the_runs_of_this_folder_are_served_to_this_machine(
    command: Command, served: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished_run(tmp_path / "ragwitness-runs" / "mine", [("d", "q", "a")])
    monkeypatch.chdir(tmp_path)
    code, said = command("view", "--port", 0)
    assert code == 0
    assert said.startswith("Listening on http://127.0.0.1:")
    assert fetch(served[0], "/").status_code == 401
    page = fetch(served[0], "/", said).text
    assert "mine" in page
    assert "Begin a run" in page


def test_runs_and_folders_of_runs_are_named(
    command: Command, served: list[Any], tmp_path: Path
) -> None:
    one = unfinished_run(tmp_path / "one", [("d", "q", "a")])
    unfinished_run(tmp_path / "more" / "two", [("d", "q", "a")])
    unfinished_run(tmp_path / "left" / "three", [("d", "q", "a")])
    code, said = command("view", one, tmp_path / "more", "--port", 0)
    assert code == 0
    page = fetch(served[0], "/", said).text
    assert "2 runs" in page
    assert "three" not in page


def test_beyond_this_machine_the_pages_only_read(
    command: Command, served: list[Any], tmp_path: Path
) -> None:
    said = [command("view", tmp_path, "--port", 0, "--host", "0.0.0.0")[1] for _ in range(2)]  # noqa: S104
    tokens = [token_in(text) for text in said]
    assert tokens[0] != tokens[1]
    assert min(map(len, tokens)) >= 43  # 256 bits
    assert said[0].count(tokens[0]) == 1
    assert "not encrypted" in said[0]
    assert fetch(served[0], "/").status_code == 401
    assert fetch(served[0], f"/?token={tokens[1]}").status_code == 401
    assert "Begin a run" not in fetch(served[0], "/", said[0]).text
    # The token works once; a page that begins something is not there.
    assert fetch(served[0], f"/?token={tokens[0]}").status_code == 401
    assert fetch(served[1], "/begin/audit", said[1]).status_code == 404


def test_the_page_about_it_names_options_that_exist(command: Command) -> None:
    page = (Path(__file__).parents[2] / "docs" / "view.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert named == {"--host", "--port"}
    said = command("view", "--help")[1]
    assert all(option in said for option in named)


def test_without_runs_the_first_can_be_begun(
    command: Command, served: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = command("view", "--port", 0)
    assert code == 0
    assert "Begin a run" in fetch(served[0], "/", said).text
    assert not (tmp_path / "ragwitness-runs").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_however_the_pages_end_their_private_folder_is_gone(tmp_path: Path, name: str) -> None:
    line = [sys.executable, "-m", "ragwitness", "view", "--port", "0"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        line, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as pages:
        assert pages.stdout is not None
        assert pages.stdout.readline().startswith("Listening on")
        assert len(list(tmp_path.glob("ragwitness-view-*"))) == 1
        pages.send_signal(getattr(signal, name))
        assert pages.stdout.read().endswith("Stopped.\n")
    assert list(tmp_path.glob("ragwitness-view-*")) == []


def test_a_run_alone_has_no_place_for_others(
    command: Command, served: list[Any], tmp_path: Path
) -> None:
    one = unfinished_run(tmp_path / "one", [("d", "q", "a")])
    said = command("view", one, "--port", 0)[1]
    assert "Begin a run" not in fetch(served[0], "/", said).text


def test_a_missing_folder_is_one_line_with_the_next_command(
    command: Command, served: list[Any], tmp_path: Path
) -> None:
    code, said = command("view", tmp_path / "nowhere", "--port", 0)
    assert code == 2
    assert "There is no folder" in said
    assert "begin a run in the pages" in said
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert command("view", tmp_path / "file", "--port", 0)[0] == 2
    assert served == []
