"""Self-attention without softmax: the network of Eqs. 7.5 and 7.6, of degree 3 per layer."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.parts.projection import embedding, readout
from theodolite.partition import Partition
from theodolite.theory.attention import degree
from theodolite.theory.attention_counts import coefficients_log2, weight_degree
from theodolite.theory.attention_growth import standing_bounds
from theodolite.theory.attention_rank import separation_cap


class AttentionLayer(nn.Module):
    """y^i ← Σ_h W^{O,h} Σ_j ⟨W^{Q,h} y^i, W^{K,h} y^j⟩ W^{V,h} y^j (Eq. 7.6)."""

    def __init__(self, width: int, heads: int, attention_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_width = attention_width
        self.project = nn.Linear(width, 3 * heads * attention_width, bias=False)
        self.combine = nn.Linear(heads * attention_width, width, bias=False)

    def forward(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch token width"]:
        batch, tokens, _ = x.shape
        projected = self.project(x).view(batch, tokens, 3, self.heads, self.attention_width)
        query, key, value = projected.permute(2, 0, 3, 1, 4).unbind(0)  # (batch, head, token, attention width)
        if tokens <= self.attention_width:
            mixed = (query @ key.transpose(-1, -2)) @ value
        else:  # without a softmax the product may be taken from the right: cheaper for many tokens
            mixed = query @ (key.transpose(-1, -2) @ value)
        return self.combine(mixed.transpose(1, 2).reshape(batch, tokens, -1))


@register(
    name="self-attention",
    summary="self-attention without softmax (Eq. 7.6), degree 3 per layer",
    kind="sequence",
    polynomial=True,
    defaults={"tokens": 8},
)
class SelfAttention(nn.Module):
    """`depth` layers of Eq. 7.6; `embedding_rank` r gives inputs of r features a map M of rank r (Eq. 7.9)."""

    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = None,
        tokens: int | None = None,
        depth: int = 2,
        width: int = 4,
        heads: int = 1,
        attention_width: int | None = None,
        embedding_rank: int | None = None,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width, heads=heads)
        if embedding_rank is not None:
            positive(embedding_rank=embedding_rank)
        if attention_width is None:
            if width % heads:
                raise BadInput(
                    f"{heads} heads do not divide width {width}: choose a divisor of it, or set the attention width"
                )
            attention_width = width // heads
        positive(attention_width=attention_width)
        self.features = features or embedding_rank or width
        self.depth, self.width, self.heads, self.attention_width = depth, width, heads, attention_width
        self.embedding_rank = min(self.features, embedding_rank or width, width)
        self.embed = embedding(self.features, width, embedding_rank)
        self.layers = nn.Sequential(*(AttentionLayer(width, heads, attention_width) for _ in range(depth)))
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        return self.read(self.layers(self.embed(x)))

    def predict(self, partition: Partition, token: int) -> Prediction:
        here, other = (partition.a, partition.b) if token in partition.a else (partition.b, partition.a)
        shape = (self.depth, self.width, self.heads, self.attention_width, len(here), len(other))
        cap = separation_cap(*shape, embedding_rank=self.embedding_rank)
        maps = [m for m in self.embed.modules() if isinstance(m, nn.Linear)]
        entry = math.prod(m.in_features for m in maps)
        read = not isinstance(self.read, nn.Identity)
        found = functools.partial(
            Prediction,
            degree(self.depth),
            cap,
            weight_degree=weight_degree(self.depth, len(maps), read),
            coefficients_log2=coefficients_log2(*shape[:4], partition.sites, entry, read),
        )
        if not partition.balanced:
            return found(reason="Theorems 7.1 and 7.2 speak of balanced partitions")
        if self.embedding_rank < self.width:
            return found(reason="Theorem 7.3 (low embedding rank) gives orders of growth only")
        if self.heads * self.attention_width != self.width:
            return found(reason="Theorems 7.1 and 7.2 take attention width = width / heads")
        bounds = standing_bounds(self.depth, self.width, self.heads, min(len(here), len(other)))
        return found(lower=bounds.lower, upper=bounds.upper, reason=bounds.reason)

    def symmetries(self) -> Mapping[str, Symmetry]:
        over_set = Symmetry(True, "every token meets the sum over the set of tokens")
        resting = Symmetry(True, "without a softmax or biases, zero tokens add nothing to the sum")
        return {"translation": over_set, "permutation": over_set, "time-shift": resting}
