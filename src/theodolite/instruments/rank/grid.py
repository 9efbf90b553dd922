"""The grid tensor of a function and its matricisation, entry by entry as the source defines them (Section 7.2).

Small and slow on purpose: an independent truth for the sampled measurement. The rank of the matrix is a lower bound
on the separation rank for any template vectors (Claim 7.1).
"""

from __future__ import annotations

import itertools
import time

import torch
from torch import Tensor

from theodolite.device import device_name, resolve_device
from theodolite.errors import BadInput
from theodolite.field import draw_residues, rank
from theodolite.field.draw import draw_words
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.result import RankResult, described, predict, predicted_fields
from theodolite.instruments.rank.scalar import Evaluate, ScalarFunction
from theodolite.measurement import Provenance
from theodolite.nets.load import Subject
from theodolite.partition import Partition

_LARGEST = 1 << 22


def grid_tensor(evaluate: Evaluate, templates: Tensor, sites: int) -> Tensor:
    """A(y)_{j_1…j_N} = y(x^(j_1), …, x^(j_N)) for `templates` of shape (M, features)."""
    count = len(templates)
    indices = torch.tensor(list(itertools.product(range(count), repeat=sites)), device=templates.device)
    values = torch.cat([evaluate(templates[part]) for part in indices.split(1 << 14)])
    return values.view(*([count] * sites))


def matricise(tensor: Tensor, partition: Partition) -> Tensor:
    """row = 1 + Σ_t (j_{a_t} − 1)·M^{|A|−t}, and the same for columns with B (here counted from 0)."""
    count = tensor.shape[0]
    matrix = tensor.new_empty(count ** len(partition.a), count ** len(partition.b))
    for place in itertools.product(range(count), repeat=partition.sites):
        row = sum(place[site] * count ** (len(partition.a) - t) for t, site in enumerate(partition.a, start=1))
        column = sum(place[site] * count ** (len(partition.b) - t) for t, site in enumerate(partition.b, start=1))
        matrix[row, column] = tensor[place]
    return matrix


def grid_rank(
    subject: Subject,
    partition: str | Partition = "left-right",
    *,
    templates: int = 2,
    token: int | None = None,
    entry: int = 0,
    repeats: int = 3,
    prime: int | None = None,
    own_weights: bool = False,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> RankResult:
    """Rank over GF(p) of the matricised grid tensor at drawn template vectors (for a net of ids: the first ids)."""
    started = time.perf_counter()
    device = resolve_device(device)
    subject.module.to(device)
    split = Partition.parse(partition, subject.sites)
    if templates < 1 or repeats < 1:
        raise BadInput(f"{templates} templates and {repeats} repeats measure nothing: both must be at least 1")
    if templates**split.sites > _LARGEST:
        raise BadInput(
            f"{templates} templates at {split.sites} sites make a grid of {templates**split.sites:,} entries, "
            f"more than {_LARGEST:,}: use fewer of either, or --mode exact"
        )
    if subject.vocab and templates > subject.vocab:
        raise BadInput(f"{templates} templates are more than the {subject.vocab} ids there are: use at most that many")
    function = ScalarFunction.of(subject, token, entry)
    ranks, primes = [], []
    for repeat in range(repeats):
        sample = FieldSample.make(function, split, seed, repeat, device, prime, own_weights)
        if subject.vocab:
            vectors = torch.arange(templates, dtype=torch.float64, device=device).view(-1, 1)
        else:
            shape = (templates, subject.features)
            vectors = draw_residues(f"{seed}/{repeat}/templates", shape, sample.modulus, device=device)
        evaluate = sample.evaluate()
        if repeat == 0:
            trial = draw_words("trial", 6 * split.sites, device=device).remainder(templates)
            ids = vectors[trial.view(6, split.sites)]
            function.check(evaluate, ids if subject.vocab else sample.whole("trial", 6))
        matrix = matricise(grid_tensor(evaluate, vectors, split.sites), split)
        ranks.append(rank(matrix, sample.modulus))
        primes.append(sample.modulus.p)
    found, predicted = max(ranks), predict(function, split)
    theory = predicted_fields(predicted, found, subject.registered)
    return RankResult(
        **described(function, split),
        **theory,
        mode="grid",
        rank=found,
        exact=theory["saturated"],
        lower_bound=found,
        failure_probability=0.0 if theory["saturated"] else None,
        covers=("points", "weights", "primes") if theory["saturated"] else (),
        primes=tuple(primes),
        points=templates ** max(len(split.a), len(split.b)),
        ranks=tuple(ranks),
        degree=predicted.degree if predicted else None,
        seconds=time.perf_counter() - started,
        evaluate_seconds=0.0,
        eliminate_seconds=0.0,
        provenance=Provenance.here(seed, device_name(device)),
        details={"templates": templates},
    )
