"""What several verbs share: targets, documents, progress, run folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.rag import LabTarget, RagConfig
    from ragwitness.runs import Progress
    from ragwitness.targets import TransportOptions
    from ragwitness.types import Document, Target

__all__ = [
    "console",
    "key_values",
    "lab_target",
    "one_thread_per_answer",
    "per_audit",
    "progress_bars",
    "rag_config",
    "read_documents",
    "resolve",
    "run_folder",
]

_LAB = "lab:"


def console() -> Console:
    """Return the console for people; results that machines read go elsewhere."""
    from rich.console import Console

    return Console(stderr=False, highlight=False)


def one_thread_per_answer() -> None:
    """Let numpy use one thread per call.

    Answers are made side by side; threads that wait for each other inside one small matrix
    product cost more than they bring.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    np.ones((2, 2)) @ np.ones((2, 2))  # the library must be loaded to be limited
    threadpool_limits(limits=1, user_api="blas")


def key_values(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` pairs.

    Raises:
        InputError: A pair has no ``=``.
    """
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set {pair!r} has no value.", "Write --set NAME=VALUE.")
        found[name.strip().replace("-", "_")] = value.strip()
    return found


def per_audit(pairs: Sequence[str]) -> dict[str, dict[str, object]]:
    """Read ``AUDIT.NAME=VALUE`` pairs into fields by audit.

    Raises:
        InputError: A pair has no ``=`` or names no audit.
    """
    found: dict[str, dict[str, object]] = {}
    for key, value in key_values(pairs).items():
        audit, dot, name = key.rpartition(".")
        if not dot:
            raise InputError(f"--set {key} names no audit.", "Write --set AUDIT.NAME=VALUE.")
        found.setdefault(audit.replace("_", "-"), {})[name] = value
    return found


def rag_config(
    *,
    k: int = 4,
    retrieval: str = "lexical",
    metric: str = "l2",
    generator: str = "reader",
    template: str = "plain",
    retrieve: bool = True,
    chunk_words: int = 200,
) -> RagConfig:
    """Turn command-line values into settings.

    Raises:
        InputError: An unknown metric or template.
    """
    from ragwitness.rag import RagConfig, load_template

    if metric not in ("l2", "ip"):
        raise InputError(f"Unknown metric {metric!r}.", "Use l2 or ip.")
    return RagConfig(
        k=k,
        retrieval=retrieval,
        metric="ip" if metric == "ip" else "l2",
        generator=generator,
        template=load_template(template),
        retrieve=retrieve,
        chunk_words=chunk_words,
        chunk_overlap=min(20, chunk_words // 10),
    )


async def resolve(spec: str, transport: TransportOptions | None = None) -> Target:
    """Open ``lab:FILE[?k=4&retrieval=minilm&defense=mirabel]`` in process, or a URL.

    Raises:
        InputError: No such form, file or setting.
        TargetError: The endpoint does not answer.
    """
    if not spec.startswith(_LAB):
        from ragwitness.targets import open_target

        return await open_target(spec, transport)
    path, _, options = spec.removeprefix(_LAB).partition("?")
    values = dict(parse_qsl(options, keep_blank_values=True))
    field, paragraphs = values.pop("text_field", None), values.pop("paragraphs", None)
    defense = values.pop("defense", "none")
    documents = read_documents(path, field, paragraphs=paragraphs is not None)
    return lab_target(documents, _lab_options(values), defense)


def lab_target(documents: Sequence[Document], config: RagConfig, defense: str) -> LabTarget:
    """Return a RAG system of ours as a target, behind a defense.

    Raises:
        InputError: No document holds text, or a setting or the defense is unusable.
    """
    from ragwitness.defenses import defend, load_defense
    from ragwitness.rag import LabTarget, build_system

    return LabTarget(defend(build_system(documents, config), load_defense(defense)))


def _lab_options(values: dict[str, str]) -> RagConfig:
    known = {"k", "retrieval", "metric", "generator", "template", "retrieve", "chunk_words"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(
            f"Unknown lab option {unknown[0]!r}.", f"Use: {', '.join(sorted({*known, 'defense'}))}."
        )
    numbers = {}
    for key in ("k", "chunk_words"):
        if key in values:
            try:
                numbers[key] = int(values.pop(key))
            except ValueError as error:
                raise InputError(f"Lab option {key} must be a whole number.") from error
    retrieve = values.pop("retrieve", "on") not in ("off", "no", "0", "false")
    return rag_config(**numbers, **values, retrieve=retrieve)  # type: ignore[arg-type]


def read_documents(
    source: str, text_field: str | None = None, *, paragraphs: bool = False
) -> tuple[Document, ...]:
    """Read documents and say on standard error what was left out, and why.

    Raises:
        InputError: Nothing in it can be used.
    """
    import sys

    from ragwitness.text.documents import load_documents

    split: Literal["paragraphs"] | None = "paragraphs" if paragraphs else None
    loaded = load_documents(source, text_field=text_field, split=split)
    for skipped in loaded.skipped[:5]:
        sys.stderr.write(f"skipped {skipped.where}: {skipped.why}\n")
    if len(loaded.skipped) > 5:
        sys.stderr.write(f"… and {len(loaded.skipped) - 5} more rows skipped\n")
    return loaded.documents


def run_folder(given: Path | None, *parts: object) -> Path:
    """Return the folder of a run.

    Without ``given`` it follows from the inputs: an unfinished run with the same inputs is
    resumed, and after a finished one a new run begins, because the system may have changed.
    """
    if given is not None:
        return given
    digest = hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:10]
    base, n = Path("ragwitness-runs"), 1
    while (base / f"{digest}-{n}" / "result.json").exists():
        n += 1
    return base / f"{digest}-{n}"


@contextmanager
def progress_bars(console: Console) -> Iterator[Progress]:
    """Show one bar per stage with the time left; plain lines where there is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Bars(*columns, console=console) as bars:
        tasks: dict[str, int] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done)  # type: ignore[arg-type]

        yield show


def _lines(console: Console) -> Progress:
    def show(stage: str, done: int, total: int) -> None:
        if done == total:
            console.print(f"{stage}: {total} documents", markup=False)

    return show
