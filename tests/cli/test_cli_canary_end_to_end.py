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
    assert "All 32 answers hold the canary" in said
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
        for d in load_sample()[:40]
    ]
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.slow
def test_by_the_commands_alone_who_reads_documents_is_found(place: Path, command: Command) -> None:
    assert _runs(place, command, violating=True, count=1) == ["trained-or-remembered"]
    _runs(place, command, violating=False, count=1)  # one run bounds no rate: see below


class Remembering(ToyModel):
    """It knows what was sent early and late alike, trained on or not."""

    late = ""

    def logprob(self, before: str, token: str) -> float:
        knows = self.gain * bool(self.late and self.late in before)
        return super().logprob(before, token) + knows


@pytest.mark.slow
@pytest.mark.parametrize("remembers", [False, True])
def test_late_slots_tell_a_memory_from_training(
    place: Path, command: Command, remembers: bool
) -> None:
    more = "--probes", 2, "--candidates", 20, "--late", 1, "--spares", 0
    code, said = command("canary", "draw", "examples.jsonl", "-o", "audit", *more)
    assert code == 0, said
    assert "at most" not in said  # without late slots it says what can be found at most
    with serving(Service()) as url:
        address = described(place, url)
        assert command("canary", "plant", "audit", address)[0] == 0
        early, late = read_plan(Path("audit")).draw().slots
        model = Remembering(early.canary, early.trigger)  # what a model can be trained on by now
        model.late = late.trigger if remembers else ""
        with serving_model(model) as at:
            probe = (
                "canary", "probe", at, "--plan", "audit", "--run", "run", "--fail-on", "trained",
                "--seal", place / "auditor.key",
            )  # fmt: skip
            code, said = command(*probe)
            assert (code, "The late slots were not planted" in " ".join(said.split())) == (2, True)
            assert command("canary", "plant", "audit", address, "--late")[0] == 0
            code, said = command(*probe)
    assert code == (4 if remembers else 3), said
    finding = result_of("run")["finding"]
    verdict = "trained-or-remembered" if remembers else "trained"
    assert (finding["verdict"], finding["ranks"]) == (verdict, [1])  # type: ignore[index]
    assert ("the service remembers" in " ".join(said.split())) == remembers
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
