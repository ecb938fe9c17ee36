"""Stage 1, step 3: a text from the attributes alone; the record is not shown (§3.1; Table 13)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragwitness.defenses.sage.extract import Pair, sheet
from ragwitness.defenses.synthetic.asking import as_it_is, ask
from ragwitness.defenses.synthetic.base import Steps
from ragwitness.defenses.synthetic.config import MakingConfig

__all__ = ["generate", "of_form"]

_PROMPT = """\
These are the main points of a text:
{points}

Write a new text that makes every one of these points and adds no person, place or number of its \
own. It must be {form}. Write the text alone, without a remark before or after it."""


def generate(pairs: Sequence[Pair], config: MakingConfig, like: str) -> Steps[str]:
    """Return a text that tells the pairs.

    Args:
        pairs: What the record says of each attribute.
        config: Settings.
        like: A text in the language that is wanted; it is not shown to the model.

    Raises:
        StoppedError: The model gave no text that can be used.
    """
    prompt = _PROMPT.format(points=sheet(pairs), form=config.domain.form)
    text = yield from ask(prompt, lambda text: of_form(text, config), config.asking, like=like)
    return text


def of_form(text: str, config: MakingConfig) -> str | None:
    """Return a text that has the form of the domain; None for another."""
    if config.asking.published:
        return text.strip()
    found = as_it_is(text)
    if found is None:
        return None
    places = []
    for label in config.domain.labels:
        matches = list(re.finditer(rf"^\W*{re.escape(label)}", found, re.MULTILINE | re.IGNORECASE))
        if len(matches) != 1:
            return None
        places.append(matches[0].start())
    return found if places == sorted(places) else None
