"""Word problems of groups: whether explicit weights of a network answer them at one length, however long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.witness.express import express


def measure_word_problem_witness(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: net, group, length, samples. The task with two generators, on drawn inputs of that length alone."""
    length = config["length"]
    arguments = {"group": config["group"], "generators": "two", "shortest": length, "longest": length}
    found = express("word-problem", config["net"], task_args=arguments, seed=seed, samples=config["samples"])
    fields = ("expressible", "witness", "units", "depth", "parameters", "predicted", "verified_on", "errors", "margin")
    return {name: found.to_json()[name] for name in fields}
