"""Exact rank over GF(p) beside its peers, all in one run: python benchmarks/rank.py --json [--device cuda].

On a CPU: our elimination against python-flint's `nmod_mat.rank` (conversion timed apart), `numpy.linalg.matrix_rank`
and a float64 LU of the same matrix. On CUDA: our elimination against the float64 matrix-product rate. Flops of an
elimination are counted as 2n³/3. Every figure is the median of repeated runs after a warm-up.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

from theodolite.field import Modulus, draw_residues, eliminate, product
from theodolite.instruments.rank.certificate import verify
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.load import load
from theodolite.partition import Partition
from timing import hardware, timed

MODULUS = Modulus(8388449)


def against_peers(n: int, repeats: int) -> dict[str, object]:
    """CPU: the same n × n matrix of uniform residues for everyone."""
    import flint

    device = torch.device("cpu")
    matrix = draw_residues("benchmark", (n, n), MODULUS)
    ours = timed(lambda: eliminate(matrix, MODULUS), repeats, device)
    lu = timed(lambda: torch.linalg.lu_factor(matrix), repeats, device)
    tick = time.perf_counter()
    theirs = flint.nmod_mat(n, n, MODULUS.canonical(matrix).flatten().tolist(), MODULUS.p)
    conversion = time.perf_counter() - tick
    flint_rank = timed(theirs.rank, 1, device, warm_up=False)
    array = matrix.numpy()
    svd = timed(lambda: np.linalg.matrix_rank(array), 1, device, warm_up=False)
    assert eliminate(matrix, MODULUS).rank == theirs.rank()
    return {
        "n": n,
        "prime": MODULUS.p,
        "seconds": ours,
        "gflops": 2 * n**3 / 3 / ours / 1e9,
        "float64_lu_seconds": lu,
        "flint_rank_seconds": flint_rank,
        "flint_conversion_seconds": conversion,
        "numpy_matrix_rank_seconds": svd,
        "times_faster_than_flint": flint_rank / ours,
        "times_faster_than_numpy": svd / ours,
        "times_the_float64_lu": ours / lu,
    }


def floating_point_counts(shapes: list[dict[str, Any]]) -> list[dict[str, object]]:
    """CPU: what `numpy.linalg.matrix_rank` says of networks whose rank is known exactly, at normal inputs."""
    counted = []
    for shape in shapes:
        truth = separation_rank("self-attention", **shape)
        subject = load("self-attention", **shape)
        split = Partition.left_right(subject.sites)
        generator = torch.Generator().manual_seed(0)
        sides = [(truth.rank + 64, len(side), subject.features) for side in (split.a, split.b)]
        a, b = (torch.randn(size, generator=generator, dtype=torch.float64) for size in sides)
        row: dict[str, object] = {"shape": shape, "exact": truth.rank, "proven": truth.saturated}
        for dtype in (torch.float32, torch.float64):
            trial = torch.cat([a[:6], b[:6]], 1).to(dtype)
            evaluate, _ = ScalarFunction.of(subject).in_floats(dtype, torch.device("cpu"), trial)
            matrix = pair_matrix(evaluate, a, b, split).to(dtype).numpy()
            row[f"numpy_{str(dtype).removeprefix('torch.')}"] = int(np.linalg.matrix_rank(matrix))
        counted.append(row)
    return counted


def whole_measurements() -> list[dict[str, object]]:
    """CPU: exact ranks from nothing to the result, three repeats each."""
    rows = []
    shapes: list[dict[str, Any]] = [{"depth": 3, "width": 3, "tokens": 2}, {"depth": 2, "width": 8, "tokens": 10}]
    for shape in shapes:
        r = separation_rank("self-attention", **shape)
        rows.append({"shape": shape, "rank": r.rank, "exact": r.exact, "repeats": len(r.ranks), "seconds": r.seconds})
    return rows


def against_products(n: int, repeats: int) -> dict[str, object]:
    """CUDA: how much of the float64 matrix-product rate of the same run an elimination keeps."""
    device = torch.device("cuda")
    size = 16384
    left, right = (torch.randn(size, size, dtype=torch.float64, device=device) for _ in range(2))
    out = torch.empty_like(left)
    rate = 2 * size**3 / timed(lambda: torch.matmul(left, right, out=out), repeats, device)
    del left, right, out
    matrix = draw_residues("benchmark", (n, n), MODULUS, device=device)
    work = matrix.clone()
    copying = timed(lambda: work.copy_(matrix), repeats, device)
    both = timed(lambda: eliminate(work.copy_(matrix), MODULUS, overwrite=True), repeats, device)
    ours = both - copying
    assert eliminate(work.copy_(matrix), MODULUS, overwrite=True).rank == n
    del work, matrix
    torch.cuda.empty_cache()
    return {
        "n": n,
        "prime": MODULUS.p,
        "seconds": ours,
        "tflops": 2 * n**3 / 3 / ours / 1e12,
        "float64_product_tflops": rate / 1e12,
        "share_of_product_rate": 2 * n**3 / 3 / ours / rate,
    }


def cuda_agrees() -> dict[str, object]:
    """The device's arithmetic beside the CPU's: products, ranks of awkward matrices, pivots and solutions."""
    checked = 0
    for p in (3, 101, 65537, MODULUS.p):
        m = Modulus(p)
        for height, width, inner in ((1, 1, 1), (700, 500, 333), (1200, 1200, 1100), (513, 2000, 513), (300, 300, 0)):
            left = draw_residues(f"left/{p}", (height, max(inner, 1)), m) * (inner > 0)
            right = draw_residues(f"right/{p}", (max(inner, 1), width), m)
            matrix = product(left, right, m)
            matrix[::7] = 0.0
            here, there = eliminate(matrix, m), eliminate(matrix.cuda(), m)
            assert here.rank == there.rank, (p, height, width, inner, here.rank, there.rank)
            minor = matrix[there.pivot_rows][:, there.pivot_columns]
            right_side = draw_residues("b", (there.rank, 2), m)
            solution = there.solve(right_side.cuda()).cpu()
            assert torch.equal(m.canonical(product(minor, solution, m)), m.canonical(right_side))
            checked += 1
    return {"matrices": checked, "agree": True}


def large_bound(points: int, shape: dict[str, Any], device: str) -> dict[str, object]:
    """A certified lower bound with one prime, and where its time went."""
    tick = time.perf_counter()
    result = separation_rank(
        "self-attention", points=points, repeats=1, certificate=True, device=device, partition="left-right", **shape
    )
    made = time.perf_counter() - tick
    assert result.certificate is not None
    verified = verify(json.loads(json.dumps(result.certificate)), device=device)
    return {
        "shape": shape,
        "points": points,
        "lower_bound": result.lower_bound,
        "cap": result.cap,
        "seconds": made,
        "evaluate_seconds": result.evaluate_seconds,
        "eliminate_seconds": result.eliminate_seconds,
        "verify_seconds": verified.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--n", type=int, help="size of the matrix [4000 on a CPU, 32768 on CUDA]")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--large", type=int, metavar="POINTS", help="also certify a lower bound with this many points")
    parser.add_argument("--width", type=int, default=5, help="width of that net, of depth 3 [5]")
    parser.add_argument("--tokens", type=int, default=4, help="tokens of that net [4]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    results: dict[str, object] = {"benchmark": "rank", "hardware": hardware(device)}
    if device.type == "cuda":
        results["correctness"] = cuda_agrees()
        results["elimination"] = against_products(options.n or 32768, options.repeats)
    else:
        results["elimination"] = against_peers(options.n or 4000, options.repeats)
        results["networks"] = whole_measurements()
        results["floating_point_counts"] = floating_point_counts(
            [{"depth": 2, "width": width, "tokens": 2} for width in (2, 4, 6, 8)]
            + [{"depth": 3, "width": width, "tokens": 2} for width in (2, 3)]
        )
    if options.large:
        shape = {"depth": 3, "width": options.width, "tokens": options.tokens}
        results["large_bound"] = large_bound(options.large, shape, options.device)
    print(json.dumps(results, indent=2) if options.json else _table(results))


def _table(results: dict[str, object]) -> str:
    lines = []
    for name, part in results.items():
        if isinstance(part, dict):
            lines.append(f"{name}:")
            lines += [f"  {k}: {v:.4g}" if isinstance(v, float) else f"  {k}: {v}" for k, v in part.items()]
        else:
            lines.append(f"{name}: {part}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
