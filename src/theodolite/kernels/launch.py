"""When a kernel can stand in for torch's operations, how it is declared to torch, and how it meets `vmap`.

A kernel is an operation of torch's own (`declare`), so that whatever traces a training step sees one opaque call with
known shapes. Its tensors have the members in front; an `autograd.Function` with the gradient written out calls it, and
its `vmap` rule puts the members there (`members_first`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

_TRACED: ContextVar[bool] = ContextVar("traced", default=False)
_FUSING: ContextVar[bool] = ContextVar("fusing", default=False)
_LIBRARY = torch.library.Library("theodolite", "DEF")


@cache
def _present() -> bool:
    return find_spec("triton") is not None


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on tensors of the CPU: slow, and what the tests use."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@contextmanager
def fusing() -> Iterator[None]:
    """Kernels may stand in for torch's operations inside: where nothing is differentiated twice, as in training.
    Elsewhere nets are plain operations, with derivatives of every order."""
    token = _FUSING.set(True)
    try:
        yield
    finally:
        _FUSING.reset(token)


def usable(*tensors: Tensor) -> bool:
    """Whether kernels take these: where they may (`fusing`), float32, or lower under autocast, on a device that runs
    Triton."""
    kind = tensors[0].device.type
    on_chip = (kind == "cuda" and _FUSING.get()) or (kind == "cpu" and interpreted())
    return on_chip and all(t.dtype in (torch.float32, torch.bfloat16) for t in tensors) and _present()


@contextmanager
def tracing() -> Iterator[None]:
    """What runs inside is traced for a compiler."""
    token = _TRACED.set(True)
    try:
        yield
    finally:
        _TRACED.reset(token)


def traced() -> bool:
    """Whether the operations that run are being traced for a compiler, which fuses plain ones better than we do."""
    return _TRACED.get()


def precision() -> str:
    """How kernels multiply matrices: `tf32x3` splits float32 into two TF32 numbers and is as exact as float32."""
    if torch.is_autocast_enabled("cuda"):
        return "bf16"
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"


def declare(schema: str, run: Callable[..., Any], shapes: Callable[..., Any]) -> Callable[..., Any]:
    """The operation `theodolite::name` of this schema: `run` launches the kernel, `shapes` makes empty results."""
    name = schema.partition("(")[0]

    def on_its_device(*args: Any) -> Any:
        with torch.cuda.device_of(next(each for each in args if isinstance(each, Tensor))):
            return run(*args)

    _LIBRARY.define(schema)
    for kind in ("CUDA", "CPU"):
        _LIBRARY.impl(name, on_its_device, kind)
    torch.library.register_fake(f"theodolite::{name}", shapes, lib=_LIBRARY)
    return getattr(torch.ops.theodolite, name).default


class FirstDerivative(torch.autograd.Function):
    """A gradient that a kernel gives. Kernels run where nothing is differentiated twice (`fusing`); who does so all the
    same is told, rather than given a derivative that lacks this part."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise NoSecondDerivative


class NoSecondDerivative(RuntimeError):
    def __init__(self) -> None:
        super().__init__("kernels of training have no second derivative: differentiate outside `fusing`, or in float64")


def members_first(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> list[Any]:
    """The arguments of a `vmap` rule with the mapped axis in front of every tensor; the others as they are."""
    return [
        (each.expand(info.batch_size, *each.shape) if axis is None else each.movedim(axis, 0))
        if isinstance(each, Tensor)
        else each
        for each, axis in zip(args, in_dims, strict=True)
    ]
