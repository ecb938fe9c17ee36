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


@pytest.mark.parametrize(
    "echo",
    [
        "sk\u200b-s\u200be\u2060cret",  # between invisible signs
        "\uff53\uff4b-\uff53\uff45\uff43\uff52\uff45\uff54",  # in wide letters
        "s\u0301k-secret",  # under an accent
        "sk-\U0001d42c\U0001d41e\U0001d41c\U0001d42b\U0001d41e\U0001d42d",  # in bold letters
        "s\x00k-secret",
    ],
)
def test_a_key_that_is_echoed_in_another_form(echo: str) -> None:
    said = f"Your key é {echo} is wrong."
    masked = hide(said, ["sk-secret"])
    assert masked == "Your key é [key] is wrong."
    assert quote(said, ["sk-secret"]) == masked
    assert hide_in({"message": [said]}, ["sk-secret"]) == {"message": [masked]}


def test_a_text_without_the_key_is_left_as_it_is() -> None:
    text = "caf\u00e9 \ufb01ne\u200b \uff21"
    assert hide(text, ["sk-secret"]) == text
