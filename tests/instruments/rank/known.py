"""Functions whose separation rank is known beforehand, and an evaluation of attention in plain integers."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tests.theory import modular


class SumOfSquares(nn.Module):
    """y = Σ_r (u_r·a)²·(v_r·b)³ over R terms, a the first half of a vector and b the second.

    Squares of generic linear forms in n variables are independent up to n(n+1)/2 of them, cubes for longer, so the
    separation rank between the halves is min(R, n(n+1)/2).
    """

    def __init__(self, features: int, terms: int) -> None:
        super().__init__()
        self.half = features // 2
        self.u = nn.Parameter(torch.randn(terms, self.half))
        self.v = nn.Parameter(torch.randn(terms, features - self.half))

    def forward(self, x: Tensor) -> Tensor:
        a, b = x[:, : self.half], x[:, self.half :]
        return ((a @ self.u.T) ** 2 * (b @ self.v.T) ** 3).sum(-1)


class TwoTokens(nn.Module):
    """The same with two tokens of several features."""

    def __init__(self, features: int, tokens: int, terms: int) -> None:
        super().__init__()
        self.u, self.v = (nn.Parameter(torch.randn(terms, features)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return ((x[:, 0] @ self.u.T) ** 2 * (x[:, 1] @ self.v.T) ** 2).sum(-1, keepdim=True)


class Diagonal(nn.Module):
    """y = Σ_k σ_k·a_k·b_k: for inputs of mean 0 and variance 1 the operator's singular values are the σ_k."""

    def __init__(self, features: int, ratio: float = 0.5) -> None:
        super().__init__()
        self.half = features // 2
        self.register_buffer("sigma", ratio ** torch.arange(self.half, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return (x[:, : self.half] * x[:, self.half :] * self.sigma).sum(-1)


def attention(depth: int, width: int, heads: int, attention_width: int, token: int, rng: random.Random) -> Callable:
    """Entry 0 of the token's output of Eq. 7.6 with drawn weights, in integers modulo a 61-bit prime."""
    layers = [
        [
            (modular.draw(rng, width, attention_width), *(modular.draw(rng, attention_width, width) for _ in range(3)))
            for _ in range(heads)
        ]
        for _ in range(depth)
    ]

    def network(tokens: list[list[int]]) -> int:
        y = tokens
        for layer in layers:
            new = [[0] * width for _ in y]
            for output, query, key, value in layer:
                queries, keys, values = ([modular.apply(m, t) for t in y] for m in (query, key, value))
                for i, q in enumerate(queries):
                    scores = [sum(a * b for a, b in zip(q, k, strict=True)) for k in keys]
                    mixed = [sum(s * v[c] for s, v in zip(scores, values, strict=True)) for c in range(attention_width)]
                    new[i] = [n + o for n, o in zip(new[i], modular.apply(output, mixed), strict=True)]
            y = [[n % modular.PRIME for n in row] for row in new]
        return y[token][0]

    return network
