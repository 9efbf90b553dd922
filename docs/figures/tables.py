"""Draws the published tables beside ours from what `theodolite reproduce TABLE --json` gave on a GPU.

`python docs/figures/tables.py` reads the newest `benchmarks/results/TABLE-*.json` of every table and writes
TABLE-scores.svg, TABLE-learning.svg and, where scores by length were kept, TABLE-lengths.svg beside this file.
"""

from __future__ import annotations

import json
from pathlib import Path

from theodolite.cli.views.table_pictures import pictures
from theodolite.report import Chart
from theodolite.report.svg.chart import chart_svg
from theodolite.report.svg.multiples import multiples_svg

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "benchmarks" / "results"
TABLES = ("chomsky", "universal-transformer", "recall")
NAMES = ("scores", "learning", "lengths")


def main() -> None:
    for table in TABLES:
        newest = max(RESULTS.glob(f"{table}-nvidia-*.json"), key=lambda path: path.stem[-10:])
        results = json.loads(newest.read_text(encoding="utf-8"))["results"]
        for name, picture in zip(NAMES, pictures(results), strict=False):
            drawing = (
                chart_svg(picture, alone=True) if isinstance(picture, Chart) else multiples_svg(picture, alone=True)
            )
            (HERE / f"{table}-{name}.svg").write_text(drawing + "\n", encoding="utf-8")
            print(f"{table}-{name}.svg from {newest.name}")  # noqa: T201


if __name__ == "__main__":
    main()
