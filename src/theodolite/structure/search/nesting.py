"""Groups that enter a function through one number, from the gradients of a surrogate's members.

A group is a module when no variable x_k outside it changes the ratio ∂_i f : ∂_j f of two inside. With g the gradient
at a row and g' the same with x_k redrawn, c = g_i g'_j − g_j g'_i is zero then. Members err differently, so the mean
over points of c_a · c_b for different members a ≠ b is free of their own scatter. It is compared in two ways: with the
mean of (g_i² + g_j²)(g'_i² + g'_j²), which gives the squared sine of the angle by which the two slopes turn, and with
its squared error by the jackknife (each member lacks a fold), (K − 1)²/K times the variance of c over K members.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from theodolite.structure.data.source import Array
from theodolite.structure.search.modules import Flags, find_blocks
from theodolite.structure.search.summands import Group
from theodolite.structure.surrogate.surrogate import SurrogateSource

POINTS = 200
GAPS = 3
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Turns:
    """For every (i, j, k), 0 where k is i or j: the squared sine, no less than its error, by which redrawing x_k turns
    the slopes of x_i and x_j, and the same in units of the error, no less than 1."""

    size: Array
    sureness: Array


def turns(source: SurrogateSource, generator: np.random.Generator, points: int = POINTS) -> Turns:
    base, other = source.points(points, generator), source.points(points, generator)
    count = base.shape[1]
    before = source.member_gradients(base) * source.scale
    size, sureness = np.zeros((count, count, count)), np.zeros((count, count, count))
    for k in range(count):
        moved = base.copy()
        moved[:, k] = other[:, k]
        after = source.member_gradients(moved) * source.scale
        forward = np.einsum("mpi,mpj->mpij", before, after)
        cross = forward - forward.transpose(0, 1, 3, 2)
        members = len(cross)
        square = ((cross.sum(0) ** 2 - (cross**2).sum(0)) / (members * (members - 1))).mean(0)
        error = np.maximum(cross.var(0, ddof=1).mean(0) * (members - 1) ** 2 / members, TINY)
        lengths = (_lengths(before.mean(0)) * _lengths(after.mean(0))).mean(0)
        size[:, :, k] = np.maximum(square, error) / np.maximum(lengths, TINY)
        sureness[:, :, k] = np.maximum(square / error, 1.0)
        for found in (size, sureness):
            found[k, :, k] = found[:, k, k] = 0.0
    return Turns(size, sureness)


def find_modules(turned: Turns, terms: list[Group], most: int = 4) -> list[list[Group]]:
    """Up to `most` different sets of modules inside the terms. What counts as a turn is set in the widest gaps between
    the turns of this function, where what is from what is not parts most clearly: by size and by sureness in turn."""
    ways = [_by_gaps(turned.size, terms), _by_gaps(turned.sureness, terms)]
    found: list[list[Group]] = []
    for pair in zip_longest(*ways):
        found += [modules for modules in pair if modules and modules not in found]
    return found[:most]


def _by_gaps(turned: Array, terms: list[Group]) -> list[list[Group]]:
    values = np.concatenate([np.empty(0), *(_triples(turned, term) for term in terms)])
    found: list[list[Group]] = []
    for bar in _gaps(values[values > 0]):
        modules = [module for term in terms for module in _modules(turned > bar, term, terms)]
        if modules and modules not in found:
            found.append(modules)
        if len(found) == GAPS:
            break
    return found


def _modules(entangled: Flags, term: Group, terms: list[Group]) -> list[Group]:
    shared = frozenset().union(*(term & other for other in terms if other != term))
    blocks = find_blocks(entangled, term)
    return [block.group for block in blocks if block.group < term and not block.shared and not block.group & shared]


def _triples(turned: Array, term: Group) -> Array:
    members = sorted(term)
    part = turned[np.ix_(members, members, members)]
    return part[np.triu_indices(len(members), 1)].ravel()


def _gaps(values: Array) -> Array:
    """Levels in the middle of the gaps of the logarithms, the widest first."""
    ordered = np.log(np.unique(values))
    if len(ordered) < 2:
        return np.exp(ordered[:0])
    widest = np.argsort(-np.diff(ordered), kind="stable")
    return np.exp((ordered[1:] + ordered[:-1]) / 2)[widest]


def _lengths(slopes: Array) -> Array:
    square = slopes**2
    return square[:, :, None] + square[:, None, :]
