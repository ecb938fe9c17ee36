"""The attacks: budgets, seeds, no prompt twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer
from ragwitness.leakage.attack_registry import ATTACKS, build_attack
from ragwitness.leakage.attacks.base import Ask, Attack, Limits
from ragwitness.leakage.attacks.single_turn import (
    COPY,
    LONGEST,
    Composite,
    CompositeConfig,
    aims,
    different_fragments,
)
from ragwitness.text.words import split_words

_LIMITS = Limits(prompts=23, batch=5, seed=3)
_MAKERS: dict[str, Callable[[Limits], Attack]] = {
    "composite": lambda limits: Composite(CompositeConfig(limits=limits)),
    "conditions": lambda limits: Composite(CompositeConfig("conditions", limits=limits)),
    "contacts": lambda limits: Composite(CompositeConfig("contacts", limits=limits)),
    "pide": lambda limits: Composite(CompositeConfig(command=COPY, limits=limits)),
}


def _attack(attack: Attack, answer: Callable[[str], str]) -> list[Ask]:
    """Run an attack against a function; all it asked."""
    steps, asked = attack.steps(), []
    batch = next(steps)
    while True:
        asked += batch
        try:
            batch = steps.send([Answer(answer(ask.query.prompt)) for ask in batch])
        except StopIteration:
            return asked


def _nothing(_: str) -> str:
    return "I cannot help with that."


def _echo(prompt: str) -> str:
    return prompt


@pytest.mark.parametrize("name", _MAKERS)
@pytest.mark.parametrize("target", [_nothing, _echo])
def test_the_budget_is_kept_and_no_prompt_sent_twice(
    name: str, target: Callable[[str], str]
) -> None:
    asked = [ask.query.prompt for ask in _attack(_MAKERS[name](_LIMITS), target)]
    assert 0 < len(asked) <= 23
    assert len(set(asked)) == len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", _MAKERS)
def test_the_seed_decides_everything(name: str) -> None:
    first, again = (_attack(_MAKERS[name](_LIMITS), _nothing) for _ in range(2))
    assert first == again
    assert _attack(_MAKERS[name](Limits(prompts=23, seed=4)), _nothing) != first


_PROMPTS = """
import sys
from ragwitness.leakage.attacks.base import Limits
from ragwitness.leakage.attack_registry import ATTACKS, build_attack
from ragwitness.text.sample import load_sample
from ragwitness.core.types import Answer

records = [one.text for one in load_sample()[:60]]
for name in sys.argv[1:]:
    steps, answers = build_attack(name, Limits(prompts=24, seed=1), records=records).steps(), None
    while True:
        try:
            asks = steps.send(answers)
        except StopIteration:
            break
        print(*(ask.query.prompt for ask in asks), sep="\\n")
        answers = [Answer(max(records, key=lambda one: sum(
            word in one for word in ask.query.prompt.split()))) for ask in asks]
"""


@pytest.mark.slow
def test_an_attack_is_the_same_one_in_every_process() -> None:
    """A resumed run must send what it sent before, or what was paid for is lost."""
    said = [
        subprocess.run(
            [sys.executable, "-c", _PROMPTS, *ATTACKS],
            env={**os.environ, "PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True,
        ).stdout
        for salt in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1]
    assert len(said[0].splitlines()) > 100


def test_fixed_attacks_send_the_whole_budget() -> None:
    for name in ("composite", "conditions", "contacts", "pide"):
        assert len(_attack(_MAKERS[name](Limits(prompts=250)), _nothing)) == 250


def test_information_is_at_most_fifteen_words() -> None:
    for piece in different_fragments(200, Limits().rng()):
        assert 0 < len(split_words(piece)) <= LONGEST
    with pytest.raises(InputError, match="no text"):
        different_fragments(1, Limits().rng(), ["", " "])


@pytest.mark.parametrize("kind", ["conditions", "contacts"])
def test_targeted_information_is_short_and_enough_for_250_prompts(kind: str) -> None:
    pieces = [piece for some in aims(kind) for piece, _ in some]
    assert len(set(pieces)) >= 250
    assert max(len(split_words(piece)) for piece in pieces) <= LONGEST
    asked = _attack(_MAKERS[kind](Limits(prompts=250)), _nothing)
    assert len({ask.query.prompt for ask in asked}) == 250


def test_targeted_prompts_name_their_aim() -> None:
    names = {name for _, name in aims("conditions")[0]}
    asked = _attack(_MAKERS["conditions"](Limits(prompts=len(names))), _nothing)
    assert {ask.aim for ask in asked} == names
    assert all(ask.aim in ask.query.prompt for ask in asked if ask.aim)


@pytest.mark.parametrize(
    "name", [name for name in _MAKERS if name not in ("conditions", "contacts")]
)
def test_the_topic_and_the_texts_are_where_every_attack_begins(name: str) -> None:
    texts = [" ".join(f"kelp{n}x{m}" for m in range(20)) for n in range(30)]
    attack = build_attack(name, Limits(prompts=20), None, texts, topic="marine biology")
    first = " ".join(ask.query.prompt for ask in next(attack.steps()))
    assert "kelp" in first
    assert "marine" in first or "biology" in first


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Limits(prompts=0), "prompts must be at least 1"),
        (lambda: Limits(max_tokens=0), "max_tokens must be"),
        (lambda: CompositeConfig(target="people"), "no target 'people'"),
        (lambda: CompositeConfig(command=" "), "needs a command"),
        (lambda: Limits(batch=0), "batch must be at least 1"),
    ],
)
def test_wrong_settings_are_named(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_short_texts_give_fewer_prompts_rather_than_the_same_again() -> None:
    texts = ("My dog has a fever.", " ".join(f"w{n}" for n in range(LONGEST + 2)))
    for attack in (
        Composite(CompositeConfig(texts=texts, limits=_LIMITS)),
        Composite(CompositeConfig(command=COPY, texts=texts, limits=_LIMITS)),
    ):
        asked = [ask.query.prompt for ask in _attack(attack, _nothing)]
        assert len(asked) == len(set(asked)) == 4  # one text whole, three windows of the other
