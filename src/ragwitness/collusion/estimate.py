"""An estimate for one log: every estimator beside its own null, and one p-value for the log.

Without benign traffic each estimator has at most a null of its own, which real traffic does not
obey. With it the log has an exact p-value over all estimators together, and an account is named
only under an error rate of its own.
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
from ragwitness.privacy.account_pairs import QueryLog, nearest_pair, of_accounts
from ragwitness.privacy.ranges import probability, whole

_CALIBRATION = 39  # samples behind a threshold
_LARGEST = 0.95
_WINDOWS = 19  # of benign traffic, from which on windows are compared instead of accounts
_SHARED = 0.2  # of an account's queries, left out where accounts are the unit
_MOST = 5_000  # queries of a log, all pairs of which are compared for that
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
        note: What that is.
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
    """A log against benign traffic.

    Attributes:
        p: Probability, at most, that a benign log looks as suspicious to any estimator: the
            smallest corrected p of all of them.
        alpha: Below or at which the log counts as unusual.
        account_alpha: Largest p of an account that is named.
        suspects: Named accounts, least p first; none where the log is not suspicious.
        unit: What is taken to be alike in benign traffic: ``accounts`` or whole ``windows``.
        draws: Logs behind ``p``.
        accounts: Benign accounts that the log was compared with; those that gave the whitening
            and the threshold are not among them.
        least: Smallest p that an account of this log can have.
        trimmed: Whether the fifth of each account's queries that is nearest to those of others
            was left out: one day's popular question then makes no coalition.
        likeness_p: Where accounts are the unit, p-value of the assumption itself: that most
            accounts of the log are as unlike each other as most ordinary ones.
    """

    p: float
    alpha: float
    account_alpha: float
    suspects: tuple[Suspect, ...]
    unit: str
    draws: int
    accounts: int
    least: float
    trimmed: bool
    likeness_p: float | None = None

    @property
    def comparable(self) -> bool:
        """Whether nothing speaks against the assumption on which ``p`` stands."""
        return self.likeness_p is None or self.likeness_p > self.alpha

    @property
    def unusual(self) -> bool:
        """Whether a part of the log is more alike than the traffic explains."""
        return self.comparable and self.p <= self.alpha

    @property
    def suspicious(self) -> bool:
        """Whether the log as a whole is: only windows allow each its own popular question.

        A class or a team that asks about one thing for an hour makes a log of accounts unusual.
        """
        return self.unusual and self.unit == "windows"


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
        """Accounts of the coalition, by the estimators that each find the log unusual.

        1 where the log is not unusual, or none of them finds a group. It is an estimate: what
        has an error rate is that there is a coalition at all, and each account that is named.
        """
        found = self.comparison
        if found is None or not found.unusual:
            return 1
        counted = [
            one.size
            for one in self.estimates
            if one.traffic_p is not None and one.traffic_p <= found.alpha
        ]
        return max(len(found.suspects), *counted, 1)


def estimate(
    log: QueryLog,
    settings: Settings | None = None,
    *,
    names: Sequence[str] = tuple(DETECTORS),
    ordinary: QueryLog | None = None,
    draws: int = 199,
    alpha: float = 0.05,
    account_alpha: float = 0.01,
    progress: Progress | None = None,
) -> Estimates:
    """Estimate how many accounts of a log work together.

    With benign traffic two things are exact. The log's p-value: accounts of a benign log are
    taken to be exchangeable with those of the traffic, or, where the traffic holds 19 windows as
    long as the log's and with as many accounts, the log's window with those windows, which lets
    every window have its own popular question. An account's p-value: whoever else colludes, an
    innocent account is exchangeable with a benign one.

    Args:
        log: The queries of one window.
        settings: What the estimators share.
        names: Estimators to run.
        ordinary: Traffic known to be benign, of at least as many accounts.
        draws: Logs that the log is compared with, where accounts are the unit.
        alpha: Level of the log.
        account_alpha: Level of an account.
        progress: Called with what is computed, draws done and draws in all.

    Raises:
        InputError: One account, an unknown estimator, a value outside its range, or benign traffic
            of fewer accounts or of another dimension.
    """
    settings = settings or Settings()
    _check(log, names, ordinary)
    whole("draws", draws)
    probability("alpha", alpha)
    probability("account_alpha", account_alpha)
    against = None
    if ordinary is not None:
        # 1. Benign traffic in two parts. Whitening and threshold come from one, so that they know
        #    nothing of the other, nor of the log: fitted on what it is compared with, a log that
        #    was not in the fit stands out.
        against = _split(log, ordinary, settings.seed)
        settings = replace(settings, whitening=Whitening(against.fit.vectors))
        if settings.threshold is None:
            settings = replace(settings, threshold=_threshold(against.samples, settings.window))
    settings = replace(settings, threshold=settings.tau(log))  # one for the log and its null
    # 2. What every estimator says of the log.
    found = []
    for name in names:
        seen = detect(name, log, settings)
        size = max(1, len(seen.members))
        found.append(LogEstimate(name, size, seen.suspicion, seen.note, seen.p_value))
    comparison = None
    if against is not None:
        # 3. One p-value of the log: its rank among windows, or among logs drawn from its own
        #    accounts and the benign ones.
        windows = [log, *against.windows] if against.windows else []
        trimmed = not windows and len(log.times) <= _MOST
        count = len(windows) or draws + 1
        if count * alpha < 1 - 1e-9:
            raise InputError(
                f"Among {count - 1} benign logs no log has a p below {1 / count:.2g}, and alpha is"
                f" {alpha:g}: whatever it holds, nothing would show.",
                "Raise --alpha, or --draws, or give ordinary traffic of more windows.",
            )
        pool = None if windows else _pool(log, against.rest)
        # Suspicion of each log by each estimator; a log is made when its turn comes.
        table, spread = np.empty((count, len(names))), np.empty(count)
        for at in range(count):
            row = windows[at] if pool is None else _drawn(pool, log.size, at, settings.seed)
            spread[at] = _likeness(row, settings)
            row = _without_shared(row, row) if trimmed else row
            table[at] = [suspicion(name, row, settings) for name in names]
            if progress is not None and at:
                progress("samples", at, count - 1)
        alone, adjusted, _ = _together(table)
        p = float(adjusted.min())
        found = [
            replace(one, traffic_p=float(alone[at]), adjusted_p=float(adjusted[at]))
            for at, one in enumerate(found)
        ]
        # 4. One p-value of each account; names only where the log is suspicious.
        links = "pairs" in names
        if against.windows:
            each, least = _among_windows(windows, settings, links=links)
        else:
            each, least = _among_accounts(log, against.rest, settings, links=links, trimmed=trimmed)
        named = [
            Suspect(log.names[at], float(each[at])) for at in np.flatnonzero(each <= account_alpha)
        ]
        comparison = LogComparison(
            p,
            alpha,
            account_alpha,
            tuple(sorted(named, key=lambda one: (one.p, one.account))) if p <= alpha else (),
            "windows" if against.windows else "accounts",
            count - 1,
            against.rest.size,
            least,
            trimmed,
            None if windows else _two_sided(spread),
        )
    return Estimates(tuple(found), log.size, len(log.times), log.dim, settings.tau(log), comparison)


# The p-value of the log.


@dataclass(frozen=True, slots=True)
class _Benign:
    """Benign traffic in two parts: what the settings are fitted on, and what is compared."""

    fit: QueryLog
    samples: tuple[QueryLog, ...]  # of the first, about as large as the log
    rest: QueryLog
    windows: tuple[QueryLog, ...]  # of the second; none where accounts are the unit


def _split(log: QueryLog, ordinary: QueryLog, seed: int) -> _Benign:
    """Keep a third for the fit: of the windows where there are enough, else of the accounts."""
    rng = np.random.default_rng((seed, 2))
    windows = _windows(log, ordinary, seed)
    spare = len(windows) - _WINDOWS
    if spare > 0:
        order = rng.permutation(len(windows))
        fit = tuple(windows[at] for at in order[: min(len(windows) // 3, spare)])
        rest = tuple(windows[at] for at in order[len(fit) :])
        return _Benign(_joined(fit), fit, _joined(rest), rest)
    # At least as many accounts are compared as the log has.
    if ordinary.size <= log.size:
        raise InputError(
            f"The ordinary traffic has {ordinary.size} accounts; it needs more than the log's"
            f" {log.size}.",
            "Give a longer window of it, or estimate on a part of the accounts.",
        )
    order = rng.permutation(ordinary.size)
    third = max(1, min(ordinary.size // 3, ordinary.size - log.size))
    part = of_accounts(ordinary, np.sort(order[:third]))
    size = min(log.size, third)
    picked = (_pick(size, part.size, (seed, 1, at)) for at in range(_CALIBRATION))
    samples = tuple(of_accounts(part, one) for one in picked)
    return _Benign(part, samples, of_accounts(ordinary, np.sort(order[third:])), ())


def _threshold(samples: Sequence[QueryLog], window: float) -> float:
    """Calibrate as section 5.5 does, on benign traffic: at most 5 % of samples have a link.

    Where users ask the very same questions no threshold does; then it is the paper's largest.
    """
    nearest = sorted(nearest_pair(sample, window) for sample in samples)
    bar = nearest[min(math.ceil(0.95 * (len(nearest) + 1)), len(nearest)) - 1]
    return float(min(max(np.nextafter(np.float32(bar), np.float32(2)), 0.0), _LARGEST))


def _windows(log: QueryLog, ordinary: QueryLog, seed: int) -> list[QueryLog]:
    """Benign windows as long as the log's, of as many accounts each.

    A window of more accounts is so many of them, drawn at random; one of fewer is left out.
    """
    span = float(log.times[-1] - log.times[0])
    if not 0 < span * _WINDOWS <= float(ordinary.times[-1] - ordinary.times[0]):
        return []
    found = []
    slot = ((ordinary.times - ordinary.times[0]) // np.nextafter(span, math.inf)).astype(np.int64)
    edges = np.flatnonzero(np.diff(slot, prepend=-1, append=-1))
    for start, stop in pairwise(edges.tolist()):
        mine = slice(start, stop)
        active = np.unique(ordinary.accounts[mine])
        if len(active) < log.size:
            continue
        rng = np.random.default_rng((seed, 3, int(slot[start])))
        part = QueryLog(
            ordinary.accounts[mine], ordinary.times[mine], ordinary.vectors[mine], ordinary.names
        )
        found.append(of_accounts(part, np.sort(rng.choice(active, log.size, replace=False))))
    return found


def _joined(windows: Sequence[QueryLog]) -> QueryLog:
    """Windows as one log, an account of two windows counted twice."""
    names = tuple(name for window in windows for name in window.names)
    before = np.cumsum([0, *(window.size for window in windows)])
    return QueryLog(
        np.concatenate([w.accounts + at for w, at in zip(windows, before, strict=False)]),
        np.concatenate([window.times for window in windows]),
        np.concatenate([window.vectors for window in windows]),
        names,
    )


def _pool(log: QueryLog, benign: QueryLog) -> QueryLog:
    """The log's accounts and the benign ones as one log, within the log's own window.

    Benign traffic of a longer time is folded into it: its accounts then ask more often than the
    log's, and look more suspicious rather than less.
    """
    span = float(np.nextafter(log.times[-1] - log.times[0], math.inf))
    times = np.concatenate([log.times - log.times[0], (benign.times - benign.times[0]) % span])
    order = np.argsort(times, kind="stable")
    return QueryLog(
        np.concatenate([log.accounts, benign.accounts + log.size])[order],
        times[order],
        np.concatenate([log.vectors, benign.vectors])[order],
        (*log.names, *benign.names),
    )


def _drawn(pool: QueryLog, size: int, at: int, seed: int) -> QueryLog:
    """Return the log itself at 0, and another draw of as many accounts at each other number."""
    picked = _pick(size, pool.size, (seed, 0, at - 1)) if at else np.arange(size)
    return of_accounts(pool, picked)


def _pick(size: int, among: int, seed: tuple[int, ...]) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(seed).choice(among, size, replace=False))


def _without_shared(who: QueryLog, log: QueryLog) -> QueryLog:
    """Leave out the fifth of each account's queries that is nearest to queries of others.

    In a window with a question of its own, all who ask it look alike, and unlike the traffic of
    other windows. A coalition that asks its probes no oftener than that keeps a fifth of its
    signal.

    Args:
        who: The accounts whose queries are left out.
        log: The others; ``who`` itself, or a log without these accounts.
    """
    nearest = _nearest(who, log, math.inf, same=who is log)
    # Rank of each query within its account, nearest to others first.
    order = np.lexsort((-nearest, who.accounts))
    counts = np.bincount(who.accounts, minlength=who.size)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = rank >= np.floor(_SHARED * counts + 1e-9)[who.accounts]
    return QueryLog(who.accounts[kept], who.times[kept], who.vectors[kept], who.names)


def _likeness(log: QueryLog, settings: Settings) -> float:
    """How alike most accounts of a log are: the median of each one's mean cosine with the others.

    Fewer than half of the accounts, whatever they ask together, hardly move it; traffic of other
    users, or about other things, does.
    """
    means = account_means(log, settings.whitening)
    cosines = means @ means.T
    return float(np.median((cosines.sum(axis=1) - cosines.diagonal()) / (log.size - 1)))


def _two_sided(values: Floats) -> float:
    """Return twice the smaller rank of the first value among all of them, as a share."""
    low = float((values <= values[0]).mean())
    high = float((values >= values[0]).mean())
    return min(1.0, 2 * min(low, high))


def _together(table: Floats) -> tuple[Floats, Floats, float]:
    """Rank the first row among all of them, by each column and by all together.

    Where the rows are exchangeable, each p-value is valid, whatever the columns have to do with
    each other: a row's smallest p over the columns is a statistic like any other, ranked in turn
    (min P of Westfall and Young, 1993). Rows of equal minima are told apart by the product.

    Returns:
        The first row's p by each column, the same corrected for all columns, and one for the row.
    """
    from scipy.stats import rankdata

    # p of every row by every column: the share of rows that are as large, itself among them.
    # Rounded, or the last bits of a cosine of 1 would tell equal rows apart.
    each = rankdata(-table.round(6), method="max", axis=0) / len(table)
    least, product = each.min(axis=1), np.log(each).sum(axis=1)
    adjusted = (least[:, None] <= each[0]).mean(axis=0)
    as_large = (least < least[0]) | ((least == least[0]) & (product <= product[0]))
    return each[0], adjusted, float(as_large.mean())


# The p-value of an account.


def _among_accounts(
    log: QueryLog, benign: QueryLog, settings: Settings, *, links: bool, trimmed: bool
) -> tuple[Floats, float]:
    """Give each account a p-value: its rank among benign ones put in its place.

    An innocent account and the benign ones are exchangeable, given the others of the log, so its
    rank among them is uniform, whoever the others are (a conformal p-value). The benign ones are
    put into the log as it stands, one account more than the account itself is compared with:
    that can only make them look more suspicious.

    Returns:
        Shape (accounts,), and the smallest that can be.
    """
    pool = _pool(log, benign)
    inside = of_accounts(pool, np.arange(log.size))
    outside = of_accounts(pool, np.arange(log.size, pool.size))
    directions = _without_each(account_means(inside, settings.whitening))
    if trimmed:
        # Who is judged is judged by what is left; the log that it is compared with stays whole.
        judged = [_without_shared(inside, inside), _without_shared(outside, inside)]
    else:
        judged = [inside, outside]
    near = np.concatenate(
        [
            _nearness(inside, who, settings, links=links, same=not at)
            for at, who in enumerate(judged)
        ]
    )
    means = np.concatenate([account_means(who, settings.whitening) for who in judged])
    found = np.empty(log.size)
    for at in range(log.size):
        rows = np.r_[at, log.size : pool.size]
        found[at] = _together(np.column_stack([near[rows], (means[rows] @ directions[at]) ** 2]))[2]
    return found, 1 / (benign.size + 1)


def _among_windows(
    rows: Sequence[QueryLog], settings: Settings, *, links: bool
) -> tuple[Floats, float]:
    """Rank each account among the accounts of benign windows, each within its own window.

    Valid on average over the accounts of a benign log. Shape (accounts,), and the smallest.
    """
    tables = []
    for row in rows:
        means = account_means(row, settings.whitening)
        along = np.einsum("ij,ij->i", means, _without_each(means))
        tables.append(
            np.column_stack([_nearness(row, row, settings, links=links, same=True), along**2])
        )
    log, others = tables[0], np.concatenate(tables[1:])
    found = [_together(np.concatenate([one[None], others]))[2] for one in log]
    return np.array(found), 1 / (len(others) + 1)


def _nearness(
    log: QueryLog, who: QueryLog, settings: Settings, *, links: bool, same: bool
) -> Floats:
    """How near other accounts of a log each account is: the same ones, or each one put into it.

    Returns:
        Shape (accounts, 2): cosine of the nearest mean; mean cosine of a query with the nearest
        one of another account. Shape (accounts, 1) without links.
    """
    means = account_means(log, settings.whitening)
    cosines = account_means(who, settings.whitening) @ means.T
    if same:
        np.fill_diagonal(cosines, -1.0)
    columns = [cosines.max(axis=1)]
    if links:
        each = _nearest(who, log, settings.window, same=same)
        asked = np.bincount(who.accounts, minlength=who.size)
        columns.append(np.bincount(who.accounts, each, who.size) / np.maximum(asked, 1))
    return np.column_stack(columns)


def _nearest(who: QueryLog, log: QueryLog, window: float, *, same: bool) -> Floats:
    """Cosine of each query with the nearest one of another account of a log; -1 without any."""
    found = np.full(len(who.times), -1.0)
    for start in range(0, len(who.times), _BLOCK):
        rows = slice(start, start + _BLOCK)
        for other in range(0, len(log.times), _BLOCK):
            columns = slice(other, other + _BLOCK)
            cosines = who.vectors[rows] @ log.vectors[columns].T
            if same:
                cosines[who.accounts[rows, None] == log.accounts[columns]] = -1.0
            if math.isfinite(window):
                cosines[np.abs(who.times[rows, None] - log.times[columns]) > window] = -1.0
            found[rows] = np.maximum(found[rows], cosines.max(axis=1))
    return found


def _without_each(means: Matrix) -> Matrix:
    """For each account, the direction that the others share most, shape (accounts, dim).

    The power method on the sum of the others' outer products, from a fixed start: what it finds
    depends on the others alone, however far it has come.
    """
    total = means.T @ means
    start = np.random.default_rng(0).standard_normal((1, means.shape[1]))
    found: Matrix = np.repeat(start / np.linalg.norm(start), len(means), axis=0)
    for _ in range(_STEPS):
        found = found @ total - means * np.einsum("ij,ij->i", means, found)[:, None]
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)
    return found


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
