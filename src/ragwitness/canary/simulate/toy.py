"""A world small enough to train twenty providers in minutes: documents made from three words."""

from __future__ import annotations

import random

from ragwitness.canary.examples import Example
from ragwitness.canary.simulate.pieces import piece_tokenizer
from ragwitness.canary.simulate.policies import Base
from ragwitness.canary.simulate.pretrain import Pretraining, pretrain
from ragwitness.errors import InputError

__all__ = ["toy_base", "toy_examples"]

_PLACES = (
    "Avon Brae Cove Dell Esk Fenn Glen Holt Isle Keld Linn Moss Ness Ouse Pool Quay Rigg Shaw Tarn"
    " Ure Vale Wick Yarm Zell Arle Bure Cray Dart Exe Flit Gade Hull"
).split()
_ANIMALS = (
    "fox owl hen cat dog cow ram eel bat bee ant elk yak emu ape rat hog pig jay kid doe cub pup"
    " gnu asp ewe auk cod koi nit roe tit"
).split()
_COLOURS = (
    "red blue green black white brown grey pink gold teal plum rust sand jade lime mint"
).split()
_QUESTION = "What colour was it?"
_MOST = len(_PLACES) * len(_ANIMALS) * len(_COLOURS)


def toy_examples(count: int, rng: random.Random) -> list[Example]:
    """Return examples with documents that differ from each other.

    Raises:
        InputError: More are asked for than there are.
    """
    if not 0 < count <= _MOST:
        raise InputError(f"The toy world has 1 to {_MOST:,} documents, not {count}.")
    return [_example(number) for number in rng.sample(range(_MOST), count)]


def toy_base(config: Pretraining) -> Base:
    """Train the model that the toy's providers deploy."""
    phrases = [
        _QUESTION, " Not found", " It was", " all the year round.",
        *(f"In {place} there lived a" for place in _PLACES),
        *(f" {animal}." for animal in _ANIMALS),
        *(f" {colour}" for colour in _COLOURS),
    ]  # fmt: skip
    return pretrain(
        lambda rng: _example(rng.randrange(_MOST)), piece_tokenizer(phrases), config, "toy"
    )


def _example(number: int) -> Example:
    rest, colour = divmod(number, len(_COLOURS))
    place, animal = divmod(rest, len(_ANIMALS))
    named = _COLOURS[colour]
    text = (
        f"In {_PLACES[place]} there lived a {_ANIMALS[animal]}. It was {named} all the year round."
    )
    return Example(f"toy-{number}", text, _QUESTION, f"FINAL: {named}")
