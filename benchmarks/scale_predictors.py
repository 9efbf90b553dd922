"""What predicts the loss of a decoder on text: its parameters, or the exact rank of its attention?

`python benchmarks/scale_predictors.py [--out FILE]` reads the newest `results/scale-study-*.json`: the share of the
variance of ln loss over all shapes that straight lines in ln parameters, in ln log₃ of the rank's cap (one head of
full width), and in both explain, with 95 % intervals over resampled shapes; and, at equal parameters, the rank
correlation of the cap with the loss. The loss is the mean over seeds; the same stands beside it for the least of them,
which seeds that stumbled at a rate too high for their width do not move.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
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


def predictors(sizes: list[dict[str, Any]], of_seeds: Callable[[list[float]], float]) -> dict[str, Any]:
    shapes = [point for size in sizes for point in size["points"]]
    loss = np.log([of_seeds(point["seeds"]) for point in shapes])
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
        "variance of ln loss explained": found,
        "at equal parameters": {str(size["size"]): _at_equal(size["points"], of_seeds) for size in sizes},
    }


def _at_equal(points: list[dict[str, Any]], of_seeds: Callable[[list[float]], float]) -> dict[str, float]:
    caps = [attention_cap_log3(point["depth"], point["width"]) for point in points]
    said: Any = spearmanr(caps, [of_seeds(point["seeds"]) for point in points])
    correlation, chance = float(said.statistic), float(said.pvalue)
    assert math.isfinite(correlation)
    return {"spearman": correlation, "p": chance, "shapes": len(points)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    newest = max(RESULTS.glob("scale-study-*.json"), key=lambda path: path.stem[-10:])
    study = json.loads(newest.read_text(encoding="utf-8"))
    ways: dict[str, Callable[[list[float]], float]] = {"mean of seeds": fmean, "least of seeds": min}
    found = json.dumps(
        {"from": newest.name, **{name: predictors(study["sizes"], way) for name, way in ways.items()}}, indent=1
    )
    print(found)
    if out is not None:
        out.write_text(found + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
