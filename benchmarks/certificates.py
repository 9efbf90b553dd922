"""The certificates of docs/exact-rank.md: python benchmarks/certificates.py.

    python benchmarks/certificates.py --largest 2000                      ranks of the table, a part at most this large
    python benchmarks/certificates.py --largest 12000 --device cuda       the rest
    python benchmarks/certificates.py --growth                            premises of the theorem on growth
    python benchmarks/certificates.py --grouped                           shared keys and values, and latent ones
    python benchmarks/certificates.py --law                               two layers, where no theorem has the rank

A row of the table of ranks becomes a certificate part by part, which is verified before it is written; what is in the
file is kept and not made again. `--list` says what is missing. `theodolite verify benchmarks/certificates` checks all.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from theodolite.claims.tensors.graded_certificate import graded_certificate, verify_graded
from theodolite.claims.tensors.graded_rank import graded_rank
from theodolite.claims.tensors.growth_certificate import growth_certificate, verify_growth
from theodolite.errors import CertificateRefused
from theodolite.instruments.rank.certificate import verify
from theodolite.instruments.rank.document import read
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import canonical
from theodolite.theory.attention_growth import base_depth
from theodolite.theory.attention_rank import graded_cap
from theodolite.theory.heads import heads_cap, heads_that_see_all
from theodolite.theory.two_layers import CERTIFIED, law_proven

HERE = Path(__file__).parent
TABLE = HERE / "results" / "exact-rank-nvidia-h200-2026-11-15.json"
RANKS, GROWTH = HERE / "certificates" / "exact-rank.jsonl", HERE / "certificates" / "growth.jsonl"
LAW = HERE / "certificates" / "two-layers.jsonl"
TRIES = 3  # draws; modulo p near 2²³ the first is regular but for a chance of about 2·degree·rank/p
OWN_NET, OWN = HERE / "grouped_attention.py", HERE / "grouped-attention.jsonl"

# width, heads, attention width, base: the shapes that docs/exact-rank.md and claims T5 and T10 name
GROWING = [(d, 1, d, base_depth(d)) for d in (2, 3, 4, 5, 6, 7, 8)]
GROWING += [(4, 2, 2, 2), (4, 4, 1, 2), (8, 2, 4, 2), (8, 4, 2, 2), (8, 8, 1, 3), (16, 1, 16, 3)]

# width, heads, groups of shared keys and values, their width, latent: those of docs/exact-rank.md
GROUPED = [
    *((3, 6, 3, 1, None), (3, 2, 1, 2, None), (3, 4, 2, 2, None), (3, 3, 3, 2, 2)),
    *((4, 2, 1, 2, None), (4, 4, 1, 2, None), (4, 8, 2, 2, None), (4, 6, 3, 2, None), (4, 8, 4, 1, None)),
    *((4, 2, 1, 3, None), (4, 4, 4, 2, 2), (4, 4, 4, 2, 3), (4, 4, 2, 2, 3)),
    *((5, 6, 3, 2, None), (5, 4, 2, 2, None), (5, 2, 1, 3, None), (5, 6, 6, 2, 3)),
]

log = logging.getLogger("certificates")
Shape = dict[str, Any]


def table() -> Iterator[tuple[Shape, list[tuple[int, int]]]]:
    """Shapes with the ranks of their parts, the cheapest first."""
    rows = json.loads(TABLE.read_text())["rows"]
    found = [(row["shape"], [(block[0], block[1]) for block in row["blocks"]]) for row in rows]
    for width, ranks in ((4, (1, 2, 3)), (5, (2, 3, 4))):
        for rank in ranks:
            for heads in (1, width):
                shape = {"depth": 2, "width": width, "heads": heads, "embedding_rank": rank}
                blocks = graded_rank(2, width, heads, embedding_rank=rank).blocks
                found.append((shape, [(block.degree, block.rank) for block in blocks]))
    yield from sorted(found, key=lambda one: sum(rank**2 for _, rank in one[1]) * 9 ** one[0]["depth"])


def law_shapes() -> Iterator[tuple[Shape, list[tuple[int, int]]]]:
    """Two layers with H·d_a ≥ d whose rank no theorem has, with their caps; more heads have the last one's cap."""
    for width in range(2, CERTIFIED + 1):
        for inner in range(1, width):
            for heads in range(-(-width // inner), heads_that_see_all(width, inner) + 1):
                if law_proven(width, heads, inner) == "certificate":
                    shape = {"depth": 2, "width": width, "heads": heads, "attention_width": inner}
                    yield shape, list(enumerate(graded_cap(2, width, heads, inner)))


def header_of(shape: Shape, parts: list[tuple[int, int]], repeat: int = 0) -> dict[str, Any]:
    renamed = {("features" if name == "embedding_rank" else name): value for name, value in shape.items()}
    return graded_certificate([part for part in parts if part[1]], **renamed, repeat=repeat)


def named(document: dict[str, Any]) -> str:
    """What a certificate is about, whichever draw proves it."""
    return canonical({k: v for k, v in document["header"].items() if k not in ("prime", "repeat", "seed", "point")})


Shapes = Iterable[tuple[Shape, list[tuple[int, int]]]]


def ranks(path: Path, shapes: Shapes, largest: int, seconds: float, device: str, only_list: bool) -> None:
    started = time.perf_counter()
    known = {named(document) for document in read(path)} if path.exists() else set()
    for shape, parts in shapes:
        if named(header_of(shape, parts)) in known:
            continue
        most = max(rank for _, rank in parts)
        if only_list or most > largest:
            log.info("missing: %s, largest part %s", shape, f"{most:,}")
            continue
        if time.perf_counter() - started > seconds:
            log.info("stopped after %.0f s: run again to continue", seconds)
            return
        for repeat in range(TRIES):
            document = header_of(shape, parts, repeat)
            try:
                found = verify_graded(document, device)
            except CertificateRefused as error:
                log.info("%s, draw %d: %s", shape, repeat, error)
                continue
            append(path, document)
            log.info("%s  ≥ %s%s  %.1f s", shape, found.lower_bound, ", exact" if found.exact else "", found.seconds)
            break


def growth() -> None:
    known = {named(document) for document in read(GROWTH)} if GROWTH.exists() else set()
    for width, heads, inner, base in GROWING:
        document = growth_certificate(width, heads, inner, base).document()
        if named(document) not in known:
            log.info("%s  %.1f s", document["header"], verify_growth(document).seconds)
            append(GROWTH, document)


def grouped() -> None:
    """Of a net in a file, so that `verify` needs the file; all of them are written anew."""
    net = f"{OWN_NET}:GroupedAttention"
    OWN.unlink(missing_ok=True)
    for width, heads, groups, inner, latent in GROUPED:
        shape = {"width": width, "heads": heads, "groups": groups, "inner": inner, "latent": latent}
        found = separation_rank(net, repeats=1, certificate=True, tokens=2 * width, features=width, **shape)
        cap = heads_cap(2, width, heads, inner, key_value_heads=groups, latent=latent)
        if found.certificate is None:
            raise CertificateRefused(f"{shape} has no regular minor: draw anew")
        verified = verify(found.certificate, net)
        append(OWN, found.certificate)
        log.info("%s  ≥ %d, cap %d  %.1f s", shape, verified.lower_bound, cap, verified.seconds)


def append(path: Path, document: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(canonical(document) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000, help="rank of the largest part to be verified")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--grouped", action="store_true")
    parser.add_argument("--law", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.growth:
        growth()
    elif options.grouped:
        grouped()
    else:
        path, shapes = (LAW, law_shapes()) if options.law else (RANKS, table())
        ranks(path, shapes, options.largest, options.seconds, options.device, options.list)


if __name__ == "__main__":
    main()
