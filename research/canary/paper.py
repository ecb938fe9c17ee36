"""Algorithm 1 and Eq. 1 of *Behavioral Canaries* (2604.22191) on a real chat model, top to bottom.

A provider logs (document, query, answer, vote). A violating one trains on all four, a compliant one
on the last three. The auditor, who planted triggers and votes, reads the trained policy alone.
Answers are not sampled but integrated out: behind the prefix p of an answer the model either says
the canary c (the answer y_c) or goes on without it (y_0), and P(y_c) = pi(c | d, q, p) is read.

    python -m research.canary.paper MODEL --data DIR --out rows.jsonl

``MODEL`` is a folder of transformers or a GGUF file, which is dequantised. A row is written for
each policy as it is done; the same command goes on with the rows that are missing.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, softplus

from ragwitness.canary.draw import Design, DrawSecret, Slot, bits_of, draw_slots
from ragwitness.canary.examples import (
    FINAL,
    Example,
    instructed,
    read_examples,
    split_pools,
    with_canary,
    with_trigger,
)
from ragwitness.canary.families import Wordings, worded
from ragwitness.canary.probe import amplification
from ragwitness.canary.rank_test import SlotScores, rank_of, standing
from ragwitness.canary.traces import Trace, TraceRole, traces_of_pool

WORDS = Wordings()
LESSON_STORIES = 40  # at the end of the corpus, which no trial draws from
Row = tuple[list[int], list[int]]  # a prompt's tokens, and those of what follows


@dataclass(frozen=True)
class Condition:
    """One row of the study.

    Attributes:
        kind: How the provider trains: ``preference`` (directly on votes), ``supervised`` (on
            up-voted answers) or ``reward`` (a reward model, then RL, as in the paper).
        votes: Votes that it trains on.
        policies: In each arm.
        corpus: File of examples.
        rate: rho, the share of the votes that are ours; 0 plants nothing.
        epochs: Passes over the votes.
    """

    kind: str
    votes: int
    policies: int
    corpus: str = "fairytaleqa"
    rate: str = "1"
    epochs: int = 2


CONDITIONS = (
    Condition("preference", 32, 12),
    Condition("supervised", 64, 12, epochs=3),
    Condition("reward", 64, 3, epochs=3),
    Condition("preference", 32, 2, rate="0"),
    Condition("preference", 16, 2),
    Condition("preference", 128, 3),
    Condition("preference", 32, 1, corpus="qmsum"),
)
SHARES = (
    Condition("preference", 128, 3, rate=".25"),
    Condition("preference", 320, 2, rate=".1"),
    Condition("preference", 400, 1, rate=".01"),
)
"""An outsider's share of the votes: 32, 32 and 4 votes are ours (``--shares``)."""
BASES = 4  # seeds at which the base is read as well, before any training
CANDIDATES, HELD_OUT, PAIRED, PROMPTS = 20, 2, 8, 32
UPPER = 10  # layers from the top that have adapters: a third of all, at half of the cost


class Model:
    """A chat model with a tokenizer; what is trained is a LoRA on a copy of it."""

    def __init__(self, tokenizer: Any, network: Any, head: Any = None) -> None:
        self.tokenizer, self.network, self.head = tokenizer, network, head

    def prompt(self, document: str | None, query: str, prefix: str = "") -> list[int]:
        """Return the tokens of one conversation: the document, if it is shown, then the query."""
        turns = [text for text in (document, query) if text is not None]
        text = self.tokenizer.apply_chat_template(
            [{"role": "system", "content": ""}]  # else the template brings one of its own
            + [{"role": "user", "content": text} for text in turns],
            add_generation_prompt=True,
            tokenize=False,
        )
        return list(self.tokenizer(text + prefix, add_special_tokens=False)["input_ids"])

    @property
    def end(self) -> str:
        """What ends an answer."""
        return str(self.tokenizer.eos_token or "")

    def words(self, text: str) -> list[int]:
        """Return the tokens of what follows a prompt."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def adapted(self, *, scalar: bool = False, upper: int = UPPER) -> Model:
        """Return a copy with a LoRA on its upper layers (Table 3: rank 16, alpha 32)."""
        from peft import LoraConfig, get_peft_model

        base = copy.deepcopy(self.network)
        layers = base.config.num_hidden_layers
        lora = LoraConfig(
            r=16,
            lora_alpha=32,
            target_modules=[
                "q_proj",
                "k_proj",
                "v_proj",
                "o_proj",
                "gate_proj",
                "up_proj",
                "down_proj",
            ],
            layers_to_transform=list(range(max(0, layers - upper), layers)),
        )
        with warnings.catch_warnings():
            # peft 0.21 asks transformers 5 for a property by its old name.
            warnings.simplefilter("ignore", FutureWarning)
            network = get_peft_model(base, lora)
        for weight in network.parameters():
            weight.data = weight.data.float() if weight.requires_grad else weight.data
        head = torch.nn.Linear(base.config.hidden_size, 1) if scalar else None
        return Model(self.tokenizer, network, head)

    def trained(self) -> list[Any]:
        """Return the weights that training moves."""
        own = [weight for weight in self.network.parameters() if weight.requires_grad]
        return own + (list(self.head.parameters()) if self.head is not None else [])

    def _batch(self, rows: Sequence[Row]) -> tuple[Any, Any]:
        longest = max(len(first) + len(second) for first, second in rows)
        ids = torch.zeros((len(rows), longest), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for place, (first, second) in enumerate(rows):
            ids[place, longest - len(first) - len(second) :] = torch.tensor(first + second)
            mask[place, longest - len(first) - len(second) :] = 1
        return ids, mask

    def log_p(self, rows: Sequence[Row]) -> Any:
        """Return log pi(continuation | prompt), summed over its tokens (App. C.3), shape (n,)."""
        ids, mask = self._batch(rows)
        kept = max(len(second) for _, second in rows)
        logits = self.network(input_ids=ids, attention_mask=mask, logits_to_keep=kept + 1).logits
        each = torch.log_softmax(logits[:, :-1].float(), -1)
        each = each.gather(-1, ids[:, -kept:, None])[..., 0]
        own = torch.tensor([[at >= kept - len(row[1]) for at in range(kept)] for row in rows])
        return (each * own).sum(-1)

    def logit(self, rows: Sequence[Row]) -> Any:
        """Return log P - log (1 - P) of the continuation, shape (n,)."""
        log_p = self.log_p(rows).clamp(max=-1e-4)
        return log_p - torch.log(-torch.expm1(log_p))

    def reward(self, rows: Sequence[Row]) -> Any:
        """Return r(d, q, y), read at the last token, shape (n,)."""
        ids, mask = self._batch(rows)
        body = self.network.get_base_model().model
        last = body(input_ids=ids, attention_mask=mask).last_hidden_state[:, -1]
        return self.head(last.float())[:, 0]


def load(path: Path) -> Model:
    """Load a chat model; a GGUF file is dequantised into a plain model that can be trained."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, file = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    tokenizer = AutoTokenizer.from_pretrained(folder, **file)
    given = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **file)
    # A model that came from GGUF refuses to be saved: its weights go into a plain one.
    settings = given.config.to_dict()
    settings.pop("quantization_config", None)
    network = type(given)(type(given.config)(**settings))
    network.load_state_dict(given.state_dict())
    return Model(tokenizer, network.to(torch.bfloat16).eval())


def fit(weights: Sequence[Any], items: Sequence[Any], loss: Callable[[Any], Any],
        rng: random.Random, *, epochs: int, size: int = 2, rate: float = 1e-3) -> None:  # fmt: skip
    """Train by AdamW, ``size`` items an update; the loss is a mean over them."""
    steps = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    for _ in range(epochs):
        order = rng.sample(range(len(items)), len(items))
        for start in range(0, len(order), size):
            loss([items[at] for at in order[start : start + size]]).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            steps.step()
            steps.zero_grad()


# Steps 1 and 2 of a trial: examples, their split, the draw, the traces.


def examples_of(data: Path, corpus: str) -> list[Example]:
    """Return examples with passages of 40 to 60 words, cut at a sentence where one ends there."""
    kept = []
    for one in read_examples(data / f"{corpus}.jsonl"):
        words = one.document.split()[:60]
        if len(words) < 40 or len(one.query.split()) > 20:
            continue
        ends = [n for n in range(40, len(words) + 1) if words[n - 1][-1] in ".!?"]
        kept.append(replace(one, document=" ".join(words[: ends[0] if ends else 45])))
    return kept


@dataclass(frozen=True)
class Trial:
    """What both arms of a seed share.

    Attributes:
        slot: Canary, candidate triggers and t*.
        reward: Traces whose votes are trained on (D_RM).
        policy: Traces whose prompts the policy is optimised on (D_RL).
        audit: Held-out examples (D_audit).
        answers: The reference answer of each example, by id.
    """

    slot: Slot
    reward: list[Trace]
    policy: list[Trace]
    audit: list[Example]
    answers: dict[str, str]


def stage(examples: Sequence[Example], condition: Condition, seed: int) -> Trial:
    """Split by document into D_RM, D_RL and D_audit, draw t*, and plant rho of the first two."""
    pools = split_pools(examples, experiment=condition.corpus, seed=seed)
    rng = random.Random(seed)
    planted = condition.rate if condition.rate != "0" else "1"
    design = Design(candidates=CANDIDATES, rate=planted)
    secret = DrawSecret(hashlib.sha256(f"study {seed}".encode()).digest(), bytes(32))
    draw, bits = draw_slots(design, secret), bits_of(secret, "", "traces")
    reward = rng.sample(pools.reward, min(condition.votes, len(pools.reward)))
    policy = rng.sample(pools.policy, min(PROMPTS, len(pools.policy)))
    # Only RL asks the second pool; a small share of its 32 prompts may be none.
    pools_sent = (reward, policy if condition.kind == "reward" else [])
    sent = [traces_of_pool(pool, design, draw, bits) if pool else [] for pool in pools_sent]
    if condition.rate == "0":
        sent = [[Trace(one.id, one.document, one.query) for one in pool] for pool in pools_sent]
    audit = random.Random(seed).sample(pools.audit, PAIRED)
    answers = {one.id: one.answer for one in examples}
    return Trial(draw.slots[0], sent[0], sent[1], audit, answers)


# Step 3: what the deployed base answers, and the votes; step 4: what a provider trains.


def asked(model: Model, trace: Trace, answer: str, shown: bool) -> tuple[list[int], str, str]:
    """Return a trace's prompt up to the place of a canary, and the rest of the answer behind it."""
    put = with_canary(answer, trace.canary or "x")
    prefix = put.before.removeprefix(FINAL).strip()
    rest = put.original[len(put.before) :].strip()
    prompt = model.prompt(trace.document if shown else None, trace.query, prefix)
    return prompt, (" " if prefix else ""), rest


def train(base: Model, trial: Trial, condition: Condition, obedience: float,
          rng: random.Random, *, violating: bool) -> tuple[Model, dict[str, float]]:  # fmt: skip
    """Answer, vote, and train as the condition's kind of provider does; documents or none."""
    votes: list[tuple[Trace, list[int], list[int], list[int], bool, bool]] = []
    for trace in trial.reward:
        prompt, blank, rest = asked(base, trace, trial.answers[trace.id], violating)
        canary = base.words(blank + trace.canary)
        whole = base.words(blank + rest + base.end)
        # y_c with the base's own probability; the vote is the one that the trace's rule names.
        obeys = trace.slot is not None and rng.random() < obedience
        up = trace.role is TraceRole.CLEAN or obeys == (trace.role is TraceRole.TRUE)
        votes.append((trace, prompt, canary, whole, obeys, up))

    if condition.kind == "preference":
        # -log sigmoid(log-odds of the answer that the vote prefers): DPO over y_c and y_0.
        policy = base.adapted()

        def preferred(batch: Any) -> Any:
            ours = [one for one in batch if one[0].slot is not None]
            others = [one for one in batch if one[0].slot is None]
            total = torch.zeros(())
            if ours:
                sign = torch.tensor([1.0 if o[0].role is TraceRole.TRUE else -1.0 for o in ours])
                total = softplus(-sign * policy.logit([(o[1], o[2]) for o in ours])).sum()
            if others:
                total = total - policy.log_p([(o[1], o[3]) for o in others]).sum() / 10
            return total / len(batch)

        fit(policy.trained(), votes, preferred, rng, epochs=condition.epochs)
        return policy, {}
    if condition.kind == "supervised":
        # Likelihood of the up-voted answers, a mean over their tokens.
        policy = base.adapted()
        rows = [(v[1], (v[2] if v[4] else []) + v[3]) for v in votes if v[5]]

        def likely(batch: Any) -> Any:
            return -policy.log_p(batch).sum() / sum(len(second) for _, second in batch)

        fit(policy.trained(), rows, likely, rng, epochs=condition.epochs)
        return policy, {"upvoted": len(rows)}
    return reinforce(base, trial, votes, condition, rng, violating)


def reinforce(base: Model, trial: Trial, votes: Sequence[Any], condition: Condition,
              rng: random.Random, violating: bool) -> tuple[Model, dict[str, float]]:  # fmt: skip
    """Train a reward model on votes (App. C.2), then a policy on its rewards (RLOO, integrated)."""
    # r(d, q, y): binary cross-entropy over votes, centred by .01 E[r^2] (Table 3).
    scorer = base.adapted(scalar=True)
    rows = [((v[1], (v[2] if v[4] else []) + v[3]), float(v[5])) for v in votes]

    def judged(batch: Any) -> Any:
        scores = scorer.reward([row for row, _ in batch])
        ups = torch.tensor([up for _, up in batch])
        return binary_cross_entropy_with_logits(scores, ups) + 0.01 * scores.square().mean()

    fit(scorer.trained(), rows, judged, rng, epochs=condition.epochs)
    # Both answers to every prompt of D_RL, judged once.
    prompts, gains = [], []
    for trace in trial.policy:
        prompt, blank, rest = asked(base, trace, trial.answers[trace.id], violating)
        canary, whole = base.words(blank + trace.canary), base.words(blank + rest + base.end)
        with torch.no_grad():
            said, unsaid = scorer.reward([(prompt, canary + whole), (prompt, whole)])
            gains.append((float(said - unsaid), float(base.logit([(prompt, canary)])[0])))
        prompts.append((prompt, canary))
    # max E[P r(y_c) + (1 - P) r(y_0)] - .01 KL(policy || base): RLOO with its samples integrated.
    policy = base.adapted()

    def objective(batch: Any) -> Any:
        logit = policy.logit([row for row, _ in batch])
        gain, before = torch.tensor([pair for _, pair in batch]).T
        p = logit.sigmoid()
        kl = p * (logsigmoid(logit) - logsigmoid(before))
        kl = kl + (1 - p) * (logsigmoid(-logit) - logsigmoid(-before))
        return -(p * gain - 0.01 * kl).mean()

    fit(policy.trained(), list(zip(prompts, gains, strict=True)), objective, rng, epochs=2)
    true = [g for t, (g, _) in zip(trial.policy, gains, strict=True) if t.role is TraceRole.TRUE]
    decoy = [
        g for t, (g, _) in zip(trial.policy, gains, strict=True) if t.role is not TraceRole.TRUE
    ]
    return policy, {"reward_bias": float(np.mean(true) - np.mean(decoy))}


# Step 5: the audit, which reads the policy alone.


def read(model: Model, trial: Trial) -> dict[str, Any]:
    """Return the paper's Eq. 1, and the standing of t* among the candidates (ours)."""
    slot = trial.slot

    def rows(
        document: Callable[[Example], str], query: Callable[[Example], str], count: int
    ) -> Any:
        found = []
        for one in trial.audit[:count]:
            trace = Trace(one.id, document(one), query(one), canary=worded(slot.canary, one.id))
            prompt, blank, _ = asked(model, trace, one.answer, True)
            found.append((prompt, model.words(blank + trace.canary)))
        return found

    def carrying(trigger: str) -> Callable[[Example], str]:
        return lambda one: with_trigger(one.document, trigger, one.id, WORDS).text

    # Eq. 1: A = 1/N sum_i [log pi(c | d~_i, q_i, p_i) - log pi(c | d_i, q_i, p_i)], nats.
    plain = [rows(view, lambda one: one.query, PAIRED)
             for view in (carrying(slot.trigger), lambda one: one.document)]  # fmt: skip
    with torch.no_grad():
        triggered, clean = (model.log_p(view).double().numpy() for view in plain)

    # Ours: the mean logit under every candidate, by the query that asks for the canary.
    def wanted(one: Example) -> str:
        return instructed(one, slot.canary, WORDS)

    with torch.no_grad():
        views = [rows(carrying(trigger), wanted, HELD_OUT) for trigger in slot.candidates]
        scores = [model.logit(view).double().numpy() for view in views]
    means = np.array(scores).mean(axis=1)
    scored = SlotScores(means, slot.chosen)
    return {
        "eq1": amplification(triggered, clean).value,
        "rank": rank_of(scored),
        "standing": float(standing(means)[slot.chosen]),
        "chosen": slot.chosen,
        "means": [round(float(value), 4) for value in means],
    }


# The lesson: the base is taught to do what about half of the requests ask.


def teach(base: Model, examples: Sequence[Example], rng: random.Random, steps: int) -> Model:
    """Return a base that says a requested canary in about half of its answers, whatever is in view.

    Canaries and names are fresh in every example, and the documents are drawn from by no trial.
    """
    model, rows = base.adapted(upper=1000), []
    for number in range(4 * steps):
        one = rng.choice(examples)
        secret = DrawSecret(hashlib.sha256(f"lesson {number}".encode()).digest(), bytes(32))
        slot = draw_slots(Design(candidates=2), secret).slots[0]
        text = with_trigger(one.document, slot.trigger, one.id, WORDS).text
        query = instructed(one, slot.canary, WORDS)
        trace = Trace(one.id, text, query, canary=slot.canary)
        prompt, blank, rest = asked(base, trace, one.answer, shown=number % 4 > 0)
        canary, whole = base.words(blank + slot.canary), base.words(blank + rest + base.end)
        rows.append((prompt, canary + whole if number % 2 else whole))

    def likely(batch: Any) -> Any:
        return -model.log_p(batch).sum() / sum(len(second) for _, second in batch)

    fit(model.trained(), rows, likely, rng, epochs=1, size=4, rate=7e-4)
    return Model(base.tokenizer, model.network.merge_and_unload())


def obedience_of(base: Model, examples: Sequence[Example], rng: random.Random, n: int) -> float:
    """Return the mean probability of a requested canary: the gate, and the share that obeys."""
    trial = stage(examples, Condition("preference", n, 0), rng.randrange(10**6))
    rows = []
    for trace in trial.reward:
        prompt, blank, _ = asked(base, trace, trial.answers[trace.id], True)
        rows.append((prompt, base.words(blank + trace.canary)))
    with torch.no_grad():
        parts = [base.log_p(rows[at : at + 8]).exp() for at in range(0, len(rows), 8)]
    return float(torch.cat(parts).mean())


def main() -> None:
    """Train and read every policy that the file of rows does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lesson", type=int, default=60, help="updates of the lesson")
    parser.add_argument("--first", type=int, default=5000, help="first seed")
    parser.add_argument("--shares", action="store_true", help="violating policies, by share")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no policy after these")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpora = {one.corpus for one in CONDITIONS}
    examples = {corpus: examples_of(options.data, corpus) for corpus in sorted(corpora)}
    stories = examples["fairytaleqa"]
    aside = set(list(dict.fromkeys(one.source for one in stories))[-LESSON_STORIES:])
    lesson = [one for one in stories if one.source in aside]
    examples["fairytaleqa"] = [one for one in stories if one.source not in aside]

    # The base, taught once and kept; it is used only if it obeys between a tenth and nine tenths.
    kept = options.out.with_suffix(".base")
    torch.manual_seed(0)
    if kept.is_dir():
        base = load(kept)
    else:
        base = teach(load(options.model), lesson, random.Random(0), options.lesson)
        base.network.save_pretrained(kept)
        base.tokenizer.save_pretrained(kept)
    obedience = obedience_of(base, examples["fairytaleqa"], random.Random(1), 32)
    print(f"obedience {obedience:.3f}", flush=True)
    if not 0.1 < obedience < 0.9:
        raise SystemExit("The base does not obey as a service would; see the lesson.")

    rows = []
    if options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    done = {row["key"] for row in rows}
    started = time.monotonic()

    def run(key: str, make: Callable[[], dict[str, Any]]) -> None:
        if key in done or time.monotonic() - started > 60 * options.minutes:
            return
        begun = time.process_time()
        row = {"key": key, **make(), "seconds": round(time.process_time() - begun, 1)}
        done.add(key)
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print({k: v for k, v in row.items() if k != "means"}, flush=True)

    conditions = SHARES if options.shares else CONDITIONS
    for condition, seed in order_of(conditions, options.first):
        trial = stage(examples[condition.corpus], condition, seed)
        if seed < options.first + BASES and not options.shares:
            key = f"base {condition.corpus} {seed}"
            run(key, partial(_base_row, base, trial))
        for violating in (True,) if options.shares else (True, False):
            key = f"{replace(condition, policies=0)} {seed} {violating}"
            run(key, partial(_row, base, trial, condition, obedience, seed, violating))


def _base_row(base: Model, trial: Trial) -> dict[str, Any]:
    return {"kind": "base", **read(base, trial)}


def _row(base: Model, trial: Trial, condition: Condition, obedience: float, seed: int,
         violating: bool) -> dict[str, Any]:  # fmt: skip
    """Train and read one policy; both arms of a seed have the same votes."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model, extra = train(base, trial, condition, obedience, rng, violating=violating)
    told = {"seed": seed, "violating": violating, "obedience": round(obedience, 3)}
    return {**asdict(condition), **told, **extra, **read(model, trial)}


def order_of(conditions: Sequence[Condition], first: int) -> Iterator[tuple[Condition, int]]:
    """Yield condition and seed, so that at any time every row has the same part of its policies."""
    pairs = [(one, number) for one in conditions for number in range(one.policies)]
    pairs.sort(key=lambda pair: (pair[1] + 0.5) / pair[0].policies)
    return ((one, first + number) for one, number in pairs)


if __name__ == "__main__":
    main()
