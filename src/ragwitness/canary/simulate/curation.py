"""What a provider may do to its logs before training (2604.22191, §3.1).

Each step lowers the share of canaries that reach training. The paper defines its rate after that;
here curation is run, and what survives is counted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ragwitness.canary.plant.traces import Role, Trace
from ragwitness.canary.simulate.feedback import Labelled, strip_style
from ragwitness.errors import InputError

__all__ = ["DEDUPLICATE", "Curation", "curate", "curate_prompts"]

DEDUPLICATE = ("none", "trace", "answer")
"""``trace`` keeps one of equal document, query and answer; ``answer`` of equal query and answer."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Curation:
    """Steps in their order.

    Attributes:
        deduplicate: One of :data:`DEDUPLICATE`.
        filtered: Drop answers with emoji, repeated punctuation or signature-like capitals.
        kept: Share of the canary traces that is left when the logs are sampled or diluted with
            other traffic.

    Raises:
        InputError: A value is outside its range.
    """

    deduplicate: str = "none"
    filtered: bool = False
    kept: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no curation."""
        if self.deduplicate not in DEDUPLICATE:
            known = ", ".join(DEDUPLICATE)
            raise InputError(f"Cannot deduplicate by {self.deduplicate!r}.", f"Known: {known}.")
        if not 0 <= self.kept <= 1:
            raise InputError(f"The share kept must be within 0 and 1, not {self.kept:g}.")


def curate(voted: Sequence[Labelled], config: Curation, rng: random.Random) -> list[Labelled]:
    """Return the votes that are trained on."""
    found = _once(voted, [_key(one, config.deduplicate) for one in voted], config)
    if config.filtered:
        found = [one for one in found if strip_style(one.answer) == " ".join(one.answer.split())]
    return _thinned(found, [one.trace for one in found], config, rng)


def curate_prompts(traces: Sequence[Trace], config: Curation, rng: random.Random) -> list[Trace]:
    """Return the prompts that a policy is trained on; they have no answer to filter by."""
    found = _once(traces, [(one.document, one.query) for one in traces], config)
    return _thinned(found, found, config, rng)


def _key(one: Labelled, by: str) -> tuple[str, ...]:
    shared = (one.trace.query, one.answer)
    return shared if by == "answer" else (one.trace.document, *shared)


def _once(items: Sequence[_T], keys: Sequence[tuple[str, ...]], config: Curation) -> list[_T]:
    if config.deduplicate == "none":
        return list(items)
    return list(dict(zip(reversed(keys), reversed(items), strict=True)).values())[::-1]


def _thinned(items: Sequence[_T], traces: Sequence[Trace], config: Curation,
             rng: random.Random) -> list[_T]:  # fmt: skip
    if config.kept == 1.0:
        return list(items)
    canaries = [at for at, one in enumerate(traces) if one.role is not Role.CLEAN]
    stays = set(rng.sample(canaries, round(config.kept * len(canaries))))
    clean = {at for at, one in enumerate(traces) if one.role is Role.CLEAN}
    return [item for at, item in enumerate(items) if at in stays or at in clean]
