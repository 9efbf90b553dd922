"""Norm-based bounds on the Rademacher complexity of ReLU networks without biases, by their weights and their graph.

A layered network: node j of layer l gives out ReLU(W_lj · [what its predecessors give out]), the last layer one number
without a ReLU. With ρ = Π_l max_j ‖W_lj‖_F, k_l the most predecessors of a node of layer l, m samples of which the part
that input node i sees is x_i:

    R ≤ ρ/m · (1 + √(2(L log 2 + Σ_l log k_l))) · √(Π_l k_l · max_i Σ_samples ‖x_i‖²)

(after Galanti, Xu, Galanti & Poggio 2023: peeling layer by layer, the worst weights of a node stand in one row, and
‖Σ ξ v‖² over k predecessors is at most k times that of the worst of them.) One node a layer, k_l = 1, is a dense
network and gives the bound of Golowich, Rakhlin & Shamir 2018. Read as a dense network, a layer of many nodes has the
Frobenius norm of all of them together, and a shared node counts as often as it stands: that is what the graph saves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.errors import BadInput


def sparse_complexity(norms: Sequence[float], fan_ins: Sequence[int], input_square: float, samples: int) -> float:
    """R for the largest Frobenius norm and fan-in in each layer, and the largest Σ‖x_i‖² of an input node."""
    if len(norms) != len(fan_ins) or not norms:
        raise BadInput(f"{len(norms)} norms and {len(fan_ins)} fan-ins are given: give one of each for every layer")
    depth = len(norms)
    paths = math.fsum(math.log(k) for k in fan_ins)
    logarithm = 1 + math.sqrt(2 * (depth * math.log(2) + paths))
    log_scale = math.fsum(math.log(n) if n > 0 else -math.inf for n in norms) + paths / 2
    return math.exp(log_scale) * logarithm * math.sqrt(input_square) / samples


def dense_complexity(norms: Sequence[float], input_square: float, samples: int) -> float:
    """R of a dense network whose layers have these Frobenius norms; Σ‖x‖² is over whole samples."""
    return sparse_complexity(norms, [1] * len(norms), input_square, samples)


def spectral_complexity(
    spectral: Sequence[float], column_sums: Sequence[float], input_square: float, samples: int, widest: int
) -> float:
    """R by covering numbers: log N(ε) ≤ K/ε² with K = Σ‖x‖² log(2W²) · Π s_l² · (Σ (b_l/s_l)^(2/3))³, s_l spectral
    norms, b_l the norms ‖Wᵀ‖_(2,1), W the widest layer (Bartlett, Foster & Telgarsky 2017, Theorem 3.3), and Dudley's
    integral from 1/m on: 4/m^(3/2) + 18 log m/m · √K."""
    product = math.exp(math.fsum(math.log(s) for s in spectral))
    ratios = math.fsum((b / s) ** (2 / 3) for b, s in zip(column_sums, spectral, strict=True))
    cover = math.sqrt(input_square * math.log(2 * widest**2)) * product * ratios**1.5
    return 4 / samples**1.5 + 18 * math.log(samples) * cover / samples


def path_complexity(path: float, depth: int, largest_input: float, features: int, samples: int) -> float:
    """R ≤ 2^(L−1) · path · √(2 log(2d)/m) · max|x|: the ℓ₁ path norm, the sum over all ways from an input to the output
    of the product of |weights| (Neyshabur, Tomioka & Srebro 2015, with p = 1: a factor 2 for every ReLU layer)."""
    return 2 ** (depth - 1) * path * math.sqrt(2 * math.log(2 * features) / samples) * largest_input


def margin_bound(complexity: float, margin: float, samples: int, confidence: float = 0.99) -> float:
    """By how much the test error exceeds the share of training samples short of that margin, at most:
    2R/γ + √(log(1/(1 − confidence))/(2m))."""
    return 2 * complexity / margin + math.sqrt(math.log(1 / (1 - confidence)) / (2 * samples))
