"""Configurations by name, with values as a command line gives them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ragwitness.core.errors import InputError
from ragwitness.membership.methods.mba.masks import MbaConfig
from ragwitness.membership.methods.method_registry import AUDITS, configure
from ragwitness.membership.methods.srag import SRagConfig


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


@pytest.mark.parametrize("name", [name for name in AUDITS if name not in ("passages", "runon")])
def test_every_audit_with_a_paper_has_it_as_a_preset_and_is_not_its_default(name: str) -> None:
    published = configure(f"{name}:paper")
    assert type(published) is type(configure(name))
    assert published != configure(name)
    assert AUDITS.load(f"{name}:paper") is AUDITS.load(name)


def test_a_preset_sets_what_the_paper_says() -> None:
    assert configure("s-rag:paper") == SRagConfig(mode="probing", missing=0.01)
    assert configure("s-rag:few") == configure("s-rag")
    assert configure("s-rag:paper-gpt").top_logprobs == 5
    assert configure("mba:paper").gamma == 0.5
    assert configure("min-k:paper").combine == "sum"


def test_an_option_goes_over_a_preset() -> None:
    assert configure("s-rag:paper", {"intervals": "5"}) == replace(
        configure("s-rag:paper"), intervals=5
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("s-rag:published", "s-rag has no preset 'published'"),
        ("passages:paper", "passages has no preset 'paper'"),
        ("nonsense:paper", "no audit 'nonsense'"),
    ],
)
def test_a_preset_that_there_is_not_is_named(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        configure(name)
    with pytest.raises(InputError, match=says):
        AUDITS.load(name)
