"""How often `advise` counts right.  python benchmarks/advise.py --seed 7 --draws 2 --out advise.json

Every model type of the installed transformers: its default configuration, and random changes of it (sizes, heads,
key-value heads, vocabulary, tied embeddings) that transformers still builds. Truth is the number of parameters of the
model built on the meta device, tied tensors once; of a model that also sees or hears, of its language model. (Of a T5
with untied embeddings transformers 5 builds a tied model and loads an untied one: the latter is counted.) Each
configuration is read twice: with transformers, and with transformers hidden, by what is described alone.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from advise_cases import cases
from theodolite.advice.building.library import hidden, transformers
from theodolite.advice.reading import read_config
from theodolite.errors import BadInput
from timing import hardware

OUTCOMES = ("exact", "within 0.1%", "within 1%", "said to be approximate", "refused", "wrong without a word")


def outcome(config: dict[str, Any], true: int) -> tuple[str, int | None, str]:
    try:
        shape = read_config(config, "it")
    except BadInput as error:
        return "refused", None, str(error)
    off = abs(shape.params / true - 1)
    if not shape.exact:
        return "said to be approximate", shape.params, "; ".join(shape.notes)
    if off == 0:
        return "exact", shape.params, ""
    return ("within 0.1%" if off < 1e-3 else "within 1%" if off < 1e-2 else "wrong without a word"), shape.params, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=2, help="random changes of each default")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    every = sorted(transformers().CONFIG_MAPPING.keys())
    tallies = {(how, which): Counter[str]() for how in ("with", "without") for which in ("default", "changed")}
    rows = []
    for name, which, config, true in cases(options.types or every, options.draws, options.seed):
        for how in ("with", "without"):
            if how == "without":
                with hidden():
                    found, count, why = outcome(config, true)
            else:
                found, count, why = outcome(config, true)
            tallies[how, which][found] += 1
            if found != "exact":
                rows.append(
                    {
                        "type": name,
                        "which": which,
                        "how": how,
                        "outcome": found,
                        "count": count,
                        "true": true,
                        "why": why[:300],
                    }
                )
                if found in ("within 1%", "wrong without a word") or options.types:
                    print(f"{name}, {which}, {how} transformers: {found}, {count} for {true} {why[:200]}", flush=True)
    summary = {}
    for (how, which), tally in tallies.items():
        total = max(1, sum(tally.values()))
        shares = {one: round(tally[one] / total, 4) for one in OUTCOMES}
        summary[f"{which}, {how} transformers"] = {"configurations": sum(tally.values()), **shares}
        right = (tally["exact"] + tally["within 0.1%"]) / total
        print(f"{which}, {how} transformers: {sum(tally.values())} configurations, right {right:.1%};",
              ", ".join(f"{one} {tally[one]}" for one in OUTCOMES))  # fmt: skip
    if options.out:
        document = {
            "benchmark": "advise",
            "hardware": hardware(torch.device("cpu")),
            "transformers": transformers().__version__,
            "types": len(every),
            "seed": options.seed,
            "summary": summary,
            "not exact": rows,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
