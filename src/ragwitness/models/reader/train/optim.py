"""Optimisers: orthogonalised momentum for matrices, Adam for the rest, the constructed part slow.

Early attention holds the constructed circuits. At the full rate they are gone within minutes, so
they move at a twentieth of it; the rest learns around them.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from .config import ScheduleConfig
from .network import Reader

__all__ = ["Muon", "Optimisers", "rate_at"]


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
