"""A declaration's help is what its docstring says of each parameter."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.core.options import documented


def declared(first: int, second: str = "") -> None:
    """Do one thing.

    It takes two lines, with Args: in one of them.

    Args:
        first: The number: of what is done, told in a text that
            goes on here.
        second: The name.

    Raises:
        ValueError: It is no entry of a parameter.
    """


@dataclass
class Declared:
    """Two values.

    Attributes:
        first: The first one.
    """

    first: int = 0


def test_each_entry_is_the_help_of_its_parameter() -> None:
    sentences, texts = documented(declared)
    assert sentences == "Do one thing.\n\nIt takes two lines, with Args: in one of them."
    assert texts == {
        "first": "The number: of what is done, told in a text that goes on here.",
        "second": "The name.",
    }
    assert documented(Declared) == ("Two values.", {"first": "The first one."})


def test_a_docstring_without_entries_is_its_sentences() -> None:
    def plain() -> None:
        """Say nothing of what it takes."""

    assert documented(plain) == ("Say nothing of what it takes.", {})
    assert documented(lambda: None) == ("", {})
