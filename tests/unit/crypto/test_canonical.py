"""RFC 8785's own examples, and every text that is not the one of its value."""

import enum
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import MAX_SAFE, U64_MAX, canonical, parse, parse_u64, u64_text

LIMIT = 10_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_SAFE, MAX_SAFE) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_strings_and_literals_are_those_of_rfc_8785():
    text = r"""{"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]}"""  # §3.2.2, without its numbers
    expected = (
        "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c"
        "22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d"
    )
    assert canonical(json.loads(text)).hex() == expected


def test_names_are_sorted_as_in_rfc_8785():
    value = {  # §3.2.3
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical(value)).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


def test_whole_numbers_up_to_the_safe_one():
    class Three(enum.IntEnum):
        THREE = 3

    assert canonical([0, -1, MAX_SAFE, -MAX_SAFE, Three.THREE]) == (
        b"[0,-1,9007199254740991,-9007199254740991,3]"
    )


@settings(derandomize=True, max_examples=150)
@given(VALUES)
def test_reading_gives_back_what_was_written(value):
    assert parse(canonical(value), LIMIT) == value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (MAX_SAFE + 1, "2\\^53"),
        (-MAX_SAFE - 1, "2\\^53"),
        (1.0, "float"),
        (float("nan"), "float"),
        (b"x", "bytes"),
        ({1: "x"}, "name"),
        ("\ud800", "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ({"a": {1, 2}}, "set"),
    ],
)
def test_what_has_no_canonical_form_is_refused(value, why):
    with pytest.raises(InputError, match=why):
        canonical(value)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        (b'{"a":1,"a":2}', "duplicate"),
        (b'{"a":{"b":1,"b":1}}', "duplicate"),
        (b"1.0", "number"),
        (b"1e3", "number"),
        (b"NaN", "number"),
        (b"-Infinity", "number"),
        (b"9007199254740992", "number"),
        (b"9" * 5000, "number"),
        (b"-0", "canonical"),
        (b'{"b":1,"a":2}', "canonical"),
        (b'{"a": 1}', "canonical"),
        (b'{"a":1}\n', "canonical"),
        (b'"\\u0041"', "canonical"),
        (b'"\\/"', "canonical"),
        (b'"\\ud800"', "surrogate"),
        (b'"\xff"', "utf8"),
        (b'"\xed\xa0\x80"', "utf8"),
        (b"\xef\xbb\xbf1", "syntax"),
        (b"", "syntax"),
        (b"{} {}", "syntax"),
        (b"01", "syntax"),
        (b"[1,]", "syntax"),
        (b"[" * 70 + b"]" * 70, "depth"),
        (b"[" * 4900 + b"]" * 4900, "depth"),
        (b'"' + b"x" * LIMIT + b'"', "size"),
    ],
)
def test_each_other_text_is_refused_by_name(text, check):
    with pytest.raises(VerificationError) as found:
        parse(text, LIMIT, "thing")
    assert found.value.check == f"thing.{check}"


def test_numbers_of_64_bits_travel_as_text():
    assert parse_u64(u64_text(U64_MAX), "n") == U64_MAX
    for text in ("", "-1", "+1", "01", "1 ", " 1", "1.0", "1_0", "\u0663", str(U64_MAX + 1), "1\n"):
        with pytest.raises(VerificationError) as found:
            parse_u64(text, "n")
        assert found.value.check == "n"
    for value in (-1, U64_MAX + 1, True, 1.0):
        with pytest.raises(InputError):
            u64_text(value)


def test_deep_nesting_is_refused_whatever_the_recursion_limit():
    """Packages raise that limit; Python's reader then overflows the stack of the process."""
    script = """
import sys
from ragwitness.crypto.hashing import parse
from ragwitness.core.errors import VerificationError
sys.setrecursionlimit(1_000_000)
for text in (b"[" * 500_000, b'{"a":' * 500_000, b'["\\\\\\\\",' * 500_000, b'["]]]",' * 500_000):
    try:
        parse(text, 1 << 24)
    except VerificationError as error:
        print(error.check)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["json.depth"] * 4), done.stderr


def test_brackets_in_texts_and_side_by_side_are_no_nesting():
    for value in (["[" * 500, '"[[' * 100, "\\"], [[]] * 500, {"a": ["{" * 99]}):
        assert parse(canonical(value), 1 << 20) == value
    deep = json.loads("[" * 65 + "]" * 65)
    assert parse(canonical(deep), 1 << 20) == deep
