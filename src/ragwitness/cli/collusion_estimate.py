"""``ragwitness collusion estimate``: how many accounts of a log work together?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ragwitness.collusion.coalition.estimate import Estimates
    from ragwitness.collusion.coalition.log import QueryLog

__all__ = ["estimate"]

_GRID = [round(0.20 + 0.05 * step, 2) for step in range(16)]
_MOST_QUERIES = 20_000  # all pairs of which are compared in less than a minute


def estimate(
    log: Annotated[
        Path,
        typer.Argument(help="JSONL with account, time and vector (or text) of each query."),
    ],
    embedder: Annotated[
        str | None,
        typer.Option(help="For texts: minilm, hf:NAME or URL#MODEL (embeddings endpoint)."),
    ] = None,
    ordinary: Annotated[
        Path | None, typer.Option(help="Log of traffic known to be benign; what suspicion is of.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Least cosine of similar queries.", show_default="5 % of ordinary, else of uniform"
        ),
    ] = None,
    window: Annotated[
        float | None, typer.Option(help="Seconds between similar queries.", show_default="any")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Estimators, with commas between.", show_default="all")
    ] = None,
    k_max: Annotated[
        int | None, typer.Option(help="Declared cap; exit with 3 where an estimate is above it.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Samples of the ordinary traffic.")] = 99,
    seed: Annotated[int, typer.Option(help="Of samples and permutations.")] = 0,
    json_out: Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Also write an SVG figure here.")] = None,
) -> None:
    """Estimate from a log how many accounts work together. Names them.

    The paper's estimator (R5) beside stronger ones. With --ordinary the suspicion is compared
    with samples of benign traffic, and an estimate counts for --k-max only where that p-value is
    at most .05.
    """
    from ragwitness.cli.common import console, progress_bars
    from ragwitness.cli.outputs import check_writable
    from ragwitness.collusion.coalition.detectors import DETECTORS, Settings
    from ragwitness.collusion.coalition.estimate import estimate as run_estimate
    from ragwitness.collusion.coalition.pairs import check_bounds
    from ragwitness.errors import ExitCode
    from ragwitness.privacy.accounting.ranges import whole
    from ragwitness.report.coalition import coalition_terminal, counts

    names = tuple(DETECTORS) if only is None else tuple(n.strip() for n in only.split(","))
    span = math.inf if window is None else window
    check_bounds(1.0 if threshold is None else threshold, span)
    whole("seed", seed, 0)
    if k_max is not None:
        whole("k_max", k_max)
    for path in (json_out, figure):
        if path is not None:
            check_writable(path)
    queries = _load(log, embedder)
    if len(queries.times) > _MOST_QUERIES and only is None:
        names = tuple(name for name in names if name not in ("pairs", "cores"))
    benign = None if ordinary is None else _load(ordinary, embedder)
    settings = Settings(threshold=threshold, window=span, seed=seed)
    screen = console()
    with progress_bars(screen, items="samples") as progress:
        found = run_estimate(
            queries, settings, names=names, ordinary=benign, draws=draws, progress=progress
        )
    large = len(queries.times) > _MOST_QUERIES
    _write(found, queries, span, json_out, None if large else figure)
    screen.print(coalition_terminal(found, k_max=k_max))
    if large:
        what = "pairs, cores and the figure" if only is None else "the figure"
        screen.print(f"Left out above {_MOST_QUERIES:,} queries: {what}.")
    counted = [one.size for one in found.estimates if counts(one)]
    if k_max is not None and max(counted, default=1) > k_max:
        raise typer.Exit(ExitCode.FAILED)


def _load(path: Path, embedder: str | None) -> QueryLog:
    """Read a log and embed its texts.

    Raises:
        InputError: It cannot be used, or holds texts and no embedder is named.
    """
    import sys

    import numpy as np

    from ragwitness.collusion.coalition.log import make_log
    from ragwitness.collusion.coalition.reading import read_log
    from ragwitness.errors import InputError
    from ragwitness.report.wording import visible

    rows = read_log(path)
    for where, why in rows.skipped[:5]:
        sys.stderr.write(f"skipped {visible(where)}: {visible(why)}\n")
    if len(rows.skipped) > 5:
        sys.stderr.write(f"… and {len(rows.skipped) - 5} more rows skipped\n")
    if rows.vectors is not None:
        return make_log(rows.accounts, rows.times, np.array(rows.vectors))
    if embedder is None:
        raise InputError(f"{path} holds texts.", "Name what embeds them: --embedder minilm.")
    from ragwitness.rag.embedders import load_embedder

    texts = rows.texts or ()
    once = tuple(dict.fromkeys(texts))
    place = {text: at for at, text in enumerate(once)}
    vectors = load_embedder(embedder).embed(once)
    return make_log(rows.accounts, rows.times, vectors[[place[text] for text in texts]])


def _write(
    found: Estimates, log: QueryLog, window: float, json_out: Path | None, figure: Path | None
) -> None:
    import json

    from ragwitness.collusion.coalition.pairs import group_curve
    from ragwitness.report.coalition import coalition_json, coalition_svg
    from ragwitness.report.writing import write_text

    if json_out is not None:
        text = json.dumps(coalition_json(found), indent=1, ensure_ascii=False, allow_nan=False)
        write_text(json_out, text + "\n")
    if figure is not None:
        write_text(figure, coalition_svg(group_curve(log, _GRID, window), found))
