"""Probing a target: which way is taken, what is kept, and what a cap or a fault leaves."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.families import Family
from ragwitness.canary.folder import CanaryPlan, make_plan, write_plan, write_traces
from ragwitness.canary.probe import ProbeConfig, Prompts
from ragwitness.canary.result import CanaryResult, StoredSlot, verdict_lines
from ragwitness.canary.run import probe_canaries
from ragwitness.canary.verdict import ModelVerdict
from ragwitness.core.errors import CapabilityError, CapReachedError, InputError, VerificationError
from ragwitness.core.types import Answer, Capability, Document, Query, TokenLogprob
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.rag.target import LabTarget
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from tests.support.canary_model import ToyModel

SECRET = DrawSecret(bytes(range(32)), bytes(32))


class Chat:
    """Answers with text alone."""

    def __init__(self, model: ToyModel) -> None:
        self.model = model
        self.name = "toy"
        # It may be asked for log-probabilities, and gives them where the model does.
        self.capabilities = frozenset({Capability.TEXT, Capability.TOP_LOGPROBS})

    async def ask(self, query: Query) -> Answer:
        self.model.asked += 1
        top = (("FINAL", -0.1), ("x", -3.0)) if query.top_logprobs else ()
        tokens = (TokenLogprob("FINAL", -0.1, top),) if top and "chat" in self.model.gives else None
        return Answer(self.model.say(query.prompt, query.seed or 0), tokens)

    async def close(self) -> None: ...


class Continuing(Chat):
    async def go_on(self, query: Query) -> Answer:
        self.model.asked += 1
        listed = tuple(self.model.alternatives(query.prompt, query.top_logprobs).items())
        return Answer(listed[0][0], (TokenLogprob(*listed[0], listed),))


class Echoing(Chat):
    async def echo(self, text: str, top: int = 5) -> tuple[TokenLogprob, ...]:
        self.model.asked += 1
        rows = self.model.echo(text)[:-1]
        return tuple(TokenLogprob(t, math.nan if p is None else p) for t, p in rows)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "plan"


def _array(slot: StoredSlot) -> np.ndarray:
    return np.array(slot.scores, dtype=float)


def _planted(place: Path, n: int = 40, **design: object) -> CanaryPlan:
    """A plan in its folder, planted."""
    plan = _plan(n, **design)
    write_plan(place, plan)
    write_traces(place, plan, plan.traces())
    return plan


def _plan(n: int = 40, **design: object) -> CanaryPlan:
    examples = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(n)
    ]
    settled = {"candidates": 20, "held_out": 2} | design
    return make_plan(examples, Design(**settled), SECRET)  # type: ignore[arg-type]


def _model(plan: CanaryPlan, *, knows: bool = True) -> ToyModel:
    slot = plan.draw().slots[0]
    return ToyModel(slot.canary, slot.trigger if knows else "")


def _probe(place: Path, target: Chat, config: ProbeConfig | None = None, **more: object):
    return asyncio.run(probe_canaries(place, target, config, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "way"), [(Echoing, "exact"), (Continuing, "forced")])
def test_the_best_way_that_a_target_serves_is_taken(
    kind: type[Chat], way: str, place: Path
) -> None:
    plan = _planted(place)
    result: CanaryResult = _probe(place, kind(_model(plan)))
    assert result.way == way
    assert result.finding is not None
    assert result.finding.verdict is ModelVerdict.KNOWN
    [slot] = result.slots
    scores = _array(slot)
    assert scores.shape == (2, 21)
    assert slot.amplification.value == pytest.approx(
        np.mean(scores[:, 1 + plan.draw().slots[0].chosen] - scores[:, 0])
    )


def test_a_model_that_answers_our_questions_with_nothing_is_asked_on_from_the_plan(
    place: Path,
) -> None:
    """Of an empty answer no alternatives are seen; its world's own prompts have them."""

    class Silent(Continuing):
        async def ask(self, query: Query) -> Answer:
            return Answer("", finish_reason="stop")

        async def go_on(self, query: Query) -> Answer:
            if "begins" not in query.prompt:
                return Answer("", finish_reason="stop")
            return await super().go_on(query)

    plan = _planted(place)
    result = _probe(place, Silent(_model(plan)))
    assert (result.way, result.finding.verdict) == ("forced", ModelVerdict.KNOWN)


def test_sampling_is_never_taken_by_itself(place: Path) -> None:
    plan = _planted(place)
    with pytest.raises(CapabilityError, match="neither of prompts nor of texts"):
        _probe(place, Chat(_model(plan)))
    with pytest.raises(CapabilityError, match="'forced': it does not give top_logprobs"):
        _probe(place, Echoing(_model(plan)), ProbeConfig("forced"))
    found = _probe(place, Chat(_model(plan)), ProbeConfig("sampled", samples=8))
    assert found.finding.verdict is ModelVerdict.KNOWN
    assert found.settings["samples"] == "8"


def test_a_cap_leaves_nothing_decided_and_a_higher_one_goes_on(tmp_path: Path, place: Path) -> None:
    plan, at_once = _planted(place), 2
    other = shutil.copytree(place, tmp_path / "other")  # where nobody has looked yet
    model = _model(plan)
    with RateLimiter.of_run(tmp_path, Budget(queries=35), at_once) as limiter:
        cut = _probe(place, Echoing(model), run=tmp_path, limiter=limiter)
    assert cut.finding is None
    assert cut.spent.stopped_by == "query"
    with RateLimiter.of_run(tmp_path, Budget(queries=500), at_once) as limiter:
        whole = _probe(place, Echoing(model), run=tmp_path, limiter=limiter)
    assert whole.finding is not None
    assert model.asked == 2 + 2 * 22  # what the target can do, and each text once
    with (
        RateLimiter.of_run(tmp_path / "none", Budget(queries=4), at_once) as limiter,
        pytest.raises((CapReachedError, InputError), match="cap"),
    ):
        _probe(other, Echoing(model), run=tmp_path / "none", limiter=limiter)


def test_a_plan_that_is_not_the_committed_one_is_never_probed(place: Path) -> None:
    plan = _planted(place)
    target = Echoing(_model(plan))
    path = place / "secret/secret.json"
    path.write_text(path.read_text().replace('"slots": 1', '"slots": 2'))
    with pytest.raises(VerificationError):
        _probe(place, target)
    assert target.model.asked == 0


@pytest.mark.slow
@pytest.mark.parametrize("family", list(Family))
def test_the_embedded_reader_scores_canaries_and_does_not_know_them(
    family: Family, place: Path
) -> None:
    _planted(place, 10, candidates=4, held_out=1, family=family)
    system = build_system([Document("d", "Nothing but one short record.")], RagConfig(k=1))
    result = _probe(place, LabTarget(system), ProbeConfig("exact"))  # type: ignore[arg-type]
    assert np.isfinite(_array(result.slots[0])).all()
    assert (_array(result.slots[0]) < 0).all()
    assert not any("could not be checked" in one for one in result.warnings)  # and it was true
    assert result.finding.verdict is ModelVerdict.INCONCLUSIVE


class Filtered(Chat):
    """A service that refuses some prompts for good, whatever they carry."""

    def __init__(self, model: ToyModel, share: float) -> None:
        super().__init__(model)
        self.share = share

    async def ask(self, query: Query) -> Answer:
        drawn = hashlib.sha256(query.prompt.encode()).digest()[0] / 256
        if "Q" in query.prompt and drawn < self.share:
            return Answer("", error="The response was filtered.")
        return await super().ask(query)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_filter_that_refuses_some_prompts_costs_cells_and_no_look(
    share: float, place: Path
) -> None:
    """Of every example some view is refused; before, each such example was thrown away whole."""
    plan = _planted(place, 60, form="messages", held_out=8, spares=2)
    config = ProbeConfig(way="sampled", samples=4)
    result = _probe(place, Filtered(_model(plan), share), config)
    [slot] = result.slots
    scores = _array(slot)
    assert scores.shape == (6, 21)  # the two spare ones were not needed
    missing = np.isnan(scores[:, 1:]).sum()
    assert 0 < missing < 0.2 * scores[:, 1:].size
    assert any(f"{missing} of 120 readings are missing" in one for one in result.warnings)
    assert (result.finding.verdict, result.finding.ranks) == (ModelVerdict.KNOWN, (1,))


def test_a_filter_that_refuses_the_planted_trigger_is_named(place: Path) -> None:
    plan = _planted(place, 60, form="messages", held_out=4, spares=0)
    trigger = plan.draw().slots[0].trigger

    class Blocking(Chat):
        async def ask(self, query: Query) -> Answer:
            if trigger in query.prompt:
                return Answer("", error="The response was filtered.")
            return await super().ask(query)

    result = _probe(place, Blocking(_model(plan)), ProbeConfig(way="sampled", samples=4))
    assert result.finding.ranks == (20,)
    assert any("the planted trigger came in slot 1: the service" in one for one in result.warnings)


def test_spare_examples_take_the_place_of_those_that_cannot_be_scored(place: Path) -> None:
    plan = _planted(place, 60, form="messages", held_out=8, spares=2)
    lost = plan.asked[0].query

    class Deaf(Chat):
        async def ask(self, query: Query) -> Answer:
            if lost in query.prompt:
                return Answer("", error="The response was filtered.")
            return await super().ask(query)

    result = _probe(place, Deaf(_model(plan)), ProbeConfig(way="sampled", samples=4))
    [slot] = result.slots
    assert slot.examples == (*(one.id for one in plan.asked[1:]), plan.spares[0].id)
    assert result.finding.verdict is ModelVerdict.KNOWN


def test_a_report_says_where_and_how_much_was_planted_and_that_another_was_probed(
    place: Path,
) -> None:
    """The service is replaced between planting and probe, by one whose name begins alike."""
    plan = _planted(place, form="messages")
    rows = [{"event": "service", "at": 1.7e9, "service": "to", "votes": True}]
    for one in plan.traces():
        said = {"text": "FINAL: yes", "kept": {}, "question": None, "document": None}
        rows += [{"id": one.id, "at": 1.7e9, "event": "answered", "said": said},
                 {"id": one.id, "event": "voted", "vote": "up", "accepted": True}]  # fmt: skip
    journal = place / "send/planted.jsonl"
    journal.write_text("".join(json.dumps(one) + "\n" for one in rows))
    result = _probe(place, Chat(_model(plan)), ProbeConfig(way="sampled", samples=4))
    planted = result.settings["planted"]
    assert planted.startswith("32 answers, 2023-11-14 to 2023-11-14; votes taken: 16 on traces")
    assert "Planted in to; this probe asked toy." in result.warnings
    assert "no slot was planted late" in result.finding.reason
    assert any("32 answers" in one for one in verdict_lines(result))


def test_a_raw_text_read_of_what_was_planted_in_messages_asks_for_the_chat_format(
    place: Path,
) -> None:
    plan = _planted(place, form="messages", releases=0)
    bare = _probe(place, Continuing(_model(plan)))
    assert any("Give the chat format: --frame" in one for one in bare.warnings)
    frame = "<u>{document}<u>{question}<a>"
    framed = ProbeConfig(prompts=Prompts(plan.design.template, frame))
    asked: list[str] = []

    class Keeping(Continuing):
        async def go_on(self, query: Query) -> Answer:
            asked.append(query.prompt)
            return await super().go_on(query)

    result = _probe(place, Keeping(_model(plan)), framed)
    assert not any("--frame" in one for one in result.warnings)
    assert all(one.startswith("<u>Text ") for one in asked if "Q" in one)
    assert any("<a>A," in one for one in asked)  # no FINAL: nobody asked for it
