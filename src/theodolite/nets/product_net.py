"""Blocks of any real degree that train: products of d linear maps (Comment 3.1 of the degree paper), normalised.

A block is y = x + norm(Q(norm x))/√L with Q(x) = ∏_k (W_k x + b_k), entry by entry, and norm the division by the root
mean square over the width. Three choices keep it trainable:

- **biases**, without which a net of odd degrees is an odd function and one of even degrees an even function;
- **the first weights**: one factor carries the signal, W_1 x, and the others start near 1. A product of d independent
  normal numbers has a kurtosis of 3^d: one unit would outshout all others and its gradient theirs;
- **the residual path**, without which 12 blocks do not train at the rate that suits 4.

A degree that is not whole is made in one of three ways (`power`):

- **share**: a share of the units has ⌈d⌉ factors, the others ⌊d⌋. Degree and number of parameters are those of d, and
  without normalisation the block is still a polynomial;
- **signed**: every unit has ⌈d⌉ factors, each sign(u)|u|^p with p = d/⌈d⌉. It has the parameters of degree ⌈d⌉;
- **learnt**: the exponents of every unit are trained, from the same start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.nets.contract import Symmetry, choice, number_list, positive, register
from theodolite.nets.parts.degrees import Degrees, known_count
from theodolite.nets.parts.projection import embedding

POWERS = ("share", "signed", "learnt")
_MODULATION = 0.5  # root mean square, at first, of what the factors but the first add to their 1, all of them together
_ROUNDING = 1e-3  # sign(u)|u|^p is u(u² + this)^((p−1)/2): for p < 1 its slope at 0 would be infinite
_SMALLEST = 1e-6  # of a mean square, so that a block that says 0 is not divided by 0


class ProductBlock(nn.Module):
    """Q: `degree` factors per unit, on `width` numbers. `matrices` counts its square matrices: d of them; d−1, where
    the input itself is one of the factors; d+1, where one more mixes the products."""

    def __init__(self, width: int, degree: int | float, power: str, matrices: str, bias: bool) -> None:
        super().__init__()
        self.width = width
        few, many = math.floor(degree), math.ceil(degree)
        self.more = round((degree - few) * width) if power == "share" else 0  # units with one factor more
        self.each = few if power == "share" else many
        self.exponent = 1.0 if power == "share" else degree / many
        self.carried = matrices == "d-1"
        drawn = self.each - self.carried
        self.factors = nn.Linear(width, drawn * width + self.more, bias=bias)
        self.exponents = _exponents(self.each, width, self.exponent) if power == "learnt" else None
        self.mix = nn.Linear(width, width, bias=False) if matrices == "d+1" else None
        self._start(signal=0 if self.carried else width)

    def _start(self, signal: int) -> None:
        """The rows before `signal` carry it; the others begin near 1, where there are biases to say so."""
        outputs = self.factors.out_features
        others = (outputs - signal) / self.width  # factors per unit, on average
        spread = torch.full((outputs, 1), 1 / math.sqrt(self.width))
        if self.factors.bias is not None:
            spread[signal:] *= _MODULATION / math.sqrt(max(others, 1.0))
            nn.init.zeros_(self.factors.bias)
            nn.init.ones_(self.factors.bias[signal:])
        nn.init.normal_(self.factors.weight)
        with torch.no_grad():
            self.factors.weight.mul_(spread.to(self.factors.weight.device))

    def forward(self, x: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
        drawn = self.factors(x)
        whole = drawn.shape[-1] - self.more
        parts = ([x] if self.carried else []) + list(drawn[..., :whole].split(self.width, dim=-1))
        if self.exponents is not None:
            powers = F.softplus(self.exponents)
            parts = [signed_power(u, powers[k]) for k, u in enumerate(parts)]
        elif self.exponent != 1:
            parts = [signed_power(u, self.exponent) for u in parts]
        product = parts[0]
        for factor in parts[1:]:
            product = product * factor
        if self.more:
            product = torch.cat([product[..., : self.more] * drawn[..., whole:], product[..., self.more :]], dim=-1)
        return product if self.mix is None else self.mix(product)

    @property
    def degree(self) -> float:
        """What it is now, the mean over the units: the degree asked for up to whole units, or as it was learnt."""
        if self.exponents is not None:
            return float(F.softplus(self.exponents.detach()).sum(dim=0).mean())
        return self.each * self.exponent + self.more / self.width


@register(
    name="product-net",
    summary="blocks of any real degree that train: normalised products of linear maps",
    kind="vector",
    polynomial=False,
    defaults={"features": 8},
)
class ProductNet(nn.Module):
    """`depth` blocks of degree `degree`, or one per entry of `degrees`, first block first ("3,2" or numbers).

    Inputs should have about unit variance; those of another size than `width` pass a linear map first, so that every
    matrix of a block is square. `normalise=False` with `bias=False` and `power="share"` is a polynomial net, whose
    exact rank can be measured.
    """

    def __init__(
        self,
        features: int = 8,
        outputs: int = 1,
        depth: int = 3,
        width: int = 16,
        degree: int | float = 3.0,
        degrees: Degrees | None = None,
        power: str = "share",
        residual: bool = True,
        matrices: str = "d",
        bias: bool = True,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        positive(features=features, outputs=outputs, depth=depth, width=width)
        choice("power", power, POWERS)
        known_count(matrices)
        asked = (degree,) * depth if degrees is None else number_list("degrees", degrees)
        for one in asked:
            _real_degree(one, matrices)
        self.features, self.width, self.depth = features, width, len(asked)
        self.residual, self.normalise = residual, normalise
        self.embed = embedding(features, width)
        self.blocks = nn.ModuleList(ProductBlock(width, float(one), power, matrices, bias) for one in asked)
        self.read = nn.Linear(width, outputs, bias=bias)

    def forward(self, x: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch output"]:
        norm = _unit if self.normalise else _same
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            # The first block reads the inputs as they are: divided by their root mean square, they would lose it.
            product = norm(block(norm(x) if self.residual and number else x))
            x = x + product * (1 / math.sqrt(self.depth)) if self.residual else product
        return self.read(norm(x) if self.residual else x)

    def block_degrees(self) -> list[float]:
        """Of every block, as it is now."""
        return [block.degree for block in self.blocks if isinstance(block, ProductBlock)]

    def symmetries(self) -> Mapping[str, Symmetry]:
        own = Symmetry(False, "every entry has weights of its own")
        return {"translation": own, "permutation": own}


def signed_power(u: Tensor, exponent: int | float | Tensor) -> Tensor:
    """sign(u)·|u|^p, rounded off at 0, where its slope would be infinite for p < 1."""
    return u * (u.square() + _ROUNDING) ** ((exponent - 1) / 2)


def _unit(x: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + _SMALLEST)


def _same(x: Tensor) -> Tensor:
    return x


def _exponents(factors: int, width: int, start: int | float) -> nn.Parameter:
    """Numbers whose softplus, log(1 + exp), is `start`."""
    return nn.Parameter(torch.full((factors, width), math.log(math.expm1(start))))


def _real_degree(degree: int | float, matrices: str) -> None:
    number = isinstance(degree, int | float) and not isinstance(degree, bool) and math.isfinite(degree)
    if not number or degree < 1:
        raise BadInput(f"the degree of a block must be a number of at least 1, not {degree!r}")
    if matrices == "d-1" and degree < 2:
        raise BadInput(f"a block of degree {degree} with one matrix less has none: use a degree of at least 2")
