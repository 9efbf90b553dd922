"""CUDA kernels, written in Triton: reduction in one pass, the inverse of a small matrix, products of very small ones.

Each has a plain torch counterpart that gives the same residues; they are used where CUDA and Triton are present.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import torch
from torch import Tensor

LARGEST_INVERSE = 64  # the matrix lies in the registers of one block
LARGEST_PRODUCT = 96  # multiplications per pair of matrices, all unrolled; BLAS is better well beyond it


@functools.cache
def available() -> bool:
    return torch.cuda.is_available() and importlib.util.find_spec("triton") is not None


def reduce_(x: Tensor, p: int) -> None:
    """Centred residues of a matrix with unit column stride, in place."""
    rows, columns = x.shape
    if rows and columns:
        block = 1024
        width = -(-columns // block)
        _compiled()["reduce"][(rows * width,)](x, width, columns, x.stride(0), p, BLOCK=block)


def invert(matrix: Tensor, p: int, singular: Tensor) -> Tensor:
    """The inverse of a matrix of at most 64 rows; `singular` becomes 1 when a leading minor is zero."""
    n = matrix.shape[0]
    result = torch.empty(n, n, dtype=torch.float64, device=matrix.device)
    size = max(16, 1 << (n - 1).bit_length())
    _compiled()["invert"][(1,)](matrix, matrix.stride(0), result, n, p, singular, SIZE=size, num_warps=8)
    return result


def multiply(left: Tensor, right: Tensor, p: int) -> Tensor:
    """Batched product of very small matrices modulo p, one thread per pair: (n, i, k) and (n, k, j) to (n, i, j).

    The batch is laid out last in memory, so that neighbouring threads read neighbouring numbers. The result keeps that
    layout, and a product of products does not move it again.
    """
    batch, height, inner = left.shape
    width = right.shape[2]
    a, b = left.permute(1, 2, 0).contiguous(), right.permute(1, 2, 0).contiguous()
    result = torch.empty(height, width, batch, dtype=torch.float64, device=left.device)
    block = 128
    _compiled()["multiply"][(-(-batch // block),)](
        *(a, b, result, batch, p), HEIGHT=height, INNER=inner, WIDTH=width, BLOCK=block
    )
    return result.permute(2, 0, 1)


@functools.cache
def _compiled() -> dict[str, Any]:
    import triton  # pyright: ignore[reportMissingImports]
    import triton.language as tl  # pyright: ignore[reportMissingImports]

    @triton.jit
    def residue(x, p, scale):
        return x - tl.floor(x * scale + 0.5) * p

    @triton.jit
    def reduce_kernel(x_ptr, width, columns, stride, prime, BLOCK: tl.constexpr):
        p = prime.to(tl.float64)
        program = tl.program_id(0)
        row = (program // width).to(tl.int64)
        column = (program % width).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        at = x_ptr + row * stride + column
        x = tl.load(at, mask=column < columns, other=0.0)
        tl.store(at, residue(x, p, 1.0 / p), mask=column < columns)

    @triton.jit
    def invert_kernel(a_ptr, stride, out_ptr, n, prime, singular_ptr, SIZE: tl.constexpr):
        p = prime.to(tl.float64)
        scale = 1.0 / p
        i = tl.arange(0, SIZE)
        inside = (i[:, None] < n) & (i[None, :] < n)
        identity = tl.where(i[:, None] == i[None, :], 1.0, 0.0).to(tl.float64)
        a = tl.load(a_ptr + i[:, None].to(tl.int64) * stride + i[None, :], mask=inside, other=0.0)
        a = tl.where(inside, a, identity)
        zero_seen = 0
        for k in range(n):
            row = tl.sum(tl.where(i[:, None] == k, a, 0.0), axis=0)
            column = tl.sum(tl.where(i[None, :] == k, a, 0.0), axis=1)
            pivot = tl.sum(tl.where(i == k, row, 0.0), axis=0)
            zero_seen = zero_seen | (pivot == 0.0).to(tl.int32)
            # pivot^(p-2), 26 bits are enough below 2^25
            exponent = prime - 2
            inverted = pivot * 0.0 + 1.0
            base = pivot
            for _ in range(26):
                inverted = tl.where((exponent & 1) == 1, residue(inverted * base, p, scale), inverted)
                base = residue(base * base, p, scale)
                exponent = exponent >> 1
            row = tl.where(i == k, inverted, residue(row * inverted, p, scale))
            column = tl.where(i == k, 0.0, column)
            a = tl.where(i[None, :] == k, 0.0, a)
            a = residue(a - column[:, None] * row[None, :], p, scale)
            a = tl.where(i[:, None] == k, row[None, :], a)
        tl.store(out_ptr + i[:, None].to(tl.int64) * n + i[None, :], a, mask=inside)
        if zero_seen == 1:
            tl.store(singular_ptr, 1)

    @triton.jit
    def multiply_kernel(
        a_ptr, b_ptr, out_ptr, batch, prime,
        HEIGHT: tl.constexpr, INNER: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        p = prime.to(tl.float64)
        scale = 1.0 / p
        pair = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = pair < batch
        step = tl.full([], 0, tl.int64) + batch  # a batch of 1 arrives as a constant
        a, b, out = a_ptr + pair, b_ptr + pair, out_ptr + pair
        for i in tl.static_range(HEIGHT):  # pyright: ignore[reportGeneralTypeIssues]
            for j in tl.static_range(WIDTH):  # pyright: ignore[reportGeneralTypeIssues]
                total = tl.zeros([BLOCK], dtype=tl.float64)
                for k in tl.static_range(INNER):
                    x = tl.load(a + (i * INNER + k) * step, mask=inside, other=0.0)
                    y = tl.load(b + (k * WIDTH + j) * step, mask=inside, other=0.0)
                    total += x * y
                tl.store(out + (i * WIDTH + j) * step, residue(total, p, scale), mask=inside)

    # Triton resolves the names a kernel uses among its module's globals.
    globals().update(tl=tl, residue=residue)
    return {"reduce": reduce_kernel, "invert": invert_kernel, "multiply": multiply_kernel}
