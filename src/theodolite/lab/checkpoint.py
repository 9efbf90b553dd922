"""A group's state between two steps, as a safetensors file: whole or not at all, read back exactly, never unpickled."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from theodolite.errors import DiskFull, StoreError
from theodolite.lab.store.database import DISK_FULL
from theodolite.nets.weights import SUM, sum_of
from theodolite.nets.weights import read_checkpoint as read_checkpoint


def write_checkpoint(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """On the disk for good when this returns; a file that was there before stays until then."""
    if SUM in metadata:
        raise ValueError(f"the name '{SUM}' is taken by the checksum")
    held = _apart(tensors)
    _write(Path(path), lambda unfinished: save_file(held, unfinished, {**metadata, SUM: sum_of(held)}))


def write_whole(path: str | Path, content: bytes) -> None:
    """A checkpoint that was written elsewhere, likewise."""
    _write(Path(path), lambda unfinished: unfinished.write_bytes(content))


def _write(target: Path, fill: Callable[[Path], object]) -> None:
    unfinished: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        unfinished = Path(name)
        fill(unfinished)
        unfinished.chmod(0o644)
        _to_disk(unfinished)
        unfinished.replace(target)
        _to_disk(target.parent)
    except (OSError, SafetensorError) as error:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        raise _cannot_write(target, error) from error


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU, dense, no two in one memory: what the format can hold."""
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        held = tensor.detach().to("cpu").contiguous()
        memory = held.untyped_storage()
        if memory.data_ptr() in seen or memory.nbytes() != held.numel() * held.element_size():
            held = held.clone(memory_format=torch.contiguous_format)
        seen.add(held.untyped_storage().data_ptr())
        apart[name] = held
    return apart


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(target: Path, error: Exception) -> StoreError:
    code = error.errno if isinstance(error, OSError) else None
    if code is None and (match := re.search(r"os error (\d+)", str(error))):  # the Rust library tells it as text only
        code = int(match[1])
    if code == errno.ENOSPC:
        return DiskFull(DISK_FULL)
    reason = os.strerror(code) if code is not None else str(error)
    return StoreError(f"the checkpoint '{target}' cannot be written ({reason}): choose another folder")
