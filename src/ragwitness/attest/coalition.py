"""Phase C: the number of accounts that asked alike, recomputed to the byte (R5, §5.5).

The estimators are those of ``collusion.coalition`` over the same links. The links are computed here
in whole numbers: a floating-point cosine at the threshold may be above it on one machine and below
it on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.policy import Estimator, WindowPolicy
from ragwitness.core.errors import InputError
from ragwitness.crypto.hashing import canonical
from ragwitness.privacy.account_pairs import Links, component_labels, core_group

_VERSION = "ragwitness/estimate/v2"
_APART = "ragwitness/estimate/v1"  # of a policy of version 1: each tenant by itself
_BLOCK = 1024
_LIMB = 24
_LOW = (1 << _LIMB) - 1

Account = tuple[str, str]
"""Tenant and name."""


@dataclass(frozen=True, slots=True)
class CoalitionEstimate:
    """Groups of accounts that asked alike.

    Attributes:
        window: Identifier of the window.
        estimator: Of the policy.
        queries: Number of query records.
        groups: Groups of two accounts and more, as (tenant, account), largest first; under
            ``"cores"`` the innermost core alone.
        tenants: Tenants whose groups were formed by themselves (version 1); empty where accounts of
            all tenants could be one coalition.
    """

    window: str
    estimator: Estimator
    queries: int
    groups: tuple[tuple[Account, ...], ...]
    tenants: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Accounts of the largest group, the estimated coalition; 1 without groups."""
        return max(map(len, self.groups), default=1)


def estimate(
    policy: WindowPolicy, accounts: Sequence[Account], vectors: NDArray[np.integer]
) -> CoalitionEstimate:
    """Estimate the coalition of a window.

    An account is one of a tenant: the same name under two tenants is two accounts. Those of all
    tenants count together, since one person may hold accounts of several (§5.5 clusters all
    accounts of the ledger).

    Args:
        policy: Names estimator, threshold and span.
        accounts: Tenant and account of each query record, in the log's order.
        vectors: Their integer vectors, shape (queries, dimension).

    Raises:
        InputError: There are not as many vectors as accounts.
    """
    rows = np.asarray(vectors)
    if len(rows) != len(accounts):
        raise InputError(f"{len(accounts):,} queries have {len(rows):,} vectors.")
    # Accounts of all tenants together, or of each tenant apart (version 1).
    estimator, tenants = policy.estimator, tuple(policy.tenants)
    if estimator.together:
        together = _groups(estimator, accounts, rows)
        return CoalitionEstimate(policy.window, estimator, len(accounts), together)
    groups: list[tuple[Account, ...]] = []
    for tenant in tenants:
        rows_of_tenant = [i for i, (name, _) in enumerate(accounts) if name == tenant]
        groups += _groups(estimator, [accounts[i] for i in rows_of_tenant], rows[rows_of_tenant])
    return CoalitionEstimate(policy.window, estimator, len(accounts), tuple(groups), tenants)


def certificate(coalition: CoalitionEstimate) -> bytes:
    """Return the canonical JSON whose SHA-256 the close record holds."""
    # Version 1 lists groups by tenant and has no span.
    policy = coalition.estimator
    estimator = {"name": policy.name, "threshold": repr(float(policy.threshold))}
    groups: object = coalition.groups
    if coalition.tenants:
        groups = {
            tenant: [
                [name for _, name in group] for group in coalition.groups if group[0][0] == tenant
            ]
            for tenant in coalition.tenants
        }
    else:
        estimator["span"] = str(policy.span)
    return canonical(
        {
            "coalition": str(coalition.size),
            "estimator": estimator,
            "groups": groups,
            "queries": str(coalition.queries),
            "version": _APART if coalition.tenants else _VERSION,
            "window": coalition.window,
        }
    )


def _groups(
    estimator: Estimator, accounts: Sequence[Account], vectors: NDArray[np.integer]
) -> tuple[tuple[Account, ...], ...]:
    if not accounts:
        return ()
    # Links, groups of linked accounts, and those in one fixed order.
    names = sorted(set(accounts))
    numbers = {name: number for number, name in enumerate(names)}
    askers = np.array([numbers[name] for name in accounts], dtype=np.int64)
    links = _links(askers, vectors, estimator, len(names))
    # The innermost core alone, or every connected component.
    if estimator.name == "cores":
        groups = [core_group(links)] if links.first.size else []
    else:
        labels = component_labels(links)
        groups = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    named = [tuple(names[i] for i in group.tolist()) for group in groups if len(group) > 1]
    return tuple(sorted(named, key=lambda group: (-len(group), group)))


def _links(
    askers: NDArray[np.int64], vectors: NDArray[np.integer], estimator: Estimator, n: int
) -> Links:
    """Return the pairs of accounts with two queries that are alike, within the span (W)."""
    # Two accounts are linked if some query of one is close enough to some query of the other.
    # Exact squared lengths of all vectors.
    wide = vectors.astype(np.int64)
    squares = np.einsum("nd,nd->n", wide, wide)
    joined = np.zeros((n, n), bool)
    span = estimator.span or len(askers)
    for start in range(0, len(askers), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = vectors[rows].astype(np.float64)
        for column_start in range(start, min(len(askers), start + _BLOCK + span), _BLOCK):
            columns = slice(column_start, column_start + _BLOCK)
            # Exact: a part of a sum of products is a whole number of size at most 2²⁴.
            products = (block @ vectors[columns].astype(np.float64).T).astype(np.int64)
            alike = _alike(products, squares[rows], squares[columns], estimator.steps)
            first, second = np.nonzero(alike)
            near = np.abs(second + column_start - first - start) <= span
            first, second = first[near], second[near]
            pairs = askers[rows][first], askers[columns][second]
            joined[np.minimum(*pairs), np.maximum(*pairs)] = True
    low, high = (indices.astype(np.int64) for indices in np.nonzero(np.triu(joined, 1)))
    return Links(low, high, np.ones(low.size), n)


def _alike(
    products: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64], steps: int
) -> NDArray[np.bool_]:
    """Whether <u, v> > 0 and <u, v>² · 10,000² >= |u|² |v|² · steps², in whole numbers."""
    # Both sides in two limbs: they are longer than 64 bits.
    high, low = _times(products**2, Estimator.STEPS**2)
    needed, rest = _times(np.outer(rows, columns), steps**2)
    alike: NDArray[np.bool_] = (high > needed) | (high == needed) & (low >= rest)
    return alike & (products > 0)


def _times(values: NDArray[np.int64], factor: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return values of at most 2⁴⁸ times a factor below 2²⁷, in parts of 2²⁴ and the rest."""
    rest = (values & _LOW) * factor
    return (values >> _LIMB) * factor + (rest >> _LIMB), rest & _LOW
