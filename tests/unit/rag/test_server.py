import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import uvicorn

from ragwitness.core.errors import InputError
from ragwitness.core.types import Query
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.server import create_app, serve
from tests.unit.rag.rag_fakes import CORPUS, FakeModel, make_system, served

SCRIPT = "from rag_fakes import make_system\nfrom ragwitness.rag.server import serve\n"


# Who reads a pipe sees the address at once without the variable, too.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def test_prints_its_address_and_ends_cleanly_on_ctrl_c() -> None:
    code = SCRIPT + "serve(make_system(), port=0)"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | {"OMP_NUM_THREADS": "1"},
    )
    deadline = threading.Timer(20, process.kill)  # ends a wait for a line that never comes
    deadline.start()
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("Listening on ").strip()
        assert url.startswith("http://127.0.0.1:")
        assert not url.endswith(":0/v1")
        assert httpx2.get(url + "/models", trust_env=False).json()["data"][0]["id"] == "rag"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        deadline.cancel()
        process.kill()
    assert (out, err, process.returncode) == ("Stopped.\n", "", 0)


@pytest.mark.parametrize(("length", "lines"), [(400, 2), (80, 3)])
def test_prompts_that_lost_passages_are_named_at_the_end(
    length: int, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = make_system(FakeModel(context_length=length), k=4)

    def run(server: uvicorn.Server, sockets: object) -> None:
        server._announce()  # type: ignore[attr-defined]
        system.prompt("Maria Keller came on 2024-03-01 with a the and", 20)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    said: list[str] = []
    serve(system, port=0, announce=said.append)
    assert len(said) == lines
    assert said[-1] == "Stopped."
    assert lines == 2 or said[1] == (
        "1 of 1 prompts lost passages: the generator reads at most 80 tokens."
    )


def test_taken_port_and_bad_host_are_one_line() -> None:
    with served(create_app(make_system(), key="")) as url:
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(InputError, match=r"Cannot listen on 127\.0\.0\.1"):
            serve(make_system(), port=port)
    with pytest.raises(InputError, match="Cannot listen"):
        serve(make_system(), port=70_000)
    with pytest.raises(InputError, match="Cannot listen"):
        serve(make_system(), host="256.0.0.1", port=0)


@pytest.mark.slow
def test_a_client_that_leaves_changes_no_answer_beside_its_own() -> None:
    """Its answer stands in the running batch of the others when it hangs up."""
    reader = load_language_model("reader")
    system = make_system(reader)
    texts = [document.text for document in CORPUS]
    alone = [system.answer(Query(text, 40)).text for text in texts]

    def ask(url: str, text: str, patience: float) -> str | None:
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 40}
        try:
            reply = httpx2.post(
                f"{url}/chat/completions", json=body, timeout=patience, trust_env=False
            )
        except httpx2.TimeoutException:
            return None
        return str(reply.json()["choices"][0]["message"]["content"])

    with served(create_app(system, key="")) as url, ThreadPoolExecutor(12) as pool:
        gone = [pool.submit(ask, url, text, 0.02) for text in texts]
        found = list(pool.map(lambda text: ask(url, text, 120), texts))
    assert None in [one.result() for one in gone]
    assert found == alone
