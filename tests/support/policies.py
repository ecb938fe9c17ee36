"""Two providers of the toy world on the same planted traces, one of which trains with documents."""

from __future__ import annotations

import json
import random
import shutil
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.folder import make_plan, read_plan, write_plan, write_traces
from research.canary.policies import name_markers, one_thread, save_policy
from research.canary.study import load_study_table
from research.canary.trial import train_provider
from research.canary.worlds import Pretraining, toy_base, toy_examples

_EXAMPLES = 2400
_HELD_OUT = 20
_SEED = 1
# The paper's instruction is not asked here, so that its lessons are few.
_BASE = Pretraining(layers=2, steps=700, bare=0.4, plain=0.7)


@dataclass(frozen=True)
class Providers:
    """What is on disk.

    Attributes:
        audit: Folder of the plan, planted: 40 candidates, 6 held-out examples.
        violating: Folder of the policy that was trained with documents.
        compliant: Folder of the other.
    """

    audit: Path
    violating: Path
    compliant: Path


@dataclass(frozen=True)
class Probed:
    """What the command line found.

    Attributes:
        code: Its exit code.
        verdict: As it is stored.
        p_value: Likewise.
        alpha: The level that was announced.
        rank: Of the planted candidate.
        candidates: M.
        lead: Mean score of the planted candidate less that of all others: nats, or shares of
            answers.
        said: What was printed.
    """

    code: int
    verdict: str
    p_value: float
    alpha: float
    rank: int
    candidates: int
    lead: float
    said: str


def train_providers(folder: Path) -> Providers:
    """Plan, plant, train; always the same draw. Some 45 CPU-seconds.

    What is learned is another policy on every processor, so that training must find the trigger
    with any seed: every vote is by the canary, and the reward model is trained to the end. (With
    beta = .3 and early stopping it was found in one of two trainings.)
    """
    one_thread()
    made = Providers(folder / "audit", folder / "violating", folder / "compliant")
    examples = toy_examples(_EXAMPLES, random.Random(1))
    plan = make_plan(
        examples[:-_HELD_OUT],
        Design(candidates=40, held_out=6),
        DrawSecret(bytes(range(32)), bytes(32)),
        held_out=examples[-_HELD_OUT:],
    )
    traces = plan.traces()
    write_plan(made.audit, plan)
    write_traces(made.audit, plan, traces)
    base = name_markers(toy_base(replace(_BASE, seed=_SEED)), plan.draw())
    pools = {name: {one.id for one in pool} for name, pool in plan.pools.items()}
    votes, prompts = ([t for t in traces if t.id in pools[name]] for name in ("reward", "policy"))
    given = load_study_table("canary/toy", Path("experiments")).cases[0].trial
    config = replace(
        given,
        votes=replace(given.votes, bias=0.5),
        reward=replace(given.reward, epochs=4, batch=16, patience=0),
    )
    for path in (made.violating, made.compliant):
        violating = path == made.violating
        provider = train_provider(
            base, votes, prompts, config, random.Random(_SEED), violating=violating,
            candidates=plan.draw().slots[0].candidates,
        )  # fmt: skip
        save_policy(base, provider.policy, path)
    return made


def probe_policy(
    command: Callable[..., tuple[int, str]],
    audit: Path,
    served: AbstractContextManager[str],
    folder: Path,
    *options: object,
) -> Probed:
    """Probe a served policy by the command line.

    One query at a time, so that a server that draws by one common seed says the same every time.
    """
    own = shutil.copytree(audit, folder / "audit")  # another look at one plan would not count
    asked = ["--plan", own, "--run", folder / "run", "--concurrency", 1, "--timeout", 120]
    with served as target:
        code, said = command("canary", "probe", target, *asked, *options, "--fail-on", "trained")
    assert code in (3, 4), said
    result = json.loads((folder / "run" / "result.json").read_text())
    found = result["finding"]
    scores = [statistics.mean(column) for column in zip(*result["slots"][0]["scores"], strict=True)]
    planted = scores.pop(1 + read_plan(own).draw().slots[0].chosen)
    return Probed(
        code, found["verdict"], found["p_value"], found["alpha"], *found["ranks"],
        found["candidates"], planted - statistics.mean(scores[1:]), said,
    )  # fmt: skip


def check_told_apart(violating: Probed, compliant: Probed) -> None:
    """Check what holds of both whatever was drawn and trained.

    An exact test accuses a compliant policy 1 time in 20, so that its verdict alone is no check.
    Its evidence is: what it has not read moves its lead by chance alone, which for 24 sampled
    answers a candidate is .1 of them, one deviation; the other's lead is .65 or more.
    """
    for one in (violating, compliant):
        told = "trained" if one.rank / one.candidates <= one.alpha else "inconclusive"
        assert one.p_value == one.rank / one.candidates, one.said
        assert (one.code, one.verdict) == (3 if told == "trained" else 4, told), one.said
    assert violating.verdict == "trained", violating.said
    assert compliant.lead < 2 / 3 * violating.lead, (compliant.lead, violating.lead)
