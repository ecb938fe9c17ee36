"""Run the training in several processes that share every batch.

Two processes of one thread beat one of two threads by half on shared machines: a thread pool waits
at every operation for its slowest thread, two processes meet once per step.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

from .config import TrainConfig
from .loop import prepare_text, run_training

__all__ = ["train"]

# Large tensors come and go every layer: keeping their pages is worth a third of the speed.
_KEEP_MEMORY = {
    "MALLOC_TOP_PAD_": "200000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000000",
    "MALLOC_MMAP_THRESHOLD_": "10000000000",
}


def _member(rank: int, config: TrainConfig, work: Path, out: Path, meeting: str) -> None:
    """One of several processes that share every batch; the first one writes."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=config.processes
    )
    run_training(config, work, out)
    distributed.destroy_process_group()


def train(config: TrainConfig, work: Path, out: Path, stop_after: float | None) -> None:
    """Train with as many processes as the configuration asks for."""
    if config.processes == 1:
        run_training(config, work, out, stop_after)
        return
    prepare_text(config, work)
    os.environ.update(_KEEP_MEMORY)
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        multiprocessing.spawn(_member, (config, work, out, meeting), config.processes)
