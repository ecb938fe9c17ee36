"""The pages that begin a run, met by those who would misuse them, and by two tabs at once.

The verb is a stand-in that writes what the verb writes; tests/services has the real one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ragwitness.core.errors import InputError
from ragwitness.membership.results.audit import headline
from ragwitness.web import jobs as working
from ragwitness.web import uploads
from ragwitness.web.app import create_app
from ragwitness.web.forms import KEY_VARIABLE, TASKS, by_click
from ragwitness.web.jobs import Jobs, Stage
from ragwitness.web.runs import key_of
from ragwitness.web.security import LIVE_POLICY, Access
from ragwitness.web.uploads import MOST, file_name, inside, target_of
from tests.unit.report.fake_results import fake_result
from tests.unit.web.web_runs import audit_run

HERE = {"Origin": "http://127.0.0.1"}
KEY = "sk-very-secret-0123456789"
ROWS = "".join(
    json.dumps({"id": f"d{n}", "text": f"Text number {n} of many."}) + "\n" for n in range(4)
)

# What stands in for the verbs: looks, runs until it is told to end, and heeds an interrupt.
PROGRAM = working._PROGRAM
VERB = (
    PROGRAM.partition("from ragwitness")[0]
    + """
import json, os, pathlib, sys, time
words = sys.argv[1:]
def after(name): return pathlib.Path(words[words.index(name) + 1])
if words[0] == "init":
    options = after("--config").read_text()
    if "busy" in options:
        print("error: The target answers 429 (too many requests).")
        print("  next: Wait a minute, then go on.")
        sys.exit(1)
    after("--json").write_text(json.dumps({"method": "mba", "documents": 4, "known_out": 4,
        "doubtful": "doubtful" in options, "decides": "Little.", "target": "<b>t</b>"}))
    after("--out").write_text("")
elif words[0] == "verify":
    print(json.dumps({"outcome": "fail", "why": "<b>a score differs</b>", "checks": [
        {"name": "scores", "status": "fail", "detail": "d7", "failure": "score"}]}))
    sys.exit(3)
elif "--dry-run" in words or words[0] == "doctor":
    print("It would be asked: <b>much</b>.")
else:
    run = after("--run")
    try:
        run.mkdir(parents=True, exist_ok=True)
        (run / "answers.jsonl").touch()
        with (run / "starts").open("a") as kept:
            kept.write(str(os.environ.get("RAGWITNESS_TARGET_KEY")) + " " + " ".join(words) + "\\n")
        while not (run / "end").exists():
            time.sleep(0.02)
            if not run.is_dir():
                continue
    except KeyboardInterrupt:
        with (run / "interrupts").open("a") as kept:
            kept.write("x")
        time.sleep(0.5)
        sys.exit(130)
    said = (run / "end").read_text()
    if said:
        print(said)
        sys.exit(1)
"""
)


class Browser:
    """One browser with its cookies, in this process."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def get(self, address: str, **headers: str) -> httpx2.Response:
        return self._ask("GET", address, headers=headers)

    def post(self, address: str, **given: Any) -> httpx2.Response:
        given["headers"] = HERE | given.get("headers", {})
        return self._ask("POST", address, **given)

    def _ask(self, method: str, address: str, **given: Any) -> httpx2.Response:
        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self._app)
            base = "http://127.0.0.1"
            async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, address, **given)

        return asyncio.run(ask())


@pytest.fixture
def access() -> Access:
    return Access()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "here" / "runs"


@pytest.fixture
def jobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setattr(working, "_PROGRAM", VERB)
    home.parent.mkdir()
    made = Jobs(home, home.parent)
    yield made
    made.close()


@pytest.fixture
def browser(jobs: Jobs, access: Access, home: Path) -> Browser:
    return Browser(create_app([home], access, jobs))


@pytest.fixture
def form(access: Access) -> dict[str, str]:
    """A form that is filled in, but for its files."""
    usual = {one.option: one.usual for one in TASKS["audit"].every if one.usual}
    return usual | {"form-key": access.form_key, "target": "http://127.0.0.1:9/v1"}


def files(name: str = "mine.jsonl", text: str | bytes = ROWS) -> dict[str, tuple[str, Any]]:
    return {"documents": (name, text), "known-out": ("known.jsonl", ROWS)}


def until(true: Callable[[], Any], what: str = "") -> Any:
    """Wait for something that a process does."""
    for _ in range(3000):
        if found := true():
            return found
        time.sleep(0.01)
    raise AssertionError(f"it did not come to pass: {what}")


def begun(browser: Browser, jobs: Jobs, form: dict[str, str], **given: Any) -> Any:
    """Send a form and wait for its check; its task."""
    reply = browser.post("/begin/audit", data=form, files=given.get("files", files()))
    assert reply.status_code == 303, reply.text
    job = jobs.find(reply.headers["location"].split("/job/")[1])
    assert job is not None
    until(lambda: job.stage is not Stage.CHECKING, "check")
    return job


def problem(browser: Browser, form: dict[str, str], given: Any) -> str:
    """Send a form with a mistake; what its page says, with the documents' own problem in it."""
    reply = browser.post("/begin/audit", data=form, files=given)
    assert reply.status_code == 303
    assert reply.headers["location"].startswith("/begin/audit?job=")
    return browser.get(reply.headers["location"]).text


# Whose forms are taken.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://127.0.0.1"}, 303),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9000"}, 403),  # another program on this machine
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 303),
        ({"Origin": "", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.example", "Host": "evil.example"}, 421),  # rebound to the loopback
    ],
)
def test_forms_of_other_pages_are_refused(
    browser: Browser, form: dict[str, str], headers: dict[str, str], status: int
) -> None:
    reply = browser.post("/begin/audit", data=form, files=files(), headers=headers)
    assert reply.status_code == status


@pytest.mark.parametrize("key", ["", "0" * 64, "x"])
@pytest.mark.parametrize("address", ["/begin/audit", "/job/{}/start", "/job/{}/stop"])
def test_every_form_must_hold_what_ours_hold(
    browser: Browser, jobs: Jobs, form: dict[str, str], key: str, address: str
) -> None:
    job = begun(browser, jobs, form)
    reply = browser.post(address.format(job.key), data=form | {"form-key": key})
    assert reply.status_code == 403
    assert "Load it again" in reply.text
    assert job.stage is Stage.READY


def test_every_form_of_the_pages_is_a_post_with_the_key(browser: Browser, jobs: Jobs, form) -> None:
    job = begun(browser, jobs, form)
    for address in ("/", "/begin/audit", "/begin/leak", "/begin/verify", f"/job/{job.key}"):
        page = browser.get(address).text
        for one in re.findall(r"<form.*?</form>", page, re.DOTALL):
            assert 'method="post"' in one, address
            assert 'name="form-key"' in one, address


def test_without_the_cookie_nothing_can_be_begun(jobs: Jobs, home: Path, form) -> None:
    access = Access("right-token", "ragwitness-1")
    other = Browser(create_app([home], access, jobs))
    assert other.get("/begin/audit").status_code == 401
    given = form | {"form-key": access.form_key}
    assert other.post("/begin/audit", data=given, files=files()).status_code == 401


def test_an_address_fills_in_nothing_that_matters(browser: Browser) -> None:
    page = browser.get(
        "/begin/audit?target=http://evil.example/v1&documents-path=/etc&name=../x"
    ).text
    assert "evil.example" not in page
    assert "/etc" not in page
    assert "../x" not in page


# What is brought.


def test_an_upload_of_200_mb_is_refused_by_its_head_with_words(
    browser: Browser, jobs: Jobs, form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads.Request, "form", lambda *_a, **_k: pytest.fail("it was read"))

    async def body() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield bytes(1_000_000)

    headers = {"Content-Length": "200000000", "Content-Type": "multipart/form-data; boundary=x"}
    reply = browser.post("/begin/audit", content=body(), headers=headers)
    assert reply.status_code == 413
    assert "200 MB" in reply.text
    assert "give its path instead" in reply.text
    assert jobs.listed() == []


def test_an_upload_that_hides_its_size_is_cut_off(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST", 100_000)

    async def body() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="documents"; filename="a"\r\n\r\n'
        for _ in range(200):
            yield bytes(10_000)

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert browser.post("/begin/audit", content=body(), headers=headers).status_code == 413
    assert MOST < 200_000_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Nothing was uploaded, and no path was given."),
        ({"documents": ("", b"")}, "Nothing was uploaded, and no path was given."),
        ({"documents": ("empty.txt", b"")}, "empty.txt is empty."),
        ({"documents": ("contract.pdf", b"%PDF-1.7 x")}, "contract.pdf is cut short"),
        ({"documents": ("a.docx", b"PK\x03\x04xxxx")}, "a.docx is damaged or cut short"),
        ({"documents": ("t.csv", b"a;b\n1;2\n")}, "Column or field with the text"),
        ({"documents": ("t.csv", b"a;b\n1;2\n")}, "has no column"),
        ({"documents": ("bad.jsonl", b"{\n")}, "invalid JSON"),
    ],
)
def test_what_cannot_be_used_is_said_beside_its_question(
    browser: Browser, jobs: Jobs, form: dict[str, str], given: dict[str, Any], said: str
) -> None:
    page = problem(browser, form, given)
    assert said in page
    assert 'aria-invalid="true"' in page
    assert str(jobs._private) not in page


def test_an_upload_goes_on_without_what_cannot_be_read_and_names_it(
    browser: Browser, jobs: Jobs, form: dict[str, str]
) -> None:
    texts = [("documents", (f"part {n}.txt", f"Words of part {n}.")) for n in range(3)]
    odd = [("documents", (name, b"%PDF")) for name in ("x.pdf", "Thumbs.db", "~$a.docx")]
    page = ("documents", ("page.html", "<script>no</script><p>Words of a page."))
    job = begun(browser, jobs, form, files=[*texts, *odd, page, ("known-out", ("k.jsonl", ROWS))])
    source = job.sources["documents"]
    assert source.summary == "4 documents"
    assert [one.name for one in source.left_out] == ["documents/x.pdf"]
    for address in (f"/job/{job.key}", f"/begin/audit?job={job.key}"):
        shown = browser.get(address).text
        assert "1 file could not be read and was left out" in shown
        assert "documents/x.pdf" in shown
        assert "the end of the PDF is missing" in shown


def test_markup_in_names_and_texts_stays_text(
    browser: Browser, jobs: Jobs, form: dict[str, str]
) -> None:
    evil = "<img src=x onerror=alert(1)>\"'.jsonl"
    rows = json.dumps({"id": "<script>alert(1)</script>", "text": "<b>bold</b> words"}) + "\n"
    job = begun(browser, jobs, form, files=files(evil, rows + "{"))
    pages = [browser.get(f"/job/{job.key}").text, browser.get(f"/begin/audit?job={job.key}").text]
    for page in (*pages, browser.get("/").text):
        assert not re.search(r"<img|<script|<b>", page)
    assert "&lt;img" in pages[0]
    assert "&lt;b&gt;t" in pages[0]  # the system's own name
    assert re.fullmatch(r"[\w.-]+", job.run.name)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\mine.txt", "mine.txt"),
        (".hidden.txt", "hidden.txt"),
        ("..", "upload.txt"),
        ("a\0b\n.txt", "a_b_.txt"),
        ("x" * 300 + ".jsonl", "x" * 150 + ".jsonl"),
        ("", "upload.txt"),
    ],
)
def test_a_file_name_never_leaves_its_folder(given: str, kept: str) -> None:
    assert file_name(given) == kept


@pytest.mark.parametrize(
    "given",
    (
        "../secret.txt /etc/passwd sub/../../secret.txt link link/secret.txt ~/x a\0b"
        " /nowhere/at/all ../here-too/x.txt"
    ).split(" "),
)
def test_a_path_that_leads_out_is_refused_and_not_looked_up(tmp_path: Path, given: str) -> None:
    base = tmp_path / "here"
    (base / "sub").mkdir(parents=True)
    (tmp_path / "here-too").mkdir()
    (tmp_path / "here-too" / "x.txt").write_text("x")
    (tmp_path / "secret.txt").write_text("secret")
    (base / "link").symlink_to(tmp_path)
    with pytest.raises(InputError) as refused:
        inside(base, given)
    # Whether it is there is not told.
    assert "no file or folder" not in refused.value.message


def test_a_path_below_is_read_where_it_is(
    browser: Browser, jobs: Jobs, form: dict[str, str], home: Path
) -> None:
    (home.parent / "mine.jsonl").write_text(ROWS)
    given = form | {"documents-path": "mine.jsonl"}
    job = begun(browser, jobs, given, files={"known-out": ("k.jsonl", ROWS)})
    assert job.sources["documents"].path == (home.parent / "mine.jsonl").resolve()
    page = problem(browser, form | {"documents-path": "../../etc"}, {"known-out": ("k", ROWS)})
    assert "leads out of" in page
    assert "Upload the file instead" in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("http://me:secret@host/v1", "looks like a key"),
        ("http://host/v1?api_key=secret", "looks like a key"),
        ("http:///v1", "no host"),
        ("http://[::1/v1", "no host"),
        ("python:os:system", "no address that a page can ask"),
        ("lab:../../x", "leads out of"),
        ("http//etc/x.toml", "leads out of"),
        ("replay//etc", "leads out of"),
        ("file:///etc/passwd", "no address"),
        ("words", "no address"),
    ],
)
def test_a_target_that_a_page_must_not_ask(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        target_of(given, tmp_path)


@pytest.mark.parametrize("given", ["https://host/v1#m", "openai/gpt", "openai-api/name/model"])
def test_a_target_that_a_page_may_ask(tmp_path: Path, given: str) -> None:
    assert target_of(given, tmp_path) == given


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("max-queries", "many", "not a whole number"),
        ("max-queries", "0", "above 0"),
        ("max-queries", "-5", "not a whole number"),
        ("max-cost", "nan", "not a number"),
        ("price-in", "1e999", "not a number"),
        ("method", "<b>", "none of the choices"),
        ("target", "", "This is needed."),
    ],
)
def test_answers_that_cannot_be_used(
    browser: Browser, form: dict[str, str], option: str, given: str, said: str
) -> None:
    assert said in problem(browser, form | {option: given}, files())


# The key.


def test_a_key_is_in_memory_alone_and_is_never_shown(
    browser: Browser, jobs: Jobs, form: dict[str, str], home: Path
) -> None:
    job = begun(browser, jobs, form | {"key-env": KEY})
    browser.post(f"/job/{job.key}/start", data=form)
    until(lambda: (job.run / "starts").exists(), "start")
    assert (job.run / "starts").read_text().startswith(KEY)  # the verb has it
    (job.run / "starts").unlink()
    written = [one for one in (*home.rglob("*"), *jobs._private.rglob("*")) if one.is_file()]
    assert len(written) >= 4
    assert all(KEY.encode() not in one.read_bytes() for one in written)
    assert f'key-env = "{KEY_VARIABLE}"' in "".join(
        one.read_text() for one in written if one.suffix == ".toml"
    )
    for address in ("/", f"/job/{job.key}", f"/begin/audit?job={job.key}", f"/job/{job.key}/now"):
        assert KEY not in browser.get(address).text
    assert KEY not in repr(job)
    # Files of the page can be read by their owner alone.
    assert jobs._private.stat().st_mode & 0o077 == 0


def test_a_key_does_not_follow_to_another_system(
    browser: Browser, jobs: Jobs, form: dict[str, str]
) -> None:
    job = begun(browser, jobs, form | {"key-env": KEY})
    again = form | {"job": job.key}
    browser.post("/begin/audit", data=again)
    until(lambda: job.stage is Stage.READY)
    assert job._secret
    browser.post("/begin/audit", data=again | {"target": "http://evil.example/v1"})
    assert not job._secret


# Start, stop, go on.


def test_a_task_that_is_ready_keeps_its_folder(
    browser: Browser, jobs: Jobs, form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Jobs._usual_name

    def slowly(self: Jobs, job: Any) -> str:
        time.sleep(0.3)
        return usual(self, job)

    monkeypatch.setattr(Jobs, "_usual_name", slowly)
    job = begun(browser, jobs, form)
    told = job.run
    time.sleep(0.5)
    assert job.run == told


def test_two_tabs_start_the_same_run_and_one_is_told(
    browser: Browser, jobs: Jobs, form: dict[str, str]
) -> None:
    first, second = begun(browser, jobs, form), begun(browser, jobs, form)
    assert first.run == second.run
    replies: list[httpx2.Response] = []
    tabs = [
        threading.Thread(
            target=lambda key=job.key: replies.append(browser.post(f"/job/{key}/start", data=form))
        )
        for job in (first, second, first, second)
    ]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert sorted(reply.status_code for reply in replies) == [303, 409, 409, 409]
    told = next(reply for reply in replies if reply.status_code == 409)
    assert "started already, in another tab" in told.text
    running = next(job for job in (first, second) if job.stage is Stage.RUNNING)
    assert f"/job/{running.key}" in told.text
    until(lambda: (first.run / "starts").exists(), "start")
    (first.run / "end").touch()
    until(lambda: running.stage is Stage.DONE, "end")
    assert len((first.run / "starts").read_text().splitlines()) == 1


def test_stop_pressed_twice_is_one_interrupt_and_go_on_is_the_same_command(
    browser: Browser, jobs: Jobs, form: dict[str, str]
) -> None:
    job = begun(browser, jobs, form)
    browser.post(f"/job/{job.key}/start", data=form)
    until(lambda: (job.run / "starts").exists(), "start")
    page = browser.get(f"/job/{job.key}")
    assert page.headers["Content-Security-Policy"] == LIVE_POLICY
    assert '<script src="/live.js" defer>' in page.text
    for _ in range(3):
        assert browser.post(f"/job/{job.key}/stop", data=form).status_code == 303
    until(lambda: job.stage is Stage.STOPPED, "stop")
    assert (job.run / "interrupts").read_text() == "x"
    page = browser.get(f"/job/{job.key}")
    assert "Go on" in page.text
    assert "<script" not in page.text
    assert "script-src" not in page.headers["Content-Security-Policy"]
    browser.post(f"/job/{job.key}/start", data=form)
    until(lambda: len((job.run / "starts").read_text().splitlines()) == 2, "second start")
    (job.run / "end").touch()
    until(lambda: job.stage is Stage.DONE, "end")
    first, second = (job.run / "starts").read_text().splitlines()
    assert first == second
    assert browser.post(f"/job/{job.key}/stop", data=form).status_code == 303  # it stands still
    assert job.stage is Stage.DONE


def test_a_verb_heeds_stop_although_the_pages_were_started_in_the_background() -> None:
    told = PROGRAM.replace("run()", "print(signal.getsignal(signal.SIGINT).__name__)")
    # As a shell does with a command that ends in &.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.stdout.strip() == "default_int_handler", done.stderr


def test_a_failure_is_told_with_what_to_do(browser: Browser, jobs: Jobs, form) -> None:
    job = begun(browser, jobs, form | {"text-field": "text", "target": "http://busy/v1"})
    page = browser.get(f"/job/{job.key}").text
    assert job.stage is Stage.REFUSED
    assert "The target answers 429 (too many requests)." in page
    assert "Wait a minute, then go on." in page
    browser.post("/begin/audit", data=form | {"job": job.key})  # the uploads are still there
    until(lambda: job.stage is Stage.READY, "second check")
    browser.post(f"/job/{job.key}/start", data=form)
    until(lambda: (job.run / "starts").exists(), "start")
    (job.run / "end").write_text("error: The server is gone <i>.\n  next: Raise --max-cost 5.")
    until(lambda: job.stage is Stage.FAILED, "failure")
    page = browser.get(f"/job/{job.key}").text
    assert "The server is gone &lt;i&gt;." in page
    assert "Raise \u201cCap on cost\u201d 5." in page  # the field of the form, and not the option
    assert "Go on" in page


def test_what_can_hardly_decide_begins_only_when_told(browser: Browser, jobs: Jobs, form) -> None:
    job = begun(browser, jobs, form | {"text-field": "text"}, files=files("doubtful.jsonl"))
    assert job.doubtful
    reply = browser.post(f"/job/{job.key}/start", data=form)
    assert reply.status_code == 409
    assert "can hardly decide" in reply.text
    browser.post(f"/job/{job.key}/start", data=form | {"yes": "yes"})
    until(lambda: (job.run / "starts").exists(), "start")
    assert "--yes" in (job.run / "starts").read_text()


def test_a_run_is_named_by_its_documents_and_its_method(
    browser: Browser, jobs: Jobs, form, home: Path
) -> None:
    job = begun(browser, jobs, form, files=files("My contracts (2).jsonl"))
    assert job.run == home / "My-contracts-2-mba"
    job.run.mkdir(parents=True)
    (job.run / "result.json").write_text("{}")
    assert begun(browser, jobs, form, files=files("My contracts (2).jsonl")).run.name.endswith("-2")
    reply = browser.post(f"/job/{job.key}/start", data=form)
    assert reply.status_code == 409
    assert "finished meanwhile" in reply.text


def test_nothing_uploaded_outlives_the_pages(
    browser: Browser, jobs: Jobs, form, home: Path
) -> None:
    job = begun(browser, jobs, form)
    uploaded = job.sources["documents"].path
    assert uploaded.exists()
    assert not home.exists()  # a check writes nothing where runs are kept
    browser.post(f"/job/{job.key}/forget", data=form)
    assert not uploaded.exists()
    assert browser.get(f"/job/{job.key}").status_code == 404
    other = begun(browser, jobs, form)
    browser.post(f"/job/{other.key}/start", data=form)
    until(lambda: (other.run / "starts").exists(), "start")
    assert browser.post(f"/job/{other.key}/forget", data=form).status_code == 409
    jobs.close()
    assert not jobs._private.exists()
    assert (other.run / "interrupts").read_text() == "x"


def test_other_pages_of_the_same_browser_cannot_be_reached_by_a_key_that_is_none(
    browser: Browser, form: dict[str, str]
) -> None:
    assert browser.get("/job/../x").status_code == 404
    assert browser.get("/job/none").status_code == 404
    assert browser.post("/job/none/start", data=form).status_code == 404
    assert browser.get("/begin/armour").status_code == 404


def test_leakage_is_checked_and_started(browser: Browser, jobs: Jobs, access: Access) -> None:
    data = {"form-key": access.form_key, "target": "http://h/v1", "attacks": "pide", "prompts": "5"}
    reply = browser.post("/begin/leak", data=data, files={"corpus": ("c.jsonl", ROWS)})
    job = jobs.find(reply.headers["location"].split("/job/")[1])
    assert job is not None
    until(lambda: job.stage is Stage.READY, "check")
    assert job.run == jobs.home / "c-leak-pide"
    browser.post(f"/job/{job.key}/start", data=data)
    until(lambda: (job.run / "starts").exists(), "start")
    assert (job.run / "starts").read_text().split()[1:3] == ["leak", "--config"]
    now = browser.get(f"/job/{job.key}/now").json()
    assert (now["done"], now["total"]) == (0, 5)


@pytest.mark.parametrize("name", list(TASKS))
def test_every_question_is_an_option_of_its_verbs(name: str) -> None:
    import typer

    from ragwitness.cli.main import app

    task = TASKS[name]
    for verb, options in [(task.verb, ()), *((one.verb, one.options) for one in task.looks)]:
        command: Any = typer.main.get_command(app)
        for word in verb:
            command = command.get_command(None, word)
        known = {one.opts[0].lstrip("-").replace("_", "-") for one in command.params}
        asked = {one.option for one in task.every}
        assert (set(options) or asked) <= known
        assert set(options) <= asked
        if verb == task.verb and task.runs:
            assert "run" in known


# Evidence: a run is sealed, handed over and checked by clicks alone.


def test_a_seal_is_a_tick_and_its_key_stays_beside_the_runs(
    browser: Browser, jobs: Jobs, home: Path, form: dict[str, str]
) -> None:
    job = begun(browser, jobs, form | {"seal": "/etc/passwd"})
    assert job.options()["seal"] == str(home / "auditor.key")
    assert (
        "checked"
        in re.search(
            r'<input[^>]*id="seal"[^>]*>', browser.get(f"/begin/audit?job={job.key}").text
        )[0]
    )  # type: ignore[index]
    assert begun(browser, jobs, form).options()["seal"] is None


def test_a_sealed_file_is_checked_by_upload(browser: Browser, jobs: Jobs, form) -> None:
    given = {"form-key": form["form-key"], "key": "k", "seal": ""}
    pack = {"bundle": ("../../evil.zip", b"PK")}
    reply = browser.post("/begin/verify", data=given, files=pack)
    assert reply.status_code == 303, reply.text
    job = jobs.find(reply.headers["location"].split("/job/")[1])
    assert job is not None
    until(lambda: job.stage is Stage.DONE, "the check of the file")
    assert job.options() == {
        "bundle": str(job.folder / "bundle" / "evil.zip"), "key": "k", "seal": None, "trust": None,
        "checkpoint": None, "roots": None,
    }  # fmt: skip
    page = browser.get(f"/job/{job.key}").text
    assert "FAIL" in page
    assert "Check again with a key or a seal" in page
    verdict = browser.get(f"/job/{job.key}/verdict").text
    assert "&lt;b&gt;a score differs" in verdict
    assert "<b>a score" not in verdict


def test_without_a_file_nothing_is_checked(browser: Browser, form: dict[str, str]) -> None:
    reply = browser.post("/begin/verify", data={"form-key": form["form-key"]})
    assert "Nothing was uploaded" in browser.get(reply.headers["location"]).text


def test_a_sealed_run_says_so_and_only_its_own_form_takes_the_pack(
    browser: Browser, home: Path, access: Access
) -> None:
    run = audit_run(home / "sealed", fake_result(3))
    (run / "seal.json").write_text('{"key": "auditor+0+k"}')
    key = key_of(run)
    page = browser.get(f"/run/{key}").text
    assert hashlib.sha256(b'{"key": "auditor+0+k"}').hexdigest() in page
    assert "auditor+0+k" in page
    assert browser.post(f"/run/{key}/pack", data={"form-key": "x"}).status_code == 403
    assert browser.post("/run/0/pack", data={"form-key": access.form_key}).status_code == 404
    # What it keeps of its seal is gone: it says so, and makes no pack.
    reply = browser.post(f"/run/{key}/pack", data={"form-key": access.form_key})
    assert reply.headers["content-type"].startswith("text/html")
    assert "seal-secret.json" in reply.text


def test_the_finished_page_says_what_was_found_and_asks_again(
    browser: Browser, jobs: Jobs, form: dict[str, str], access: Access
) -> None:
    job = begun(browser, jobs, form)
    browser.post(f"/job/{job.key}/start", data={"form-key": access.form_key})
    until(lambda: (job.run / "starts").exists(), "start")
    audit_run(job.run, fake_result(3))
    (job.run / "end").write_text("")
    until(lambda: job.stage is Stage.DONE, "end")
    page = browser.get(f"/job/{job.key}").text
    assert headline(fake_result(3))[0] in page
    assert "Ask again with another method" in page
    # Its documents are still there.
    assert "mine.jsonl" in browser.get(f"/begin/audit?job={job.key}").text


def test_the_check_shows_what_a_trial_asked_and_heard(
    browser: Browser, jobs: Jobs, form: dict[str, str]
) -> None:
    job = begun(browser, jobs, form)
    told = {"method": "mba", "possible": False, "told": "4 of 4 pilot answers cannot be read"}
    job.seen["tried"] = [told | {"asked": [["Fill <in>", "I <will> not"]]}]
    page = browser.get(f"/job/{job.key}").text
    assert "mba</bdi> cannot be used" in page
    assert "Fill &lt;in&gt;" in page
    assert "I &lt;will&gt; not" in page


def test_hints_name_the_fields_of_the_form_and_not_the_options() -> None:
    assert (
        by_click("Give some (--known-in).")
        == "Give some (\u201cDocuments known to be inside\u201d)."
    )
    assert by_click("Give some with --known-in FILE.").endswith(
        "with \u201cDocuments known to be inside\u201d."
    )
    assert by_click("Raise --max-cost; see --max-costs, --fail-on in.") == (
        "Raise \u201cCap on cost\u201d; see --max-costs, --fail-on in."
    )
