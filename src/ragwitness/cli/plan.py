"""``ragwitness plan``: what audits would cost and could show, before the first query."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.common import (
    console,
    leave,
    one_thread_per_answer,
    print_lines,
    progress_bars,
    say_error,
)
from ragwitness.cli.options import JsonPath, KnownOutIfAny, Sample
from ragwitness.core.errors import InputError
from ragwitness.core.options import Opt, PathRole
from ragwitness.runner.task_options import (
    AuditSettings,
    Documents,
    HowRead,
    Paragraphs,
    PriceIn,
    PriceOut,
    Proxy,
)
from ragwitness.runner.task_runtime import as_documents, per_method

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ragwitness.membership.forecast import OutlookPlan
    from ragwitness.membership.results.forecast import Outlook
    from ragwitness.stats.power import Separation

_MOST = 20  # documents of each kind on which costs are counted
_PATIENCE = 40.0  # seconds for all methods together, where no sample is asked for
_AUCS = (0.7, 0.8, 0.9, 0.95, 0.99)


def plan(
    documents: Documents,
    known_out: KnownOutIfAny = None,
    method: str = "all",
    options: AuditSettings = None,
    alpha: float = 0.05,
    inside_share: float = 0.5,
    auc: Annotated[float | None, Opt(shown="several AUCs")] = None,
    evaluation: Annotated[Path | None, PathRole.READS] = None,
    proxy: Proxy = "reader",
    run: Annotated[Path | None, PathRole.READS, Opt("--from", metavar="RUN")] = None,
    sample: Sample = None,
    seed: int = 0,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    concurrency: int = 4,
    json_out: JsonPath = None,
    *,
    how: HowRead,
    paragraphs: Paragraphs = False,
) -> None:
    """Estimate what audits would cost and find; nothing is sent.

    It counts queries, tokens and, with prices, money. It also says what so many documents known to
    be outside can decide at all, and simulates what share of the documents inside the audits would
    find.

    Args:
        method: The audits: all, or names with commas between them.
        alpha: The share of wrong accusations that is accepted.
        inside_share: The probability that a document in question is inside.
        auc: How well the audit tells members from others (AUC).
        evaluation: The JSON of ragwitness evaluate, which has measured it instead.
        run: A finished run on documents of the same kind: its calibration scores say how often
            scores are equal, which costs power.
        seed: The seed that draws the sample.
        concurrency: The number of documents that are asked about at once.
    """
    from ragwitness.membership.forecast import OutlookPlan
    from ragwitness.membership.plan import AuditPlan
    from ragwitness.runner.budget import Budget

    # Options and documents are read; nothing here opens a target.
    names = names_of(method)
    configs = configs_of(names, per_method(options))
    read = partial(as_documents, how=how, note=say_error, paragraphs=paragraphs)
    asked = OutlookPlan(
        audit=AuditPlan(
            documents=read(documents),
            known_out=read(known_out),
            alpha=alpha,
            in_flight=concurrency,
        ),
        # Power needs a separation: one AUC, a measured ROC, or several AUCs side by side where none
        # is known.
        separations=_separations(names, auc, evaluation, every=method == "all", run=run),
        inside_share=inside_share,
        **counted(sample, len(names)),
        seed=seed,
        budget=Budget(price_in=price_in, price_out=price_out),
    )
    # The audits' own probes are counted on a sample, so the count is of queries that they would
    # put.
    leave(foresee(asked, configs, proxy), json_out)
    print_lines(console(), "Nothing was sent.")


def counted(sample: int | None, methods: int) -> dict[str, Any]:
    """Return on how many documents costs are counted, or for how long."""
    if sample is not None:
        return {"sample": sample}
    return {"sample": _MOST, "patience": _PATIENCE / methods}


def foresee(
    plan: OutlookPlan, configs: Mapping[str, Any], proxy: str, latency: float | None = None
) -> Outlook:
    """Count and simulate, with a progress bar.

    Args:
        plan: Documents and what is assumed of them.
        configs: By registered name: the audit's configuration, None for the defaults.
        proxy: The auditor's own model.
        latency: Measured seconds per short answer.
    """
    from ragwitness.membership.forecast import look_ahead
    from ragwitness.membership.methods.method_registry import build_audit
    from ragwitness.membership.plan import among
    from ragwitness.models.model_registry import load_language_model

    model = load_language_model(proxy)
    every = plan.audit.every_document
    audits = {
        name: among(build_audit(name, model, config), every) for name, config in configs.items()
    }
    one_thread_per_answer()
    with progress_bars(console()) as progress:
        return asyncio.run(look_ahead(plan, audits, model, latency=latency, progress=progress))


def assumed(names: Iterable[str]) -> dict[str, dict[str, Separation]]:
    """Return several AUCs for each audit of which nothing is known."""
    from ragwitness.stats.power import Binormal

    several: dict[str, Separation] = {_label(auc): Binormal(auc) for auc in _AUCS}
    return dict.fromkeys(names, several)


def _label(auc: float) -> str:
    return f"AUC {auc:g}".replace("0.", ".")


def names_of(method: str) -> tuple[str, ...]:
    """Read ``all`` or names with commas between.

    Raises:
        InputError: There is no name.
    """
    from ragwitness.membership.methods.method_registry import AUDITS

    if method == "all":
        return tuple(AUDITS)
    names = tuple(dict.fromkeys(filter(None, (name.strip() for name in method.split(",")))))
    if not names:
        raise InputError("There is no method to plan with.", f"Available: {', '.join(AUDITS)}.")
    return names


def configs_of(names: Sequence[str], options: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """Configure every audit.

    Raises:
        InputError: An unknown name, field or value, or options for an audit that is not named.
    """
    from ragwitness.membership.methods.method_registry import configure

    if lost := sorted(set(options) - set(names)):
        raise InputError(
            f"There are options for {lost[0]!r}, which is not planned.",
            f"Planned: {', '.join(names)}.",
        )
    return {name: configure(name, options.get(name)) for name in names}


def _separations(
    names: Sequence[str],
    auc: float | None,
    evaluation: Path | None,
    *,
    every: bool,
    run: Path | None = None,
) -> dict[str, dict[str, Separation]]:
    """Say how well each audit may tell members apart.

    Args:
        names: Registered names.
        auc: The same for all, where it is given.
        evaluation: JSON in which it was measured.
        every: Whether all methods were asked for; those not evaluated then stay without a figure.
        run: Run whose calibration scores are like those to come.

    Raises:
        InputError: Both are given, the AUC is none, or the evaluation lacks a method.
    """
    from ragwitness.stats.power import Binormal

    if auc is not None and evaluation is not None:
        raise InputError("--auc and --evaluation say the same thing twice.", "Give one of them.")
    if run is not None:
        if evaluation is not None:
            raise InputError("--from and --evaluation say the same thing twice.", "Give one.")
        return _as_in(run, names, _AUCS if auc is None else (auc,))
    # One AUC for all: the binormal ROC with that area.
    if auc is not None:
        return {name: {_label(auc): Binormal(auc)} for name in names}
    if evaluation is None:
        return assumed(names)
    from ragwitness.membership.results.evaluation import measured_rocs

    # A measured ROC brings the number of documents it rests on, and with it the spread of the
    # forecast.
    found = measured_rocs(evaluation)
    missing = [name for name in names if name not in found]
    if missing and not (every and len(missing) < len(names)):
        raise InputError(
            f"{evaluation} holds no evaluation of {missing[0]!r}.",
            f"It holds: {', '.join(found) or 'none'}.",
        )
    return {name: {"as evaluated": found[name]} for name in names if name in found}


def _as_in(
    run: Path, names: Sequence[str], aucs: Sequence[float]
) -> dict[str, dict[str, Separation]]:
    """Say how well a run's method tells members apart, with scores equal as often as there.

    Raises:
        InputError: It is no audit of documents, or of another method.
    """
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.report.result_type import open_result
    from ragwitness.stats.power import FEWEST_INSIDE, measured_or_tied

    found = open_result(run)[1]
    if not isinstance(found, AuditResult) or not found.calibration.scores:
        raise InputError(f"{run} holds no audit of documents with calibration scores.")
    name, scores = found.method.split(" (")[0], found.calibration.scores
    if name not in names:
        raise InputError(
            f"{run} is an audit by {name}, and {', '.join(names)} is asked for.",
            f"Plan with --method {name}, or without --method.",
        )
    # Where members are known, their scores say how well they are told apart; else AUCs are
    # assumed. In both cases equal scores count as they will.
    members = [v.score for v in found.verdicts if v.member and v.score is not None]
    if len(members) >= FEWEST_INSIDE:
        return {name: {"as in the run": measured_or_tied(members, scores, aucs[0])}}
    return {name: {_label(auc): measured_or_tied((), scores, auc) for auc in aucs}}
