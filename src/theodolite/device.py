"""Where a computation runs and how much memory is free there."""

from __future__ import annotations

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
