"""Ledgers as files: there and back, and no secret in an error."""

from pathlib import Path

import pytest

from ragwitness.errors import InputError
from ragwitness.text.secrets import Secret, read_secrets, write_secrets


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


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        read_secrets(tmp_path / "none.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        write_secrets(tmp_path / "file" / "such.jsonl", [])
