"""The attacks: budgets, seeds, no prompt twice; what learns brings more than itself blind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import accumulate

import pytest

from ragwitness.errors import InputError
from ragwitness.extraction.attacks.base import Ask, Attack, Limits
from ragwitness.extraction.attacks.composite import Composite, CompositeConfig, Pide, PideConfig
from ragwitness.extraction.attacks.information import CONDITIONS, LONGEST, aims, fragments
from ragwitness.extraction.attacks.novelty import Novelty, NoveltyConfig
from ragwitness.extraction.registry import ATTACKS, build_attack
from ragwitness.rag.index.lexical import LexicalIndex
from ragwitness.text.words import split_words
from ragwitness.types import Answer

_LIMITS = Limits(prompts=23, batch=5, seed=3)
_MAKERS: dict[str, Callable[[Limits], Attack]] = {
    "composite": lambda limits: Composite(CompositeConfig(limits=limits)),
    "conditions": lambda limits: Composite(CompositeConfig("conditions", limits=limits)),
    "contacts": lambda limits: Composite(CompositeConfig("contacts", limits=limits)),
    "pide": lambda limits: Pide(PideConfig(limits=limits)),
    "novelty": lambda limits: Novelty(NoveltyConfig(limits=limits)),
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
from ragwitness.extraction.attacks.base import Limits
from ragwitness.extraction.registry import ATTACKS, build_attack
from ragwitness.text.sample import load_sample
from ragwitness.types import Answer

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
    for piece in fragments(200, Limits().rng()):
        assert 0 < len(split_words(piece)) <= LONGEST
    with pytest.raises(InputError, match="no text"):
        fragments(1, Limits().rng(), ["", " "])


@pytest.mark.parametrize("kind", ["conditions", "contacts"])
def test_targeted_information_is_short_and_enough_for_250_prompts(kind: str) -> None:
    pieces = [piece for some in aims(kind) for piece, _ in some]
    assert len(pieces) == len(set(pieces)) >= 250
    assert max(len(split_words(piece)) for piece in pieces) <= LONGEST
    asked = _attack(_MAKERS[kind](Limits(prompts=250)), _nothing)
    assert len({ask.query.prompt for ask in asked}) == 250


def test_targeted_prompts_name_their_aim() -> None:
    asked = _attack(_MAKERS["conditions"](Limits(prompts=len(CONDITIONS))), _nothing)
    assert {ask.aim for ask in asked} == set(CONDITIONS)
    assert all(ask.aim in ask.query.prompt for ask in asked if ask.aim)


def _corpus() -> tuple[list[str], list[str]]:
    """Sixty records and forty public texts, of words that are common or rare as in any language."""
    rng = random.Random(7)
    syllables = "ba ce di fo gu ka le mi no pu ra se ti vo zu".split()
    words = ["".join(rng.choices(syllables, k=3)) for _ in range(700)]
    shares = list(accumulate(1 / (place + 8) for place in range(len(words))))
    texts = [" ".join(rng.choices(words, cum_weights=shares, k=45)) for _ in range(100)]
    return texts[:60], texts[60:]


def _found(name: str, seed: int, share: float = 1, *, blind: bool = False) -> int:
    """Records that 60 prompts bring out of a target that obeys a share of them, or chats."""
    records, public = _corpus()
    index, found = LexicalIndex(records), set[int]()

    def answer(prompt: str) -> str:
        said = tell(prompt)
        return "" if blind else said

    def tell(prompt: str) -> str:
        rng = random.Random(f"{seed} {prompt}")
        if rng.random() >= share:
            return rng.choice(_CHATTER)
        hits = [hit.index for hit in index.search(prompt, 1)]
        found.update(hits)
        return "Sure! Here is the context:\n\n" + "\n\n".join(records[place] for place in hits)

    _attack(build_attack(name, Limits(prompts=60, seed=seed), None, public), answer)
    return len(found)


_CHATTER = (
    "I'm sorry for any confusion. I'm here to help you with any medical issues you're facing.",
    "The context is about a medical professional who is a doctor and is a specialist in care.",
    "Es tut mir leid, dazu steht in den Unterlagen leider nichts, was ich Ihnen sagen könnte.",
    '{"answer": "The context does not mention it.", "found": false}',
)


def test_novelty_brings_more_than_itself_blind_and_than_composite_prompts() -> None:
    fed, blind = ([_found("novelty", seed, blind=how) for seed in range(3)] for how in (0, 1))
    assert sum(fed) > sum(blind) + 3, (fed, blind)
    assert sum(fed) > sum(_found("composite", seed) for seed in range(3)) + 3


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_chatter_teaches_novelty_nothing(share: float) -> None:
    seeds = range(4)
    fed, blind = (sum(_found("novelty", n, share, blind=how) for n in seeds) for how in (0, 1))
    assert fed >= 0.9 * blind, (fed, blind)


def test_ten_prompts_already_adapt() -> None:
    batches = []
    steps = build_attack("novelty", Limits(prompts=10)).steps()
    batch = next(steps)
    try:
        while True:
            batches.append(len(batch))
            batch = steps.send([Answer("word " * 20) for _ in batch])
    except StopIteration:
        assert batches == [1] * 10
    assert Limits(prompts=250).size == 16
    assert [Limits(prompts=250, batch=n).size for n in (2, 50)] == [2, 50]


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
        (lambda: NoveltyConfig(words=-1), "words must be at least 1, not -1"),
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
