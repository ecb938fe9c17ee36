"""``ragwitness lab serve``: what it cannot serve, by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Command = Callable[..., tuple[int, str]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "no corpus to retrieve from"),
        (["--no-retrieve"], "'reader' is not served without a corpus"),
        (["--no-retrieve", "--generator", "hf:x", "--defense", "mirabel"], "no template and no"),
        (["--no-retrieve", "--generator", "hf:x", "--template", "bare"], "no template and no"),
    ],
)
def test_a_model_alone_is_asked_for_in_full(
    command: Command, options: list[str], says: str
) -> None:
    code, said = command("lab", "serve", "--port", 0, *options)
    assert code == 2, said
    assert says in " ".join(said.split())
