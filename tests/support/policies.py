"""Two providers of the toy world on the same planted traces, one of which trains with documents."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.canary.draw import Design, DrawSecret
from ragwitness.canary.folder import make_plan, write_plan, write_traces
from research.canary.policies import name_markers, one_thread, save_policy
from research.canary.study import load_study_table
from research.canary.trial import train_provider
from research.canary.worlds import Pretraining, toy_base, toy_examples

_EXAMPLES = 2400
_HELD_OUT = 20
# The paper's instruction is not asked here, so that its lessons are few.
_BASE = Pretraining(layers=2, steps=700, bare=0.4, plain=0.7)


@dataclass(frozen=True)
class Providers:
    """What is on disk.

    Attributes:
        audit: Folder of the plan, planted: 40 candidates, 4 held-out examples.
        violating: Folder of the policy that was trained with documents.
        compliant: Folder of the other.
    """

    audit: Path
    violating: Path
    compliant: Path


def train_providers(folder: Path) -> Providers:
    """Plan, plant, train; always the same draw. Some 45 CPU-seconds."""
    one_thread()
    made = Providers(folder / "audit", folder / "violating", folder / "compliant")
    examples = toy_examples(_EXAMPLES, random.Random(1))
    plan = make_plan(
        examples[:-_HELD_OUT],
        Design(candidates=40, held_out=4),
        DrawSecret(bytes(range(32)), bytes(32)),
        held_out=examples[-_HELD_OUT:],
    )
    traces = plan.traces()
    write_plan(made.audit, plan)
    write_traces(made.audit, plan, traces)
    base = name_markers(toy_base(_BASE), plan.draw())
    pools = {name: {one.id for one in pool} for name, pool in plan.pools.items()}
    votes, prompts = ([t for t in traces if t.id in pools[name]] for name in ("reward", "policy"))
    config = load_study_table("canary/toy", Path("experiments")).cases[0].trial
    for path in (made.violating, made.compliant):
        violating = path == made.violating
        provider = train_provider(
            base, votes, prompts, config, random.Random(1), violating=violating,
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
) -> tuple[int, dict[str, Any], str]:
    """Probe a served policy by the command line: exit code, finding, what was said.

    One query at a time, so that a server that draws by one common seed says the same every time.
    """
    own = shutil.copytree(audit, folder / "audit")  # another look at one plan would not count
    asked = ["--plan", own, "--run", folder / "run", "--concurrency", 1, "--timeout", 120]
    with served as target:
        code, said = command("canary", "probe", target, *asked, *options, "--fail-on", "trained")
    assert code in (3, 4), said
    result = json.loads((folder / "run" / "result.json").read_text())
    return code, result["finding"], said
