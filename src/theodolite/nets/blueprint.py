"""What a net is built from, before it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.nets.calling import Calling
from theodolite.nets.failure import advice


@dataclass(frozen=True)
class Blueprint:
    """What `load` builds a subject from. `known` are the arguments of the factory with their defaults."""

    name: str
    factory: Callable[..., Any]
    arguments: Mapping[str, Any]
    known: Mapping[str, Any]
    kind: Literal["sequence", "vector"]
    shape: Mapping[str, Any]
    vocab: int | None = None
    version: int = 1
    source: str | None = None
    code: str | None = None  # of a user's file: with all that it imports, see `fingerprint`
    registered: bool = False
    built: bool = False  # a module or a function at hand: it takes no arguments
    calling: Calling | None = None  # of a user's net
    assumed: tuple[str, ...] = ()  # what nobody said, in words
    beside: Callable[[], AbstractContextManager[None]] = nullcontext  # the file's neighbours can be imported

    def build(self, **changed: Any) -> nn.Module:
        """The module, from torch's global generator as it stands; `changed` arguments replace those planned."""
        try:
            with self.beside():
                module = self.factory(**{**self.arguments, **changed})
        except TheodoliteError as error:
            if not self.registered:
                raise
            raise type(error)(f"for the net '{self.name}': {error}") from error
        except Exception as error:
            if self.registered:
                raise
            said = " ".join(str(error).split())
            hint = f": {told}" if (told := advice(error)) else ""
            raise BadInput(f"'{self.name}' could not be built: {type(error).__name__}: {said}{hint}") from error
        if not isinstance(module, nn.Module):
            raise BadInput(f"'{self.name}' built a {type(module).__name__} instead of an nn.Module: return a module")
        if self.calling is not None:
            self.calling.attach(module)
        return module


@runtime_checkable
class Planned(Protocol):
    """What says itself what it is built from, as a net with the weights of a file does."""

    def plan(self, **shape: Any) -> Blueprint: ...


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Torch's global generators, of the CPU and of a CUDA device, set for the while and put back after."""
    cuda = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # not `torch.manual_seed`, which reaches every GPU
        for one in cuda:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(seed)
        yield
