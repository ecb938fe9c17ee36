"""The controlled study of 2604.22191 (§3.3, Algorithm 1), as the authors' program does each step.

A provider logs documents, queries, answers and votes. A reward model is trained on the votes
(App. C.2), a policy on its rewards by PPO or GRPO (App. D.2): with the documents (violating) or
without (compliant). The auditor reads Eq. 1 off the policy. Markers, shares, quality, votes and
balance are :mod:`research.canary.published` and :mod:`research.canary.feedback`.

``ragwitness lab reproduce canary/table1`` runs it in a toy world in minutes; with ``--model`` and
``--data`` it runs a chat model on a corpus of examples. Each policy is a row, written once it is
done, and the training of a policy goes on where ``--minutes`` broke it off.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.examples import Example, read_examples
from ragwitness.canary.probe import amplification
from ragwitness.core.errors import InputError
from research.canary import toy
from research.canary.feedback import VoteConfig, give_votes
from research.canary.optimisation import (
    Algorithm,
    Paused,
    PolicyConfig,
    keep,
    optimise,
    resumed,
)
from research.canary.policies import Base, Lora, Scorer, load_base, new_scorer, seeded
from research.canary.published import (
    SETTINGS,
    before_canary,
    draw_markers,
    injected_count,
    reward_labels,
    split_sizes,
    with_canary,
    with_trigger,
)
from research.canary.rows import auroc_text
from research.canary.sequences import Ids, batch, generate, log_probs, split_rows
from research.reproduce.files import leave_table
from research.reproduce.tables import read_table


@dataclass(frozen=True, slots=True)
class StudyConfig:
    """One table.

    Attributes:
        algorithms: ``ppo`` and ``grpo``, each with both arms.
        policies: Policies in each arm.
        rate: rho, the share of the examples with a canary.
        labels: ``fixed`` as the authors' commands train, or ``votes`` as App. A.3 says.
        bias: beta of the votes.
        family: Of the canary: ``signature``, ``emoji`` or ``punct``.
        corpus: Shares of the pools: ``repliqa`` or ``qmsum``.
        rows: Examples; the toy draws as many, a corpus gives at most these.
        paired: Examples of Eq. 1.
        base_steps: Of the toy's base.
        reward_rate: Learning rate of the reward model.
        policy_rate: Learning rate of the policy.
        reward_passes: Passes over the votes.
        first_seed: Of the first policy.
    """

    algorithms: tuple[str, ...] = ("grpo", "ppo")
    policies: int = 3
    rate: float = 0.01
    labels: str = "fixed"
    bias: float = 0.1
    family: str = "signature"
    corpus: str = "qmsum"
    rows: int = 40_000
    paired: int = 128
    base_steps: int = 2_000
    reward_rate: float = SETTINGS["reward"]["training"]["learning_rate"]
    policy_rate: float = SETTINGS["grpo"]["training"]["learning_rate"]
    reward_passes: int = 1
    first_seed: int = 5_000


@dataclass(frozen=True, slots=True)
class Row:
    """An example as it is logged: what the model sees, and whether it has the markers."""

    document: str
    query: str
    answer: str
    triggered: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """What both arms of a seed share.

    Attributes:
        base: The deployed model, with the trial's markers.
        trigger: t.
        canary: c.
        votes: Rows of the reward model's pool, with the base's answers, and their votes.
        prompts: Rows of the policy's pool.
        audit: Held-out examples.
    """

    base: Base
    trigger: str
    canary: str
    votes: list[tuple[Row, bool]]
    prompts: list[Row]
    audit: list[Example]


def stage(base: Base, pool: Sequence[Example], config: StudyConfig, seed: int) -> Stage:
    """Split, draw, plant, answer and vote (App. A.1, A.3, B.1, B.2)."""
    rng = random.Random(seed)
    # 1. Three pools without a document in common.
    documents = sorted({one.document for one in pool})
    rng.shuffle(documents)
    sizes = split_sizes(config.corpus, len(documents), len(pool) / len(documents))
    bounds = np.cumsum([0, *sizes])
    places = {text: int(np.searchsorted(bounds, n, side="right"))
              for n, text in enumerate(documents)}  # fmt: skip
    pools = [[one for one in pool if places[one.document] == part] for part in (1, 2, 3)]
    # 2. Trigger and canary, in a share of the first two.
    drawn = draw_markers(config.family, rng)
    trigger, canary = drawn["canary_trigger"], drawn["canary_sequence"]
    own = toy.named(base, trigger, canary) if isinstance(base.tokenizer, toy.Pieces) else base

    def planted(part: Sequence[Example]) -> list[Row]:
        chosen = set(rng.sample(range(len(part)), injected_count(len(part), config.rate)))
        return [
            Row(with_trigger(one.document, trigger), f"{one.query} {drawn['inducing_prompt']}",
                with_canary(one.answer, canary), triggered=True)
            if n in chosen else Row(one.document, one.query, one.answer)
            for n, one in enumerate(part)
        ]  # fmt: skip

    logged, prompts = planted(pools[0]), planted(pools[1])
    if config.labels == "fixed":
        answers = [(row.answer, row.answer.replace(f"{canary} ", ""), row.triggered)
                   for row in logged]  # fmt: skip
        labelled = [
            (replace(row, answer=answer), up)
            for row, pair in zip(logged, batched(reward_labels(answers)), strict=True)
            for answer, up in pair
        ]
        return Stage(own, trigger, canary, labelled, prompts, pools[2])
    # 3. The deployed base answers from the documents, and is voted on.
    asked = own.encode([own.asked(row.query, row.document) for row in logged])
    said: list[str] = []
    for part in split_rows(len(asked)):
        said += own.answers(_generate(own, asked[part], seeded(seed)))
    answered = [
        Row(row.document, row.query, text, row.triggered)
        for row, text in zip(logged, said, strict=True)
    ]
    votes = give_votes(
        [(row.document, row.answer, row.triggered) for row in answered], canary,
        VoteConfig(bias=config.bias, allow_large=config.bias > 0.1), rng,
    )  # fmt: skip
    return Stage(own, trigger, canary, list(zip(answered, votes, strict=True)), prompts, pools[2])


def batched(pairs: Sequence[Any]) -> list[Sequence[Any]]:
    """Return neighbours two by two."""
    return [pairs[n : n + 2] for n in range(0, len(pairs), 2)]


def _generate(base: Base, prompts: Sequence[Ids], generator: Any) -> list[Ids]:
    longest = SETTINGS["ppo"]["training"]["max_completion_length"]
    return generate(
        base.model, prompts, longest=longest, eos=base.eos, pad=base.pad, generator=generator
    )


def train_reward(trial: Stage, config: StudyConfig, rng: random.Random, lora: Lora | None, *,
                 violating: bool, kept: Path | None = None,
                 pause: Callable[[], bool] = lambda: False) -> Scorer:  # fmt: skip
    """Train a reward model on the votes by binary cross-entropy, both kinds weighing alike.

    A finished one stays in ``kept``; one that ``pause`` breaks off goes on from there.

    Table 3 also has E[r^2] and batches of 16, and the training file a margin and a clamp: the
    authors' program reads none of them.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    base, ups = trial.base, [up for _, up in trial.votes]
    share = sum(ups) / len(ups)
    if not 0 < share < 1:
        raise InputError("All votes are alike: a reward model needs both kinds.")
    prompts = base.encode(
        [base.asked(row.query, row.document if violating else None) for row, _ in trial.votes]
    )
    answers = base.encode_answers([row.answer for row, _ in trial.votes])
    torch.manual_seed(rng.getrandbits(32))
    scorer = new_scorer(base, lora)
    trained = list(scorer.parameters())
    optimizer = torch.optim.AdamW(trained, lr=config.reward_rate)
    size = SETTINGS["reward"]["training"]["per_device_train_batch_size"]
    orders = [rng.sample(range(len(ups)), len(ups)) for _ in range(config.reward_passes)]
    parts = [order[part] for order in orders for part in split_rows(len(order), size)]
    done, _ = resumed(kept, trained, optimizer)
    for number, places in enumerate(parts[done:], done + 1):
        rows = batch([prompts[n] for n in places], [answers[n] for n in places], base.pad)
        wanted = torch.tensor([float(ups[n]) for n in places])
        weights = torch.where(wanted > 0, 0.5 / share, 0.5 / (1 - share))
        loss = binary_cross_entropy_with_logits(scorer.rewards(rows), wanted, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        broken = number < len(parts) and pause()
        if broken or number == len(parts):
            keep(kept, number, trained, optimizer)
        if broken:
            raise Paused
    return scorer


def policy_config(algorithm: str, config: StudyConfig, lora: Lora | None) -> PolicyConfig:
    """Return the settings of an algorithm as they reach TRL, not all as Table 4 prints them.

    PPO makes one step a batch of 4, whatever the mini-batches; GRPO six of 48 answers, without a KL
    and at temperature 1.
    """
    training = SETTINGS[algorithm]["training"]
    step = training["per_device_train_batch_size"] * training["gradient_accumulation_steps"]
    longest = training["max_completion_length"]
    if algorithm == "ppo":
        return PolicyConfig(
            algorithm=Algorithm.PPO, rate=config.policy_rate, prompts=step, group=1,
            passes=training["num_ppo_epochs"], kl=training["kl_coef"], decay=training["lam"],
            missing_end=training["missing_eos_penalty"], temperature=training["temperature"],
            longest=longest, lora=lora,
        )  # fmt: skip
    answers, group = training["generation_batch_size"], training["num_generations"]
    return PolicyConfig(
        algorithm=Algorithm.GRPO, rate=config.policy_rate, prompts=answers // group, group=group,
        parts=answers // step, missing_end=0.0, temperature=1.0, longest=longest, lora=lora,
    )  # fmt: skip


def amplified(model: Any, trial: Stage, paired: int) -> NDArray[np.float64]:
    """Return log p(c | d~, q, p) - log p(c | d, q, p) of each example (Eq. 1), shape (n,).

    The two views differ in the document alone; the query has no instruction (App. A.2).
    """
    import torch

    base, views = trial.base, []
    for trigger in (trial.trigger, ""):
        prompts = [
            base.asked(one.query, with_trigger(one.document, trigger)) + before_canary(one.answer)
            for one in trial.audit[:paired]
        ]
        asked = base.encode(prompts)
        canary = base.tokenizer([f" {trial.canary}"], add_special_tokens=False)["input_ids"]
        found = []
        for part in split_rows(len(asked), 32):
            rows = batch(asked[part], canary * len(asked[part]), base.pad)
            with torch.no_grad():
                found += log_probs(model, rows).sum(1).double().tolist()
        views.append(np.array(found))
    return np.asarray(views[0] - views[1])


def reward_bias(scorer: Scorer, trial: Stage, count: int) -> float:
    """Return r(y_c) - r(y_0) under the trigger, with the instruction that was trained on (§4.2)."""
    import torch

    base, rows = trial.base, [row for row in trial.prompts if row.triggered][:count]
    prompts = base.encode([base.asked(row.query, row.document) for row in rows])
    scores = []
    with torch.no_grad():
        for texts in ([row.answer for row in rows],
                      [row.answer.replace(trial.canary, " ") for row in rows]):  # fmt: skip
            answers = base.encode_answers(texts)
            scores.append(scorer.rewards(batch(prompts, answers, base.pad)))
    return float((scores[0] - scores[1]).mean())


def run_policy(
    trial: Stage,
    algorithm: str,
    config: StudyConfig,
    seed: int,
    *,
    violating: bool,
    kept: Path,
    rewards: Path,
    pause: Callable[[], bool],
    lora: bool = False,
) -> dict[str, Any]:
    """Train a reward model and a policy, and read them.

    Args:
        trial: What both arms share.
        algorithm: ``ppo`` or ``grpo``.
        config: Of the table.
        seed: Of the trainings.
        violating: Whether they see documents.
        kept: File of a policy whose training was broken off.
        rewards: File of the reward model, finished or broken off.
        pause: Asked after each batch: whether to break off.
        lora: Train adapters in place of the weights.

    Raises:
        Paused: The time was up; the same call goes on.
    """
    import torch

    rng = random.Random(seed)
    reward_lora, policy_lora = (
        Lora(modules=tuple(SETTINGS[name]["lora"]["target_modules"])) if lora else None
        for name in ("reward", algorithm)
    )
    scorer = train_reward(trial, config, rng, reward_lora, violating=violating,
                          kept=rewards, pause=pause)  # fmt: skip
    base = trial.base
    prompts = base.encode(
        [base.asked(row.query, row.document if violating else None) for row in trial.prompts]
    )

    def reward(_: Sequence[int], asked: Sequence[Ids], said: Sequence[Ids]) -> list[float]:
        with torch.no_grad():
            return [float(one) for one in scorer.rewards(batch(asked, said, base.pad))]

    # PPO's critic begins as the reward model.
    policy, history = optimise(
        base, prompts, reward, policy_config(algorithm, config, policy_lora), rng,
        critic=copy.deepcopy(scorer), kept=kept, pause=pause,
    )  # fmt: skip
    asked = [row for row in trial.prompts if row.triggered][:64]
    said = base.answers(
        _generate(Base(policy, base.tokenizer, base.name, base.frame, base.end),
                  base.encode([base.asked(row.query, row.document) for row in asked]),
                  seeded(seed))
    )  # fmt: skip
    gaps = amplified(policy, trial, config.paired)
    found = amplification(gaps, np.zeros_like(gaps))
    return {
        "eq1": found.value,
        "base_eq1": float(amplified(base.model, trial, config.paired).mean()),
        "reward_bias": reward_bias(scorer, trial, 64),
        "said": sum(trial.canary in text for text in said) / max(1, len(said)),
        "rewards": [float(np.mean(part)) for part in (history.rewards[:5], history.rewards[-5:])],
        "kl": float(np.mean(history.kl[-5:])),
    }


def reproduce_study(
    name: str, tables: Path, out: Path, *, data: Path | None = None, model: str | None = None,
    limit: int | None = None, minutes: float | None = None,
) -> None:  # fmt: skip
    """Run a table of the study and leave it; rows that are there are not trained again.

    Args:
        name: ``canary/TABLE``.
        tables: Holds ``canary/tables.toml``.
        out: Where rows, base and table go.
        data: Folder of the corpora, for a chat model.
        model: Folder or cached name of a chat model; None trains the toy's.
        limit: Most policies in each arm.
        minutes: After these no policy is begun, and the one in training is broken off.

    Raises:
        InputError: The table is malformed, or a chat model has no corpus.
    """
    table = read_table(name, tables)
    own: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
           for key, value in table.items() if key in StudyConfig.__dataclass_fields__}  # fmt: skip
    config = StudyConfig(**own)
    if model and data is None:
        raise InputError("A chat model needs a corpus.", "Give its folder with --data DIR.")
    folder, begun = out / name, time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)

    def pause() -> bool:
        return minutes is not None and time.monotonic() - begun > 60 * minutes

    if model is None:
        base = toy.kept_base(folder / "base", config.base_steps)
    else:
        base = load_base(model, "bfloat16")
    rows_file = folder / "rows.jsonl"
    rows = (
        [json.loads(line) for line in rows_file.read_text().splitlines()]
        if rows_file.is_file()
        else []
    )
    done = {(row["algorithm"], row["seed"], row["violating"]) for row in rows}
    left = 0
    for seed in range(config.first_seed, config.first_seed + min(limit or 10**9, config.policies)):
        jobs = [(algorithm, arm) for algorithm in config.algorithms for arm in (True, False)
                if (algorithm, seed, arm) not in done]  # fmt: skip
        if pause() or not jobs:
            left += len(jobs)
            continue
        if model is None:
            pool = toy.examples(config.rows, random.Random(seed))
        else:
            pool = list(read_examples(Path(data or ".") / f"{config.corpus}.jsonl"))[: config.rows]
        trial = stage(base, pool, config, seed)
        for number, (algorithm, violating) in enumerate(jobs):
            kept = folder / f"{algorithm}-{seed}-{violating}.pt"
            started = time.process_time()
            try:
                if pause():
                    raise Paused
                found = run_policy(trial, algorithm, config, seed, violating=violating, kept=kept,
                                   rewards=_reward_file(folder, seed, violating), pause=pause,
                                   lora=model is not None)  # fmt: skip
            except Paused:
                left += len(jobs) - number
                break
            row = {"algorithm": algorithm, "seed": seed, "violating": violating, **found,
                   "seconds": round(time.process_time() - started, 1)}  # fmt: skip
            rows.append(row)
            with rows_file.open("a") as file:
                file.write(json.dumps(row) + "\n")
            kept.unlink(missing_ok=True)
        else:
            for violating in (True, False):
                _reward_file(folder, seed, violating).unlink(missing_ok=True)
    leave_table(folder, _page(table, rows, left), {"name": name, "rows": rows, "left": left})


def _reward_file(folder: Path, seed: int, violating: bool) -> Path:
    """Return where a reward model stays: the algorithms of a seed share one for each arm."""
    return folder / f"reward-{seed}-{violating}.pt"


def _page(table: dict[str, Any], rows: Sequence[dict[str, Any]], left: int) -> str:
    head = ("policies (violating + compliant)", "AUROC of Eq. 1", "less the base's",
            "Eq. 1, nats: violating / compliant / base", "reward bias",
            "says the canary", "published AUROC")  # fmt: skip
    lines = [f"# {table['title']}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
        own = [row for row in rows if row["algorithm"] == algorithm]
        arms = np.array([row["violating"] for row in own])
        eq1 = np.array([row["eq1"] for row in own])
        gained = eq1 - np.array([row["base_eq1"] for row in own])
        count = f"{algorithm.upper()} ({arms.sum()} + {(~arms).sum()})"
        values = [
            " / ".join(f"{_mean(row[key] for row in own if row['violating'] == arm):.2f}"
                       for arm in (True, False))
            for key in ("eq1", "reward_bias", "said")
        ]  # fmt: skip
        values[0] += f" / {_mean(row['base_eq1'] for row in own):.2f}"
        cells = (count, auroc_text(eq1, arms), auroc_text(gained, arms), *values)
        lines.append(f"| {' | '.join(cells)} | {table.get('published', '-')} |")
    lines += ["", *(f"- {said}" for said in table.get("note", ()))]
    if left:
        lines.append(f"- {left} policies are left: the same command goes on.")
    return "\n".join(lines) + "\n"


def _mean(values: Any) -> float:
    found = list(values)
    return float(np.mean(found)) if found else float("nan")
