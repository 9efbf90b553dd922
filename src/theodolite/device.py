"""Where a computation runs, on how many CPU threads, and how much memory is free there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from theodolite.errors import BadInput, NotEnoughMemory


def resolve_device(name: str | torch.device) -> torch.device:
    """`cpu`, `cuda` or `cuda:1`; a device that is not there is refused, never replaced by another."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise BadInput(f"there is no device '{name}': use cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise BadInput(f"float64 sums are needed and '{name}' is not known to have them: use cpu or cuda")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise BadInput("--device cuda was asked for and this machine has no CUDA device: use --device cpu")
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise BadInput(f"there is no device '{name}': this machine has {torch.cuda.device_count()} CUDA devices")
    return device


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def threads_each(processes: int) -> int:
    """CPU threads of each of so many processes: what `OMP_NUM_THREADS` says, else torch's own number, and no more than
    the cores shared out."""
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # more numbers are those of nested regions
    if said.isdecimal() and int(said):
        return int(said)
    return max(1, min(torch.get_num_threads(), (os.cpu_count() or 1) // processes))


@contextmanager
def cpu_threads(number: int | None) -> Iterator[None]:
    """Torch's threads in here, and those of before afterwards: they are the whole process's. None leaves them alone."""
    before = torch.get_num_threads()
    if number is None or number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 8 << 30


def require_memory(needed: int, device: torch.device, what: str) -> None:
    free = free_bytes(device)
    if needed > 0.9 * free:
        raise NotEnoughMemory(
            f"{what} needs {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free on {device}: "
            "use fewer points or a smaller net"
        )
