"""A secret in other spellings is the same secret; other words are another."""

from __future__ import annotations

import unicodedata

import pytest

from ragwitness.text.secrets import Found, Secret, SecretIndex
from ragwitness.text.spellings import identity, row_of

LISTED = {
    "name": "Jos\u00e9 \u00c1lvarez",
    "person": "Evelyn van der Linden",
    "patient": "J\u00fcrgen O'Neill",
    "phone": "(713) 853-1234",
    "abroad": "+44 20 7946 0958",
    "home": "020 7946 0123",
    "e-mail": "jo.h@mail.example.org",
    "web": "https://www.example.org/a/b/",
    "file": "AB-123456",
    "born": "1980-03-12",
    "salary": "98,500",
    "time": "12:45",
    "double": "Jean-Pierre Dupont",
    "four": "Mar\u00eda del Carmen Garc\u00eda L\u00f3pez",
    "network": "5G",
    "short name": "Li",
    "chinese": "\u738b\u4f1f",
}
SECRETS = [Secret(text, kind, "r") for kind, text in LISTED.items()]


def found(text: str) -> set[str]:
    return {SECRETS[secret].kind for _, secret in SecretIndex(SECRETS).pairs([text])}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Jose Alvarez", "name"),
        (unicodedata.normalize("NFD", LISTED["name"]), "name"),
        ("\u00c1LVAREZ, JOS\u00c9", "name"),
        ("Jos&eacute; <b>&Aacute;lvarez</b>", "name"),
        ("J. Alvarez", "name"),
        ("jose_alvarez.pdf", "name"),
        ("Linden, Evelyn van der", "person"),
        ("van der Linden, Evelyn", "person"),
        ("Evelyn Linden", "person"),
        ("E. van der Linden", "person"),
        ("Evelyn VanDerLinden's", "person"),
        ("Juergen ONeill", "patient"),
        ("Jurgen O\u2019Neill", "patient"),
        ("+17138531234", "phone"),
        ("001 713 853 1234", "phone"),
        ("1-713-853-1234", "phone"),
        ("call 555 0100 713 853 1234 99 12", "phone"),
        ("713\u2013853\u20131234 x5", "phone"),
        ("\uff17\uff11\uff13 853 1234", "phone"),
        ("(020) 7946 0958", "abroad"),
        ("+44 (0)20 7946 0123", "home"),
        ("JO.H@MAIL.EXAMPLE.ORG", "e-mail"),
        ("jo.h (at) mail dot example dot org", "e-mail"),
        ("example.org/a/b", "web"),
        ("http://example[.]org/a/b?x=1", "web"),
        ("ab 123 456", "file"),
        ("12 March 1980", "born"),
        ("on March 12th, 1980", "born"),
        ("12.3.1980", "born"),
        ("03/12/1980", "born"),
        ("98,500", "salary"),
        ("98500 a year", "salary"),
        ("98.500", "salary"),
        ("at 12:45", "time"),
        ("J.-P. Dupont", "double"),
        ("Dr. Dupont", "double"),
        ("MRS LINDEN", "person"),
        ("Frau van der Linden", "person"),
        ("Mar\u00eda Garc\u00eda", "four"),
        ("Maria Garcia L\u00f3pez", "four"),
        ("the 5G net", "network"),
        ("Mr. Li, who", "short name"),
        ("he said li came", "short name"),
        ("\u6211\u8ba4\u8bc6\u738b\u4f1f\u5148\u751f", "chinese"),
    ],
)
def test_a_secret_in_another_spelling_is_found(text: str, kind: str) -> None:
    assert kind in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "713-853-12345",
        "27138531234",
        "7 units, 13 of 853, then 1234",
        "Jose and Alvarez",
        "Joseph Alvarez",
        "a linden tree in E flat",
        "Ask: the li is a unit, Lie too",
        "example.org/a/c",
        "AB-1234567",
        "13 March 1980",
        "12 March 1981",
        "98 of 500",
        "12, then 45",
        "Dr. Dupontel",
        "Carmen Garc\u00eda",
        "",
    ],
)
def test_other_words_are_no_secret(text: str) -> None:
    assert not found(text)


def test_short_names_are_words_with_capitals_and_not_function_words() -> None:
    names = [Secret(one, "name", "") for one in ("Do", "An", "Al Lin", "Si Ng", "X", "42")]
    index = SecretIndex(names)
    text = "Do not go. An owl is all in, so sing at 42: x. do it, an owl"
    assert index.find(text) == []
    assert {one.secret for one in index.find("We met Do and An with Al Lin and Si Ng")} == {
        0,
        1,
        2,
        3,
    }


def test_a_find_is_a_range_of_the_text_as_it_stands() -> None:
    text = "Stra\u00dfe & Jos&eacute;\u00a0<i>A\u0301lvarez</i>!"
    one, *_ = SecretIndex(SECRETS).find(text)
    assert text[one.start : one.end] == "Jos&eacute;\u00a0<i>A\u0301lvarez"[: one.end - one.start]
    assert one.start == text.index("Jos")
    assert text[: one.end].rstrip("\u0301").endswith("lvarez")
    assert isinstance(one, Found)


def test_names_are_reordered_and_canaries_are_not() -> None:
    index = SecretIndex([Secret("Blue Zebra", "canary", ""), Secret("Red Zebra", "name", "")])
    assert index.pairs(["Zebra Blue", "Zebra Red", "BLUE zebra"]) == {(1, 1), (2, 0)}


def test_parts_of_a_name_are_sought_where_asked_for() -> None:
    secrets = [Secret("Evelyn van der Linden", "name", "r")]
    text = "Our van der Linden, called Evelyn, met a van"
    assert SecretIndex(secrets).find(text) == []
    said = [text[one.start : one.end] for one in SecretIndex(secrets, parts=True).find(text)]
    assert said == ["van der Linden", "Linden", "Evelyn"]


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Jose Alvarez", "\u00c1lvarez, Jos\u00e9", "name"),
        ("(713) 853-1234", "+1 713 853 1234", "phone"),
        ("http://www.example.org/", "example.org", "web"),
        ("A.B@example.org", "a.b@example.org", "e-mail"),
    ],
)
def test_two_listings_of_one_secret_are_one(first: str, second: str, kind: str) -> None:
    assert identity(first, kind) == identity(second, kind)
    assert identity(first, kind) != identity("Rosa Zhou 99", kind)


def test_a_text_of_signs_alone_has_no_letters() -> None:
    assert row_of("\u2014 \u200b ...").letters == ""
