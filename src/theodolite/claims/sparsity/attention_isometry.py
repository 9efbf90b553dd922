"""Lemma 1 of compositional sparsity: which W_Q, W_K make X W_Q W_Kᵀ Xᵀ a restricted isometry, and how good a one.

With as many tokens as W_Q and W_K have columns, or fewer, and tokens that are independent, W_Q = W_K = X⁺ gives the
unit matrix. With more tokens T than columns d_k the scores have rank d_k. Let X W_Q have orthonormal columns; then the
scores keep lengths exactly as W_Kᵀ Xᵀ does, a d_k × T matrix: any one where X has rank T, else one whose rows lie in
the range of X. W_K is written down (equiangular columns) or descended to on the restricted isometry constant itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.claims.sparsity.isometry import Constant, blocks, restricted_isometry, supports
from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.theory.isometry import equiangular, least_constant
from theodolite.training.loop import in_turn, train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine

_ORDER = 3  # the order whose constant is descended on: all supports are tried in every step


def identity_weights(tokens: Float[Tensor, "token inputs"]) -> tuple[Tensor, Tensor]:
    """W_Q and W_K, one column a token, whose scores are the unit matrix; the tokens must be independent."""
    if int(torch.linalg.matrix_rank(tokens)) < len(tokens):
        raise BadInput(f"{len(tokens)} tokens of rank {int(torch.linalg.matrix_rank(tokens))} are dependent: use fewer")
    inverse = torch.linalg.pinv(tokens)
    return inverse, inverse


def query_weights(tokens: Float[Tensor, "token inputs"], rank: int) -> Float[Tensor, "inputs rank"]:
    """W_Q with X W_Q orthonormal: the scores keep lengths as W_Kᵀ Xᵀ does."""
    _, sizes, right = torch.linalg.svd(tokens, full_matrices=False)
    if not bool(sizes[rank - 1] > 1e-9 * sizes[0]):
        raise BadInput(f"tokens of rank below {rank} have no scores of that rank: use fewer columns in W_Q and W_K")
    return right[:rank].T / sizes[:rank]


def scores(tokens: Tensor, query: Tensor, key: Tensor) -> Float[Tensor, "token token"]:
    return (tokens @ query) @ (tokens @ key).T


def key_weights(
    tokens: Float[Tensor, "token inputs"], rank: int, generator: torch.Generator, steps: int
) -> Float[Tensor, "inputs rank"]:
    """W_K that gradient descent finds for a small constant of order 3: a soft maximum of |λ − 1| over all supports,
    ever sharper."""
    # In the orthonormal basis of X's range descent is not slowed by how X stretches; W_K follows from it.
    left, sizes, right = torch.linalg.svd(tokens, full_matrices=False)
    kept = sizes > 1e-9 * sizes[0]
    left, sizes, right = left[:, kept], sizes[kept], right[kept]
    start = torch.randn(len(sizes), rank, generator=generator, dtype=tokens.dtype, device=tokens.device)
    chosen = supports(len(tokens), _ORDER, tokens.device)
    sharpness = 10.0 * 30.0 ** (torch.arange(steps, dtype=tokens.dtype, device=tokens.device) / steps)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        columns, (sharp,) = left @ weights["keys"][0], batch
        values = torch.linalg.eigvalsh(blocks(columns @ columns.T, chosen))
        off = torch.stack((1 - values[:, 0], values[:, -1] - 1)).flatten()
        return (torch.logsumexp(sharp * off, dim=0) / sharp)[None]

    found = train(
        {"keys": (start / (left @ start).norm(dim=1).mean())[None]},
        loss,
        in_turn(sharpness),
        steps=steps,
        rule=ADAM,
        rates=Rates(0.02),
        schedule=cosine(steps),
        graphs=False,  # eigenvalues wait for the device
    )
    return right.T @ (found["keys"][0] / sizes[:, None])


def measure_attention_isometry(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: tokens, inputs, rank, orders, draws, steps. Constants (low, high) by order for every draw of the tokens.

    `identity` where it exists, `built` where T = 2·rank = prime + 1 and the tokens are independent, `optimised`; beside
    them a Gaussian d_k × T matrix (`gaussian`), the same with columns of equal length (`normalised`), a product of two
    Gaussian T × d_k matrices (`product`) and attention with Gaussian W_Q and W_K (`drawn`).
    """
    device = resolve_device(device)
    count, inputs, rank, orders = (config[name] for name in ("tokens", "inputs", "rank", "orders"))
    generator = torch.Generator(device).manual_seed(seed)
    found = []
    for draw in range(config["draws"]):
        x = torch.randn(count, inputs, generator=generator, dtype=torch.float64, device=device)
        matrices = _matrices(x, rank, config["steps"], generator)
        searching = torch.Generator(device).manual_seed(seed_of([seed, draw]))
        found.append({
            name: [_pair(restricted_isometry(matrix, order, searching, config.get("starts", 16))) for order in orders]
            for name, matrix in matrices.items()
        })  # fmt: skip
    reached = min(rank, inputs, count)
    return {"draws": found, "least": [least_constant(count, reached, order) for order in orders]}


def _pair(constant: Constant) -> list[float]:
    return [constant.low, constant.high]


def _matrices(x: Tensor, rank: int, steps: int, generator: torch.Generator) -> dict[str, Tensor]:
    count, inputs = x.shape

    def gaussian(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=x.dtype, device=x.device)

    found: dict[str, Tensor] = {}
    if count <= min(inputs, rank):
        found["identity"] = scores(x, *identity_weights(x))
    else:
        query = query_weights(x, rank)
        found["optimised"] = scores(x, query, key_weights(x, rank, generator, steps))
        if inputs >= count and _buildable(count, rank):
            columns = torch.from_numpy(equiangular(count - 1)).to(x)
            found["built"] = scores(x, query, torch.linalg.pinv(x) @ columns.T)
    plain = gaussian(min(rank, count), count)
    found["gaussian"] = plain
    found["normalised"] = plain / plain.norm(dim=0)
    found["product"] = gaussian(count, rank) @ gaussian(rank, count)
    found["drawn"] = scores(x, gaussian(inputs, rank), gaussian(inputs, rank))
    return found


def _buildable(columns: int, rank: int) -> bool:
    prime = columns - 1
    return columns == 2 * rank and prime % 4 == 1 and all(prime % k for k in range(2, int(prime**0.5) + 1))
