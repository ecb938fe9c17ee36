"""A whole first audit in Chromium, by clicks alone: upload, failures, stop, go on, report.

The verbs, the RAG system and the browser are the real ones; only the network is bad on purpose.
RAGWITNESS_PICTURES=docs renews the pictures of docs/view.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ragwitness.core.types import Document
from ragwitness.text.sample import load_sample
from tests.support.browsing import accessible, chromium, viewing, watch
from tests.support.servers import free_port, served

pytestmark = pytest.mark.slow
PATIENCE = 300_000  # milliseconds; the cores may be busy
PICTURES = os.environ.get("RAGWITNESS_PICTURES")


class Gate(ThreadingHTTPServer):
    """Stands before a system, and lets requests pass, turns them away, or drops them.

    Attributes:
        way: ``open``, ``busy`` (429) or ``shut`` (connections are dropped).
        answered: How often each body brought an answer.
    """

    daemon_threads = True

    def __init__(self, system: str) -> None:
        super().__init__(("127.0.0.1", 0), _Porter)
        self.system, self.way = system, "open"
        self.answered: Counter[bytes] = Counter()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def asked(self) -> int:
        """Questions that brought an answer."""
        return sum(n for body, n in self.answered.items() if body)

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is what these tests are about."""


class _Porter(BaseHTTPRequestHandler):
    server: Gate

    def do_GET(self) -> None:
        self._pass(b"")

    def do_POST(self) -> None:
        self._pass(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass(self, body: bytes) -> None:
        if self.server.way == "shut":
            self.close_connection = True
            return
        status, data = 429, b'{"error": {"message": "too many requests"}}'
        if self.server.way == "open":
            kind = {"Content-Type": "application/json"}
            address = self.server.system + self.path.removeprefix("/v1")
            reply = httpx2.request(self.command, address, content=body, headers=kind, timeout=120)
            status, data = reply.status_code, reply.content
            self.server.answered[body] += 1
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("Retry-After", "15")  # longer than the page needs to say so
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


def write(path: Path, documents: list[Document]) -> Path:
    rows = (json.dumps({"id": one.id, "text": one.text}) for one in documents)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a data owner has, and what the system holds: half of it."""
    folder, sample = tmp_path_factory.mktemp("owner"), load_sample()
    write(folder / "corpus.jsonl", sample[:60])
    write(folder / "My stories.jsonl", sample[:6] + sample[200:206])
    write(folder / "outside.jsonl", sample[300:340])
    (folder / "contract.pdf").write_bytes(b"%PDF-1.7\n")
    return folder


@pytest.fixture(scope="module")
def system(files: Path) -> Iterator[str]:
    """A RAG system over the corpus; its base URL."""
    port = free_port()
    command = [sys.executable, "-m", "ragwitness", "lab", "serve", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with served(
        [*command, "--corpus", str(files / "corpus.jsonl")], f"{url}/health", files / "log"
    ):
        yield f"{url}/v1"


@pytest.fixture(scope="module")
def gate(system: str) -> Iterator[Gate]:
    made = Gate(system)
    threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def page(files: Path) -> Iterator[Any]:
    """The first page, opened by the address that was printed; its console must stay empty."""
    with viewing([], files) as printed, chromium() as browser:
        opened = browser.new_page()
        opened.set_default_timeout(PATIENCE)
        trouble = watch(opened)
        opened.goto(printed)
        opened.wait_for_url("**/")
        yield opened
        # The refusal of 200 MB is the one reply that a browser calls an error.
        assert [one for one in trouble if "status of 413" not in one] == []


@pytest.fixture
def press(page: Any) -> Callable[[str], None]:
    def click(words: str) -> None:
        page.get_by_role("button", name=words, exact=True).or_(
            page.get_by_role("link", name=words, exact=True)
        ).first.click()

    return click


def picture(page: Any, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=name == "view-check")


def wait(page: Any, words: str) -> None:
    page.get_by_text(words, exact=False).first.wait_for()


def figure(page: Any, name: str) -> int:
    found = re.match(r"[\d,]+", page.inner_text(f"#figure-{name}"))
    assert found
    return int(found[0].replace(",", ""))


def test_the_first_audit_by_clicks_alone(
    page: Any, press: Callable[[str], None], gate: Gate, files: Path
) -> None:
    looks = accessible(page)
    # 1. Nothing yet: from the empty list to the questions.
    press("Begin a run")
    looks += accessible(page)
    press("Are my documents in that system's database?")
    looks += accessible(page)
    picture(page, "view-begin")
    # 2. Nothing given, then a PDF: each is told beside its question.
    press("Check")
    assert "2 answers cannot be used" in page.inner_text("#wrong")
    looks += accessible(page)
    page.get_by_label("Upload").first.set_input_files(files / "contract.pdf")
    press("Check")
    assert "the end of the PDF is missing" in page.inner_text("main")
    # 3. The documents, and the address of a server that is not there.
    page.get_by_label("Upload").first.set_input_files(files / "My stories.jsonl")
    page.get_by_label("Upload").nth(1).set_input_files(files / "outside.jsonl")
    page.get_by_label("Address of the system").fill(f"http://127.0.0.1:{free_port()}/v1")
    page.get_by_label("Cap on queries (optional)").fill("700")
    press("Check")
    wait(page, "What happened")
    assert "Check that the server runs" in page.inner_text(".warnings")
    looks += accessible(page)
    # 4. The right address; nothing is uploaded again.
    press("Change the answers")
    assert "My stories.jsonl, 12 documents" in page.inner_text("main")
    page.get_by_label("Address of the system").fill(gate.url)
    press("Check")
    wait(page, "What it would cost")
    checked = page.inner_text("main")
    assert "What the system can do" in checked
    assert "What it could find" in checked
    assert "40 known-out documents and 12 documents asked about" in checked
    assert page.locator("h1").inner_text().startswith("My-stories-")
    looks += accessible(page)
    picture(page, "view-check")
    before = gate.asked
    assert before <= 200  # the check alone, with its pilots
    # 5. It starts at a system that says 429, and the page says so.
    gate.way = "busy"
    if page.locator("#yes").count():
        page.get_by_label("Go on, although").check()
    press("Start the audit")
    page.locator("#news", has_text="turned").wait_for()
    assert "requests away" in page.inner_text("#news")
    looks += accessible(page)
    gate.way = "open"
    # 6. Answers come in, without loading the page; then a stop, pressed once and met twice.
    while figure(page, "heard") < 3:
        page.wait_for_timeout(100)
    picture(page, "view-running")
    press("Stop")
    wait(page, "It was stopped.")
    looks += accessible(page)
    # 7. It goes on at a server that is dead, and says what happened; then at one that lives.
    gate.way = "shut"
    press("Go on")
    wait(page, "It broke off.")
    assert page.locator("#failure").count() == 1
    looks += accessible(page)
    gate.way = "open"
    press("Go on")
    wait(page, "It is finished.")
    looks += accessible(page)
    press("Read the report")
    assert "in the database" in page.locator("h1").inner_text()
    looks += accessible(page)
    # 8. Nothing that was paid for was asked again, and the cap held.
    # Again is what was under way when it was stopped, and what the pilots of the check and of the
    # audit ask: that of a kind, and then that of all kinds together.
    again = [n for body, n in gate.answered.items() if body and n > 1]
    assert max(again, default=0) <= 4
    assert len(again) <= 80
    run = next((files / "ragwitness-runs").glob("My-stories-*"))
    result = json.loads((run / "result.json").read_bytes())
    assert len(result["documents"]) == 12
    assert gate.asked - before <= result["summary"]["spent"]["queries"] <= 500
    print(
        f"axe-core: {looks} looks; {result['summary']['spent']['queries']} queries,"
        f" {len(again)} of them asked twice"
    )
    page.goto(page.url.partition("/run")[0] + "/")
    assert "My-stories-" in page.locator("table.runs").inner_text()
    looks += accessible(page)
    assert looks >= 4 * 12


def test_an_upload_of_200_mb_is_refused_with_words(
    page: Any, press: Callable[[str], None], files: Path
) -> None:
    huge = files / "huge.jsonl"
    with huge.open("wb") as made:
        made.truncate(200_000_000)
    page.goto(re.match(r"http://[^/]*/", page.url)[0] + "begin/audit")  # type: ignore[index]
    page.get_by_label("Upload").first.set_input_files(huge)
    press("Check")
    wait(page, "give its path instead")
    assert "200 MB" in page.inner_text("main")
    accessible(page)


def test_leakage_is_measured_by_clicks_alone(
    page: Any, press: Callable[[str], None], gate: Gate, files: Path
) -> None:
    page.goto(re.match(r"http://[^/]*/", page.url)[0] + "begin/leak")  # type: ignore[index]
    accessible(page)
    page.get_by_label("or its path on this machine").first.fill("corpus.jsonl")
    page.get_by_label("Address of the system").fill(gate.url)
    page.get_by_label("Most prompts of each attack").fill("4")
    press("Check")
    wait(page, "What would be asked")
    assert "aimed: at most 4 prompts" in page.inner_text("main")
    assert "What the system can do" in page.inner_text("main")
    accessible(page)
    press("Start the attack")
    wait(page, "It is finished.")
    press("Read the report")
    assert "4 prompts" in page.inner_text("body") or "4 of 4" in page.inner_text("body")
    accessible(page)
