"""Evaluation of audits: the split, the rates, the controls, one whole run."""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.membership.evaluation import AnswersSeen, BatteryPlan, run_battery
from ragwitness.membership.measure import (
    best_threshold,
    blind_length,
    blind_words,
    divide,
    measure,
    nearest_likeness,
)
from ragwitness.membership.results.evaluation import Battery, Cost, controls_of
from ragwitness.models import model_registry as registry
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.report.html import write_html
from ragwitness.report.result_registry import to_json
from ragwitness.stats.p_values import conformal_p_values
from ragwitness.stats.rates import Rate
from tests.support.copier import Copier
from tests.support.reports import terminal_of

_WORDS = [f"word{i}" for i in range(400)]


def _corpus(n: int, seed: int = 0) -> list[Document]:
    rng = random.Random(seed)
    return [Document(f"d{i}", " ".join(rng.sample(_WORDS, 24)) + ".") for i in range(n)]


def test_split_is_disjoint_and_only_the_index_holds_members() -> None:
    split = divide(_corpus(200), members=20, non_members=30, calibration=20, seed=1)
    parts = [split.members, split.known_in, split.non_members, split.known_out, split.shadow]
    ids = [document.id for part in parts for document in part]
    assert len(ids) == len(set(ids))
    held = {document.text for document in split.indexed}
    assert all(d.text in held for d in (*split.members, *split.known_in))
    assert not any(d.text in held for part in parts[2:] for d in part)
    assert {d.member for d in split.members} == {True}
    assert {d.member for d in split.non_members} == {False}
    assert [len(part) for part in parts[:4]] == [20, 20, 30, 20]


def test_split_counts_copies_once_and_refuses_a_handful() -> None:
    corpus = _corpus(60)
    doubled = [*corpus, *(Document(f"copy-{d.id}", d.text) for d in corpus)]
    split = divide(doubled, members=10, non_members=10, calibration=5, seed=1)
    assert len(split.indexed) == 30
    with pytest.raises(InputError, match="too few"):
        divide(corpus[:20] * 5, members=5, non_members=5, calibration=5, seed=1)


def test_small_corpora_shrink_all_parts_outside() -> None:
    split = divide(_corpus(60), members=100, non_members=100, calibration=100, seed=1)
    assert len(split.non_members) == len(split.known_out) == 11
    assert len(split.shadow) == 8


def test_without_a_shadow_system_every_document_can_be_asked_about() -> None:
    split = divide(_corpus(60), members=26, non_members=26, calibration=4, seed=1, shadow=False)
    parts = (split.members, split.known_in, split.non_members, split.known_out, split.shadow)
    assert [len(part) for part in parts] == [26, 4, 26, 4, 0]
    assert len({d.id for part in parts for d in part}) == 60
    small = divide(_corpus(60), members=100, non_members=90, calibration=30, seed=1, shadow=False)
    assert (len(small.members), len(small.known_in)) == (22, 8)
    assert len(small.non_members) + len(small.known_out) <= 30


@pytest.mark.slow
@pytest.mark.parametrize(("audit", "asked"), [("mba", 26), ("s-rag:paper", 19)])
def test_only_an_audit_that_learns_leaves_documents_for_its_shadow(audit, asked) -> None:
    plan = BatteryPlan(
        (audit,), members=26, non_members=26, calibration=4, control=False, rag=RagConfig(k=2)
    )

    def build(documents, rag):  # type: ignore[no-untyped-def]
        return LabTarget(build_system(documents, rag, generator=Copier()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "load_language_model", lambda spec: Copier())
        found = asyncio.run(run_battery(plan, _corpus(60), Copier(), build=build))
    assert found.sizes["non-members"] == asked


def test_best_threshold_lies_in_the_gap() -> None:
    assert best_threshold([3.0, 4.0], [1.0, 2.0]) == 2.5
    assert best_threshold([1.0, 1.0], [1.0]) == 1.0


def _measured(name: str, scores: dict[str, float], truth: dict[str, bool]):  # type: ignore[no-untyped-def]
    return measure(
        name,
        scores,
        truth,
        known_in=[0.8, 0.9],
        known_out=[0.1, 0.2, 0.3],
        retrieved=dict.fromkeys(truth, True),
        outcomes={},
        cost=Cost(1.0, None, 0.1),
    )


def test_rates_by_hand() -> None:
    truth = {"a": True, "b": True, "c": True, "d": False, "e": False, "f": True}
    found = _measured("x", {"a": 0.9, "b": 0.7, "c": 0.2, "d": 0.6, "e": 0.1}, truth)
    assert found is not None
    assert found.threshold == pytest.approx(0.55)
    assert found.auc.value == pytest.approx(5 / 6)
    assert (found.recall.value, found.precision.value) == (
        pytest.approx(2 / 3),
        pytest.approx(2 / 3),
    )
    assert found.unscorable.value == pytest.approx(1 / 6)
    assert found.tpr_at_01_fpr == pytest.approx(2 / 3)
    p = conformal_p_values([0.6, 0.1], [0.1, 0.2, 0.3])
    assert found.false_positives["0.05"].value == np.mean(p <= 0.05)


def test_nothing_is_measured_where_a_class_is_missing() -> None:
    assert _measured("x", {"a": 1.0, "b": 0.5}, {"a": True, "b": True}) is None


def _half(corpus: list[Document], marked: bool) -> list[Document]:
    return [Document(d.id, d.text + " synopsis overleaf") for d in corpus] if marked else corpus


@pytest.mark.parametrize("marked", [True, False])
def test_the_blind_guesser_sees_a_leak_and_no_more(marked: bool) -> None:
    corpus = _corpus(240)
    inside = _half(corpus[:120], marked)
    rate = blind_words(inside[:60], corpus[120:180], inside[60:], corpus[180:])
    assert rate is not None
    if marked:
        assert rate.low > 0.8
        assert blind_length(inside, corpus[120:]).value == 1.0  # type: ignore[union-attr]
    else:
        assert rate.low <= 0.5


@pytest.mark.slow
def test_the_blind_guesser_fails_clean_splits_no_oftener_than_its_interval_says() -> None:
    failed = 0
    for seed in range(60):
        corpus = _corpus(160, seed)
        rate = blind_words(corpus[:40], corpus[40:80], corpus[80:120], corpus[120:])
        assert rate is not None
        failed += rate.low > 0.5
    # One-sided at 2.5 %: at most 5 of 60 with probability .997.
    assert failed <= 5


def test_guessers_read_text_without_spaces_and_refuse_a_handful() -> None:
    unspaced = [Document(str(i), "東京都の天気は晴れ" * (i % 3 + 1)) for i in range(48)]
    rate = blind_words(unspaced[:12], unspaced[12:24], unspaced[24:36], unspaced[36:])
    assert rate is not None
    assert blind_words(unspaced[:12], unspaced[12:24], unspaced[24:28], unspaced[36:]) is None
    assert nearest_likeness(unspaced[:2], unspaced).shape == (2,)


def test_likeness_leaves_the_document_itself_out() -> None:
    held = [Document("a", "red blue green"), Document("b", "red blue yellow")]
    likeness = nearest_likeness([held[0], Document("c", "violet")], held)
    assert 0.2 < likeness[0] < 1.0
    assert likeness[1] == 0.0


@pytest.fixture(scope="module")
def battery() -> Iterator[Battery]:
    plan = BatteryPlan(
        ("s-rag:paper",), members=8, non_members=8, calibration=6, rag=RagConfig(k=2)
    )

    def build(documents, rag):  # type: ignore[no-untyped-def]
        return LabTarget(build_system(documents, rag, generator=Copier()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "load_language_model", lambda spec: Copier())
        yield asyncio.run(run_battery(plan, _corpus(200), Copier(), build=build))


def test_a_whole_run_tells_members_apart_and_its_controls_hold(battery: Battery) -> None:
    (one,) = battery.audits
    assert one.audit == "s-rag:paper"
    assert one.auc.value > 0.9
    assert one.recall_at_k is not None
    assert one.recall_at_k.value == 1.0
    off = battery.controls["retrieval off: s-rag:paper"]
    assert off.low <= 0.5 <= off.high
    assert {"blind words", "blind length", "near-duplicates: s-rag:paper"} <= set(battery.controls)
    assert one.cost.queries >= 1


def test_everything_in_use_is_kept(battery: Battery) -> None:
    assert battery.settings["seed"] == "0"
    assert battery.settings["s-rag:paper: features"] == "counts, 10 intervals"
    assert battery.settings["shadow documents"].endswith("rest of the corpus")


def test_a_control_that_could_not_be_measured_stays_in_sight(battery: Battery) -> None:
    empty = Rate(math.nan, math.nan, math.nan, 3)
    wide = Rate(0.6, 0.2, 0.9, 8)
    below = Rate(0.3, 0.2, 0.4, 200)
    names = ("retrieval off: mba", "retrieval off: x", "blind words", "blind length")
    changed = replace(battery, controls=dict(zip(names, (empty, wide, below, below), strict=True)))
    found = [control.verdict for control in controls_of(changed)]
    assert found == ["not measured", "too few to tell", "holds", "FAILS"]
    json.dumps(to_json(changed), allow_nan=False)


def test_every_view_shows_the_same_figures(battery: Battery, tmp_path: Path) -> None:
    data = json.loads(json.dumps(to_json(battery), allow_nan=False))
    assert data["audits"]["s-rag:paper"]["auc"] == battery.audits[0].auc.value
    assert len(data["controls"]["blind words"]["auc_interval"]) == 2
    write_html(battery, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "retrieval off: s-rag:paper" in page
    assert "<script" not in page


def test_the_page_escapes_what_others_said_and_loads_nothing(
    battery: Battery, tmp_path: Path
) -> None:
    evil = "<script>alert(1)</script><a href='javascript:alert(1)'>\u202e\x00http://evil"
    changed = replace(battery, settings={evil: evil}, skipped={evil: evil})
    write_html(changed, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert not re.search("<script|[\u202e\x00]", page)
    links = re.findall(r"(?:src|href)=[\"']?([^\"' >]*)", page)
    assert all(link.startswith(("#", "&#39;")) or link == "" for link in links), links
    assert not re.search(r"url\(|@import", page)


def test_the_widest_table_is_whole_at_80_columns(battery: Battery) -> None:

    widest = Rate(1.0, 0.832, 1.0, 40)
    one = replace(
        battery.audits[0],
        auc=widest,
        tpr_at_1_fpr=widest,
        f1=widest,
        unscorable=widest,
        false_positives={"0.05": widest},
        cost=Cost(29.8, 100.0, 0.047),
    )
    names = ("s-rag:paper-gpt", "s-rag:paper-gpt/mean-log-odds")
    wide = replace(
        battery,
        audits=tuple(replace(one, audit=name) for name in names),
        controls={"blind length": widest}
        | {
            f"{kind}: {name}": widest
            for name in names
            for kind in ("retrieval off", "near-duplicates")
        },
    )
    out = io.StringIO()
    out.write(terminal_of(wide, where="page.html"))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in out.getvalue()
    assert sum(" /mean-log-odds" in line for line in lines) == 1
    tables = [line for line in lines if not line.startswith("│")]  # warnings name them too
    assert (
        sum("1.000 [.832, 1.000]" in line for line in tables) == 2 + 5 + 1
    )  # audits, controls, the first warning
    assert "FAILS" in out.getvalue()


@pytest.mark.parametrize(
    ("audits", "options", "message"),
    [
        ((), {}, "no audit"),
        (("nonsense",), {}, "There is no audit"),
        (("s-rag",), {"s-rag": {"colour": 1}}, "no option 'colour'"),
        (("s-rag",), {"mab": {"masks": 5}}, "options for 'mab'"),
    ],
)
def test_plans_that_cannot_run(audits, options, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        BatteryPlan(audits, options=options)


def test_no_query_is_rewritten_for_a_document_that_no_index_holds() -> None:
    system = build_system([Document("in", "a lamp of brass by the harbour")], RagConfig(k=1))
    rewritten: list[str] = []

    class Rewriting(type(system)):  # type: ignore[misc]
        def retrieve(self, query: str):
            rewritten.append(query)
            return super().retrieve(query)

    system.__class__ = Rewriting
    seen = AnswersSeen(LabTarget(system))
    seen.asked |= {"in": ["brass lamp", "harbour"], "out": ["copper kettle", "meadow"]}
    documents = [Document("in", "x"), Document("out", "y"), Document("unasked", "z")]
    assert seen.retrieved(documents) == {"in": True, "out": False, "unasked": False}
    assert rewritten == ["brass lamp"]
