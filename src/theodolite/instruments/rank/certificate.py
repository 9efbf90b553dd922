"""A lower bound on a separation rank that another lab can check, and the check.

The header names the net, the partition, the prime, the draws and R points of either side at which the matrix of
values is claimed regular modulo the prime: then sep ≥ R for almost all real weights. Up to `BY_MINOR` the check
recomputes that minor with python-flint. Beyond it the certificate carries solutions of M·x = b for `SYSTEMS` right-hand
sides drawn from the hash of the header; if M were singular, b would lie in its column space with probability at most
1/p each, and a check needs no elimination and one band of rows at a time.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import require_memory, resolve_device
from theodolite.errors import BadInput, CertificateRefused, TheodoliteError
from theodolite.field import Modulus, draw_residues, product
from theodolite.field.draw import RULE
from theodolite.instruments.rank.document import opened, seal, whole
from theodolite.instruments.rank.exact import SMALLEST_PRIME, Repeat
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.own_net import PAIRS, check_own_net
from theodolite.instruments.rank.pair_matrix import pair_matrix, tiles
from theodolite.instruments.rank.result import predict
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.measurement import canonical
from theodolite.nets.contract import nets
from theodolite.nets.load import Subject, load
from theodolite.notebook import Shown
from theodolite.partition import Partition

FORMAT, VERSION = "theodolite-certificate", 1
_HASH = re.compile(r"[0-9a-f]{64}")
BY_MINOR = 4000
SYSTEMS = 4
_FIELDS = {
    *("net", "net_version", "source", "shape", "kind", "sites", "features", "token", "entry"),
    *("partition", "prime", "draw_rule", "seed", "repeat", "rank", "rows", "columns"),
}


@dataclass(frozen=True)
class Verified(Shown):
    """What a certificate that was checked proves."""

    net: str
    source: str | None  # SHA-256 of the user's file
    shape: Mapping[str, Any]
    partition: str
    lower_bound: int
    prime: int
    cap: int | None
    exact: bool
    method: str
    error_probability: float
    seconds: float

    @property
    def statement(self) -> str:
        shape = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.shape.items())
        claim = f"= {self.lower_bound:,}, the cap" if self.exact else f"≥ {self.lower_bound:,}"
        own = f" of a file with SHA-256 {self.source}" if self.source else ""
        return f"{self.net} ({shape}){own}, partition {self.partition}: separation rank {claim}"

    def to_json(self) -> dict[str, Any]:
        return {"valid": True, "kind": "rank", **asdict(self), "statement": self.statement}


def certificate(repeat: Repeat) -> dict[str, Any]:
    """The certificate of one repeat of an exact measurement."""
    sample, done = repeat.sample, repeat.elimination
    subject = sample.function.subject
    if sample.own_weights:
        raise BadInput("a certificate repeats its weights by the draw rule: measure with --weights drawn to get one")
    if repeat.rank == 0:
        raise BadInput("a separation rank of 0 needs no certificate: the function is 0 at every drawn point")
    if not subject.registered and sample.modulus.p < SMALLEST_PRIME:
        raise BadInput(f"a certificate about a net of your own needs a prime of at least {SMALLEST_PRIME:,}")
    if not subject.registered and subject.source is None:
        raise BadInput("a module built in memory has no name to put into a certificate: pass it as file.py:Name")
    # The minor's rows and columns in increasing order; the solutions below follow the same order.
    rows, row_order = done.pivot_rows.sort()
    columns, column_order = done.pivot_columns.sort()
    header = {
        "net": subject.name,
        "net_version": subject.version,
        "source": subject.source,
        "shape": dict(subject.shape),
        "kind": subject.kind,
        "sites": subject.sites,
        "features": subject.features,
        "token": sample.function.token,
        "entry": sample.function.entry,
        "partition": {"a": list(sample.partition.a), "b": list(sample.partition.b)},
        "prime": sample.modulus.p,
        "draw_rule": RULE,
        "seed": sample.seed,
        "repeat": sample.repeat,
        "rank": repeat.rank,
        "rows": _ranges(rows),
        "columns": _ranges(columns),
    }
    solutions = None
    if repeat.rank > BY_MINOR:
        if sample.modulus.p < SMALLEST_PRIME:
            raise BadInput(f"a certificate of rank {repeat.rank} needs a prime of at least {SMALLEST_PRIME:,}")
        right = _right_hand_sides(header, sample.modulus, sample.device)
        in_pivot_order = done.solve(right[torch.argsort(row_order).to(sample.device)])
        found = sample.modulus.canonical(in_pivot_order)[column_order.to(sample.device)]
        solutions = found.T.cpu().tolist()
    return seal(FORMAT, VERSION, header=header, solutions=solutions)


def verify(
    document: Any,
    net: str | nn.Module | None = None,
    device: str = "cpu",
    progress: Callable[[str, float], None] | None = None,
) -> Verified:
    """Check a certificate of a separation rank. Raises `CertificateRefused` with the reason.

    Parameters:
        document: the certificate, parsed
        net: for a certificate about a net of your own, that net: `file.py:Name` or a module
        device: cpu, cuda, …

    Examples:
        >>> from theodolite.instruments.rank.separation import separation_rank
        >>> found = separation_rank("self-attention", depth=2, width=2, tokens=4, certificate=True)
        >>> verify(found.certificate).lower_bound
        18
    """
    started = time.perf_counter()
    header, solutions = _read(document)
    sample = _sample(header, net, device)
    try:
        sample.evaluate()(sample.whole("trial", 1))
    except BadInput as error:
        raise CertificateRefused(f"its net cannot be evaluated as it states: {error}") from error
    rank, modulus = header["rank"], sample.modulus
    a = sample.chosen("a", _indices(header["rows"]))
    b = sample.chosen("b", _indices(header["columns"]))
    if not sample.function.subject.registered:
        if modulus.p < SMALLEST_PRIME:
            raise CertificateRefused(
                f"modulo {modulus.p} any table of values is a polynomial of low degree: a certificate about a net of a "
                f"file needs a prime of at least {SMALLEST_PRIME:,}"
            )
        rows, columns = ([secrets.randbelow(rank) for _ in range(PAIRS)] for _ in range(2))
        try:
            sample.function.check(sample.evaluate(), sample.whole("trial", 6))
            check_own_net(sample, sample.pairs(a[rows], b[columns]))
        except BadInput as error:
            raise CertificateRefused(str(error)) from error
    report = (lambda share: progress(f"evaluating {rank:,} × {rank:,} points", share)) if progress else None
    if rank <= BY_MINOR:
        require_memory(8 * rank * rank * 8, torch.device("cpu"), f"the {rank:,} × {rank:,} minor in python-flint")
        minor = pair_matrix(sample.evaluate(), a, b, sample.partition, report)
        found = flint_rank(modulus.canonical(minor).cpu(), modulus.p)
        if found != rank:
            raise CertificateRefused(f"the minor it names has rank {found}, not {rank}: the certificate proves nothing")
        method, doubt = "the minor's rank, recomputed with python-flint", 0.0
    else:
        if modulus.p < SMALLEST_PRIME:
            raise CertificateRefused(
                f"the prime {modulus.p} is too small for a check by solutions: it must be at least {SMALLEST_PRIME:,}"
            )
        _check_solutions(sample, header, solutions, a, b, report)
        method, doubt = f"solutions of {SYSTEMS} linear systems, checked row by row", float(modulus.p) ** -SYSTEMS
    cap = None
    if sample.function.subject.registered and (predicted := predict(sample.function, sample.partition)):
        cap = predicted.cap  # one that a user's file declares proves nothing
    return Verified(
        net=header["net"],
        source=header["source"],
        shape=header["shape"],
        partition=str(sample.partition),
        lower_bound=rank,
        prime=modulus.p,
        cap=cap,
        exact=cap == rank,
        method=method,
        error_probability=doubt,
        seconds=time.perf_counter() - started,
    )


def _read(document: Any) -> tuple[dict[str, Any], list[list[int]] | None]:
    header = opened(document, FORMAT, VERSION, ("header", "solutions"), _FIELDS)
    if not isinstance(header["net"], str) or not isinstance(header["shape"], dict):
        raise CertificateRefused("the header names no net, or no shape of one")
    whole(header, ("sites", "features", "token", "entry", "prime", "seed", "repeat", "rank", "net_version"))
    for name in ("rows", "columns"):
        if _count(header[name], name) != header["rank"] or header["rank"] == 0:
            raise CertificateRefused(f"it claims rank {header['rank']} and names {_count(header[name], name)} {name}")
    return header, document["solutions"]


def _sample(header: dict[str, Any], net: str | nn.Module | None, device: str | torch.device) -> FieldSample:
    device = resolve_device(device)
    subject = _subject(header, net)
    subject.module.to(device)
    try:
        if set(header["partition"]) != {"a", "b"}:
            raise CertificateRefused("its partition has not just the two sides a and b")
        sides = [tuple(header["partition"][side]) for side in ("a", "b")]
        if any(type(site) is not int for side in sides for site in side):
            raise CertificateRefused("its partition holds what is not a whole number")
        partition = Partition(*sides)
        if partition.sites != subject.sites:
            raise CertificateRefused(f"its partition has {partition.sites} sites and the net {subject.sites}")
        function = ScalarFunction.of(subject, header["token"], header["entry"])
        return FieldSample.make(function, partition, header["seed"], header["repeat"], device, header["prime"])
    except CertificateRefused:
        raise
    except (TheodoliteError, KeyError, TypeError) as error:
        raise CertificateRefused(f"its header cannot be followed: {error}") from error


def _subject(header: dict[str, Any], net: str | nn.Module | None) -> Subject:
    """The net the header names. Only registered nets are built from the file; a user's net comes from the user."""
    if header["source"] is None:
        if header["net"] not in nets:
            raise CertificateRefused(f"the net '{header['net']}' is not registered here")
        if nets[header["net"]].version != header["net_version"]:
            raise CertificateRefused(f"'{header['net']}' has version {nets[header['net']].version} here")
        try:
            subject = load(header["net"], seed=header["seed"], **header["shape"])
        except (TheodoliteError, TypeError) as error:
            raise CertificateRefused(f"its net cannot be built: {error}") from error
    else:
        file, _, wanted = header["net"].rpartition(":")
        if header["net"] in nets or not file.endswith(".py") or not wanted.isidentifier():
            raise CertificateRefused(
                f"it is about a net of a file and calls it '{header['net']}', which is not of the form file.py:Name"
            )
        if type(header["source"]) is not str or not _HASH.fullmatch(header["source"]):
            raise CertificateRefused(f"the field 'source' is {header['source']!r}, not a SHA-256")
        if net is None:
            raise BadInput(
                f"the certificate is about a net of its own file, '{header['net']}': pass --net file.py:Name"
            )
        try:
            subject = load(net, seed=header["seed"], **header["shape"])
        except TypeError as error:
            raise CertificateRefused(f"its net cannot be built: {error}") from error
        if subject.source != header["source"]:
            raise CertificateRefused("the file passed with --net is not the one the certificate was made from")
        if subject.name != header["net"]:
            raise CertificateRefused(f"the certificate is about '{header['net']}', not '{subject.name}'")
    if (subject.kind, subject.sites, subject.features) != (header["kind"], header["sites"], header["features"]):
        raise CertificateRefused("the net's input shape is not the one the certificate states")
    return subject


def _check_solutions(
    sample: FieldSample,
    header: dict[str, Any],
    solutions: Any,
    a: Tensor,
    b: Tensor,
    report: Callable[[float], None] | None,
) -> None:
    rank, m = header["rank"], sample.modulus
    try:
        x = m.centred(torch.tensor(solutions, dtype=torch.int64)).to(sample.device)
    except (TypeError, ValueError, RuntimeError):
        raise CertificateRefused("its solutions are not lists of whole numbers") from None
    if x.shape != (SYSTEMS, rank):
        raise CertificateRefused(f"it needs {SYSTEMS} solutions of length {rank}")
    x = x.T.contiguous()
    wanted = _right_hand_sides(header, m, sample.device)
    total = torch.zeros_like(wanted)
    for top, left, tile in tiles(sample.evaluate(), a, b, sample.partition):
        band = slice(top, top + tile.shape[0])
        part = product(tile, x[left : left + tile.shape[1]], m)
        total[band] = m.reduce_(total[band] + part)
        if report:
            report(tile.numel() / (rank * rank))
    wrong = (m.canonical(total) != m.canonical(wanted)).any(dim=1)
    if bool(wrong.any()):
        raise CertificateRefused(
            f"a solution fails in row {int(wrong.nonzero()[0, 0])}: the minor is not shown regular"
        )


def _right_hand_sides(header: Mapping[str, Any], modulus: Modulus, device: torch.device) -> Tensor:
    """(rank, systems): system k is the stream `certificate/<SHA-256 of the header>/<k>`."""
    name = hashlib.sha256(canonical(header).encode()).hexdigest()
    systems = [
        draw_residues(f"certificate/{name}/{k}", (header["rank"],), modulus, device=device) for k in range(SYSTEMS)
    ]
    return torch.stack(systems, dim=1)


def flint_rank(minor: Tensor, p: int) -> int:
    """The rank of a matrix of residues from 0 to p − 1, by another library than the one that eliminates here."""
    import flint

    return flint.nmod_mat(minor.shape[0], minor.shape[1], minor.flatten().tolist(), p).rank()


def _ranges(indices: Tensor) -> list[list[int]]:
    """Sorted indices as [first, last] pairs: at random points almost all pivots are the first ones."""
    ranges: list[list[int]] = []
    for i in indices.tolist():
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    return ranges


def _indices(ranges: list[list[int]]) -> Tensor:
    return torch.cat([torch.arange(first, last + 1) for first, last in ranges])


def _count(ranges: Any, name: str) -> int:
    """How many indices the ranges hold; they must be increasing."""
    try:
        previous, total = -1, 0
        for first, last in ranges:
            if not (isinstance(first, int) and isinstance(last, int) and previous < first <= last < 1 << 24):
                raise ValueError
            previous, total = last, total + last - first + 1
        return total
    except (TypeError, ValueError):
        raise CertificateRefused(f"the field '{name}' is not a list of increasing ranges") from None
