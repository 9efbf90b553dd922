"""Every operation a field tensor supports, against numpy arrays of Python integers and fractions."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.field import FieldTensor, Modulus

from .truth import NEAR_2_23, NEAR_2_25, integers, residues, tensor

P = [7, 101, NEAR_2_23, NEAR_2_25]


def field(values: np.ndarray, p: int) -> FieldTensor:
    return FieldTensor(tensor(values), Modulus(p))


def values_of(x: FieldTensor) -> np.ndarray:
    assert isinstance(x, FieldTensor)
    assert x.shape == x.residues.shape
    assert x.dtype == x.residues.dtype == torch.float64
    assert float(x.residues.abs().max() if x.numel() else 0) <= x.modulus.p // 2 + 2, "not reduced"
    return np.array(x.modulus.canonical(x.residues).tolist(), dtype=object).reshape(tuple(x.shape))


def exact(number: float) -> Fraction:
    return Fraction(number)


def fractions(array: Any) -> np.ndarray:
    array = np.asarray(array, dtype=np.float64)
    return np.array([Fraction(v) for v in array.reshape(-1).tolist()], dtype=object).reshape(array.shape)


def convolve(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """A convolution in any number of dimensions, one output entry at a time."""
    dims = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * dims)
    places = [(x.shape[2 + i] - dilation * (w.shape[2 + i] - 1) - 1) // stride + 1 for i in range(dims)]
    out = np.empty((x.shape[0], w.shape[0], *places), dtype=object)
    each, outs = x.shape[1] // groups, w.shape[0] // groups
    for n, o in itertools.product(range(out.shape[0]), range(out.shape[1])):
        for place in itertools.product(*map(range, places)):
            total = 0 if bias is None else bias[o]
            for c in range(each):
                for at in itertools.product(*map(range, w.shape[2:])):
                    where = tuple(stride * i + dilation * k for i, k in zip(place, at, strict=True))
                    total += x[(n, o // outs * each + c, *where)] * w[(o, c, *at)]
            out[(n, o, *place)] = total
    return out


def assigned(x, y):
    x = x + 0
    x[1:, ::2] = y
    return x


def accumulated(x, y):
    x = x + 0
    x += y
    x *= y
    x -= 3
    return x


def in_place_field(x, y):
    x = x.clone()
    x.add_(y).mul_(y).sub_(3)
    return x


def where_mask(shape):
    return np.arange(np.prod(shape)).reshape(shape) % 3 == 0


C23 = np.array([[0.1, -2.5, 3.0], [1e-3, 0.0, -7.25]])
MASK = where_mask((2, 3))
IDS = np.array([[0, 2], [3, 3]])

# name: (shapes of the inputs, the operation on tensors, the same on numpy arrays of integers)
Case = tuple[list[tuple[int, ...]], Callable[..., Any], Callable[..., Any]]
TABLE: dict[str, Case] = {
    "add": ([(2, 3), (2, 3)], lambda x, y: x + y, lambda x, y: x + y),
    "add broadcast": ([(2, 1, 3), (4, 1)], lambda x, y: x + y, lambda x, y: x + y),
    "add alpha": ([(2, 3), (3,)], lambda x, y: torch.add(x, y, alpha=-7), lambda x, y: x - 7 * y),
    "add alpha to a number": ([(3,)], lambda x: torch.add(x, 5, alpha=3), lambda x: x + 15),
    "add number": ([(2, 3)], lambda x: x + 0.1, lambda x: x + exact(0.1)),
    "add to number": ([(2, 3)], lambda x: 10**15 + x, lambda x: x + 10**15),
    "sub": ([(2, 3), (2, 3)], lambda x, y: x - y, lambda x, y: x - y),
    "sub alpha": ([(2, 3), (2, 3)], lambda x, y: torch.sub(x, y, alpha=5), lambda x, y: x - 5 * y),
    "rsub number": ([(2, 3)], lambda x: 0.75 - x, lambda x: exact(0.75) - x),
    "rsub alpha": ([(2, 3)], lambda x: torch.rsub(x, 4, alpha=9), lambda x: 4 - 9 * x),
    "rsub constant": ([(2, 3)], lambda x: torch.from_numpy(C23) - x, lambda x: fractions(C23) - x),
    "neg": ([(2, 3)], lambda x: -x, lambda x: -x),
    "pos": ([(2, 3)], lambda x: +x, lambda x: x),
    "mul": ([(2, 3), (2, 3)], lambda x, y: x * y, lambda x, y: x * y),
    "mul broadcast": ([(2, 1, 3), (4, 1)], lambda x, y: x * y, lambda x, y: x * y),
    "mul number": ([(2, 3)], lambda x: -1e-3 * x, lambda x: x * exact(-1e-3)),
    "mul bool": ([(2, 3)], lambda x: x * True, lambda x: x),
    "mul large number": ([(2, 3)], lambda x: x * (2**63 - 1), lambda x: x * (2**63 - 1)),
    "mul float32 constant": (
        [(2, 3)],
        lambda x: x * torch.from_numpy(C23).float(),
        lambda x: x * fractions(C23.astype(np.float32)),
    ),
    "mul integer constant": (
        [(2, 3)],
        lambda x: x * torch.tensor([10**12, -1, 3]),
        lambda x: x * np.array([10**12, -1, 3], dtype=object),
    ),
    "mul mask": ([(2, 3)], lambda x: x * torch.from_numpy(MASK), lambda x: x * MASK.astype(int)),
    "div number": ([(2, 3)], lambda x: x / 3, lambda x: x * Fraction(1, 3)),
    "div fraction": ([(2, 3)], lambda x: x / -0.375, lambda x: x / exact(-0.375)),
    "div by a root": ([(2, 3)], lambda x: x / 3**0.5, lambda x: x / exact(3**0.5)),
    "div constant": (
        [(2, 3)],
        lambda x: x / torch.tensor([3.0, 0.5, -2.0]),
        lambda x: x * np.array([Fraction(1, 3), Fraction(2), Fraction(-1, 2)], dtype=object),
    ),
    "div integer constant": (
        [(2, 3)],
        lambda x: x / torch.tensor([3, 5, -2]),
        lambda x: x * np.array([Fraction(1, 3), Fraction(1, 5), Fraction(-1, 2)], dtype=object),
    ),
    "div in place": ([(2, 3)], lambda x: x.clone().div_(torch.tensor(5.0)), lambda x: x * Fraction(1, 5)),
    "pow 0": ([(2, 3)], lambda x: x**0, lambda x: x * 0 + 1),
    "pow 1": ([(2, 3)], lambda x: x**1, lambda x: x),
    "pow 2": ([(2, 3)], lambda x: x**2, lambda x: x**2),
    "pow 3.0": ([(2, 3)], lambda x: x**3.0, lambda x: x**3),
    "pow 13": ([(2, 3)], lambda x: torch.pow(x, 13), lambda x: x**13),
    "pow in place": ([(2, 3)], lambda x: x.clone().pow_(3), lambda x: x**3),
    "square": ([(2, 3)], lambda x: x.square(), lambda x: x**2),
    "addcmul": (
        [(2, 3), (2, 3), (3,)],
        lambda x, y, z: torch.addcmul(x, y, z, value=-0.5),
        lambda x, y, z: x + y * z * Fraction(-1, 2),
    ),
    "dot": ([(40,), (40,)], lambda x, y: x @ y, lambda x, y: x @ y),
    "vdot": ([(40,), (40,)], lambda x, y: torch.vdot(x, y), lambda x, y: x @ y),
    "mv": ([(3, 40), (40,)], lambda x, y: x @ y, lambda x, y: x @ y),
    "vm": ([(40,), (40, 3)], lambda x, y: x @ y, lambda x, y: x @ y),
    "mm": ([(3, 40), (40, 2)], lambda x, y: x @ y, lambda x, y: x @ y),
    "mm past one exact sum": ([(2, 1100), (1100, 2)], lambda x, y: x @ y, lambda x, y: x @ y),
    "bmm": ([(2, 3, 40), (2, 40, 2)], lambda x, y: torch.bmm(x, y), lambda x, y: x @ y),
    "matmul broadcast": ([(2, 1, 3, 5), (4, 5, 2)], lambda x, y: x @ y, lambda x, y: x @ y),
    "matmul batch of vectors": ([(2, 3, 5), (5,)], lambda x, y: x @ y, lambda x, y: x @ y),
    "matmul vector by batch": ([(5,), (2, 5, 3)], lambda x, y: x @ y, lambda x, y: x @ y),
    "matmul constant": ([(2, 2)], lambda x: x @ torch.from_numpy(C23), lambda x: x @ fractions(C23)),
    "constant matmul": ([(3, 2)], lambda x: torch.from_numpy(C23) @ x, lambda x: fractions(C23) @ x),
    "inner dimension 0": ([(2, 0), (0, 3)], lambda x, y: x @ y, lambda x, y: np.zeros((2, 3), dtype=object)),
    "outer": ([(3,), (4,)], lambda x, y: torch.outer(x, y), lambda x, y: np.outer(x, y)),
    "addmm": (
        [(2, 3), (2, 5), (5, 3)],
        lambda c, x, y: torch.addmm(c, x, y, beta=3, alpha=-0.5),
        lambda c, x, y: 3 * c + Fraction(-1, 2) * (x @ y),
    ),
    "addmm plain": ([(3,), (2, 5), (5, 3)], lambda c, x, y: torch.addmm(c, x, y), lambda c, x, y: c + x @ y),
    "addmv": ([(2,), (2, 5), (5,)], lambda c, x, y: torch.addmv(c, x, y, alpha=2), lambda c, x, y: c + 2 * (x @ y)),
    "baddbmm": (
        [(2, 3, 4), (2, 3, 5), (2, 5, 4)],
        lambda c, x, y: torch.baddbmm(c, x, y, beta=-1, alpha=2),
        lambda c, x, y: -c + 2 * (x @ y),
    ),
    "einsum": (
        [(2, 3, 4), (4, 5, 3), (5, 2)],
        lambda x, y, z: torch.einsum("abc,cda,de->be", x.transpose(0, 1), y.permute(0, 1, 2)[:, :, :3], z),
        lambda x, y, z: np.einsum("abc,cda,de->be", x.transpose(1, 0, 2), y, z),
    ),
    "einsum diagonal": ([(4, 4)], lambda x: torch.einsum("ii->i", x), lambda x: np.diagonal(x)),
    "einsum trace": ([(4, 4)], lambda x: torch.einsum("ii->", x), lambda x: np.array(np.diagonal(x).sum())),
    "tensordot": (
        [(2, 3, 4), (4, 3, 5)],
        lambda x, y: torch.tensordot(x, y, dims=([1, 2], [1, 0])),
        lambda x, y: np.einsum("abc,cbd->ad", x, y),
    ),
    "linear": ([(2, 3, 5), (4, 5)], lambda x, w: F.linear(x, w), lambda x, w: x @ w.T),
    "linear bias": ([(2, 3, 5), (4, 5), (4,)], lambda x, w, b: F.linear(x, w, b), lambda x, w, b: x @ w.T + b),
    "linear on a matrix": ([(2, 5), (4, 5), (4,)], lambda x, w, b: F.linear(x, w, b), lambda x, w, b: x @ w.T + b),
    "linear on a vector": ([(5,), (4, 5), (4,)], lambda x, w, b: F.linear(x, w, b), lambda x, w, b: x @ w.T + b),
    "linear turned": (
        [(5, 3, 2), (4, 5)],
        lambda x, w: F.linear(x.permute(2, 1, 0), w),
        lambda x, w: x.transpose(2, 1, 0) @ w.T,
    ),
    "conv1d": ([(2, 3, 7), (4, 3, 3), (4,)], lambda x, w, b: F.conv1d(x, w, b), convolve),
    "conv1d strided": (
        [(2, 3, 9), (4, 3, 2)],
        lambda x, w: F.conv1d(x, w, stride=2, padding=1, dilation=3),
        lambda x, w: convolve(x, w, stride=2, padding=1, dilation=3),
    ),
    "conv1d groups": (
        [(2, 4, 5), (6, 2, 2), (6,)],
        lambda x, w, b: F.conv1d(x, w, b, groups=2, padding=1),
        lambda x, w, b: convolve(x, w, b, groups=2, padding=1),
    ),
    "conv1d depthwise": (
        [(2, 3, 5), (3, 1, 2)],
        lambda x, w: F.conv1d(x, w, groups=3),
        lambda x, w: convolve(x, w, groups=3),
    ),
    "conv1d same": (
        [(1, 2, 5), (2, 2, 3)],
        lambda x, w: F.conv1d(x, w, padding="same"),
        lambda x, w: convolve(x, w, padding=1),
    ),
    "conv1d without batch": (
        [(3, 7), (4, 3, 3)],
        lambda x, w: F.conv1d(x, w),
        lambda x, w: convolve(x[None], w)[0],
    ),
    "conv2d": ([(2, 3, 4, 5), (4, 3, 2, 3), (4,)], lambda x, w, b: F.conv2d(x, w, b), convolve),
    "conv2d all": (
        [(1, 4, 6, 7), (6, 2, 3, 2)],
        lambda x, w: F.conv2d(x, w, stride=2, padding=2, dilation=2, groups=2),
        lambda x, w: convolve(x, w, stride=2, padding=2, dilation=2, groups=2),
    ),
    "conv2d constant kernel": (
        [(1, 1, 3, 3)],
        lambda x: F.conv2d(x, torch.tensor([[[[0.1, -0.5], [2.0, 0.25]]]])),
        lambda x: convolve(x, fractions(np.array([[[[0.1, -0.5], [2.0, 0.25]]]], dtype=np.float32))),
    ),
    "conv3d": ([(1, 2, 3, 3, 3), (2, 2, 2, 2, 2)], lambda x, w: F.conv3d(x, w), convolve),
    "sum": ([(3, 4, 5)], lambda x: x.sum(), lambda x: np.array(x.sum())),
    "sum dim": ([(3, 4, 5)], lambda x: x.sum(1), lambda x: x.sum(1)),
    "sum dims": ([(3, 4, 5)], lambda x: x.sum(dim=(0, -1), keepdim=True), lambda x: x.sum((0, 2), keepdims=True)),
    "sum of many": ([(5000,)], lambda x: x.sum(0), lambda x: np.array(x.sum())),
    "mean": ([(3, 4)], lambda x: x.mean(), lambda x: np.array(x.sum() * Fraction(1, 12))),
    "mean dim": ([(3, 4)], lambda x: x.mean(-1), lambda x: x.sum(1) * Fraction(1, 4)),
    "mean dims": (
        [(3, 4, 2)],
        lambda x: x.mean((0, 1), keepdim=True),
        lambda x: x.sum((0, 1), keepdims=True) * Fraction(1, 12),
    ),
    "prod": ([(3, 3)], lambda x: x.prod(), lambda x: np.array(x.prod())),
    "prod dim": ([(3, 5, 2)], lambda x: x.prod(1), lambda x: x.prod(1)),
    "prod keepdim": ([(3, 6)], lambda x: x.prod(dim=-1, keepdim=True), lambda x: x.prod(-1, keepdims=True)),
    "prod of one": ([(3, 1)], lambda x: x.prod(1), lambda x: x.prod(1)),
    "prod of none": ([(3, 0)], lambda x: x.prod(1), lambda x: np.ones(3, dtype=object)),
    "cumsum": ([(3, 50)], lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
    "cat": ([(2, 3), (2, 1)], lambda x, y: torch.cat([x, y, x], -1), lambda x, y: np.concatenate([x, y, x], -1)),
    "cat constant": (
        [(2, 3)],
        lambda x: torch.cat([x, torch.from_numpy(C23)]),
        lambda x: np.concatenate([x, fractions(C23)]),
    ),
    "cat integer constant": (
        [(2,)],
        lambda x: torch.cat([x, torch.tensor([10**12, 7 * 101 * NEAR_2_23])]),
        lambda x: np.concatenate([x, np.array([10**12, 7 * 101 * NEAR_2_23], dtype=object)]),
    ),
    "stack integer constant": (
        [(2,)],
        lambda x: torch.stack([torch.tensor([10**12, 7 * 101 * NEAR_2_23]), x]),
        lambda x: np.stack([np.array([10**12, 7 * 101 * NEAR_2_23], dtype=object), x]),
    ),
    "stack": ([(2, 3), (2, 3)], lambda x, y: torch.stack([x, y], 1), lambda x, y: np.stack([x, y], 1)),
    "where": (
        [(2, 3), (2, 3)],
        lambda x, y: torch.where(torch.from_numpy(MASK), x, y),
        lambda x, y: np.where(MASK, x, y),
    ),
    "where number": (
        [(2, 3)],
        lambda x: torch.where(torch.from_numpy(MASK), x, 0.1),
        lambda x: np.where(MASK, x, exact(0.1)),
    ),
    "where integer": (
        [(2, 3)],
        lambda x: torch.where(torch.from_numpy(MASK), torch.tensor(10**12), x),
        lambda x: np.where(MASK, 10**12, x),
    ),
    "masked_fill": (
        [(2, 3)],
        lambda x: x.masked_fill(torch.from_numpy(MASK), -0.3),
        lambda x: np.where(MASK, exact(-0.3), x),
    ),
    "masked_fill in place": (
        [(2, 3)],
        lambda x: x.clone().masked_fill_(torch.from_numpy(MASK), 10**10),
        lambda x: np.where(MASK, 10**10, x),
    ),
    "pad": ([(2, 3)], lambda x: F.pad(x, (1, 2, 0, 1)), lambda x: np.pad(x, ((0, 1), (1, 2)))),
    "pad value": (
        [(2, 3)],
        lambda x: F.pad(x, (1, 0), value=0.1),
        lambda x: np.pad(x, ((0, 0), (1, 0)), constant_values=exact(0.1)),
    ),
    "crop": ([(2, 3)], lambda x: F.pad(x, (-1, 0)), lambda x: x[:, 1:]),
    "index slices": ([(3, 4)], lambda x: x[1:, ::2], lambda x: x[1:, ::2]),
    "index lists": ([(3, 4)], lambda x: x[[0, 2, 2], [3, 0, 1]], lambda x: x[[0, 2, 2], [3, 0, 1]]),
    "index mask": ([(2, 3)], lambda x: x[torch.from_numpy(MASK)], lambda x: x[MASK]),
    "index none": ([(3, 4)], lambda x: x[None, ..., -1], lambda x: x[None, ..., -1]),
    "gather": (
        [(4, 2)],
        lambda x: x.gather(0, torch.from_numpy(IDS)),
        lambda x: np.take_along_axis(x, IDS, 0),
    ),
    "index_select": ([(4, 2)], lambda x: x.index_select(0, torch.tensor([2, 2])), lambda x: x[[2, 2]]),
    "embedding": ([(5, 3)], lambda x: F.embedding(torch.from_numpy(IDS), x), lambda x: x[IDS]),
    "assign a slice": ([(3, 4), (2, 2)], assigned, assigned),
    "assign a number": ([(3, 4)], lambda x: assigned(x, 0.1), lambda x: assigned(x, exact(0.1))),
    "assign a constant": (
        [(3, 4)],
        lambda x: assigned(x, torch.tensor([0.1, 7.0])),
        lambda x: assigned(x, fractions(np.array([0.1, 7.0], dtype=np.float32))),
    ),
    "assign by index": (
        [(3, 4), (2, 4)],
        lambda x, y: x.index_put((torch.tensor([2, 0]),), y),
        lambda x, y: np.stack([y[1], x[1], y[0]]),
    ),
    "add at an index": (
        [(3,), (400,)],
        lambda x, y: x.index_put((torch.zeros(400, dtype=torch.int64),), y, accumulate=True),
        lambda x, y: np.array([x[0] + y.sum(), x[1], x[2]], dtype=object),
    ),
    "into zeros": (
        [(2, 3)],
        lambda x: torch.zeros_like(x).copy_(x) + x.new_zeros(3) + x.new_ones(2, 1) + torch.ones_like(x),
        lambda x: x + 2,
    ),
    "full": (
        [(2, 3)],
        lambda x: torch.full_like(x, 0.1) + x.new_full((3,), -0.7) + x.clone().fill_(10**9),
        lambda x: x * 0 + exact(0.1) + exact(-0.7) + 10**9,
    ),
    "in place": ([(2, 3), (2, 3)], in_place_field, accumulated),
    "augmented": ([(2, 3), (2, 3)], accumulated, accumulated),
    "zero": ([(2, 3)], lambda x: x.clone().zero_(), lambda x: x * 0),
    "transpose": ([(2, 3, 4)], lambda x: x.transpose(0, 2).mT, lambda x: x.transpose(2, 0, 1)),
    "permute": ([(2, 3, 4)], lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    "reshape": ([(2, 3, 4)], lambda x: x.transpose(0, 1).reshape(6, -1), lambda x: x.transpose(1, 0, 2).reshape(6, -1)),
    "unflatten": ([(2, 6)], lambda x: x.unflatten(-1, (3, -1)), lambda x: x.reshape(2, 3, 2)),
    "expand": ([(2, 1)], lambda x: x.expand(3, 2, 4), lambda x: np.broadcast_to(x, (3, 2, 4))),
    "repeat": ([(2, 3)], lambda x: x.repeat(2, 1, 2), lambda x: np.tile(x, (2, 1, 2))),
    "flip": ([(2, 3)], lambda x: x.flip(0, 1), lambda x: x[::-1, ::-1]),
    "roll": ([(2, 3)], lambda x: x.roll(1, -1), lambda x: np.roll(x, 1, -1)),
    "tril": ([(4, 4)], lambda x: x.tril(-1) + x.triu(), lambda x: x),
    "diagonal": ([(4, 4)], lambda x: torch.diagonal(x, 1), lambda x: np.diagonal(x, 1)),
    "diag_embed": ([(3,)], lambda x: torch.diag_embed(x), lambda x: np.diag(x)),
    "unfold": ([(6,)], lambda x: x.unfold(0, 3, 2), lambda x: np.stack([x[0:3], x[2:5]])),
    "split": (
        [(5, 2)],
        lambda x: torch.cat(list(reversed(x.split(2)))),
        lambda x: np.concatenate([x[4:], x[2:4], x[:2]]),
    ),
    "chunk": ([(4, 2)], lambda x: torch.mul(*x.chunk(2)), lambda x: x[:2] * x[2:]),
    "unbind": ([(3, 2)], lambda x: torch.stack(x.unbind(1)), lambda x: x.T),
    "to float32": ([(2, 3)], lambda x: x.to(torch.float32).half().double(), lambda x: x),
    "dropout in eval": ([(2, 3)], lambda x: F.dropout(x, 0.5, training=False), lambda x: x),
    "iterate": ([(3, 2)], lambda x: sum(row for row in x), lambda x: x.sum(0)),
    "kron": ([(2, 2), (3,)], lambda x, y: torch.kron(x, y), lambda x, y: np.kron(x, y)),
}


@each("p", P)
@pytest.mark.parametrize("name", TABLE)
def test_operation_equals_integers(name, p):
    shapes, on_tensors, on_numpy = TABLE[name]
    inputs = [integers((name, i), shape, p) for i, shape in enumerate(shapes)]
    fields = [field(x, p) for x in inputs]
    before = [x.residues.clone() for x in fields]
    truth = residues(np.asarray(on_numpy(*inputs), dtype=object), p)
    found = values_of(on_tensors(*fields))
    assert found.shape == truth.shape
    assert (found == truth).all()
    for x, old in zip(fields, before, strict=True):
        assert torch.equal(x.residues, old), "an input was changed"


def test_conv_over_several_exact_sums():
    """A window of more numbers than one exact sum holds."""
    p = NEAR_2_25
    x, w = integers("x", (1, 12, 9), p), integers("w", (2, 12, 7), p)
    assert Modulus(p).terms < 12 * 7
    found = values_of(F.conv1d(field(x, p), field(w, p)))
    assert (found == residues(convolve(x, w), p)).all()


def test_a_view_is_written_through():
    p = 101
    x = integers("view", (3, 4), p)
    f = field(x, p)
    f.view(4, 3)[0].mul_(2)
    f.T[3] = 5
    x.reshape(4, 3)[0] *= 2
    x.T[3] = 5
    assert (values_of(f) == residues(x, p)).all()


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.prod(dim=0, keepdim=True),
        lambda x: x.clone(),
        lambda x: x + 0,
        lambda x: x.to(torch.float32, copy=True),
        lambda x: torch.cat([x]),
        lambda x: F.pad(x, (0, 0)),
        lambda x: x**1,
        lambda x: x.sum(0, keepdim=True),
        lambda x: torch.where(torch.tensor(True), x, 0),
    ],
    ids=["prod", "clone", "add", "to", "cat", "pad", "pow", "sum", "where"],
)
def test_a_result_shares_no_memory_with_its_input(copy):
    x = field(integers("own", (1, 3), 101), 101)
    before = x.residues.clone()
    copy(x).add_(1)
    assert torch.equal(x.residues, before)


def test_a_wrapped_value_stays_wrapped():
    """Ways in which torch hands back what it was given: none may lose the prime."""
    import copy
    import pickle

    x = field(integers("wrap", (2, 3), 101), 101)
    truth = values_of(x)
    for y in (x.data, x.detach(), torch.as_tensor(x), x.contiguous(), x.cpu(), x.real, copy.deepcopy(x), x.clone()):
        assert (values_of(y) == truth).all()
    assert (values_of(pickle.loads(pickle.dumps(x))) == truth).all()


def test_repr_names_the_prime_and_the_residues():
    text = repr(FieldTensor(torch.tensor([-1.0, 3.0], dtype=torch.float64), Modulus(101)))
    assert "101" in text
    assert "100" in text


# A polynomial expression over two integer matrices: evaluated in integers, then reduced, or in the field.
leaves = st.sampled_from(["x", "y", 2, -3, 0.5, 0.1])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "@"]), inner, inner),
        st.tuples(st.sampled_from(["T", "sum", "square", "neg", "third", "rows"]), inner),
    ),
    max_leaves=8,
)


def evaluate(expression, x, y, number):
    if expression == "x":
        return x
    if expression == "y":
        return y
    if not isinstance(expression, tuple):
        return x * 0 + number(expression)
    name, *rest = expression
    a, *more = (evaluate(part, x, y, number) for part in rest)
    if more:
        b = more[0]
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "@": lambda: a @ b}[name]()
    return {
        "T": lambda: a.T,
        "sum": lambda: a * 0 + a.sum(),
        "square": lambda: a**2,
        "neg": lambda: -a,
        "third": lambda: a * number(1 / 3),
        "rows": lambda: a * 0 + a.sum(0),
    }[name]()


@given(
    expression=expressions,
    p=st.sampled_from(P),
    entries=st.lists(st.integers(-(10**6), 10**6), min_size=8, max_size=8),
)
def test_reducing_first_or_last_is_the_same(expression, p, entries):
    """Z[1/2] → GF(p) is a homomorphism: the law behind every exact measurement."""
    x, y = (np.array(part, dtype=object).reshape(2, 2) for part in (entries[:4], entries[4:]))
    truth = residues(evaluate(expression, x, y, exact), p)
    m = Modulus(p)
    fields = [FieldTensor(m.reduce(tensor(v)), m) for v in (x, y)]
    assert (values_of(evaluate(expression, *fields, lambda v: v)) == truth).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_new_tensors_hold_residues_in_full_precision_whatever_they_ask_for(dtype):
    m = Modulus(8388593)
    x = FieldTensor(m.centred(torch.arange(4_000_000, 4_000_006).view(2, 3)), m)
    ones = [torch.ones_like(x, dtype=dtype), x.new_ones(2, 3, dtype=dtype), torch.full_like(x, 1, dtype=dtype)]
    for one in [*ones, x.new_full((2, 3), 1, dtype=dtype)]:
        one[0] = x[0]
        assert one.residues.dtype == torch.float64
        assert m.canonical(one.residues)[0].tolist() == m.canonical(x.residues)[0].tolist()


def test_new_tensors_of_integers_are_indices():
    m = Modulus(101)
    x = FieldTensor(m.centred(torch.arange(6).view(2, 3)), m)
    index = x.new_zeros(2, dtype=torch.int64)
    assert type(index) is torch.Tensor
    assert m.canonical(x[index].residues).tolist() == [[0, 1, 2], [0, 1, 2]]
