"""What a defense costs benign questions: asked once, of documents nobody audits, in every view."""

from __future__ import annotations

import asyncio
import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership.baselines import divide, questions_of, weigh_defense
from ragwitness.membership.evaluation import BatteryPlan, run_battery
from ragwitness.membership.results.evaluation import Battery
from ragwitness.rag.config import RagConfig
from ragwitness.rag.defenses.base import Defense, defend, undefended
from ragwitness.rag.defenses.defense_registry import load_defense
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.report.html import write_html
from ragwitness.report.result_registry import to_json
from ragwitness.runner.response_store import ResponseStore
from ragwitness.text.replies import declines
from tests.support.copier import Copier
from tests.support.reports import terminal_of
from tests.unit.rag.defenses.defense_fakes import benign_cost

_WORDS = [f"word{i}" for i in range(400)]


class _Hides(Defense):
    """Hides every passage."""

    name = "hides"

    def candidates(self, k: int, size: int) -> int:
        return 0


def _corpus(n: int) -> list[Document]:
    """Two of three are dialogues, whose replies are reference answers."""
    rng = random.Random(0)

    def text(place: int) -> str:
        words = rng.sample(_WORDS, 24)
        if place % 3:
            return f"Patient: {' '.join(words[:12])}? Doctor: {' '.join(words[12:])}."
        return " ".join(words) + "."

    return [Document(f"d{i}", text(i)) for i in range(n)]


def _plan(**options: object) -> BatteryPlan:
    return BatteryPlan(
        ("rag-mia",), members=8, non_members=8, calibration=6, rag=RagConfig(k=2), control=False,
        **options,  # type: ignore[arg-type]
    )  # fmt: skip


def _run(plan: BatteryPlan, defense: str = "none", run: Path | None = None) -> Battery:
    def build(documents, rag):  # type: ignore[no-untyped-def]
        system = build_system(documents, rag, generator=Copier())
        return LabTarget(defend(system, load_defense(defense)))

    return asyncio.run(run_battery(plan, _corpus(120), Copier(), build=build, run=run))


def test_questions_are_of_indexed_documents_that_are_not_audited() -> None:
    split = divide(_corpus(120), members=20, non_members=20, calibration=10, seed=1)
    free = {d.id for d in split.indexed} - {d.id for d in (*split.members, *split.known_in)}
    made = questions_of(split, 15, seed=3)
    assert {q.document for q in made} <= free
    assert made == questions_of(split, 15, seed=3)
    assert made != questions_of(split, 15, seed=4)
    # Too few others: calibration documents too, audited ones never.
    many = questions_of(split, 35, seed=3)
    assert len(many) == 35
    assert not {q.document for q in many} & {d.id for d in split.members}
    assert len(questions_of(split, 100, seed=3)) == 40


def test_a_system_without_its_defense_is_the_one_before_it() -> None:
    system = build_system(_corpus(20), RagConfig(k=3), generator=Copier())
    behind = defend(system, load_defense("prompt+mirabel"))
    bare = undefended(behind)
    assert undefended(system) is system
    assert bare.defense is None
    assert bare.config == system.config
    assert LabTarget(bare).name == LabTarget(system).name


@pytest.mark.parametrize("defense", ["prompt", "paraphrase", "mirabel"])
def test_asked_at_two_targets_it_is_what_one_after_the_other_gives(defense: str) -> None:
    system = build_system(_corpus(60), RagConfig(k=2), generator=Copier())
    hook = load_defense(defense)
    split = divide(_corpus(120), members=5, non_members=5, calibration=5, seed=1)
    questions = questions_of(replace(split, indexed=tuple(_corpus(60))), 12, seed=0)
    found = asyncio.run(weigh_defense(LabTarget(defend(system, hook)), questions))
    assert found == benign_cost(system, hook, questions, declines)


def test_a_defense_that_hides_everything_costs_everything() -> None:
    system = build_system(_corpus(60), RagConfig(k=2), generator=Copier())
    split = divide(_corpus(120), members=5, non_members=5, calibration=5, seed=1)
    questions = questions_of(replace(split, indexed=tuple(_corpus(60))), 12, seed=0)
    behind = defend(system, _Hides())
    cost = asyncio.run(weigh_defense(LabTarget(behind), questions))
    assert cost.retrieval.recall.value == 0.0
    assert cost.retrieval.recall_before.value == 1.0
    assert cost.retrieval.recall.n == 12


def test_answers_are_kept_and_the_undefended_ones_serve_every_defense(tmp_path: Path) -> None:
    system = build_system(_corpus(60), RagConfig(k=2), generator=Copier())
    split = divide(_corpus(120), members=5, non_members=5, calibration=5, seed=1)
    questions = questions_of(replace(split, indexed=tuple(_corpus(60))), 6, seed=0)
    seen: list[tuple[str, int, int]] = []
    with ResponseStore(tmp_path / "answers.jsonl") as journal:
        for kept, defense in ((12, "prompt"), (12, "prompt"), (18, "mirabel")):
            target = LabTarget(defend(system, load_defense(defense)))
            cost = asyncio.run(
                weigh_defense(
                    target, questions, journal=journal, progress=lambda *a: seen.append(a)
                )
            )
            assert len(journal) == kept
            assert cost.answers is not None
    assert seen[5] == ("benign questions, undefended", 6, 6)


def test_without_a_defense_or_a_question_there_is_no_cost() -> None:
    assert _run(_plan()).benign is None
    assert _run(_plan(benign=0), "prompt").benign is None
    assert to_json(_run(_plan()))["benign"] is None
    with pytest.raises(InputError, match="0 asks none"):
        _plan(benign=-1)


def test_every_view_shows_the_cost(tmp_path: Path) -> None:

    battery = _run(_plan(benign=10), "paraphrase+mirabel:0.5", tmp_path / "run")
    cost = battery.benign
    assert cost is not None
    assert cost.answers is not None
    assert cost.answers.quality is not None
    data = json.loads(json.dumps(to_json(battery), allow_nan=False))["benign"]
    assert data["questions"] == 10
    assert data["recall"]["undefended"]["value"] == cost.retrieval.recall_before.value
    assert set(data["recall"]["lost"]) == {"value", "low", "high", "n"}
    assert data["answer_quality"]["defended"]["n"] == cost.answers.quality.n < 10
    assert data["refused"]["defended"]["value"] == cost.answers.refused.value
    assert "paraphrase" in data["defense"]
    write_html(battery, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "What the defense costs" in page
    assert "recall@2" in page
    out = io.StringIO()
    thousand = replace(cost.retrieval.recall, n=1000)
    wide = replace(
        battery,
        benign=replace(
            cost, failed=3, retrieval=replace(cost.retrieval, recall=thousand, changed=thousand)
        ),
    )
    out.write(terminal_of(wide, where="page.html"))
    said = out.getvalue()
    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said
    for word in ("undefended", "recall@2", "answer quality", "refused", "1,000"):
        assert word in said
    assert "Questions without an answer: 0 undefended, 3 defended" in " ".join(said.split())
