"""The family F_d, sums of d monomials in which every variable has a power of at least 1: its ranks and ε-ranks.

Exact ranks come from elimination over GF(p), with coefficients drawn there. ε-ranks need no sampling either: the inner
products of monomials are moments of the inputs, so the spectrum of a member is that of a d×d matrix.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.instruments.rank.exact import SURPLUS
from theodolite.instruments.rank.separation import separation_rank
from theodolite.partition import Partition
from theodolite.tasks.shared.rank_factors import Monomials
from theodolite.tasks.shared.rank_functions import operator_spectrum, truncated_rank
from theodolite.theory.monomials import maximum_matching


class SumOfMonomials(nn.Module):
    """y = Σ_l a_l ∏_i x_i^exponents[l][i] for a vector x; the coefficients a are its weights."""

    def __init__(self, exponents: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.register_buffer("exponents", torch.tensor(exponents))  # (term, variable)
        self.largest = max(max(term) for term in exponents)
        self.coefficients = nn.Parameter(torch.ones(len(exponents)))

    def forward(self, x: Tensor) -> Tensor:
        powers = [torch.ones_like(x)]
        for _ in range(self.largest):
            powers.append(powers[-1] * x)
        table = torch.stack(powers, dim=-1)  # (point, variable, power)
        exponents = self.get_buffer("exponents")
        product = table[:, 0].index_select(1, exponents[:, 0])
        for i in range(1, x.shape[1]):
            product = product * table[:, i].index_select(1, exponents[:, i])
        return (product * self.coefficients).sum(dim=-1)


def draw_exponents(members: int, terms: int, variables: int, largest: int, seed: int) -> np.ndarray:
    """(member, term, variable), uniform in 1 … `largest`."""
    return np.random.default_rng(seed).integers(1, largest + 1, (members, terms, variables))


def measure_monomial_ranks(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """Exact ranks with coefficients drawn and with all of them 1, beside the maximum matchings.

    config: terms, variables, largest, members, partition; or, without terms and members, the sum of all monomials of
    these variables, which is a product of sums where its coefficients are 1.
    """
    variables, largest, partition = config["variables"], config["largest"], config["partition"]
    if "terms" in config:
        family = draw_exponents(config["members"], config["terms"], variables, largest, seed)
    else:
        family = np.array([list(itertools.product(range(1, largest + 1), repeat=variables))])
    ranks, equal, exact = [], [], True
    for number, drawn in enumerate(family):
        measure = partial(
            separation_rank,
            SumOfMonomials(drawn.tolist()),
            partition=partition,
            features=variables,
            points=len(drawn) + SURPLUS,
            seed=(seed + number) % 2**63,
            device=device,
        )
        generic, special = measure(repeats=2), measure(repeats=1, weights="own")
        ranks.append(generic.rank)
        equal.append(special.rank)
        exact = exact and generic.exact
    matchings = [maximum_matching(drawn.tolist(), partition) for drawn in family]
    return {"ranks": ranks, "equal": equal, "matchings": matchings, "terms": family.shape[1], "exact": exact}


def measure_monomial_matchings(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """How many members have a matching of all their terms, and how large it is on average.

    config: terms, variables, largest, members.
    """
    drawn = draw_exponents(config["members"], config["terms"], config["variables"], config["largest"], seed)
    found = [maximum_matching(exponents.tolist()) for exponents in drawn]
    return {"full": sum(rank == config["terms"] for rank in found), "mean": float(np.mean(found))}


def measure_monomial_epsilon(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Exact ε-ranks of random members with normal coefficients, x uniform in [−1, 1]^n or normal.

    config: terms, variables, largest, members, epsilons, inputs, coefficients: "plain", as they are in the family, or
    "balanced", divided by the size of their monomial so that every term has the same expected size.
    """
    terms, variables = config["terms"], config["variables"]
    coefficients = np.random.default_rng([seed, 1]).standard_normal((config["members"], terms))
    ranks: dict[str, list[int]] = {str(epsilon): [] for epsilon in config["epsilons"]}
    drawn = draw_exponents(config["members"], terms, variables, config["largest"], seed)
    for exponents, weights in zip(drawn, coefficients, strict=True):
        spectrum = monomial_spectrum(exponents, weights, config["inputs"], config["coefficients"] == "balanced")
        for epsilon in config["epsilons"]:
            ranks[str(epsilon)].append(truncated_rank(spectrum, epsilon))
    return {"ranks": ranks, "matchings": [maximum_matching(exponents.tolist()) for exponents in drawn]}


def monomial_spectrum(exponents: np.ndarray, weights: np.ndarray, inputs: str, balanced: bool) -> np.ndarray:
    """The singular values, the largest first, of Σ_l weights_l ∏_i x_i^exponents[l, i] between its two halves."""
    split = Partition.left_right(exponents.shape[1])
    left, right = (Monomials(exponents[:, list(side)], inputs) for side in (split.a, split.b))
    if not balanced:
        weights = weights * left.sizes * right.sizes
    return operator_spectrum(left.gram(), right.gram(), weights)
