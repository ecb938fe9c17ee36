"""Accounts joined by similar queries: components, and dense groups that chains do not make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Links", "core_group", "largest_component", "merged", "strongest"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Pairs of accounts, each once, with how strongly they are joined.

    Attributes:
        first: Smaller account, shape (links,).
        second: Larger account.
        weight: Largest cosine of their queries, or another strength.
        accounts: Number of accounts.
    """

    first: Indices
    second: Indices
    weight: NDArray[np.float64]
    accounts: int

    def above(self, floor: float) -> Links:
        """Return the links of at least this strength."""
        kept = self.weight >= floor
        return Links(self.first[kept], self.second[kept], self.weight[kept], self.accounts)


def strongest(first: Indices, second: Indices, weight: NDArray[np.floating], n: int) -> Links:
    """Keep the strongest link of each pair of different accounts.

    Args:
        first: An account per link, in any order.
        second: The other.
        weight: Strength per link.
        n: Number of accounts.
    """
    apart = first != second
    low, high = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
    strength = np.asarray(weight, dtype=np.float64)[apart]
    order = np.argsort(-strength, kind="stable")
    keys, kept = np.unique(low[order] * n + high[order], return_index=True)
    return Links(keys // n, keys % n, strength[order][kept], n)


def merged(parts: Sequence[Links], n: int) -> Links:
    """Return the links of all parts, the strongest of each pair.

    Args:
        parts: Over the same accounts; may be none.
        n: Number of accounts.
    """
    if not parts:
        nobody = np.zeros(0, dtype=np.int64)
        return Links(nobody, nobody, np.zeros(0), n)
    first, second, weight = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("first", "second", "weight")
    )
    return strongest(first, second, weight, n)


def largest_component(links: Links) -> Indices:
    """Return the accounts of the largest connected component; one account where none is joined."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (links.accounts, links.accounts)
    graph = coo_array((np.ones(links.first.size), (links.first, links.second)), shape=shape)
    _, labels = connected_components(graph, directed=False)
    found: Indices = np.flatnonzero(labels == np.argmax(np.bincount(labels)))
    return found


def core_group(links: Links) -> Indices:
    """Return the largest component of the innermost core.

    The c-core is what is left when accounts with under c links are removed again and again; the
    innermost has the largest c. In it every account is joined to c others, so a chain of chance
    links between groups falls away where a component would keep it. k accounts that are all
    joined to each other are its (k - 1)-core.
    """
    near: list[set[int]] = [set() for _ in range(links.accounts)]
    for one, other in zip(links.first.tolist(), links.second.tolist(), strict=True):
        near[one].add(other)
        near[other].add(one)
    left = {at for at, others in enumerate(near) if others}
    if not left:
        return np.zeros(1, dtype=np.int64)
    degree = [len(others) for others in near]
    innermost, c = set(left), 0
    while left:
        thin = [at for at in left if degree[at] < c + 1]
        if not thin:
            c += 1
            innermost = set(left)
            continue
        while thin:
            at = thin.pop()
            if at not in left:
                continue
            left.discard(at)
            for other in near[at]:
                degree[other] -= 1
                if other in left and degree[other] == c:
                    thin.append(other)
    inside = np.zeros(links.accounts, dtype=bool)
    inside[list(innermost)] = True
    kept = inside[links.first] & inside[links.second]
    return largest_component(
        Links(links.first[kept], links.second[kept], links.weight[kept], links.accounts)
    )
