"""What others said, without secrets."""

from __future__ import annotations

import pytest

from ragwitness.core.quotes import (
    environment_secrets,
    hide,
    hide_in,
    quote,
    quote_error,
)


def test_the_longest_secret_is_hidden_first_and_short_values_stay() -> None:
    assert hide("abcdefgh abcdef 12345", ["abcdef", "abcdefgh", "12345"]) == "[key] [key] 12345"
    assert hide("x", ["", "x"]) == "x"


def test_parsed_json_is_searched_at_any_depth() -> None:
    value = {"secret!": [{"a": "my secret!"}, 3, None, True]}
    assert hide_in(value, ["secret!"]) == {"[key]": [{"a": "my [key]"}, 3, None, True]}
    assert hide_in(value, []) is value


def test_quotes_are_one_short_printable_line() -> None:
    assert quote("a\n\tb\x00c  sk-abcdef123 Bearer xyz") == "a bc [key] [key]"
    assert quote("x" * 999, longest=10) == "x" * 9 + "…"
    # Hidden before it is cut, so that no half of a key is left.
    assert quote("x" * 8 + "hunter2-hunter2", ["hunter2-hunter2"], longest=14) == "x" * 8 + "[key]"


def test_exceptions_are_quoted_by_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "hunter2-hunter2")
    monkeypatch.setenv("MY_COLOUR", "turquoise")
    assert (
        quote_error(ValueError("hunter2-hunter2 is turquoise.")) == "ValueError: [key] is turquoise"
    )
    assert quote_error(ValueError()) == "ValueError"
    assert "hunter2-hunter2" in environment_secrets()
    assert "hunter2-hunter2" not in environment_secrets(16)


def test_a_secret_that_tokens_spell_is_hidden_with_its_alternatives() -> None:
    secret, rest = "abcdef-123", {"logprob": -0.5}
    top = [{"token": "cdef", **rest}, {"token": "No", **rest}]
    parts = ["It is ab", "cdef", "-123, no", " more"]
    rows = [{"token": part, **rest, "bytes": [1], "top_logprobs": top} for part in parts]
    chat = hide_in({"content": rows}, [secret])["content"]
    assert [row["token"] for row in chat] == ["It is [key]", "", ", no", " more"]
    assert [row.get("top_logprobs") for row in chat] == [None, None, None, top]
    old = {"tokens": parts, "token_logprobs": [-1] * 4, "top_logprobs": [{p: -1} for p in parts]}
    assert hide_in(old, [secret]) == {
        "tokens": ["It is [key]", "", ", no", " more"],
        "token_logprobs": [-1] * 4,
        "top_logprobs": [None, None, None, {" more": -1}],
    }
    whole = {"choices": [{"text": f"my {secret}", "logprobs": {"tokens": ["No"]}}]}
    assert hide_in(whole, [secret])["choices"] == [
        {"text": "my [key]", "logprobs": {"tokens": ["No"]}}
    ]
