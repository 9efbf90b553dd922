"""Labelled images of which something local decides, and the control that takes it away.

- `digits`: scikit-learn's handwritten digits, 8×8 pixels, 10 classes; neighbouring pixels are alike.
- `patterns`: 8×8 pixels of noise, with one of four random 3×3 patterns added at a random place; which one?

With `random` labels every example has that of another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from theodolite.errors import BadInput

NAMES = ("digits", "patterns")
_SIDE, _PATTERN, _CLASSES = 8, 3, 4


@dataclass(frozen=True)
class Labelled:
    """Examples to train on and to test on, their own for every member."""

    train: tuple[Float[Tensor, "member example input"], Int[Tensor, "member example"]]
    test: tuple[Float[Tensor, "member tested input"], Int[Tensor, "member tested"]]
    classes: int

    @property
    def inputs(self) -> int:
        return self.train[0].shape[-1]


def labelled(name: str, members: int, examples: int, generator: torch.Generator, random: bool = False) -> Labelled:
    """`examples` to train on, for each of the members."""
    if name not in NAMES:
        raise BadInput(f"there are no labelled images '{name}': use {', '.join(NAMES)}")
    if members < 1 or examples < 1:
        raise BadInput(f"at least one member and one example are needed, not {members} and {examples}")
    made = {"digits": _digits, "patterns": _patterns}[name](members, examples, generator)
    if random:
        made = replace(made, train=(made.train[0], _mixed(made.train[1], generator)))
    return made


def _digits(members: int, examples: int, generator: torch.Generator) -> Labelled:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    if examples > len(labels) - 400:
        raise BadInput(f"of {len(labels)} digits at least 400 are left for the test: train on fewer than {examples}")
    device = generator.device
    x = torch.as_tensor(pixels, dtype=torch.float32, device=device) / 8 - 1
    y = torch.as_tensor(labels, dtype=torch.int64, device=device)
    picks = _orders(members, len(y), generator)
    first, rest = picks[:, :examples], picks[:, examples:]
    return Labelled((x[first], y[first]), (x[rest], y[rest]), 10)


def _patterns(members: int, examples: int, generator: torch.Generator) -> Labelled:
    device = generator.device
    kinds = torch.randn((members, _CLASSES, _PATTERN**2), generator=generator, device=device)
    kinds = 2 * kinds / kinds.square().mean(-1, keepdim=True).sqrt()
    parts = []
    for count in (examples, 1000):
        x = torch.randn((members, count, _SIDE**2), generator=generator, device=device)
        y = torch.randint(_CLASSES, (members, count), generator=generator, device=device)
        corner = torch.randint(_SIDE - _PATTERN + 1, (2, members, count, 1), generator=generator, device=device)
        within = torch.arange(_PATTERN**2, device=device)
        place = (corner[0] + within // _PATTERN) * _SIDE + corner[1] + within % _PATTERN
        added = kinds.gather(1, y.unsqueeze(-1).expand(-1, -1, _PATTERN**2))
        parts.append((x.scatter_add(2, place, added), y))
    return Labelled(parts[0], parts[1], _CLASSES)


def _mixed(y: Tensor, generator: torch.Generator) -> Tensor:
    return y.gather(1, _orders(len(y), y.shape[1], generator))


def _orders(members: int, count: int, generator: torch.Generator) -> Tensor:
    return torch.rand((members, count), generator=generator, device=generator.device).argsort(1)
