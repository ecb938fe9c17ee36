"""What a training run is made of: model shape, data mix, schedule, and the named presets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the decoder (Qwen3 layout)."""

    vocabulary: int = 6144
    width: int = 288
    layers: int = 5
    heads: int = 6
    head_dim: int = 64
    mlp_width: int = 704
    rope_theta: float = 1e6
    norm_epsilon: float = 1e-6
    positions: int = 2048


@dataclass(frozen=True)
class DataConfig:
    """Mix of documents and turns; every share is a probability.

    Attributes:
        tasks: share of each kind of turn.
        edited_share: share of the yes/no turns about a present text that ask for a copy with some
            words changed.
        framed_share: share of the yes/no turns that open with words of the text and close with
            another request.
        rows: share of each kind of row; lessons are described in ``lessons.py``.
        pair_tasks: share of each kind of turn in a pair's rows.
        ask_tasks: share of each kind of turn in a row of questions.
        composed: share of the system prompts that are put together by ``wordings.py``.
    """

    rows: dict[str, float] = field(default_factory=lambda: {"old": 1.0})
    pair_tasks: dict[str, float] = field(
        default_factory=lambda: {
            "complete": 0.30,
            "next": 0.24,
            "repeat": 0.10,
            "cloze": 0.10,
            "yes_no": 0.08,
            "gap": 0.06,
            "ask": 0.12,
        }
    )
    ask_tasks: dict[str, float] = field(
        default_factory=lambda: {
            "ask": 0.56,
            "gap": 0.14,
            "right": 0.16,
            "complete": 0.05,
            "next": 0.04,
            "cloze": 0.05,
        }
    )
    composed: float = 0.0

    tasks: dict[str, float] = field(
        default_factory=lambda: {
            "complete": 0.22,
            "next": 0.22,
            "cloze": 0.32,
            "yes_no": 0.14,
            "question": 0.05,
            "repeat": 0.05,
        }
    )
    edited_share: float = 0.35
    framed_share: float = 0.0
    real_share: float = 0.55
    noise_share: float = 0.55
    plain_share: float = 0.06
    defended_share: float = 0.10
    present_share: float = 0.62
    held_out_share: float = 0.02
    validation_rows: int = 16

    @property
    def lessons(self) -> bool:
        """Whether some rows are lessons, which need the token of a gap."""
        return set(self.rows) != {"old"}


@dataclass(frozen=True)
class Phase:
    """A stretch of training at one row length.

    Attributes:
        until: fraction of the steps at which it ends.
        row_tokens: length of a row.
        focus: factor on the weight of an answer's first token and of masked words, the places
            audits read; raised once copying works.
        absent: factor on the weight of answers whose text is not in the context. They cannot be
            known, so late in training they are mostly noise.
    """

    until: float
    row_tokens: int
    focus: float = 1.0
    absent: float = 1.0


@dataclass(frozen=True)
class ScheduleConfig:
    """Steps, tokens and learning rates. Everything depends on the step, never on the clock.

    A schedule with ``begin`` above 0 goes on from another's last checkpoint, with ``peak`` as
    its share of the full rates. ``rungs`` are the steps whose weights are kept as weaker readers
    of their own.
    """

    begin: int = 0
    peak: float = 1.0
    steps: int = 800
    step_tokens: int = 6144
    micro_tokens: int = 2048
    phases: tuple[Phase, ...] = (
        Phase(0.28, 512),
        Phase(0.45, 1024),
        Phase(0.60, 1024, 2.5),
        Phase(0.72, 1024, 2.0, 0.35),
        Phase(0.86, 1536, 2.0, 0.35),
        Phase(1.0, 2048, 2.0, 0.35),
    )
    warmup_steps: int = 30
    decay_share: float = 0.35
    matrix_rate: float = 3e-3
    early_mlp_scale: float = 0.3
    embedding_rate: float = 5e-4
    gain_rate: float = 6e-4
    early_attention_rate: float = 3e-5
    protected_layers: int = 3
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    checkpoint_steps: int = 25
    export_steps: int = 100
    rungs: tuple[int, ...] = ()


@dataclass(frozen=True)
class TrainConfig:
    """One whole training run.

    Attributes:
        start: folder of an exported reader to go on from, under the repository's root; empty for a
            constructed start.
        inserted: numbers of the layers that the reader to go on from does not have.
    """

    name: str = "cpu"
    seed: int = 0
    threads: int = 1
    processes: int = 1
    workers: int = 0
    device: str = "cpu"
    bfloat16: bool = False
    compile: bool = False
    tokenizer_documents: int = 24000
    start: str = ""
    inserted: tuple[int, ...] = ()
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)


# The same abilities, asked for in many more words.
_WORDINGS = DataConfig(
    tasks={
        "complete": 0.22,
        "next": 0.14,
        "cloze": 0.28,
        "yes_no": 0.20,
        "question": 0.06,
        "repeat": 0.10,
    },
    edited_share=0.25,
    framed_share=0.6,
)

# The same abilities, and those of ``lessons.py``.
_LESSONS = dataclasses.replace(
    _WORDINGS,
    rows={"old": 0.42, "pair": 0.16, "ask": 0.30, "role": 0.12},
    defended_share=0.0,
    plain_share=0.04,
)

# The lessons again, with system prompts in thousands of wordings, more gaps, more yes and no.
_OBEY = dataclasses.replace(
    _LESSONS,
    rows={"old": 0.30, "drill": 0.24, "pair": 0.18, "ask": 0.24, "role": 0.04},
    pair_tasks={
        "complete": 0.20,
        "next": 0.36,
        "repeat": 0.06,
        "cloze": 0.10,
        "yes_no": 0.08,
        "gap": 0.08,
        "ask": 0.12,
    },
    ask_tasks={
        "ask": 0.34,
        "gap": 0.26,
        "right": 0.22,
        "complete": 0.05,
        "next": 0.04,
        "cloze": 0.09,
    },
    composed=0.7,
)

PRESETS: dict[str, TrainConfig] = {
    "cpu": TrainConfig(
        processes=2,
        bfloat16=True,
        compile=True,
        model=ModelConfig(width=256, mlp_width=640),
        schedule=ScheduleConfig(steps=1800, step_tokens=8192, micro_tokens=4096),
    ),
    # The first steps of "cpu" in one process; what it is at each rung is kept as a weaker copier.
    "ladder": TrainConfig(
        name="ladder",
        bfloat16=True,
        compile=True,
        model=ModelConfig(width=256, mlp_width=640),
        schedule=ScheduleConfig(
            steps=1800, step_tokens=8192, micro_tokens=4096, rungs=(100, 250, 400)
        ),
    ),
    # Goes on where "cpu" ended.
    "wordings": TrainConfig(
        name="wordings",
        processes=2,
        bfloat16=True,
        compile=True,
        model=ModelConfig(width=256, mlp_width=640),
        data=_WORDINGS,
        schedule=ScheduleConfig(
            begin=1800,
            peak=0.4,
            steps=2200,
            step_tokens=8192,
            micro_tokens=4096,
            phases=(Phase(0.4, 1024, 2.0, 0.35), Phase(1.0, 2048, 2.0, 0.35)),
            decay_share=0.6,
        ),
    ),
    # Grows reader-1 by two layers and goes on with the lessons.
    "lessons": TrainConfig(
        name="lessons",
        processes=2,
        bfloat16=True,
        compile=True,
        start="experiments/readers/reader-1",
        inserted=(3, 6),
        model=ModelConfig(width=256, mlp_width=640, layers=7),
        data=_LESSONS,
        schedule=ScheduleConfig(
            peak=0.5,
            steps=1200,
            step_tokens=8192,
            micro_tokens=4096,
            phases=(Phase(0.8, 1024, 2.0, 0.35), Phase(1.0, 2048, 2.0, 0.35)),
            warmup_steps=40,
            decay_share=0.6,
        ),
    ),
    # Goes on where "lessons" ended.
    "obey": TrainConfig(
        name="obey",
        bfloat16=True,
        compile=True,
        start="experiments/readers/reader-1",
        inserted=(3, 6),
        model=ModelConfig(width=256, mlp_width=640, layers=7),
        data=_OBEY,
        schedule=ScheduleConfig(
            begin=1200,
            peak=0.4,
            steps=2050,
            step_tokens=8192,
            micro_tokens=4096,
            phases=(
                Phase(0.5, 512, 2.0, 0.35),
                Phase(0.8, 1024, 2.0, 0.35),
                Phase(1.0, 2048, 2.0, 0.35),
            ),
            warmup_steps=20,
            decay_share=0.6,
        ),
    ),
    # 12.0 M parameters: 24 MB in float16. The steps are a guess: the queued script counts what a
    # machine can do in the time that is lent, and sets them.
    "gpu": TrainConfig(
        name="gpu",
        threads=2,
        workers=14,
        device="cuda",
        bfloat16=True,
        compile=True,
        model=ModelConfig(width=320, layers=8, mlp_width=800),
        data=dataclasses.replace(
            _OBEY, rows={"old": 0.28, "drill": 0.14, "pair": 0.16, "ask": 0.26, "role": 0.16}
        ),
        schedule=ScheduleConfig(
            steps=9000,
            step_tokens=65_536,
            micro_tokens=65_536,
            phases=(
                Phase(0.35, 1024),
                Phase(0.75, 1024, 2.0, 0.35),
                Phase(1.0, 2048, 2.0, 0.35),
            ),
            warmup_steps=100,
            decay_share=0.5,
            matrix_rate=2e-3,
            checkpoint_steps=1000,
            export_steps=2000,
        ),
    ),
    "toy": TrainConfig(
        name="toy",
        threads=1,
        tokenizer_documents=300,
        data=_LESSONS,
        model=ModelConfig(vocabulary=1024, width=256, layers=4, mlp_width=128, positions=1024),
        schedule=ScheduleConfig(
            steps=6,
            step_tokens=512,
            micro_tokens=256,
            phases=(Phase(0.5, 128), Phase(1.0, 256)),
            warmup_steps=2,
            checkpoint_steps=2,
            export_steps=3,
        ),
    ),
}
