"""The ways of making synthetic data that SAGE's tables name and the package does not hold."""

from __future__ import annotations

from functools import partial
from typing import Any

from research.synthetic.attrprompt import AttrPrompt
from research.synthetic.paraphrase import PublishedParaphrase
from research.synthetic.published import PublishedSage
from research.synthetic.zerogen import ZeroGen

METHODS: dict[str, Any] = {
    "sage-published": PublishedSage,
    "stage-1-published": partial(PublishedSage, stage=1),
    "paraphrase-published": partial(PublishedParaphrase, "plain"),
    "paraphrase-privacy-published": partial(PublishedParaphrase, "privacy"),
    "paraphrase-checklist-published": partial(PublishedParaphrase, "checklist"),
    "zerogen-published": ZeroGen,
    "attrprompt-published": AttrPrompt,
}
"""Each made from its settings, by the name in a table."""
