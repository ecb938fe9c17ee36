"""Stage 1, step 1: what matters in this corpus, identified once from a few records (§3.1)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from ragwitness.defenses.synthetic.asking import ask, shown
from ragwitness.defenses.synthetic.base import Steps
from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.defenses.synthetic.guard import Guard
from ragwitness.types import Document

__all__ = ["Attribute", "identify"]

Attribute = tuple[str, str]
"""Part of the record, empty for the whole, and name."""

_PROMPT = """\
Below are examples of one kind of text. Name the {count} attributes{of} that carry most of what \
such a text is read for. An attribute is the name of a kind of information, such as "cause" or \
"next steps", never a piece of information itself: no names, numbers or places.

{examples}

Write {count} lines, each of the form "- [attribute]", and nothing else."""
_LINE = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s*\[?([^\]\[:\n]{2,60})\]?\s*:?\s*$", re.MULTILINE)
_MOST_WORDS = 6
_EXAMPLE = 4000  # characters of a record that is an example


def identify(
    documents: Sequence[Document], config: MakingConfig, guard: Guard
) -> Steps[tuple[Attribute, ...]]:
    """Return the attributes of the domain, or else those that the model names.

    Names that break a condition of the guard are left out: they are facts, not attributes.

    Raises:
        StoppedError: The model named none.
    """
    domain = config.domain
    parts = domain.parts or ("",)
    if domain.attributes:
        named = zip(parts, domain.attributes, strict=True)
        return tuple((part, name) for part, names in named for name in names)
    # Drawn by the corpus alone, so that resuming asks the same question.
    rng = random.Random(len(documents))
    chosen = rng.sample(list(documents), min(config.shots, len(documents)))
    examples = "\n\n".join(shown(document.text[:_EXAMPLE]) for document in chosen)
    found: list[Attribute] = []
    for part in parts:
        of = f" of the part of the {part}" if part else ""
        prompt = _PROMPT.format(count=domain.count, of=of, examples=examples)

        def read(text: str) -> list[str] | None:
            names = [name.strip() for name in _LINE.findall(text)]
            fit = [n for n in dict.fromkeys(names) if len(n.split()) <= _MOST_WORDS]
            return [n for n in fit if guard.violation(n) is None][: domain.count] or None

        names = yield from ask(prompt, read, config.asking)
        found += [(part, name) for name in names]
    return tuple(found)
