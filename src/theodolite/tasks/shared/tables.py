"""Small constant tables that a generator reads, taken to its device without waiting for it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def on_device(table: np.ndarray, device: torch.device) -> Tensor:
    """The table there. A copy from pageable memory would wait for a GPU; one from pinned memory does not."""
    held = torch.from_numpy(table)
    return held.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else held.to(device)
