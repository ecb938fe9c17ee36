"""Options of a command line as fields of a configuration."""

from dataclasses import dataclass

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.registry import typed_fields


@dataclass(frozen=True)
class Config:
    words: int = 15
    share: float = 0.5
    shout: bool = False
    command: str = "go"
    most: float | None = None


_KNOWN = ("words", "share", "shout", "command", "most")


def test_text_takes_the_type_of_the_default() -> None:
    given = {"words": "12", "share": "1", "shout": "yes", "command": "12", "most": "3"}
    found = typed_fields("x", Config(), _KNOWN, given)
    assert found == {"words": 12, "share": 1.0, "shout": True, "command": "12", "most": 3.0}
    assert typed_fields("x", Config(), _KNOWN, {"most": "none"}) == {"most": None}
    assert typed_fields("x", Config(), _KNOWN, {"words": 7}) == {"words": 7}
    assert typed_fields("x", Config(), _KNOWN, {"share": 1, "most": 2}) == {"share": 1, "most": 2}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"word": "1"}, "x has no option 'word'"),
        ({"words": "many"}, "x: words cannot be 'many'"),
        ({"shout": "perhaps"}, "x: shout cannot be 'perhaps'"),
        ({"most": "many"}, "x: most cannot be 'many'"),
        ({"words": True}, "x: words cannot be True"),
        ({"words": 2.0}, "x: words cannot be 2.0"),
        ({"share": None}, "x: share cannot be None"),
        ({"shout": 1}, "x: shout cannot be 1"),
        ({"command": 3}, "x: command cannot be 3"),
    ],
)
def test_what_cannot_be_used_is_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        typed_fields("x", Config(), _KNOWN, options)
    assert said in caught.value.message
    assert caught.value.hint
