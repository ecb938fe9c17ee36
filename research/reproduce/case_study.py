"""MBA Fig. 8: one document inside and outside, word by word, beside S2MIA's similarity.

The paper shows a dialogue of its corpus. Here it is a record of nobody, from the package's own
sample, so that it can be printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ragwitness.core.errors import InputError
from ragwitness.core.types import Audit, Document, Score
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.lab import rag_config
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.text.sample import load_sample
from research.reproduce.files import leave_table
from research.reproduce.tables import read_table


@dataclass(frozen=True, slots=True)
class CaseStudy:
    """One document by two audits, in a database with it and in the same without it.

    Attributes:
        title: What it shows.
        document: Number of the document in the package's sample.
        database: How many documents of the sample are held.
        published: What the paper prints for its own document, by audit: outside, then inside.
        set: Per audit: fields of its configuration.
    """

    title: str
    document: int
    database: int
    published: Mapping[str, tuple[str, str]]
    set: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one audit asked about the document and was told.

    Attributes:
        audit: Its name.
        inside: Whether the database holds the document.
        query: What was asked.
        answer: What was said.
        score: What the audit made of it; None where it could make nothing of it.
    """

    audit: str
    inside: bool
    query: str
    answer: str
    score: float | None


def load_case_study(name: str, folder: Path) -> CaseStudy:
    """Return a case study by its name.

    Args:
        name: ``paper/table``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is none, or it is malformed.
    """
    data = {key: value for key, value in read_table(name, folder).items() if key != "kind"}
    try:
        study = CaseStudy(**data)
    except TypeError as error:
        raise InputError(f"The case study {name!r} is malformed: {error}.") from error
    if not 0 <= study.document < study.database:
        raise InputError(f"The case study {name!r} holds no document {study.document}.")
    return study


def reproduce_case(study: CaseStudy, generator: str, proxy: str, folder: Path) -> None:
    """Ask about the document with it in the database and without, and write both side by side."""
    model = load_language_model(proxy)
    sample = load_sample()[: study.database]
    document = sample[study.document]
    found = []
    for inside in (False, True):
        held = [one for one in sample if inside or one.id != document.id]
        target = LabTarget(build_system(held, rag_config(generator=generator)))
        for name in study.published:
            audit = build_audit(name, model, configure(name, study.set.get(name)))
            found.append(asyncio.run(_ask(name, audit, document, target, inside)))
    told = {"title": study.title, "published": study.published, "asked": [*map(asdict, found)]}
    leave_table(folder, case_markdown(study, found), told)


def case_markdown(study: CaseStudy, found: list[Asked]) -> str:
    """Return the scores beside the published ones, then every query with its two answers."""
    lines = [
        f"**{study.title}**",
        "",
        "| audit | document | published | ours |",
        "|---|---|---|---|",
    ]
    for one in found:
        where = "inside" if one.inside else "outside"
        printed = study.published[one.audit][one.inside]
        ours = "not scorable" if one.score is None else f"{one.score:.3f}"
        lines.append(f"| {one.audit} | {where} | {printed} | {ours} |")
    for name in study.published:
        outside, inside = (one for one in found if one.audit == name)
        lines += ["", f"{name} asks:", "", *_quoted(inside.query)]
        lines += ["", "Without the document it is told:", "", *_quoted(outside.answer)]
        lines += ["", "With it:", "", *_quoted(inside.answer)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.strip().splitlines()] or ["> (nothing)"]


async def _ask(
    name: str, audit: Audit, document: Document, target: LabTarget, inside: bool
) -> Asked:
    """Run an audit of one query by hand, to keep what was said."""
    probe = audit.probe(document)
    try:
        (query,) = next(probe)
    except StopIteration as end:
        return Asked(name, inside, "", "", end.value.value)
    answer = await target.ask(query)
    try:
        probe.send([answer])
    except StopIteration as end:
        score: Score = end.value
        return Asked(name, inside, query.prompt, answer.text, score.value)
    raise InputError(f"{name} asks more than one query; a case study shows one.")
