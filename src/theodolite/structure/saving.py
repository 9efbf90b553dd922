"""A discovery in a folder: the graph, the network, what was found; and the network back from there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theodolite.errors import BadInput
from theodolite.files import OutputFolder
from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint, write_whole
from theodolite.measurement import finite
from theodolite.structure.data.coding import Coding
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.onnx_file import onnx_bytes
from theodolite.structure.predictions import Predictor
from theodolite.structure.result import Discovery

GRAPH, MODEL, ONNX, DISCOVERY = "graph.json", "model.safetensors", "model.onnx", "discovery.json"
DRAWING, REPORT = "graph.svg", "report.html"
FILES = (GRAPH, DRAWING, MODEL, ONNX, REPORT, DISCOVERY)
_FORMAT = "theodolite network of a graph, 2"
_RESIDUALS = "residuals"
_NUMBERS = ("offset", "spread")


def check_folder(folder: str | Path) -> None:
    """Refuse a folder with anything else in it before a long computation; an earlier discovery is written over."""
    place = Path(folder)
    try:
        if place.exists() and not place.is_dir():
            raise BadInput(f"'{folder}' is a file: give a folder to --out")
        foreign = sorted(e.name for e in place.iterdir() if e.name not in FILES) if place.is_dir() else []
    except OSError as error:
        raise BadInput(f"the folder '{folder}' cannot be used ({error.strerror}): choose another --out") from error
    if foreign:
        named = ", ".join(f"'{name}'" for name in foreign[:3]) + (" and more" if len(foreign) > 3 else "")
        raise BadInput(f"the folder '{folder}' holds something else ({named}): choose an empty or a new one for --out")


def save(found: Discovery, folder: str | Path, pages: Mapping[str, str] | None = None) -> list[Path]:
    """Write the graph, the network and the discovery, and `pages` made from it (graph.svg, report.html).

    What an earlier discovery left there goes, so that the files of a folder belong together.
    """
    check_folder(folder)
    output = OutputFolder(folder)
    for name in FILES:
        output.file(name).unlink(missing_ok=True)
    written = [output.write(GRAPH, _text(found.graph.to_json()))]
    written += [output.write(name, text) for name, text in (pages or {}).items()]
    if found.model is not None:
        written.append(save_predictor(found.predictor(), output.file(MODEL)))
        write_whole(output.file(ONNX), onnx_bytes(found.model))
        written.append(output.file(ONNX))
    return [*written, output.write(DISCOVERY, _text(finite(found.to_json())))]


def save_predictor(predictor: Predictor, path: str | Path) -> Path:
    """Weights, scales and errors as a safetensors file; the graph, the shape and the columns in its metadata."""
    arrays, document = predictor.model.state()
    arrays = {**arrays, _RESIDUALS: predictor.residuals}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    table = {"target": predictor.target, "coding": predictor.coding.to_json()}
    text = {"model": json.dumps(document, allow_nan=False), "table": json.dumps(table, allow_nan=False)}
    write_checkpoint(path, tensors, {"format": _FORMAT, **text})
    return Path(path)


def load_model(folder: str | Path) -> Fitted:
    """The network that `save` left in a folder, or a file of it; nothing in it is ever run."""
    return load_predictor(folder).model


def load_predictor(folder: str | Path) -> Predictor:
    """The network with what a new table needs, likewise."""
    path = Path(folder) / MODEL if Path(folder).is_dir() else Path(folder)
    if not path.is_file():
        raise BadInput(f"there is no '{path}': give a folder that 'theodolite discover --out' wrote")
    tensors, metadata = read_checkpoint(path)
    try:
        if metadata.get("format") != _FORMAT:
            raise BadInput("it is of another kind")
        document, table = json.loads(metadata["model"]), json.loads(metadata["table"])
        if not isinstance(document, dict) or not isinstance(table, dict):
            raise BadInput("it is of another kind")
        for name in _NUMBERS:
            if not isinstance(document[name], int | float) or not math.isfinite(document[name]):
                raise BadInput(f"its {name} is {document[name]!r} and no finite number")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        model, coding = Fitted.from_state(arrays, document), Coding.from_json(table["coding"])
        if coding.variables != model.graph.variables:
            raise BadInput("its columns are not the variables of its graph")
        return Predictor(model, coding, str(table["target"]), arrays[_RESIDUALS])
    except (BadInput, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"'{path}' is no network that discover wrote ({error}): give another") from error


def _text(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
