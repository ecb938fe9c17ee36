"""A package of somebody else: a membership method, a target dialect and a report format.

`tests/cli/test_cli_plugin.py` installs this file as a package of its own. It was written by the
recipes of CONTRIBUTING.md, and imports only the public API and the modules that the recipes name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness import Answer, Capability, Document, Query, Score
from ragwitness.report.files import Format

# A membership method: a configuration and a class with name, requires and probe.


@dataclass(frozen=True)
class QuoteConfig:
    """How a document is asked about."""

    words: int = 8


class Quote:
    """Ask for the words that follow the document's first words, and count those that come."""

    name = "quote"
    requires = frozenset({Capability.TEXT})

    def __init__(self, proxy: object, config: QuoteConfig) -> None:
        self.config = config

    def probe(self, document: Document) -> Any:
        """Yield one question, receive its answer, return the share of words that it holds."""
        words = document.text.split()
        shown, hidden = words[: self.config.words], words[self.config.words :]
        if not hidden:
            return Score(None, reason="the text is too short")
        (answer,) = yield [Query(f"How does this go on: {' '.join(shown)}")]
        return Score(len(set(hidden) & set(answer.text.split())) / len(set(hidden)))


# A target dialect: a callable from the address to something that answers.


class Shelf:
    """A system that holds one text and tells how it goes on."""

    name = "shelf"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, text: str) -> None:
        self.text = text

    async def ask(self, query: Query) -> Answer:
        """Return the text where the question holds its beginning."""
        begun = query.prompt.partition(": ")[2]
        return Answer(self.text if self.text.startswith(begun) else "I do not know.")

    async def close(self) -> None:
        """Nothing is open."""


def open_shelf(address: Any) -> Shelf:
    """Open ``shelf/TEXT``."""
    return Shelf(address.rest)


# A report format: from result type, result and conditions to the content of the file.


def _markdown(result_type: Any, result: Any, conditions: Sequence[Any]) -> str:
    report = result_type.report(result)
    return f"# {report.title}\n"


MARKDOWN = Format(_markdown)
