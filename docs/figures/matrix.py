"""Measures the README's chart of what is expressible, signalled and learnt, and draws it.

`python docs/figures/matrix.py [--device cuda]` writes matrix.svg beside this file; what it measures is kept in the
folder `survey-matrix`, so that it goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from theodolite import survey
from theodolite.report.svg.chart import chart_svg

NETS = ("mlp", "rnn", "lstm", "convolution", "transformer", "linear-transformer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--out", default="survey-matrix")
    parser.add_argument("--workers", type=int, default=None)
    chosen = parser.parse_args()
    where = {"device": chosen.device, "workers": chosen.workers, "out": chosen.out}
    found = survey(NETS, chosen.preset, only=["matrix"], **where)
    if found.failures:
        raise SystemExit("\n".join(found.failures))
    (section,) = found.sections
    Path(__file__).with_suffix(".svg").write_text(chart_svg(section.summary.charts[0], alone=True) + "\n")
    print(section.summary.headline)  # noqa: T201


if __name__ == "__main__":
    main()
