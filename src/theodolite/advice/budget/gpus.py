"""GPUs by name: how many FLOPs a second in bfloat16, and how much memory.

Dense peaks of the tensor cores with float32 sums, from the makers' data sheets; figures "with sparsity" are twice as
large and no training reaches them. Memory is the printed one, 1 GB = 10⁹ bytes: what the driver shows is a few percent
more, and the context of CUDA and the allocator's gaps take about that.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from theodolite.errors import UnknownName


@dataclass(frozen=True)
class Gpu:
    name: str
    teraflops: float  # bfloat16, dense
    gigabytes: float

    @property
    def flops(self) -> float:
        """A second, at its peak."""
        return self.teraflops * 1e12

    @property
    def bytes(self) -> float:
        return self.gigabytes * 1e9

    def __str__(self) -> str:
        return f"{self.name} ({self.gigabytes:g} GB)"


GPUS = {
    one.name: one
    for one in (
        Gpu("a100-40gb", 312, 40),
        Gpu("a100", 312, 80),
        Gpu("h100", 989, 80),  # SXM
        Gpu("h100-pcie", 756, 80),
        Gpu("h200", 989, 141),
        Gpu("b200", 2250, 180),
        Gpu("mi250x", 383, 128),  # both dies
        Gpu("mi300x", 1307, 192),
        Gpu("mi325x", 1307, 256),
        Gpu("l4", 121, 24),
        Gpu("l40s", 362, 48),
        Gpu("rtx4090", 165, 24),
    )
}


def gpu(name: str) -> Gpu:
    """That GPU, in whatever case it is written.

    Examples:
        >>> gpu("H100").gigabytes
        80
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted not in GPUS:
        near = difflib.get_close_matches(wanted, GPUS, n=1)
        hint = f", did you mean '{near[0]}'" if near else ""
        raise UnknownName(f"there is no GPU '{name}' in the table{hint}; it has {', '.join(GPUS)}")
    return GPUS[wanted]
