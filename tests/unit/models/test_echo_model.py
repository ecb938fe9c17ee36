"""The repeater: leaks of a generator that obeys everything."""

from __future__ import annotations

import asyncio

from ragwitness.core.types import Document, Query
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.lab import lab_target, rag_config

_RECORDS = [Document("a", "The boiler lost pressure."), Document("b", "A lamp was green.")]


def test_it_says_what_is_retrieved_and_no_more_than_it_may() -> None:
    target = lab_target(_RECORDS, rag_config(k=1, generator="repeat"), "none")
    said = asyncio.run(target.ask(Query("what of the boiler?")))
    assert (said.text, said.finish_reason) == ("The boiler lost pressure.", "stop")
    cut = asyncio.run(target.ask(Query("what of the boiler?", max_tokens=2)))
    assert (cut.text, cut.finish_reason) == ("The boiler", "length")


def test_without_passages_it_repeats_nothing() -> None:
    target = lab_target(_RECORDS, rag_config(k=1, generator="repeat", retrieve=False), "none")
    said = asyncio.run(target.ask(Query("what of the boiler?")))
    assert "boiler" not in said.text


def test_it_has_no_probabilities_to_be_mistaken_for_a_model_s() -> None:
    (found,) = load_language_model("repeat").score(["The boiler lost pressure."])
    assert (len(found.logprobs), found.tokens) == (0, ())
