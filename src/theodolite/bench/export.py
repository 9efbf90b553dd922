"""Finished members handed to trackers of experiments, each by its own library: a run of theirs for every member."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from theodolite.bench.columns import flat, settings
from theodolite.errors import BadInput, UnknownName
from theodolite.lab.cell import Row
from theodolite.registry import unknown

_PROJECT = "theodolite"
_KEY = "theodolite.key"  # of a member, by which a later export knows it
_OTHER = re.compile(r"[^\w.=+-]")  # what no name of a folder has here: a store may come from anywhere
_FINAL = ("accuracy", "unseen", "exact", "solved_at", "trained_steps", "parameters", "seconds")


def export(rows: Sequence[Row], format: str, folder: str | Path) -> int:
    """Write members as `tensorboard` event files, `wandb` offline runs or a database of `mlflow`; how many were new.

    Every member has its settings, its curve of losses and scores, and its last scores. One that is there is left.
    """
    if format not in _FORMATS:
        raise UnknownName(unknown("format of runs", format, _FORMATS))
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder '{folder}' cannot be made ({error.strerror}): choose another") from error
    return _FORMATS[format](rows, place.resolve())


def run_name(key: str, config: Mapping[str, Any]) -> str:
    """`lstm/parity/lr=0.001 wd=0 seed=3 1a2b3c4d`."""
    rates = f"lr={config['lr']:g} wd={config['weight_decay']:g} seed={config['seed']}"
    names = (_OTHER.sub("_", str(config[name])).strip(".") or "_" for name in ("net", "task"))
    return "/".join([*names, f"{rates} {key[:8]}"])


def summary_writer() -> Any:
    """TensorBoard's class, which torch has and which needs the library."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise BadInput("tensorboard is not installed: pip install 'theodolite[track]'") from None
    return SummaryWriter


def _tensorboard(rows: Sequence[Row], folder: Path) -> int:
    make, written = summary_writer(), 0
    for row in rows:
        place = folder / run_name(row.cell.key, row.cell.config)
        if place.is_dir() and any(place.iterdir()):
            continue
        with make(str(place)) as writer:
            for step, values in _curve(row):
                for name, value in values.items():
                    writer.add_scalar(name, value, step)
            writer.add_hparams(_settings(row), {f"final/{name}": v for name, v in _final(row).items()}, run_name=".")
        written += 1
    return written


def _wandb(rows: Sequence[Row], folder: Path) -> int:
    with _needed("wandb"):
        import wandb  # pyright: ignore[reportMissingImports]
    quiet, written = wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True), 0
    for row in rows:
        key = row.cell.key[:16]
        if any(folder.glob(f"wandb/offline-run-*-{key}")):
            continue
        name = run_name(row.cell.key, row.cell.config)
        about: dict[str, Any] = {
            "config": {**_settings(row), _KEY: row.cell.key},
            "mode": "offline",
            "dir": str(folder),
        }
        with wandb.init(project=_PROJECT, id=key, name=name, settings=quiet, **about) as run:
            for step, values in _curve(row):
                run.log(values, step=step)
            run.summary.update(_final(row) | {"status": row["status"]})
        written += 1
    return written


def _mlflow(rows: Sequence[Row], folder: Path) -> int:
    with _needed("mlflow"):
        from mlflow import MlflowClient  # pyright: ignore[reportMissingImports]
        from mlflow.entities import Metric, Param, RunTag  # pyright: ignore[reportMissingImports]
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    there = client.get_experiment_by_name(_PROJECT)
    made = None if there is not None else client.create_experiment(_PROJECT, (folder / "artifacts").as_uri())
    experiment = made if there is None else there.experiment_id
    written = 0
    for row in rows:
        if client.search_runs([experiment], f"tags.`{_KEY}` = '{row.cell.key}'", max_results=1):
            continue
        run = client.create_run(experiment, run_name=run_name(row.cell.key, row.cell.config)).info.run_id
        curve = [Metric(name, value, 0, step) for step, values in _curve(row) for name, value in values.items()]
        last = [Metric(f"final_{name}", value, 0, 0) for name, value in _final(row).items()]
        params = [Param(name, str(value)) for name, value in _settings(row).items()]
        tags = [RunTag(_KEY, row.cell.key), RunTag("status", row["status"])]
        for start in range(0, max(len(curve) + len(last), 1), 900):  # a thousand at once at most
            client.log_batch(run, (curve + last)[start : start + 900], () if start else params, () if start else tags)
        client.set_terminated(run)
        written += 1
    return written


_FORMATS: dict[str, Callable[[Sequence[Row], Path], int]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


@contextmanager
def _needed(library: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise BadInput(f"{library} is not installed: pip install {library}, or choose another format") from None


def _curve(row: Row) -> Iterator[tuple[int, dict[str, float]]]:
    for step, loss, score in row.result.get("curve") or ():
        yield step, {name: value for name, value in (("loss", loss), ("accuracy", score)) if value is not None}


def _final(row: Row) -> dict[str, float]:
    told = flat(row)
    return {name: told[name] for name in _FINAL if told[name] is not None}


def _settings(row: Row) -> dict[str, str | int | float | bool]:
    """By column; a list or nothing is text."""
    plain = (str, int, float, bool)
    return {name: v if isinstance(v, plain) else json.dumps(v) for name, v in settings(row.cell.config).items()}
