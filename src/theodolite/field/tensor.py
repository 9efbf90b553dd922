"""A tensor over GF(p) that an ordinary torch module computes with as if it were a tensor of numbers.

It denies by default: what reaches the dispatcher and is not in the tables of polynomial operations is refused by
name. A value never turns into a plain tensor silently, because that would be a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from theodolite.errors import BadInput, NotPolynomial
from theodolite.field.modulus import Modulus
from theodolite.field.operations import ARITHMETIC, CREATION, STRUCTURAL

_LEAVES_THE_FIELD = {
    *(
        "numpy",
        "item",
        "tolist",
        "__array__",
        "data_ptr",
        "untyped_storage",
        "storage",
        "__dlpack__",
        "to_dlpack",
        "_to_dlpack",
        "view_as_real",
    ),
    *("apply_", "map_", "map2_", "set_", "resize_", "share_memory_", "type", "__cuda_array_interface__"),
    *("__bool__", "__float__", "__int__", "__index__", "__complex__", "__contains__"),
}


class FieldTensor(torch.Tensor):
    """Residues modulo a prime, with the shape and the operations of a float64 tensor."""

    residues: Tensor
    modulus: Modulus

    @staticmethod
    def __new__(cls, residues: Tensor, modulus: Modulus) -> FieldTensor:
        self = torch.Tensor._make_wrapper_subclass(  # pyright: ignore[reportAttributeAccessIssue]
            cls, residues.shape, strides=residues.stride(), dtype=torch.float64, device=residues.device
        )
        self.residues = residues
        self.modulus = modulus
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FieldTensor(modulo {self.modulus.p}, {self.modulus.canonical(self.residues)})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _LEAVES_THE_FIELD:
            raise NotPolynomial(
                f"'{name}' would take a value out of GF(p), so the result would not be exact: "
                "keep the computation in tensors, or measure with --mode epsilon"
            )
        with torch._C.DisableTorchFunctionSubclass():
            if name == "linear" or (name in ("matmul", "__matmul__", "__rmatmul__") and len(args) == 2):
                return _by_rows(func, name, args, kwargs or {})
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        in_place = func._schema.is_mutable
        target = args[0] if args else None
        if in_place and ("out" in kwargs or not isinstance(target, FieldTensor)):
            raise NotPolynomial(
                f"'{name}' writes a value of GF(p) into an ordinary tensor, which cannot hold it: build the result "
                "with torch.stack, torch.cat or x.new_zeros, or measure with --mode epsilon"
            )
        modulus = _common_modulus([*args, *kwargs.values()])
        if name == "view" and any(isinstance(arg, torch.dtype) for arg in args):
            raise NotPolynomial("'view' as another dtype reads bits, not values: remove it, or use --mode epsilon")
        constant = name in ("div", "div_") and isinstance(args[1], Tensor) and not isinstance(args[1], FieldTensor)
        if constant and kwargs.get("rounding_mode") is None:
            # Division by a constant of the net is multiplication by its inverse.
            args, name = (args[0], _inverted(args[1], modulus), *args[2:]), name.replace("div", "mul")
        dtype = kwargs.get("dtype")
        if name in CREATION and dtype is not None:
            if not dtype.is_floating_point:  # indices and masks beside the values: a plain tensor is what they are
                return func(*_residues(args, modulus), **kwargs)
            kwargs["dtype"] = torch.float64
        if name in STRUCTURAL:
            result = func(*_residues(args, modulus), **_residues(kwargs, modulus))
        else:
            operation = ARITHMETIC.get(name.removesuffix("_") if in_place else name)
            if operation is None:
                raise NotPolynomial(
                    f"the operation '{_readable(name)}' is not known to be polynomial, so an exact rank cannot pass "
                    "through it: measure this net with --mode epsilon"
                )
            result = operation(modulus, *_residues(args, modulus), **_residues(kwargs, modulus))
        if in_place:
            assert isinstance(target, FieldTensor)
            if result is not target.residues:
                target.residues.copy_(result)
            return target
        if isinstance(result, Tensor):
            return cls(result, modulus)
        return type(result)(cls(part, modulus) for part in result)


def _by_rows(func: Any, name: str, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Products with a matrix, as one matrix product over all rows where torch would take many small ones."""
    if name == "linear":
        return func(args[0].contiguous(), *args[1:], **kwargs) if args else func(**kwargs)
    if kwargs:
        return func(*args, **kwargs)
    left, right = reversed(args) if name == "__rmatmul__" else args
    if left.dim() == 1 and right.dim() > 1:  # torch would end this one with a squeeze in place
        return torch.matmul(left.unsqueeze(0), right).squeeze(-2)
    if left.dim() > 2 and right.dim() == 2:
        return torch.matmul(left.contiguous(), right)
    return func(*args)


def _common_modulus(values: Any) -> Modulus:
    found = {t.modulus for t in _field_tensors(values)}
    if len(found) != 1:
        raise NotPolynomial(f"values modulo {sorted(m.p for m in found)} cannot meet in one operation: use one prime")
    return found.pop()


def _field_tensors(values: Any) -> Iterator[FieldTensor]:
    for value in values:
        if isinstance(value, FieldTensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _field_tensors(value)


def _residues(value: Any, modulus: Modulus) -> Any:
    """Unwrap field tensors and lift the net's floating-point constants; integers and masks may be indices and stay."""
    if isinstance(value, FieldTensor):
        return value.residues
    if isinstance(value, Tensor):
        return modulus.lift(value) if value.dtype.is_floating_point or value.dtype.is_complex else value
    if isinstance(value, list | tuple):
        return type(value)(_residues(v, modulus) for v in value)
    if isinstance(value, dict):
        return {k: _residues(v, modulus) for k, v in value.items()}
    return value


def _inverted(constant: Tensor, modulus: Modulus) -> FieldTensor:
    residues = modulus.lift(constant)
    if bool((residues == 0).any()):
        raise BadInput(f"a constant of the net that is divided by is 0 modulo {modulus.p}: use another prime")
    return FieldTensor(modulus.inverses(residues), modulus)


def _readable(name: str) -> str:
    return name.strip("_").removeprefix("native_")
