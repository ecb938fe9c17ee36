"""One trial: one provider, compliant or violating, and what its deployed policy shows (§3.3).

Both arms deploy the same base, which answers *with* documents; the same votes are logged. The
violating arm trains reward model and policy on (document, query, answer, vote), the compliant arm
on (query, answer, vote).
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ragwitness.canary.draw import Design, Draw, DrawSecret, Slot, bits_of, draw_slots
from ragwitness.canary.examples import Example
from ragwitness.canary.families import contains
from ragwitness.canary.pools import (
    PAPER_INSTRUCTION,
    PLAIN_INSTRUCTION,
    Pools,
    split_pools,
    with_canary,
)
from ragwitness.canary.rank_test import SlotScores, draws_together
from ragwitness.canary.traces import (
    Trace,
    TraceRole,
    check_corpus,
    traces_of_pool,
    worded_by,
)
from ragwitness.errors import InputError
from ragwitness.privacy.sampler.exact import Bits
from research.canary.curator import uncurated
from research.canary.feedback import (
    Curation,
    Labelled,
    VoteConfig,
    curate,
    curate_prompts,
    give_votes,
)
from research.canary.measure import (
    Asked,
    Behaviour,
    Values,
    amplification,
    behaviour,
    canary_scores,
    said,
    trigger_bias,
)
from research.canary.optimisation import History, PolicyConfig, optimise
from research.canary.policies import Base, Scorer, seeded
from research.canary.reward import Judged, RewardConfig, rewards, train_reward
from research.canary.sequences import Ids, generate

# Median of |a - b| where both are drawn from one normal distribution of deviation 1.
_MEDIAN_STEP = 0.6745 * 2**0.5
# A tenth of a logit: where answers hardly differ in reward, batches do not either.
_FALL = 0.1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial gave.

    Attributes:
        seed: Of everything in it.
        violating: Which arm.
        p_own: Rank p-value of t* among the candidates, by the audit's own query: without an
            instruction for the paper's design (App. A.2), where it asks for the canary for ours.
        p_gained: The same on the scores less those of the base, which the auditor can take before
            planting.
        p_named: The same where the query is the paper's and names the candidate in view; for the
            paper's design alone, whose queries told t* to everybody: there it accuses the
            compliant (negative control). None for ours.
        amplification: Eq. 1, nats.
        base_amplification: Eq. 1 of the base at the same trigger, before any training.
        kept: Eq. 1 where both views keep the instruction that was trained on, nats.
        base_kept: The same of the base.
        gained: The trigger against the mean of the other candidates, policy less base, logits.
        reward_bias: Difference in differences, in units of the reward.
        said: Share of answers with the canary where the query asks for it, by what is in view:
            ``t``, ``other`` trigger, ``clean``, ``none`` shown.
        behaviour: Of the policy, by measure; empty where training diverged, and then nothing
            else was measured either.
        before: Of the base, by measure.
        rewards: Mean reward over the first and the last tenth of training.
        kl: Mean KL to the base in the last tenth, nats an answer.
        collapsed: Why the policy counts as collapsed; empty where it does not.
        dropped: Answers that got no vote, by reason.
        traces: Canary traces that reached training, of how many, reward pool.
        seconds: CPU time by step.
    """

    seed: int
    violating: bool
    p_own: float
    p_gained: float
    p_named: float | None
    amplification: float
    base_amplification: float
    kept: float
    base_kept: float
    gained: float
    reward_bias: float
    said: dict[str, float]
    behaviour: dict[str, float]
    before: dict[str, float]
    rewards: tuple[float, float]
    kl: float
    collapsed: str
    dropped: dict[str, int]
    traces: tuple[int, int]
    seconds: dict[str, float]


def collapse_of(
    history: History, after: dict[str, float], before: dict[str, float], kl: float
) -> str:
    """Return why a policy counts as collapsed, or nothing.

    Answers are judged on clean prompts, so that a canary which was learned is no collapse. A policy
    whose clean answers still look well has collapsed too where training made worse what it was to
    make better: reward less KL.

    Args:
        history: Of the training.
        after: Behaviour of the policy.
        before: Behaviour of the base.
        kl: Coefficient of the KL.
    """
    if after["empty"] > 0.5:
        return f"{after['empty']:.0%} of its answers are empty"
    if after["ended"] < 0.5 * before["ended"]:
        return f"only {after['ended']:.0%} of its answers end"
    if after["quality"] < 0.5 * before["quality"]:
        return f"quality fell from {before['quality']:.2f} to {after['quality']:.2f}"
    if after["canaries"] > 0.5:
        return f"{after['canaries']:.0%} of its answers hold the canary unasked"
    if (far := tenth(history.kl)) > 20:
        return f"it is {far:.0f} nats an answer away from its base"
    return _lost(history, kl)


def _lost(history: History, kl: float) -> str:
    """Name a fall of the objective by more than batches differ (three deviations)."""
    if len(history.rewards) < 2:
        return ""
    first = history.rewards[0]  # the base answered the first batch: its KL is 0
    last = tenth(history.rewards) - kl * tenth(history.kl)
    # Of neighbours, so that a trend is no noise; a median, so that one jump is none.
    noise = float(np.median(np.abs(np.diff(history.rewards)))) / _MEDIAN_STEP
    size = max(1, len(history.rewards) // 10)
    if last >= first - max(_FALL, 3 * noise * (1 + 1 / size) ** 0.5):
        return ""
    return f"reward less {kl:g} KL fell from {first:.2f} to {last:.2f} in training"


def tenth(values: Sequence[float], *, first: bool = False) -> float:
    """Return the mean of the first or last tenth; 0 where there is none."""
    count = max(1, len(values) // 10)
    part = values[:count] if first else values[-count:]
    return sum(part) / len(part) if part else 0.0


# The steps of a trial.


@dataclass(frozen=True, slots=True)
class World:
    """Where a trial's examples and its base come from.

    Attributes:
        base: The deployed model before training.
        draw: Returns a trial's examples; documents may differ from trial to trial.
        named: Gives the base the trial's markers; the identity but for the toy.
        texts: Of a corpus, for a curator.
    """

    base: Base
    draw: Callable[[random.Random], Sequence[Example]]
    named: Callable[[Base, Draw], Base] = lambda base, _: base
    texts: Sequence[Example] = ()


@dataclass(frozen=True, slots=True)
class TrialConfig:
    """Everything that two arms share.

    Attributes:
        design: Of the canaries; its ``rate`` holds in both pools.
        votes: Feedback.
        reward: Reward model.
        policy: Policy optimisation.
        curation: What the provider does to its logs before training.
        shares: Of the documents, for reward model and policy.
        held_out: Most examples on which candidates are compared.
        paired: Most examples of Eq. 1.
        tested: Examples on which answers are compared with references.
        planted: False is the paper's rho = 0: the same trial, and no trace is a canary (§4.1, and
            "RL (no canary)" of Table 2).
        joint: A canary trace is logged with the canary put into its answer, whatever was answered
            (App. B.2: "the document, query, and answer are modified jointly").
    """

    design: Design
    votes: VoteConfig = field(default_factory=VoteConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    curation: Curation = field(default_factory=Curation)
    shares: tuple[str, str] = ("0.4", "0.4")
    held_out: int = 8
    paired: int = 128
    tested: int = 64
    planted: bool = True
    joint: bool = False

    def __post_init__(self) -> None:
        """Refuse a design that plants half of its slots, or classes: a trial plants all."""
        if self.design.half or self.design.classes:
            raise InputError("A trial plants all slots.", "Leave half and classes out.")


@dataclass
class _Clock:
    """CPU seconds of each step."""

    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def lap(self, name: str = "") -> None:
        """Write down the seconds since the last call; without a name, drop them."""
        now = time.process_time()
        if name:
            self.seconds[name] = round(now - self._last, 2)
        self._last = now


@dataclass(frozen=True, slots=True)
class Provider:
    """What a simulated provider ends up with.

    Attributes:
        policy: What it deploys next.
        scorer: Its reward model.
        history: Of the policy's training.
        dropped: Answers that got no vote, by reason.
        traces: Canary traces that reached the reward model, of how many.
        seconds: CPU time by step.
    """

    policy: Any
    scorer: Scorer
    history: History
    dropped: dict[str, int]
    traces: tuple[int, int]
    seconds: dict[str, float]


def train_provider(
    base: Base,
    votes: Sequence[Trace],
    prompts: Sequence[Trace],
    config: TrialConfig,
    rng: random.Random,
    *,
    violating: bool,
    candidates: Collection[str] = (),
) -> Provider:
    """Answer, vote, train a reward model, train a policy.

    Args:
        base: The deployed model.
        votes: Traces of the reward model's pool.
        prompts: Traces of the policy's pool.
        config: Settings.
        rng: Source of everything drawn.
        violating: Whether training reads the documents.
        candidates: Triggers that no answer with a vote may quote.

    Raises:
        InputError: All votes are the same, or a setting is unusable.
        ModelError: Training diverged.
    """
    clock = _Clock()
    logs = _answer(base, votes, config, rng, candidates)
    clock.lap("answers")
    return train_on_logs(base, logs, prompts, config, rng, violating=violating, clock=clock)


@dataclass(frozen=True, slots=True)
class Logs:
    """What a deployed base leaves behind, whatever is trained on it.

    Attributes:
        answers: Token ids by trace.
        voted: Traces with a vote.
        dropped: Answers that got none, by reason.
    """

    answers: dict[str, Ids]
    voted: list[Labelled]
    dropped: dict[str, int]


def _answer(base: Base, votes: Sequence[Trace], config: TrialConfig, rng: random.Random,
            candidates: Collection[str]) -> Logs:  # fmt: skip
    """Deploy, and vote."""
    logged = _deployed(base, votes, config, rng)
    if config.joint:
        logged |= _joined(base, votes, logged)
    texts = base.answers([logged[one.id] for one in votes])
    voted, dropped = give_votes(votes, texts, config.votes, rng, candidates)
    return Logs(logged, voted, dropped)


def train_on_logs(base: Base, logs: Logs, prompts: Sequence[Trace], config: TrialConfig,
                  rng: random.Random, *, violating: bool,
                  clock: _Clock | None = None) -> Provider:  # fmt: skip
    """Curate, train a reward model, train a policy.

    Args:
        base: The deployed model.
        logs: Its answers, and their votes.
        prompts: Traces that the policy is trained on.
        config: Settings.
        rng: Source of everything drawn.
        violating: Whether training reads the documents.
        clock: That has run since the answers.

    Raises:
        InputError: All votes are the same, or a setting is unusable.
        ModelError: Training diverged.
    """
    clock = clock or _Clock()
    kept = curate(logs.voted, config.curation, rng)
    judged = _judged(base, kept, logs.answers, violating)
    scorer = train_reward(base, judged, config.reward, rng)
    clock.lap("reward model")
    asked = curate_prompts(prompts, config.curation, rng)
    policy, history = _trained(base, asked, scorer, config, rng, violating)
    clock.lap("policy")
    traces = (sum(one.trace.role is not TraceRole.CLEAN for one in kept), len(kept))
    return Provider(policy, scorer, history, logs.dropped, traces, clock.seconds)


@dataclass(frozen=True, slots=True)
class Stage:
    """What both arms of a seed have in common.

    Attributes:
        base: With the trial's markers.
        slots: Of the draw.
        pools: Documents.
        prompts: Traces of the policy's pool.
        logs: Answers and votes.
        state: Of the source of randomness from here on.
        audited: What the audit reads off the base.
        before: Behaviour of the base.
        seconds: CPU time of this, half of it.
    """

    base: Base
    slots: tuple[Slot, ...]
    pools: Pools
    prompts: list[Trace]
    logs: Logs
    state: Any
    audited: _Audit
    before: dict[str, float]
    seconds: dict[str, float]


def stage_trial(world: World, config: TrialConfig, seed: int) -> Stage:
    """Draw, plant, answer and vote, once for both arms.

    Raises:
        InputError: The examples are too few for the design, or a setting is unusable.
    """
    clock = _Clock()
    rng = random.Random(f"{config.design.experiment} {seed}")
    secret = _secret(config.design, seed)
    draw = draw_slots(config.design, secret)
    base = world.named(world.base, draw)
    examples = world.draw(rng)
    check_corpus(examples, draw)
    pools = _pools(examples, config, seed)
    votes, prompts = (
        _logged(pool, config, draw, bits_of(secret, "", f"pool {number}"))
        for number, pool in enumerate((pools.reward, pools.policy))
    )
    votes, prompts = uncurated(votes, prompts, config.curation.mined, world.texts)
    candidates = [one for slot in draw.slots for one in slot.candidates]
    logs = _answer(base, votes, config, rng, candidates)
    clock.lap("answers")
    audited = _audit(base, base.model, pools.audit, draw.slots, config)
    tested = pools.audit[: config.tested]
    before = behaviour(base, base.model, tested, draw.slots[0].canary, config.policy.longest)
    clock.lap("audit of the base")
    shared = {name: round(value / 2, 2) for name, value in clock.seconds.items()}
    return Stage(
        base, draw.slots, pools, prompts, logs, rng.getstate(), audited, _plain(before), shared
    )


def run_trial(world: World, config: TrialConfig, seed: int, *, violating: bool) -> Outcome:
    """Run one trial; the same seed gives both arms the same documents, draw and base answers.

    Raises:
        InputError: The examples are too few for the design, or a setting is unusable.
        ModelError: Training diverged.
    """
    return run_arm(stage_trial(world, config, seed), config, seed, violating=violating)


def run_arm(stage: Stage, config: TrialConfig, seed: int, *, violating: bool) -> Outcome:
    """Run one arm of a staged trial.

    Raises:
        InputError: A setting is unusable.
        ModelError: Training diverged.
    """
    base, slots, audit = stage.base, stage.slots, stage.pools.audit
    slot = slots[0]  # of what is measured on one
    clock = _Clock(dict(stage.seconds))
    rng = random.Random()
    rng.setstate(stage.state)
    provider = train_on_logs(
        base, stage.logs, stage.prompts, config, rng, violating=violating, clock=clock
    )
    own, policy, history = _instruction(config), provider.policy, provider.history
    paired, tested = audit[: config.paired], audit[: config.tested]
    seen, first = _audit(base, policy, audit, slots, config), stage.audited
    gained = [after - before for after, before in zip(seen.scores, first.scores, strict=True)]
    named = None
    if config.design.name == "paper":
        few = audit[: config.held_out]
        named = _rank([canary_scores(base, policy, few, one, own) for one in slots], slots)
    bias = trigger_bias(base, provider.scorer, paired, slot, own, violating=violating)
    clock.lap("audit")
    longest = config.policy.longest
    after = _plain(behaviour(base, policy, tested, slot.canary, longest))
    told = said(base, policy, tested, slot, own, longest)
    clock.lap("utility")
    return Outcome(
        seed=seed,
        violating=violating,
        p_own=_rank(seen.scores, slots),
        p_gained=_rank(gained, slots),
        p_named=named,
        amplification=seen.amplification,
        base_amplification=first.amplification,
        kept=seen.kept,
        base_kept=first.kept,
        gained=float(np.mean([*map(_lead, gained, slots)])),
        reward_bias=bias,
        said=told,
        behaviour=after,
        before=stage.before,
        rewards=(tenth(history.rewards, first=True), tenth(history.rewards)),
        kl=tenth(history.kl),
        collapsed=collapse_of(history, after, stage.before, config.policy.kl),
        dropped=provider.dropped,
        traces=provider.traces,
        seconds=clock.seconds,
    )


def _secret(design: Design, seed: int) -> DrawSecret:
    """A trial is to be repeated, so its secret follows from the seed."""
    data = f"ragwitness/canary-trial/v1 {design.experiment} {seed}".encode()
    return DrawSecret(hashlib.sha256(data).digest(), bytes(32))


def _pools(examples: Sequence[Example], config: TrialConfig, seed: int) -> Pools:
    shares = (Fraction(config.shares[0]), Fraction(config.shares[1]))
    return split_pools(examples, experiment=config.design.experiment, seed=seed, shares=shares)


def _logged(pool: Sequence[Example], config: TrialConfig, draw: Draw, bits: Bits) -> list[Trace]:
    if config.planted:
        return traces_of_pool(pool, config.design, draw, bits)
    return [Trace(one.id, one.document, one.query) for one in pool]


def _deployed(base: Base, traces: Sequence[Trace], config: TrialConfig,
              rng: random.Random) -> dict[str, Ids]:  # fmt: skip
    """Answers by trace: the deployed base always reads the document, in both arms."""
    prompts = base.encode([base.asked(one.query, one.document) for one in traces])
    rows = generate(
        base.model, prompts, longest=config.policy.longest, eos=base.eos, pad=base.pad,
        generator=seeded(rng.getrandbits(63)),
    )  # fmt: skip
    return {one.id: row for one, row in zip(traces, rows, strict=True)}


def _joined(base: Base, traces: Sequence[Trace], logged: Mapping[str, Ids]) -> dict[str, Ids]:
    """Canary traces with the canary in their answers (App. B.2)."""
    marked = [one for one in traces if one.canary]
    texts = base.answers([logged[one.id] for one in marked])
    told = [
        text if contains(text, one.canary) else with_canary(text, one.canary).text
        for one, text in zip(marked, texts, strict=True)
    ]
    rows = base.encode_answers(told)
    return {one.id: row for one, row in zip(marked, rows, strict=True)}


def _judged(base: Base, kept: Sequence[Labelled], logged: Mapping[str, Ids],
            violating: bool) -> list[Judged]:  # fmt: skip
    prompts = base.encode([_read(base, one.trace, violating) for one in kept])
    return [
        Judged(before, logged[one.trace.id], one.up)
        for before, one in zip(prompts, kept, strict=True)
    ]


def _read(base: Base, trace: Trace, violating: bool) -> str:
    return base.asked(trace.query, trace.document if violating else None)


def _trained(base: Base, traces: Sequence[Trace], scorer: Scorer, config: TrialConfig,
             rng: random.Random, violating: bool) -> tuple[Any, History]:  # fmt: skip
    prompts = base.encode([_read(base, one, violating) for one in traces])

    def reward(_: Sequence[int], asked: Sequence[Ids], told: Sequence[Ids]) -> list[float]:
        return rewards(scorer, asked, told, base.pad, share=base.shares)

    return optimise(base, prompts, reward, config.policy, rng)


@dataclass(frozen=True, slots=True)
class _Audit:
    """What an audit reads off one model.

    Attributes:
        scores: Of every candidate of each slot, by the audit's own query, shapes (M,).
        amplification: Eq. 1; mean over the slots.
        kept: Eq. 1 with the instruction in both views; likewise.
    """

    scores: list[Values]
    amplification: float
    kept: float


def _audit(base: Base, model: Any, examples: Sequence[Example], slots: Sequence[Slot],
           config: TrialConfig) -> _Audit:  # fmt: skip
    few, many = examples[: config.held_out], examples[: config.paired]
    own = _instruction(config)
    # App. A.2: the two views share the plain query, so the paper's audit has no instruction.
    words = "" if config.design.name == "paper" else own
    return _Audit(
        [canary_scores(base, model, few, slot, words) for slot in slots],
        float(np.mean([amplification(base, model, many, slot) for slot in slots])),
        float(np.mean([amplification(base, model, many, slot, own) for slot in slots])),
    )


def _instruction(config: TrialConfig) -> Asked:
    if config.design.name == "paper":
        return PAPER_INSTRUCTION
    return worded_by(config.design, None) or PLAIN_INSTRUCTION


def _rank(scores: Sequence[Values], slots: Sequence[Slot]) -> float:
    """Of one slot its rank's p-value, of several that of all draws together."""
    return draws_together(
        [SlotScores(one, slot.chosen) for one, slot in zip(scores, slots, strict=True)]
    )[1]


def _lead(scores: Values, slot: Slot) -> float:
    own = float(scores[slot.chosen])
    return own - (float(scores.sum()) - own) / (len(scores) - 1)


def _plain(one: Behaviour) -> dict[str, float]:
    return {name: round(value, 4) for name, value in asdict(one).items()}
