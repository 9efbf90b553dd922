"""Matrix products modulo p: float64 BLAS on slices short enough that every sum stays exact."""

from __future__ import annotations

import torch
from torch import Tensor

from theodolite.field.modulus import Modulus


def product(left: Tensor, right: Tensor, modulus: Modulus) -> Tensor:
    """`left @ right` modulo p for residues, with torch.matmul's broadcasting over leading dimensions."""
    step, axis = modulus.terms, -2 if right.dim() > 1 else -1
    if left.shape[-1] <= step:
        return modulus.reduce_(left @ right)
    parts = zip(left.split(step, dim=-1), right.split(step, dim=axis), strict=True)
    total = torch.stack([modulus.reduce_(a @ b) for a, b in parts]).sum(dim=0)
    return modulus.reduce_(total)


def subtract_product_(target: Tensor, left: Tensor, right: Tensor, modulus: Modulus) -> Tensor:
    """`target -= left @ right` modulo p for matrices of residues, in place and without a temporary of its size."""
    step = modulus.terms  # its definition leaves room for the target itself
    for start in range(0, left.shape[1], step):
        target.addmm_(left[:, start : start + step], right[start : start + step], alpha=-1.0)
        modulus.reduce_(target)
    return target
