"""Matrix products modulo p: float64 BLAS on slices short enough that every sum stays exact."""

from __future__ import annotations

import torch
from torch import Tensor

from theodolite.field import kernels
from theodolite.field.modulus import Modulus


def product(left: Tensor, right: Tensor, modulus: Modulus) -> Tensor:
    """`left @ right` modulo p for residues, with torch.matmul's broadcasting over leading dimensions."""
    step, axis = modulus.terms, -2 if right.dim() > 1 else -1
    if _very_small(left, right, step):
        return kernels.multiply(left, right, modulus.p)
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


def _very_small(left: Tensor, right: Tensor, terms: int) -> bool:
    """Many pairs of matrices of a few entries, on a GPU: BLAS would spend its time on launching and padding them."""
    if left.device.type != "cuda" or left.dim() != 3 or right.dim() != 3 or left.shape[0] != right.shape[0]:
        return False
    work = left.shape[1] * left.shape[2] * right.shape[2]
    return 0 < work <= kernels.LARGEST_PRODUCT and left.shape[2] <= terms and kernels.available()
