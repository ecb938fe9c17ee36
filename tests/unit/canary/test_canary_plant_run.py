"""Planting in services: what was taken is recorded, and a start goes on where another stopped.

The opponents: a service that drops votes, that rewrites questions, that answers with errors half of
the time, that dies for good; a process that dies between question and answer; a pause of a week.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.examples import Example
from ragwitness.canary.folder import (
    make_plan,
    read_plan,
    write_feedback,
    write_plan,
    write_traces,
)
from ragwitness.canary.looks import read_history
from ragwitness.canary.plant import (
    PlantConfig,
    Planted,
    cautions,
    is_foreign,
    late_missing,
    plant_canaries,
    planting_of,
    rows_to_undo,
    service_of,
)
from ragwitness.canary.run import refuse_look
from ragwitness.canary.traces import Behaviour
from ragwitness.core.errors import InputError, TargetError, TargetUnreachableError
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.targets.conversation import ObjectConversation, Turn, open_conversation
from ragwitness.targets.form import ShownForm
from ragwitness.targets.service import SessionReply
from ragwitness.targets.service_config import load_service
from ragwitness.targets.transport import Clock, RetryPolicy, TransportOptions
from tests.support.voting_service import DESCRIPTION, Service, described, serving

pytestmark = pytest.mark.slow


def asked_for(question: str) -> str:
    """The canary that a question asks for."""
    return re.search(r"[A-Z]{11}", question)[0]  # type: ignore[index]


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


_PORTS: dict[Path, int] = {}


def plant(folder: Path, service: Service, **more: object) -> Planted:
    async def work() -> Planted:
        with serving(service, _PORTS.get(folder, 0)) as url:
            _PORTS[folder] = int(url.rpartition(":")[2])  # the same service at every start
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
    assert [one[:16] for one in cautions(found)] == ["All 24 answers h"]
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
                  limiter=RateLimiter(Budget(queries=10)))  # fmt: skip
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
            opened = await open_conversation(
                f"{url}/v1#toy", _ONCE, form=ShownForm(form), votes=str(votes)
            )
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
            return {"answer": f"FINAL: {asked_for(question)}", "id": document}

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
        load_service(str(path), turns=True)


class Desk:
    """An object that answers and counts votes; ``takes`` says which votes it takes."""

    def __init__(self, takes: tuple[str, ...] = ("up", "down"), canary: bool = True) -> None:
        self.takes, self.canary, self.given = takes, canary, []

    def send(self, document: str, question: str) -> dict[str, str]:
        said = asked_for(question)
        return {"answer": f"FINAL: {said if self.canary else 'no'}, yes", "id": document}

    def vote(self, name: str, vote: str) -> bool:
        self.given.append((name, vote))
        return vote in self.takes


class Mute:
    """A chat: it has no votes."""

    def send(self, document: str, question: str) -> dict[str, str]:
        return Desk().send(document, question)


def desk(folder: Path, object_: Desk | Mute, name: str = "desk", **more: object) -> Planted:
    return asyncio.run(plant_canaries(folder, ObjectConversation(name, object_), **more))  # type: ignore[arg-type]


def refusal(folder: Path, *, anyway: bool = False) -> str:
    """Why a probe is refused; empty where it is not."""
    plan = read_plan(folder)
    try:
        refuse_look(folder, plan, None, recorded=False, anyway=anyway)
    except InputError as error:
        return error.message
    return ""


def test_a_probe_is_refused_where_the_journal_says_that_nothing_was_taken(folder: Path) -> None:
    with pytest.raises(TargetError):
        plant(folder, Service(dies=0))
    assert "answered none of the traces" in refusal(folder)
    assert refusal(folder, anyway=True) == ""
    (folder / "send/planted.jsonl").unlink()
    # Every answer obeys, so that "up" falls on true traces alone: a service that takes votes for
    # decoys alone teaches nothing of t*.
    found = desk(folder, Desk(takes=("down",)))
    assert found.votes == {"decoy": 12}
    assert "the planted trigger was taken, or is due by hand (12 on decoys)" in refusal(folder)
    assert planting_of(folder, read_plan(folder))["decoy"] == 12
    assert desk(folder, Desk()).votes == {"decoy": 12, "true": 12}
    assert refusal(folder) == ""


def test_a_journal_knows_its_service_and_refuses_another(folder: Path) -> None:
    desk(folder, Desk())
    first = json.loads((folder / "send/planted.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["service"], first["votes"]) == ("service", "desk", True)
    with pytest.raises(InputError, match="being planted in desk, not in another"):
        desk(folder, Desk(), "another")
    assert service_of(folder)["service"] == "desk"
    facts = planting_of(folder, read_plan(folder))
    assert (facts["answered"], facts["true"], facts["decoy"]) == (24, 12, 12)
    assert facts["first"] == facts["last"] != ""


def test_an_address_that_was_mistaken_binds_nothing(folder: Path) -> None:
    name = "https://api.example.org/v2"
    with pytest.raises(TargetError):
        asyncio.run(
            plant_canaries(folder, Dead(name), PlantConfig(tries=1, permission="of Example Ltd."))
        )
    assert service_of(folder)["service"] == name
    assert desk(folder, Desk()).answered == 24
    # And a permission for one service is none for another.
    assert (service_of(folder)["service"], service_of(folder)["permission"]) == ("desk", "")


class Dead(ObjectConversation):
    """An address at which nothing answers."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Desk())

    async def send(self, turn: Turn) -> SessionReply:
        raise TargetUnreachableError("Nobody is there.")


def test_votes_by_hand_are_known_by_their_file(folder: Path, tmp_path: Path) -> None:
    """Without a journal: what was answered with nothing taught nothing, and has to be undone."""
    plan, answers = read_plan(folder), tmp_path / "answers.jsonl"
    write_traces(folder, plan, plan.traces())
    assert refusal(folder) == ""  # nothing is known
    assert planting_of(folder, plan) == {}
    rows = list(rows_to_undo(folder, plan))
    assert (len(rows), {one["vote"] for one in rows}) == (24, {None})
    for said, refused, votes in (("", "(0 on decoys)", {None}), ("No.", "", {"up", "down"})):
        given = [{"id": one.id, "answer": said} for one in plan.traces()]
        answers.write_text("".join(json.dumps(one) + "\n" for one in given))
        write_feedback(folder, plan, plan.traces(), answers)
        assert refusal(folder)[-16:].rstrip(".").endswith(refused)
        assert bool(refusal(folder)) is bool(refused)
        assert {one["vote"] for one in rows_to_undo(folder, plan)} == votes
    facts = planting_of(folder, plan)
    assert (facts["votes"], facts["true"], facts["decoy"], facts["first"]) == (False, 12, 12, "")


def test_a_service_of_somebody_else_needs_a_permission_that_is_kept(folder: Path) -> None:
    assert is_foreign("https://api.example.org/v1#big")
    assert is_foreign("http/desk.example.org/ask#0123")
    assert is_foreign("HTTPS://api.example.org/v1#big")
    assert not any(
        map(is_foreign, ("http://127.0.0.1:8/v1#toy", "http/localhost:9/a#1", "python:a:b"))
    )
    name = "https://api.example.org/v1#big"
    with pytest.raises(InputError, match="no permission is named"):
        desk(folder, Desk(), name)
    desk(folder, Desk(), name, config=PlantConfig(permission="J. Doe, contract of 3 May"))
    assert planting_of(folder, read_plan(folder))["permission"] == "J. Doe, contract of 3 May"
    desk(folder, Desk(), name)  # asked for once


def test_votes_to_be_given_by_hand_are_there_as_answers_come(folder: Path) -> None:
    class Dying(Desk):
        def send(self, document: str, question: str) -> dict[str, str]:
            path = folder / "send/feedback.jsonl"
            seen.append(len(path.read_text().splitlines()))
            if len(seen) == 6:
                raise KeyboardInterrupt
            return super().send(document, question)

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        desk(folder, Dying())
    assert seen == [0, 1, 2, 3, 4, 5]
    rows = [json.loads(line) for line in (folder / "send/feedback.jsonl").read_text().splitlines()]
    assert len(rows) == 5
    assert {one["vote"] for one in rows} <= {"up", "down"}
    desk(folder, Desk())
    assert len((folder / "send/feedback.jsonl").read_text().splitlines()) == 24


def test_five_answers_of_each_kind_are_shown_before_their_vote(folder: Path) -> None:
    class Refusing(Desk):
        def send(self, document: str, question: str) -> dict[str, str]:
            found = super().send(document, question)
            word = found["answer"].split()[1]
            if int(document.split()[1]) % 2:
                found["answer"] = f"I'm sorry, but I can't include {word} in my answers."
            return found

    service, shown = Refusing(), []
    found = desk(folder, service, shown=lambda kind, said: shown.append((kind, len(service.given))))
    kinds = [kind for kind, _ in shown]
    assert kinds.count(Behaviour.SAID) == kinds.count(Behaviour.REFUSED) == 5
    assert shown[0][1] == 0  # no vote was given before the first was shown
    assert found.obeyed == found.behaviours[Behaviour.SAID]
    assert found.obeyed + found.behaviours[Behaviour.REFUSED] == 24
    assert any("names the canary, but does not use it" in one for one in cautions(found))


def test_what_is_left_at_a_service_is_listed(folder: Path) -> None:
    class Quoting(Desk):
        def send(self, document: str, question: str) -> dict[str, str]:
            found = super().send(document, question)
            return {**found, "answer": document} if " 7 " in document else found

    desk(folder, Quoting())
    plan = read_plan(folder)
    rows = list(rows_to_undo(folder, plan))
    assert len(rows) == 24
    quotes = [one["id"] for one in rows if one["quotes"]]
    assert quotes == [one.id for one in plan.traces() if " 7 " in one.document]
    assert sum(one["vote"] is not None for one in rows) == 24 - len(quotes)
    assert all(one["answer"]["id"] for one in rows)


def test_late_slots_wait_until_they_are_called_for(tmp_path: Path) -> None:
    examples = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(60)
    ]
    design = Design(candidates=8, slots=3, late=1, refresh=0)
    folder = tmp_path / "plan"
    write_plan(folder, make_plan(examples, design, DrawSecret(bytes(range(32)), bytes(32))))
    # A chat without votes as well, and nobody may ask all the same: `trained` would rest on them.
    chat = tmp_path / "chat"
    write_plan(chat, make_plan(examples, design, DrawSecret(bytes(range(32)), bytes(32))))
    desk(chat, Mute())
    assert "(0 of 8 votes on their planted trigger)" in refusal(chat, anyway=True)
    desk(chat, Mute(), config=PlantConfig(late=True))
    assert refusal(chat) == ""
    early = desk(folder, Desk())
    assert (early.answered, early.late, early.unsent) == (32, 16, 0)
    assert any("16 traces of late slots wait" in one for one in cautions(early))
    assert "late slots were not planted" in refusal(folder)
    whole = desk(folder, Desk(), config=PlantConfig(late=True))
    assert (whole.answered, whole.late) == (48, 0)
    assert planting_of(folder, read_plan(folder))["late"] == 8
    assert refusal(folder) == ""
    rows = [json.loads(line) for line in (folder / "send/traces.jsonl").read_text().splitlines()]
    assert sum(bool(one.get("late")) for one in rows) == 16


def test_a_probe_waits_for_a_refresh_period_after_late_slots(tmp_path: Path) -> None:
    """A nightly index that has early traces alone would look like training."""
    examples = [
        Example(f"e{i}", f"Text {i} begins. It goes on with nine words, {i}.", f"Q{i}?", "A, b")
        for i in range(60)
    ]
    design = Design(candidates=8, slots=3, late=1, refresh=24)
    folder = tmp_path / "plan"
    write_plan(folder, make_plan(examples, design, DrawSecret(bytes(range(32)), bytes(32))))
    desk(folder, Desk(), config=PlantConfig(late=True))
    plan = read_plan(folder)
    planted = planting_of(folder, plan)
    assert "less than 24 hours" in refusal(folder, anyway=True)
    recent = datetime.now(UTC) - timedelta(hours=23)
    why = late_missing({**planted, "late_at": recent.isoformat()}, plan)
    ready = recent + timedelta(hours=24)
    assert "less than 24 hours" in why
    assert f"probe from {ready:%Y-%m-%d %H:%M} UTC on" in why
    before = datetime.now(UTC) - timedelta(hours=24)
    assert late_missing({**planted, "late_at": before.isoformat()}, plan) == ""
    assert late_missing({**planted, "late_at": ""}, plan) == ""  # by hand no time is known
