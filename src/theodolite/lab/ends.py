"""Where a training ended that may grow, kept beside the checkpoints: a longer one of the same members goes on from it.

A checkpoint belongs to an open group and goes with it; an end stays until a longer training of that lineage has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint
from theodolite.lab.condition import lineage
from theodolite.lab.group import Group

_FOLDER = "ends"


def write_end(
    checkpoints: Path, group: Group, step: int, tensors: Mapping[str, Tensor], texts: Mapping[str, str]
) -> None:
    """The state after the last step; ends of shorter trainings are not needed any more."""
    folder = checkpoints / _FOLDER
    folder.mkdir(exist_ok=True)
    write_checkpoint(folder / f"{_name(group)}-{step}.safetensors", tensors, texts)
    for reached, shorter in _ends(checkpoints, group).items():
        if reached < step:
            shorter.unlink(missing_ok=True)


def read_end(checkpoints: Path, group: Group, steps: int) -> tuple[dict[str, Tensor], dict[str, str]] | None:
    """The furthest end of these members within so many steps."""
    reached = {step: path for step, path in _ends(checkpoints, group).items() if step <= steps}
    return read_checkpoint(reached[max(reached)]) if reached else None


def _ends(checkpoints: Path, group: Group) -> dict[int, Path]:
    pattern = re.compile(rf"{_name(group)}-([0-9]+)\.safetensors")
    folder = checkpoints / _FOLDER
    found = ((pattern.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ()))
    return {int(match[1]): path for match, path in found if match}


def _name(group: Group) -> str:
    """Of the same members on the same kind of device, however many steps; how they are batched stands in the state."""
    device = str(group.settings.get("device", "cpu")).partition(":")[0]
    return Group.of([lineage(cell) for cell in group.cells], {"device": device}).id
