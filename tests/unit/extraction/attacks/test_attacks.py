"""The attacks: budgets, seeds, no prompt twice, and that adaptive ones go on from what leaks."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ragwitness.errors import InputError
from ragwitness.extraction.attacks.base import Ask, Attack, Limits, SeenLeaks
from ragwitness.extraction.attacks.benign import Benign, BenignConfig
from ragwitness.extraction.attacks.composite import Composite, CompositeConfig, Pide, PideConfig
from ragwitness.extraction.attacks.crawler import Crawler, CrawlerConfig
from ragwitness.extraction.attacks.information import CONDITIONS, LONGEST, fragments
from ragwitness.extraction.attacks.pirates import Pirates, PiratesConfig
from ragwitness.extraction.attacks.thief import Thief, ThiefConfig
from ragwitness.text.words import split_words
from ragwitness.types import Answer

_LIMITS = Limits(prompts=23, batch=5, seed=3)
_MAKERS: dict[str, Callable[[Limits], Attack]] = {
    "composite": lambda limits: Composite(CompositeConfig(limits=limits)),
    "conditions": lambda limits: Composite(CompositeConfig("conditions", limits=limits)),
    "contacts": lambda limits: Composite(CompositeConfig("contacts", limits=limits)),
    "pide": lambda limits: Pide(PideConfig(limits=limits)),
    "thief": lambda limits: Thief(ThiefConfig(limits=limits)),
    "pirates": lambda limits: Pirates(PiratesConfig(limits=limits)),
    "benign": lambda limits: Benign(BenignConfig(limits=limits)),
    "crawler": lambda limits: Crawler(CrawlerConfig(limits=limits)),
}
# A chain: each passage holds a word of the next, so that only who goes on reaches the end.
_CHAIN = [
    " ".join(f"{letter * 4}{chr(ord('a') + n)}{letter}" for n in range(12)) for letter in "abcdefgh"
]


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


@pytest.mark.parametrize("name", _MAKERS)
def test_the_seed_decides_everything(name: str) -> None:
    first, again = (_attack(_MAKERS[name](_LIMITS), _nothing) for _ in range(2))
    assert first == again
    assert _attack(_MAKERS[name](Limits(prompts=23, seed=4)), _nothing) != first


def test_fixed_attacks_send_the_whole_budget() -> None:
    for name in ("composite", "conditions", "contacts", "pide"):
        assert len(_attack(_MAKERS[name](Limits(prompts=250)), _nothing)) == 250


def test_information_is_at_most_fifteen_words() -> None:
    for piece in fragments(200, Limits().rng()):
        assert 0 < len(split_words(piece)) <= LONGEST
    with pytest.raises(InputError, match="no text"):
        fragments(1, Limits().rng(), ["", " "])


def test_targeted_prompts_name_their_aim() -> None:
    asked = _attack(_MAKERS["conditions"](Limits(prompts=len(CONDITIONS))), _nothing)
    assert {ask.aim for ask in asked} == set(CONDITIONS)
    assert all(ask.aim in ask.query.prompt for ask in asked if ask.aim)


def _chained(prompt: str) -> str:
    """A target that gives the passage after the one it is asked with; else the first."""
    words = set(re.findall("[a-z]+", prompt.casefold()))
    for place in reversed(range(len(_CHAIN) - 1)):
        if words & set(_CHAIN[place].split()):
            return _CHAIN[place] + " " + _CHAIN[place + 1]
    return _CHAIN[0] + " " + _CHAIN[1]


@pytest.mark.parametrize("name", ["thief", "pirates", "crawler", "benign"])
def test_adaptive_attacks_go_on_from_what_leaked(name: str) -> None:
    reached = set()

    def target(prompt: str) -> str:
        answer = _chained(prompt)
        reached.update(place for place, passage in enumerate(_CHAIN) if passage in answer)
        return answer

    _attack(_MAKERS[name](Limits(prompts=150, batch=4)), target)
    assert len(reached) >= 5, sorted(reached)


def test_only_the_benign_attack_hides_its_intent() -> None:
    for ask in _attack(_MAKERS["benign"](_LIMITS), _echo):
        assert not {"repeat", "context", "copy", "output"} & set(
            ask.query.prompt.casefold().split()
        )


def test_what_the_prompt_said_is_no_news() -> None:
    seen = SeenLeaks()
    text = "one two three four five six seven"
    assert not seen.add(Answer(text), f"please say {text}")
    assert seen.add(Answer(text), "please")
    assert not seen.add(Answer(text), "please")
    assert not seen.add(Answer("", error="refused"), "please")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Limits(prompts=0), "prompts must be at least 1"),
        (lambda: Limits(max_tokens=0), "max_tokens must be"),
        (lambda: CompositeConfig(target="people"), "no target 'people'"),
        (lambda: CompositeConfig(command=" "), "needs a command"),
        (lambda: ThiefConfig(words=-1), "words must be at least 1, not -1"),
        (lambda: PiratesConfig(beta=1000), "beta must be 0 to 100"),
        (lambda: PiratesConfig(anchors=0), "anchors must be"),
        (lambda: BenignConfig(penalty=0), "penalty must be"),
        (lambda: BenignConfig(first=0), "first must be"),
        (lambda: CrawlerConfig(prior=float("nan")), "prior must be at least 0, not nan"),
    ],
)
def test_wrong_settings_are_named(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_short_texts_give_fewer_prompts_rather_than_the_same_again() -> None:
    texts = ("My dog has a fever.", " ".join(f"w{n}" for n in range(LONGEST + 2)))
    for attack in (
        Composite(CompositeConfig(texts=texts, limits=_LIMITS)),
        Pide(PideConfig(texts=texts, limits=_LIMITS)),
    ):
        asked = [ask.query.prompt for ask in _attack(attack, _nothing)]
        assert len(asked) == len(set(asked)) == 4  # one text whole, three windows of the other
