"""``ragwitness demo``: a whole audit on generated documents, in less than a minute, offline."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from ragwitness.cli.common import console, print_lines, progress_bars
from ragwitness.kit.options import PathRole
from ragwitness.results.wording import MISSING, p_text

if TYPE_CHECKING:
    from rich.console import Console, Group

    from ragwitness.asking.worker import Progress
    from ragwitness.types import Audit, Document, Probe, Score, Verdict

# Chosen on other seeds than the one shown (experiments/demo/README.md).
_SEED = 20261121
_WORDS = 60  # of a document, at most
_AUDITED, _KNOWN_OUT = 100, 100
_AHEAD = 40  # known outside before the first document in question: least p-value 1/41
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

    from ragwitness.asking.governor import Governor, Pace
    from ragwitness.audits.membership import run_audit
    from ragwitness.audits.order import audit_at
    from ragwitness.audits.plan import AuditPlan
    from ragwitness.cli.outputs import conclude
    from ragwitness.cli.steps import wait
    from ragwitness.kit.files import write_rows
    from ragwitness.kit.run_files import REPORT
    from ragwitness.kit.workers import workers
    from ragwitness.membership.registry import configure
    from ragwitness.models.registry import load_language_model
    from ragwitness.rag.build import build_system
    from ragwitness.rag.config import RagConfig
    from ragwitness.rag.target import LabTarget
    from ragwitness.results.membership import AuditResult
    from ragwitness.text.sample import load_sample

    # 1. The processes of the reader start while the corpus is divided.
    started = time.monotonic()
    reader: Any = load_language_model("reader")
    getattr(reader, "start", lambda: None)()
    # 2. A fixed seed: the demo that a reader sees is the demo that the tests see.
    corpus = load_sample(_WORDS)
    random.Random(_SEED).shuffle(corpus)
    half = len(corpus) // 2
    inside, outside = corpus[:half], corpus[half:]
    # The truth is known here, so the report shows error rates beside the verdicts.
    audited = [replace(document, member=True) for document in inside[:_AUDITED]]
    audited += [replace(document, member=False) for document in outside[:_AUDITED]]
    random.Random(_SEED).shuffle(audited)
    known = outside[_AUDITED : _AUDITED + _KNOWN_OUT]
    for name, part in zip(_FILES, (inside, audited, known), strict=True):
        rows = ({"id": one.id, "text": one.text, "member": one.member} for one in part)
        write_rows(run / name, rows)
    plan = AuditPlan(tuple(audited), tuple(known), in_flight=2 * workers() + 2)
    screen = console()
    config = configure("s-rag")
    system = build_system(inside, RagConfig(k=_K), generator=reader)
    for label, value in system.describe().items():
        screen.print(f"{label:<24}{value}", markup=False)

    # 3. The audit. What is found of a document is shown as soon as its answers are there.
    async def work() -> AuditResult:
        target = LabTarget(system)
        audit, identity = await audit_at(target, ("s-rag", config, "reader"), governor, run, plan)
        with table.shown(screen) as progress:
            return await run_audit(
                plan,
                target,
                cast("Audit", _Watched(audit, table)),
                run=run,
                progress=progress,
                governor=governor,
                identity=identity,
                ahead=_AHEAD,
            )

    held = frozenset(one.id for one in known)
    table = LiveTable(plan.alpha, len(audited), held, started=started)
    with Governor.of_run(run, pace=Pace.at_most(2 * plan.in_flight)) as governor:
        result = wait(work(), run)
    # 4. The verdicts, and what to try next on the same corpus.
    conclude(result, run / REPORT, screen, store=run)
    corpus_file, mine, never_shared = (run / name for name in _FILES)
    command = _command()
    print_lines(
        screen,
        f"\nThat took {time.monotonic() - started:.0f} s. Try next, on the same corpus:\n",
        "# see every question with its answer",
        f"{command} view {run} --port 0\n",
        "# see how much of the corpus comes out",
        f"{command} leak lab:{corpus_file} --corpus {corpus_file} --prompts 10\n",
        "# ask again, where the system shows text alone",
        f"{command} audit lab:{corpus_file} --documents {mine} --known-out {never_shared}"
        " --method rag-mia",
    )


_FILES = ("corpus.jsonl", "mine.jsonl", "never-shared.jsonl")


def _command() -> str:
    """The command line as this user starts it."""
    import os
    import shutil
    import sys

    beside = Path(sys.executable).with_name("ragwitness")
    if shutil.which("ragwitness"):
        return "ragwitness"
    python = os.path.relpath(sys.executable)
    return os.path.relpath(beside) if beside.exists() else f"{python} -m ragwitness"


# What is shown while the audit goes on.

_ROWS = 12  # documents: those that were answered last


@dataclass
class LiveTable:
    """What is known of the documents so far, by the rules by which it will be judged.

    Attributes:
        alpha: Level of the verdicts.
        asked: Documents in question.
        known: Ids of those known to be outside.
        found: Documents answered, in order.
        started: Monotonic time of the start, in seconds.
    """

    alpha: float
    asked: int
    known: frozenset[str]
    found: list[tuple[Document, Score]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @contextmanager
    def shown(self, screen: Console) -> Iterator[Progress]:
        """Show the table while it fills; where there is no terminal, lines."""
        from rich.live import Live

        from ragwitness.types import Decision

        if screen.is_terminal:
            with Live(get_renderable=self.drawn, console=screen, transient=True):
                yield lambda *_: None
            return
        told = False
        with progress_bars(screen) as lines:

            def progress(stage: str, done: int, total: int) -> None:
                nonlocal told
                lines(stage, done, total)
                decided = (v for v in self.judged() if v.decision is not Decision.INCONCLUSIVE)
                if not told and (first := next(decided, None)):
                    told = True
                    seconds = time.monotonic() - self.started
                    screen.print(
                        f"first verdict, after {seconds:.1f} s: {first.document}"
                        f" {first.decision.value}, p {p_text(first.p_value)}",
                        markup=False,
                    )

            yield progress

    def judged(self) -> Sequence[Verdict]:
        """Return the verdicts as they would be if no document were left to ask about."""
        from ragwitness.membership.verdicts import Judged, judge

        outside = [s.value for d, s in self.found if d.id in self.known and s.value is not None]
        mine = [(d, s) for d, s in self.found if d.id not in self.known]
        items = [Judged(d, s, s.value, None, 0) for d, s in mine]
        return judge(items, outside=outside, inside=(), alpha=self.alpha)

    def drawn(self) -> Group:
        """Return the documents that were answered last, and how many are decided."""
        from rich.console import Group
        from rich.table import Table

        verdicts = {verdict.document: verdict for verdict in self.judged()}
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for name, width in (("document", 11), ("telling word", 14)):
            table.add_column(name, width=width, no_wrap=True)
        for name in ("asked", "alone", "p"):
            table.add_column(name, width=6, justify="right")
        for name, width in (("so far", 12), ("truth", 7)):
            table.add_column(name, width=width)
        for document, score in self.found[-_ROWS:]:
            verdict = verdicts.get(document.id)
            word = score.evidence[0] if score.evidence else None
            shown = "calibrates" if verdict is None else verdict.decision.value
            table.add_row(
                document.id,
                word.word if word else MISSING,
                f"{word.probability.low:.3f}" if word else "",
                f"{word.baseline:.4f}" if word else "",
                p_text(verdict.p_value) if verdict else "",
                shown,
                "inside" if document.member else "outside",
                style={"in": "bold red", "calibrates": "dim"}.get(shown),
            )
        told = [verdict for verdict in verdicts.values() if verdict.decision.value == "in"]
        right = sum(bool(verdict.member) for verdict in told)
        asked, elapsed = len(self.found) - len(verdicts), time.monotonic() - self.started
        return Group(
            table,
            f"\n{asked} of {len(self.known)} known outside; {len(verdicts)} of {self.asked} in"
            f" question: {len(told)} in, {right} of them truly. {elapsed:.0f} s",
        )


class _Watched:
    """An audit whose scores are shown as well."""

    def __init__(self, audit: Audit, table: LiveTable) -> None:
        self._audit, self._table = audit, table

    def __getattr__(self, name: str) -> object:
        return getattr(self._audit, name)

    def probe(self, document: Document) -> Probe:
        """Probe as the audit does, and show the score."""
        score = yield from self._audit.probe(document)
        self._table.found.append((document, score))
        return score
