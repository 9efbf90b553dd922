"""What the backward pass finds kept of a block, which depends on how its operations are written.

`eager` is what the modules of transformers keep when torch runs them as they stand; `fused` what they keep where a norm
and an activation function are one operation each, as Korthikanti et al. 2022 count it. Attention is flash attention in
both: no matrix of scores is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

Kernels = Literal["eager", "fused"]


@dataclass(frozen=True)
class Writing:
    """Of one block: `norm_bytes` a norm keeps per number beside its output, `activations` tensors of the MLP's width.

    `head_norms`: queries and keys are normed as well. `attention_bytes` per number of attention's width are kept a
    second time, because something larger or a copy of it is. `loss_bytes` per logit are there at most at once.
    `checked`: a test compares this with what torch keeps for a real model of the family.
    """

    norm_bytes: int
    activations: int
    norms: int = 2
    head_norms: bool = False
    attention_bytes: int = 0
    loss_bytes: int = 12
    checked: bool = False


# A layer norm keeps its input. A root-mean-square norm written out keeps it in float32, and normed in bfloat16. A gated
# MLP keeps the gate, its activation, what it gates and their product; an activation function its input and output.
_LAYER_NORM, _RMS_NORM = 2, 6
_GATED = Writing(_RMS_NORM, 4)
_PLAIN = Writing(_LAYER_NORM, 2)
_EAGER = {
    **dict.fromkeys(("llama", "mistral", "qwen2"), replace(_GATED, checked=True)),
    "qwen3": replace(_GATED, head_norms=True, checked=True),
    "gemma": replace(_GATED, norm_bytes=8, checked=True),  # normed numbers stay in float32 until they are scaled
    "gpt2": replace(_PLAIN, activations=5, checked=True),  # the tanh approximation written out
    # Values are a part of what queries and keys are made from, and keep all of it: 4. Attention's output is copied: 2.
    # Both norms of a parallel block have one input: −2.
    "gpt_neox": replace(_PLAIN, attention_bytes=4, checked=True),
    "opt": replace(_PLAIN, activations=1, checked=True),  # a rectifier needs its output alone
}
# float32 logits (Korthikanti et al., section 4.3); the loss writes its gradient over them.
_FUSED_LOSS = 4


def writing(shape: ModelShape, kernels: Kernels) -> Writing:
    """How the blocks of this family are written.

    Examples:
        >>> from theodolite.advice.configs import read_config
        >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        >>> writing(read_config(gpt2, "gpt2"), "eager").activations
        5
    """
    if kernels == "fused":
        heads = shape.family in _EAGER and _EAGER[shape.family].head_norms
        return Writing(_LAYER_NORM, 3 if shape.gated else 2, head_norms=heads, loss_bytes=_FUSED_LOSS)
    return _EAGER.get(shape.family, _GATED if shape.gated else _PLAIN)


def kernels_named(name: str) -> Kernels:
    if name not in get_args(Kernels):
        raise BadInput(f"--kernels '{name}' is neither of {' and '.join(get_args(Kernels))}: write one of them")
    return name  # type: ignore[return-value]
