"""Two results: which places differ."""

from __future__ import annotations

import pytest

from ragwitness.evidence.case import differences


@pytest.mark.parametrize("empty", [None, 0, 0.0, False, "", [], {}])
def test_a_pack_of_an_earlier_version_may_lack_an_empty_field(empty: object) -> None:
    assert list(differences({"a": 1, "b": empty}, {"a": 1})) == []


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"p_value": None}, {"p_value": 0.0}),  # no p-value, told as the smallest
        ({"score": 0.0}, {"score": None}),
        ({"exact": False}, {"exact": 0}),
        ({"n": 3}, {}),
        ({}, {"q_value": 0.0}),
        ({}, {"note": None}),
        ({"rows": []}, {"rows": None}),
    ],
)
def test_nothing_else_is_the_same(mine: dict[str, object], theirs: dict[str, object]) -> None:
    assert len(list(differences({"row": mine}, {"row": theirs}))) == 1
