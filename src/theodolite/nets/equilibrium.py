"""A deep equilibrium model on tokens: one Transformer block, applied until nothing changes any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, choice, positive, register_trained
from theodolite.nets.parts.implicit import Solving, implicit
from theodolite.nets.parts.positions import rotate, rotation, sinusoidal
from theodolite.nets.parts.solvers import SOLVERS, Map
from theodolite.nets.transformer import Turns, attention, attention_symmetries, check_blocks, hidden_keys
from theodolite.theory.sensitivity import InfluenceLaw, no_law


@dataclass(frozen=True)
class Convergence:
    """Of every sequence: applications of the block until ‖f(z) − z‖ reached the tolerance, relative to 1 + ‖z‖, and the
    least residual that was met; `share` of the sequences reached it."""

    steps: Int[Tensor, " batch"]
    residual: Float[Tensor, " batch"]
    reached: Bool[Tensor, " batch"]
    share: float


class TiedBlock(nn.Module):
    """f(z, x) = h + mlp(norm h), h = norm(x) + attend(norm z): a pre-norm block whose stream starts at the input anew.

    Every z is read through a norm and x enters with length √width, so f maps everything into one ball: it has a fixed
    point. It is written as a function of its weights, because the implicit gradient goes to what is handed over.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_input = nn.LayerNorm(width)
        self.before_attention = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.combine = nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def weights(self) -> list[Tensor]:
        """In the order `step` takes them; the norm of the input is applied before, once."""
        parts = (self.before_attention, self.project, self.combine, self.before_mlp, self.widen, self.narrow)
        return [weight for part in parts for weight in (part.weight, part.bias)]

    def step(
        self,
        z: Float[Tensor, "batch token width"],
        x: Float[Tensor, "batch token width"],
        weights: tuple[Tensor, ...],
        hidden: Tensor | None,
        turns: Turns | None,
    ) -> Float[Tensor, "batch token width"]:
        norm, norm_bias, project, project_bias, combine, combine_bias, *mlp = weights
        size = z.shape[-1:]
        mixed = functional.linear(functional.layer_norm(z, size, norm, norm_bias), project, project_bias)
        mixed = mixed.unflatten(-1, (3, self.heads, -1))
        if turns is None:
            query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind(0)
        else:
            both = rotate(mixed[:, :, :2].flatten(2, 3), turns).transpose(1, 2)
            query, key = both.chunk(2, dim=1)
            value = mixed[:, :, 2].transpose(1, 2)
        found = attention(query, key, value, hidden).transpose(1, 2).flatten(-2)
        h = x + functional.linear(found, combine, combine_bias)
        norm, norm_bias, widen, widen_bias, narrow, narrow_bias = mlp
        inner = functional.gelu(functional.linear(functional.layer_norm(h, size, norm, norm_bias), widen, widen_bias))
        return h + functional.linear(inner, narrow, narrow_bias)


@register_trained(
    "equilibrium", "deep equilibrium model: the fixed point of one Transformer block, with the implicit gradient"
)
class Equilibrium(nn.Module):
    """z* = f(z*, x), read out linearly (Bai et al. 2019). A sequence is one row of the solver: its tokens stop at once.

    At most `steps` applications of f, forward and again for the gradient; a sequence that has not reached `tolerance`
    by then takes the best it has met. Nothing holds f to be a contraction in training: `convergence` says whether
    sequences still arrive. Padding takes no part. With a causal mask a token's value depends on later ones through the
    steps of its sequence's solver: as far as the tolerance leaves the fixed point open where the sequence arrives,
    without a bound where it does not.
    """

    def __init__(
        self,
        features: int = 4,
        outputs: int = 1,
        tokens: int | None = None,
        width: int = 32,
        heads: int = 4,
        solver: str = "anderson",
        steps: int = 30,
        tolerance: float = 1e-5,
        positions: str = "rotary",
        causal: bool = True,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, steps=steps)
        check_blocks(1, width, heads, "serial")
        choice("solver", solver, tuple(SOLVERS))
        choice("positions", positions, ("none", "sinusoidal", "rotary"))
        if not tolerance > 0:
            raise BadInput(f"a tolerance of {tolerance!r} is never reached: use one above 0")
        if positions == "rotary" and width < 2 * heads:
            raise BadInput(f"rotary positions turn pairs of numbers and {heads} heads of width {width} have one each")
        self.width, self.positions, self.causal = width, positions, causal
        self.solving = Solving(solver, tolerance, steps)
        self.embed = nn.Linear(features, width)
        self.block = TiedBlock(width, heads)
        self.read = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outputs))

    def forward(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Float[Tensor, "batch token output"]:
        with torch.autocast(x.device.type, enabled=False):  # no fixed point is found to 1e-5 in fewer digits
            f, start, inputs, constants = self.problem(x, present)
            z = implicit(f, start, *inputs, constants=constants, solving=self.solving)
            return self.read(z.unflatten(-1, (-1, self.width)))

    @torch.no_grad()
    def convergence(
        self, x: Float[Tensor, "batch token feature"], present: Bool[Tensor, "batch token"] | None = None
    ) -> Convergence:
        """How the forward solution of these sequences arrives."""
        f, start, inputs, constants = self.problem(x, present)
        found = self.solving.of(lambda z: f(z, *inputs, *constants), start)
        return Convergence(found.steps, found.residual, found.reached, float(found.reached.double().mean()))

    def problem(self, x: Tensor, present: Tensor | None) -> tuple[Map, Tensor, list[Tensor], list[Tensor]]:
        """The map on sequences laid out as vectors, where it starts, what it differentiates by, and its constants.

        The value at padding is 0, so that it has no part in any norm.
        """
        x = self.embed(x)
        tokens, layout = x.shape[1], x.shape[1:]
        if self.positions == "sinusoidal":
            x = x + sinusoidal(tokens, self.width, x)
        # What f would close over may be batched by `vmap`: all of it is handed over, by name.
        constants: dict[str, Tensor] = {}
        if present is not None:
            constants["present"] = present.unsqueeze(-1)
        if self.positions == "rotary":
            constants["cosine"], constants["sine"] = rotation(tokens, self.width // self.block.heads, x)
        if (bias := hidden_keys(x, present, self.causal)) is not None:
            constants["hidden"] = bias
        names, weights = tuple(constants), self.block.weights()
        count = len(weights)
        x = self.block.before_input(x)

        def f(z: Tensor, x: Tensor, *given: Tensor) -> Tensor:
            weights, named = given[:count], dict(zip(names, given[count:], strict=True))
            turns = (named["cosine"], named["sine"]) if "cosine" in named else None
            value = self.block.step(z.unflatten(-1, layout), x, weights, named.get("hidden"), turns)
            return (value * named["present"] if "present" in named else value).flatten(-2)

        start = (x if present is None else x * constants["present"]).detach().flatten(-2)
        return f, start, [x, *weights], list(constants.values())

    def symmetries(self) -> Mapping[str, Symmetry]:
        return attention_symmetries(self.positions, self.causal)

    def influence(self) -> InfluenceLaw:
        return no_law("attention is applied without end; theory has no law for its fixed point")
