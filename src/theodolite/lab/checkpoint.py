"""A group's state between two steps, as a safetensors file: whole or not at all, read back exactly, never unpickled."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from theodolite.errors import DiskFull, StoreError
from theodolite.lab.store.database import DISK_FULL

SUM = "theodolite.crc32"  # safetensors itself would read flipped bits without a word


def write_checkpoint(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """On the disk for good when this returns; a file that was there before stays until then."""
    if SUM in metadata:
        raise ValueError(f"the name '{SUM}' is taken by the checksum")
    held = _apart(tensors)
    _write(Path(path), lambda unfinished: save_file(held, unfinished, {**metadata, SUM: _sum(held)}))


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


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors on the CPU, each in memory of its own, and the metadata that was written with them."""
    source = Path(path)
    if source.is_dir():
        raise StoreError(f"'{source}' is a folder: give the path of a checkpoint")
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
    if metadata.pop(SUM, None) not in (None, _sum(tensors)):
        raise StoreError(f"the checkpoint '{source}' is damaged (its checksum differs): give another")
    return tensors, metadata


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


def _sum(tensors: Mapping[str, Tensor]) -> str:
    total = 0
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        if tensor.numel():
            total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"


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
