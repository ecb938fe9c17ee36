"""``ragwitness run work``: one part of a prepared run, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragwitness.cli.common import console, one_thread_per_answer, print_lines
from ragwitness.cli.options import FailOn
from ragwitness.cli.outputs import Files, Outputs
from ragwitness.cli.paths import PathRole
from ragwitness.cli.steps import driven, finish


def work(
    run: Annotated[
        Path, PathRole.KEEPS, typer.Argument(help="The run folder that audit --prepare wrote.")
    ],
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Which part, of how many, e.g. 2/4.")
    ] = "1/1",
) -> None:
    """Ask about one part of a prepared run.

    Other machines may work on the other parts at the same time. Start it where the addresses of
    the target and of local models mean the same as where the run was prepared. The same command
    resumes. Once all parts are done: ragwitness run merge RUN.
    """
    from ragwitness.asking.shards import Shard
    from ragwitness.audits.order import read_manifest
    from ragwitness.audits.shards import adopt_target, governor_of_shard, work_shard
    from ragwitness.targets.resolve import open_target

    # The order was fixed by audit --prepare; a shard adds nothing to it but its number.
    part = Shard.parse(shard)
    order = read_manifest(run).order
    folder, screen = part.folder(run), console()
    with governor_of_shard(order, run, part) as governor:
        # What was measured of the target belongs to the run: all shards take the same.
        adopt_target(run, folder)
        transport = order.reach.transport(governor.pace.ceiling, governor.setback)
        outcomes = driven(
            open_target(order.target, transport),
            (order.method, order.config, order.proxy),
            order.plan,
            folder,
            lambda target, audit, identity, progress: work_shard(
                order, run, part, target, audit, identity, governor, progress
            ),
            governor,
            resume=f"ragwitness run work {run} --shard {part}",
        )
    # A unit that failed in passing is no score; the same command asks for it again.
    failed = sum(outcome.passing for outcome in outcomes)
    screen.print(f"shard {part}: {len(outcomes)} units, all done", markup=False)
    if failed:
        screen.print(
            f"{failed} of them without all of their answers; the same command asks again.",
            soft_wrap=True,
        )
    print_lines(screen, f"once all shards are done: ragwitness run merge {run}")


# ``ragwitness run merge``: unite what the parts of a run left, and conclude.


def merge(
    run: Annotated[
        Path, PathRole.KEEPS, typer.Argument(help="The run folder that audit --prepare wrote.")
    ],
    files: Files | None = None,
    fail_on: FailOn = None,
) -> None:
    """Conclude a run whose parts are all done.

    It prints the verdicts and writes the report. Nothing is sent.
    """
    from ragwitness.audits.order import read_manifest
    from ragwitness.audits.shards import merge_run

    outputs = Outputs.wanted("audit", files, fail_on)
    # The merge restores the order of the audit, whoever did which unit, and only then concludes.
    manifest = read_manifest(run)
    one_thread_per_answer()
    finish(merge_run(manifest, run), run, console(), outputs, why=manifest.order.why)
