"""Figs. 2 to 7 of the collusion paper, run small: each shows what theory says, and no more."""

import math
from pathlib import Path

import pytest
from scipy.stats import binomtest

from ragwitness.core.errors import InputError
from research.collusion_tables import reproduce_figure
from research.reproduce.tables import known_tables, table_kind
from research.separation import spread

EXPERIMENTS = Path("experiments")
SMALLER = {
    "trials = 1_000_000": "trials = 20_000",
    "trials = 200_000": "trials = 20_000",
    "trials = 50_000": "trials = 4_000",
    "trials = 200\n": "trials = 20\n",
    "slots = 20_000": "slots = 400",
    "documents = 100": "documents = 20",
    "bases = [1, 10, 100]": "bases = [1, 10]",
}


@pytest.fixture
def drawn(tmp_path):
    """Run a figure with fewer trials."""
    text = (EXPERIMENTS / "collusion/tables.toml").read_text(encoding="utf-8")
    for whole, part in SMALLER.items():
        assert whole in text
        text = text.replace(whole, part)
    (tmp_path / "collusion").mkdir()
    (tmp_path / "collusion/tables.toml").write_text(text, encoding="utf-8")

    def run(name):
        return reproduce_figure(f"collusion/{name}", tmp_path, tmp_path / "out")

    return run


def column(found, name):
    place = next(at for at, head in enumerate(found.head) if head.startswith(name))
    return [row[place] for row in found.rows]


def numbers(found, name):
    return [float(cell.split(" ")[0]) for cell in column(found, name)]


def test_every_figure_has_a_table_that_is_listed():
    names = [n for n in known_tables(EXPERIMENTS) if table_kind(n, EXPERIMENTS) == "collusion"]
    figures = [
        "fig2a",
        "fig2b",
        "service",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "fig7",
        "adaptive",
        "g2",
    ]
    assert names == [f"collusion/{figure}" for figure in figures]


def test_the_scalar_attack_lies_where_theory_has_it(drawn):
    found = drawn("fig2a")
    assert len(found.rows) == 15
    assert all(abs(z) < 4.5 for z in numbers(found, "z"))
    rebuilt = {row[:2]: row[2] for row in found.rows if row[2] != "-"}
    assert rebuilt == {("1", "1"): "0.5083", ("1", "16"): "0.5331", ("10", "1"): "0.5823",
                       ("10", "16"): "0.7971"}  # fmt: skip
    for row in found.rows:
        if row[2] != "-":
            assert float(row[2]) == pytest.approx(float(row[3]), abs=1e-4)


def test_hits_alone_grow_alike_and_tell_less(drawn):
    found = drawn("fig2b")
    scores, hits, eta = (numbers(found, name) for name in ("the score", "hit or", "by eta"))
    assert all(0.5 < hit < score for hit, score in zip(hits, scores, strict=True))
    assert hits == pytest.approx(eta, abs=2e-3)
    assert (hits[-1] - 0.5) / (hits[0] - 0.5) == pytest.approx(4, abs=0.2)


def test_the_service_hits_as_often_as_its_mechanism_says(drawn):
    found = drawn("service")
    for row in found.rows:
        for seen, exact in ((row[1], row[3]), (row[2], row[4])):
            hits, _, n = seen.split(" ")[:3]
            assert binomtest(int(hits), int(n), float(exact)).pvalue > 1e-6
    assert numbers(found, "exact, with")[0] > numbers(found, "exact, without")[0]
    assert numbers(found, "AUC exact") == sorted(numbers(found, "AUC exact"))


def test_a_real_pair_tells_less_by_its_gap(drawn):
    found = drawn("fig3")
    off = [
        a - b for a, b in zip(numbers(found, "this pair"), numbers(found, "theory"), strict=True)
    ]
    assert max(map(abs, off)) < 5 * spread(0.0, 20_000)
    assert 0.5 < numbers(found, "excess")[-1] < 1


def test_adversary_b_gains_nothing_and_c_loses(drawn):
    found = drawn("fig4")
    ours = {(row[0], row[1]): float(row[4]) for row in found.rows}
    for row in found.rows:
        assert float(row[4]) == pytest.approx(float(row[3]), abs=5 * spread(0.0, 20_000))
        if row[2] != "-":
            assert float(row[2]) == pytest.approx(float(row[3]), abs=2e-4)
    for k in ("1", "2", "4", "8", "16"):
        assert ours[k, "B: likelihood ratio"] == ours[k, "mean (baseline)"]
    everything = ours["16", "C: 0.5 on target, pools everything"]
    target = ours["16", "C: 0.5 on target, pools what is on target"]
    assert everything < target < ours["16", "mean (baseline)"]


def test_access_control_leaves_outsiders_nothing(drawn):
    found = drawn("fig5")
    assert set(column(found, "cross-tenant")) == {"0.5000"}
    assert set(column(found, "external")) == {"refused"}
    for row in found.rows:
        assert len({row[2], *row[5:]}) == 1  # under M4 all three are the tenant's own


def test_a_graph_before_the_noise_betrays_the_document(drawn):
    pytest.importorskip("faiss")
    found = drawn("fig6")
    flat, graph = numbers(found, "user: hits, every"), numbers(found, "user: hits, HNSW")
    assert graph[0] > 0.99 > flat[-1]


def test_the_estimator_is_calibrated_where_the_paper_has_it(drawn):
    found = drawn("fig7")
    by_label = {row[0]: row for row in found.rows}
    assert by_label["null, tau = 0.2"][2].startswith("20 of 20")
    assert by_label["null, tau = 0.95"][2].startswith("0 of 20")
    exact = [row for row in found.rows if "m = " in row[0]]
    assert len(exact) == 12
    assert all(row[2].startswith("20 of 20") for row in exact)


def test_colluders_who_listen_gain_and_stay_below_who_knows(drawn):
    found = drawn("adaptive")
    for row in found.rows:
        assert float(row[3].split(" ")[0]) < float(row[4])
        evenly = 1 / int(row[0])
        share = float(row[5])
        assert math.isclose(share, evenly, abs_tol=1e-3) or share > evenly


def test_text_comes_back_without_noise_and_not_under_it(drawn):
    found = drawn("g2")
    held = {(row[0], row[1]): int(row[4].split(" ")[0]) for row in found.rows}
    assert held["0.1", "2,560"] == 20
    assert held["107.6", "2,560"] <= 2  # the opponent: what answers under noise give is chance
    assert numbers(found, "cosine") == pytest.approx(numbers(found, "theory"), abs=0.05)


@pytest.mark.parametrize(
    ("text", "named"),
    [("draw = 'poem'", "poem"), ("draw = 'top-k'\nepsilon = 1.0", "malformed")],
)
def test_a_malformed_table_is_named(tmp_path, text, named):
    (tmp_path / "collusion").mkdir()
    table = f"[broken]\nkind = 'collusion'\ntitle = 't'\nnote = []\n{text}\n"
    (tmp_path / "collusion/tables.toml").write_text(table)
    with pytest.raises(InputError, match=named):
        reproduce_figure("collusion/broken", tmp_path, tmp_path / "out")
