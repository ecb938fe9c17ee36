"""One process per shard on this machine, each with the command that a cluster would run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragwitness.asking.scores import finished_units
from ragwitness.asking.shards import Shard
from ragwitness.asking.worker import Progress
from ragwitness.errors import RagwitnessError
from ragwitness.kit.workers import VARIABLE as WORKERS

_LOOK_EVERY = 0.3  # seconds
_PATIENCE = 30.0  # seconds that an interrupted process has to leave
_LOG = "work.log"


@dataclass(frozen=True, slots=True)
class _Child:
    shard: Shard
    process: subprocess.Popen[bytes]
    log: Path


def run_processes(run: Path, workers: int, units: int, progress: Progress) -> None:
    """Work on all shards of a prepared run at once, and wait for them.

    Args:
        run: Folder of the run, with a manifest.
        workers: Number of processes, and of shards.
        units: Number of units, for the progress.
        progress: Called as units end.

    Raises:
        RagwitnessError: A process failed; the others have ended their shards all the same.
    """
    children: list[_Child] = []
    try:
        # 1. One process a shard, by the very command that a cluster's scheduler would run.
        children.extend(_started(run, Shard(workers, n)) for n in range(1, workers + 1))
        # 2. Progress is what lies on the disk: a process that died is not counted as at work.
        _wait(children, run, units, progress)
    except BaseException:
        _stop(children)
        raise
    for child in children:
        # 3. All have ended; the first that failed speaks for the run. The others' units are kept.
        if child.process.returncode:
            raise _failure(child)


def _started(run: Path, shard: Shard) -> _Child:
    log = shard.folder(run) / _LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ragwitness", "work", str(run), "--shard", str(shard)]
    with log.open("wb") as said:
        process = subprocess.Popen(  # noqa: S603 - ourselves, with a path and two numbers
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=os.environ | {WORKERS: "1"},  # each shard is one process, its reader in it
        )
    return _Child(shard, process, log)


def _wait(children: Sequence[_Child], run: Path, units: int, progress: Progress) -> None:
    done = 0
    while any(child.process.poll() is None for child in children):
        time.sleep(_LOOK_EVERY)
        if (now := min(units, finished_units(run))) > done:
            done = now
            progress("all stages", done, units)


def _stop(children: Sequence[_Child]) -> None:
    """Interrupt those that still work; what they have is kept."""
    for child in children:
        if child.process.poll() is None:
            # As by Ctrl-C: the journal is closed and its lock given back.
            child.process.send_signal(signal.SIGINT)
    for child in children:
        try:
            child.process.wait(_PATIENCE)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.process.kill()
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(_PATIENCE)


def _failure(child: _Child) -> RagwitnessError:
    """What a process said last, as the error of the whole run."""
    code = child.process.returncode
    said = child.log.read_text(encoding="utf-8", errors="replace").splitlines()
    # The command's own two lines, if it came to write them; a killed process did not.
    told = {
        prefix: line.removeprefix(prefix)
        for line in said
        for prefix in ("error: ", "  next: ")
        if line.startswith(prefix)
    }
    ended = f"it was killed by signal {-code}" if code < 0 else f"it ended with {code}"
    error = RagwitnessError(
        f"Shard {child.shard}: {told.get('error: ', f'{ended}; see {child.log}')}",
        told.get("  next: ", "The same command resumes."),
    )
    error.exit_code = code if code > 0 else 1
    return error
