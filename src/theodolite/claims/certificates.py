"""Certificates of every kind: of a separation rank, of its parts degree by degree, of growth with depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch import nn

from theodolite.claims.tensors import graded_certificate, growth_certificate
from theodolite.claims.tensors.graded_certificate import GradedVerified, verify_graded
from theodolite.claims.tensors.growth_certificate import GrowthVerified, verify_growth
from theodolite.errors import BadInput
from theodolite.instruments.rank.certificate import Verified
from theodolite.instruments.rank.certificate import verify as verify_rank

Progress = Callable[[str, float], None]


def verify(
    document: Any, net: str | nn.Module | None = None, device: str = "cpu", progress: Progress | None = None
) -> Verified | GradedVerified | GrowthVerified:
    """Check a certificate. Raises `CertificateRefused` with the reason.

    Parameters:
        document: the certificate, parsed
        net: for a certificate about a net of your own, that net: `file.py:Name` or a module
        device: cpu, cuda, …

    Examples:
        >>> from theodolite import rank
        >>> verify(rank("self-attention", depth=2, width=2, tokens=4, certificate=True).certificate).statement
        'self-attention (tokens 4, depth 2, width 2, heads 1), partition left-right: separation rank = 18, the cap'
    """
    kind = document.get("format") if isinstance(document, dict) else None
    if kind in (graded_certificate.FORMAT, growth_certificate.FORMAT):
        if net is not None:
            raise BadInput("this certificate is about a built-in net: leave --net out")
        if kind == growth_certificate.FORMAT:
            return verify_growth(document)
        return verify_graded(document, device, progress)
    return verify_rank(document, net, device, progress)


def files(paths: list[Path]) -> Iterator[Path]:
    """The files given, and those named .json or .jsonl in the folders given."""
    for path in paths:
        if path.is_dir():
            found = sorted([*path.rglob("*.json"), *path.rglob("*.jsonl")])
            if not found:
                raise BadInput(f"the folder '{path}' holds no file named .json or .jsonl: give one with certificates")
            yield from found
        else:
            yield path
