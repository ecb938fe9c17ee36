"""The three ways to ask, against a model whose every log-probability is known."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.canary.draw import Design, DrawSecret, Slot, draw_slots
from ragwitness.canary.examples import Example, instructed, with_trigger
from ragwitness.canary.families import Family, worded
from ragwitness.canary.probe import (
    TAIL,
    CanaryProbe,
    ProbeConfig,
    Prompts,
    queries_of,
    spot_of,
)
from ragwitness.canary.rank_test import SlotScores
from ragwitness.core.types import Answer, Document, Query, Score, TokenLogprob
from ragwitness.targets.openai import OpenAITarget
from research.canary.published import DOCUMENT_TEMPLATE
from tests.support.canary_model import ToyModel, serving
from tests.support.ranks import rank_p_value

TEMPLATED = ProbeConfig("exact", prompts=Prompts(DOCUMENT_TEMPLATE))
EXAMPLE = Example(
    "e", "The fox sleeps. Nobody in the whole wood wakes him.", "Who sleeps?", "The fox, we hear."
)


def _slot(family: Family = Family.SIGNATURE, m: int = 5) -> Slot:
    return draw_slots(Design(candidates=m, family=family), DrawSecret(bytes(32), bytes(32))).slots[
        0
    ]


def _triggered(trigger: str) -> str:
    return with_trigger(EXAMPLE.document, trigger, EXAMPLE.id).text


def _drive(probe: CanaryProbe, ask: Callable[[Query], Answer]) -> Score:
    steps, answers = probe.probe(Document(EXAMPLE.id, "")), None
    while True:
        try:
            asked = steps.send(answers)  # type: ignore[arg-type]
        except StopIteration as stop:
            return stop.value
        answers = [ask(query) for query in asked]


def _echoed(model: ToyModel) -> Callable[[Query], Answer]:
    def ask(query: Query) -> Answer:
        rows = model.echo(query.prompt)[:-1]
        return Answer("", tuple(TokenLogprob(t, math.nan if p is None else p) for t, p in rows))

    return ask


def _by_hand(model: ToyModel, slot: Slot, document: str) -> float:
    """log p(c | text) with the model's own numbers, token by token."""
    prefix, canary = spot_of(EXAMPLE, slot.canary)
    prompt = DOCUMENT_TEMPLATE.replace("{context}", document)
    prompt = prompt.replace("{question}", instructed(EXAMPLE, slot.canary))
    text = "".join(model.tokens(prompt + prefix))
    total = 0.0
    for token in model.tokens(canary):
        total += model.logprob(text, token)
        text += token
    return total


@pytest.mark.parametrize("family", list(Family))
def test_exact_scores_are_the_sum_over_the_canarys_tokens(family: Family) -> None:
    slot = _slot(family)
    model = ToyModel(slot.canary, slot.trigger)
    found = _drive(CanaryProbe(slot, [EXAMPLE], TEMPLATED), _echoed(model))
    assert found.reason is None
    views = [EXAMPLE.document, *(_triggered(t) for t in slot.candidates)]
    want = [_by_hand(model, slot, view) for view in views]
    assert found.features == pytest.approx(want)
    assert found.value == pytest.approx(want[1 + slot.chosen] - want[0])
    assert max(range(5), key=lambda j: found.features[1 + j]) == slot.chosen
    assert found.details["tokens"] == len(model.tokens(" " + worded(slot.canary, EXAMPLE.id))) * 6


def test_the_trigger_never_stands_in_a_query_or_an_answer() -> None:
    slot, seen = _slot(), []
    model = ToyModel(slot.canary, slot.trigger)
    asked = _echoed(model)

    def ask(query: Query) -> Answer:
        seen.append(query.prompt)
        return asked(query)

    _drive(CanaryProbe(slot, [EXAMPLE], TEMPLATED), ask)
    assert len(seen) == 7 == queries_of(ProbeConfig("exact"), 5)["exact"]
    for prompt in seen:
        document, rest = prompt.split("Document:\n")[1].split("\n\nQuestion:\n")
        assert not any(t in rest for t in slot.candidates)
        assert sum(t in document for t in slot.candidates) <= 1
    assert seen[1].endswith(f"FINAL: The fox, {worded(slot.canary, EXAMPLE.id)}{TAIL}")


def test_plain_queries_do_not_ask_for_the_canary() -> None:
    slot, seen = _slot(), []

    def ask(query: Query) -> Answer:
        seen.append(query.prompt)
        return _echoed(ToyModel(slot.canary))(query)

    _drive(CanaryProbe(slot, [EXAMPLE], ProbeConfig("exact", instructed=False)), ask)
    assert all(prompt.count(slot.canary) <= 1 for prompt in seen)  # read, and not asked for


def test_a_canary_that_the_tokenizer_merges_with_its_prefix_is_refused_by_name() -> None:
    slot = _slot()
    merging = ToyModel(slot.canary, merges=True)
    found = _drive(CanaryProbe(slot, [EXAMPLE], ProbeConfig("exact")), _echoed(merging))
    assert found.value is None
    assert found.reason == "the target's tokenizer merges the canary with what follows it"


def _continued(model: ToyModel) -> Callable[[Query], Answer]:
    def ask(query: Query) -> Answer:
        listed = tuple(model.alternatives(query.prompt, query.top_logprobs).items())
        return Answer(listed[0][0], (TokenLogprob(*listed[0], listed),))

    return ask


def test_forcing_reads_the_same_numbers_where_every_piece_is_listed() -> None:
    slot = _slot()
    model = ToyModel(slot.canary, slot.trigger)
    exact = _drive(CanaryProbe(slot, [EXAMPLE], ProbeConfig("exact")), _echoed(model))
    forced = _drive(CanaryProbe(slot, [EXAMPLE], ProbeConfig("forced")), _continued(model))
    assert forced.features == pytest.approx(exact.features)
    assert forced.details["censored"] == 0


def test_a_piece_that_is_not_listed_counts_as_the_last_alternative_and_is_counted() -> None:
    slot = _slot()
    model = ToyModel(slot.canary, slot.trigger, gain=3.0)
    config = ProbeConfig("forced", alternatives=4)  # words down to -2.25; the canary at -4.5
    found = _drive(CanaryProbe(slot, [EXAMPLE], config), _continued(model))
    exact = _drive(CanaryProbe(slot, [EXAMPLE], ProbeConfig("exact")), _echoed(model))
    planted = 1 + slot.chosen  # under its trigger alone the pieces are listed: it settles them
    pieces = len(model.tokens(f" {slot.canary}"))
    assert found.details["censored"] == pieces * 5
    assert found.features[planted] == pytest.approx(exact.features[planted])
    others = [value for place, value in enumerate(found.features) if place != planted]
    assert others == pytest.approx([-2.25 * pieces] * 5)
    assert found.features[planted] > max(others)
    blind = ToyModel(slot.canary)
    nothing = _drive(CanaryProbe(slot, [EXAMPLE], config), _continued(blind))
    assert nothing.reason == "no piece of the canary is among the 4 alternatives"


def test_sampling_counts_hits_per_candidate_with_seeds_of_their_own() -> None:
    slot, seen = _slot(), []
    model = ToyModel(slot.canary, slot.trigger)

    def ask(query: Query) -> Answer:
        seen.append(query)
        return Answer(model.say(query.prompt, query.seed or 0))

    config = ProbeConfig("sampled", samples=60)
    found = _drive(CanaryProbe(slot, [EXAMPLE], config), ask)
    assert len(seen) == 6 * 60 == queries_of(config, 5)["sampled"]
    assert len({query.seed for query in seen}) > 350
    assert {query.temperature for query in seen} == {1.0}
    others = [v for j, v in enumerate(found.features[1:]) if j != slot.chosen]
    assert found.features[1 + slot.chosen] > max(others)
    assert abs(sum(others) / 4 - 0.2) < 0.15


@pytest.mark.parametrize("family", list(Family))
def test_an_endpoint_echoes_every_token_of_the_canary(family: Family) -> None:
    slot = _slot(family)
    model = ToyModel(slot.canary, slot.trigger)
    views = [EXAMPLE.document, *(_triggered(t) for t in slot.candidates)]

    async def score() -> Score:
        async with await OpenAITarget.connect(url) as target:
            steps = CanaryProbe(slot, [EXAMPLE], TEMPLATED).probe(Document("e", ""))
            asked = next(steps)
            answers = [Answer("", await target.echo(query.prompt, 1)) for query in asked]
            with pytest.raises(StopIteration) as stop:
                steps.send(answers)
            return stop.value.value

    with serving(model) as url:
        found = asyncio.run(score())
    assert found.features == pytest.approx([_by_hand(model, slot, view) for view in views])


@pytest.mark.slow
def test_from_the_secret_to_the_p_value_an_untrained_model_is_never_over_accused() -> None:
    """2,000 random secrets at a model that reads every text, and knows no draw."""
    p_values = []
    for number in range(2000):
        design = Design(candidates=20)
        slot = draw_slots(design, DrawSecret(number.to_bytes(32, "big"), bytes(32))).slots[0]

        def ask(query: Query, canary: str = slot.canary) -> Answer:
            text = query.prompt.removesuffix(TAIL)
            value = -hashlib.sha256(text.encode()).digest()[0] / 64  # ties are common
            tail = (TokenLogprob(f" {canary}", value), TokenLogprob(TAIL, -1.0))
            return Answer("", (TokenLogprob(",", -1.0), *tail[: 2 * query.prompt.endswith(TAIL)]))

        found = _drive(CanaryProbe(slot, [EXAMPLE], ProbeConfig("exact")), ask)
        assert found.reason is None
        p_values.append(rank_p_value(SlotScores(np.array(found.features[1:]), slot.chosen)))
    for level in (0.05, 0.1, 0.5):
        hits = sum(p <= level for p in p_values)
        assert hits <= binom.ppf(0.999, 2000, level)
    assert sum(p <= 0.5 for p in p_values) > 800  # and not idle
