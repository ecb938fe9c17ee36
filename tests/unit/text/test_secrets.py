"""Ledgers as files: there and back, and no secret in an error."""

import random
from dataclasses import asdict
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.files import write_rows
from ragwitness.text.secrets import Secret, SecretIndex, contacts, read_secrets


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "secrets.jsonl"
    secrets = [Secret("Zoë O'Neill", "name", "r1"), Secret("(713) 555-0123", "phone", "")]
    write_rows(path, map(asdict, secrets))
    assert read_secrets(path) == secrets
    path.write_text('{"text": "only this"}\n\n')
    assert read_secrets(path) == [Secret("only this", "secret", "")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no secret"),
        (b'{"kind": "hush-hush"}\n', "Secret 1 of"),
        (b'["hush-hush"]\n', "line 1, does not hold a JSON object"),
        (b'{"text": "fine"}\nhush-hush\n', "line 2, is not JSON"),
        (b'{"text": ["hush-hush"]}\n', "empty or not text"),
        (b'{"text": " - "}\n', "empty or not text"),
        (b"\xff\xfehush-hush", "not UTF-8"),
        (b'{"text": "hush \\ud800 hush"}\n', "empty or not text"),
    ],
)
def test_what_cannot_be_read_is_named_but_not_repeated(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "secrets.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_secrets(path)
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("text", ["B", "42", " 7. ", "xg", "be"])
def test_a_secret_that_no_text_is_searched_for_is_refused(tmp_path: Path, text: str) -> None:
    # Listed in silence, it would count as kept in every text that holds it.
    path = tmp_path / "secrets.jsonl"
    write_rows(path, [{"text": "Ada Fenn", "record": "r1"}, {"text": text, "record": "r2"}])
    with pytest.raises(InputError, match=r"Secret 2 of .*: the secret is too short to be"):
        read_secrets(path)
    assert SecretIndex([Secret(text, "code", "r2")]).find(f"His code is {text}, he said.") == []


def test_a_mark_of_the_byte_order_is_no_part_of_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "secrets.jsonl"
    path.write_text('\ufeff{"text": "Ada Fenn"}\n', encoding="utf-8")
    assert read_secrets(path) == [Secret("Ada Fenn", "secret", "")]


@pytest.mark.parametrize(
    "said",
    [
        "(415)555-0132",
        "(415)5550132",
        "(415) 555-0132",
        "415\u2013555\u20130132",
        "415\u2011555\u20110132",
        "415.555.0132",
        "+49\u201330\u20131234567",
        "+1 4 1 5 5 5 5 0 1 3 2",
        "+33 1 42 68 53 00",
        "rosa.q+a@mail.example.org",
        "rosa(at)example.org",
        "rosa [at] mail [dot] example [dot] org",
        "rosa {AT} example dot org",
        "rosa at example dot org",
        "Rosa dot Q at mail dot example DOT de",
        "rosa\uff20example\uff0eorg",
        "0033142685300",
        "0014155550132",
        "https://example.org/a?b",
    ],
)
def test_a_contact_is_found_as_a_whole(said: str) -> None:
    assert contacts(f"Write to {said}, or not.") == {said}


@pytest.mark.parametrize(
    "said",
    [
        "grades of +1 2 3 4 5 6 7 8, and",
        "meet me (at) noon, or [at] 5.30",
        "12345-555-0132",
        "(415)55-50132",
        "look at the dot on it",
        "it looked at the dot com years",
        "be at noon dot your letters",
        "shipped as 000331426853, 00331426 or 0033142685300123",
        "costs 7.0033142685300",
        "rows 100-200, 300-4000",
    ],
)
def test_other_figures_and_words_are_no_contact(said: str) -> None:
    assert not contacts(said)


def test_a_kind_of_null_is_no_kind(tmp_path: Path) -> None:
    path = tmp_path / "secrets.jsonl"
    path.write_text('{"text": "Ada Fenn", "kind": null}\n')
    assert read_secrets(path) == [Secret("Ada Fenn", "secret", "")]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_secrets(tmp_path / "none.jsonl")


@pytest.mark.slow
def test_a_secret_that_is_accepted_finds_itself(tmp_path: Path) -> None:
    # Listed and never found, it would count as kept: whatever parts its figures and letters.
    rng, path, taken = random.Random(3), tmp_path / "secrets.jsonl", 0
    for alphabet in ("0123456789", "ABCdefgh0123456789", "ABcd"):
        for _ in range(400):
            drawn = rng.choices(alphabet, k=8) + rng.choices(" -_.,:;/'#()&+*=|@", k=3)
            text = "".join(rng.sample(drawn, rng.randint(2, 9)))
            write_rows(path, [{"text": text, "kind": "code", "record": "r"}])
            try:
                known = read_secrets(path)
            except InputError:
                continue
            taken += 1
            assert SecretIndex(known).find(f"The code is {text} and that is it."), text
    assert taken > 900
