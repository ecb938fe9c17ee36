"""Texts that read alike have one canonical form, and others have another."""

from __future__ import annotations

import base64
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.text.words import TABLE, canonical_places, canonical_text, unquoted, unseen


@pytest.mark.parametrize("rule", TABLE["rule"], ids=lambda rule: rule["name"])
def test_the_example_of_a_rule_reads_as_it_says(rule: dict[str, str]) -> None:
    assert canonical_text(rule["example"]) == rule["reads"] != rule["example"]
    assert canonical_text(rule["reads"]) == rule["reads"]


@given(st.text(st.characters() | st.sampled_from("<b>&#;*_|~%\\u0A41 "), max_size=60))
def test_every_character_comes_from_a_place_of_the_text(text: str) -> None:
    plain, places = canonical_places(text)
    assert plain == canonical_text(text)
    for at, (start, end) in enumerate(places or ()):
        assert 0 <= start < end <= len(text)
        assert plain[at] in {text[start:end], " "} or end - start > 1 or not text.isascii()


def test_a_place_is_that_of_what_a_reader_sees() -> None:
    text = "So <b>J</b>os&eacute; has VG9tIEJha2Vy"
    plain, places = canonical_places(text)
    assert plain == "So Jose has Tom Baker"
    assert places is not None
    assert [text[a:b] for a, b in places[3:7]] == ["J", "o", "s", "&eacute;"]
    assert text[places[12][0] : places[-1][1]] == "VG9tIEJha2Vy"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("\u0412\u041e\u041b\u041a\u041e\u0412", "\u0412\u043e\u043b\u043a\u043e\u0432"),
        ("\u039d\u0399\u039a\u039f\u03a3", "\u039d\u03af\u03ba\u03bf\u03c2"),
        (unicodedata.normalize("NFD", "\ud55c\uad6d\uc5b4 \u304c"), "\ud55c\uad6d\uc5b4 \u304c"),
        ("GROSS", "Gro\u00df"),
        ("line\r\n" + base64.encodebytes(b"Tom Baker saw the doctor " * 5).decode(),
         "line\r\n" + "Tom Baker saw the doctor " * 5 + "\n"),
    ],
)  # fmt: skip
def test_two_texts_that_read_alike_are_alike(first: str, second: str) -> None:
    assert canonical_text(first).casefold() == canonical_text(second).casefold()


@pytest.mark.parametrize(
    "text",
    [
        "Take 5 \u03bcg, not 5 mg.",  # a unit
        "Amir states emphatically: EMPHATICALLY incomprehensibilities",  # words in base64's letters
        "4471665522334455 and DE89370400440532013000 and 2024051207301545",  # numbers in pairs
        "\u60a3\u8005\u53d1\u70e7\u4e86, a < b and c > d, 2 & 3; <jane.doe@example.org>",
    ],
)
def test_what_only_looks_like_a_rule_stays(text: str) -> None:
    assert canonical_text(text) == text


def test_what_is_shown_as_nothing_is_unseen() -> None:
    assert all(map(unseen, "\u200b\u00ad\ufeff\u034f\ufe0f\u3164\x07\U000e0041"))
    assert not any(map(unseen, "a \n\u00a0\u0301\u2028\U0001f600"))


def test_long_texts_of_any_signs_take_no_time() -> None:
    begun = time.perf_counter()
    for one in (
        "a",
        "1",
        "ab1",
        "=",
        "Ab",
        "&",
        "&amp;",
        "<a ",
        "<a b=",
        "\\u",
        "%4",
        "_",
        "a/",
        "www.",
        "http://a/?",
    ):
        canonical_text(one * (100_000 // len(one)))
    assert time.perf_counter() - begun < 10


def test_what_was_sent_is_cut_off_an_error() -> None:
    sent = "Here is a record:\nTom has the flu."
    said = 'status 422: [{"input": "Here is a record:\\nTom has the flu."}]'
    assert unquoted(said, sent) == 'status 422: [{"input": " [what was sent]'
    assert unquoted("status 400: TOM has the flu", sent) == "status 400: [what was sent]"
    assert unquoted("status 500: out of memory", sent) == "status 500: out of memory"
    assert unquoted("", sent) == ""


@pytest.mark.parametrize(
    "dress",
    [
        str.upper,
        lambda text: text.replace(" ", "_"),
        lambda text: text.replace(" ", "&nbsp;"),
        lambda text: text.replace(" ", "%2520"),
        lambda text: text.replace(" ", "\\n"),
        lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    ],
    ids=["capitals", "underscores", "entities", "per cent", "line ends", "JSON"],
)
def test_what_was_sent_is_cut_off_however_it_is_written(dress: Callable[[str], str]) -> None:
    sent = "Retell: Ada Quill of Elm Row limps since spring."
    said = unquoted(f"refused: {dress('Ada Quill of Elm Row limps since spring.')}", sent)
    assert said == "refused: [what was sent]"
