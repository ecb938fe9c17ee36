"""Runs of many rows: pages that stay small, and searches that find what is there."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.types import Answer, Decision, Query
from ragwitness.membership.results.audit import RESULT_TYPE, strength
from ragwitness.report.html import render_page
from ragwitness.runner.response_store import ResponseStore, StoredQuery, query_key
from ragwitness.web.runs import ranked
from tests.support.markup import check
from tests.unit.report.fake_results import fake_result
from tests.unit.web.test_web_pages import Site, harmless
from tests.unit.web.web_runs import EVIL, audit_run, canary_run, synthesis_run

MANY = 900
_MOST = 300_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, str]:
    root = tmp_path_factory.mktemp("many")
    audit_run(root / "run", fake_result(MANY))
    made = Site(root)
    return made, made.run("run")


def names(page: str) -> list[str]:
    return re.findall(r'/document\?id=(record-\d+)"', page)


def test_the_page_of_a_run_stays_small_and_leads_to_all_rows(site: tuple[Site, str]) -> None:
    made, run = site
    page = made.get(run)
    harmless(page)
    assert len(page.encode()) < _MOST
    assert len(names(page)) <= 180
    assert f'href="{run}/rows?group=in"' in page
    assert "The first 50 of" in page


@pytest.mark.slow
def test_every_document_is_on_one_page_of_the_list(site: tuple[Site, str]) -> None:
    made, run = site
    address: str | None = f"{run}/rows"
    seen: list[str] = []
    while address is not None:
        page = made.get(address)
        assert len(page.encode()) < _MOST
        seen += names(page)
        found = re.search(r'href="([^"]+)" rel="next"', page)
        address = html.unescape(found[1]) if found else None
    expected = sorted(fake_result(MANY).verdicts, key=strength)
    assert seen == [one.document for one in expected]
    harmless(page)


def test_search_and_group_work_across_pages(site: tuple[Site, str]) -> None:
    made, run = site
    result = fake_result(MANY)
    inside = {one.document for one in result.verdicts if one.decision is Decision.IN}
    page = made.get(f"{run}/rows?group=in&page=2")
    harmless(page)
    assert set(names(page)) <= inside
    assert f"{len(inside)} of 900 documents" in page
    best = [one.document for one in ranked(result) if one.document in inside]
    assert names(page) == best[50:100]
    assert "group=in&amp;page=1" in page
    assert names(made.get(f"{run}/rows?search=RECORD-0834")) == ["record-0834"]
    assert "Nothing fits" in made.get(f"{run}/rows?search=nobody")


@pytest.mark.parametrize(
    "query", ["page=0", "page=-1", "page=x", "page=99999999999999", "sort=no", "group=no", "a=b"]
)
def test_what_is_not_known_is_ignored(site: tuple[Site, str], query: str) -> None:
    made, run = site
    assert len(names(made.get(f"{run}/rows?{query}"))) == 50


def test_hostile_names_and_searches_stay_text(tmp_path: Path) -> None:
    result = fake_result(80)
    first = replace(result.verdicts[0], document=EVIL)
    audit_run(tmp_path / "run", replace(result, verdicts=(first, *result.verdicts[1:])))
    made = Site(tmp_path)
    run = made.run("run")
    page = made.get(f"{run}/rows?search=%3Cscript%3E%22%27&page=1")
    harmless(page)
    assert "<script>" not in page
    assert "\u202e" not in page


def test_rows_of_other_kinds_are_listed_too(tmp_path: Path) -> None:
    canary_run(tmp_path / "probe")
    synthesis_run(tmp_path / "made")
    made = Site(tmp_path)
    for name in ("probe", "made"):
        harmless(made.get(f"{made.run(name)}/rows"))
        harmless(made.get(f"{made.run(name)}/asked"))


def test_documents_asked_by_a_run_without_a_result_are_paged(tmp_path: Path) -> None:
    with ResponseStore(tmp_path / "going" / "answers.jsonl") as journal:
        for n in range(400):
            query = Query(f"about {n}")
            asked = StoredQuery("t", "documents", f"record-{n:04d}", query)
            journal.put(query_key("t", query), Answer("so"), asked)
    made = Site(tmp_path)
    run = made.run("going")
    page = made.get(run)
    assert len(names(page)) == 60
    assert f'href="{run}/asked?group=documents"' in page
    assert names(made.get(f"{run}/asked?page=8"))[-1] == "record-0399"
    assert len(names(made.get(f"{run}/rows?search=record-00"))) == 50


@pytest.mark.slow
def test_the_report_of_a_big_run_is_a_page_that_says_where_the_rest_is() -> None:
    page = render_page(RESULT_TYPE.report(fake_result(1500)))
    check(page)
    assert len(page.encode()) < _MOST
    assert "All are in <code>result.json</code>" in page
    small = render_page(RESULT_TYPE.report(fake_result(200)))
    assert small.count('class="id"') == 200
    assert "The first" not in small
