"""A group and its files, for a machine that shares no disk with this one: packed here, run there, delivered back.

The worker writes its checkpoints and weights into a folder of its own; they travel with the update they belong to, and
only the command that plans puts them into its store.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from theodolite.device import resolve_device
from theodolite.errors import BadInput, StoreError
from theodolite.lab.checkpoint import write_whole
from theodolite.lab.engines.pool import Failed, Paused, failed
from theodolite.lab.group import Group
from theodolite.lab.run_cells import place, task_place
from theodolite.lab.work import Context, Update, work
from theodolite.nets import fingerprint
from theodolite.nets.from_file import is_file
from theodolite.version import __version__


@dataclass(frozen=True)
class Parcel:
    """A group with the content of every file it needs. The paths in `context` mean nothing where it arrives."""

    group: Group
    context: Context
    checkpoint: bytes | None = None
    initial: bytes | None = None
    # by place, of nets and tasks: the file's name, its content, the class, and the files it imports from its folder
    nets: Mapping[str, tuple[str, bytes, str, Mapping[str, bytes]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivery:
    """An update with the files that were written for it."""

    update: Update
    checkpoint: bytes | None = None
    weights: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Hello:
    """A worker that is ready, and what it is."""

    version: str
    torch: str
    host: str
    pid: int

    @classmethod
    def here(cls) -> Hello:
        return cls(__version__, torch.__version__, socket.gethostname(), os.getpid())


News = Delivery | Failed | Paused


def pack(group: Group, context: Context) -> Parcel:
    """Read what the group needs. A checkpoint that is not there any more costs time only: the group begins again."""
    configs = [cell.config for cell in group.cells if "source" in cell.config]
    places = [*map(place, configs), *(task_place(config) for config in configs if "task_source" in config)]
    locations = {key: context.locations[key] for key in places if key in context.locations}
    return Parcel(
        group=group,
        context=replace(context, locations=locations),
        checkpoint=None if group.checkpoint is None else _content(context.checkpoints / group.checkpoint),
        initial=None if context.initial is None else context.initial.read_bytes(),
        nets={key: _file_of(net) for key, net in locations.items() if is_file(net)},
    )


def unpack(parcel: Parcel, folder: Path) -> Context:
    """The group's context in a folder of this machine. A user's file keeps its name, which is part of the cells."""
    old = parcel.context
    checkpoints, weights, initial = folder / "checkpoints", folder / "weights", folder / _initial_name(old)
    checkpoints.mkdir()
    weights.mkdir()
    if parcel.checkpoint is not None and parcel.group.checkpoint is not None:
        (checkpoints / parcel.group.checkpoint).write_bytes(parcel.checkpoint)
    if parcel.initial is not None:
        initial.write_bytes(parcel.initial)
    locations = dict(old.locations)
    for key, (name, content, inside, beside) in parcel.nets.items():
        own = folder / hashlib.sha256(content).hexdigest()[:16]
        for path, text in {**beside, name: content}.items():
            (own / path).parent.mkdir(parents=True, exist_ok=True)
            (own / path).write_bytes(text)
        locations[key] = f"{own / name}:{inside}"
    return replace(
        old,
        checkpoints=checkpoints,
        locations=locations,
        weights=None if old.weights is None else weights,
        initial=None if parcel.initial is None else initial,
    )


def _initial_name(context: Context) -> str:
    """The file's ending says how it is read."""
    return f"initial{'.safetensors' if context.initial is None else context.initial.suffix}"


def run_parcel(parcel: Parcel, stopping: Callable[[], bool]) -> Iterator[News]:
    """What a worker elsewhere does with a group: it never raises, and its last word is an end of some kind."""
    group, done = parcel.group, False
    try:
        with tempfile.TemporaryDirectory(prefix="theodolite-") as folder:
            context = unpack(parcel, Path(folder))
            _check_device(group.settings["device"])
            for update in work(group, context, stopping):
                yield _delivery(update, context)
                done = update.done
    except Exception as error:
        yield failed(group.id, error)
    else:
        if not done:
            yield Paused(group.id)


def receive(delivery: Delivery, context: Context) -> Update:
    """Put the files of a delivery where the store expects them; only then its update counts."""
    update = delivery.update
    if update.checkpoint is not None:
        if delivery.checkpoint is None:
            raise StoreError(f"the checkpoint '{update.checkpoint}' was lost on its way: start the command again")
        write_whole(context.checkpoints / update.checkpoint, delivery.checkpoint)
    if context.weights is not None:
        for name, content in delivery.weights.items():
            write_whole(context.weights / name, content)
    return update


def _delivery(update: Update, context: Context) -> Delivery:
    checkpoint = None if update.checkpoint is None else context.checkpoints / update.checkpoint
    written = [] if context.weights is None or not update.rows else sorted(context.weights.iterdir())
    found = Delivery(
        update,
        None if checkpoint is None else checkpoint.read_bytes(),
        {file.name: file.read_bytes() for file in written},
    )
    for file in (*written, *([] if checkpoint is None else [checkpoint])):
        file.unlink()
    return found


def _check_device(name: str) -> None:
    """A node without the device refuses the whole group, before one of its cells is marked as not measurable."""
    try:
        resolve_device(name)
    except BadInput as error:
        raise BadInput(f"on the node '{socket.gethostname()}': {error}") from error


def _file_of(net: str) -> tuple[str, bytes, str, Mapping[str, bytes]]:
    path, _, inside = net.rpartition(":")
    content = _content(Path(path))
    if content is None:
        raise BadInput(f"the file '{path}' cannot be read any more: put it back, and start the command again")
    return Path(path).name, content, inside, fingerprint.neighbours(Path(path).resolve().parent)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
