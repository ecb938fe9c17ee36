"""An estimate for one log: every estimator, its own null, and ordinary traffic if there is any."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ragwitness.collusion.coalition.detectors import (
    DETECTORS,
    Settings,
    Whitening,
    detect,
    suspicion,
)
from ragwitness.collusion.coalition.log import QueryLog, of_accounts
from ragwitness.collusion.coalition.pairs import nearest_pair
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import whole

_CALIBRATION = 39  # samples behind a threshold
_LARGEST = 0.95


@dataclass(frozen=True, slots=True)
class LogEstimate:
    """One estimator's word on a log.

    Attributes:
        name: Of the estimator.
        size: Accounts in the group it names; 1 where it names none.
        members: Their names.
        suspicion: Its statistic.
        note: What that is.
        own_p: p-value against its own null; None where it has none.
        traffic_p: p-value among samples of ordinary traffic; None without any.
    """

    name: str
    size: int
    members: tuple[str, ...]
    suspicion: float
    note: str
    own_p: float | None
    traffic_p: float | None


@dataclass(frozen=True, slots=True)
class Estimates:
    """All estimates of a log.

    Attributes:
        estimates: By estimator.
        accounts: In the log.
        queries: In the log.
        dim: Of the vectors.
        threshold: Least cosine of two queries.
        draws: Samples of ordinary traffic behind each ``traffic_p``; 0 without any.
        disjoint: How many samples of that size the ordinary traffic holds without overlap.
    """

    estimates: tuple[LogEstimate, ...]
    accounts: int
    queries: int
    dim: int
    threshold: float
    draws: int = 0
    disjoint: int = 0


def estimate(
    log: QueryLog,
    settings: Settings | None = None,
    *,
    names: Sequence[str] = tuple(DETECTORS),
    ordinary: QueryLog | None = None,
    draws: int = 99,
    progress: Callable[[str, int, int], None] | None = None,
) -> Estimates:
    """Estimate how many accounts of a log work together.

    Args:
        log: The queries of one window.
        settings: What the estimators share.
        names: Estimators to run.
        ordinary: Traffic known to be benign, of at least as many accounts; gives the p-values
            that shared intents do not spoil, the whitening, and the threshold if there is none.
        draws: Samples of it, each of as many accounts as the log has.
        progress: Called with an estimator, samples done and samples in all.

    Raises:
        InputError: One account, an unknown estimator, or ordinary traffic of fewer accounts or of
            another dimension.
    """
    settings = settings or Settings()
    _check(log, names, ordinary)
    if ordinary is not None:
        whole("draws", draws)
        settings = replace(settings, whitening=Whitening(ordinary.vectors))
        if settings.threshold is None:
            settings = replace(settings, threshold=_threshold(log.size, ordinary, settings))
    settings = replace(settings, threshold=settings.tau(log))  # one for the log and its null
    found = []
    for name in names:
        seen = detect(name, log, settings)
        p = None
        if ordinary is not None:
            null = _null(name, log.size, ordinary, settings, draws, progress)
            p = (1 + int((null >= suspicion(name, log, settings)).sum())) / (draws + 1)
        members = tuple(log.names[at] for at in seen.members)
        size = max(1, len(members))
        found.append(LogEstimate(name, size, members, seen.suspicion, seen.note, seen.p_value, p))
    return Estimates(
        tuple(found),
        log.size,
        len(log.times),
        log.dim,
        settings.tau(log),
        draws if ordinary is not None else 0,
        ordinary.size // log.size if ordinary is not None else 0,
    )


def _threshold(size: int, ordinary: QueryLog, settings: Settings) -> float:
    """Calibrate as section 5.5 does, on ordinary traffic: at most 5 % of samples have a link.

    Where users ask the very same questions no threshold does; then it is the paper's largest.
    """
    nearest = [
        nearest_pair(_sample(size, ordinary, (settings.seed, 1, at)), settings.window)
        for at in range(_CALIBRATION)
    ]
    bar = sorted(nearest)[math.ceil(0.95 * (_CALIBRATION + 1)) - 1]
    return float(min(max(np.nextafter(np.float32(bar), np.float32(2)), 0.0), _LARGEST))


def _sample(size: int, ordinary: QueryLog, seed: tuple[int, ...]) -> QueryLog:
    rng = np.random.default_rng(seed)
    return of_accounts(ordinary, np.sort(rng.choice(ordinary.size, size, replace=False)))


def _null(
    name: str,
    size: int,
    ordinary: QueryLog,
    settings: Settings,
    draws: int,
    progress: Callable[[str, int, int], None] | None,
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = np.empty(draws)
    for at in range(draws):
        sample = _sample(size, ordinary, (settings.seed, 0, at))  # the same for every estimator
        values[at] = suspicion(name, sample, settings)
        if progress is not None:
            progress(name, at + 1, draws)
    return values


def _check(log: QueryLog, names: Sequence[str], ordinary: QueryLog | None) -> None:
    if log.size < 2:
        raise InputError("The log holds one account: nobody to work together with.")
    for name in names:
        if name not in DETECTORS:
            raise InputError(
                f"There is no estimator {name!r}.", f"Available: {', '.join(DETECTORS)}."
            )
    if ordinary is None:
        return
    if ordinary.dim != log.dim:
        raise InputError(
            f"The log's vectors have {log.dim} dimensions, those of the ordinary traffic"
            f" {ordinary.dim}.",
            "Embed both with the same model.",
        )
    if ordinary.size < log.size:
        raise InputError(
            f"The ordinary traffic has {ordinary.size} accounts, fewer than the log's {log.size}.",
            "Give a longer window of it, or estimate on a part of the accounts.",
        )
