"""Caps of arithmetic circuits, against every assignment of sides and against measured ranks."""

import math
import random
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.partition import Partition
from theodolite.theory.circuits import convolutional_cap, recurrent_cap

from . import modular


def balanced(sites):
    for a in combinations(range(sites), sites // 2):
        yield Partition(a, tuple(set(range(sites)) - set(a)))


def best_assignment(nodes, indices, fixed):
    """Least product of the weights of the indices that join nodes of both sides; a node of `fixed` has its side."""
    free = [node for node in nodes if node not in fixed]
    best = None
    for choice in product((0, 1), repeat=len(free)):
        side = fixed | dict(zip(free, choice, strict=True))
        cost = math.prod(weight for weight, joined in indices if len({side[node] for node in joined}) == 2)
        best = cost if best is None else min(best, cost)
    return best


def sides_of(partition):
    return {("token", site): int(site in partition.b) for site in range(partition.sites)}


def convolutional_indices(tokens, features, width):
    indices = [(features, [("token", t), (0, t)]) for t in range(tokens)]
    level, count = 0, tokens
    while count > 1:
        for t in range(count // 2):
            indices.append((width, [(level, 2 * t), (level, 2 * t + 1), (level + 1, t)]))
        level, count = level + 1, count // 2
    return indices


def chain_indices(tokens, features, width):
    indices = [(features, [("token", t), ("V", t)]) for t in range(tokens)]
    return indices + [(width, [("W", t), ("V", t), ("W", t + 1)]) for t in range(tokens)]


def nodes_of(indices):
    return list(dict.fromkeys(node for _, joined in indices for node in joined))


@each("tokens", [2, 4])
@each(("features", "width"), [(2, 3), (3, 2), (2, 5), (5, 2), (1, 4), (4, 1)])
def test_convolutional_cap_is_the_best_of_all_assignments(tokens, features, width):
    indices = convolutional_indices(tokens, features, width)
    for partition in balanced(tokens):
        assert convolutional_cap(partition, features, width) == best_assignment(
            nodes_of(indices), indices, sides_of(partition)
        )


@pytest.mark.parametrize("text", ["left-right", "interleaved", "0,3,5|1,2,4,6,7"])
def test_convolutional_cap_is_the_best_of_all_assignments_of_eight(text):
    indices = convolutional_indices(8, 2, 3)
    partition = Partition.parse(text, 8)
    assert convolutional_cap(partition, 2, 3) == best_assignment(nodes_of(indices), indices, sides_of(partition))


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(1, 5), st.integers(1, 5), st.data())
def test_chain_cap_is_the_best_of_all_assignments(tokens, features, width, data):
    a = data.draw(st.sets(st.integers(0, tokens - 1), min_size=1, max_size=tokens - 1))
    partition = Partition(tuple(a), tuple(set(range(tokens)) - a))
    indices = chain_indices(tokens, features, width)
    assert recurrent_cap(partition, features, width) == best_assignment(nodes_of(indices), indices, sides_of(partition))


@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 9))
def test_left_right_and_interleaved(levels, features, width):
    tokens = 2**levels
    interleaved, halves = Partition.interleaved(tokens), Partition.left_right(tokens)
    assert convolutional_cap(interleaved, features, width) == min(width, features) ** (tokens // 2)
    assert convolutional_cap(halves, features, width) == min(width, features ** (tokens // 2))
    assert recurrent_cap(halves, features, width) == min(width, features ** (tokens // 2))
    assert recurrent_cap(interleaved, features, width) == min(width, features) ** (tokens // 2)


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.data())
def test_sides_may_be_swapped(levels, features, width, depth, data):
    tokens = 2**levels
    a = data.draw(st.sets(st.integers(0, tokens - 1), min_size=1, max_size=tokens - 1))
    b = set(range(tokens)) - a
    one, other = Partition(tuple(a), tuple(b)), Partition(tuple(b), tuple(a))
    assert convolutional_cap(one, features, width) == convolutional_cap(other, features, width)
    assert recurrent_cap(one, features, width, depth) == recurrent_cap(other, features, width, depth)


def convolutional(rng, tokens, features, width):
    levels = tokens.bit_length() - 1
    layers = [
        [modular.draw(rng, width, width if level else features) for _ in range(tokens >> level)]
        for level in range(levels)
    ]
    form = modular.vector(rng, width)

    def network(x):
        for layer in layers:
            y = [modular.apply(weight, vector) for weight, vector in zip(layer, x, strict=True)]
            x = [multiply(left, right) for left, right in zip(y[::2], y[1::2], strict=True)]
        return dot(form, x[0])

    return network


def recurrent(rng, features, width, depth):
    w = [modular.draw(rng, width, width) for _ in range(depth)]
    v = [modular.draw(rng, width, width if level else features) for level in range(depth)]
    start, form = modular.draw(rng, depth, width), modular.vector(rng, width)

    def network(x):
        states = [list(state) for state in start]
        for below in x:
            for level in range(depth):
                below = multiply(modular.apply(w[level], states[level]), modular.apply(v[level], below))
                states[level] = below
        return dot(form, states[-1])

    return network


def multiply(left, right):
    return [a * b % modular.PRIME for a, b in zip(left, right, strict=True)]


def dot(left, right):
    return sum(multiply(left, right)) % modular.PRIME


@pytest.mark.parametrize(("tokens", "features", "width"), [(2, 3, 2), (4, 2, 3), (4, 3, 2), (4, 3, 3), (8, 2, 2)])
def test_convolutional_circuits_attain_the_minimal_cut(tokens, features, width):
    rng = random.Random(9)
    for text in ("left-right", "interleaved"):
        partition = Partition.parse(text, tokens)
        cap = convolutional_cap(partition, features, width)
        network = convolutional(rng, tokens, features, width)
        assert modular.separation_rank(network, partition, features, cap + 3, rng) == cap


def test_every_partition_of_four_obeys_the_convolutional_cap():
    rng = random.Random(10)
    for a in ((0,), (3,), (0, 1), (0, 2), (0, 3), (1, 2), (0, 1, 3)):
        partition = Partition(a, tuple(set(range(4)) - set(a)))
        cap = convolutional_cap(partition, 2, 3)
        assert modular.separation_rank(convolutional(rng, 4, 2, 3), partition, 2, cap + 3, rng) <= cap


@pytest.mark.parametrize(("features", "width"), [(2, 2), (3, 2), (2, 3)])
def test_depth_one_recurrent_circuits_attain_the_minimal_cut(features, width):
    rng = random.Random(11)
    for text in ("left-right", "interleaved"):
        partition = Partition.parse(text, 6)
        cap = recurrent_cap(partition, features, width)
        network = recurrent(rng, features, width, depth=1)
        assert modular.separation_rank(network, partition, features, cap + 3, rng) == cap


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("tokens", "features", "width"), [(2, 2, 2), (3, 2, 2), (4, 2, 2), (4, 3, 2), (3, 2, 3)])
def test_deep_recurrent_circuits_obey_the_cap(depth, tokens, features, width):
    rng = random.Random(12)
    for a in [tuple(range(cut)) for cut in range(1, tokens)] + [tuple(range(0, tokens, 2))]:
        partition = Partition(a, tuple(set(range(tokens)) - set(a)))
        cap = recurrent_cap(partition, features, width, depth)
        network = recurrent(rng, features, width, depth)
        rank = modular.separation_rank(network, partition, features, min(cap + 3, 45), rng)
        assert 1 <= rank <= cap


def test_the_state_handed_over_caps_a_long_left_side():
    """Depth 2, m later tokens: h² enters with degree 1, h¹ with degree m."""
    partition = Partition(tuple(range(9)), (9, 10))
    assert recurrent_cap(partition, features=50, width=3, depth=2) == 3 * math.comb(3 + 2 - 1, 2)
    assert recurrent_cap(partition, features=50, width=3, depth=2) == recurrent_cap(partition, 3, 3, 2)


def test_outside_the_domain():
    with pytest.raises(OutsideDomain, match="6 tokens"):
        convolutional_cap(Partition.left_right(6), 2, 2)
    with pytest.raises(OutsideDomain, match="width = 0"):
        convolutional_cap(Partition.left_right(4), 2, 0)
    with pytest.raises(OutsideDomain, match="depth = 0"):
        recurrent_cap(Partition.left_right(4), 2, 2, 0)
