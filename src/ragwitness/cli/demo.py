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
    from ragwitness.cli.steps import wait
    from ragwitness.core.files import write_rows
    from ragwitness.membership.method_registry import configure
    from ragwitness.membership.plan import AuditPlan
    from ragwitness.membership.prepared import PreparedAudit
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.membership.run import run_audit
    from ragwitness.models.model_registry import load_language_model
    from ragwitness.rag.config import RagConfig
    from ragwitness.rag.pipeline import build_system
    from ragwitness.rag.target import LabTarget
    from ragwitness.runner.rate_limiter import RateLimiter
    from ragwitness.text.sample import load_sample

    # 1. The reader serves as generator and as proxy.
    started = time.monotonic()
    reader = load_language_model("reader")
    # 2. A fixed seed: the demo that a reader sees is the demo that the tests see.
    corpus = load_sample(_WORDS)
    random.Random(_SEED).shuffle(corpus)
    half = len(corpus) // 2
    inside, outside = corpus[:half], corpus[half:]
    # The truth is known here, so the report shows error rates beside the verdicts.
    audited = [replace(document, member=True) for document in inside[:_AUDITED]]
    audited += [replace(document, member=False) for document in outside[:_AUDITED]]
    random.Random(_SEED).shuffle(audited)
    outsiders = outside[_AUDITED : _AUDITED + _KNOWN_OUT]
    for name, documents in zip(_FILES, (inside, audited, outsiders), strict=True):
        rows = ({"id": d.id, "text": d.text, "member": d.member} for d in documents)
        write_rows(run / name, rows)
    plan = AuditPlan(tuple(audited), tuple(outsiders), in_flight=4)
    screen = console()
    order = PreparedAudit("", plan, "s-rag", configure("s-rag"))
    system = build_system(inside, RagConfig(k=_K), generator=reader)
    for label, value in system.describe().items():
        screen.print(f"{label:<24}{value}", markup=False)

    # 3. The audit.
    async def work() -> AuditResult:
        target = LabTarget(system)
        audit, identity = await order.fitted_to(target, limiter, run)
        with progress_bars(screen) as progress:
            return await run_audit(
                plan,
                target,
                audit,
                run=run,
                progress=progress,
                limiter=limiter,
                identity=identity,
            )

    with RateLimiter.of_run(run, at_once=2 * plan.in_flight) as limiter:
        result = wait(work(), run)
    # 4. The verdicts, and what to try next on the same corpus.
    conclude(result, store=run)
    corpus_file, audited_file, never_shared = (run / name for name in _FILES)
    command = _command()
    print_lines(
        screen,
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
