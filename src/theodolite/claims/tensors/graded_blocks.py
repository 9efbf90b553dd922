"""The homogeneous parts of self-attention between two groups of tokens, evaluated over GF(p).

By Lemma 1 of docs/cap.md the output is y = e_pᵀ F_L(S_A + S_B) x, with S_A and S_B the d × d Gram matrices of the two
sides' tokens and x the output token. Put S_A + t·S_B, and carry F_l as a polynomial in t: the coefficient of t^c is
the part of degree c in S_B. The tokens enter through S_A, S_B and x alone, so their number costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.field import Modulus, draw_residues, product

Polynomial = list[Tensor]  # coefficients of 1, t, t², …: matrices (row, column, a point, b point); sizes of 1 broadcast

_CPU_NUMBERS = 1 << 20  # in one coefficient of one tile
_CUDA_NUMBERS = 1 << 26


@dataclass(frozen=True)
class AttentionForms:
    """F_{l+1} = Σ_h P_h·F_l S F_lᵀ·R_h·F_l, the weights of a layer being P_h = W^O_h W^V_h and R_h = W^K_hᵀ W^Q_h."""

    modulus: Modulus
    start: Float[Tensor, "width features"]  # F_0: the embedding, or 1
    layers: tuple[tuple[Float[Tensor, "head width width"], Float[Tensor, "head width width"]], ...]
    entry: int = 0

    @classmethod
    def drawn(
        cls,
        stream: str,
        modulus: Modulus,
        device: torch.device,
        depth: int,
        width: int,
        heads: int,
        attention_width: int,
        features: int,
    ) -> AttentionForms:
        """Weights by the draw rule, under the names that they have in the net `self-attention`."""
        shapes = {"embed.weight": (width, features)} if features != width else {}
        for layer in range(depth):
            shapes[f"layers.{layer}.project.weight"] = (3 * heads * attention_width, width)
            shapes[f"layers.{layer}.combine.weight"] = (width, heads * attention_width)
        weights = {name: draw_residues(f"{stream}/{name}", s, modulus, device=device) for name, s in shapes.items()}
        return cls.of(weights, modulus, depth, heads)

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], modulus: Modulus, depth: int, heads: int) -> AttentionForms:
        """The parameters of `self-attention`, as residues."""
        layers = []
        for layer in range(depth):
            project, combine = (weights[f"layers.{layer}.{part}.weight"] for part in ("project", "combine"))
            width = combine.shape[0]
            query, key, value = project.view(3, heads, -1, width).unbind(0)
            out = combine.view(width, heads, -1).transpose(0, 1)
            layers.append((product(out, value, modulus), product(key.transpose(1, 2), query, modulus)))
        width, like = layers[0][0].shape[1], layers[0][0]
        start = weights.get("embed.weight", torch.eye(width, dtype=like.dtype, device=like.device))
        return cls(modulus, start, tuple(layers))

    def part(self, s: Polynomial, x: Tensor, order: int) -> Tensor:
        """The coefficient of t^order of y at S = s[0] + t·s[1] and the output token x (feature, a point, 1)."""
        form = [self.start[:, :, None, None]]
        for left, right in self.layers[:-1]:
            form = self._layer(form, s, left, right, order)
        return self._last(form, s, x, order)

    def _layer(self, form: Polynomial, s: Polynomial, left: Tensor, right: Tensor, order: int) -> Polynomial:
        gram = self._times(self._times(form, s, order), [_transposed(f) for f in form], order)
        # Σ_h P_h G R_h is one linear map of the entries of G, whatever the number of heads
        heads, width, _ = left.shape
        table = product(left.reshape(heads, -1).T, right.reshape(heads, -1), self.modulus)
        table = table.view(width, width, width, width).permute(0, 3, 1, 2).reshape(width**2, width**2)
        return self._times([self._mapped(table, g).view(g.shape) for g in gram], form, order)

    def _last(self, form: Polynomial, s: Polynomial, x: Tensor, order: int) -> Tensor:
        """Σ_h (Fᵀ P_hᵀe_p)ᵀ S (Fᵀ R_h F x): where one entry is asked for, vectors suffice."""
        left, right = self.layers[-1]
        readers = left[:, self.entry]
        width = readers.shape[1]
        if len(readers) > width:  # more heads than entries: collect them by the entry of the reader
            right = product(readers.T, right.flatten(1), self.modulus).view(-1, *right.shape[1:])
            readers = torch.eye(width, dtype=readers.dtype, device=readers.device)
        read = [self._mapped(readers, f).view(len(readers), *f.shape[1:]) for f in form]
        asked = [
            self._mapped(right.flatten(0, 1), y).view(len(readers), width, *y.shape[2:])
            for y in self._times(form, [x[:, None]], order)
        ]
        return self._contract(self._times(read, s, order), self._times(asked, form, order), order)

    def _mapped(self, table: Tensor, x: Tensor) -> Tensor:
        """A constant linear map of the leading dimensions of x, as many of them as it takes."""
        return product(table, x.reshape(table.shape[1], -1), self.modulus)

    def _times(self, left: Polynomial, right: Polynomial, order: int) -> Polynomial:
        """The product of two matrix polynomials, cut off behind t^order."""
        return [self._coefficient(c, left, right) for c in range(min(order, len(left) + len(right) - 2) + 1)]

    def _coefficient(self, c: int, left: Polynomial, right: Polynomial) -> Tensor:
        """Row by column, each step over all pairs of points at once: BLAS is slow at matrices of a few entries."""
        terms = [(left[a], right[c - a]) for a in range(len(left)) if 0 <= c - a < len(right)]
        points = torch.broadcast_shapes(*(factor.shape[2:] for term in terms for factor in term))
        total = left[0].new_zeros(left[0].shape[0], right[0].shape[1], *points)
        added = 0
        for a, b in terms:
            for k in range(a.shape[1]):
                if added == self.modulus.terms - 1:  # the residue that a reduction leaves counts as a term
                    self.modulus.reduce_(total)
                    added = 0
                total.addcmul_(a[:, k, None], b[None, k])
                added += 1
        return self.modulus.reduce_(total)

    def _contract(self, left: Polynomial, right: Polynomial, order: int) -> Tensor:
        """The coefficient of t^order of the sum over heads and features of left · right."""
        rows = [p.reshape(1, -1, *p.shape[2:]) for p in left]
        columns = [p.reshape(-1, 1, *p.shape[2:]) for p in right]
        return self._coefficient(order, rows, columns)[0, 0]


def _transposed(x: Tensor) -> Tensor:
    return x.transpose(0, 1)


@dataclass(frozen=True)
class Side:
    """Points of one side: Gram matrices, and on the output's side the output token."""

    gram: Float[Tensor, "point features features"]
    token: Float[Tensor, "point features"]

    @classmethod
    def drawn(
        cls, stream: str, points: int, tokens: int, features: int, modulus: Modulus, device: torch.device
    ) -> Side:
        """Gram matrices of drawn tokens; with as many tokens as features, any symmetric matrix and any token.

        That changes no rank: restricted to tokens, q(S) and q(S)·x vanish only if q does (docs/cap.md, Step 5).
        """
        if tokens >= features:
            token = draw_residues(f"{stream}/token", (points, features), modulus, device=device)
            square = draw_residues(f"{stream}/gram", (points, features, features), modulus, device=device)
            return cls(square.tril() + square.tril(-1).transpose(1, 2), token)
        x = draw_residues(f"{stream}/tokens", (points, features, tokens), modulus, device=device)
        return cls(product(x, x.transpose(1, 2), modulus), x[:, :, 0])


def block_matrix(forms: AttentionForms, a: Side, b: Side, degree: int, total: int) -> Float[Tensor, "a b"]:
    """M_ij: the part of degree `degree` in S_B, of `total` in S_A + S_B, at all pairs of points."""
    rows, columns = len(a.gram), len(b.gram)
    width = max(forms.start.shape)
    numbers = _CUDA_NUMBERS if a.gram.device.type == "cuda" else _CPU_NUMBERS
    pairs = max(1, numbers // (width * width))
    # Near to square: what belongs to one side alone is computed once a tile, for each point of that side.
    wide = min(columns, max(math.isqrt(pairs), pairs // rows))
    high = min(rows, max(1, pairs // wide))
    matrix = torch.empty(rows, columns, dtype=a.gram.dtype, device=a.gram.device)
    gram_a, token, gram_b = a.gram.permute(1, 2, 0), a.token.T, b.gram.permute(1, 2, 0)
    for top in range(0, rows, high):
        s_a, x = gram_a[:, :, top : top + high, None], token[:, top : top + high, None]
        for left in range(0, columns, wide):
            s_b = gram_b[:, :, None, left : left + wide]
            if 2 * degree <= total:  # count the degree from the side where it is lower: fewer coefficients
                tile = forms.part([s_a, s_b], x, degree)
            else:
                tile = forms.part([s_b, s_a], x, total - degree)
            matrix[top : top + high, left : left + wide] = tile
    return matrix
