"""Real tables, ours beside boosting and additive models: python benchmarks/real_tables.py --json --out rows.jsonl.

15 tables that ship with packages: 3 of scikit-learn, 9 of ISLP and 3 of statsmodels (`pip install --no-deps ISLP
statsmodels` is enough, their files are read and their code is not run), and EBM of `interpret-core`; what is not
installed is left out and named. Every split puts a quarter of the rows aside; the figure is R² on these, of classes
1 − Brier's score over that of the class shares. A line of the file of `--out` for each figure; a second start goes on.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats

from discover_jobs import Job, Row, run_all, seconds, timed
from estimators import boosting, ebm
from timing import hardware

ROWS = 1_500  # of a table, drawn once where it has more
HELD_OUT = 0.25
METHODS = ("theodolite", "boosting", "ebm")


@dataclass(frozen=True)
class RealTable:
    package: str
    file: str
    target: str
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    classes: bool = False


TABLES = {
    "diabetes": RealTable("sklearn", "load_diabetes", "target"),
    "breast-cancer": RealTable("sklearn", "load_breast_cancer", "target", classes=True),
    "wine": RealTable("sklearn", "load_wine", "target", classes=True),
    "Carseats": RealTable("ISLP", "data/Carseats.csv", "Sales"),
    "Wage": RealTable("ISLP", "data/Wage.csv", "wage", ("logwage",)),
    "Hitters": RealTable("ISLP", "data/Hitters.csv", "Salary"),
    "College": RealTable("ISLP", "data/College.csv", "Grad.Rate"),
    "Boston": RealTable("ISLP", "data/Boston.csv", "medv"),
    "Auto": RealTable("ISLP", "data/Auto.csv", "mpg", ("name",), ("origin",)),
    "Credit": RealTable("ISLP", "data/Credit.csv", "Balance", ("ID",)),
    "Bikeshare": RealTable("ISLP", "data/Bikeshare.csv", "bikers", ("casual", "registered"), ("weathersit", "mnth")),
    "OJ": RealTable("ISLP", "data/OJ.csv", "Purchase", categories=("StoreID", "STORE"), classes=True),
    "fair": RealTable("statsmodels", "datasets/fair/fair.csv", "affairs"),
    "randhie": RealTable("statsmodels", "datasets/randhie/randhie.csv", "mdvis"),
    "star98": RealTable("statsmodels", "datasets/star98/star98.csv", "PR50M", ("MATHTOT",)),
}


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Variables, categories as such, and the target; rows whose target is not known are left out."""
    table = TABLES[name]
    if table.package == "sklearn":
        from sklearn import datasets

        frame = getattr(datasets, table.file)(as_frame=True).frame
    else:
        frame = pd.read_csv(_folder(table.package) / table.file)
    frame = frame.dropna(subset=[table.target])
    if len(frame) > ROWS:
        frame = frame.sample(ROWS, random_state=0)
    frame = frame.drop(columns=list(table.drop)).reset_index(drop=True)
    for column in frame.columns.drop(table.target):
        if column in table.categories or frame[column].dtype.kind not in "biuf":
            frame[column] = frame[column].astype("category")
    return frame.drop(columns=table.target), frame[table.target]  # pyright: ignore[reportReturnType]


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return Path(spec.origin).parent


def measure(job: Job) -> Row:
    name, split = job.name.rsplit("/", 1)
    x, y = load(name)
    order = np.random.default_rng(int(split)).permutation(len(y))
    test, train = order[: round(HELD_OUT * len(y))], order[round(HELD_OUT * len(y)) :]
    fit = {"theodolite": _ours, "boosting": boosting, "ebm": ebm}[job.method]
    model, taken = timed(lambda: fit(x.iloc[train], y.iloc[train], TABLES[name].classes))
    value = score(model, x.iloc[test], y.iloc[test], y.iloc[train], TABLES[name].classes)
    row = {"score": value, "rows": len(train), "variables": x.shape[1], "said": f"{value:.3f}", **taken}
    return {**row, **(_told(model) if job.method == "theodolite" else {})}


def score(model: Any, x: pd.DataFrame, y: pd.Series, seen: pd.Series, classes: bool) -> float:
    """1 − squared error over that of the mean of the training rows; of classes the squares are Brier's."""
    if not classes:
        return float(1 - np.sum((model.predict(x) - y) ** 2) / np.sum((y - seen.mean()) ** 2))
    truth = np.stack([(y == one).to_numpy(dtype=float) for one in model.classes_], axis=1)
    shares = np.array([(seen == one).mean() for one in model.classes_])
    return float(1 - np.sum((model.predict_proba(x) - truth) ** 2) / np.sum((shares - truth) ** 2))


def _ours(x: pd.DataFrame, y: pd.Series, classes: bool) -> Any:
    from theodolite import CompositionalClassifier, CompositionalRegressor

    kind = CompositionalClassifier if classes else CompositionalRegressor
    return kind(random_state=0, seconds=SECONDS).fit(x, y)


def _told(model: Any) -> Row:
    """What predicts, and how many constituents of how many inputs."""
    if not hasattr(model, "predictors_"):
        return {"predictor": model.predictor_, "inputs": max(model.graph_.fan_ins), "used": len(model.graph_.used)}
    return {"predictor": ", ".join(sorted(set(model.predictors_.values())))}


SECONDS = 60.0  # that ours may fit a target, of a class each


def summary(rows: list[Row]) -> dict[str, Any]:
    """For every table and method the mean and spread over splits; over tables the mean gain of ours, each on the splits
    that both have, with its 95 % interval over tables (Student's)."""
    scores: dict[str, dict[str, dict[str, float]]] = {}
    predictors: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row["name"]):
        name, split = row["name"].rsplit("/", 1)
        scores.setdefault(name, {}).setdefault(row["method"], {})[split] = row["score"]
        if "predictor" in row:
            predictors.setdefault(name, []).append(row["predictor"])
    tables = {
        name: {
            "mean": {method: float(np.mean([*values.values()])) for method, values in of_table.items()},
            "spread": {method: float(np.std([*values.values()])) for method, values in of_table.items()},
            "splits": {method: len(values) for method, values in of_table.items()},
            "predictors": predictors.get(name, []),
        }
        for name, of_table in scores.items()
    }
    taken = {one: seconds([row for row in rows if row["method"] == one]) for one in {row["method"] for row in rows}}
    return {
        "tables": tables,
        "against": {m: _gain(scores, m) for m in METHODS[1:] if {METHODS[0], m} <= taken.keys()},
        "seconds": taken,
    }


def _gain(scores: dict[str, dict[str, dict[str, float]]], method: str) -> dict[str, Any]:
    gains = {}
    for name, of_table in scores.items():
        ours, theirs = (of_table.get(one, {}) for one in (METHODS[0], method))
        both = [ours[split] - theirs[split] for split in ours if split in theirs]
        if both:
            gains[name] = float(np.mean(both))
    values = np.array(list(gains.values()))
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    mean = float(values.mean())
    middle = {"mean_gain": mean, "interval": [mean - half, mean + half], "median_gain": float(np.median(values))}
    return {**middle, "better": int((values > 0).sum()), "tables": len(values), "gains": gains}


def jobs(splits: range, names: list[str], wanted: list[str]) -> list[Job]:
    there = {package: importlib.util.find_spec(package) is not None for package in ("sklearn", "ISLP", "statsmodels")}
    methods = [one for one in METHODS if one in wanted]
    if "ebm" in methods and importlib.util.find_spec("interpret") is None:
        methods.remove("ebm")
        there["interpret"] = False
    for package in [package for package, found in there.items() if not found]:
        print(f"{package} is not installed: what needs it is left out", file=sys.stderr)
    kept = [name for name in names if there[TABLES[name].package]]
    return [Job("real", f"{name}/{s}", 0.0, method) for s in splits for name in kept for method in methods]


def main(print_line: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("real-tables.jsonl"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--packages", type=Path, help="a folder that ISLP and statsmodels were unpacked to")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.packages is not None:
        sys.path.append(str(options.packages.resolve()))
    splits = range(options.first, options.first + options.splits)
    wanted = jobs(splits, options.tables.split(","), options.methods.split(","))
    found = run_all(wanted, measure, options.out, options.workers, options.minutes)
    told = {**summary([found[job] for job in wanted if job in found]), "seconds_allowed": SECONDS}
    told |= {"hardware": hardware(torch.device("cpu")), "rows": ROWS, "held_out": HELD_OUT}
    if options.json:
        print_line(json.dumps(told, indent=1))
        return
    for name, one in told["tables"].items():
        print_line(f"{name:14s}" + "".join(f"{method} {value:7.3f}  " for method, value in one["mean"].items()))
    for method, one in told["against"].items():
        print_line(f"ours − {method}: {one['mean_gain']:+.3f} {one['interval']}, better in {one['better']}")


if __name__ == "__main__":
    main()
