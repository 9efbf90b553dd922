"""What benchmarks share: a clock that waits for the device, and the name of the machine."""

from __future__ import annotations

import datetime
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def timed(run: Callable[[], object], repeats: int, device: torch.device, warm_up: bool = True) -> float:
    def once() -> float:
        synchronise(device)
        tick = time.perf_counter()
        run()
        synchronise(device)
        return time.perf_counter() - tick

    if warm_up:
        once()
    return statistics.median(once() for _ in range(repeats))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def hardware(device: torch.device) -> dict[str, object]:
    cpu = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.processor()
    )
    return {
        "cpu": cpu,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
