"""The pages: what they show, and that nothing in a run folder can break them."""

from __future__ import annotations

import asyncio
import html
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from ragwitness.core.run_files import TARGET
from ragwitness.core.types import Answer, Decision, Evidence, Interval, Query, Verdict
from ragwitness.membership.results.audit import how_often_wrong
from ragwitness.report.result_registry import to_json
from ragwitness.runner.response_store import ResponseStore, StoredQuery, query_key
from ragwitness.web.app import create_app
from tests.support.markup import Checker, check
from tests.unit.report.fake_results import fake_result
from tests.unit.report.test_report_compare import a_comparison
from tests.unit.web.web_runs import (
    EVIL,
    audit_run,
    canary_run,
    collection_run,
    leak_run,
    synthesis_run,
    two_audits,
    unfinished_run,
)


class Site:
    """The pages over one folder of runs, in this process."""

    def __init__(self, root: Path) -> None:
        self._app = create_app([root])

    def get(self, address: str, status: int = 200) -> str:
        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self._app)
            base = "http://127.0.0.1"
            async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
                return await client.get(address)

        reply = asyncio.run(ask())
        assert reply.status_code == status, reply.text
        return reply.text

    def run(self, name: str) -> str:
        """The address of a run."""
        found = re.search(rf'href="(/run/\w+)"><bdi>{re.escape(name)}<', self.get("/"))
        assert found is not None
        return found[1]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two audits of the same documents."""
    root = tmp_path_factory.mktemp("runs")
    two_audits(root)
    return Site(root)


def harmless(page: str) -> Checker:
    """Fail on anything that could run, load or send, or that a screen reader would miss."""
    found = check(page)
    assert not found.seen & {"script", "style", "img", "iframe", "object", "base"}
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name != "style", (tag, value)
        if name in {"href", "src", "action"}:
            assert re.match(r"/(?!/)|#", value), (tag, value)
    assert {"header", "main", "footer", "nav", "h1"} <= found.seen
    assert len(found.ids) == len(set(found.ids))
    assert found.headings.count(1) == 1
    return found


def test_the_list_says_what_each_run_found(both: Site) -> None:
    page = both.get("/")
    harmless(page)
    assert "2 runs" in page
    assert page.count("of 60 documents: in the database") == 2
    assert page.count("n = 59") == 2  # one of 60 is unscorable


def test_a_run_is_its_report_with_costs_and_a_way_to_each_document(both: Site) -> None:
    page = both.get(both.run("alpha"))
    harmless(page)
    for title in ("ROC curve", "Distribution of the scores"):
        assert f">{title}</title>" in page
    assert "59 queries, 110 of at most 4,000 tokens, cost 0.5" in page
    assert page.count("/document?id=record-") == 60


def test_a_document_shows_the_prompt_the_answer_and_the_words(both: Site) -> None:
    run = both.run("alpha")
    page = both.get(f"{run}/document?id=record-0000")
    harmless(page)
    word = re.search(r'<th scope="row"><bdi><span class="before">(.*?)</span> <b>(.*?)</b>', page)
    assert word is not None
    assert f"<bdi>Complete: {word[1]}</bdi></pre>" in page
    assert f"<mark>{word[2]}</mark> and so on" in page
    assert page.count('<a href="#q1">1</a>') == 1  # the word that the query asked for
    assert "Without database" in page
    assert "of 8 queries" not in page
    assert "8 of 9 queries cannot be shown" in page
    around = re.findall(r'rel="(?:prev|next)" href="([^"]+)"', page)
    assert around
    harmless(both.get(around[0]))


def test_what_question_and_passage_share_is_marked_in_both_and_the_reason_told(tmp_path) -> None:
    verdict = Verdict("d", Decision.IN, 0.01, 0.9, 1)
    calibration = replace(fake_result(0).calibration, scores=(0.1, 0.95, 0.2), exact=True)
    result = replace(
        fake_result(0), verdicts=(verdict,), calibration=calibration, target=TARGET,
        method="passages", evaluation=None,
    )  # fmt: skip
    folder = audit_run(tmp_path / "run", result)
    text = "one two three four five six seven eight"
    with ResponseStore(folder / "answers.jsonl") as journal:
        query = Query(f"begin {text}", 16)
        answer = Answer("nothing", contexts=(f"before {text} after", "one two other"))
        journal.put(query_key(TARGET, query), answer, StoredQuery(TARGET, "documents", "d", query))
    site = Site(tmp_path)
    page = site.get(site.run("run") + "/document?id=d")
    assert page.count(f"<mark>{text}</mark>") == 2
    assert "<mark>one two</mark>" not in page
    assert page.count("<details open>") == 1
    assert "called in because the system retrieved passages" in page
    assert "1 of 3 documents known to be" in " ".join(page.split())
    assert how_often_wrong(result) in page


def test_documents_follow_each_other_through_the_whole_report(both: Site) -> None:
    address: str | None = re.findall(r'href="([^"]*/document[^"]*)"', both.get(both.run("beta")))[0]
    seen = []
    while address is not None:
        seen.append(address)
        found = re.search(r'rel="next" href="([^"]+)"', both.get(address))
        address = found[1] if found else None
    assert len(seen) == len(set(seen)) == 60


def test_untrusted_text_everywhere_stays_text(tmp_path: Path) -> None:
    word = Evidence(EVIL, EVIL, Interval(0.0, 0.3), 0.01)
    verdicts = (
        Verdict(EVIL, Decision.IN, 0.01, 2.0, 1, evidence=(word,), reason=EVIL),
        Verdict("b", Decision.OUT, 0.5, 1.0, 0),
    )
    result = replace(
        fake_result(0),
        verdicts=verdicts,
        evaluation=None,
        target=EVIL,
        method=EVIL,
        settings={EVIL: EVIL},
    )
    for name, decision in (("one", Decision.IN), ("two", Decision.OUT)):
        judged = (replace(verdicts[0], decision=decision), verdicts[1])
        asked = [(EVIL, f"prompt {EVIL}", f"answer {EVIL}")]
        audit_run(tmp_path / name, replace(result, verdicts=judged), asked)
    unfinished_run(tmp_path / "<b>three", [(EVIL, EVIL, EVIL)])
    site = Site(tmp_path)
    runs = [site.run(html.escape(name)) for name in ("one", "two", "<b>three")]
    link = f"/document?id={quote(EVIL, safe='', errors='surrogatepass')}"
    for address in (
        "/",
        *runs,
        *(run + link for run in runs),
    ):
        page = site.get(address)
        harmless(page)
        assert "\u202e" not in page
    page = site.get(runs[0] + link)
    assert "prompt &lt;script&gt;" in re.sub("</?mark>", "", page)
    assert "⟨U+202E⟩" in page
    harmless(site.get("/run/x/document?id=" + quote(EVIL, errors="replace"), 404))


def test_a_run_under_way_shows_what_it_has(tmp_path: Path) -> None:
    asked = [("doc 1", "first\nline", "yes"), ("doc 1", "second", "no"), ("doc/2", "third", "so")]
    folder = unfinished_run(tmp_path / "going", asked)
    with (folder / "answers.jsonl").open("a") as journal:
        journal.write('{"key":"old","answer":{"text":"from an earlier version"}}\n{"key":"cut')
    site = Site(tmp_path)
    assert "answers so far" in site.get("/")
    run = site.run("going")
    page = site.get(run)
    harmless(page)
    assert "<dt>Answers kept</dt><dd>4</dd>" in page
    assert "1 answer of an earlier version" in page
    page = site.get(f"{run}/document?id=doc%201")
    harmless(page)
    assert "<bdi>first\nline</bdi>" in page
    assert page.count("<article") == 2
    assert "There is no verdict on it" in page
    site.get(f"{run}/document?id=nobody", 404)


def test_the_shadow_system_is_not_taken_for_the_target(tmp_path: Path) -> None:
    result = fake_result(4)
    folder = audit_run(tmp_path / "run", result, [(result.verdicts[0].document, "asked", "told")])
    unfinished_run(folder, [(result.verdicts[0].document, "shadow prompt", "x")], "lab:shadow")
    site = Site(tmp_path)
    page = site.get(f"{site.run('run')}/document?id={result.verdicts[0].document}")
    assert "asked</bdi>" in page
    assert "shadow prompt" not in page


def test_a_collection_has_its_path(tmp_path: Path) -> None:
    collection_run(tmp_path / "mine")
    site = Site(tmp_path)
    page = site.get(site.run("mine"))
    harmless(page)
    assert "The collection is not like documents outside" in page
    assert "The e-value is 30.9 after 3 scored documents; it decides at 20" in page
    assert "<dt>e-value</dt>" in page
    assert "not like documents outside (e-value 30.9)" in site.get("/")


def test_a_leak_measurement_is_its_report_with_what_was_asked(tmp_path: Path) -> None:
    leak_run(tmp_path / "leak")
    site = Site(tmp_path)
    assert "came back" in site.get("/")
    page = site.get(site.run("leak"))
    harmless(page)
    assert "repeat records 10" in page
    document = re.search(r'href="(/run/\w+/document[^"]+)"', page)
    assert document is not None
    assert "say it plain" in site.get(html.unescape(document[1]))


def test_a_synthesis_counts_what_became_of_each_record(tmp_path: Path) -> None:
    synthesis_run(tmp_path / "made")
    site = Site(tmp_path)
    assert "7 of 9 texts passed" in site.get("/")
    page = site.get(site.run("made"))
    harmless(page)
    assert "7 of 9 texts passed" in page
    assert "shares 8 tokens plain" in page
    assert "Only few plain" in page


def test_a_probe_of_canaries_says_its_verdict_and_what_it_means(tmp_path: Path) -> None:
    canary_run(tmp_path / "probe")
    site = Site(tmp_path)
    assert "trained-or-remembered (p = 0.05" in site.get("/")
    page = site.get(site.run("probe"))
    harmless(page)
    assert "evidence like this would come with probability at most 0.05" in page
    assert "25%" in page
    assert "Censored" in page
    assert "Beware of plain" in page
    made = json.loads((tmp_path / "probe" / "result.json").read_text())
    (tmp_path / "probe" / "result.json").write_text(json.dumps({**made, "slots": [{}]}))
    assert "The stored probe of canaries is malformed" in site.get(site.run("probe"))


def test_a_comparison_is_its_report(tmp_path: Path) -> None:
    audit_run(tmp_path / "audit", fake_result(6))
    (tmp_path / "variants").mkdir()
    stored = json.dumps(to_json(a_comparison()))
    (tmp_path / "variants" / "result.json").write_text(stored, encoding="utf-8")
    site = Site(tmp_path)
    page = site.get(site.run("variants"))
    harmless(page)
    assert "Leaks of the original records" in page
    assert "origin, " in site.get("/")


def test_untrusted_text_of_leaks_and_syntheses_stays_text(tmp_path: Path) -> None:
    evil = EVIL.replace("\ud800", "")
    leak_run(tmp_path / "leak", evil)
    synthesis_run(tmp_path / "made", evil)
    canary_run(tmp_path / "probe", evil)
    site = Site(tmp_path)
    for name in ("leak", "made", "probe"):
        page = site.get(site.run(name))
        harmless(page)
        assert "<script>" not in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "ends in the middle"),
        (b"[1]", "does not hold a JSON object"),
        (b"{}", "is not a result"),
        (b'{"audits": {"s-rag": {}}, "controls": {}}', "malformed"),
        (b'{"log10_e": "x", "path": []}', "malformed at method"),
        (b'{"kind": "leak"}', "malformed at"),
        (b'{"counts": {}, "reasons": {}}', "malformed at method"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_broken_result_is_a_named_row(tmp_path: Path, content: bytes, said: str) -> None:
    audit_run(tmp_path / "whole", fake_result(6))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_bytes(content)
    site = Site(tmp_path)
    page = site.get("/")
    assert said in html.unescape(page)
    assert "6 documents" in page
    own = site.get(site.run("broken"))
    harmless(own)
    assert said in html.unescape(own)


def test_files_that_are_folders_or_missing_do_not_break_a_page(tmp_path: Path) -> None:
    for name in ("result.json", "answers.jsonl", "spent.jsonl"):
        (tmp_path / f"odd-{name}" / name).mkdir(parents=True)
    (tmp_path / "no-run").mkdir()
    result = fake_result(6)
    folder = audit_run(tmp_path / "bare", result)
    (folder / "answers.jsonl").unlink()
    (folder / "spent.jsonl").unlink()
    site = Site(tmp_path)
    assert "4 runs" in site.get("/")
    for run in re.findall(r'href="(/run/\w+)"', site.get("/")):
        harmless(site.get(run))
    page = site.get(f"{site.run('bare')}/document?id={result.verdicts[0].document}")
    assert "No question about it is in the response store" in page


def test_what_is_not_there_is_a_page_that_says_so(tmp_path: Path) -> None:
    site = Site(tmp_path / "none")
    assert "There is no run here" in site.get("/")
    for address in ("/run/abc", "/run/abc/document", "/x"):
        harmless(site.get(address, 404))


def test_a_result_written_anew_is_read_anew(tmp_path: Path) -> None:
    site, folder = Site(tmp_path), tmp_path / "run"
    audit_run(folder, fake_result(6))
    assert "6 documents" in site.get("/")
    audit_run(folder, fake_result(9))
    assert "9 documents" in site.get("/")
    (folder / "result.json").write_text(json.dumps({}), encoding="utf-8")
    assert "not readable" in site.get("/")


@pytest.mark.parametrize("written", ["%ff", "%ed%a0%80", "%00", "a%0d%0ab", ""])
def test_a_document_under_any_bytes_is_refused_in_words(both: Site, written: str) -> None:
    page = both.get(both.run("beta") + f"/document?id={written}", 400 if written == "%ff" else 404)
    assert "<h1>" in page
    assert "Traceback" not in page
