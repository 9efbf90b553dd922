"""The operations a polynomial network may use, on residues.

STRUCTURAL ones only move, copy or select entries, so torch's own version is exact on residues. ARITHMETIC ones
are written out here: each returns residues, reduced wherever a sum or product could leave the exact range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.errors import NotPolynomial
from theodolite.field.modulus import Modulus
from theodolite.field.product import product

Number = float | int

STRUCTURAL = {
    *("alias", "as_strided", "clone", "contiguous", "detach", "lift", "lift_fresh"),
    *("view", "_unsafe_view", "_reshape_alias", "reshape", "flatten", "expand", "squeeze", "unsqueeze"),
    *("permute", "transpose", "t", "movedim", "swapaxes", "flip", "roll", "rot90", "pixel_shuffle"),
    *("repeat", "repeat_interleave", "tile", "chunk", "split", "split_with_sizes", "unbind"),
    *("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"),
    *("select", "slice", "narrow", "index", "index_select", "index_copy", "gather", "take"),
    *("take_along_dim", "embedding", "unfold", "im2col", "diag", "diag_embed", "diagonal", "tril", "triu"),
    *("zeros_like", "ones_like", "new_zeros", "new_ones", "zero_"),
}

# Operations that take a shape from a tensor and no value: whatever precision they ask for, residues are float64.
CREATION = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}

ARITHMETIC: dict[str, Callable[..., Any]] = {}


def _operation(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        ARITHMETIC.update(dict.fromkeys(names, function))
        return function

    return add


def _value(m: Modulus, x: Tensor | Number) -> Any:
    """An operand as residues: integer tensors and Python numbers are constants of the net."""
    if isinstance(x, Tensor):
        return x if x.dtype == torch.float64 else m.lift(x)
    if isinstance(x, complex):
        raise NotPolynomial(f"the constant {x} is complex and has no residue modulo a prime: use real numbers")
    residue = m.lift_number(x)
    return float(residue - m.p if residue > m.p // 2 else residue)


@_operation("add")
def _add(m: Modulus, a: Any, b: Any, alpha: Number = 1) -> Tensor:
    scaled = _value(m, b) if alpha == 1 else _mul(m, b, alpha)
    return m.reduce_(_value(m, a) + scaled)


@_operation("sub", "subtract")
def _sub(m: Modulus, a: Any, b: Any, alpha: Number = 1) -> Tensor:
    scaled = _value(m, b) if alpha == 1 else _mul(m, b, alpha)
    return m.reduce_(_value(m, a) - scaled)


@_operation("rsub")
def _rsub(m: Modulus, a: Any, b: Any, alpha: Number = 1) -> Tensor:
    return _sub(m, b, a, alpha)


@_operation("neg")
def _neg(_: Modulus, a: Tensor) -> Tensor:
    return -a


@_operation("mul", "multiply")
def _mul(m: Modulus, a: Any, b: Any) -> Any:
    result = _value(m, a) * _value(m, b)
    return m.reduce_(result) if isinstance(result, Tensor) else result


@_operation("div", "true_divide")
def _div(m: Modulus, a: Any, b: Any, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is not None or isinstance(b, Tensor):
        raise NotPolynomial(
            "the operation 'div' by a tensor or with rounding is not polynomial, so an exact rank cannot pass through "
            "it: divide by a Python number, or measure this net with --mode epsilon"
        )
    return _mul(m, a, m.inverse(m.lift_number(b)))


@_operation("pow")
def _pow(m: Modulus, a: Tensor, exponent: Any) -> Tensor:
    if isinstance(exponent, Tensor) or int(exponent) != exponent or exponent < 0:
        raise NotPolynomial(
            f"the operation 'pow' with exponent {exponent} is not polynomial: use a whole exponent of at least 0, "
            "or measure this net with --mode epsilon"
        )
    return m.power(a, int(exponent))


@_operation("square")
def _square(m: Modulus, a: Tensor) -> Tensor:
    return m.reduce_(a * a)


@_operation("sum")
def _sum(m: Modulus, a: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    _only_floats(dtype)
    return m.reduce_(a.sum() if dim is None else a.sum(dim=dim, keepdim=keepdim))


@_operation("mean")
def _mean(m: Modulus, a: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    total = _sum(m, a, dim, keepdim, dtype)
    return _mul(m, total, m.inverse(a.numel() // max(total.numel(), 1)))


@_operation("cumsum")
def _cumsum(m: Modulus, a: Tensor, dim: int, dtype: Any = None) -> Tensor:
    _only_floats(dtype)
    return m.reduce_(a.cumsum(dim))


@_operation("prod")
def _prod(m: Modulus, a: Tensor, dim: int | None = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    _only_floats(dtype)
    if dim is None:
        a, dim = a.reshape(-1), 0
    while a.shape[dim] > 1:
        half = a.shape[dim] // 2
        pairs = m.reduce_(a.narrow(dim, 0, half) * a.narrow(dim, half, half))
        a = torch.cat([pairs, a.narrow(dim, 2 * half, a.shape[dim] - 2 * half)], dim)
    if a.shape[dim] == 0:
        shape = [1 if i == dim % a.dim() else n for i, n in enumerate(a.shape)]
        a = a.new_ones(shape)
    return (a if keepdim else a.squeeze(dim)).clone()


@_operation("mm", "bmm", "mv", "dot", "vdot", "matmul")
def _product(m: Modulus, a: Tensor, b: Tensor) -> Tensor:
    return product(_as_residues(m, a), _as_residues(m, b), m)


@_operation("addmm", "baddbmm", "addmv")
def _addmm(m: Modulus, c: Tensor, a: Tensor, b: Tensor, beta: Number = 1, alpha: Number = 1) -> Tensor:
    result = _product(m, a, b)
    if alpha != 1:
        result = _mul(m, result, alpha)
    return _add(m, result, c if beta == 1 else _mul(m, c, beta))


@_operation("linear")
def _linear(m: Modulus, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = _product(m, x.reshape(-1, x.shape[-1]), weight.T).view(*x.shape[:-1], -1)
    return result if bias is None else _add(m, result, bias)


@_operation("addcmul")
def _addcmul(m: Modulus, c: Tensor, a: Tensor, b: Tensor, value: Number = 1) -> Tensor:
    result = _mul(m, a, b)
    return _add(m, c, result if value == 1 else _mul(m, result, value))


@_operation("convolution")
def _convolution(
    m: Modulus,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    _output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Unfold every window and contract it with the kernel."""
    if transposed:
        raise NotPolynomial(
            "a transposed convolution is not known over GF(p): write it as upsampling and a convolution"
        )
    kernel = weight.shape[2:]
    x = F.pad(x, [p for pad in reversed(list(padding)) for p in (pad, pad)])
    for axis, (size, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True)):
        x = x.unfold(2 + axis, (size - 1) * gap + 1, step)[..., ::gap]
    batch, channels = x.shape[:2]
    places = x.shape[2 : 2 + len(kernel)]
    # (batch, group, channel, *places, *kernel) → (group, batch·places, channel·kernel)
    x = x.reshape(batch, groups, channels // groups, *x.shape[2:])
    axes = range(3, 3 + len(kernel))
    x = x.permute(1, 0, *axes, 2, *(a + len(kernel) for a in axes))
    x = x.reshape(groups, batch * places.numel(), -1)
    filters = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2)
    out = product(x, filters, m).reshape(groups, batch, *places, -1)
    out = out.movedim(-1, 2).movedim(0, 1).reshape(batch, weight.shape[0], *places)
    return out if bias is None else _add(m, out, bias.view(-1, *([1] * len(kernel))))


@_operation("cat")
def _cat(m: Modulus, parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return torch.cat([_as_residues(m, part) for part in parts], dim)


@_operation("stack")
def _stack(m: Modulus, parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    return torch.stack([_as_residues(m, part) for part in parts], dim)


@_operation("index_put")
def _index_put(m: Modulus, a: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    return m.reduce_(a.index_put(indices, _as_residues(m, values), accumulate))


@_operation("where")
def _where(m: Modulus, mask: Tensor, a: Any, b: Any) -> Tensor:
    return torch.where(mask, _value(m, a), _value(m, b))


@_operation("masked_fill")
def _masked_fill(m: Modulus, a: Tensor, mask: Tensor, value: Any) -> Tensor:
    return torch.where(mask, _value(m, value), a)


@_operation("constant_pad_nd")
def _pad(m: Modulus, a: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    return F.pad(a, list(pad), value=float(_value(m, value)))


@_operation("full_like", "fill")
def _full_like(m: Modulus, a: Tensor, value: Any, **_: Any) -> Tensor:
    return torch.zeros_like(a) + _value(m, value)


@_operation("new_full")
def _new_full(m: Modulus, a: Tensor, size: Sequence[int], value: Number, **_: Any) -> Tensor:
    return a.new_full(tuple(size), float(_value(m, value)))


@_operation("copy")
def _copy(m: Modulus, a: Tensor, source: Tensor, _non_blocking: bool = False) -> Tensor:
    return _as_residues(m, source).expand(a.shape)


@_operation("_to_copy")
def _to_copy(_m: Modulus, a: Tensor, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Tensor:
    """A change of float precision means nothing over GF(p); a change to integers would round."""
    _only_floats(dtype)
    return a.to(device=device, copy=True)


def _only_floats(dtype: torch.dtype | None) -> None:
    if dtype is not None and not dtype.is_floating_point:
        raise NotPolynomial(f"a conversion to {dtype} rounds, so an exact rank cannot pass through it: remove it")


def _as_residues(m: Modulus, x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else m.lift(x)
