"""What a training run is made of: model shape, data mix, schedule, and the named presets."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["PRESETS", "DataConfig", "ModelConfig", "ScheduleConfig", "TrainConfig"]


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the decoder (Qwen3 layout)."""

    vocabulary: int = 6144
    width: int = 288
    layers: int = 5
    heads: int = 5
    head_dim: int = 64
    mlp_width: int = 704
    rope_theta: float = 1e6
    norm_epsilon: float = 1e-6
    positions: int = 2048
