"""``ragwitness canary``: plant canaries, and later ask whether a model was trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.canary_probe import probe
from ragwitness.cli.canary_status import status
from ragwitness.cli.config import Configurable
from ragwitness.cli.outputs import EXIT_CODES

__all__ = ["app"]

app = typer.Typer(
    help="Was a model trained on retrieved text? Plant, then probe.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("plan", cls=Configurable)
def plan(
    examples: Annotated[
        Path,
        typer.Argument(help='Documents with questions, JSONL {"id", "document", "question"}.'),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the audit; must be new.")],
    held_out: Annotated[
        Path | None,
        typer.Option(help="Examples to probe with, never sent; else a fifth of the documents."),
    ] = None,
    design: Annotated[
        str, typer.Option(help="contrastive, or paper (its trigger is named in the query).")
    ] = "contrastive",
    family: Annotated[
        str, typer.Option(help="Of the canary: signature, emoji or punctuation.")
    ] = "signature",
    slots: Annotated[int, typer.Option(help="Independent draws, each with its own canary.")] = 1,
    candidates: Annotated[
        int, typer.Option(help="Triggers that might be drawn; p is at least 1 in so many.")
    ] = 128,
    rate: Annotated[
        str, typer.Option(help="Share of the examples that carry canaries, rounded down.")
    ] = "1",
    half: Annotated[
        bool, typer.Option("--half", help="Plant a drawn half of the slots; the rest compares.")
    ] = False,
    probes: Annotated[int, typer.Option(help="Most held-out examples per slot.")] = 32,
    releases: Annotated[
        int, typer.Option(help="Looks at the draw, one per release probed; 0 where not known.")
    ] = 1,
    alpha: Annotated[str, typer.Option(help="Level of the verdict; committed to.")] = "0.05",
    beacon: Annotated[
        str,
        typer.Option(help="Public randomness to be joined later, in words; none without."),
    ] = "",
    experiment: Annotated[str, typer.Option(help="Identifier; fixes the split.")] = "canary",
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
) -> None:
    """Draw a secret and commit to it. Publish commitment.json before anything is sent.

    The folder's secret/ is yours alone until you open the draw: ragwitness canary status --open.
    """
    import os

    from ragwitness.canary.design.draw import Design, Secret
    from ragwitness.canary.design.families import Family
    from ragwitness.canary.examples import read_examples
    from ragwitness.canary.plant.folder import write_plan
    from ragwitness.canary.plant.plan import make_plan
    from ragwitness.cli.canary_outlook import at_best
    from ragwitness.cli.common import console
    from ragwitness.crypto.commitments import draw_blinding
    from ragwitness.errors import InputError

    known = {str(one): one for one in Family}
    if family not in known:
        raise InputError(f"There is no family {family!r}.", f"Known: {', '.join(known)}.")
    settled = Design(
        name=design,
        family=known[family],
        slots=slots,
        candidates=candidates,
        rate=rate,
        half=half,
        held_out=probes,
        releases=releases,
        alpha=alpha,
        experiment=experiment,
        seed=seed,
    )
    made = make_plan(
        read_examples(examples),
        settled,
        Secret(os.urandom(32), draw_blinding()),
        held_out=read_examples(held_out) if held_out else (),
        beacon_source=beacon,
    )
    # Whatever cannot be planted must be known before the commitment is published.
    (made if made.drawn else made.joined("a rehearsal")).traces()
    write_plan(out, made)
    sent = sum(map(len, made.pools.values()))
    screen = console()
    for line in (
        f"commitment: {made.commitment.hex()}",
        f"{sent:,} examples to send, {len(made.held_out):,} held out, in {out}",
        at_best(settled),
        f"Publish {out}/commitment.json first. Then: ragwitness canary plant {out}"
        + (" --beacon VALUE" if beacon else ""),
    ):
        screen.print(line, markup=False, soft_wrap=True)


@app.command("plant", cls=Configurable)
def plant(
    folder: Annotated[Path, typer.Argument(help="From ragwitness canary plan.")],
    beacon: Annotated[
        str, typer.Option(help="The public randomness that was promised, once it is known.")
    ] = "",
    answers: Annotated[
        Path | None,
        typer.Option(help='What the service answered, JSONL {"id", "answer"}: write the votes.'),
    ] = None,
) -> None:
    """Write what to send, and the vote for each answer. Rows keep their order.

    Send document and query of each row, wait for the answer, give the vote. Answers that quote a
    trigger get no vote. Plant only where you may; see RESPONSIBLE_USE.md.
    """
    from collections import Counter

    from ragwitness.canary.plant.folder import read_plan, write_feedback, write_traces
    from ragwitness.cli.common import console

    made = read_plan(folder).joined(beacon)
    made.draw()
    made.check()
    traces = made.traces()
    path = write_traces(folder, made, traces)
    roles = Counter(one.role.value for one in traces)
    counted = ", ".join(f"{n:,} {role}" for role, n in sorted(roles.items()))
    screen = console()
    screen.print(f"{len(traces):,} traces in {path}: {counted}", markup=False, soft_wrap=True)
    if answers is None:
        return
    votes = write_feedback(folder, made, traces, answers)
    reasons = Counter(one.reason for one in votes)
    missing = f", {len(traces) - len(votes):,} missing" if len(votes) < len(traces) else ""
    screen.print(
        f"{len(votes):,} answers{missing}, votes in {folder}/send/feedback.jsonl",
        markup=False,
        soft_wrap=True,
    )
    for reason, n in reasons.most_common():
        screen.print(f"  {n:,}: {reason}", markup=False)


app.command("status", cls=Configurable)(status)
app.command("probe", cls=Configurable, epilog=EXIT_CODES)(probe)
