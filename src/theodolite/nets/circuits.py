"""Arithmetic circuits: convolutional and recurrent networks whose only nonlinearity is multiplication."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Prediction, Symmetry, positive, register
from theodolite.nets.parts.projection import readout
from theodolite.partition import Partition
from theodolite.theory.circuits import convolutional_cap, recurrent_cap, recurrent_degrees


@register(
    name="conv-circuit",
    summary="convolutional arithmetic circuit: 1×1 convolutions and product pooling over windows of 2",
    kind="sequence",
    polynomial=True,
    defaults={"tokens": 8},
)
class ConvolutionalCircuit(nn.Module):
    """Every level maps channels linearly, then multiplies neighbouring tokens channel by channel, down to one token.

    The depth is log₂ of the number of tokens. Weights are shared over a level's places, as in a convolution.
    """

    def __init__(self, features: int | None = None, outputs: int | None = 1, tokens: int = 8, width: int = 4) -> None:
        super().__init__()
        positive(width=width, tokens=tokens)
        if tokens < 2 or tokens & (tokens - 1):
            raise BadInput(f"a convolutional circuit halves its tokens: {tokens} is not a power of two from 2 on")
        self.features, self.width, self.tokens = features or width, width, tokens
        self.levels = nn.ModuleList(
            nn.Linear(self.features if level == 0 else width, width, bias=False)
            for level in range(tokens.bit_length() - 1)
        )
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch output"]:
        for convolve in self.levels:
            x = convolve(x)
            x = x[:, 0::2] * x[:, 1::2]
        return self.read(x[:, 0])

    def predict(self, partition: Partition, token: int) -> Prediction:
        cap = convolutional_cap(partition, self.features, self.width)
        return Prediction(self.tokens, cap, reason="the cap is the minimal cut of the circuit's graph")

    def symmetries(self) -> Mapping[str, Symmetry]:
        pooled = Symmetry(self.tokens == 2, "tokens are multiplied pair by pair, as a tree; one pair commutes")
        return {"translation": pooled, "permutation": pooled}


@register(
    name="recurrent-circuit",
    summary="recurrent arithmetic circuit: state and input meet in a product entry by entry",
    kind="sequence",
    polynomial=True,
    defaults={"tokens": 8},
)
class RecurrentCircuit(nn.Module):
    """h^l_t = (W^l h^l_{t−1}) ⊙ (V^l h^{l−1}_t), h^0_t = x^t, from a learnt first state; then a linear readout."""

    def __init__(
        self,
        features: int | None = None,
        outputs: int | None = 1,
        tokens: int | None = None,
        depth: int = 1,
        width: int = 4,
    ) -> None:
        super().__init__()
        positive(depth=depth, width=width)
        self.features, self.depth, self.width = features or width, depth, width
        sizes = [self.features] + [width] * (depth - 1)
        self.inputs = nn.ModuleList(nn.Linear(size, width, bias=False) for size in sizes)
        self.states = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in sizes)
        self.first = nn.Parameter(torch.ones(depth, width))
        self.read = readout(width, outputs)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token output"]:
        sequence = list(x.unbind(1))
        for layer, (into, across) in enumerate(zip(self.inputs, self.states, strict=True)):
            state = self.first[layer].expand(x.shape[0], -1)
            for t, entering in enumerate(sequence):
                state = across(state) * into(entering)
                sequence[t] = state
        return self.read(torch.stack(sequence, dim=1))

    def predict(self, partition: Partition, token: int) -> Prediction:
        """Tokens after the one that is read do not enter, so the circuit is the one that ends there."""
        degrees = recurrent_degrees(token + 1, self.depth)
        kept_a = tuple(i for i in partition.a if i <= token)
        kept_b = tuple(i for i in partition.b if i <= token)
        if not kept_a or not kept_b:
            return Prediction(sum(degrees), 1, reason="all tokens before the one that is read stand on one side")
        cap = recurrent_cap(Partition(kept_a, kept_b), self.features, self.width, self.depth)
        return Prediction(sum(degrees), cap, reason="the cap counts the ways the state at the cut can enter")

    def symmetries(self) -> Mapping[str, Symmetry]:
        ordered = Symmetry(False, "a recurrence reads its tokens in order")
        resting = Symmetry(False, "a zero token sets the state to 0, from which it never returns")
        return {"translation": ordered, "permutation": ordered, "time-shift": resting}
