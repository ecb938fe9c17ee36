"""Figures of MBA that are no tables: indicators by truth (Fig. 1), one document (Fig. 8)."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.membership.measure import measure
from ragwitness.membership.results.evaluation import Battery, Cost
from ragwitness.text.sample import load_sample
from research.reproduce.case_study import Asked, case_markdown, load_case_study, reproduce_case
from research.reproduce.command import reproduce
from research.reproduce.indicators import (
    Indicator,
    f1_above,
    indicators_markdown,
    indicators_of,
    indicators_svg,
    thresholds_markdown,
)
from research.reproduce.report import reproduction_markdown
from research.reproduce.tables import Case, Table
from tests.support.copier import Copier

_TABLES = Path(__file__).parents[2] / "experiments"


def test_scores_are_divided_by_the_truth_and_not_by_the_score() -> None:
    # Opponent: an audit that is wrong throughout must show its non-members on the right.
    truth = {str(i): i < 5 for i in range(10)}
    scores = {name: float(not inside) for name, inside in truth.items()}
    one = measure("mba", scores, truth, known_in=[0.0], known_out=[1.0], retrieved=None,
                  outcomes={}, cost=Cost(1.0, None, None))  # fmt: skip
    battery = Battery((one,), {}, {}, {}, 0.0, {}, 1.0)
    (found,) = indicators_of(Case("c", "f"), battery, [n for n, inside in truth.items() if inside])
    assert found.inside.tolist() == [0.0] * 5
    assert found.outside.tolist() == [1.0] * 5
    text = indicators_markdown([found])
    assert "| c | mba | .000 [.000, .000] | 5 | 1.000 [1.000, 1.000] | 5 |" in text


def test_the_figure_has_two_curves_for_each_audit_and_draws_equal_scores() -> None:
    rng = np.random.default_rng(0)
    varied = Indicator("c", "mba", rng.normal(0.9, 0.1, 40), rng.normal(0.2, 0.1, 40))
    equal = Indicator("c", "rag-mia & co", np.ones(5), np.zeros(5))
    root = ElementTree.fromstring(indicators_svg("A < B", [varied, equal]))  # noqa: S314
    filled = [e for e in root.iter() if e.tag.endswith("path") and e.get("fill-opacity")]
    assert len(filled) == 4
    assert "nan" not in "".join(e.get("d", "") for e in filled)

    def peak(path: ElementTree.Element) -> float:
        places = [tuple(map(float, xy.split())) for xy in path.get("d", "")[1:].split("L")]
        return min(places, key=lambda xy: xy[1])[0]

    assert peak(filled[0]) > peak(filled[1])  # members to the right
    assert peak(filled[2]) > peak(filled[3])


def test_a_document_is_in_only_where_its_score_exceeds_gamma() -> None:
    one = Indicator("c", "mba", np.array([0.5, 0.9, 1.0]), np.array([0.2, 0.5, 0.6]))
    # "exceeds": at .5 the members .9 and 1 are in, and of the non-members .6.
    assert f1_above(one, 0.5).value == pytest.approx(2 * 2 / (3 + 3))
    assert f1_above(one, 0.4).value == pytest.approx(2 * 3 / (5 + 3))
    assert f1_above(one, 1.0).value == 0.0  # nothing exceeds all masks
    rate = f1_above(one, 0.5)
    assert rate.low <= rate.value <= rate.high
    text = thresholds_markdown([one], [0.5, 1.0])
    assert "| gamma | c, mba (n = 6) |" in text
    assert "| 0.5 | .667 [" in text


def test_what_a_model_did_not_choose_is_said_beside_the_table() -> None:
    told = {"fallback": 9.5, "masks": 10.0}
    truth = {str(i): i < 5 for i in range(10)}
    one = measure("mba:paper", dict.fromkeys(truth, 1.0), truth, known_in=[0.0], known_out=[1.0],
                  retrieved=None, outcomes=told, cost=Cost(1.0, None, None))  # fmt: skip
    case = Case("by a model", "f")
    battery = Battery((one,), {}, {}, {}, 0.0, {}, 1.0)
    table = Table("mba/t", "T", ("mba:paper",), False, "auc", (case,))
    text = reproduction_markdown(table, [(case, battery)], {})
    assert "by a model, mba:paper: of 10.0 masks a document the model chose all but 9.5" in text


def test_a_case_study_shows_what_was_said_with_the_document_and_without(tmp_path: Path) -> None:
    study = load_case_study("mba/fig8", _TABLES)
    reproduce_case(study, "reader", "reader", tmp_path)
    text = (tmp_path / "table.md").read_text()
    for name, (outside, inside) in study.published.items():
        assert f"| {name} | outside | {outside} |" in text
        assert f"| {name} | inside | {inside} |" in text
    assert "[Mask_1]" in text
    asked = [Asked("mba:paper", False, "q", "", None), Asked("mba:paper", True, "q", "a", 1.0)]
    alone = {"mba:paper": study.published["mba:paper"]}
    bare = case_markdown(type(study)("t", 0, 2, alone, {}), asked)
    assert "| mba:paper | outside | 1 of 10 | not scorable |" in bare
    assert "> (nothing)" in bare


@pytest.mark.parametrize(("gammas", "shown"), [("", "mean of members"), ("[0.5]", "| 0.5 | ")])
def test_a_table_of_scores_takes_the_answers_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gammas: str, shown: str
) -> None:
    for module in ("ragwitness.models.model_registry", "ragwitness.rag.pipeline"):
        monkeypatch.setattr(f"{module}.load_language_model", lambda spec: Copier(), raising=False)
    lines = [json.dumps({"id": d.id, "text": d.text}) for d in load_sample()[:60]]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    (tmp_path / "p").mkdir()
    more = f"gammas = {gammas}\n" if gammas else ""
    (tmp_path / "p" / "tables.toml").write_text(
        f'[t]\nkind = "scores"\ntitle = "T"\nanswers = "p/other"\n{more}audits = ["mba"]\n'
        'control = false\n[[t.case]]\nlabel = "a"\ncorpus = "c.jsonl"\n'
    )
    reproduce("p/t", data=tmp_path, limit=8, calibration=2, tables=tmp_path, out=tmp_path / "out")
    text = (tmp_path / "out" / "p" / "t" / "table.md").read_text()
    assert shown in text
    assert (tmp_path / "out" / "p" / "t" / "table.svg").exists() is not bool(gammas)
    assert list((tmp_path / "out" / "p" / "other").glob("answers.jsonl*"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "case"\ntitle = "a"\ncolour = 1', "malformed"),
        (
            'kind = "case"\ntitle = "a"\ndocument = 9\ndatabase = 9\npublished = {}\nset = {}',
            "holds no document 9",
        ),
    ],
)
def test_a_malformed_case_study_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "tables.toml").write_text(f"[t]\n{text}\n")
    with pytest.raises(InputError, match=message):
        load_case_study("x/t", tmp_path)
