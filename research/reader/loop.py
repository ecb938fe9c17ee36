"""The training run: two optimisers, a loop with checkpoints, and processes that share a batch.

A run resumes from its last checkpoint with exactly the batches that it would have seen.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
import torch.nn.functional as functional
from tokenizers import Tokenizer
from torch import Tensor, nn

from research.reader.batches import Batch, RowMaker, batch_at, phase_at
from research.reader.config import DataConfig, ScheduleConfig, TrainConfig
from research.reader.corpus import Corpus, Vocabulary, load_corpus, train_tokenizer, with_gap
from research.reader.export import export
from research.reader.grow import grow
from research.reader.network import Reader
from research.reader.start import construct
from research.reader.stories import Lexicon
from research.reader.turns import Turn, TurnMaker

_ROOT = Path(__file__).parents[2]

# Optimisers: orthogonalised momentum for matrices, Adam for the rest, the constructed part slow.
#
# Early attention holds the constructed circuits. At the full rate they are gone within minutes, so
# they move at a twentieth of it; the rest learns around them.


def _orthogonalise(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Nearest semi-orthogonal matrices (count, rows, columns), by Newton-Schulz in float32.

    Coefficients: K. Jordan et al., "Muon" (2024). torch's own Muon iterates in bfloat16, which has
    no fast path on most CPUs.
    """
    wide = matrices.shape[-2] <= matrices.shape[-1]
    work = matrices if wide else matrices.mT
    work = work / (work.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        gram = work @ work.mT
        work = 3.4445 * work + (-4.7750 * gram + 2.0315 * gram @ gram) @ work
    return work if wide else work.mT


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """Momentum whose update is orthogonalised; update size matched to Adam's (RMS 0.2)."""

    def __init__(
        self, groups: list[dict[str, object]], decay: float, momentum: float = 0.95
    ) -> None:
        super().__init__(groups, {"lr": 0.0, "decay": decay, "momentum": momentum})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: None = None) -> None:  # noqa: ARG002
        """Update every parameter; equal shapes are orthogonalised in one batch."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    shapes.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in shapes.items():
                updates = _orthogonalise(
                    torch.stack([self._momentum(p, group["momentum"]) for p in parameters])
                )
                size = 0.2 * max(shape) ** 0.5
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["decay"])
                    parameter.add_(update, alpha=-group["lr"] * size)

    def _momentum(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        state = self.state[parameter]
        gradient = parameter.grad
        if gradient is None:
            raise ValueError("a parameter without a gradient reached the optimiser")
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        state["momentum"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(state["momentum"], momentum)


def rate_at(schedule: ScheduleConfig, step: int) -> float:
    """Share of the full learning rate at ``step``: warm up, hold, then fall in a line to 2%."""
    done, whole = step - schedule.begin, schedule.steps - schedule.begin
    warm = min(1.0, (done + 1) / schedule.warmup_steps)
    left = (whole - done) / (whole * schedule.decay_share)
    return schedule.peak * warm * min(1.0, max(0.02, left))


def _split(
    reader: Reader, schedule: ScheduleConfig
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Parameters grouped by optimiser and full learning rate."""
    early = tuple(f"blocks.{layer}." for layer in range(schedule.protected_layers))
    fast, middle, slow, gains = [], [], [], []
    for name, parameter in reader.named_parameters():
        if parameter is reader.embedding.weight:
            continue
        if parameter.dim() != 2:
            gains.append(parameter)
        elif not name.startswith(early):
            fast.append(parameter)
        elif name.endswith(("gate.weight", "up.weight", "down.weight")):
            middle.append(parameter)
        else:
            slow.append(parameter)
    matrix = [
        {"params": fast, "full": schedule.matrix_rate},
        {"params": middle, "full": schedule.matrix_rate * schedule.early_mlp_scale},
    ]
    others = [
        {"params": [reader.embedding.weight], "full": schedule.embedding_rate},
        {"params": gains, "full": schedule.gain_rate},
        {"params": slow, "full": schedule.early_attention_rate},
    ]
    return matrix, others


class Optimisers:
    """The two optimisers of a run as one."""

    def __init__(self, reader: Reader, schedule: ScheduleConfig) -> None:
        self.schedule = schedule
        self.parameters: Iterable[nn.Parameter] = list(reader.parameters())
        matrix, others = _split(reader, schedule)
        self.parts: tuple[torch.optim.Optimizer, ...] = (
            Muon(matrix, schedule.weight_decay),
            torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.95), weight_decay=0.0),
        )

    def step(self, step: int) -> float:
        """Clip, update and clear gradients; returns the gradient norm before clipping."""
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.schedule.clip_norm)
        share = rate_at(self.schedule, step)
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = share * group["full"]
            part.step()
            part.zero_grad(set_to_none=True)
        return float(norm)

    def state_dict(self) -> list[dict[str, object]]:
        """State of both parts."""
        return [part.state_dict() for part in self.parts]

    def load_state_dict(self, states: list[dict[str, object]]) -> None:
        """Restore ``state_dict``."""
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)


# The training loop: batches by step, gradient accumulation, checkpoints, exports, resume.

# Weights below this belong to context and query; half of those places are skipped at random.
_LIGHT = 0.5


@dataclasses.dataclass
class Run:
    """Everything a run holds in memory."""

    config: TrainConfig
    vocabulary: Vocabulary
    maker: RowMaker
    validation: RowMaker
    reader: Reader
    optimisers: Optimisers
    step: int = 0


def _example(maker: RowMaker, vocabulary: Vocabulary) -> list[int]:
    """A row to measure activations on: three documents and a cloze about one of them."""
    rng = random.Random(11)
    documents = maker.documents(rng, 3, 60)
    row = maker.opening(rng, documents, defended=False, in_user=False)
    row.extend(TurnMaker(vocabulary, rng).make("cloze", Turn(documents[1], documents, True, False)))
    return row.tokens


def _vocabulary(config: TrainConfig, corpus: Corpus, work: Path) -> Vocabulary:
    path = work / "tokenizer.json"
    if config.start and not path.exists():
        start = _ROOT / config.start / "tokenizer.json"
        with_gap(Tokenizer.from_file(str(start))).save(str(path))
    if not path.exists():
        tokenizer = train_tokenizer(
            corpus, config.model.vocabulary, config.tokenizer_documents, config.seed
        )
        if config.data.lessons:
            tokenizer = with_gap(tokenizer)
        tokenizer.save(str(path))
    return Vocabulary.load(path)


def prepare_text(config: TrainConfig, work: Path) -> None:
    """Fetch the text and train the tokenizer, so that several processes find them ready."""
    work.mkdir(parents=True, exist_ok=True)
    _vocabulary(config, load_corpus(work, config.data.held_out_share), work)


def _hold_roles(reader: Reader, vocabulary: Vocabulary) -> None:
    """Keep the vectors of the opening roles: the circuits' gates and rests are keyed to them."""
    rows = [vocabulary.system, vocabulary.user, vocabulary.assistant]

    def clear(gradient: Tensor) -> Tensor:
        gradient = gradient.clone()
        gradient[rows] = 0
        return gradient

    reader.embedding.weight.register_hook(clear)


def prepare(config: TrainConfig, work: Path, corpus: Corpus | None = None) -> Run:
    """Load or make text, tokenizer and constructed network; resume from a checkpoint if any.

    Raises:
        ValueError: The schedule goes on from a checkpoint that is not there.
    """
    work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(config.threads)
    corpus = corpus or load_corpus(work, config.data.held_out_share)
    vocabulary = _vocabulary(config, corpus, work)
    lexicon = Lexicon.load(work)
    maker = RowMaker(vocabulary, corpus.training, config.data, lexicon)
    validation = RowMaker(vocabulary, corpus.held_out, config.data, lexicon)
    torch.manual_seed(config.seed)
    reader = Reader(dataclasses.replace(config.model, vocabulary=vocabulary.size))
    if config.start:
        grow(reader, vocabulary, _ROOT / config.start, config.inserted)
    else:
        construct(reader, vocabulary, _example(validation, vocabulary), seed=config.seed)
    _hold_roles(reader, vocabulary)
    reader.to(config.device)
    run = Run(config, vocabulary, maker, validation, reader, Optimisers(reader, config.schedule))
    checkpoint = work / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=config.device, weights_only=True)
        reader.load_state_dict(state["reader"])
        run.optimisers.load_state_dict(state["optimisers"])
        run.step = state["step"]
    if run.step < config.schedule.begin:
        begin = config.schedule.begin
        raise ValueError(f"{config.name} goes on from step {begin}; {checkpoint} is at {run.step}")
    return run


def save_checkpoint(run: Run, work: Path) -> None:
    """Write beside the old checkpoint, then rename: a killed run always finds a whole one."""
    partial = work / "checkpoint.partial"
    state = {
        "reader": run.reader.state_dict(),
        "optimisers": run.optimisers.state_dict(),
        "step": run.step,
    }
    torch.save(state, partial)
    partial.rename(work / "checkpoint.pt")


def _loss(
    run: Run, hidden_of: Callable[[Tensor], Tensor], tokens: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Summed weighted loss of a micro-batch, and (sum, count) of the unweighted answer loss."""
    kept = weights[:, 1:] > 0
    hidden = hidden_of(tokens)[:, :-1][kept]
    loss = functional.cross_entropy(
        run.reader.logits(hidden).float(), tokens[:, 1:][kept], reduction="none"
    )
    weight = weights[:, 1:][kept]
    answers = weight >= 1
    return (loss * weight).sum(), torch.stack([loss.detach()[answers].sum(), answers.sum().float()])


def _thin(batch: Batch, seed: int) -> Tensor:
    """Skip half of the light places at random and double the others: logits are the costly part."""
    generator = torch.Generator().manual_seed(seed)
    keep = torch.rand(batch.weights.shape, generator=generator) < 0.5
    light = (batch.weights > 0) & (batch.weights < _LIGHT)
    return torch.where(light, 2 * batch.weights * keep, batch.weights)


def _rank() -> tuple[int, int]:
    """This process's place among the processes that share every batch."""
    return (
        (distributed.get_rank(), distributed.get_world_size())
        if distributed.is_initialized()
        else (0, 1)
    )


def _average(reader: Reader, sums: Tensor) -> None:
    """Sum gradients and ``sums`` over the processes; divide the gradients by the total weight.

    Each process then takes the same optimiser step. The total weight is the last of ``sums``.
    """
    parameters = list(reader.parameters())
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients] + [sums])
    if _rank()[1] > 1:
        distributed.all_reduce(flat)
    flat[: -len(sums)] /= flat[-1]
    at = 0
    for parameter in parameters:
        parameter.grad = flat[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
    sums.copy_(flat[at:])


def train_step(run: Run, batch: Batch, hidden_of: Callable[[Tensor], Tensor]) -> dict[str, float]:
    """One optimiser step over ``batch``; returns the answers' loss and the gradient norm."""
    config = run.config
    seed = (config.seed * 1_000_003 + run.step) * _rank()[1] + _rank()[0]
    weights = _thin(batch, seed).to(config.device)
    tokens = batch.tokens.to(config.device)
    rows = max(1, config.schedule.micro_tokens // tokens.shape[1])
    sums = torch.zeros(3, device=config.device)
    sums[2] = weights[:, 1:].sum()
    for at in range(0, len(tokens), rows):
        with torch.autocast(config.device, torch.bfloat16, enabled=config.bfloat16):
            loss, part = _loss(run, hidden_of, tokens[at : at + rows], weights[at : at + rows])
        loss.backward()
        sums[:2] += part
    _average(run.reader, sums)
    norm = run.optimisers.step(run.step)
    run.step += 1
    return {"answer_loss": float(sums[0] / sums[1].clamp(min=1)), "gradient": norm}


def _batches(run: Run) -> Iterator[Batch]:
    """Batches from the current step on, made here or by worker processes."""
    steps = range(run.step, run.config.schedule.steps)
    if not run.config.workers:
        yield from (batch_at(run.maker, run.config, step, *_rank()) for step in steps)
        return
    loader = torch.utils.data.DataLoader(
        _StepBatches(run.maker, run.config),
        batch_size=None,
        sampler=list(steps),
        num_workers=run.config.workers,
    )
    for tokens, weights in loader:
        yield Batch(tokens, weights)


class _StepBatches(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):  # type: ignore[misc]
    """Batches by step, so that several processes can make them ahead of time."""

    def __init__(self, maker: RowMaker, config: TrainConfig) -> None:
        self.maker, self.config = maker, config

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor]:
        batch = batch_at(self.maker, self.config, step)
        return batch.tokens, batch.weights


@torch.no_grad()  # type: ignore[untyped-decorator]
def validate(run: Run, data: DataConfig) -> float:
    """Mean answer loss on rows of held-out text, the same rows every time."""
    sums = torch.zeros(2)
    for index in range(data.validation_rows):
        row = run.validation.row(random.Random(f"validation/{index}"), 512)
        tokens = torch.tensor([row.tokens], device=run.config.device)
        weights = torch.tensor([row.weights], device=run.config.device)
        sums += _loss(run, run.reader.hidden, tokens, weights)[1].cpu()
    return float(sums[0] / sums[1].clamp(min=1))


@torch.no_grad()  # type: ignore[untyped-decorator]
def validate_kinds(run: Run, rows: int = 6, length: int = 640) -> dict[str, float]:
    """Mean answer loss of each kind of lesson on held-out text, the same rows every time."""
    found = {}
    for name, (task, kind) in _KINDS.items():
        sums = torch.zeros(2)
        for index in range(rows):
            rng = random.Random(f"kinds/{name}/{index}")
            row = run.validation.lessons.single(task, rng, kind, length)
            tokens = torch.tensor([row.tokens], device=run.config.device)
            weights = torch.tensor([row.weights], device=run.config.device)
            sums += _loss(run, run.reader.hidden, tokens, weights)[1].cpu()
        found[name] = round(float(sums[0] / sums[1].clamp(min=1)), 3)
    return found


_KINDS = {
    "complete": ("complete", "plain"),
    "complete, defended": ("complete", "strict"),
    "repeat, defended": ("repeat", "strict"),
    "cloze": ("cloze", "plain"),
    "question": ("ask", "plain"),
    "gap": ("gap", "plain"),
    "edited copy": ("right", "plain"),
    "role": ("role", "plain"),
}


def _compiled(reader: Reader, config: TrainConfig) -> Callable[[Tensor], Tensor]:
    """The forward pass, compiled where that is asked for and can be had."""
    # On a CPU the compiled pass needs a C++ compiler; without one only time is lost.
    if not config.compile or (config.device == "cpu" and shutil.which("g++") is None):
        return reader.hidden
    if config.device == "cpu":
        whole: Callable[[Tensor], Tensor] = torch.compile(reader.hidden, dynamic=False)
        return whole
    # On a GPU a machine is lent by the minute: one layer is compiled once for all of them.
    blocks = [torch.compile(block, dynamic=False) for block in reader.blocks]
    return lambda tokens: reader.hidden(tokens, blocks)


def run_training(
    config: TrainConfig, work: Path, out: Path, stop_after: float | None = None
) -> Run:
    """Train to the last step, exporting to ``out`` on the way.

    Args:
        config: the run.
        work: text, tokenizer, checkpoint and log.
        out: the exported folder.
        stop_after: leave after so many seconds with a checkpoint written (for time-boxed machines).
    """
    run = prepare(config, work)
    hidden_of = _compiled(run.reader, config)
    schedule, began, tokens, smooth = config.schedule, time.monotonic(), 0, None
    for batch in _batches(run):
        seen = train_step(run, batch, hidden_of)
        tokens += batch.tokens.numel() * _rank()[1]
        smooth = (
            seen["answer_loss"] if smooth is None else 0.95 * smooth + 0.05 * seen["answer_loss"]
        )
        if _rank()[0]:
            continue
        if run.step % 5 == 0:
            spent = time.monotonic() - began
            line: dict[str, object] = {
                "step": run.step,
                "row": phase_at(config, run.step).row_tokens,
                "answer_loss": round(smooth, 4),
                "gradient": round(seen["gradient"], 3),
                "rate": round(rate_at(schedule, run.step), 4),
                "tokens_per_second": round(tokens / spent),
                "seconds": round(spent, 1),
            }
            _log(work, line)
        overtime = (
            stop_after is not None and _rank()[1] == 1 and time.monotonic() - began > stop_after
        )
        if run.step % schedule.checkpoint_steps == 0 or run.step == schedule.steps or overtime:
            save_checkpoint(run, work)
        if run.step % schedule.export_steps == 0 or run.step == schedule.steps:
            _log(
                work,
                {"step": run.step, "validation_answer_loss": round(validate(run, config.data), 4)},
            )
            if config.data.lessons:
                _log(work, {"step": run.step, "by_kind": validate_kinds(run)})
            export(run.reader, run.vocabulary, out)
        if run.step in schedule.rungs:
            export(run.reader, run.vocabulary, out / f"step-{run.step}")
        if overtime or run.step == max(schedule.rungs, default=schedule.steps):
            break
    return run


def _log(work: Path, line: dict[str, object]) -> None:
    text = json.dumps(line)
    print(text, flush=True)
    with (work / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(text + "\n")


# The training in several processes that share every batch.
#
# Two processes of one thread beat one of two threads by half on shared machines: a thread pool
# waits at every operation for its slowest thread, two processes meet once per step.

# Large tensors come and go every layer: keeping their pages is worth a third of the speed.
_KEEP_MEMORY = {
    "MALLOC_TOP_PAD_": "200000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000000",
    "MALLOC_MMAP_THRESHOLD_": "10000000000",
}


def _member(rank: int, config: TrainConfig, work: Path, out: Path, meeting: str) -> None:
    """One of several processes that share every batch; the first one writes."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=config.processes
    )
    run_training(config, work, out)
    distributed.destroy_process_group()


def train(config: TrainConfig, work: Path, out: Path, stop_after: float | None) -> None:
    """Train with as many processes as the configuration asks for."""
    if config.processes == 1:
        run_training(config, work, out, stop_after)
        return
    prepare_text(config, work)
    os.environ.update(_KEEP_MEMORY)
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        multiprocessing.spawn(_member, (config, work, out, meeting), config.processes)
