"""Degree of a net along random lines, and how many tokens it multiplies together, both over GF(p)."""

from __future__ import annotations

from itertools import product as cartesian

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.field import FieldTensor, Modulus
from theodolite.instruments.rank.field_sample import FieldSample

_LARGEST = 1 << 14


def line_degree(sample: FieldSample) -> int:
    """The degree of t ↦ y(u + t·v) for drawn u, v: the total degree of y but for a chance of at most degree/p.

    Exact for the drawn line: the polynomial has degree k when its k-th finite difference is the last that is not 0.
    """
    m, evaluate = sample.modulus, sample.evaluate()
    origin, direction = sample.whole("line", 2)
    size = 64
    while True:
        steps = torch.arange(size, dtype=torch.float64, device=sample.device).view(-1, 1, 1)
        values = evaluate(m.reduce_(origin + m.reduce_(steps * direction)))
        found = degree_of_values(values, m)
        # A margin of vanishing differences tells a finished polynomial from one that is longer than the line.
        if found < size - 16:
            return found
        if size >= min(_LARGEST, m.p // 2):
            raise BadInput(f"the degree is at least {found}, too large to be found modulo {m.p}: use a shallower net")
        size *= 4


def weight_degree(sample: FieldSample) -> int | None:
    """The degree of t ↦ y at the weights u + t·v, u and v drawn, as in `line_degree`; None where it is too large."""
    m, point = sample.modulus, sample.whole("line", 1)
    ends = [sample.function.draw_weights(sample.stream(f"line/{k}"), m, sample.device) for k in range(2)]
    for size in (64, 256, 1024):
        values = []
        for t in range(size):
            turned = {
                name: FieldTensor(m.reduce(origin.residues + m.reduce(ends[1][name].residues * t)), m)
                for name, origin in ends[0].items()
            }
            values.append(sample.function.over_field(turned, m)(point))
        if (found := degree_of_values(torch.cat(values), m)) < size - 16:
            return found
    return None


def degree_of_values(values: Tensor, modulus: Modulus) -> int:
    """The degree of the polynomial with these values at 0, 1, 2, …; the largest of several beside each other."""
    found = 0
    for k in range(len(values)):
        if bool((values[0] != 0).any()):
            found = k
        values = modulus.reduce_(values[1:] - values[:-1])
    return found


def mixing(sample: FieldSample, most: int) -> int:
    """The largest number of tokens, up to `most`, whose values some term of y multiplies together.

    Inclusion–exclusion: the alternating sum of y over all subsets of a set of tokens (the others 0) keeps just the
    terms that hold every token of the set. The sets grow from the token that is read.
    """
    sites, token = sample.partition.sites, sample.function.token
    if most > sites:
        raise BadInput(f"{most} tokens cannot be told apart with {sites}: use at least {most} tokens")
    if most > 20:
        raise BadInput(f"inclusion–exclusion over {most} tokens needs 2^{most} evaluations: use at most 20")
    m, evaluate = sample.modulus, sample.evaluate()
    x = sample.whole("mixing", 1)[0]
    chosen = [token, *(i for i in range(sites) if i != token)][:most]
    subsets = torch.tensor(list(cartesian((0.0, 1.0), repeat=most)), dtype=torch.float64, device=sample.device)
    mask = torch.zeros(len(subsets), sites, 1, dtype=torch.float64, device=sample.device)
    mask[:, chosen, 0] = subsets
    values = torch.cat([evaluate(part * x) for part in mask.split(1 << 12)])
    # Möbius transform over the lattice of subsets, one token at a time.
    table = values.view(*([2] * most))
    for axis in range(most):
        low, high = table.unbind(axis)
        table = torch.stack([low, m.reduce_(high - low)], axis)
    size = subsets.sum(1)
    present = table.reshape(-1) != 0
    return int(size[present].max()) if bool(present.any()) else 0
