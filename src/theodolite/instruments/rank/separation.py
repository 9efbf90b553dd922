"""`separation_rank`: the one function behind `theodolite rank`, in its three modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.rank.certificate import certificate as make_certificate
from theodolite.instruments.rank.epsilon import Inputs, Reference, epsilon_rank
from theodolite.instruments.rank.exact import Progress, Repeat, exact_rank
from theodolite.instruments.rank.grid import grid_rank
from theodolite.instruments.rank.result import RankResult
from theodolite.nets.checkpoint import Checkpoint, sizes_in
from theodolite.nets.contract import nets
from theodolite.nets.load import Subject, blueprint, load
from theodolite.nets.own_net import SIZES
from theodolite.nets.reading import kind_of
from theodolite.nets.weights import load_weights, read_checkpoint
from theodolite.partition import Partition

Mode = Literal["exact", "epsilon", "grid"]


def separation_rank(
    net: str | nn.Module | Callable[..., nn.Module],
    mode: Mode = "exact",
    partition: str | Partition = "left-right",
    *,
    epsilon: float | None = None,
    templates: int | None = None,
    token: int | None = None,
    entry: int = 0,
    points: int | None = None,
    max_points: int | None = None,
    repeats: int | None = None,
    prime: int | None = None,
    weights: str | Path | None = None,
    inputs: Inputs | None = None,
    dtype: str | None = None,
    relative_to: Reference | None = None,
    certificate: bool = False,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    **shape: Any,
) -> RankResult:
    """Separation rank of one output entry of a net with respect to a partition of its input.

    Parameters:
        net: a registered name, `file.py:Name`, a module, a function of tensors or what builds a module
        mode: exact (polynomial nets), epsilon (any net) or grid (the small independent truth)
        partition: left-right, interleaved, or two lists of places: "0,1|2,3"
        epsilon: relative error of mode epsilon; 0.01 unless given
        templates: template vectors of mode grid; 2 unless given
        token: whose output is read; the last one otherwise
        entry: of the output that is read
        points: a fixed number of points per side
        max_points: stop growing here, with a lower bound only
        repeats: fresh primes, weights and points, in epsilon mode resamples of the points
        prime: use this one
        weights: own measures the net's own weights instead of drawn ones (epsilon mode always does), a file of weights
            (safetensors, or torch.save's) those
        inputs: normal, uniform or signs, in mode epsilon
        dtype: float64 or float32, in mode epsilon
        relative_to: the output's size or spread, in mode epsilon
        certificate: the result's `.certificate` can be written to a file and verified
        seed: of every draw
        device: cpu, cuda, …
        shape: arguments of the net: depth, width, tokens, …

    Examples:
        >>> found = separation_rank("self-attention", depth=2, width=2, tokens=6)
        >>> found.rank, found.cap, found.saturated
        (18, 18, True)
    """
    _only(mode, "exact", certificate=certificate or None, max_points=max_points)
    _only(mode, "epsilon", epsilon=epsilon, inputs=inputs, dtype=dtype, relative_to=relative_to)
    _only(mode, "grid", templates=templates)
    named = weights not in (None, "drawn", "own")
    if named and not Path(str(weights)).is_file():
        raise BadInput(f"weights '{weights}' are unknown: use drawn, own or the path of a file of weights")
    if not 0 <= seed < 1 << 63:
        raise BadInput(f"seed {seed} is not between 0 and 2^63 - 1")
    subject = _subject(net, seed, shape, str(weights) if named else None)
    own = named or weights == "own"
    if mode == "epsilon":
        if weights == "drawn":
            raise BadInput("epsilon mode measures the weights a net was built with: leave --weights out")
        if prime is not None:
            raise BadInput("epsilon mode computes in floats and takes no prime: leave it out, or use --mode exact")
        return epsilon_rank(
            subject,
            partition,
            epsilon=0.01 if epsilon is None else epsilon,
            token=token,
            entry=entry,
            points=256 if points is None else points,
            resamples=3 if repeats is None else repeats,
            inputs=inputs or "normal",
            dtype=dtype or "float64",
            relative_to=relative_to or "size",
            seed=seed,
            device=device,
            progress=progress,
        )
    common: dict[str, Any] = {
        "token": token,
        "entry": entry,
        "repeats": 3 if repeats is None else repeats,
        "prime": prime,
        "own_weights": own,
        "seed": seed,
        "device": device,
    }
    if mode == "grid":
        if points is not None:
            raise BadInput("grid mode counts template vectors, not points: use --templates")
        return grid_rank(subject, partition, templates=2 if templates is None else templates, **common)
    kept: list[dict[str, Any]] = []
    keep = (lambda repeat: kept.append(make_certificate(repeat))) if certificate else None
    result = exact_rank(
        subject, partition, points=points, max_points=max_points, progress=progress, keep=keep, **common
    )
    return replace(result, certificate=kept[-1]) if kept else result


def _subject(net: Any, seed: int, shape: dict[str, Any], weights: str | None) -> Subject:
    """The net, with the weights of a file where one is given; their sizes are read off them."""
    if weights is None:
        return load(net, seed=seed, **_with_tokens(net, shape))
    if isinstance(net, str) and net in nets:  # what theory says of it stays known
        subject = load(net, seed=seed, **shape, **sizes_in(net, read_checkpoint(weights)[0], shape))
        load_weights(subject.name, subject.module, weights)
        return subject
    given = {name: value for name, value in shape.items() if name != "tokens"}
    checkpoint = Checkpoint(net, weights, given)
    return load(checkpoint, **_with_tokens(checkpoint, {k: v for k, v in shape.items() if k == "tokens"}))


def _with_tokens(net: Any, shape: dict[str, Any]) -> dict[str, Any]:
    """The shape, with tokens where a user's net is seen to read them and was given none."""
    plan = blueprint(net, **shape)
    if plan.registered or plan.kind == "sequence":
        return shape
    try:
        reads = kind_of(net, shape)
    except BadInput:  # the measurement says what failed, on the input it makes
        return shape
    return {**shape, "tokens": SIZES["tokens"]} if reads == "sequence" else shape


def _only(mode: str, owner: str, **options: Any) -> None:
    """Options of one mode are refused in the others instead of being ignored."""
    if mode not in ("exact", "epsilon", "grid"):
        raise BadInput(f"mode '{mode}' is unknown: use exact, epsilon or grid")
    for name, value in options.items():
        if value is not None and mode != owner:
            raise BadInput(f"--{name.replace('_', '-')} belongs to --mode {owner} and the mode is {mode}: leave it out")


__all__ = ["Mode", "Repeat", "separation_rank"]
