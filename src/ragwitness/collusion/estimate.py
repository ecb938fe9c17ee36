"""An estimate for one log: every estimator beside its own null, and one p-value for the log.

Without benign traffic each estimator has at most its own null, which real traffic does not
obey. Benign traffic is compared window by window, so that every window may have its own popular
question. The log then has a p-value over all estimators together, and an account is named only
under its own error rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.detectors import (
    DETECTORS,
    Matrix,
    Settings,
    Whitening,
    account_means,
    detect,
    suspicion,
)
from ragwitness.core.errors import InputError
from ragwitness.privacy.account_pairs import nearest_pair
from ragwitness.privacy.query_log import QueryLog, of_accounts
from ragwitness.privacy.ranges import probability

_LARGEST = 0.95  # threshold
_WINDOWS = 20  # of benign traffic: one for the fit, and 19 for a p-value of .05
_BLOCK = 2048
_STEPS = 30  # of the power method

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class LogEstimate:
    """One estimator's word on a log.

    Attributes:
        name: Name of the estimator.
        size: Accounts of the group that it finds; 1 where it finds none.
        suspicion: Its statistic.
        note: The statistic in words.
        own_p: p-value against its own null; None where it has none.
        traffic_p: p-value against benign traffic, by itself; None without any.
        adjusted_p: The same, after correction for all estimators that ran.
    """

    name: str
    size: int
    suspicion: float
    note: str
    own_p: float | None
    traffic_p: float | None = None
    adjusted_p: float | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """An account that asked too much like others.

    Attributes:
        account: Its name.
        p: Probability, at most, that an innocent account looks as suspicious.
    """

    account: str
    p: float


@dataclass(frozen=True, slots=True)
class LogComparison:
    """A log against windows of benign traffic.

    Attributes:
        p: Largest probability that a benign log looks as suspicious to any estimator: the smallest
            corrected p of all of them.
        alpha: A log with a p-value of at most alpha counts as suspicious.
        account_alpha: Largest p of an account that is named.
        suspects: Named accounts, least p first; none where the log is not suspicious.
        draws: Windows behind ``p``.
        accounts: Benign accounts in these windows.
        least: Smallest p that an account of this log can have.
        unit: ``windows``; results of earlier versions may hold ``accounts``, which accuse nobody.
    """

    p: float
    alpha: float
    account_alpha: float
    suspects: tuple[Suspect, ...]
    draws: int
    accounts: int
    least: float
    unit: str = "windows"

    @property
    def suspicious(self) -> bool:
        """Whether the log is more alike than the traffic explains."""
        return self.p <= self.alpha and self.unit == "windows"


@dataclass(frozen=True, slots=True)
class Estimates:
    """All estimates of a log.

    Attributes:
        estimates: One estimate for each estimator.
        accounts: Number of accounts in the log.
        queries: Number of queries in the log.
        dim: Dimension of the vectors.
        threshold: Least cosine of two queries.
        comparison: With benign traffic; None without any.
    """

    estimates: tuple[LogEstimate, ...]
    accounts: int
    queries: int
    dim: int
    threshold: float
    comparison: LogComparison | None = None

    @property
    def size(self) -> int:
        """Accounts of the coalition, by the estimators that each find the log suspicious.

        1 where the log is not suspicious, or none of them finds a group. The size is an estimate;
        only the log's p-value and each named account have an error rate.
        """
        against = self.comparison
        if against is None or not against.suspicious:
            return 1
        sizes = [
            row.size
            for row in self.estimates
            if row.traffic_p is not None and row.traffic_p <= against.alpha
        ]
        return max(len(against.suspects), *sizes, 1)


def estimate(
    log: QueryLog,
    settings: Settings | None = None,
    *,
    names: Sequence[str] = tuple(DETECTORS),
    ordinary: QueryLog | None = None,
    alpha: float = 0.05,
    account_alpha: float = 0.01,
    progress: Progress | None = None,
) -> Estimates:
    """Estimate how many accounts of a log work together.

    With benign traffic the log's p-value is exact if the log's window is exchangeable with the
    traffic's windows but for a coalition. An account's p-value holds on average over the accounts
    of a benign log.

    Args:
        log: The queries of one window.
        settings: Settings of all estimators.
        names: Estimators to run.
        ordinary: Traffic known to be benign: at least 20 windows as long as the log, with as many
            accounts each.
        alpha: Level of the log.
        account_alpha: Level of an account.
        progress: Called with a word, windows done and windows in all.

    Raises:
        InputError: One account, an unknown estimator, a value outside its range, or benign traffic
            of too few windows or of another dimension.
    """
    settings = settings or Settings()
    _check(log, names, ordinary)
    probability("alpha", alpha)
    probability("account_alpha", account_alpha)
    windows: list[QueryLog] = []
    if ordinary is not None:
        # 1. A third of the windows for whitening and threshold. Fitted on the windows that the log
        #    is compared with, the log would stand out because it was not in the fit.
        fit, windows = _split(log, ordinary, settings.seed)
        settings = replace(
            settings, whitening=Whitening(np.concatenate([window.vectors for window in fit]))
        )
        if settings.threshold is None:
            settings = replace(settings, threshold=_threshold(fit, settings.window))
    settings = replace(settings, threshold=settings.tau(log))  # one for the log and its null
    # 2. Each estimator by itself.
    estimates = []
    for name in names:
        detection = detect(name, log, settings)
        size = max(1, len(detection.members))
        estimates.append(
            LogEstimate(name, size, detection.suspicion, detection.note, detection.p_value)
        )
    comparison = None
    if windows:
        count = len(windows) + 1
        if count * alpha < 1 - 1e-9:
            raise InputError(
                f"Among {count - 1} benign windows no log has a p below {1 / count:.2g}, and alpha"
                f" is {alpha:g}: no coalition could show.",
                "Raise --alpha, or give ordinary traffic of more windows.",
            )
        # 3. One p-value of the log: its rank among the windows.
        table = np.empty((count, len(names)))
        for at, row in enumerate([log, *windows]):
            table[at] = [suspicion(name, row, settings) for name in names]
            if progress is not None and at:
                progress("windows", at, count - 1)
        alone, adjusted, _ = _together(table)
        estimates = [
            replace(estimated, traffic_p=float(p_alone), adjusted_p=float(corrected))
            for estimated, p_alone, corrected in zip(estimates, alone, adjusted, strict=True)
        ]
        # 4. One p-value of each account; names only where the log is suspicious.
        p = float(adjusted.min())
        account_p, least = _account_p_values([log, *windows], settings, links="pairs" in names)
        suspects = [
            Suspect(log.names[at], float(account_p[at]))
            for at in np.flatnonzero(account_p <= account_alpha)
        ]
        comparison = LogComparison(
            p=p,
            alpha=alpha,
            account_alpha=account_alpha,
            suspects=tuple(sorted(suspects, key=lambda one: (one.p, one.account)))
            if p <= alpha
            else (),
            draws=count - 1,
            accounts=sum(window.size for window in windows),
            least=least,
        )
    return Estimates(
        tuple(estimates), log.size, len(log.times), log.dim, settings.tau(log), comparison
    )


# The windows of benign traffic.


def _split(log: QueryLog, ordinary: QueryLog, seed: int) -> tuple[list[QueryLog], list[QueryLog]]:
    """Return windows for the fit, a third of them, and the windows that the log is compared with.

    Raises:
        InputError: There are too few.
    """
    windows = _windows(log, ordinary, seed)
    spare = len(windows) + 1 - _WINDOWS
    if spare <= 0:
        raise InputError(
            f"The ordinary traffic holds {len(windows)} windows as long as this log, with at least"
            f" {log.size} accounts each; {_WINDOWS} are needed.",
            "Give a longer stretch of it, or estimate on a shorter part of the log.",
        )
    order = np.random.default_rng((seed, 2)).permutation(len(windows))
    fit = min(len(windows) // 3, spare)
    return [windows[at] for at in order[:fit]], [windows[at] for at in order[fit:]]


def _threshold(samples: Sequence[QueryLog], window: float) -> float:
    """Calibrate as section 5.5 does, on benign traffic: at most 5 % of samples have a link.

    Where users ask the very same questions no threshold does; then it is the paper's largest.
    """
    nearest = sorted(nearest_pair(sample, window) for sample in samples)
    bar = nearest[min(math.ceil(0.95 * (len(nearest) + 1)), len(nearest)) - 1]
    return float(min(max(np.nextafter(np.float32(bar), np.float32(2)), 0.0), _LARGEST))


def _windows(log: QueryLog, ordinary: QueryLog, seed: int) -> list[QueryLog]:
    """Return benign windows as long as the log's, of as many accounts each.

    Of a window with more accounts, as many are drawn at random. A window with fewer is left out.
    """
    span = float(log.times[-1] - log.times[0])
    if not 0 < span * (_WINDOWS - 1) <= float(ordinary.times[-1] - ordinary.times[0]):
        return []
    windows = []
    slot = ((ordinary.times - ordinary.times[0]) // np.nextafter(span, math.inf)).astype(np.int64)
    edges = np.flatnonzero(np.diff(slot, prepend=-1, append=-1))
    for start, stop in pairwise(edges.tolist()):
        rows = slice(start, stop)
        active = np.unique(ordinary.accounts[rows])
        if len(active) < log.size:
            continue
        rng = np.random.default_rng((seed, 3, int(slot[start])))
        window = QueryLog(
            ordinary.accounts[rows], ordinary.times[rows], ordinary.vectors[rows], ordinary.names
        )
        windows.append(of_accounts(window, np.sort(rng.choice(active, log.size, replace=False))))
    return windows


def _together(table: Floats) -> tuple[Floats, Floats, float]:
    """Rank the first row among all of them, by each column and by all together.

    If the rows are exchangeable, each p-value is valid under any dependence of the columns. A
    row's smallest p over the columns is a statistic, and is ranked in turn (min P of Westfall and
    Young, 1993). The product separates rows of equal minima.

    Returns:
        The first row's p by each column, the same corrected for all columns, and one for the row.
    """
    from scipy.stats import rankdata

    # p of every row by every column: the share of rows that are as large, itself among them.
    # Rounded, or the last bits of a cosine of 1 would tell equal rows apart.
    p_values = rankdata(-table.round(6), method="max", axis=0) / len(table)
    least, product = p_values.min(axis=1), np.log(p_values).sum(axis=1)
    adjusted = (least[:, None] <= p_values[0]).mean(axis=0)
    as_large = (least < least[0]) | ((least == least[0]) & (product <= product[0]))
    return p_values[0], adjusted, float(as_large.mean())


# The p-value of an account.


def _account_p_values(
    rows: Sequence[QueryLog], settings: Settings, *, links: bool
) -> tuple[Floats, float]:
    """Rank each account among the accounts of benign windows, each within its own window.

    Valid on average over the accounts of a benign log. Shape (accounts,), and the smallest.
    """
    tables = [_nearness(row, settings, links=links) for row in rows]
    log, others = tables[0], np.concatenate(tables[1:])
    p_values = [_together(np.concatenate([account[None], others]))[2] for account in log]
    return np.array(p_values), 1 / (len(others) + 1)


def _nearness(log: QueryLog, settings: Settings, *, links: bool) -> Floats:
    """Return how near to the other accounts of a log each account is.

    Returns:
        Shape (accounts, 3): cosine of the nearest mean; with ``links``, mean cosine of a query with
        the nearest one of another account; squared cosine with the others' shared direction.
    """
    means = account_means(log, settings.whitening)
    cosines = means @ means.T
    np.fill_diagonal(cosines, -1.0)
    columns = [cosines.max(axis=1)]
    if links:
        nearest = _nearest(log, settings.window)
        counts = np.bincount(log.accounts, minlength=log.size)
        columns.append(np.bincount(log.accounts, nearest, log.size) / np.maximum(counts, 1))
    columns.append(np.einsum("ij,ij->i", means, _without_each(means)) ** 2)
    return np.column_stack(columns)


def _nearest(log: QueryLog, window: float) -> Floats:
    """Return the cosine of each query with the nearest one of another account; -1 without any."""
    nearest = np.full(len(log.times), -1.0)
    for start in range(0, len(log.times), _BLOCK):
        rows = slice(start, start + _BLOCK)
        for first in range(0, len(log.times), _BLOCK):
            columns = slice(first, first + _BLOCK)
            cosines = log.vectors[rows] @ log.vectors[columns].T
            cosines[log.accounts[rows, None] == log.accounts[columns]] = -1.0
            if math.isfinite(window):
                cosines[np.abs(log.times[rows, None] - log.times[columns]) > window] = -1.0
            nearest[rows] = np.maximum(nearest[rows], cosines.max(axis=1))
    return nearest


def _without_each(means: Matrix) -> Matrix:
    """For each account, the direction that the others share most, shape (accounts, dim).

    The power method on the sum of the others' outer products, from a fixed start: what it finds
    depends on the others alone, however far it has come.
    """
    total = means.T @ means
    start = np.random.default_rng(0).standard_normal((1, means.shape[1]))
    directions: Matrix = np.repeat(start / np.linalg.norm(start), len(means), axis=0)
    for _ in range(_STEPS):
        directions = directions @ total - means * np.einsum("ij,ij->i", means, directions)[:, None]
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
    return directions


def _check(log: QueryLog, names: Sequence[str], ordinary: QueryLog | None) -> None:
    if log.size < 2:
        raise InputError("The log holds one account: nobody to work together with.")
    if not names:
        raise InputError("There is no estimator to run.", f"Available: {', '.join(DETECTORS)}.")
    for name in names:
        if name not in DETECTORS:
            raise InputError(
                f"There is no estimator {name!r}.", f"Available: {', '.join(DETECTORS)}."
            )
    if ordinary is not None and ordinary.dim != log.dim:
        raise InputError(
            f"The log's vectors have {log.dim} dimensions, those of the ordinary traffic"
            f" {ordinary.dim}.",
            "Embed both with the same model.",
        )
