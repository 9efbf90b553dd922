"""Memory of a model that writes: its weights, by bits, and what it keeps of the tokens so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.advice.cost import cost
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

BITS = (4, 8, 16)
GROUP = 128
"""Weights that share a 16-bit scale where they have fewer than 16 bits; tables and norms keep 16."""

CONTEXTS = (2048, 8192, 32768, 131072)


@dataclass(frozen=True)
class InferenceMemory:
    """Bytes. `cache` is for all sequences of the batch, by tokens of context. What a pass computes comes on top.

    `bits` of None: as the configuration says that weights are stored, else bfloat16.
    """

    bits: int | None
    batch: int
    weights: float
    cache: Mapping[int, int]

    def total(self, context: int) -> float:
        return self.weights + self.cache[context]

    def to_json(self) -> dict[str, Any]:
        rows = [{"context": n, "cache": kept, "total": self.weights + kept} for n, kept in self.cache.items()]
        return {"bits": self.bits, "batch": self.batch, "weights": self.weights, "contexts": rows}


def inference_memory(
    shape: ModelShape, *, bits: int | None = None, batch: int = 1, context: int | None = None
) -> InferenceMemory:
    """Weights, and the cache at 2k, 8k, 32k and 128k tokens as far as the model reads, and at `context`.

    Parameters:
        shape: of the model
        bits: of a weight in the blocks; as stored unless given
        batch: sequences at once
        context: one more number of tokens to give the cache at

    Examples:
        >>> from theodolite.advice.configs import read_config
        >>> llama = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        ...          "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}
        >>> inference_memory(read_config(llama, "Llama 3 8B"), context=8192).cache[8192] / 2**30
        1.0
    """
    if bits is not None and bits not in BITS:
        raise BadInput(f"weights of {bits} bits are not in use: pass --bits 4, 8 or 16")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise BadInput(f"--batch is {batch}: pass an integer of at least 1")
    weights = float(cost(shape, 1).weight_bytes)
    if bits is not None:
        small = sum(shape.parts.get(part, 0) for part in ("attention", "mlp"))
        each = bits / 8 + (0 if bits == 16 else 2 / GROUP)
        weights = each * small + 2 * (shape.params - small)
    longest = shape.positions or max(CONTEXTS)
    lengths = sorted({n for n in CONTEXTS if n <= longest} | {context or min(CONTEXTS[0], longest)})
    return InferenceMemory(
        bits=bits,
        batch=batch,
        weights=weights,
        cache={n: batch * kept_bytes(shape, n) for n in lengths},
    )


def kept_bytes(shape: ModelShape, context: int) -> int:
    """Of one sequence with this many tokens behind it; 0 where nothing is kept, or where it is not known."""
    return cost(shape, context).context_cache_bytes or 0
