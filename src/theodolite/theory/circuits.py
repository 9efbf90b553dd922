"""Caps on the separation rank of convolutional and recurrent arithmetic circuits, for any partition.

A circuit is a network of matrices joined by shared indices: a pooling node multiplies channel by channel, so it is one
index of size `width` that three matrices share. Put every matrix on side A or side B; summing over the indices that
both sides use writes the function as that many products, so each choice caps the separation rank and the best choice is
the minimal cut, weights multiplied (Levine et al., 2018).
"""

from __future__ import annotations

import math

from theodolite.errors import OutsideDomain
from theodolite.partition import Partition
from theodolite.theory.cap import multihomogeneous_cap
from theodolite.theory.domain import whole

Cost = tuple[int, int]
"""Least product of cut indices below a matrix, when the matrix stands on side A, on side B."""


def convolutional_cap(partition: Partition, features: int, width: int) -> int:
    """Cap for windows of 2 without overlap: a matrix to `width` channels a token, product pooling, a matrix, … .

    After the last pooling a linear form gives the output. Weights may differ by position.
    """
    tokens = partition.sites
    if tokens & (tokens - 1):
        raise OutsideDomain(
            f"{tokens} tokens are outside the domain: windows of 2 halve the tokens at every level, "
            "pass a partition of 2, 4, 8, … tokens"
        )
    whole("width", width)
    costs = _token_matrices(partition, whole("features", features))
    while len(costs) > 1:
        costs = [_pool(width, *pair) for pair in zip(costs[::2], costs[1::2], strict=True)]
    return min(costs[0])


def recurrent_cap(partition: Partition, features: int, width: int, depth: int = 1) -> int:
    """Cap for h^l_t = (W^l h^l_{t−1}) ⊙ (V^l h^{l−1}_t), h^0_t = x_t, h^l_0 constant.

    The output is a linear form of h^L_N, the last token's top state. The cap is the least of those that apply: by the
    degree of each token, by the states handed over at a left-right cut, and at depth 1 by the minimal cut of the chain.
    """
    whole("features", features)
    whole("width", width)
    whole("depth", depth)
    caps = [_token_degrees(partition, min(features, width), depth)]
    first, last = sorted((partition.a, partition.b))
    if first[-1] < last[0]:
        caps.append(_handed_over(len(last), width, depth))
    if depth == 1:
        state = (1, 1)  # the initial state is a constant and stands on either side for nothing
        for token in _token_matrices(partition, features):
            state = _pool(width, state, token)
        caps.append(min(state))
    return min(caps)


def _token_matrices(partition: Partition, features: int) -> list[Cost]:
    """The matrix that reads a token is on the token's side for nothing, on the other for the token's index."""
    on_a = set(partition.a)
    return [(1, features) if token in on_a else (features, 1) for token in range(partition.sites)]


def _pool(width: int, left: Cost, right: Cost) -> Cost:
    """The matrix above a pooling node: either all three agree on a side, or the pooling index is cut."""
    cut = width * min(left) * min(right)
    return min(left[0] * right[0], cut), min(left[1] * right[1], cut)


def recurrent_degrees(tokens: int, depth: int) -> list[int]:
    """Token j of N (from 1) enters with degree binom(N − j + L − 1, L − 1), the lattice paths from (L, N) to it."""
    return [math.comb(tokens - 1 - site + depth - 1, depth - 1) for site in range(tokens)]


def _token_degrees(partition: Partition, variables: int, depth: int) -> int:
    degrees = recurrent_degrees(partition.sites, depth)
    return multihomogeneous_cap([degrees[i] for i in partition.a], [degrees[i] for i in partition.b], variables)


def _handed_over(later: int, width: int, depth: int) -> int:
    """The first tokens act through the states h^1 … h^L at the cut; h^(L−k) enters with degree binom(m + k − 1, k)."""
    degrees = [math.comb(later + k - 1, k) for k in range(depth)]
    return math.prod(math.comb(width + degree - 1, degree) for degree in degrees)
