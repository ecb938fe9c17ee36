"""What models call the keys and values that they keep, by release of transformers."""

from __future__ import annotations

from ragwitness.models.hf import cache_name


class _Earlier:
    def forward(self, input_ids, past_key_values=None): ...


class _Now:
    def forward(self, input_ids, cache=None): ...


class _Adapted:
    """As PEFT wraps a model: whatever it is given it hands on."""

    def __init__(self, base):
        self.base = base

    def forward(self, *args, **kwargs): ...

    def get_base_model(self):
        return self.base


def test_the_cache_has_the_name_that_the_model_gives_it():
    assert cache_name(_Earlier()) == "past_key_values"
    assert cache_name(_Now()) == "cache"


def test_adapters_change_nothing_of_the_name():
    assert cache_name(_Adapted(_Earlier())) == "past_key_values"
    assert cache_name(_Adapted(_Now())) == "cache"
