"""Small corpora: every size is evaluated, or refused in one line before anything is asked."""

from __future__ import annotations

import asyncio
import re

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership.evaluation import BatteryPlan, run_battery
from ragwitness.membership.measure import CorpusSplit, divide
from ragwitness.membership.method_registry import AUDITS
from ragwitness.models import model_registry as registry
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.text import sample
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier

SIZES = (0, 1, 8, 20, 40, 100)


def _corpus(n: int) -> list[Document]:
    return [Document(f"d{i}", f"notes {i} of room {i * 7} and desk {i * 13}.") for i in range(n)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parts", [(4, 4, 100), (4, 4, 4), (2, 2, 2), (100, 100, 100), (2, 90, 2)])
def test_a_division_has_two_of_each_or_says_what_it_needs(size, parts) -> None:  # type: ignore[no-untyped-def]
    members, non_members, calibration = parts

    def divided(n: int) -> CorpusSplit:
        return divide(
            _corpus(n), members=members, non_members=non_members, calibration=calibration, seed=0
        )

    enough = size
    try:
        divided(size)
    except InputError as error:
        line, enough = str(error), int(re.findall(r"at least (\d+)", error.hint)[0])
        said = line.count("\n") == 0 and enough > size
    else:
        said = True
    assert said
    split = divided(enough)  # what it asks for is enough
    held = (split.members, split.non_members, split.known_in, split.known_out)
    assert min(map(len, held)) >= 2


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_no_audit_fails_on_a_small_corpus(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``evaluate --corpus SMALL --limit 8``: figures, or one line before anything is indexed."""
    monkeypatch.setattr(registry, "load_language_model", lambda spec: Copier())
    monkeypatch.setattr(sample, "load_sample", lambda: load_sample()[:48])
    names = tuple(AUDITS) if size <= 40 else ("mba", "rag-mia", "s2mia")
    plan = BatteryPlan(names, 4, 4, calibration=4, rag=RagConfig(k=2))
    indexed = []

    def build(documents, rag):  # type: ignore[no-untyped-def]
        indexed.append(len(documents))
        return LabTarget(build_system(documents, rag, generator=Copier()))

    work = run_battery(plan, _corpus(size), Copier(), build=build)
    if size < 40:
        with pytest.raises(InputError, match="too few"):
            asyncio.run(work)
        assert not indexed
        return
    found = asyncio.run(work)
    told = {one.audit.partition("/")[0] for one in found.audits} | set(found.skipped)
    assert told == set(names)
