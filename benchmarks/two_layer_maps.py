"""Two layers of d < H < 2d heads of one entry: four ranks that prove the law. python benchmarks/two_layer_maps.py 13 14

docs/exact-rank.md, "Two layers of many heads", says which maps: `third` and `third_forms` have the part of degree 3 in
S_B, `second` and `second_forms` that of degree 2. Weights and points are drawn by the draw rule; a rank modulo p is a
lower bound, and where all four are as large as they can be the cap of the heads is the rank, no probability left. The
file is written after every shape, and a run that finds its file continues it.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flint import nmod_mat
from numpy.typing import NDArray

from theodolite.field import Modulus, draw_residues

P = 8_388_593
RESULTS = Path(__file__).parent / "results" / "two-layer-maps-epyc-1-thread-2026-11-17.json"
MORE = 6  # points more than a rank asks for

log = logging.getLogger("two_layer_maps")
Residues = NDArray[np.int64]


class Stream:
    """Residues of the draw rule, one after the other."""

    def __init__(self, name: str) -> None:
        self.name, self.place = name, 0

    def take(self, *shape: int) -> Residues:
        found = draw_residues(self.name, shape, Modulus(P), start=self.place).numpy().astype(np.int64) % P
        self.place += math.prod(shape)
        return found


def rank(table: Residues) -> int:
    return _matrix(table).rank()


def _matrix(table: Residues) -> nmod_mat:
    return nmod_mat(len(table), table.shape[1], [int(x) for x in (table % P).ravel()], P)


class Maps:
    """Φ(f; X) = Σ_p (w_p·X w′_p)·u_p with w_p = Σ_h a_ph f_h q_h, likewise w′ with b and u with c, and X in U."""

    def __init__(self, width: int, heads: int) -> None:
        self.d, self.heads = width, heads
        self.stream = Stream(f"two-layers/{width}/{heads}")
        v, k, o, q = (self.stream.take(heads, width) for _ in range(4))
        self.q = q
        self.a, self.b, self.c = (self.stream.take(heads, width) @ o.T % P for _ in range(3))
        i, j = np.triu_indices(width)
        kernel, size = _matrix(v[:, i] * k[:, j] + np.where(i == j, 0, v[:, j] * k[:, i])).nullspace()
        seen = np.array([[int(kernel[r, s]) for s in range(size)] for r in range(len(i))], dtype=np.int64)
        self.x = np.zeros((size, width, width), dtype=np.int64)
        self.x[:, i, j] = self.x[:, j, i] = seen.T
        self.kappa = size

    def point(self) -> tuple[Residues, Residues, Residues]:
        f = self.stream.take(self.heads)
        return (self.a * f % P) @ self.q % P, (self.b * f % P) @ self.q % P, (self.c * f % P) @ self.q % P

    def slopes(self) -> Residues:
        """∂Φ_c/∂f_h at a point, for all (X, h, c)."""
        w, w_, u = self.point()
        left, right = w @ self.x % P, w_ @ self.x % P
        values = (left * w_ % P).sum(2) % P
        of_forms = ((right @ self.q.T % P) * self.a + (left @ self.q.T % P) * self.b) % P
        last = (values @ self.c % P)[:, :, None] * self.q % P
        return (np.tensordot(of_forms, u, axes=(1, 0)) + last) % P

    def third(self) -> tuple[int, int]:
        """(Y_r) in U ↦ Σ_r Φ_r(f; Y_r), cubic forms in f: as large as it can be."""
        most = min(self.d * self.kappa, math.comb(self.heads + 2, 3))
        table = []
        for _ in range(most + MORE):
            w, w_, u = self.point()
            pairs = w[:, :, None] * w_[:, None, :] % P
            forms = np.tensordot(u, pairs, axes=(0, 0)) % P
            table.append((forms.reshape(self.d, -1) @ self.x.reshape(self.kappa, -1).T % P).ravel())
        return rank(np.array(table)), most

    def third_forms(self) -> tuple[int, int]:
        """(y_rh) ↦ Σ y_rh ∂Φ_r/∂f_h, for all X: injective."""
        table: list[Residues] = []
        while len(table) < self.d * self.heads + MORE:
            table += list(self.slopes().transpose(0, 2, 1).reshape(self.kappa, -1)[: 2 * self.d])
        return rank(np.array(table)), self.d * self.heads

    def second(self) -> tuple[int, int]:
        """(X_h) in U ↦ Σ_h ∂Φ(f; X_h)/∂f_h: injective."""
        table: list[Residues] = []
        while len(table) < self.heads * self.kappa + MORE:
            table += list(self.slopes().transpose(2, 1, 0).reshape(self.d, -1))
        return rank(np.array(table)), self.heads * self.kappa

    def second_forms(self) -> tuple[int, int]:
        """Operators of order 2 in f ↦ what they make of Φ, for all X: injective."""
        first, then = np.triu_indices(self.heads)
        table: list[Residues] = []
        while len(table) < len(first) + MORE:
            w, w_, u = self.point()
            for n in range(self.kappa)[:: max(1, self.kappa // 12)]:
                x, r = self.x[n], (n + len(table)) % self.d
                both = ((self.a * u[:, r : r + 1] % P).T @ self.b % P) * ((self.q @ x % P) @ self.q.T % P) % P
                forms = self.a * ((w_ @ x % P) @ self.q.T % P) + self.b * ((w @ x % P) @ self.q.T % P)
                mixed = both + (forms % P).T @ (self.c * self.q[:, r] % P) % P
                table.append(((mixed + mixed.T) % P)[first, then])
        return rank(np.array(table)), len(first)


def proven(width: int, heads: int) -> dict[str, Any]:
    tick = time.process_time()
    maps = Maps(width, heads)
    if maps.kappa != width * (width + 1) // 2 - heads:
        raise AssertionError(f"the {heads} forms drawn at d = {width} are dependent: draw anew")
    ranks = {name: getattr(maps, name)() for name in ("third", "third_forms", "second", "second_forms")}
    done = all(found == most for found, most in ranks.values())
    return {"width": width, "heads": heads, "ranks": ranks, "proven": done, "seconds": time.process_time() - tick}


def main() -> None:
    from timing import hardware  # beside this file; the tests import the rest

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("widths", type=int, nargs="+")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    known = {(row["width"], row["heads"]) for row in rows}
    for width in options.widths:
        for heads in range(width + 1, 2 * width):
            if (width, heads) in known:
                continue
            row = proven(width, heads)
            rows.append({**row, "seconds": round(row["seconds"], 1)})
            log.info("d = %d, H = %d: %s", width, heads, row["ranks"])
            what = "four ranks that prove the law of two layers, heads of one entry: benchmarks/two_layer_maps.py"
            document = {"benchmark": what, "hardware": hardware(torch.device("cpu")), "prime": P, "rows": rows}
            lines = json.dumps(document).replace(', {"width"', ',\n{"width"')
            options.out.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
