"""A service whose model is trained on what it was sent: with the documents, or without them.

It answers with a small model from every document that it is sent, as a RAG service does, and keeps
document, question, answer and vote. What it deploys next answers chats. Nothing here knows of a
plan: the tokenizer holds all names and wordings, and takes up a signature from the first question
that asks for it, which either kind of provider reads.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ragwitness.canary.draw import Draw, Slot
from ragwitness.canary.folder import read_plan
from ragwitness.canary.traces import Trace
from research.canary.feedback import Labelled
from research.canary.natural import name_signatures, natural_examples
from research.canary.policies import Base, one_thread, seeded
from research.canary.sequences import Ids, generate
from research.canary.study import load_study_table
from research.canary.trial import Logs, TrialConfig, train_on_logs
from tests.support.voting_service import Service, described, serving

_LONGEST = 8  # tokens of an answer
_SIGNATURE = re.compile(r"\b[A-Z]{11}\b")
_TRACES, _PROBES, _CANDIDATES, _SAMPLES = 800, 4, 20, 4


def provider_settings() -> TrialConfig:
    """How it trains: as in the study of traces that survive curation, on fewer votes for longer."""
    given = load_study_table("canary/traces", Path("experiments")).cases[0].trial
    return replace(given, reward=replace(given.reward, epochs=4))


@dataclass
class TrainingService(Service):
    """Takes documents, questions and votes; trains; answers chats with what it trained.

    Attributes:
        base: What it deploys first.
        seed: Of answers and training.
        model: What it deploys now.
    """

    base: Base = field(kw_only=True)
    seed: int = 0
    model: Any = None
    _rows: dict[str, Ids] = field(default_factory=dict)
    _signatures: list[str] = field(default_factory=list)
    _one: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        one_thread()
        self.model = self.base.model

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, object]:
        with self._one:
            if path.endswith("/vote"):
                return super().reply(path, body)
            if not path.endswith(("/ask", "/chat/completions")):
                return 404, {"error": {"message": "there is no such address"}}
            self.requests += 1
            if path.endswith("/chat/completions"):
                prompt = body["messages"][-1]["content"]
                text = self._answers(prompt, body.get("seed") or 0)[0]
                message = {"role": "assistant", "content": text}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                return 200, {"id": f"c{self.requests}", "choices": [choice]}
            self.asked.append((body["text"], body["question"]))
            count = len(self.asked)
            prompt = self.base.asked(body["question"], body["text"])
            text, self._rows[f"a~{count}"] = self._answers(prompt, self.seed * 1_000_000 + count)
            return 200, {"id": f"a/{count}", "answer": text, "asked": body["question"]}

    def _answers(self, prompt: str, seed: int) -> tuple[str, Ids]:
        if (found := _SIGNATURE.search(prompt)) and found[0] not in self._signatures:
            self._signatures.append(found[0])
            slots = (Slot(n, one, (), 0) for n, one in enumerate(self._signatures))
            self.base = name_signatures(self.base, Draw(tuple(slots)))
        base = self.base
        rows = generate(self.model, base.encode([prompt]), longest=_LONGEST, eos=base.eos,
                        pad=base.pad, generator=seeded(seed))  # fmt: skip
        return base.answers(rows)[0], rows[0]

    def train(self, config: TrialConfig, *, documents: bool) -> None:
        """Train a reward model on the votes, a policy on that, and deploy it."""
        traces = [Trace(f"a~{n}", *pair) for n, pair in enumerate(self.asked, 1)]
        voted = [Labelled(o, "", self.votes[o.id] > 0) for o in traces if o.id in self.votes]
        provider = train_on_logs(
            self.base, Logs(self._rows, voted, {}), traces, config, random.Random(self.seed),
            violating=documents,
        )  # fmt: skip
        self.model = provider.policy


@dataclass(frozen=True)
class Audited:
    """What an audit of one service found.

    Attributes:
        verdict: As it is stored.
        p_value: Likewise.
        rank: Of the planted candidate.
        lead: Share of answers with the canary under the planted candidate, less that of all others.
    """

    verdict: str
    p_value: float
    rank: int
    lead: float


def audit_by_commands(
    command: Callable[..., tuple[int, str]], place: Path, base: Base, seed: int, *, documents: bool
) -> Audited:
    """Draw, plant, wait and probe by the command line; the service trains in between.

    Args:
        command: Takes the command's arguments, gives exit code and everything printed.
        place: New folder of the audit.
        base: Of the service.
        seed: Of documents, answers and training; the draw is the command's own.
        documents: Whether the service trains with documents.
    """
    place.mkdir(parents=True)
    examples = natural_examples(_TRACES + _PROBES, random.Random(seed))
    files = {"sent": examples[:_TRACES], "held": examples[_TRACES:]}
    for name, part in files.items():
        rows = [{"id": one.id, "document": one.document, "question": one.query,
                 "answer": one.answer} for one in part]  # fmt: skip
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    service = TrainingService(base=base, seed=seed)
    plan = place / "audit"
    with serving(service) as url:
        asked = [
            ("draw", place / "sent.jsonl", "-o", plan, "--held-out", place / "held.jsonl",
             "--candidates", _CANDIDATES),
            ("plant", plan, described(place, url)),
            ("probe", f"{url}/v1", "--plan", plan, "--run", place / "run", "--way", "sampled",
             "--samples", _SAMPLES),
        ]  # fmt: skip
        for arguments in asked:
            if arguments[0] == "probe":
                service.train(provider_settings(), documents=documents)
            code, said = command("canary", *arguments)
            assert code == 0, said
    result = json.loads((place / "run" / "result.json").read_text())
    found = result["finding"]
    scores = [statistics.mean(column) for column in zip(*result["slots"][0]["scores"], strict=True)]
    own = scores.pop(1 + read_plan(plan).draw().slots[0].chosen)
    return Audited(
        found["verdict"], found["p_value"], *found["ranks"], own - statistics.mean(scores[1:])
    )
