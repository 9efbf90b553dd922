"""What predicts the loss of a decoder on text: its parameters, or the exact rank of its attention?

`python benchmarks/scale_predictors.py [--out FILE]` reads the newest `results/scale-study-*.json`: the share of the
variance of ln loss over all shapes that straight lines in ln parameters, in ln log₃ of the rank's cap (one head of
full width), and in both explain, with 95 % intervals over resampled shapes; and, at equal parameters, the rank
correlation of the cap with the loss.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from theodolite.measurement import seed_of
from theodolite.statistics.bootstrap import percentile_interval
from theodolite.theory.cap import attention_cap_log3

RESULTS = Path(__file__).parent / "results"
RESAMPLES = 2000


def explained(columns: list[np.ndarray], target: np.ndarray) -> float:
    """R² of least squares with a constant."""
    design = np.stack([np.ones_like(target), *columns], axis=1)
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return 1 - float(residual @ residual) / float(np.sum((target - target.mean()) ** 2))


def predictors(sizes: list[dict[str, Any]]) -> dict[str, Any]:
    shapes = [point for size in sizes for point in size["points"]]
    loss = np.log([point["bits_per_byte"] for point in shapes])
    known = {
        "parameters": np.log([point["parameters"] for point in shapes]),
        "rank": np.log([attention_cap_log3(point["depth"], point["width"]) for point in shapes]),
    }
    generator = np.random.default_rng(seed_of(["predictors of the loss"]))
    drawn = generator.integers(len(shapes), size=(RESAMPLES, len(shapes)))
    found = {}
    for names in (("parameters",), ("rank",), ("parameters", "rank")):
        columns = [known[name] for name in names]
        resampled = [explained([c[rows] for c in columns], loss[rows]) for rows in drawn]
        found[" and ".join(names)] = {"r2": explained(columns, loss), "interval": percentile_interval(resampled)}
    return {
        "shapes": len(shapes),
        "variance of ln loss explained": found,
        "at equal parameters": {str(size["size"]): _at_equal(size["points"]) for size in sizes},
    }


def _at_equal(points: list[dict[str, Any]]) -> dict[str, float]:
    caps = [attention_cap_log3(point["depth"], point["width"]) for point in points]
    said: Any = spearmanr(caps, [point["bits_per_byte"] for point in points])
    correlation, chance = float(said.statistic), float(said.pvalue)
    assert math.isfinite(correlation)
    return {"spearman": correlation, "p": chance, "shapes": len(points)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    newest = max(RESULTS.glob("scale-study-*.json"), key=lambda path: path.stem[-10:])
    study = json.loads(newest.read_text(encoding="utf-8"))
    found = json.dumps({"from": newest.name, **predictors(study["sizes"])}, indent=1)
    print(found)
    if out is not None:
        out.write_text(found + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
