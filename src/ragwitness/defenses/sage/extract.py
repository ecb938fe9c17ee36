"""Stage 1, step 2: [attribute: information] of one record (§3.1; Tables 11 and 12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from ragwitness.defenses.sage.attributes import Attribute
from ragwitness.defenses.synthetic.asking import ask, shown
from ragwitness.defenses.synthetic.base import Steps
from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.types import Document

__all__ = ["Pair", "extract", "sheet"]

Pair = tuple[Attribute, str]
"""An attribute with what the record says of it."""

_PROMPT = """\
Here is {records}:
{text}

Say in a few words of your own what it tells about each of the attributes below; "none" where it \
tells nothing. Leave out names of persons, addresses, numbers that identify somebody, and \
everything else that the attributes do not ask for.

Answer with these lines, completed, and nothing else:
{form}"""
_NOTHING = re.compile(
    r"^\W*(none|nothing|n/?a|not (mentioned|given|stated)\W*)?\W*$", re.IGNORECASE
)


def extract(
    document: Document, attributes: Sequence[Attribute], config: MakingConfig
) -> Steps[tuple[Pair, ...]]:
    """Return what the record says of each attribute; those it says nothing of are left out.

    Raises:
        StoppedError: The model gave no answer that can be used.
    """
    form = sheet([(attribute, "") for attribute in attributes])
    prompt = _PROMPT.format(records=config.domain.records, text=shown(document.text), form=form)
    found = yield from ask(prompt, lambda text: _read(text, attributes), config.asking)
    return found


def sheet(pairs: Sequence[Pair]) -> str:
    """Return pairs as lines, with a heading for each part."""
    lines: list[str] = []
    for part, group in groupby(pairs, key=lambda pair: pair[0][0]):
        lines += [f"{part}:"] if part else []
        lines += [f"- [{name}]: {said}".rstrip() for (_, name), said in group]
    return "\n".join(lines)


def _read(text: str, attributes: Sequence[Attribute]) -> tuple[Pair, ...] | None:
    """Find each attribute's line, in order: parts may share a name."""
    found: list[Pair] = []
    place = 0
    for attribute in attributes:
        line = re.compile(
            rf"^[\s\-*\u2022\d.)]*\**\[?{re.escape(attribute[1])}\]?\**\s*:[ \t]*(.*)$",
            re.MULTILINE | re.IGNORECASE,
        )
        if match := line.search(text, place):
            place = match.end()
            if not _NOTHING.match(match.group(1)):
                found.append((attribute, match.group(1).strip()))
    return tuple(found) or None
