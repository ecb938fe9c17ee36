"""Attacks by name: options, limits, plug-ins, and what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer
from ragwitness.leakage.attack_registry import ATTACKS, build_attack
from ragwitness.leakage.attacks.base import Limits
from tests.support.packages import install

_OTHERS = """
from dataclasses import dataclass, field
from ragwitness.leakage.attacks.base import Limits

@dataclass(frozen=True)
class ShoutConfig:
    word: str = "hello"
    limits: Limits = field(default_factory=Limits)

class Shout:
    name = "shout"
    def __init__(self, config=ShoutConfig()):
        if config.word == "bad":
            raise RuntimeError("no such word")
        self.config = config
    def steps(self):
        yield [self.config.limits.ask(self.config.word.upper())]

class NoAttack:
    pass
"""


@pytest.mark.parametrize("name", ATTACKS)
def test_every_name_makes_an_attack_within_its_limits(name: str) -> None:
    records = ["a record of some words, all of them its own"]
    attack = build_attack(name, Limits(prompts=3, max_tokens=7, batch=2), records=records)
    first = next(attack.steps())
    assert 0 < len(first) <= 2
    assert {ask.query.max_tokens for ask in first} == {7}


def test_options_and_texts_reach_the_attack() -> None:
    aimed = build_attack("aimed", options={"words": "4"}, records=["some record"])
    assert aimed.config.words == 4
    told = build_attack("composite", Limits(prompts=5), texts=["only these few words"])
    assert all("only these few words" in ask.query.prompt for ask in next(told.steps()))
    assert (
        "given to all" in next(build_attack("pide", texts=["given to all"]).steps())[0].query.prompt
    )
    assert build_attack("pide", options={"batch": "3"}).config.limits.size == 3


@pytest.mark.parametrize("topic", ["", "  ", "?!"])
def test_an_empty_topic_is_refused_by_name(topic: str) -> None:
    for name in ATTACKS:
        with pytest.raises(InputError, match="The topic has no word"):
            build_attack(name, topic=topic)


def test_targeted_names_are_presets() -> None:
    asked = next(build_attack("composite-conditions", Limits(prompts=4)).steps())
    assert all(ask.aim for ask in asked)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("theif", {}, "There is no attack 'theif'"),
        ("pide", {"wrods": "4"}, "pide has no option 'wrods'"),
        ("pide", {"limits": "4"}, "pide has no option 'limits'"),
        ("aimed", {"words": "four"}, "aimed: words cannot be 'four'"),
        ("composite", {"target": "people"}, "no target 'people'"),
        ("pide", {"batch": "many"}, "pide: batch cannot be 'many'"),
        ("pide", {"batch": "0"}, "batch must be at least 1"),
        ("pide", {"topic": "health"}, "pide has no option 'topic'"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        build_attack(name, options=options)
    assert said in caught.value.message
    assert caught.value.hint


def test_attacks_of_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"shout": "others_attacks:Shout", "none": "others_attacks:NoAttack"}
    install(monkeypatch, tmp_path, "others_attacks", _OTHERS, attacks=entries)
    assert ATTACKS.names()[-2:] == ("none", "shout")
    steps = build_attack("shout", Limits(max_tokens=9), {"word": "hey"}).steps()
    [ask] = next(steps)
    assert (ask.query.prompt, ask.query.max_tokens) == ("HEY", 9)
    with pytest.raises(StopIteration):
        steps.send([Answer("")])
    with pytest.raises(InputError, match="is not an attack"):
        build_attack("none")
    with pytest.raises(InputError, match="plug-in attack 'shout' failed"):
        build_attack("shout", options={"word": "bad"})


def test_the_owners_attack_is_refused_where_no_record_is_known() -> None:
    with pytest.raises(InputError, match="aimed needs records"):
        build_attack("aimed", Limits(prompts=3))
