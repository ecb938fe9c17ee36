"""Configurations by name, with values as a command line gives them."""

from __future__ import annotations

import math

import pytest

from ragwitness.errors import InputError
from ragwitness.membership.mba.config import MbaConfig
from ragwitness.membership.registry import configure


@pytest.mark.parametrize(
    ("given", "gamma"),
    [("0.5", 0.5), ("1", 1.0), (" none ", None), ("None", None), (0.25, 0.25), (None, None)],
)
def test_a_field_without_a_default_is_a_number_or_none(given, gamma) -> None:
    assert configure("mba", {"gamma": given}) == MbaConfig(gamma=gamma)


@pytest.mark.parametrize("given", ["often", "", "0,5", "true"])
def test_what_is_neither_is_refused_by_name(given) -> None:
    with pytest.raises(InputError, match="mba: gamma cannot be"):
        configure("mba", {"gamma": given})


@pytest.mark.parametrize("given", ["0", "1.5", "nan", "-inf", math.nan])
def test_a_number_out_of_range_is_refused_by_name(given) -> None:
    with pytest.raises(InputError, match="gamma must lie in"):
        configure("mba", {"gamma": given})


def test_text_is_turned_into_the_type_of_the_default() -> None:
    config = configure("mba", {"masks": "7", "floor": "0.1", "unique_words": "off"})
    assert config == MbaConfig(masks=7, floor=0.1, unique_words=False)
    with pytest.raises(InputError, match="mba: masks cannot be"):
        configure("mba", {"masks": "7.5"})
