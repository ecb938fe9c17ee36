"""`ragwitness view` in Chromium: by keyboard alone, in both schemes, on a narrow screen."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browsing import chromium, viewing, watch
from tests.unit.web.web_runs import collection_run, two_audits, unfinished_run

MOST_TABS = 120

# Contrast of every visible text with what is painted behind it (WCAG 2.2, 1.4.3), the least first.
CONTRAST = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, style = getComputedStyle(e);
    const text = walker.currentNode.textContent.trim();
    if (!text || !e.checkVisibility() || e.closest('.skip')) continue;
    const ink = parse(e.closest('svg') ? style.fill : style.color), paper = behind(e);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text.slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0]);
}"""

pytestmark = pytest.mark.slow

# What a screen reader would miss.
UNNAMED = """() => {
  const refers = e => (e.getAttribute('aria-labelledby') || '').split(' ')
    .some(id => id && document.getElementById(id));
  const named = e => e.getAttribute('aria-label') || e.querySelector(':scope > title')
    || refers(e) || e.getAttribute('alt');
  const wrong = [], say = e => wrong.push(e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll('svg, img'))
    if (!e.closest('[aria-hidden=true]') && !named(e)) say(e);
  for (const e of document.querySelectorAll('select, input:not([type=hidden])'))
    if (!e.labels.length) say(e);
  for (const e of document.querySelectorAll('a, button'))
    if (!e.textContent.trim() && !named(e)) say(e);
  for (const e of document.querySelectorAll('table'))
    if (!e.caption || !e.querySelector('th[scope=col]')) say(e);
  for (const e of document.querySelectorAll('section, article'))
    if (!named(e)) say(e);
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) < i).forEach(id => wrong.push('twice: ' + id));
  return wrong;
}"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real ``ragwitness view`` over five runs; the address that it prints."""
    root = tmp_path_factory.mktemp("runs")
    two_audits(root)
    collection_run(root / "collection")
    unfinished_run(root / "under-way", [("doc-1", "What is <b>it</b>?", "It is <i>so</i>.")])
    (root / "broken").mkdir()
    (root / "broken" / "result.json").write_text("{", encoding="utf-8")
    os.utime(root / "alpha", (4e9, 4e9))  # the newest, beta after it
    os.utime(root / "beta", (3e9, 3e9))
    with viewing([str(root)], root) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def site(printed: str) -> str:
    return printed.partition("/?")[0]


@pytest.fixture(scope="module")
def cookies(browser: Any, printed: str) -> Any:
    """What the printed address is exchanged for; it works once."""
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(printed)
    opened.wait_for_url("**/")
    found = context.cookies()
    assert [(one["httpOnly"], one["sameSite"]) for one in found] == [(True, "Strict")]
    other = browser.new_context().new_page()
    assert other.goto(printed).status == 401
    other.context.close()
    context.close()
    return found


@pytest.fixture
def page(browser: Any, site: str, cookies: Any) -> Iterator[Any]:
    """A page that fails its test on anything in the console, or any request off the loopback."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.add_cookies(cookies)
    opened = context.new_page()
    trouble = watch(opened)
    opened.goto(site + "/")
    yield opened
    context.close()
    assert trouble == []


def follow(page: Any, text: str) -> None:
    """Tab to the link or button of that text and press Enter, as without a mouse."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
            assert float(width.removesuffix("px")) >= 2  # where the keyboard is must be seen
            with page.expect_navigation():
                page.keyboard.press("Enter")
            return
    pytest.fail(f"no way by keyboard to {text!r}")


def check(page: Any, heading: str) -> None:
    """The landmarks, the headings in order, and names for everything."""
    assert heading in page.locator("h1").inner_text()
    for landmark in ("body > header", "main", "body > footer", "nav[aria-label]", "a.skip"):
        assert page.locator(landmark).count() >= 1, landmark
    assert page.locator("h1").count() == 1
    assert page.locator("[aria-current=page]").count() == 1
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(e => Number(e.tagName[1]))"
    )
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))
    assert page.evaluate(UNNAMED) == []


def test_from_the_list_to_a_document_by_keyboard(page: Any) -> None:
    check(page, "5 runs")
    assert "ends in the middle" in page.locator("table").inner_text()
    follow(page, "alpha")
    check(page, "in the database")
    assert page.locator("svg[role=img]").count() >= 5  # ROC, p-values, scores, tokens, cost
    first = page.locator("table th.id a").first.inner_text()
    follow(page, first)
    check(page, first)
    assert page.locator("pre.said").first.inner_text().startswith("Complete: ")
    assert page.locator("pre.answer mark").count() >= 1
    assert page.locator("table.told tbody tr").count() >= 5
    follow(page, "1")  # from a word to its query
    assert page.url.endswith("#q1")
    page.keyboard.press("Alt+ArrowLeft")
    page.goto(page.url.partition("#")[0])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def addresses(page: Any) -> list[str]:
    """One page of each kind."""
    links = {a.inner_text(): a.get_attribute("href") for a in page.locator("tbody th a").all()}
    keys = {name: link.removeprefix("/run/") for name, link in links.items()}
    return [
        "/",
        *links.values(),
        f"/run/{keys['under-way']}/document?id=doc-1",
        f"/run/{keys['alpha']}/document?id=record-0000",
    ]


def test_every_page_is_named_readable_and_narrow_enough(page: Any, site: str) -> None:
    papers = {}
    for address in addresses(page):
        page.goto(site + address)
        assert page.evaluate(UNNAMED) == [], address
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            least = page.evaluate(CONTRAST)[0]
            assert least[0] >= 4.5, (address, scheme, least)
            papers[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
        page.set_viewport_size({"width": 1200, "height": 900})
    assert papers["light"] != papers["dark"]


def test_untrusted_markup_stays_text(page: Any, site: str) -> None:
    address = next(a for a in addresses(page) if a.endswith("doc-1"))
    page.goto(site + address)
    assert page.locator("pre.said").first.inner_text() == "What is <b>it</b>?"
    assert page.locator("pre b, pre i").count() == 0
