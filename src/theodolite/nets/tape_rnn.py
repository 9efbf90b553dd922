"""An Elman network with a tape it writes on and moves along softly, one cell or one input's length at a time.

Delétang et al. 2022, "Neural networks and the Chomsky hierarchy", after the Baby-NTM of Suzgun et al. 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor, nn

from theodolite.kernels.controller import fits
from theodolite.kernels.launch import usable
from theodolite.kernels.tape import Writer, tape_over_time
from theodolite.nets.contract import Symmetry, positive, register_trained
from theodolite.nets.parts.recurrent import (
    Controller,
    read_out,
    recurrent_influence,
    recurrent_symmetries,
    stacked,
    start_by_inputs,
)
from theodolite.theory.sensitivity import InfluenceLaw

ACTIONS = ("stay", "forward", "back", "jump forward", "jump back")
WRITER_WIDTH = 64


@dataclass(frozen=True)
class Circle:
    """Tapes as circles of `sizes` cells, by their Fourier coefficients: moving along is a product, reading a mean.

    A tape of M cells has M // 2 + 1 coefficients F_k = Σ_m tape_m e^{−2πi k m / M}; the others are their conjugates.
    Tapes of several sizes stand side by side, which shifted copies could not without being gathered cell by cell.
    """

    turns: Float[Tensor, "batch action two_k"]  # e^{2πi k s / M} of every action's shift s: real and imaginary parts
    mean: Float[Tensor, "batch 1 k"]  # how often a coefficient stands among all M, over M

    @classmethod
    def of(
        cls, sizes: Int[Tensor, " batch"], shifts: Int[Tensor, "batch action"], largest: int, like: Tensor
    ) -> Circle:
        k = torch.arange(largest // 2 + 1, device=like.device)
        # Whole turns are left out and the rest is taken in float64: an error in an angle adds up over the tokens.
        part = (shifts[..., None] * k).remainder(sizes[:, None, None]).double() / sizes[:, None, None]
        turns = torch.stack((torch.cos(2 * math.pi * part), torch.sin(2 * math.pi * part)), dim=-1).flatten(-2)
        twice = 2 * k
        own = (twice <= sizes[:, None]).double() * (2 - ((k == 0) | (twice == sizes[:, None])).double())
        return cls(turns.to(like.dtype), (own / sizes[:, None]).to(like.dtype)[:, None])

    def forth(self) -> Float[Tensor, "batch 4 k"]:
        """The cosines and sines of a step and of a jump forward; those back are their conjugates."""
        return self.turns[:, 1:4:2].unflatten(-1, (-1, 2)).mT.flatten(1, 2)

    def empty(self, cell: int) -> Complex[Tensor, "batch k cell"]:
        shape = (self.mean.shape[0], self.mean.shape[-1], cell, 2)
        return torch.view_as_complex(self.mean.new_zeros(shape))

    def write(
        self, tape: Complex[Tensor, "batch k cell"], change: Float[Tensor, "batch cell"]
    ) -> Complex[Tensor, "batch k cell"]:
        """What is added to the cell under the head is added to every coefficient."""
        return tape + change[:, None]

    def move(
        self, tape: Complex[Tensor, "batch k cell"], weights: Float[Tensor, "batch action"]
    ) -> Complex[Tensor, "batch k cell"]:
        turn = (weights[:, None] @ self.turns).unflatten(-1, (-1, 2))
        return torch.view_as_complex(turn).mT * tape

    def read(self, tape: Complex[Tensor, "batch k cell"]) -> Float[Tensor, "batch cell"]:
        """The cell under the head."""
        return (self.mean @ torch.view_as_real(tape).flatten(-2)).unflatten(-1, (-1, 2))[:, 0, :, 0]


class TapeLayer(nn.Module):
    """The controller reads the cell under the head, writes another value there, and the tape becomes the mean of its
    five moves."""

    def __init__(self, features: int, width: int, cell: int, write_layers: int, activation: str) -> None:
        super().__init__()
        self.width, self.cell = width, cell
        self.control = Controller(features, width, cell, len(ACTIONS) + (0 if write_layers else cell), activation)
        self.writer = _writer(width, cell, write_layers) if write_layers else None

    def forward(self, x: Float[Tensor, "batch token feature"], circle: Circle) -> Float[Tensor, "batch token width"]:
        if usable(x, self.control.across.weight) and fits(self.width, self.cell):
            return self.fused(x, circle)
        tokens = x.shape[1]
        hidden, read = x.new_zeros(x.shape[0], self.width), x.new_zeros(x.shape[0], self.cell)
        tape, states = circle.empty(self.cell), []
        for token, entering in enumerate(self.control.into(x.transpose(0, 1)).unbind(0), start=1):
            hidden, heads = self.control(entering, hidden, read)
            states.append(hidden)
            if token < tokens:  # what the last token does to the tape is read by none
                logits, rest = heads.split((len(ACTIONS), heads.shape[-1] - len(ACTIONS)), dim=-1)
                value = rest if self.writer is None else self.writer(hidden)
                tape = circle.move(circle.write(tape, value - read), torch.softmax(logits, dim=-1))
                read = circle.read(tape)
        return torch.stack(states, dim=1)

    def fused(self, x: Float[Tensor, "batch token feature"], circle: Circle) -> Float[Tensor, "batch token width"]:
        """All tokens in one kernel."""
        control, layers = self.control, [each for each in self.writer or () if isinstance(each, nn.Linear)]
        given = control.entering(x), control.across.weight, control.heads.weight, control.heads.bias
        writer = Writer.of([(layer.weight, layer.bias) for layer in layers], control.across.weight)
        made = tape_over_time(*given, writer, circle.forth(), circle.mean[:, 0], control.activation.__name__)
        return made.transpose(0, 1)


def _writer(width: int, cell: int, layers: int) -> nn.Sequential:
    sizes = [width] + [WRITER_WIDTH] * layers
    made: list[nn.Module] = []
    for entering, leaving in zip(sizes, [*sizes[1:], cell], strict=True):
        made += [nn.Linear(entering, leaving), nn.ReLU()]
        start_by_inputs(made[-2].weight, entering)  # pyright: ignore[reportArgumentType]
        nn.init.zeros_(made[-2].bias)  # pyright: ignore[reportArgumentType]
    return nn.Sequential(*made[:-1])


def input_lengths(
    x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None
) -> tuple[Int[Tensor, " batch"], Int[Tensor, " batch"]]:
    """Of every row: the tokens before the run of equal tokens that ends it, and all its tokens; 1 at least.

    An input that is answered afterwards ends with markers, one for every token of the answer, so the first of the two
    is the length of what is to be read, which Delétang et al. hand to their net.
    """
    place = torch.arange(x.shape[1], device=x.device)
    tokens = torch.full_like(place, x.shape[1])[:1].expand(x.shape[0]) if present is None else present.sum(dim=1)
    last = torch.take_along_dim(x, (tokens - 1).clamp(min=0)[:, None, None], dim=1)
    differs = (x != last).any(dim=-1) & (place < tokens[:, None])
    read = torch.where(differs, place + 1, 0).amax(dim=1)
    return read.clamp(min=1), tokens.clamp(min=1)


@register_trained(
    "tape-rnn", "Elman network that writes on a tape and moves along it by a cell or by the input's length"
)
class TapeRNN(nn.Module):
    """`depth` layers with a tape each, a circle of `tape` cells of `cell` numbers.

    None makes it twice as many cells as the row has tokens: moved a cell at a time, the head never comes round.
    A jump goes `jump` cells far; None takes the length of the input, `input_lengths`, which looks ahead for where it
    ends. `write_layers` hidden layers of 64 units stand before what is written; Delétang et al. have two.
    """

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        depth: int = 1,
        width: int = 32,
        cell: int = 8,
        tape: int | None = None,
        jump: int | None = None,
        write_layers: int = 0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        positive(cell=cell, **{name: size for name, size in (("tape", tape), ("jump", jump)) if size is not None})
        if write_layers:
            positive(write_layers=write_layers)
        self.tape, self.jump = tape, jump
        layer = partial(TapeLayer, cell=cell, write_layers=write_layers, activation=activation)
        self.layers, self.read = stacked(layer, features, outputs, depth, width)

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        circle = self.circle(x, present)
        for layer in self.layers:
            x = layer(x, circle)
        return read_out(self.read, x)

    def circle(self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None) -> Circle:
        length, tokens = input_lengths(x, present)
        far = length if self.jump is None else torch.full_like(length, self.jump)
        sizes = 2 * tokens if self.tape is None else torch.full_like(tokens, self.tape)
        one = torch.ones_like(far)
        shifts = torch.stack((0 * one, one, -one, far, -far), dim=-1)
        return Circle.of(sizes, shifts, 2 * x.shape[1] if self.tape is None else self.tape, x)

    def symmetries(self) -> Mapping[str, Symmetry]:
        shared = recurrent_symmetries()
        if self.tape is not None and self.jump is not None:
            return shared
        if self.tape is None and self.jump is None:
            # Of n + 1 tokens jumps are n long on a circle of 2n + 2 cells: two of them lead 2 cells back, for every n,
            # and an odd number of them to where single moves cannot follow.
            shifted = Symmetry(True, "jumps and tape grow alike with the tokens, unless these end in equal ones")
        else:
            grows = "the jumps grow" if self.jump is None else "the tape grows"
            shifted = Symmetry(False, f"{grows} with the tokens, zero ones included")
        return {**shared, "time-shift": shifted}

    def influence(self) -> InfluenceLaw:
        return recurrent_influence()
