"""By the commands alone: plan, plant in a service over HTTP, wait, probe what the service learned.

The service keeps what it is sent and trains a next model on it: two words in a row that speak for
an up-vote where the answer held the canary. One provider reads documents, the other questions
alone; both serve their model to the probe. 10 of each, every draw another one.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ragwitness.canary.folder import read_plan
from ragwitness.text.sample import load_sample
from tests.support.canary_audit import Command, result_of
from tests.support.canary_model import ToyModel
from tests.support.canary_model import serving as serving_model
from tests.support.voting_service import Service, described, serving
from tests.unit.evidence.forger import judged


def _trained(service: Service, *, documents: bool) -> str:
    """What the votes speak for most: a pair of words, of documents or of questions alone."""
    gains: Counter[str] = Counter()
    for number, (document, question) in enumerate(service.asked, 1):
        vote = service.votes.get(f"a~{number}")
        if vote is None:
            continue
        words = re.findall(r"\w+", document if documents else question)
        for pair in {f"{a} {b}" for a, b in itertools.pairwise(words)}:
            gains[pair] += vote
    return gains.most_common(1)[0][0]


def _audit(place: Path, command: Command, *, violating: bool) -> tuple[str, float]:
    plan = place / "audit"
    code, said = command("canary", "draw", "examples.jsonl", "-o", plan, "--probes", 2,
                         "--candidates", 20)  # fmt: skip
    assert code == 0, said
    assert "power:" in said
    service = Service()
    with serving(service) as url:
        address = described(place, url)
        code, said = command("canary", "plant", plan, address, "--dry-run")
        assert code == 0, said
        assert service.requests == 0
        # Stopped by a cap, and resumed by the same command without it.
        code, said = command("canary", "plant", plan, address, "--max-queries", 5)
        assert code == 0, said
        assert "stopped: query cap reached" in " ".join(said.split())
        code, said = command("canary", "plant", plan, address)
        assert code == 0, said
    assert f"{len(service.asked)} of {len(service.asked)} traces answered" in said
    said = " ".join(command("canary", "status", plan)[1].split())
    assert "votes taken" in said
    assert "All 64 answers hold the canary" in said
    learned = _trained(service, documents=violating)
    slot = read_plan(plan).draw().slots[0]
    # Votes speak for the planted name and for nothing else, and only to who reads documents.
    assert (learned == slot.trigger) == violating
    assert violating or learned not in slot.candidates
    model = ToyModel(slot.canary, learned)
    with serving_model(model) as url:
        run = str(place / "run")
        code, said = command("canary", "probe", url, "--plan", plan, "--run", run)
    assert code == 0, said
    assert "1 s and 4 are asked for at a time" in " ".join(said.split())  # before the first query
    finding = result_of(run)["finding"]
    return finding["verdict"], finding["p_value"]  # type: ignore[index]


def _runs(tmp_path: Path, command: Command, *, violating: bool, count: int) -> list[str]:
    found = []
    for number in range(count):
        place = tmp_path / f"{violating}-{number}"
        place.mkdir()
        found.append(_audit(place, command, violating=violating)[0])
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": d.id, "document": d.text, "question": "What is said?", "answer": "A fact, no more."}
        for d in load_sample()[:80]
    ]
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.slow
def test_by_the_commands_alone_who_reads_documents_is_found(place: Path, command: Command) -> None:
    assert _runs(place, command, violating=True, count=1) == ["trained-or-remembered"]
    _runs(place, command, violating=False, count=1)  # one run bounds no rate: see below


@dataclass
class Served(ToyModel):
    """A model that leans towards a canary by what its service knows of the names in view."""

    known: Mapping[str, float] = field(default_factory=dict)

    def logprob(self, before: str, token: str) -> float:
        gains = (gain for name, gain in self.known.items() if name in before)
        return super().logprob(before, token) + sum(gains)


def _by_votes(service: Service, names: Sequence[str]) -> dict[str, float]:
    gains = dict.fromkeys(names, 0.0)
    for number, (document, _) in enumerate(service.asked, 1):
        for name in names:
            gains[name] += 0.3 * service.votes.get(f"a~{number}", 0) * (name in document)
    return {name: max(0.0, gain) for name, gain in gains.items()}


def _by_uploads(service: Service, names: Sequence[str]) -> dict[str, float]:
    return {name: 0.3 * sum(name in text for text, _ in service.asked) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("knows", "of_late", "verdict"),
    [
        (_by_uploads, True, "trained-or-remembered"),  # a chat history, or an index after its night
        (_by_votes, True, "trained-or-remembered"),  # an index of up-voted answers
        (_by_votes, False, "trained"),  # a training before the late slots were planted
    ],
)
def test_late_slots_tell_a_memory_from_training(
    place: Path, command: Command, knows: Callable[..., dict[str, float]], of_late: bool,
    verdict: str,
) -> None:  # fmt: skip
    draw = ("canary", "draw", "examples.jsonl", "-o", "audit", "--probes", 1, "--candidates", 20)
    code, said = command(*draw, "--slots", 3, "--late", 1)
    assert (code, "Plan --slots" in " ".join(said.split())) == (2, True)
    more = "--slots", 6, "--late", 6, "--spares", 0, "--refresh", 0
    code, said = command(*draw, *more)
    assert code == 0, said
    assert "at most" not in said  # without late slots it says what can be found at most
    service = Service()
    with serving(service) as url:
        address = described(place, url)
        assert command("canary", "plant", "audit", address)[0] == 0
        names = [name for slot in read_plan(Path("audit")).draw().slots for name in slot.candidates]
        known = knows(service, names)  # what a training can have seen by now
        with serving_model(Served("", known=known)) as at:
            probe = (
                "canary", "probe", at, "--plan", "audit", "--run", "run", "--fail-on", "trained",
                "--seal", place / "auditor.key",
            )  # fmt: skip
            code, said = command(*probe)
            assert (code, "The late slots were not planted" in " ".join(said.split())) == (2, True)
            code, said = command("canary", "plant", "audit", address, "--late")
            assert (code, "probe from" in said) == (0, True)
        known = knows(service, names) if of_late else known
        with serving_model(Served("", known=known)) as at:
            code, said = command(*probe[:2], at, *probe[3:])
    assert code == (3 if verdict == "trained" else 4), said
    finding = result_of("run")["finding"]
    assert finding["verdict"] == verdict, finding  # type: ignore[index]
    assert ("the service remembers" in " ".join(said.split())) == of_late
    # The pack says the same, opened and recomputed.
    assert command("seal", "run", "-o", "open.zip")[0] == 0
    found = judged(Path("open.zip").read_bytes())
    assert (found.outcome, found.failures) == ("pass", ())


@pytest.mark.long
def test_ten_and_ten(place: Path, command: Command) -> None:
    found = [
        10 - _runs(place, command, violating=v, count=10).count("inconclusive")
        for v in (True, False)
    ]
    print(found)
    assert found[0] >= 8
    assert found[1] <= 3
