"""From a black box or from data to a graph: python benchmarks/discover.py --json --out results.jsonl --workers 2.

`trees`, `dags`, `binary`: random graphs of 8–16 variables as black boxes; is the graph found exactly? `exact-formulas`:
74 formulas of physics as black boxes. `formulas`: the same from 1,600 rows with noise: structure and errors.
`interactions`: AUC of the pairs that interact in F1–F10, from 10,000 rows. `random`: new functions of held-out seeds,
of many kinds, sizes, distributions and noises: is a part that matters false? `close`: how close networks come to smooth
constituents of one or two variables without noise. Peers are asked about the first `--peers`
targets of a part (of `random` about all), on the same data. Each figure is a line of the file of `--out`; a second
start goes on where the first ended. Every measurement has one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from benchmarks.known_structures.feynman import FORMULAS
from benchmarks.known_structures.interaction_functions import INTERACTION_FUNCTIONS

import discover_black_box
import discover_close
import discover_formulas
import discover_random
from discover_jobs import Job, Row, run_all, seconds
from discover_peers import has_pykan
from timing import hardware

POINTS = 10_000  # of interactions
PEERS = ("nid", "fast", "hessian")


def measure_pairs(job: Job) -> Row:
    from discover_interactions import measure

    row = measure("ours" if job.method == "theodolite" else job.method, job.name, job.noise, POINTS, 0)
    return {"auc": row["auc"], "said": f"AUC {row['auc']:.3f}"}


def summary_of_pairs(rows: list[Row]) -> list[dict[str, Any]]:
    """Means over the functions, for each noise and method."""
    found = []
    for noise, method in dict.fromkeys((row["noise"], row["method"]) for row in rows):
        own = [row for row in rows if (row["noise"], row["method"]) == (noise, method)]
        found.append(
            {
                "noise": noise,
                "method": method,
                "functions": len(own),
                "mean_auc": statistics.mean(row["auc"] for row in own),
                "auc": {row["name"]: row["auc"] for row in own},
                "seconds": seconds(own),
            }
        )
    return found


MEASURES = {
    **dict.fromkeys(discover_black_box.KINDS, discover_black_box.measure),
    "exact-formulas": discover_black_box.measure_formula,
    "formulas": discover_formulas.measure,
    "interactions": measure_pairs,
    "random": discover_random.measure,
    "close": discover_close.measure,
}
PARTS = tuple(MEASURES)


def measure(job: Job) -> Row:
    return MEASURES[job.part](job)


def summary(part: str, rows: list[Row]) -> list[dict[str, Any]]:
    own = {
        "formulas": discover_formulas.summary,
        "interactions": summary_of_pairs,
        "random": discover_random.summary,
        "close": discover_close.summary,
    }
    return own.get(part, discover_black_box.summary)(rows)


def jobs(options: argparse.Namespace) -> list[Job]:
    peers = options.peers if has_pykan() else 0
    if options.peers and not peers:
        print("pykan is not installed: its figures are left out", file=sys.stderr)
    formulas = FORMULAS[: options.formulas]
    found = []
    for part in options.parts.split(","):
        if part in discover_black_box.KINDS:
            draws = {"trees": options.draws, "dags": (options.draws + 1) // 2, "binary": options.peers}[part]
            for method in discover_black_box.methods(peers=peers > 0):
                count = draws if method == "theodolite" else min(peers, draws)
                found += [Job(part, str(draw), 0.0, method) for draw in range(count)]
        elif part == "exact-formulas":
            found += [Job(part, formula.id, 0.0, "theodolite") for formula in formulas]
        elif part == "interactions":
            for noise in map(float, options.noise.split(",")):
                for method in ("theodolite", *(PEERS if options.peers else ())):
                    found += [Job(part, name, noise, method) for name in INTERACTION_FUNCTIONS]
        elif part == "formulas":
            for noise in map(float, options.noise.split(",")):
                for method in discover_formulas.METHODS:
                    chosen = formulas[:peers] if method == "pykan" else formulas
                    found += [Job(part, formula.id, noise, method) for formula in chosen]
        elif part == "random":
            for name in discover_random.names(options.draws, options.first):
                found += [Job(part, name, -1.0, method) for method in discover_random.METHODS]
        elif part == "close":
            found += [Job(part, name, 0.0, "theodolite") for name in discover_close.names(options.draws, options.first)]
    if not options.methods:
        return found
    wanted, known = set(options.methods.split(",")), {job.method for job in found}
    kinds = wanted - known  # pykan stands for all of its thresholds
    return [job for job in found if job.method in wanted or job.method.split()[0] in kinds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--out", type=Path, required=True, help="file of one JSON line a measurement")
    parser.add_argument("--workers", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--draws", type=int, default=200, help="random trees and functions; half as many DAGs")
    parser.add_argument("--first", type=int, default=0, help="of the held-out random functions: pass over so many")
    parser.add_argument("--formulas", type=int, default=len(FORMULAS), help="the first so many")
    parser.add_argument("--noise", default="0,0.001,0.01", help="of the target's standard deviation")
    parser.add_argument("--peers", type=int, default=20, help="targets of each part that peers are asked about")
    parser.add_argument(
        "--methods",
        help="theodolite, 'theodolite quick', or a peer as boosting, ebm, 'gaussian process', pykan; all unless given",
    )
    parser.add_argument("--minutes", type=float, help="begin nothing after so long")
    options = parser.parse_args()
    rows = run_all(jobs(options), measure, options.out, options.workers, options.minutes)
    results: dict[str, Any] = {"benchmark": "discover", "hardware": {**hardware(torch.device("cpu")), "threads": 1}}
    for part in options.parts.split(","):
        own = [row for job, row in rows.items() if job.part == part]
        results[part] = summary(part, own) if own else []
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        print(table(results))


def table(results: dict[str, Any]) -> str:
    """The figures in Markdown."""
    lines = []
    for part in (*discover_black_box.KINDS, "exact-formulas"):
        for row in results.get(part, ()):
            low, high = row["interval"]
            lines.append(
                f"- {part}, {row['method']}: {row['exact']} of {row['draws']} exact ({low:.2f}–{high:.2f}), "
                f"{row['seconds']['median']:.1f} s"
            )
    for row in results.get("formulas", ()):
        if "dense_over_graph" not in row:
            continue
        ratio = row["dense_over_graph"]
        lines.append(
            f"- formulas, noise {row['noise']:g}: {row['recovered'][0]} of {row['recovered'][1]} recovered, "
            f"{row['abstained']} abstained; dense over graph {ratio['median'] or float('nan'):.3g} in the median"
        )
        lines += [f"  {name:>12} {'█' * count} {count}" for name, count in ratio["histogram"].items()]
    for row in results.get("random", ()):
        low, high = row["materially_false_interval"]
        lines.append(
            f"- random functions, {row['method']}: {row['materially_false']} of {row['functions']} materially false "
            f"({low:.3f}–{high:.3f}); {row['outcomes']}; {row['seconds']['median']:.0f} s"
        )
    for row in results.get("close", ()):
        near, exact = row["close"]
        lines.append(
            f"- {row['shape']}: {row['outcomes']}; exact ones below {discover_close.CLOSE:g}: {near} of {exact}, "
            f"{row['median_error'] or float('nan'):.1e} in the median; {row['seconds']['median']:.0f} s"
        )
    lines += [
        f"- interactions, noise {row['noise']:g}, {row['method']}: AUC {row['mean_auc']:.3f}"
        for row in results.get("interactions", ())
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
