"""The valley of one size as a measure, for claims: a pinned text, whose networks are kept in a store beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput
from theodolite.lab.running import Running
from theodolite.scaling.scale import scale


def measure_depth_against_width(config: Mapping[str, Any], device: str) -> dict[str, Any]:
    """config: text, digest, size, and what else `scale` takes, seeds as a number. Networks that `scale` has in the
    folder named like the text and `-scale` are not trained again."""
    text, digest, size = (config[name] for name in ("text", "digest", "size"))
    options = {name: value for name, value in config.items() if name not in ("text", "digest", "size")}
    if not Path(text).exists():
        raise BadInput(f"there is no text '{text}' here: python benchmarks/scale_text.py --out {text} gathers it")
    running = Running(device, f"{text}-scale", compile="never")
    found = scale(text, sizes=[size], running=running, **options)
    if found.about["digest"] != digest:
        raise BadInput(f"the text '{text}' is {found.about['digest']} and not {digest}: gather that one")
    if found.failures:
        raise BadInput(f"networks of {size:,} parameters failed: {found.failures[0].sentence}")
    return {
        **found.valleys[0].to_json(),
        "left_out": list(found.left_out),
        "about": dict(found.about),
        "devices": found.about["devices"],
    }
