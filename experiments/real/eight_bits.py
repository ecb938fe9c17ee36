"""Linear layers in 8 bits, for a CPU whose integer arithmetic is the fast one.

In the manner of LLM.int8() (Dettmers and others, 2022): weights are rounded for each output,
activations for each token, and the few input features that hold the outliers are multiplied in
full. Which features these are is seen once, on a text of the model's own language.
"""

from __future__ import annotations

from typing import Any

import torch

_APART = 32  # input features of a layer that are multiplied in full
_LEAST = 1e-8


@torch.compile(dynamic=True)
def _rounded(rows: torch.Tensor, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = rows * kept
    scale = rows.abs().amax(1, keepdim=True).clamp_min(_LEAST) / 127
    return (rows / scale).round().to(torch.int8), scale


@torch.compile(dynamic=True)
def _scaled(
    whole: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, more: torch.Tensor
) -> torch.Tensor:
    return whole * rows * columns + more


class EightBits(torch.nn.Module):
    """A linear layer whose weights are 8-bit integers.

    Args:
        linear: The layer in floating point, with weights of shape (outputs, inputs).
        peaks: The largest absolute value of each input feature, of shape (inputs,).
    """

    def __init__(self, linear: torch.nn.Linear, peaks: torch.Tensor) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        self.apart = peaks.topk(_APART).indices
        self.full = weight[:, self.apart].t().contiguous()
        self.kept = torch.ones(weight.shape[1]).index_fill(0, self.apart, 0.0)
        left = weight * self.kept
        self.scale = left.abs().amax(1).clamp_min(_LEAST) / 127
        self.weight = (left / self.scale[:, None]).round().to(torch.int8).t()
        self.bias = (
            torch.zeros(len(weight)) if linear.bias is None else linear.bias.detach().float()
        )

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Return the outputs for inputs of shape (…, inputs)."""
        rows = given.reshape(-1, given.shape[-1])
        more = torch.addmm(self.bias, rows[:, self.apart], self.full)
        whole, scale = _rounded(rows, self.kept)
        out = _scaled(torch._int_mm(whole, self.weight), scale, self.scale, more)
        return out.reshape(*given.shape[:-1], -1)


def in_eight_bits(model: Any, tokenizer: Any, text: str) -> Any:
    """Return a model of transformers in float32 with every linear layer in 8 bits.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        text: On which the features with outliers are seen.
    """
    model = model.float()
    layers = {n: one for n, one in model.named_modules() if isinstance(one, torch.nn.Linear)}
    # 1. How large each input feature becomes.
    peaks: dict[str, torch.Tensor] = {}

    def see(name: str) -> Any:
        def hook(_: Any, given: tuple[torch.Tensor, ...]) -> None:
            peaks[name] = given[0].detach().abs().flatten(0, -2).amax(0)

        return hook

    hooks = [layer.register_forward_pre_hook(see(name)) for name, layer in layers.items()]
    with torch.inference_mode():
        model(**tokenizer(text, return_tensors="pt"))
    for hook in hooks:
        hook.remove()
    # 2. Each layer in the place of the one that it stands for.
    for name, layer in layers.items():
        model.set_submodule(name, EightBits(layer, peaks[name].clone()))
    return model
