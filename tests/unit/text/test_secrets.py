"""Ledgers as files: there and back, and no secret in an error."""

import random
from pathlib import Path

import pytest

from ragwitness.errors import InputError
from ragwitness.text.secrets import Secret, SecretIndex, read_secrets, write_secrets


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "secrets.jsonl"
    secrets = [Secret("Zoë O'Neill", "name", "r1"), Secret("(713) 555-0123", "phone", "")]
    write_secrets(path, secrets)
    assert read_secrets(path) == secrets
    path.write_text('{"text": "only this"}\n\n')
    assert read_secrets(path) == [Secret("only this", "secret", "")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no secret"),
        (b'{"kind": "hush-hush"}\n', ":1 is not a secret"),
        (b'["hush-hush"]\n', ":1 is not a secret"),
        (b'{"text": "fine"}\nhush-hush\n', ":2 is not a secret"),
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
    write_secrets(path, [Secret("Ada Fenn", "name", "r1"), Secret(text, "code", "r2")])
    with pytest.raises(InputError, match=":2: the secret is too short to be sought"):
        read_secrets(path)
    assert SecretIndex([Secret(text, "code", "r2")]).find(f"His code is {text}, he said.") == []


def test_a_kind_of_null_is_no_kind(tmp_path: Path) -> None:
    path = tmp_path / "secrets.jsonl"
    path.write_text('{"text": "Ada Fenn", "kind": null}\n')
    assert read_secrets(path) == [Secret("Ada Fenn", "secret", "")]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        read_secrets(tmp_path / "none.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        write_secrets(tmp_path / "file" / "such.jsonl", [])


def test_a_secret_that_is_accepted_finds_itself(tmp_path: Path) -> None:
    # Listed and never found, it would count as kept: whatever parts its figures and letters.
    rng, path, taken = random.Random(3), tmp_path / "secrets.jsonl", 0
    for alphabet in ("0123456789", "ABCdefgh0123456789", "ABcd"):
        for _ in range(400):
            drawn = rng.choices(alphabet, k=8) + rng.choices(" -_.,:;/'#()&+*=|@", k=3)
            text = "".join(rng.sample(drawn, rng.randint(2, 9)))
            write_secrets(path, [Secret(text, "code", "r")])
            try:
                known = read_secrets(path)
            except InputError:
                continue
            taken += 1
            assert SecretIndex(known).find(f"The code is {text} and that is it."), text
    assert taken > 900
