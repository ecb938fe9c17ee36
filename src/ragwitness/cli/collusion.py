"""``ragwitness collusion``: what a privacy claim per account is worth when accounts pool."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.common import console, leave, progress_bars
from ragwitness.cli.options import (
    Accounts,
    JsonPath,
    Queries,
    Sensitivity,
)
from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.options import Arg, Opt, PathRole

if TYPE_CHECKING:
    from ragwitness.privacy.query_log import QueryLog

# ``ragwitness collusion estimate``: how many accounts of a log work together?

_MOST_QUERIES = 20_000  # all pairs of which are compared in less than a minute


def estimate(
    log: Annotated[Path, PathRole.READS, Arg()],
    embedder: Annotated[str | None, PathRole.ADDRESS] = None,
    ordinary: Annotated[Path | None, PathRole.READS] = None,
    threshold: Annotated[
        float | None, Opt(shown="passed by 5 % of ordinary pairs, else of uniform ones")
    ] = None,
    window: Annotated[float | None, Opt(shown="any number")] = None,
    only: Annotated[str | None, Opt(shown="all")] = None,
    k_max: int | None = None,
    alpha: float = 0.05,
    account_alpha: float = 0.01,
    seed: int = 0,
    json_out: JsonPath = None,
) -> None:
    """Estimate how many accounts work together.

    It reads a log of queries. With --ordinary the log gets one p-value over all estimators, by its
    rank among windows of ordinary traffic. At most --alpha, it is suspicious, and the command exits
    with 3. Accounts are then named, each only where an innocent one would look so with a chance of
    at most --account-alpha. Without --ordinary nothing is judged and nobody is named; a cap then
    exits with 4. The paper's estimator (R5) is pairs.

    Args:
        log: The log: JSONL or Parquet with the account, the time and the vector (or the
            text) of each query.
        embedder: The embedder of texts: minilm, hf:NAME or URL#MODEL (an embeddings endpoint).
        ordinary: A log of benign traffic, with which this one is compared: at least 20 windows as
            long as this log, with as many accounts each.
        threshold: The least cosine of two similar queries.
        window: The most seconds between two similar queries.
        only: The estimators, with commas between them.
        k_max: The declared cap: a log exits with 3 only if the estimate is above it.
        alpha: The share of benign logs that may be called suspicious.
        account_alpha: The largest chance that an innocent account looks like one named.
        seed: The seed of the samples and of the permutations.
    """
    from ragwitness.collusion.coalition_result import CoalitionEstimates
    from ragwitness.collusion.detectors import DETECTORS, Settings
    from ragwitness.collusion.estimate import estimate as run_estimate
    from ragwitness.privacy.account_pairs import check_bounds
    from ragwitness.privacy.ranges import whole

    # Step 1: options and bounds, before a log is read.
    names = tuple(DETECTORS) if only is None else tuple(n.strip() for n in only.split(","))
    span = math.inf if window is None else window
    check_bounds(1.0 if threshold is None else threshold, span)
    whole("seed", seed, 0)
    if k_max is not None:
        whole("k_max", k_max)
    # Step 2: the log, as accounts, times and unit vectors.
    queries = _load(log, embedder)
    if len(queries.times) > _MOST_QUERIES and only is None:
        names = tuple(name for name in names if name != "pairs")
    benign = None if ordinary is None else _load(ordinary, embedder)
    screen = console()
    # Step 3: the estimates, one p-value of the log, and one of each account.
    with progress_bars(screen, items="samples") as progress:
        settings = Settings(threshold=threshold, window=span, seed=seed)
        estimates = run_estimate(
            queries,
            settings,
            names=names,
            ordinary=benign,
            alpha=alpha,
            account_alpha=account_alpha,
            progress=progress,
        )
    leave(CoalitionEstimates(estimates, k_max), json_out)
    if "pairs" not in names and only is None:
        screen.print(f"Left out above {_MOST_QUERIES:,} queries: pairs.")
    # Step 4: the log as a whole decides, and the cap where one is declared.
    against = estimates.comparison
    if against is None and k_max is not None:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
    if against is not None and against.suspicious and estimates.size > (k_max or 0):
        raise typer.Exit(ExitCode.FAILED)


def _load(path: Path, embedder: str | None) -> QueryLog:
    """Read a log and embed its texts.

    Raises:
        InputError: It cannot be used, or holds texts and no embedder is named.
    """
    import sys

    from ragwitness.collusion.log_files import read_log
    from ragwitness.report.formatting import visible

    rows = read_log(path)
    for where, reason in rows.skipped:
        sys.stderr.write(f"skipped {visible(where)}: {visible(reason)}\n")
    if rows.left_out > len(rows.skipped):
        sys.stderr.write(f"… and {rows.left_out - len(rows.skipped):,} more rows skipped\n")
    if rows.vectors is not None:
        return rows.log()
    if embedder is None:
        raise InputError(f"{path} holds texts.", "Name what embeds them: --embedder minilm.")
    from ragwitness.models.model_registry import load_embedder

    texts = rows.texts or ()
    # Accounts that collude repeat questions: each text is embedded once.
    once = tuple(dict.fromkeys(texts))
    index = {text: at for at, text in enumerate(once)}
    vectors = load_embedder(embedder).embed(once)
    return rows.log(vectors[[index[text] for text in texts]])


def bound(
    epsilon: float | None = None,
    sigma: float | None = None,
    delta: float = 1e-6,
    queries: Queries = 1000,
    accounts: Accounts = 16,
    sensitivity: Sensitivity = 1.0,
    delta_prime: Annotated[float | None, Opt(shown="--delta")] = None,
    delta_star: float | None = None,
    k_max: Annotated[int | None, Opt(shown="--accounts")] = None,
    json_out: JsonPath = None,
) -> None:
    """Account for what k accounts learn together.

    The paper's bound, Renyi accounting and the exact figure stand side by side, all at the same
    joint delta, k x delta + delta'. Give --epsilon, --sigma or both; with both, the noise is
    accounted for and the claim is checked against it. No system is asked.

    Args:
        epsilon: The epsilon claimed per account; (3.4) chooses the noise for it.
        sigma: The committed noise, in place of the one of (3.4).
        delta: The delta claimed per account.
        delta_prime: The slack of Theorem 3.4.
        delta_star: The joint failure probability of the audit's verdict (5.2).
        k_max: The cap of the verdict.
    """
    from ragwitness.collusion.result import JointBounds
    from ragwitness.privacy.bounds import ServiceTerms, joint_bounds

    # The verdict (5.2) needs a separate joint delta; the sum over accounts is not one.
    if k_max is not None and delta_star is None:
        raise InputError("--k-max belongs to a verdict.", "Give --delta-star as well.")
    terms = ServiceTerms(delta, queries, accounts, epsilon, sigma, sensitivity, delta_prime)
    bounds = joint_bounds(terms)
    verdict = None
    if delta_star is not None:
        verdict = bounds.verdict(terms.accounts if k_max is None else k_max, delta_star)
    leave(JointBounds(bounds, verdict), json_out)


def calibrate(
    epsilon: float | None = None,
    delta: float = 1e-6,
    queries: Queries = 1000,
    accounts: Accounts = 16,
    sensitivity: Sensitivity = 1.0,
    json_out: JsonPath = None,
) -> None:
    """Find the noise for a joint budget.

    Give --epsilon. It prints the exact noise and the paper's. No system is asked.

    Args:
        epsilon: The epsilon that all accounts may spend together.
        delta: The delta of all accounts together.
    """
    from ragwitness.collusion.result import JointBudget, NoisePlans, powers_to
    from ragwitness.privacy.bounds import noise_plan

    if epsilon is None:
        raise InputError("A joint budget is needed.", "Give --epsilon.")
    # The plan that was asked for first; the smaller coalitions beside it show how noise grows with
    # k.
    plan = [noise_plan(epsilon, delta, queries, accounts, sensitivity)]  # refuses bad values
    sizes = powers_to(accounts)[:-1] if accounts > 1 else []
    plans = [noise_plan(epsilon, delta, queries, k, sensitivity) for k in sizes] + plan
    budget = JointBudget(epsilon, delta, queries, accounts, sensitivity)
    leave(NoisePlans(budget, tuple(plans)), json_out)
