"""Caps and prices of a run, and its usage log across starts."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragwitness.core.errors import InputError
from ragwitness.core.files import Appender, Closing, at_hand, lines_of
from ragwitness.core.types import Answer, Query

OPTIONS = {"query": "--max-queries", "token": "--max-tokens", "cost": "--max-cost"}
"""The option that raises each cap."""

_FRAME = 32  # tokens that a chat template may put around a prompt
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Use:
    """Queries and tokens.

    Attributes:
        queries: Requests that the target answered, or may have worked on.
        prompt: Tokens it read.
        completion: Tokens it wrote.
    """

    queries: int = 0
    prompt: int = 0
    completion: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt + self.completion

    def __add__(self, other: Use) -> Use:
        return Use(
            self.queries + other.queries,
            self.prompt + other.prompt,
            self.completion + other.completion,
        )

    def __sub__(self, other: Use) -> Use:
        return self + Use(-other.queries, -other.prompt, -other.completion)


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps on what one run folder spends at its target, all starts together.

    Attributes:
        queries: Most queries; None for no cap.
        tokens: Most tokens, read and written together.
        cost: Most money, in the currency of the prices.
        price_in: Of a million tokens read.
        price_out: Of a million tokens written.

    Raises:
        InputError: A number is not above 0, or a cost is capped without prices.
    """

    queries: int | None = None
    tokens: int | None = None
    cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None

    def __post_init__(self) -> None:
        caps = {"queries": self.queries, "tokens": self.tokens, "cost": self.cost}
        for name, cap in caps.items():
            if cap is not None and not 0 < cap < math.inf:
                raise InputError(f"--max-{name} must be above 0, not {cap:g}.")
        prices = {"in": self.price_in, "out": self.price_out}
        for name, price in prices.items():
            if price is not None and not 0 <= price < math.inf:
                raise InputError(f"--price-{name} must not be below 0, not {price:g}.")
        if (self.price_in is None) != (self.price_out is None):
            raise InputError(
                "Only one of the two prices is known.", "Give --price-in and --price-out."
            )
        if self.cost is not None and self.price_in is None:
            raise InputError(
                "A cost cannot be capped without prices.",
                "Give --price-in and --price-out, each per million tokens.",
            )

    def price(self, use: Use) -> float | None:
        """Return what a use costs; None without prices."""
        if self.price_in is None or self.price_out is None:
            return None
        return (use.prompt * self.price_in + use.completion * self.price_out) / _MILLION

    def passed(self, use: Use) -> str | None:
        """Return the name of the first cap that a use passes; None where it passes none."""
        if self.queries is not None and use.queries > self.queries:
            return "query"
        if self.tokens is not None and use.tokens > self.tokens:
            return "token"
        # Cost last: where two caps are passed at once, the simpler one is named.
        cost = self.price(use)
        if self.cost is not None and cost is not None and cost > self.cost:
            return "cost"
        return None


def worst_case(query: Query, surplus: int = 0) -> Use:
    """Return the most that a query may use.

    No tokenizer in use makes more tokens of a text than it has bytes in UTF-8, so no model of
    the target's tokenizer is needed.

    Args:
        query: To be sent.
        surplus: Tokens that the target adds on its side, such as passages.
    """
    # Bytes bound tokens from above; _FRAME is what a chat format adds around a message.
    size = len(query.prompt.encode("utf-8", "surrogatepass"))
    return Use(1, size + _FRAME + surplus, query.max_tokens)


def stated_use(answer: Answer, worst: Use) -> Use:
    """Return the use that an answer states; the worst case where it states none."""
    # Without counts, charge the worst case: a cap then ends a run early, never late.
    return Use(
        1,
        worst.prompt if answer.prompt_tokens is None else answer.prompt_tokens,
        worst.completion if answer.completion_tokens is None else answer.completion_tokens,
    )


# The usage log of a run folder.
#
# One row per query, ``{"id": …, "queries": …, "prompt": …, "completion": …}``: the worst case is
# written before the query is sent, and its real use under the same id afterwards. The last row
# of an id counts. So a process killed in between leaves the worst case behind, never too little.


class UsageLog(Closing):
    """Appends the use of each query to a file. Use as a context manager.

    Args:
        path: The file; created with its folder.

    Attributes:
        before: Use of earlier starts.

    Raises:
        InputError: It cannot be read or written, or another process is at work in its folder.
    """

    def __init__(self, path: Path) -> None:
        self._lines = Appender(path, "usage log")
        # Read after the lock: no other process can add a row in between.
        rows = _rows(path)
        self.before = sum(rows.values(), Use())
        self._next = max(rows, default=0) + 1

    def open(self, worst: Use) -> int:
        """Log the worst case of a query before it is sent; return its id."""
        number = self._next
        self._next += 1
        self.note(number, worst)
        return number

    def note(self, number: int, use: Use) -> None:
        """Replace the row of an id."""
        self._lines.append(
            {
                "id": number,
                "queries": use.queries,
                "prompt": use.prompt,
                "completion": use.completion,
            }
        )

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def total_use(path: Path) -> Use:
    """Return the total use in a usage log; zero without a file.

    Raises:
        InputError: It cannot be read.
    """
    return sum(_rows(path).values(), Use()) if at_hand(path) else Use()


def logged_uses(path: Path) -> tuple[Use, ...]:
    """Return the use of each query, in the order of sending.

    Raises:
        InputError: The file cannot be read.
    """
    return tuple(_rows(path).values())


def _rows(path: Path) -> dict[int, Use]:
    uses_by_id: dict[int, Use] = {}
    try:
        for line in lines_of(path):
            with suppress(ValueError, KeyError, TypeError):  # cut short by a crash
                # The last row of an id counts: what was used replaces the worst case.
                row = json.loads(line)
                counts = [int(row[key]) for key in ("queries", "prompt", "completion")]
                uses_by_id[int(row["id"])] = Use(*counts)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return uses_by_id
