"""The table of exact separation ranks of self-attention, degree by degree: python benchmarks/exact_rank.py.

    python benchmarks/exact_rank.py --out table.json                      minutes on a CPU
    python benchmarks/exact_rank.py --out table.json --large --device cuda

Every row is one shape: the rank of each part of degree c in S_B, beside the cap of its tokens and the cap of its
heads, and how far it stays below. The file is written after every row, so that a run may be stopped; a run that finds
its file continues it. `--only` keeps the groups of shapes that it names, `--seconds` stops after that time.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from theodolite.claims.tensors.graded_rank import graded_rank
from theodolite.theory.attention_rank import graded_cap
from timing import hardware

log = logging.getLogger("exact_rank")

Shape = dict[str, Any]

CPU_POINTS, CUDA_POINTS = 1_200, 70_000


def depth_1_heads(large: bool) -> Iterator[Shape]:
    for width in range(1, 9):
        for heads in range(1, 2 * width + 1):
            for inner in sorted({1, max(1, width // heads), width}):
                yield {"depth": 1, "width": width, "heads": heads, "attention_width": inner}


def depth_2_heads(large: bool) -> Iterator[Shape]:
    """Many tokens: heads that share the width, heads of one entry, one head of any width, and all others."""
    for width in range(1, 17 if large else 8):
        divisors = [(h, width // h) for h in range(1, width + 1) if width % h == 0]
        single = [(h, 1) for h in range(1, 2 * width + 1)] if width <= 10 else []
        narrow = [(1, inner) for inner in range(1, width + 1)] if width <= 12 else []
        others = [(h, inner) for h in range(2, width + 1) for inner in range(2, width + 1)] if width <= 7 else []
        for heads, inner in sorted({*divisors, *single, *narrow, *others}):
            yield {"depth": 2, "width": width, "heads": heads, "attention_width": inner}


def depth_3_one_head(large: bool) -> Iterator[Shape]:
    """Many tokens, part by part: the parts in the middle are the largest."""
    for width in (2, 3, 4, 5, 6) if large else (2, 3, 4):
        yield {"depth": 3, "width": width}


def depth_3_heads(large: bool) -> Iterator[Shape]:
    for width in (2, 3, 4) if large else (2, 3):
        divisors = [(h, width // h) for h in range(2, width + 1) if width % h == 0]
        single = [(h, 1) for h in range(1, 2 * width + 1)]
        narrow = [(1, inner) for inner in range(2, width)]
        for heads, inner in sorted({*divisors, *single, *narrow}):
            yield {"depth": 3, "width": width, "heads": heads, "attention_width": inner}


def few_tokens(large: bool) -> Iterator[Shape]:
    """Fewer tokens than entries, on one side or both; with one head and with heads that share the width."""
    for depth, widths in (
        (1, (2, 3, 4)),
        (2, (2, 3, 4, 5, 6) if large else (2, 3, 4)),
        (3, (2, 3, 4) if large else (2,)),
    ):
        for width in widths:
            for heads in (h for h in range(1, width + 1) if width % h == 0):
                for n in range(1, width + 1):
                    for m in range(1, width + 1):
                        if min(n, m) < width:
                            tokens = {"tokens_with_output": n, "tokens_other": m}
                            yield {"depth": depth, "width": width, "heads": heads, **tokens}


def embeddings(large: bool) -> Iterator[Shape]:
    for width, ranks in ((4, (1, 2, 3)), (5, (2, 3, 4))) if large else ((4, (1, 2, 3)),):
        for rank in ranks:
            for heads in (1, width):
                yield {"depth": 2, "width": width, "heads": heads, "embedding_rank": rank}


GROUPS = {
    g.__name__: g for g in (depth_1_heads, depth_2_heads, depth_3_one_head, depth_3_heads, few_tokens, embeddings)
}


def affordable(shape: Shape, points: int) -> tuple[list[int], list[int]]:
    """The degrees whose caps leave room for surplus points, and the others."""
    inner = shape.get("attention_width") or shape["width"] // shape.get("heads", 1)
    tokens = {name: shape.get(name) for name in ("tokens_with_output", "tokens_other", "embedding_rank")}
    caps = graded_cap(shape["depth"], shape["width"], shape.get("heads", 1), inner, **tokens)
    fits = [c for c, cap in enumerate(caps) if cap + 64 <= points]
    return fits, [c for c in range(len(caps)) if c not in fits]


def measure(shape: Shape, points: int, repeats: int, device: str) -> dict[str, Any]:
    degrees, left_out = affordable(shape, points)
    row = graded_rank(**shape, degrees=degrees, repeats=repeats, device=device).to_json()
    kept = ("degree", "rank", "cap", "heads_cap", "deficit", "exact", "proven", "points")
    blocks = [{name: block[name] for name in kept} for block in row["blocks"]]
    summary = {name: row[name] for name in ("total", "cap", "complete", "exact", "proven", "failure_probability")}
    return {"shape": shape, **summary, "left_out": left_out, "blocks": blocks, "seconds": round(row["seconds"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--large", action="store_true", help="wider shapes: for a GPU")
    parser.add_argument("--points", type=int, help=f"largest matrix; {CPU_POINTS} on a CPU, {CUDA_POINTS} on CUDA")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", nargs="+", choices=list(GROUPS), default=list(GROUPS))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    started = time.perf_counter()
    points = options.points or (CUDA_POINTS if options.device.startswith("cuda") else CPU_POINTS)
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    known = [row["shape"] for row in rows]
    for group in options.only:
        for shape in GROUPS[group](options.large):
            if shape in known:
                continue
            if time.perf_counter() - started > options.seconds:
                log.info("stopped after %.0f s: run again to continue", options.seconds)
                return
            row = {"group": group, **measure(shape, points, options.repeats, options.device)}
            rows.append(row)
            known.append(shape)
            short = {b["degree"]: b["deficit"] for b in row["blocks"] if b["deficit"]}
            log.info("%s  %s of %s  below by %s  %.1f s", shape, row["total"], row["cap"], short or "0", row["seconds"])
            document = {
                "benchmark": "exact ranks of self-attention, degree by degree",
                "hardware": hardware(torch.device(options.device)),
                "rows": rows,
            }
            options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
