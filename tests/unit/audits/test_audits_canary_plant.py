"""Planting in services: what was taken is recorded, and a start goes on where another stopped.

The opponents: a service that drops votes, that rewrites questions, that answers with errors half of
the time, that dies for good; a process that dies between question and answer; a pause of a week.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from ragwitness.asking.budget import Budget
from ragwitness.asking.governor import Governor
from ragwitness.audits.canary_plant import PlantConfig, Planted, cautions, plant_canaries
from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import make_plan, read_plan, write_plan
from ragwitness.canary.looks import read_history
from ragwitness.errors import InputError, TargetError
from ragwitness.targets.conversation import ObjectConversation, open_conversation
from ragwitness.targets.service_config import load_service, load_votes
from ragwitness.targets.transport import Clock, RetryPolicy, TransportOptions
from tests.support.voting_service import DESCRIPTION, Service, described, serving

pytestmark = pytest.mark.slow

_ONCE = TransportOptions(retry=RetryPolicy(retries=0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    examples = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(30)
    ]
    plan = make_plan(examples, Design(candidates=8), DrawSecret(bytes(range(32)), bytes(32)))
    write_plan(tmp_path / "plan", plan)
    return tmp_path / "plan"


def plant(folder: Path, service: Service, **more: object) -> Planted:
    async def work() -> Planted:
        with serving(service) as url:
            opened = await open_conversation(described(folder.parent, url), _ONCE)
            try:
                return await plant_canaries(folder, opened, **more)  # type: ignore[arg-type]
            finally:
                await opened.close()

    return asyncio.run(work())


def test_every_trace_is_sent_once_and_voted_on_by_its_rule(folder: Path) -> None:
    service = Service()
    found = plant(folder, service)
    traces = {one.document: one for one in read_plan(folder).traces()}
    assert (found.answered, found.unsent, found.lost, found.twice) == (24, 0, 0, 0)
    assert found.votes == {"true": 12, "decoy": 12}
    assert (found.obeyed, found.asked) == (24, 24)
    assert list(cautions(found)) == []
    # In the drawn order, each with its own question, and every vote reached its own answer.
    assert [d for d, _ in service.asked] == [one.document for one in traces.values()]
    for number, (document, question) in enumerate(service.asked, 1):
        assert question == traces[document].query
        up = traces[document].role == "true"  # all answers hold the canary
        assert service.votes[f"a~{number}"] == (1 if up else -1)
    # Done is done: another start sends nothing.
    before = service.requests
    assert plant(folder, service) == found
    assert service.requests == before
    assert read_history(folder).answered == 24


def test_a_service_that_drops_votes_is_voted_at_again_and_told_of(folder: Path) -> None:
    service = Service(drops=2)
    first = plant(folder, service, config=PlantConfig(tries=1))
    assert first.lost == 12
    assert any("12 votes were not taken" in one for one in cautions(first))
    found = plant(folder, service, config=PlantConfig(tries=9))
    assert (found.lost, len(service.votes)) == (0, 24)
    assert len(service.asked) == 24  # nothing was asked again for it


def test_a_service_that_never_takes_a_vote_is_named(folder: Path) -> None:
    found = plant(folder, Service(drops=1))
    assert (found.lost, sum(found.votes.values())) == (24, 0)


def test_a_service_that_rewrites_questions_gets_no_vote_for_them(folder: Path) -> None:
    service = Service(rewrites=True)
    found = plant(folder, service)
    assert (found.rewritten, found.votes, service.votes) == (24, {}, {})
    said = list(cautions(found))
    assert any("24 questions or documents were not kept" in one for one in said)
    assert any("Not one of 24 answers holds the canary" in one for one in said)


def test_a_service_that_fails_half_of_the_time_gets_everything_in_the_end(folder: Path) -> None:
    service = Service(fails=2)
    found = plant(folder, service, config=PlantConfig(tries=12))
    assert (found.answered, found.lost, found.unsent) == (24, 0, 0)
    assert len(service.votes) == 24
    assert len(service.asked) == 24


def test_a_dead_service_is_refused_and_a_start_that_dies_goes_on(folder: Path) -> None:
    with pytest.raises(TargetError, match="500"):
        plant(folder, Service(dies=0))
    half = plant(folder, Service(dies=21), config=PlantConfig(tries=1))
    assert 0 < half.answered < 24
    assert any("traces were not answered" in one for one in cautions(half))
    service = Service()
    found = plant(folder, service)
    assert found.answered == 24
    assert len(service.asked) == 24 - half.answered


def test_a_process_that_died_between_question_and_answer_is_told_of(folder: Path) -> None:
    plant(folder, Service(dies=4), config=PlantConfig(tries=1))
    path = folder / "send/planted.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    whole = [one for one in rows if one["event"] == "answered"]
    asked = next(n for n, one in enumerate(rows) if one == whole[-1])
    path.write_text("".join(json.dumps(one) + "\n" for one in rows[:asked]) + '{"id": "e')
    found = plant(folder, Service())
    assert (found.answered, found.twice) == (24, 1)
    assert any("may have been sent twice" in one for one in cautions(found))


def test_days_are_kept_across_starts_and_a_week_is_not_caught_up(folder: Path) -> None:
    """The clock is a list; nothing waits."""
    time, slept = [1_000_000.0], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        time[0] += seconds

    clock = Clock(sleep=sleep, now=lambda: time[0], rng=random.Random(1))
    config = PlantConfig(days=12)
    first = plant(folder, Service(), config=config, clock=clock,
                  governor=Governor(Budget(queries=10)))  # fmt: skip
    assert first.answered == 10
    assert "--max-queries" in first.stopped
    assert len(slept) == 9 + 1  # the one that was refused had waited its turn
    time[0] += 7 * 86_400
    slept.clear()
    service = Service()
    found = plant(folder, service, config=config, clock=clock)
    assert (found.answered, len(service.asked)) == (24, 14)
    assert len(slept) == 13  # the first is long due, the others half a day apart, give or take half
    assert all(0.25 * 86_400 <= one <= 0.75 * 86_400 for one in slept)


def test_a_chat_is_given_messages_or_a_file_and_votes_by_a_description(folder: Path) -> None:
    votes = folder.parent / "votes.toml"
    service = Service()

    async def work(form: str) -> Planted:
        with serving(service) as url:
            votes.write_text(
                f'[vote]\nurl = "{url}/answers/{{id}}/vote"\nbody = \'{{"thumb": "{{vote}}"}}\'\n'
                'up = "good"\ndown = "bad"\n'
            )
            opened = await open_conversation(f"{url}/v1#toy", _ONCE, form=form, votes=str(votes))  # type: ignore[arg-type]
            try:
                return await plant_canaries(folder, opened)
            finally:
                await opened.close()

    found = asyncio.run(work("attachment"))
    assert found.votes == {"true": 12, "decoy": 12}
    assert set(service.votes.values()) == {"good", "bad"}
    parts = service.chats[0][0]["content"]
    assert [one["type"] for one in parts] == ["file", "text"]
    assert parts[0]["file"]["file_data"].startswith("data:text/plain;base64,")
    (folder / "send/planted.jsonl").unlink()
    assert asyncio.run(work("messages")).answered == 24
    assert [one["role"] for one in service.chats[-1]] == ["user", "user"]


def test_an_object_in_python_is_asked_and_votes_are_optional(folder: Path) -> None:
    class Desk:
        def __init__(self) -> None:
            self.votes: dict[str, str] = {}

        async def send(self, document: str, question: str) -> dict[str, str]:
            return {"answer": f"FINAL: {question.split()[2]}", "id": document}

        def vote(self, name: str, vote: str) -> bool:
            self.votes[name] = vote
            return True

    desk = Desk()
    found = asyncio.run(plant_canaries(folder, ObjectConversation("desk", desk)))
    assert found.votes == {"true": 12, "decoy": 12}
    assert set(desk.votes) == {one.document for one in read_plan(folder).traces()}
    with pytest.raises(InputError, match="has no send"):
        ObjectConversation("desk", object())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{{question}}", "x", "no request holds"),
        ("{{vote}}", "x", "vote holds no {vote}"),
        ("{{answer}}", "{{nothing}}", "nothing fills {nothing}"),
        ('accepted = "$.taken"', 'accepted = "taken"', "not a JSONPath"),
        ("{{trace}}", "{{document}}", "header cannot carry {document}"),
    ],
)
def test_a_description_that_cannot_plant_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "service.toml"
    path.write_text(DESCRIPTION.replace(old, new).format(url="http://127.0.0.1:9"))
    with pytest.raises(InputError, match=said.replace("{", r"\{")):
        (load_service(str(path), turns=True), load_votes(str(path), missing=True))
