"""`discover` on one table in a process of its own: lines of JSON on stdout, progress first, then what was found.

Run as `python -m theodolite.serving.discovering FILE TARGET SECONDS`; whoever started it may end it at any time.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import Any, TextIO

from theodolite.errors import TheodoliteError


def main(path: str, target: str, seconds: str) -> None:
    out, last = sys.stdout, ""

    def progress(done: float, total: float, label: str) -> None:
        nonlocal last
        text = json.dumps({"progress": [round(min(1.0, done / total) if total else 0.0, 2), label]})
        if text != last:
            _say(out, text)
            last = text

    with redirect_stdout(sys.stderr):
        try:
            _say(out, json.dumps({"found": _found(path, target, float(seconds), progress)}))
        except TheodoliteError as error:
            _say(out, json.dumps({"error": str(error)}))


def _found(path: str, target: str, seconds: float, progress: Any) -> dict[str, Any]:
    from theodolite.report.svg.graph import draw_graph, sketch_graph
    from theodolite.report.table import Column, Table
    from theodolite.serving.shown import Drawing, Shown
    from theodolite.structure.discover import discover

    found = discover(path, target, seconds=seconds, progress=progress)
    reason = f"{found.reason[:1].upper()}{found.reason[1:]}".rstrip(".")
    named = {
        "the network that is returned": found.test_error,
        "a dense network": found.dense_test_error,
        "gradient boosting": found.boosting_test_error,
    }
    errors = [{"model": name, "error": error} for name, error in named.items() if error is not None]
    columns = (Column("model", "model", numeric=False), Column("error", "error on test rows"))
    caption = "mean squared error over the variance of the target: 1 is what a constant reaches"
    return Shown(
        says=[f"{'Abstained' if found.abstained else 'Graph found'}: {reason}."],
        drawings=[Drawing(draw_graph(found.graph, found.confidence or None), sketch_graph(found.graph), alone=True)],
        tables=[Table("What it is worth on rows that nothing was chosen by", columns, errors, caption)],
        notes=found.details.get("notes", ()),
        data=found.to_json(),
    ).to_json()


def _say(out: TextIO, text: str) -> None:
    print(text, file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
