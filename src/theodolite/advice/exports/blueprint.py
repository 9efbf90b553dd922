"""A decoder-only language model in words that trainers share: what their files can say, and no more."""

from __future__ import annotations

from dataclasses import dataclass

from theodolite.advice.counting import attention, linear, mlp, norm
from theodolite.advice.shape import ModelShape


@dataclass(frozen=True)
class LatentAttention:
    """Keys and values through a narrow map; `query_rank` is None where queries are not."""

    query_rank: int | None
    kv_rank: int
    plain: int  # numbers of a head's query and key without positions
    rotary: int  # with them
    value: int

    def params(self, width: int, heads: int) -> int:
        wide = heads * (self.plain + self.rotary)
        rank = self.query_rank
        queries = linear(width, wide, False) if rank is None else linear(width, rank, False) + linear(rank, wide, False)
        keys = linear(width, self.kv_rank + self.rotary, False)
        keys += linear(self.kv_rank, heads * (self.plain + self.value), False)
        return queries + keys + linear(heads * self.value, width, False)


@dataclass(frozen=True)
class Mixture:
    """Layers after the `dense_first` ones have `experts`; `shared` is the width of those that every token passes."""

    experts: int
    active: int
    width: int
    shared: int = 0
    shared_gate: bool = False
    dense_first: int = 0


@dataclass(frozen=True)
class Blueprint:
    depth: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    mlp_width: int
    vocab: int
    positions: int
    tied: bool
    gated: bool = True
    activation: str = "silu"  # or gelu, gelu_tanh
    rms_norm: bool = True  # else layer norms with biases
    norm_eps: float = 1e-5
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    head_norm: bool = False  # queries and keys are normalised in each head
    learned_positions: bool = False  # else rotary ones
    rope_theta: float = 10000.0
    rotary_share: float = 1.0  # of a head's numbers
    parallel: bool = False  # attention and MLP side by side
    one_norm: bool = False  # of both
    mixture: Mixture | None = None
    latent: LatentAttention | None = None

    def shape(self, name: str) -> ModelShape:
        """With its parameters counted from these words alone."""
        mix, latent, bias = self.mixture, self.latent, not self.rms_norm
        sparse = self.depth - mix.dense_first if mix else 0
        if latent is not None:
            one = latent.params(self.width, self.heads)
        else:
            sizes = (self.width, self.heads, self.head_width, self.key_value_heads)
            one = attention(*sizes, input_bias=self.qkv_bias, output_bias=self.output_bias)
        norms = (1 if self.one_norm else 2) * norm(self.width, bias)
        norms += 2 * norm(self.head_width, bias) if self.head_norm else 0
        norms += latent.kv_rank + (latent.query_rank or 0) if latent else 0
        dense = mlp(self.width, self.mlp_width, gated=self.gated, bias=self.mlp_bias)
        expert = mlp(self.width, mix.width, gated=True, bias=False) if mix else 0
        always = mlp(self.width, mix.shared, gated=True, bias=False) if mix and mix.shared else 0
        always += self.width if mix and mix.shared_gate else 0
        parts = {
            "embedding": self.vocab * self.width,
            "positions": self.positions * self.width if self.learned_positions else 0,
            "head": (0 if self.tied else self.vocab * self.width) + (self.vocab if self.head_bias else 0),
            "other": norm(self.width, bias),
            "attention": self.depth * one,
            "mlp": (self.depth - sparse) * dense + sparse * ((mix.experts * expert if mix else 0) + always),
            "router": sparse * mix.experts * self.width if mix else 0,
            "norms": self.depth * norms,
        }
        return ModelShape(
            name=name,
            family="exported",
            modality="language",
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            head_width=latent.value if latent else self.head_width,
            key_value_heads=self.key_value_heads,
            mlp_width=mix.width if mix else self.mlp_width,
            gated=self.gated,
            vocab=self.vocab,
            embedding_rank=None,
            tied=self.tied,
            parts=parts,
            active=sum(parts.values()) - (sparse * (mix.experts - mix.active) * expert if mix else 0),
            experts=mix.experts if mix and sparse else 1,
            active_experts=mix.active if mix and sparse else 1,
            positions=self.positions,
        )
