"""Memory of one GPU in training: weights, gradients, optimiser and activations, divided as they are sharded.

Weights and gradients in bfloat16 with Adam's master copy and two moments in float32 make 16 bytes a parameter
(Rajbhandari et al. 2020, *ZeRO*). Stage 1 divides the optimiser among replicas, stage 2 the gradients too, stage 3 also
the weights. Gradients stay between passes, as they do where they are accumulated.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from theodolite.advice.budget.activations import BYTES, Activations, Recompute, activations
from theodolite.advice.budget.kernels import Kernels, writing
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

OPTIMISERS = {"adam": 12.0, "adam-8bit": 6.0, "adam-bf16": 4.0, "momentum": 8.0}
"""Bytes a parameter: float32 master and two moments; master and moments of a byte; two bfloat16 moments and no master;
master and one moment, as with SGD or Muon."""


@dataclass(frozen=True)
class Setting:
    """How one pass is laid out. `batch` sequences of `sequence` tokens are what one replica works on at once.

    A replica is `tensor` × `pipeline` GPUs; tensor parallelism divides the tokens too (sequence parallelism). A
    pipeline runs one pass forward, one back: its first stage holds a pass of every stage.
    """

    batch: int = 1
    sequence: int = 2048
    recompute: Recompute = "none"
    zero: int = 0
    gpus: int = 1
    tensor: int = 1
    pipeline: int = 1
    optimiser: str = "adam"
    gradient_bytes: int = BYTES
    kernels: Kernels = "eager"

    def __post_init__(self) -> None:
        for name in ("batch", "sequence", "gpus", "tensor", "pipeline"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BadInput(f"--{_OPTIONS.get(name, name)} is {value}: pass an integer of at least 1")
        if self.zero not in (0, 1, 2, 3):
            raise BadInput(f"there is no ZeRO stage {self.zero}: pass --zero 0, 1, 2 or 3")
        if self.optimiser not in OPTIMISERS:
            raise BadInput(f"there is no optimiser '{self.optimiser}' here: use {', '.join(OPTIMISERS)}")
        if self.gpus % (self.tensor * self.pipeline):
            raise BadInput(
                f"{self.gpus} GPUs are not whole replicas of {self.tensor} × {self.pipeline}: pass --gpus as a multiple"
                f" of {self.tensor * self.pipeline}"
            )

    @property
    def replicas(self) -> int:
        return self.gpus // (self.tensor * self.pipeline)


_OPTIONS = {"tensor": "tp", "pipeline": "pp"}


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on the fullest GPU. `working` is there for a moment: the loss over the logits, or one block at work.

    `gathered`: with stage 3, one block's weights and the next one's.
    """

    weights: float
    gradients: float
    optimiser: float
    activations: float
    working: float
    logits: float  # of `working`, where the loss is the larger moment; else 0
    gathered: float
    checked: bool  # against what torch keeps for this family

    @property
    def states(self) -> float:
        return self.weights + self.gradients + self.optimiser

    @property
    def total(self) -> float:
        return self.states + self.activations + self.working + self.gathered

    def largest(self) -> str:
        """The part that takes most."""
        names = ("weights", "gradients", "optimiser", "activations", "working")
        name = max(names, key=lambda one: getattr(self, one))
        return "logits" if name == "working" and self.logits else name

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "total": self.total}


def training_memory(shape: ModelShape, setting: Setting) -> TrainingMemory:
    """Of the first or the last stage of a pipeline, whichever is fuller; without a pipeline they are the same GPU.

    Parameters:
        shape: of the model
        setting: batch, sequence, recomputation, ZeRO stage, GPUs

    Examples:
        >>> from theodolite.advice.configs import read_config
        >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        >>> shape = read_config(gpt2, "gpt2")
        >>> training_memory(shape, Setting(batch=8, sequence=1024)).states == 16 * shape.params
        True
    """
    kept = Activations(0, 0, 0, 0)  # of what is no Transformer nothing is known
    if shape.speaks:
        kept = activations(shape, setting.batch, setting.sequence, setting.recompute, setting.kernels)
    if setting.pipeline == 1:
        return _stage(shape, setting, shape.params, kept, kept.kept, _moments(shape, kept))
    if setting.pipeline > max(1, shape.depth):
        raise BadInput(f"{shape.depth} blocks do not fill {setting.pipeline} stages: pass --pp {shape.depth} or less")
    table = _table(shape) // BYTES
    blocks, outside = shape.params_in_blocks / setting.pipeline, shape.params - shape.params_in_blocks
    first = blocks + (outside if shape.tied else outside - table)
    last = blocks + table
    ends = (
        _stage(shape, setting, first, kept, kept.blocks, (0, kept.block)),
        _stage(shape, setting, last, kept, kept.blocks / setting.pipeline + kept.outside, _moments(shape, kept)),
    )
    return max(ends, key=lambda end: end.total)


def _stage(
    shape: ModelShape,
    setting: Setting,
    params: float,
    kept: Activations,
    held: float,
    moments: tuple[float, float],
) -> TrainingMemory:
    loss, block = moments
    mine, replicas, stage = params / setting.tensor, setting.replicas, setting.zero
    working = max(loss, block)
    sharded = stage == 3 and replicas > 1 and shape.depth > 0
    return TrainingMemory(
        weights=BYTES * mine / (replicas if stage >= 3 else 1),
        gradients=setting.gradient_bytes * mine / (replicas if stage >= 2 else 1),
        optimiser=OPTIMISERS[setting.optimiser] * mine / (replicas if stage >= 1 else 1),
        activations=held / setting.tensor,
        working=working / setting.tensor,
        logits=kept.logits / setting.tensor if loss >= block else 0.0,
        gathered=2 * BYTES * shape.params_in_blocks / shape.depth / setting.tensor if sharded else 0.0,
        checked=setting.kernels == "eager" and writing(shape, setting.kernels).checked,
    )


def _moments(shape: ModelShape, kept: Activations) -> tuple[float, float]:
    """Most that is there at once, beyond what is kept, at the loss and in the blocks or below them.

    After the loss the gradient of the logits, in bfloat16, meets the output matrix's own. Where that matrix is also the
    table, its gradient waits for the table's, and both for their sum; by then nothing else is kept.
    """
    table = _table(shape) if kept.logits else 0
    loss = max(kept.logits, kept.logits / 6 + table)
    below = (3 if shape.tied else 1) * table - kept.kept
    return loss, max(kept.block + (table if shape.tied else 0), below)


def _table(shape: ModelShape) -> int:
    return 0 if shape.vocab is None else BYTES * shape.vocab * (shape.embedding_rank or shape.width)
