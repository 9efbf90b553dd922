"""A certificate of ranks part by part: self-attention's part of degree c in S_B has at least the rank that it states.

The header names the shape, the prime and the draws. Of part c it claims that the matrix of its values at the first R_c
points of either side is regular modulo the prime. Then the part has a separation rank of at least R_c for almost all
real weights, and the network, whose parts live in independent spaces, at least the sum (docs/certificates.md). A matrix
of up to `BY_MINOR` points is given to python-flint. A larger one is eliminated here, and what counts is not the
elimination but its solutions of M·x = b for `SYSTEMS` right-hand sides drawn from the header: they are put in.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.claims.tensors.graded_blocks import AttentionForms, Side, block_matrix
from theodolite.device import require_memory, resolve_device
from theodolite.errors import BadInput, CertificateRefused, TheodoliteError
from theodolite.field import Modulus, draw_prime, draw_residues, eliminate, product
from theodolite.field.draw import RULE
from theodolite.instruments.rank.certificate import BY_MINOR, SYSTEMS, flint_rank
from theodolite.instruments.rank.document import opened, seal, whole
from theodolite.instruments.rank.exact import SMALLEST_PRIME
from theodolite.measurement import canonical
from theodolite.nets.contract import nets
from theodolite.notebook import Shown
from theodolite.theory.attention import hops
from theodolite.theory.attention_rank import graded_cap

FORMAT, VERSION = "theodolite-graded-certificate", 1
_SHAPE = ("depth", "width", "heads", "attention_width", "features", "tokens_with_output", "tokens_other")
_FIELDS = {"net", "net_version", *_SHAPE, "prime", "draw_rule", "seed", "repeat", "parts"}
_LARGEST_SHAPE, _LARGEST_PART = 1 << 12, 1 << 20


@dataclass(frozen=True)
class GradedVerified(Shown):
    """What a certificate part by part proves; `parts` are pairs (degree, rank)."""

    shape: dict[str, int]
    parts: tuple[tuple[int, int], ...]
    lower_bound: int
    cap: int | None  # of the whole network, where all of its parts are there
    exact: bool
    prime: int
    method: str
    error_probability: float
    seconds: float

    @property
    def statement(self) -> str:
        told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.shape.items())
        if self.exact:
            claim = f"separation rank = {self.lower_bound:,} for almost all weights, equal to the cap in every degree"
        else:
            cap = "some parts only" if self.cap is None else f"the cap is {self.cap:,}"
            claim = f"separation rank ≥ {self.lower_bound:,} for almost all weights; {cap}, exactness is not claimed"
        return f"self-attention ({told}): {claim}"

    def to_json(self) -> dict[str, Any]:
        return {"valid": True, "kind": "graded", **asdict(self), "statement": self.statement}


def graded_certificate(
    parts: Sequence[tuple[int, int]],
    *,
    depth: int,
    width: int,
    heads: int = 1,
    attention_width: int | None = None,
    features: int | None = None,
    tokens_with_output: int | None = None,
    tokens_other: int | None = None,
    seed: int = 0,
    repeat: int = 0,
) -> dict[str, Any]:
    """The document that states these ranks, (degree, rank). It proves nothing before it is verified.

    At random points the first R are as good as any R, so the header needs no list of them.
    """
    features = width if features is None else features
    shape = {
        "depth": depth,
        "width": width,
        "heads": heads,
        "attention_width": width // heads if attention_width is None else attention_width,
        "features": features,
        "tokens_with_output": features if tokens_with_output is None else tokens_with_output,
        "tokens_other": features if tokens_other is None else tokens_other,
    }
    header = {
        "net": "self-attention",
        "net_version": nets["self-attention"].version,
        **shape,
        "prime": draw_prime(f"{seed}/{repeat}/prime"),
        "draw_rule": RULE,
        "seed": seed,
        "repeat": repeat,
        "parts": [[int(c), int(r)] for c, r in parts],
    }
    return seal(FORMAT, VERSION, header=header)


def verify_graded(
    document: Any, device: str | torch.device = "cpu", progress: Callable[[str, float], None] | None = None
) -> GradedVerified:
    """Check every part. Raises `CertificateRefused` with the reason."""
    started = time.perf_counter()
    header = _read(document)
    device = resolve_device(device)
    try:
        modulus = Modulus(header["prime"])
    except BadInput as error:
        raise CertificateRefused(f"its header cannot be followed: {error}") from error
    total = hops(header["depth"])
    stream = f"{header['seed']}/{header['repeat']}"
    shape = {name: header[name] for name in _SHAPE[:5]}
    forms = AttentionForms.drawn(f"{stream}/weights", modulus, device, **shape)
    solved = False
    for degree, rank in header["parts"]:
        if progress is not None:
            progress(f"degree {degree}: {rank:,} × {rank:,} points", 0.0)
        require_memory(16 * rank * rank, device, f"a matrix of {rank:,} × {rank:,} points")
        a, b = (
            Side.drawn(f"{stream}/{side}", rank, header[tokens], header["features"], modulus, device)
            for side, tokens in (("a", "tokens_with_output"), ("b", "tokens_other"))
        )
        matrix = block_matrix(forms, a, b, degree, total)
        if rank <= BY_MINOR:
            found = flint_rank(modulus.canonical(matrix).cpu(), modulus.p)
            if found != rank:
                raise CertificateRefused(f"its matrix of degree {degree} has rank {found}, not {rank}")
        else:
            _check_solutions(matrix, header, degree, modulus)
            solved = True
    parts = tuple((degree, rank) for degree, rank in header["parts"])
    caps = graded_cap(*(header[name] for name in (*_SHAPE[:4], *_SHAPE[5:])), embedding_rank=header["features"])
    above = [c for c, rank in parts if rank > caps[c]]
    if above:
        raise AssertionError(f"rank {dict(parts)[above[0]]} of degree {above[0]} is above its cap {caps[above[0]]}")
    bound, complete = sum(rank for _, rank in parts), len(parts) == len(caps)
    return GradedVerified(
        shape={name: header[name] for name in _SHAPE},
        parts=parts,
        lower_bound=bound,
        cap=sum(caps) if complete else None,
        exact=complete and bound == sum(caps),
        prime=modulus.p,
        method="ranks recomputed with python-flint"
        + (f"; above {BY_MINOR:,} points {SYSTEMS} linear systems, solutions put in" if solved else ""),
        error_probability=len(parts) * float(modulus.p) ** -SYSTEMS if solved else 0.0,
        seconds=time.perf_counter() - started,
    )


def _read(document: Any) -> dict[str, Any]:
    header = opened(document, FORMAT, VERSION, ("header",), _FIELDS)
    whole(header, (*_SHAPE, "prime", "seed", "repeat", "net_version"))
    if header["net"] != "self-attention" or header["net_version"] != nets["self-attention"].version:
        raise CertificateRefused(
            f"parts are known of 'self-attention', version {nets['self-attention'].version}, not of {header['net']!r}"
        )
    for name in _SHAPE:
        if not 1 <= header[name] <= _LARGEST_SHAPE:
            raise CertificateRefused(f"its field '{name}' is {header[name]}: it must be between 1 and {_LARGEST_SHAPE}")
    if header["depth"] > 6 or header["features"] > header["width"]:
        raise CertificateRefused("its depth is above 6 or its tokens have more features than the width")
    total, previous = hops(header["depth"]), -1
    try:
        if not header["parts"]:
            raise ValueError
        for degree, rank in header["parts"]:
            if type(degree) is not int or type(rank) is not int:
                raise ValueError
            if not (previous < degree <= total and 1 <= rank <= _LARGEST_PART):
                raise ValueError
            previous = degree
    except (TypeError, ValueError):
        raise CertificateRefused(
            f"its parts are not pairs of a degree, increasing from 0 to {total}, and a rank of at least 1"
        ) from None
    return header


def _check_solutions(matrix: Tensor, header: dict[str, Any], degree: int, modulus: Modulus) -> None:
    """A regular matrix is shown by solutions of systems that it could not have chosen."""
    if modulus.p < SMALLEST_PRIME:
        raise CertificateRefused(f"the prime {modulus.p} is too small for a check by solutions")
    name = hashlib.sha256(canonical(header).encode()).hexdigest()
    rank, device = len(matrix), matrix.device
    wanted = torch.stack(
        [draw_residues(f"certificate/{name}/{degree}/{k}", (rank,), modulus, device=device) for k in range(SYSTEMS)], 1
    )
    try:
        done = eliminate(matrix, modulus)
    except TheodoliteError as error:
        raise CertificateRefused(f"its matrix of degree {degree} cannot be eliminated: {error}") from error
    if done.rank != rank:
        raise CertificateRefused(f"its matrix of degree {degree} has rank {done.rank}, not {rank}")
    x = torch.zeros_like(wanted)
    x[done.pivot_columns.to(device)] = done.solve(wanted[done.pivot_rows.to(device)])
    if bool((modulus.canonical(product(matrix, x, modulus)) != modulus.canonical(wanted)).any()):
        raise CertificateRefused(f"solutions of degree {degree} fail: its matrix is not shown regular")
