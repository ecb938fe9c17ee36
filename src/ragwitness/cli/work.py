"""``ragwitness work``: one part of a prepared run, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["work"]


def work(
    run: Annotated[Path, typer.Argument(help="Folder of a run that --prepare wrote.")],
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Which part of how many, such as 2/4.")
    ] = "1/1",
) -> None:
    """Ask about one part of a prepared run. The others may work elsewhere at the same time.

    Run it where the addresses of the target and of local models mean the same as where the run
    was prepared. The same command resumes. Then: ragwitness merge RUN.
    """
    from ragwitness.cli.common import console
    from ragwitness.cli.finish import driven
    from ragwitness.runs.manifest import read_manifest
    from ragwitness.runs.part import adopt_target, governor_of_shard, work_shard
    from ragwitness.runs.shards import Shard
    from ragwitness.targets import open_target

    part = Shard.parse(shard)
    order = read_manifest(run).order
    folder, screen = part.folder(run), console()
    with governor_of_shard(order, run, part) as governor:
        adopt_target(run, folder)
        transport = order.reach.transport(governor.pace.ceiling, governor.setback)
        outcomes = driven(
            open_target(order.target, transport),
            (order.method, order.config, order.proxy),
            folder,
            screen,
            lambda target, audit, identity, progress: work_shard(
                order, run, part, target, audit, identity, governor, progress
            ),
            governor,
            resume=f"ragwitness work {run} --shard {part}",
        )
    failed = sum(outcome.passing for outcome in outcomes)
    screen.print(f"shard {part}: {len(outcomes)} units, all done", markup=False)
    if failed:
        screen.print(
            f"{failed} of them without all of their answers; the same command asks again.",
            soft_wrap=True,
        )
    screen.print(f"once all shards are done: ragwitness merge {run}", markup=False, soft_wrap=True)
