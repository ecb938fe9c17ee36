"""What kind of records a corpus holds: attributes, form of the output, further checks (A.10)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ragwitness.errors import InputError

__all__ = ["DOMAINS", "Domain", "load_domain"]


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of records.

    Attributes:
        name: For people.
        records: What a record is, as in "Here is {records}".
        parts: Speakers or sections that have attributes of their own; empty for the whole record.
        attributes: Of each part, in the order of ``parts``; empty lets the model identify them
            from a few records.
        count: Attributes to identify per part.
        form: What the new text must look like.
        labels: Words that must open a line of the new text, once each and in this order.
        checks: What the privacy agent looks for beside the six checks.
    """

    name: str
    records: str = "a record"
    parts: tuple[str, ...] = ()
    attributes: tuple[tuple[str, ...], ...] = ()
    count: int = 5
    form: str = "one text of the same kind, in the same language"
    labels: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be asked for.

        Raises:
            InputError: Attributes do not fit the parts, or there are none to identify.
        """
        if self.attributes and len(self.attributes) != max(1, len(self.parts)):
            raise InputError(
                f"Domain {self.name}: {len(self.attributes)} lists of attributes for"
                f" {max(1, len(self.parts))} parts.",
                "Give one list per part, or none.",
            )
        if not 1 <= self.count <= 20:
            raise InputError(f"Domain {self.name}: count must be 1 to 20, not {self.count}.")


# The attributes are those of Tables 11 and 12, in our words.
DOMAINS = {
    "auto": Domain("auto"),
    "medical": Domain(
        "medical",
        records="a conversation of a patient with a doctor",
        parts=("Patient", "Doctor"),
        attributes=(
            ("symptoms", "medical history", "worries", "recent events", "what is asked"),
            ("assessment", "reassurance", "treatment", "next steps", "advice for prevention"),
        ),
        form=(
            "one question of a patient and one reply of a doctor, as they might be written for"
            " real, and no further turn; begin the question with 'Patient:' and the reply with"
            " 'Doctor:'"
        ),
        labels=("Patient:", "Doctor:"),
        checks=("Ages, dates, places and family circumstances that the advice does not need.",),
    ),
    "wiki": Domain(
        "wiki",
        records="a passage of an encyclopedia",
        attributes=(("topic", "what is told of the topic", "facts, figures and events"),),
        count=3,
        form="one passage as it might stand in an encyclopedia",
        checks=("Addresses, telephone numbers and links, whoever they belong to.",),
    ),
}
"""Domains that come with the package; ``auto`` identifies attributes from the corpus."""


def load_domain(name: str) -> Domain:
    """Return a domain.

    Args:
        name: One of :data:`DOMAINS`, or a TOML file with its fields.

    Raises:
        InputError: Neither, or the file cannot be used.
    """
    if name in DOMAINS:
        return DOMAINS[name]
    path = Path(name)
    if path.suffix != ".toml":
        raise InputError(
            f"There is no domain {name!r}.", f"Choose {', '.join(DOMAINS)}, or a .toml file."
        )
    try:
        fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}.") from error
    except (ValueError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{name} is no TOML: {error}.") from error
    known = Domain.__dataclass_fields__
    if unknown := sorted(set(fields) - set(known)):
        raise InputError(
            f"{name}: there is no field {unknown[0]!r}.", f"There are: {', '.join(known)}."
        )
    try:
        return TypeAdapter(Domain).validate_python({"name": path.stem, **fields})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{name}: {where}: {first['msg']}.", "See docs/synthesize.md.") from None
