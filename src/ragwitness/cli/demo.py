"""``ragwitness demo``: a whole audit on generated documents, in less than a minute, offline."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ragwitness.cli.common import console, print_lines, progress_bars
from ragwitness.core.options import PathRole

# Chosen on other seeds than the one shown (experiments/demo/README.md).
_SEED = 20261121
_WORDS = 60  # of a document, at most
_AUDITED, _KNOWN_OUT = 100, 100
_K = 2


def demo(
    run: Annotated[Path, PathRole.FILLS] = Path("ragwitness-runs/demo"),
) -> None:
    """Try a whole audit on generated documents, offline.

    Half of the documents are indexed; 100 of these and 100 of the others are audited. It needs no
    network and shows nobody's data. The system under audit answers with the embedded reader, a
    small model: the mechanics are real, and the figures do not carry over to large models.

    Args:
        run: The run folder.
    """
    import random

    from ragwitness.cli.outputs import conclude
    from ragwitness.core.files import write_rows
    from ragwitness.membership.task import AuditTask
    from ragwitness.text.sample import load_sample

    # 1. A fixed seed: the demo that a reader sees is the demo that the tests see.
    started = time.monotonic()
    corpus = load_sample(_WORDS)
    random.Random(_SEED).shuffle(corpus)
    half = len(corpus) // 2
    inside, outside = corpus[:half], corpus[half:]
    # The truth is known here, so the report shows error rates beside the verdicts.
    audited = [replace(document, member=True) for document in inside[:_AUDITED]]
    audited += [replace(document, member=False) for document in outside[:_AUDITED]]
    random.Random(_SEED).shuffle(audited)
    outsiders = outside[_AUDITED : _AUDITED + _KNOWN_OUT]
    corpus_file, audited_file, never_shared = files = [run / name for name in _FILES]
    for path, documents in zip(files, (inside, audited, outsiders), strict=True):
        rows = ({"id": d.id, "text": d.text, "member": d.member} for d in documents)
        write_rows(path, rows)
    # 2. The audit, and its verdicts.
    task = AuditTask(
        f"lab:{corpus_file}?k={_K}",
        audited,
        known_out=outsiders,
        method="s-rag",
        run=run,
        reference_model=("none",),
        yes=True,
    )
    with progress_bars(console()) as progress:
        result = task.carry_out(progress=progress)
    conclude(result, store=run)
    # 3. The next commands, on the same corpus.
    command = _command()
    print_lines(
        console(),
        f"\nThat took {time.monotonic() - started:.0f} s. Try next, on the same corpus:\n",
        "# see every question with its answer",
        f"{command} view {run} --port 0\n",
        "# see how much of the corpus comes out",
        f"{command} leak lab:{corpus_file} --corpus {corpus_file} --prompts 10\n",
        "# ask again, where the system shows text alone",
        f"{command} audit lab:{corpus_file} --documents {audited_file} --known-out {never_shared}"
        " --method rag-mia",
    )


_FILES = ("corpus.jsonl", "mine.jsonl", "never-shared.jsonl")


def _command() -> str:
    """The command line as this user starts it."""
    import os
    import shutil
    import sys

    script = Path(sys.executable).with_name("ragwitness")
    if shutil.which("ragwitness"):
        return "ragwitness"
    python = os.path.relpath(sys.executable)
    return os.path.relpath(script) if script.exists() else f"{python} -P -m ragwitness"
