"""A secret in another spelling is the same secret; other words are another."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from ragwitness.text.secrets import TABLE, Secret, SecretIndex, identity, name_of, row_of

EXAMPLES = [
    pytest.param(way["form"] or "id", example, id=f"{way['name']}: {example['listed']}")
    for way in TABLE["way"]
    for example in way["example"]
]


def _finds(secret: str, text: str, kind: str = "name") -> list[str]:
    found = SecretIndex([Secret(secret, kind, "")]).find(text)
    return [text[one.start : one.end] for one in found]


@pytest.mark.parametrize(("kind", "example"), EXAMPLES)
def test_the_examples_of_the_table(kind: str, example: dict[str, list[str]]) -> None:
    [listed, written, other] = [example[name] for name in ("listed", "written", "other")]
    assert _finds(listed, f"We said {listed} - here", kind)
    for text in written:
        assert _finds(listed, f"We said {text} - here", kind), text
    for text in other:
        assert not _finds(listed, f"We said {text} - here", kind), text


def test_every_way_has_something_that_it_finds_and_something_that_it_does_not() -> None:
    for way in TABLE["way"]:
        assert any(example["written"] for example in way["example"]), way["name"]
        assert any(example["other"] for example in way["example"]), way["name"]
    assert all(way["check"] in {"", "name", *(row["check"] for row in TABLE["context"])}
               for way in TABLE["way"])  # fmt: skip


def test_the_table_of_the_page_is_true() -> None:
    page = (Path(__file__).parents[3] / "docs/leak-measures.md").read_text(encoding="utf-8")
    table = re.search(r"\| listed \|.*\n\|---.*\n((?:\|.*\n)+)", page)
    assert table
    listed = ""
    for line in table[1].splitlines():
        secret, written, other = (cell.strip() for cell in line.strip("|").split("|"))
        listed = listed if secret.startswith("\u2013") else secret
        for cell, wanted in ((written, True), (other, False)):
            for text in cell.split(" \u00b7 "):
                assert bool(_finds(listed, f"We said\n{text}\n", "phone")) == wanted, text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Stra\u00dfe & Jos&eacute;\u00a0<i>A\u0301lvarez</i>!",
            "Jos&eacute;\u00a0<i>A\u0301lvarez",
        ),
        ("So Lindner's; \u00c1LVAREZ, JOS\u00c9", "\u00c1LVAREZ, JOS\u00c9"),
        ("Ask Jos\u00e9 Ram\u00f3n \u00c1lvarez.", "Jos\u00e9 Ram\u00f3n \u00c1lvarez"),
        ("It is Sm9zZSBBbHZhcmV6 here", "Sm9zZSBBbHZhcmV6"),
        ("Jos\u200b\u00e9 \u0410lvarez", "Jos\u200b\u00e9 \u0410lvarez"),
        (unicodedata.normalize("NFD", "Jos\u00e9 \u00c1lvarez"), "Jose\u0301 A\u0301lvarez"),
    ],
)
def test_a_find_is_a_range_of_the_text_as_it_stands(text: str, said: str) -> None:
    assert said in _finds("Jos\u00e9 \u00c1lvarez", text)


def test_a_canary_is_sought_as_it_stands() -> None:
    secrets = [Secret("Blue Zebra", "canary", ""), Secret("Red Zebra", "name", ""),
               Secret("Nora Quist", "canary", ""), Secret("Nora Vale", "name", ""),
               Secret("Schr\u00f6der", "canary", "")]  # fmt: skip
    texts = [
        "Zebra Blue",
        "Zebra Red",
        "BLUE zebra",
        "Nora B. Quist, Nora B. Vale",
        "Schr\u00f6ders A",
    ]
    assert SecretIndex(secrets).pairs(texts) == {(1, 1), (2, 0), (3, 3)}


def test_parts_of_a_name_are_sought_where_asked_for() -> None:
    secrets = [Secret("Evelyn van der Linden", "name", "r")]
    text = "Our van der Linden, called Evelyn, met a van"
    assert SecretIndex(secrets).find(text) == []
    said = [text[one.start : one.end] for one in SecretIndex(secrets, parts=True).find(text)]
    assert said == ["van der Linden", "Linden", "Evelyn"]


def test_a_short_telephone_number_may_be_parted_as_one_likes() -> None:
    for text in ("24-681", "246 81", "2-46-81"):
        assert _finds("24681", f"Call {text} now", "phone")
        assert text == "246 81" or not _finds("24681", f"Call {text} now", "id")


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Jose Alvarez", "\u00c1lvarez, Jos\u00e9", "name"),
        ("(713) 853-1234", "+1 713 853 1234", "phone"),
        ("http://www.example.org/", "example.org", "web"),
        ("A.B@example.org", "a.b@example.org", "e-mail"),
        ("7 November 1962", "07/11/62", "born"),
        ("7. Nov. 2004", "2004-11-07T00:00:00", "visit"),
        ("8 Oak St.", "8, Oak Street", "home"),
        ("Gartenstra\u00dfe 9", "Gartenstr. 9", "home"),
    ],
)
def test_two_listings_of_one_secret_are_one(first: str, second: str, kind: str) -> None:
    assert identity(first, kind) == identity(second, kind)
    assert identity(first, kind) != identity("Rosa Zhou 99", kind)


def test_names_in_a_long_row_of_signs_are_sought_in_time() -> None:
    index = SecretIndex([Secret("Nora Quist", "name", "")])
    for one in ("A-", "A'AA", "A (", "Aa ", "1/", "May ", "7 May ", "rosa(at)", "+1 ", "A. "):
        assert not index.find(one * 4000)


def test_a_text_of_signs_alone_has_no_letters() -> None:
    assert row_of("\u2014 \u200b ...").letters == ""


@pytest.mark.parametrize(
    ("text", "given", "family"),
    [
        ("Van Morrison", ("Van",), ("Morrison",)),  # a particle in front of nothing is a name
        ("Ludwig van Beethoven", ("Ludwig",), ("van", "Beethoven")),
        ("Linden, Evelyn van der", ("Evelyn",), ("van", "der", "Linden")),
    ],
)
def test_a_family_name_begins_with_the_first_particle_behind_a_name(
    text: str, given: tuple[str, ...], family: tuple[str, ...]
) -> None:
    assert name_of(text, "name") == (given, family)
