"""Which degree learns best at equal budget?  python benchmarks/degree.py --device cuda --out degree.json

Networks of normalised product blocks of degrees 2, 3, 4, 5, of mixed and of real degree, 12 to 96 square matrices of
width 16 and 32, on functions that need separation rank and on two real sets. The learning rate is chosen for every
degree, budget and problem on seeds of its own; every figure rests on 20 others, the same for all degrees. After every
shape of network the document is written anew, so that what is there can be used; `--seconds` stops in between.
`docs/figures/degree.py` draws it, and `--compare degree.json` tells degree 3 against each other one from it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import math
import time
from pathlib import Path
from typing import Any

import torch

from theodolite.instruments.degree.descent import Descent
from theodolite.instruments.degree.product_shapes import shape_of
from theodolite.instruments.degree.trained import Prepared, Problem, Seeds, prepare, train_shape
from theodolite.statistics.paired import error_ratio, holm
from timing import hardware

logger = logging.getLogger("degree")

DEGREES = (3, 2, 4, 5, "3,2", "e", 2.5, "learnt")
DEGREES_AGAIN = DEGREES[:6]  # at the second width and on the real sets
BUDGETS = (12, 24, 48, 96)
WIDTHS = (16, 32)
LEARNT_UP_TO = 24  # matrices: a step with learnt exponents takes three times as long
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)


def _target(kind: str, rank: int, degree: int, **more: Any) -> Problem:
    return Problem("prescribed-rank", {"kind": kind, "rank": rank, "degree": degree, **more})


# What can be trained side by side: all functions in one group.
GROUPS: dict[str, dict[str, Problem]] = {
    "functions": {
        "1 product": _target("products", 1, 3),
        "8 products": _target("products", 8, 3),
        "32 products": _target("products", 32, 3),
        "128 products": _target("products", 128, 6),
        "32 monomials": _target("monomials", 32, 5, variables=4),
        "smooth": _target("smooth", 256, 3),
        "rough": _target("rough", 256, 3),
        "network of degree 5": _target("network", 8, 5),
    },
    "target degrees": {  # is degree 3 best because the targets have it?
        **{f"14 products of degree {d}": _target("products", 14, d) for d in (2, 3, 4, 5, 6)},
        **{f"1 product of degree {d}": _target("products", 1, d) for d in (2, 4, 6)},
    },
    "digits": {"digits": Problem("digits")},
    "diabetes": {"diabetes": Problem("diabetes")},
}
DESCENTS = {
    "functions": Descent(1500, looks=5),
    "target degrees": Descent(1500, looks=5),
    "digits": Descent(600, looks=20),
    "diabetes": Descent(300, looks=20),
}
PLANS = {  # the first results first
    "main": (
        ("functions", WIDTHS[0], DEGREES, BUDGETS),
        ("digits", WIDTHS[0], DEGREES_AGAIN, BUDGETS),
        ("diabetes", WIDTHS[0], DEGREES_AGAIN, BUDGETS),
        ("functions", WIDTHS[1], DEGREES_AGAIN, BUDGETS),
    ),
    "targets": (("target degrees", WIDTHS[1], DEGREES[:4], (24, 96)),),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=Path("degree.json"))
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no further network after these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--study", choices=list(PLANS), default="main", help="targets: products of degree 2 to 6")
    parser.add_argument("--quick", action="store_true", help="few steps, seeds and budgets, to see that it runs")
    parser.add_argument("--compare", type=Path, help="a document to compare degrees by, instead of measuring one")
    options = parser.parse_args()
    if options.compare:
        for line in compare(json.loads(options.compare.read_text(encoding="utf-8"))):
            print(line)
        return
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    measure(torch.device(options.device), options.out, options.seconds, options.seed, options.quick, options.study)


def measure(
    device: torch.device, out: Path, seconds: float, seed: int, quick: bool, study: str = "main"
) -> dict[str, Any]:
    seeds = Seeds(2, 1, 0) if quick else Seeds(20, 3, 0)
    rates = RATES[3:4] if quick else RATES
    started = time.perf_counter()
    document: dict[str, Any] = {
        "benchmark": "degree",
        "hardware": hardware(device),
        "seed": seed,
        "seeds": seeds.final,
        "tuning_seeds": seeds.tuning,
        "rates": list(rates),
        "problems": {name: {"task": p.task, **p.args} for name, p in _problems(study).items()},
        "complete": False,
        "rows": [],
    }
    held: dict[str, tuple[Prepared, Descent]] = {}
    for group, width, degrees, budgets in PLANS[study]:
        if group not in held:
            descent = Descent(20, looks=2) if quick else DESCENTS[group]
            tick = time.perf_counter()
            held[group] = prepare(list(GROUPS[group].values()), seeds, descent, seed, device), descent
            logger.info("%s: drawn in %.1f s", group, time.perf_counter() - tick)
        prepared, descent = held[group]
        for budget, degree in itertools.product(budgets[:1] if quick else budgets, degrees):
            if degree == "learnt" and budget > LEARNT_UP_TO:
                continue
            if time.perf_counter() - started > seconds:
                logger.info("stopped after %.0f s", time.perf_counter() - started)
                return document
            shape = shape_of(degree, budget, width, prepared.final.features, prepared.final.outputs)
            tick = time.perf_counter()
            rows = train_shape(shape, prepared, descent, rates)
            for name, row in zip(GROUPS[group], rows, strict=True):
                document["rows"].append(_kept(name, budget, width, row))
            taken = time.perf_counter() - tick
            errors = ", ".join(f"{row['error']:.3g}" for row in rows)
            logger.info("%s, %d × %d², degree %s: %.1f s, errors %s", group, budget, width, degree, taken, errors)
            document["seconds"] = round(time.perf_counter() - started, 1)
            _save(document, out)
    document["complete"] = True
    _save(document, out)
    return document


def compare(document: dict[str, Any]) -> list[str]:
    """Error of degree 3 over that of every other degree, seed by seed on the same function: the geometric mean and its
    95 % interval, with a star where it differs from 1 over all that is compared (Holm, 5 %)."""
    logs = {
        (row["matrix_width"], row["problem"], row["budget"], row["degree"]): [
            math.log(max(error, 1e-4)) for error in row["errors"]
        ]
        for row in document["rows"]
    }
    keys = [key for key in logs if key[3] != "3" and (*key[:3], "3") in logs]
    ratios = [error_ratio(logs[*key[:3], "3"], logs[key]) for key in keys]
    lines, counts = [], {}
    for key, found, clear in zip(keys, ratios, holm([ratio.p for ratio in ratios]), strict=True):
        width, problem, budget, degree = key
        low, high = found.interval
        star = "*" if clear else ""
        lines.append(
            f"{width} wide, {budget}, {problem}: 3 over {degree} {found.value:.3f} ({low:.3f}–{high:.3f}){star}"
        )
        tally = counts.setdefault((width, degree), [0, 0, 0])
        tally[1 if not clear else 0 if found.value < 1 else 2] += 1
    for (width, degree), (better, level, worse) in counts.items():
        lines.append(f"{width} wide, 3 against {degree}: better {better}, not clearly different {level}, worse {worse}")
    return lines


def _problems(study: str) -> dict[str, Problem]:
    return {name: problem for group, *_ in PLANS[study] for name, problem in GROUPS[group].items()}


def _save(document: dict[str, Any], out: Path) -> None:
    """One line a row."""
    rows = ",\n".join(json.dumps(row) for row in document["rows"])
    head = json.dumps({k: v for k, v in document.items() if k != "rows"}, indent=1).removesuffix("\n}")
    out.write_text(f'{head},\n "rows": [\n{rows}\n]}}\n', encoding="utf-8")


def _kept(name: str, budget: int, width: int, row: dict[str, Any]) -> dict[str, Any]:
    """What the figures need, to four digits; `matrix_width` is the budget's, `width` the network's."""
    dropped = ("task", "task_args", "degrees", "losses", "log_errors", "batch", "seeds", "power")
    short = lambda value: (
        float(f"{value:.4g}")
        if isinstance(value, float)
        else [short(v) for v in value]
        if isinstance(value, list)
        else {k: short(v) for k, v in value.items()}
        if isinstance(value, dict)
        else value
    )
    rest = {key: short(value) for key, value in row.items() if key not in dropped}
    return {"problem": name, "budget": budget, "matrix_width": width, **rest}


if __name__ == "__main__":
    main()
