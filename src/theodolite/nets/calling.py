"""How a user's net is called, and what of its answer is read: two hooks on the module, which leave its weights, their
names and its forward alone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

_ANSWERS = ("logits", "last_hidden_state", "output", "outputs", "out", "prediction", "predictions", "pred", "y")
_STATES = ("hidden", "state", "h", "hx", "h0", "hidden_state", "prev_state", "cache", "past", "mems", "memory")
_PLACES = ("start_pos", "offset", "position", "pos")
_STARTS = ("init_hidden", "init_state", "initial_state", "get_initial_state")


@dataclass(frozen=True)
class Calling:
    """`features`: it reads so many numbers, and inputs with fewer are filled up with zeros. `outputs`: the first so
    many entries are read. `token_first`: it takes (token, batch, …). `further`: what else its forward asks for.
    `pooled`: its one answer for a whole sequence stands at the last token, and zeros at the others."""

    features: int | None = None
    outputs: int | None = None
    token_first: bool = False
    further: tuple[str, ...] = ()
    pooled: bool = False

    def attach(self, module: nn.Module) -> tuple[RemovableHandle, RemovableHandle]:
        enter = module.register_forward_pre_hook(_Enter(self), with_kwargs=True)
        return enter, module.register_forward_hook(_Leave(self))

    def words(self) -> list[str]:
        found = []
        if self.features is not None:
            found.append(f"inputs are filled up with zeros to its {self.features} features")
        if self.token_first:
            found.append("it takes (token, batch), so axes are swapped")
        found += [f"'{name}' of its forward starts afresh in every call" for name in self.further]
        if self.outputs is not None:
            many = "entry is" if self.outputs == 1 else f"{self.outputs} entries are"
            found.append(f"the first {many} read of its outputs")
        if self.pooled:
            found.append("its one answer for a whole sequence is read at the last token")
        return found


@dataclass(frozen=True)
class _Enter:
    calling: Calling

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not args:
            return args, kwargs
        x, calling = args[0], self.calling
        rows = x.shape[0]
        if calling.features is not None and x.is_floating_point():
            x = F.pad(x, (0, calling.features - x.shape[-1]))
        if calling.token_first:
            x = x.transpose(0, 1)
        fresh = {name: _fresh(module, name, rows) for name in calling.further if name not in kwargs}
        return (x, *args[1:]), {**kwargs, **fresh}


@dataclass(frozen=True)
class _Leave:
    calling: Calling

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        found = answer(output, args[0] if args else None)
        if not isinstance(found, Tensor):
            return found
        if self.calling.token_first and found.dim() > 2:
            found = found.transpose(0, 1)
        if self.calling.pooled and found.dim() == 2:
            before = args[0].shape[0 if self.calling.token_first else 1] - 1
            found = F.pad(found.unsqueeze(1), (0, 0, before, 0))
        return found if self.calling.outputs is None else found[..., : self.calling.outputs]


def further_arguments(module: nn.Module) -> tuple[str, ...]:
    """What forward asks for beside the input and can be started afresh: a state, or a place to begin at."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())[1:]
    except (TypeError, ValueError):
        return ()
    asked = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return tuple(name for name in asked if name in _STATES or name in _PLACES)


def _fresh(module: nn.Module, name: str, rows: int) -> Any:
    if name in _PLACES:
        return 0
    start = next((getattr(module, start) for start in _STARTS if callable(getattr(module, start, None))), None)
    return None if start is None else start(rows) if inspect.signature(start).parameters else start()


def answer(output: Any, x: Any) -> Any:
    """The one tensor of a tuple, dict or Hugging Face output: by its name, else the first that has the input's rows,
    with its tokens before without them. What is a tensor, or holds none, stays as it is."""
    if not isinstance(output, tuple | list | Mapping) and not hasattr(output, "__dataclass_fields__"):
        return output
    named = output if isinstance(output, Mapping) else getattr(output, "__dict__", {})
    for name in _ANSWERS:
        if isinstance(named.get(name), Tensor):
            return named[name]
    held = [one for one in _held(output) if one.dim() > 0]
    for axes in (2, 1):
        alike = [one for one in held if isinstance(x, Tensor) and one.shape[:axes] == x.shape[:axes]]
        if alike:
            return alike[0]
    return held[0] if held else output


def what(output: Any) -> str | None:
    """In words, which part of an output is read; None where it is one tensor."""
    if isinstance(output, Mapping):
        name = next((name for name in _ANSWERS if isinstance(output.get(name), Tensor)), None)
        return (
            f"'{name}' is read of the {type(output).__name__} it returns"
            if name
            else "the first fitting tensor is read"
        )
    if isinstance(output, tuple | list):
        return f"of the {len(output)} things it returns the first tensor that has the rows of the input is read"
    return None


def _held(output: Any) -> Iterator[Tensor]:
    values = output.values() if isinstance(output, Mapping) else output
    if hasattr(output, "__dataclass_fields__"):
        values = vars(output).values()
    yield from (value for value in values if isinstance(value, Tensor))
