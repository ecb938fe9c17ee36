"""How a service is shown a document with its question: one form, when planted and when probed."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.core.errors import InputError

FORMS = ("messages", "one", "attachment")
"""``messages``: document and question are a message each. ``one``: both are in one message; this
is also the fallback for a chat whose roles must alternate. ``attachment``: a file."""

TEMPLATE = "{context}\n\n{question}"
"""Both in one text."""

_BETWEEN = "\n\x1d\n"  # the group separator: no document's line


@dataclass(frozen=True, slots=True)
class ShownForm:
    """How a document and its question are shown, and how long and how warm an answer is.

    Attributes:
        kind: One of :data:`FORMS`.
        template: Of both in one text, with ``{context}`` and ``{question}``.
        answer_tokens: Most of an answer.
        temperature: Of sampling; None leaves it to the service.

    Raises:
        InputError: There is no such kind, or the template lacks a place.
    """

    kind: str = "messages"
    template: str = TEMPLATE
    answer_tokens: int = 256
    temperature: float | None = None

    def __post_init__(self) -> None:
        """Refuse what would show only a part."""
        if self.kind not in FORMS:
            raise InputError(f"There is no form {self.kind!r}.", f"Known: {', '.join(FORMS)}.")
        check_places(self.template, "context", "question")

    def text(self, document: str, question: str) -> str:
        """Return both in one text."""
        # Split, not format: documents hold braces, and each other's places.
        before, _, after = self.template.partition("{context}")
        return document.join(half.replace("{question}", question) for half in (before, after))

    def joined(self, document: str, question: str) -> str:
        """Return both as the prompt of a query, from which :func:`parted` gives them back."""
        if self.kind == "one":
            return self.text(document, question)
        return f"{document}{_BETWEEN}{question}"


def parted(prompt: str) -> tuple[str, str]:
    """Return the document and the question of a joined prompt; without a document all is asked."""
    document, _, question = prompt.rpartition(_BETWEEN)
    return document, question


def check_places(template: str, *names: str) -> None:
    """Refuse a template that would drop something.

    Raises:
        InputError: A place is missing, or is there twice.
    """
    for name in names:
        if template.count("{" + name + "}") != 1:
            raise InputError(
                f"A template must hold {{{name}}} exactly once.",
                "docs/canary.md shows the default.",
            )
