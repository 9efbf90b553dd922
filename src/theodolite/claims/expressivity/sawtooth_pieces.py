"""Sawtooth witnesses with their parts counted: parameters, units, and linear pieces in exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.errors import BadInput
from theodolite.nets.size import count_parameters
from theodolite.tasks.contract import make_task
from theodolite.witness.contract import Witness
from theodolite.witness.pieces import broken_line_of, pieces, sawtooth
from theodolite.witness.registered_nets.mlp import broken_curve, deep_sawtooth
from theodolite.witness.tent import RecurrentTent, recurrent_tent

_FORMS = {"shallow": broken_curve, "deep": deep_sawtooth, "recurrent": recurrent_tent}


def measure_sawtooth_witness(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: form (shallow, deep, recurrent), folds. `gap` is the largest distance from the tent map, 0 if exact."""
    witness = sawtooth_witness(config["form"], config["folds"])
    module: Any = witness.module
    line = broken_line_of(module.unrolled()) if isinstance(module, RecurrentTent) else pieces(module)
    return {
        "pieces": line.pieces,
        "gap": float(line.gap(sawtooth(config["folds"]))),
        "parameters": count_parameters(module),
        "units": witness.units,
        "depth": witness.depth,
    }


def sawtooth_witness(form: str, folds: int) -> Witness:
    if form not in _FORMS:
        raise BadInput(f"a sawtooth has no form '{form}': use {', '.join(_FORMS)}")
    witness = _FORMS[form](make_task("sawtooth", {"folds": folds}), {})
    assert isinstance(witness, Witness)  # all forms cover every sawtooth
    return witness
