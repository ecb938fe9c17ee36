"""The owner's own test: each record is aimed at by words that tell it apart.

Who holds the corpus need not hope that a fragment of other text draws a private record: a few of
the record's own rarest words do. Texts of the background are aimed at in the same way, so that
what chance gives of them is what it gives of records. The words are no more than a third of its
telling words, so that what comes back is told by the rest
(:mod:`ragwitness.leakage.score.attribution` takes them out).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ragwitness.core.errors import InputError
from ragwitness.leakage.attacks.base import REPEAT, Ask, Attacking, Limits, batches, require
from ragwitness.text.words import canonical_text, telling_tokens

_GIVEN = 3  # a prompt holds one in so many of a record's telling words, or fewer


@dataclass(frozen=True, slots=True)
class AimedConfig:
    """Prompts ``{words of a record} {command}``.

    Attributes:
        words: Most words of a record in a prompt.
        command: What is asked for.
        records: The private corpus, and the background with it.
        limits: How much is asked.
    """

    words: int = 5
    command: str = REPEAT
    records: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        require("words", self.words, 1)


class Aimed:
    """Asks for each record in turn, then for each again by its next words.

    Raises:
        InputError: No record has a word to aim by.
    """

    name = "aimed"

    def __init__(self, config: AimedConfig = AimedConfig()) -> None:
        self.config = config
        records = map(canonical_text, dict.fromkeys(config.records))
        words = [dict.fromkeys(telling_tokens(one)) for one in records]
        stands_in = Counter(word for some in words for word in some)
        # Each record's words, the rarest first, cut into what one prompt holds.
        self._parts = []
        for some in words:
            rare = sorted(some, key=lambda word: (stands_in[word], word))
            size = min(config.words, max(1, len(rare) // _GIVEN))
            self._parts.append([rare[at : at + size] for at in range(0, len(rare), size)])
        if not any(self._parts):
            raise InputError(
                "aimed needs records with words to aim by.",
                "It is for who holds the corpus: ragwitness leak TARGET --corpus FILE"
                " --attacks aimed",
            )

    def steps(self) -> Attacking:
        """Return the attack."""
        limits = self.config.limits
        yield from batches(islice(self._asks(), limits.prompts), limits.size)
        return None

    def _asks(self) -> Iterator[Ask]:
        config, rng = self.config, self.config.limits.rng()
        order = list(range(len(self._parts)))
        rng.shuffle(order)
        for turn in range(max(map(len, self._parts))):
            for place in order:
                if turn < len(self._parts[place]):
                    # Shuffled, so that no run of the record stands in a prompt.
                    aim = rng.sample(own := self._parts[place][turn], len(own))
                    yield config.limits.ask(f"{' '.join(aim)} {config.command}")
