"""The pages in Chromium where something goes wrong, by clicks alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragwitness.text.sample import load_sample
from tests.support.browsing import chromium, viewing
from tests.support.tenants_rag import tenants_rag
from tests.unit.evidence.forger import Forger, audited, called
from tests.unit.evidence.test_evidence_lies import signed_again

pytestmark = pytest.mark.slow
_PATIENCE = 300_000  # milliseconds; the cores may be busy
_GOLDEN = Path(__file__).parents[1] / "golden" / "attest"


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of whoever clicks: 200 files of which three are bad, and others outside."""
    folder, sample = tmp_path_factory.mktemp("owner"), load_sample()
    (folder / "mine").mkdir()
    for n, one in enumerate(sample[:197]):
        (folder / "mine" / f"story {n}.txt").write_text(one.text)
    bad = {"cut.pdf": b"%PDF-1.7\n", "noise.txt": bytes(range(256)) * 9, "void.txt": b" \n"}
    for name, data in bad.items():
        (folder / "mine" / name).write_bytes(data)
    for name, part in {"few": sample[:4], "outside": sample[300:340]}.items():
        rows = (json.dumps({"id": one.id, "text": one.text}) for one in part)
        (folder / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def system() -> Iterator[str]:
    with tenants_rag({"sk-of-the-owner": load_sample()[:2] + load_sample()[100:150]}) as url:
        yield url


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pack of a sealed and logged audit, and the same by a later version."""
    folder = tmp_path_factory.mktemp("sealed")
    run = audited(folder, "--runs-log", folder / "log")
    assert called("seal", run, "-o", folder / "pack.zip") == 0
    forger = Forger.of(folder / "pack.zip", folder / "auditor.key")
    forger.manifest["version"] = "ragwitness/pack/v9"
    (folder / "later.zip").write_bytes(signed_again(forger))
    return folder


@pytest.fixture(scope="module")
def cookies(owner: Path, packed: Path) -> Iterator[tuple[Any, str, Any]]:
    """A browser, the address of the pages, and what the address that works once gave for it.

    The pack is made first: the browser's driver keeps a loop in this thread.
    """
    with viewing([], owner) as printed, chromium() as browser:
        first = browser.new_context()
        first.new_page().goto(printed)
        yield browser, printed.partition("/?")[0], first.cookies()


@pytest.fixture
def opened(cookies: tuple[Any, str, Any]) -> Iterator[Callable[..., Any]]:
    """Opens a page of the site in a context of its own."""
    browser, site, given = cookies
    contexts = []

    def make(address: str, **settings: Any) -> Any:
        contexts.append(browser.new_context(**settings))
        contexts[-1].add_cookies(given)
        page = contexts[-1].new_page()
        page.set_default_timeout(_PATIENCE)
        page.goto(site + address)
        return page

    yield make
    for one in contexts:
        one.close()


def press(page: Any, words: str) -> None:
    page.get_by_role("button", name=words, exact=True).click()


def field(page: Any, option: str, value: str | Path | list[Path]) -> None:
    place = page.locator(f"#{option}")
    if isinstance(value, str):
        place.fill(value)
    else:
        place.set_input_files(value)


def asked_for(page: Any, url: str, documents: Path | list[Path], outside: Path) -> None:
    """Fill in the form of an audit and press Check."""
    field(page, "documents", documents)
    field(page, "known-out", outside)
    field(page, "target", url)
    field(page, "key-env", "sk-of-the-owner")
    page.locator("#method").select_option("s2mia")
    press(page, "Check")


def reloaded(page: Any, words: str) -> str:
    """Load a page again, as it says itself, until it holds some words; return its text."""
    for _ in range(300):
        if words in (text := page.inner_text("body")):
            return str(text)
        assert "Load this page again" in text
        page.wait_for_timeout(1000)
        page.reload()
    pytest.fail(f"never {words!r}: {text}")


def test_200_files_of_which_three_are_bad_without_scripts(
    opened: Callable[..., Any], owner: Path, system: str
) -> None:
    page = opened("/begin/audit", java_script_enabled=False)
    asked_for(page, system, sorted((owner / "mine").iterdir()), owner / "outside.jsonl")
    text = reloaded(page, "What it would cost")
    assert "197 documents" in text
    assert "3 files could not be read and were left out" in text
    listed = page.locator("main").text_content()
    for name in ("cut.pdf", "noise.txt", "void.txt"):
        assert f"documents/{name}" in listed
    if page.locator("#yes").count():
        page.locator("#yes").check()
    press(page, "Start the audit")
    reloaded(page, "Queries sent")
    press(page, "Stop")
    reloaded(page, "It was stopped.")
    assert page.get_by_role("button", name="Go on").count() == 1


def test_two_tabs_start_one_run_and_a_lost_connection_loses_nothing(
    opened: Callable[..., Any], owner: Path, system: str
) -> None:
    page = opened("/begin/audit")
    asked_for(page, system, owner / "few.jsonl", owner / "outside.jsonl")
    page.get_by_text("What it would cost").wait_for()
    other = page.context.new_page()
    other.set_default_timeout(_PATIENCE)
    other.goto(page.url)
    for tab in (page, other):
        if tab.locator("#yes").count():
            tab.locator("#yes").check()
        press(tab, "Start the audit")
    assert "in another tab" in other.inner_text("main")
    # The browser loses the pages while the run goes on, and finds them again.
    page.context.set_offline(True)
    page.locator("#lost").wait_for()
    assert "do not answer any more" in page.inner_text("#lost")
    page.context.set_offline(False)
    page.get_by_text("It is finished.").wait_for()
    (run,) = (owner / "ragwitness-runs").glob("few*")
    summary = json.loads((run / "result.json").read_bytes())["summary"]
    asked = len((run / "answers.jsonl").read_bytes().splitlines())
    assert asked == 44
    assert summary["spent"]["queries"] <= 50  # started twice, everything would be asked twice


def checked(page: Any, **given: str | Path | list[Path]) -> str:
    """Fill in the form of a sealed file, and return what is said of it."""
    for option, value in given.items():
        field(page, option, value)
    press(page, "Check the file")
    page.get_by_text("It is finished.").or_(page.get_by_text("It broke off.")).first.wait_for()
    if page.get_by_role("link", name="Read the report").count():
        page.get_by_role("link", name="Read the report").click()
    return str(page.inner_text("main") + page.inner_text("h1"))


def test_a_sealed_file_is_held_against_what_others_were_shown(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    window, trust = _GOLDEN / "window-v3.zip", _GOLDEN / "trust-v3.json"
    closed = _GOLDEN / "close-v3.checkpoint"
    (tmp_path / "other.checkpoint").write_bytes(closed.read_bytes().replace(b"\n", b"\n9", 1))
    seen = [closed, tmp_path / "other.checkpoint"]
    assert "PASS" in checked(
        opened("/begin/verify"), bundle=window, trust=trust, checkpoint=[closed]
    )
    assert "FAIL" in checked(opened("/begin/verify"), bundle=window, trust=trust, checkpoint=seen)
    (tmp_path / "roots.pem").write_text("no certificate")
    text = checked(opened("/begin/verify"), bundle=window, roots=tmp_path / "roots.pem")
    assert "--roots does not apply to a bundle" in text


def test_a_pack_of_another_version_by_upload_names_it(
    opened: Callable[..., Any], packed: Path
) -> None:
    seen = packed / "log" / "checkpoint"
    good = checked(opened("/begin/verify"), bundle=packed / "pack.zip", checkpoint=[seen])
    assert "PASS" in good
    text = checked(opened("/begin/verify"), bundle=packed / "later.zip", checkpoint=[seen])
    assert "ragwitness/pack/v9" in text
    assert "PASS" not in text
