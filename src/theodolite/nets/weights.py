"""Weights in a file: safetensors of ours or of anybody, or what `torch.save` wrote, read without running any code."""

from __future__ import annotations

import pickle
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from theodolite.errors import BadInput, StoreError
from theodolite.files import refuse_endless

SUM = "theodolite.crc32"  # safetensors itself would read flipped bits without a word
_PICKLED = (".pt", ".pth", ".bin", ".ckpt")
_HOLDERS = ("state_dict", "model_state_dict", "model", "module", "net", "weights")
_PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "")


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors on the CPU, each in memory of its own, and the metadata that was written with them."""
    source = Path(path)
    if source.is_dir():
        raise StoreError(f"'{source}' is a folder: give the path of a checkpoint")
    refuse_endless(source)
    if source.suffix in _PICKLED and source.is_file():
        return _read_pickled(source), {}
    try:
        with safe_open(source, framework="pt") as file:
            metadata = dict(file.metadata() or {})
            # Cloned: a mapped tensor would die with a bus error if someone cut the file short while it is in use.
            names = file.keys()
            tensors = {name: file.get_tensor(name).clone() for name in names}
    except FileNotFoundError:
        raise StoreError(f"there is no checkpoint '{source}': give the path of one") from None
    except SafetensorError as error:
        raise StoreError(f"'{source}' is not a checkpoint, or it is cut short ({error}): give another") from error
    except OSError as error:
        raise StoreError(
            f"the checkpoint '{source}' cannot be read ({error.strerror or error}): give another"
        ) from error
    if metadata.pop(SUM, None) not in (None, sum_of(tensors)):
        raise StoreError(f"the checkpoint '{source}' is damaged (its checksum differs): give another")
    return tensors, metadata


def _read_pickled(source: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of torch about files that it does not run
            found = torch.load(source, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise StoreError(
            f"'{source}' holds more than tensors, which is not run here: save the state_dict alone, or as safetensors"
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        said = " ".join(str(error).split())
        raise StoreError(f"'{source}' is not a checkpoint, or it is cut short ({said}): give another") from error
    tensors = _tensors(found)
    if not tensors:
        raise StoreError(f"'{source}' holds no weights by name: save a module's state_dict")
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _tensors(found: Any) -> dict[str, Tensor]:
    """Of a state_dict, or of one inside what a training loop keeps."""
    if not isinstance(found, Mapping):
        return {}
    inner = next((found[name] for name in _HOLDERS if isinstance(found.get(name), Mapping)), None)
    if inner is not None:
        return _tensors(inner)
    return {str(name): value for name, value in found.items() if isinstance(value, Tensor)}


def sum_of(tensors: Mapping[str, Tensor]) -> str:
    total = 0
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        if tensor.numel():
            total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"


def fitting(name: str, module: nn.Module, tensors: Mapping[str, Tensor], path: str | Path) -> dict[str, Tensor]:
    """The tensors by the module's own names: without what a wrapper put before them, and tied ones twice. Those of
    another net or shape are refused."""
    expected = dict(module.state_dict())
    named = renamed(tensors, expected)
    shared = {n: t.data_ptr() for n, t in expected.items() if t.numel()}
    for missing in [n for n in expected if n not in named]:
        twin = next((n for n in named if n in shared and shared[n] == shared.get(missing)), None)
        if twin is not None:
            named[missing] = named[twin]
    wrong = sorted(n for n in expected.keys() | named.keys() if _shape(expected.get(n)) != _shape(named.get(n)))
    if wrong:
        first = wrong[0]
        there, here = _shape(named.get(first)) or "missing", _shape(expected.get(first)) or "unknown"
        difference = f"'{first}' is {there} there and {here} here"
        raise BadInput(f"'{path}' does not fit '{name}' with this shape: {difference}; give the shape it was made with")
    return named


def renamed(tensors: Mapping[str, Tensor], expected: Mapping[str, Any]) -> dict[str, Tensor]:
    """Without what a wrapper put before the names that are expected."""
    if tensors.keys() & expected.keys():
        return dict(tensors)
    for prefix in _PREFIXES:
        cut = {n.removeprefix(prefix): t for n, t in tensors.items()}
        if cut.keys() & expected.keys():
            return cut
    return dict(tensors)


def _shape(tensor: Tensor | None) -> tuple[int, ...] | None:
    return None if tensor is None else tuple(tensor.shape)


def load_weights(name: str, module: nn.Module, path: str | Path) -> None:
    """Give a module the weights of a file."""
    tensors, _ = read_checkpoint(path)
    module.load_state_dict(fitting(name, module, tensors, path))
