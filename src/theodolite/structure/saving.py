"""A discovery in a folder: the graph, what predicts, what was found; and what predicts back from there."""

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
from theodolite.structure.additive import Additive
from theodolite.structure.boosting import Forest
from theodolite.structure.data.coding import Coding
from theodolite.structure.fit.fitting import Fitted
from theodolite.structure.onnx_file import onnx_bytes
from theodolite.structure.predictions import Predictor
from theodolite.structure.process import GaussianProcess
from theodolite.structure.result import Discovery
from theodolite.structure.stacking import Model, WeightedMean

GRAPH, MODEL, ONNX, DISCOVERY = "graph.json", "model.safetensors", "model.onnx", "discovery.json"
DRAWING, REPORT = "graph.svg", "report.html"
FILES = (GRAPH, DRAWING, MODEL, ONNX, REPORT, DISCOVERY)
_FORMAT = "theodolite model of a table, 3"
_RESIDUALS = "residuals"
_KINDS = {"graph": Fitted, "dense": Fitted, "boosting": Forest, "additive": Additive, "process": GaussianProcess}


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
    """Write the graph, what predicts and the discovery, and `pages` made from it (graph.svg, report.html).

    What an earlier discovery left there goes, so that the files of a folder belong together.
    """
    check_folder(folder)
    output = OutputFolder(folder)
    for name in FILES:
        output.file(name).unlink(missing_ok=True)
    written = [output.write(GRAPH, _text(found.graph.to_json()))]
    written += [output.write(name, text) for name, text in (pages or {}).items()]
    if found.model is not None:
        predictor = found.predictor()
        written.append(save_predictor(predictor, output.file(MODEL)))
        write_whole(output.file(ONNX), onnx_bytes(predictor.model, len(predictor.coding.variables)))
        written.append(output.file(ONNX))
    return [*written, output.write(DISCOVERY, _text(finite(found.to_json())))]


def save_predictor(predictor: Predictor, path: str | Path) -> Path:
    """Weights, scales, trees, rows of a process and errors as a safetensors file; the rest in its metadata."""
    arrays: dict[str, Any] = {_RESIDUALS: predictor.residuals}
    parts = {}
    for name, model in predictor.model.models.items():
        assert isinstance(model, Fitted | Forest | Additive | GaussianProcess)
        own, document = model.state()
        arrays |= {f"{name}.{key}": array for key, array in own.items()}
        parts[name] = {**document, "weight": predictor.model.weights[name]}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    model = {"models": parts, "offset": predictor.model.offset}
    table = {"target": predictor.target, "coding": predictor.coding.to_json()}
    text = {"model": json.dumps(model, allow_nan=False), "table": json.dumps(table, allow_nan=False)}
    write_checkpoint(path, tensors, {"format": _FORMAT, **text})
    return Path(path)


def load_predictor(folder: str | Path) -> Predictor:
    """What `save` left in a folder, or a file of it, to predict a new table by; nothing in it is ever run."""
    path = Path(folder) / MODEL if Path(folder).is_dir() else Path(folder)
    if not path.is_file():
        raise BadInput(f"there is no '{path}': give a folder that 'theodolite discover --out' wrote")
    tensors, metadata = read_checkpoint(path)
    try:
        if metadata.get("format") != _FORMAT:
            raise BadInput("it is of another kind, or of another version")
        document, table = json.loads(metadata["model"]), json.loads(metadata["table"])
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        coding = Coding.from_json(table["coding"])
        offset = _finite(document, "offset")
        models, weights = {}, {}
        for name, one in document["models"].items():
            own = {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}
            models[name], weights[name] = _model(name, own, one, coding), _finite(one, "weight")
        return Predictor(WeightedMean(models, weights, offset), coding, str(table["target"]), arrays[_RESIDUALS])
    except (BadInput, KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise BadInput(f"'{path}' is no model that discover wrote ({error}): give another") from error


def _model(name: str, arrays: Mapping[str, Any], document: Mapping[str, Any], coding: Coding) -> Model:
    for key in ("offset", "spread") if _KINDS[name] is Fitted else ("offset",):
        _finite(document, key)
    kind = _KINDS[name]
    if kind is not Fitted:
        return kind.from_state(arrays, document, len(coding.variables))
    model = Fitted.from_state(arrays, document)
    if coding.variables != model.graph.variables:
        raise BadInput("its columns are not the variables of its graph")
    return model


def _finite(document: Mapping[str, Any], name: str) -> float:
    if not isinstance(document[name], int | float) or not math.isfinite(document[name]):
        raise BadInput(f"its {name} is {document[name]!r} and no finite number")
    return float(document[name])


def _text(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
