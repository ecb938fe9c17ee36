"""``ragwitness plan``: what audits would cost and could show, before the first query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.caps import PriceIn, PriceOut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ragwitness.runs import Outlook, OutlookPlan
    from ragwitness.stats.power import Separation

__all__ = ["assumed", "foresee", "plan", "store"]

_AUCS = (0.7, 0.8, 0.9, 0.95, 0.99)


def plan(
    documents: Annotated[
        str,
        typer.Option(help="Documents in question: JSONL, CSV, a folder of text, or pasted text."),
    ],
    known_out: Annotated[
        str | None,
        typer.Option(help="Documents known to be outside; default: 200 generated ones."),
    ] = None,
    method: Annotated[str, typer.Option(help="all, or names with commas between.")] = "all",
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="METHOD.NAME=VALUE of its configuration; may be repeated."),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the verdicts.")] = 0.05,
    inside_share: Annotated[
        float, typer.Option(help="Probability that a document in question is inside.")
    ] = 0.5,
    auc: Annotated[
        float | None, typer.Option(help="How well the audit tells members apart.")
    ] = None,
    evaluation: Annotated[
        Path | None, typer.Option(help="JSON of ragwitness evaluate that measured it instead.")
    ] = None,
    proxy: Annotated[str, typer.Option(help="The auditor's own model.")] = "reader",
    sample: Annotated[
        int, typer.Option(help="Documents of each kind that costs are counted on.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    concurrency: Annotated[int, typer.Option(help="Documents in flight.")] = 4,
    json_out: Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
) -> None:
    """Say what audits would cost and find, before the first query. Sends nothing.

    Without --auc and --evaluation the expected power is shown for several AUCs.
    """
    from ragwitness.cli.common import console, per_audit, read_documents
    from ragwitness.cli.outputs import check_writable
    from ragwitness.report.forecast import forecast_json, forecast_terminal
    from ragwitness.runs import AuditPlan, Budget, OutlookPlan

    names = _names(method)
    configs = _configs(names, per_audit(options or ()))
    asked = OutlookPlan(
        audit=AuditPlan(
            documents=read_documents(documents, text_field, paragraphs=paragraphs),
            known_out=()
            if known_out is None
            else read_documents(known_out, text_field, paragraphs=paragraphs),
            alpha=alpha,
            in_flight=concurrency,
        ),
        separations=_separations(names, auc, evaluation, every=method == "all"),
        inside_share=inside_share,
        sample=sample,
        seed=seed,
        budget=Budget(price_in=price_in, price_out=price_out),
    )
    if json_out is not None:
        check_writable(json_out)
    outlook = foresee(asked, configs, proxy)
    if json_out is not None:
        store(json_out, forecast_json(outlook))
    screen = console()
    screen.print(forecast_terminal(outlook))
    screen.print("Nothing was sent.")


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
    import asyncio

    from ragwitness.cli.common import console, one_thread_per_answer, progress_bars
    from ragwitness.membership.registry import build_audit
    from ragwitness.models import load_language_model
    from ragwitness.runs import look_ahead

    one_thread_per_answer()
    model = load_language_model(proxy)
    audits = {name: build_audit(name, model, config) for name, config in configs.items()}
    with progress_bars(console()) as progress:
        return asyncio.run(look_ahead(plan, audits, model, latency=latency, progress=progress))


def assumed(names: Iterable[str]) -> dict[str, dict[str, Separation]]:
    """Return several AUCs for each audit of which nothing is known."""
    from ragwitness.stats.power import Binormal

    several: dict[str, Separation] = {_label(auc): Binormal(auc) for auc in _AUCS}
    return dict.fromkeys(names, several)


def _label(auc: float) -> str:
    return f"AUC {auc:g}".replace("0.", ".")


def _names(method: str) -> tuple[str, ...]:
    """Read ``all`` or names with commas between.

    Raises:
        InputError: There is no name.
    """
    from ragwitness.errors import InputError
    from ragwitness.membership.registry import AUDITS

    if method == "all":
        return tuple(AUDITS)
    names = tuple(dict.fromkeys(filter(None, (name.strip() for name in method.split(",")))))
    if not names:
        raise InputError("There is no method to plan with.", f"Available: {', '.join(AUDITS)}.")
    return names


def _configs(names: Sequence[str], options: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """Configure every audit.

    Raises:
        InputError: An unknown name, field or value, or options for an audit that is not named.
    """
    from ragwitness.errors import InputError
    from ragwitness.membership.registry import configure

    if lost := sorted(set(options) - set(names)):
        raise InputError(
            f"There are options for {lost[0]!r}, which is not planned.",
            f"Planned: {', '.join(names)}.",
        )
    return {name: configure(name, options.get(name)) for name in names}


def _separations(
    names: Sequence[str], auc: float | None, evaluation: Path | None, *, every: bool
) -> dict[str, dict[str, Separation]]:
    """Say how well each audit may tell members apart.

    Args:
        names: Registered names.
        auc: The same for all, where it is given.
        evaluation: JSON in which it was measured.
        every: Whether all methods were asked for; those not evaluated then stay without a figure.

    Raises:
        InputError: Both are given, the AUC is none, or the evaluation lacks a method.
    """
    from ragwitness.errors import InputError
    from ragwitness.stats.power import Binormal

    if auc is not None and evaluation is not None:
        raise InputError("--auc and --evaluation say the same thing twice.", "Give one of them.")
    if auc is not None:
        return {name: {_label(auc): Binormal(auc)} for name in names}
    if evaluation is None:
        return assumed(names)
    from ragwitness.report.evaluated import measured_rocs

    found = measured_rocs(evaluation)
    missing = [name for name in names if name not in found]
    if missing and not (every and len(missing) < len(names)):
        raise InputError(
            f"{evaluation} holds no evaluation of {missing[0]!r}.",
            f"It holds: {', '.join(found) or 'none'}.",
        )
    return {name: {"as evaluated": found[name]} for name in names if name in found}


def store(path: Path, data: Mapping[str, Any]) -> None:
    """Write what a verb foresees or found as JSON.

    Raises:
        InputError: The file cannot be written.
    """
    import json

    from ragwitness.errors import InputError

    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from error
