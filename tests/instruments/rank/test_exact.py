"""Exact ranks: closed forms, functions of known rank, an independent evaluation, invariances, and what is claimed."""

import itertools
import math
import random
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.theory import modular
from theodolite.instruments.rank import exact as rank_module
from theodolite.instruments.rank.doubt import by_points
from theodolite.instruments.rank.exact import SURPLUS
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.contract import nets
from theodolite.nets.load import load
from theodolite.partition import Partition

from .known import SumOfSquares, TwoTokens, attention


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_depth_1_at_two_tokens_is_width_plus_one(width):
    found = separation_rank("self-attention", depth=1, width=width, tokens=2)
    assert (found.rank, found.cap, found.exact, found.saturated) == (width + 1, width + 1, True, True)
    assert found.failure_probability == 0
    assert found.degree == 3


@pytest.mark.parametrize(("depth", "width", "truth"), [(2, 2, 15), (2, 3, 35), (3, 2, 105), (3, 3, 560)])
def test_two_tokens_and_one_head_are_a_binomial(depth, width, truth):
    """binom(d + C, d) with C = (3^L − 1)/2: proven as soon as it is reached, with one repeat."""
    assert truth == math.comb(width + (3**depth - 1) // 2, width)
    found = separation_rank("self-attention", depth=depth, width=width, tokens=2, repeats=1)
    assert (found.rank, found.exact, found.saturated) == (truth, True, True)


@pytest.mark.parametrize("terms", [1, 2, 7, 10, 13])
def test_a_sum_of_products_has_as_many_terms_as_rank(terms):
    """Four variables a side: squares span 10 dimensions, so rank stops there."""
    found = separation_rank(SumOfSquares, features=8, terms=terms, max_points=200)
    assert found.rank == found.lower_bound == min(terms, 10)
    assert found.exact
    assert found.cap is None
    assert not found.saturated
    assert found.degree == 5
    assert found.ranks == (found.rank,) * 3
    assert len(set(found.primes)) == 3, "every repeat has a prime of its own"
    assert 0 < (found.failure_probability or 0) < 1e-12
    assert found.covers == ("points", "weights")


def test_a_known_rank_in_tokens():
    for terms in (1, 4, 6, 9):
        found = separation_rank(TwoTokens, features=3, tokens=2, terms=terms, max_points=100)
        assert found.rank == min(terms, 6)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "attention_width", "tokens", "token", "points"),
    [
        (1, 3, 1, 3, 4, 3, 14),
        (2, 2, 2, 1, 2, 1, 20),
        (2, 2, 1, 1, 2, 0, 18),
        (1, 2, 2, 1, 4, 0, 12),
        (2, 3, 3, 1, 2, 1, 40),
    ],
)
def test_against_an_evaluation_in_plain_integers(depth, width, heads, attention_width, tokens, token, points):
    """Own loops, own draws, a 61-bit prime, python-flint's rank: nothing in common with what is tested."""
    rng = random.Random(0)
    network = attention(depth, width, heads, attention_width, token, rng)
    truth = modular.separation_rank(network, Partition.left_right(tokens), width, points, rng)
    assert truth < points, "the independent evaluation needs surplus points too"
    found = separation_rank(
        "self-attention",
        depth=depth,
        width=width,
        heads=heads,
        attention_width=attention_width,
        tokens=tokens,
        token=token,
    )
    assert found.rank == truth


def test_every_balanced_partition_gives_attention_the_same_rank():
    """Proposition 7.1 at N = 4, all six ordered partitions, for a net below its cap and one at it."""
    partitions = [Partition(a, tuple(set(range(4)) - set(a))) for a in itertools.combinations(range(4), 2)]
    assert len(partitions) == 6
    for shape in ({"depth": 1, "width": 3}, {"depth": 2, "width": 2, "heads": 2}):
        ranks = {separation_rank("self-attention", partition=p, tokens=4, **shape).rank for p in partitions}
        assert len(ranks) == 1


@pytest.mark.parametrize("name", ["conv-circuit", "recurrent-circuit"])
def test_circuits_do_depend_on_the_partition(name):
    """Width left-right, width^(N/2) interleaved, for circuits that are read by a linear form."""
    for tokens in (4, 8) if name == "recurrent-circuit" else (4,):
        ranks = [
            separation_rank(name, partition=p, tokens=tokens, width=2, outputs=1).rank
            for p in ("left-right", "interleaved")
        ]
        assert ranks == [2, 2 ** (tokens // 2)]


@pytest.mark.parametrize("name", [n for n, entry in nets.items() if entry.polynomial])
def test_exchanging_the_sides_changes_nothing(name):
    """M becomes its transpose: same rank, same cap, for every polynomial net."""
    shape = {k: v for k, v in {"tokens": 2, "width": 2, "depth": 1, "features": 2}.items() if k in nets[name].arguments}
    if nets[name].kind == "vector":
        shape["features"] = 4
    sites = 4 if nets[name].kind == "vector" else 2
    one = Partition.left_right(sites)
    found, turned = (separation_rank(name, partition=p, repeats=2, **shape) for p in (one, Partition(one.b, one.a)))
    assert (found.rank, found.cap, found.degree) == (turned.rank, turned.cap, turned.degree)
    assert found.rank > 0


def test_unbalanced_partitions_and_every_token():
    """The rank read at any token, against the integers; the side with the token is not like the other."""
    for token in range(3):
        partition = Partition((0,), (1, 2))
        rng = random.Random(token)
        network = attention(1, 2, 1, 2, token, rng)
        truth = modular.separation_rank(network, partition, 2, 14, rng)
        found = separation_rank("self-attention", depth=1, width=2, tokens=3, partition=partition, token=token)
        assert found.rank == truth
        assert found.token == token


def test_another_entry_and_another_seed_have_the_same_generic_rank():
    ranks = {
        separation_rank("self-attention", depth=2, width=2, tokens=2, entry=entry, seed=seed, repeats=1).rank
        for entry in (0, 1)
        for seed in (0, 1, 2)
    }
    assert ranks == {15}


class Entries(nn.Module):
    """Outputs that differ: token 0 has t0·t1 and t0 + t1, token 1 has t0²·t1 + t0 + t1² and 0."""

    def __init__(self, tokens: int, features: int) -> None:
        super().__init__()

    def forward(self, x):
        a, b = x[:, 0].sum(-1), x[:, 1].sum(-1)
        first, second = torch.stack([a * b, a + b], -1), torch.stack([a**2 * b + a + b**2, a * 0], -1)
        return torch.stack([first, second], 1)


@pytest.mark.parametrize(("token", "entry", "truth"), [(0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 0), (None, 0, 3)])
def test_the_token_and_the_entry_that_are_asked_for(token, entry, truth):
    found = separation_rank(Entries, tokens=2, features=2, token=token, entry=entry, max_points=80)
    assert found.rank == truth
    assert (found.token, found.entry) == (1 if token is None else token, entry)


class Special(nn.Module):
    """Attention with weights one can set."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self.net = nets["self-attention"].build(depth=2, width=2)
        with torch.no_grad():
            for i, parameter in enumerate(self.net.parameters()):
                parameter.copy_(
                    {
                        "zeros": torch.zeros_like(parameter),
                        "ones": torch.ones_like(parameter),
                        "tied rows": parameter[:1].expand_as(parameter),
                        "one value off": torch.zeros_like(parameter) if i == 0 else parameter,
                        "generic": parameter,
                    }[value]
                )

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize("value", ["zeros", "ones", "tied rows", "one value off", "generic"])
def test_own_weights_have_at_most_the_generic_rank(value):
    torch.manual_seed(0)
    own = separation_rank(Special(value), weights="own", tokens=2, features=2, max_points=100)
    drawn = separation_rank(Special(value), tokens=2, features=2, max_points=100)
    assert drawn.rank == 15, "drawn weights do not depend on the net's own"
    if value in ("zeros", "one value off"):
        assert own.rank == 0
    elif value == "generic":
        assert own.rank == 15
    else:
        assert 0 < own.rank < 15


def test_weights_that_are_shared_stay_shared():
    """y = (w·a)(w·b) + (v·a)(v·b): with w = v the rank falls to 1."""

    class Shared(nn.Module):
        def __init__(self, features: int, tie: bool) -> None:
            super().__init__()
            self.w = nn.Linear(features // 2, 1, bias=False)
            self.v = self.w if tie else nn.Linear(features // 2, 1, bias=False)

        def forward(self, x):
            a, b = x.chunk(2, -1)
            return self.w(a) * self.w(b) + self.v(a) * self.v(b)

    assert separation_rank(Shared, features=4, tie=False, max_points=80).rank == 2
    assert separation_rank(Shared, features=4, tie=True, max_points=80).rank == 1


def test_buffers_keep_their_values():
    class Masked(nn.Module):
        def __init__(self, features: int, keep: int) -> None:
            super().__init__()
            self.register_buffer("mask", (torch.arange(features // 2) < keep).float() * 0.1)
            self.scale = nn.Parameter(torch.ones(features // 2))

        def forward(self, x):
            a, b = x.chunk(2, -1)
            return (a * b * self.mask * self.scale).sum(-1)

    for keep in (0, 1, 3):
        assert separation_rank(Masked, features=8, keep=keep, max_points=100).rank == keep


def test_too_few_points_give_a_lower_bound_only():
    for arguments in ({"max_points": 9}, {"points": 9}):
        found = separation_rank(SumOfSquares, features=8, terms=10, **arguments)
        assert (found.rank, found.lower_bound, found.exact, found.points) == (9, 9, False, 9)
        assert found.failure_probability == 1
    found = separation_rank("self-attention", depth=2, width=2, tokens=2, max_points=10)
    assert (found.rank, found.exact, found.saturated, found.cap) == (10, False, False, 15)


def test_a_few_surplus_points_are_not_enough_to_call_it_exact():
    almost = separation_rank(SumOfSquares, features=8, terms=5, points=5 + SURPLUS - 1)
    enough = separation_rank(SumOfSquares, features=8, terms=5, points=5 + SURPLUS)
    assert (almost.rank, almost.exact) == (5, False)
    assert (enough.rank, enough.exact) == (5, True)


def test_one_repeat_is_exact_only_at_the_cap():
    assert not separation_rank(SumOfSquares, features=8, terms=5, max_points=100, repeats=1).exact
    assert separation_rank(SumOfSquares, features=8, terms=5, max_points=100, repeats=2).exact
    assert separation_rank("self-attention", depth=1, width=2, tokens=2, repeats=1).exact


def test_points_grow_until_there_are_enough(monkeypatch):
    """From a first look that is full, to twice and then to the surplus."""
    monkeypatch.setattr(rank_module, "_FIRST", 4 - SURPLUS)
    monkeypatch.setattr(rank_module, "_affordable", lambda device: 2049)
    seen = []
    measure = rank_module._measure
    monkeypatch.setattr(
        rank_module, "_measure", lambda d, count, p: seen.append((d.repeat, count)) or measure(d, count, p)
    )
    found = separation_rank(SumOfSquares, features=8, terms=10)
    assert found.rank == 10
    assert found.exact
    assert [c for r, c in seen if r == 0] == [4, 8, 16, 80]
    assert [c for r, c in seen if r > 0] == [10 + SURPLUS] * 2, "later repeats start from the rank that was found"


@pytest.mark.parametrize("p", [2, 3, 5, 7, 13])
def test_a_prime_too_small_is_never_called_exact_below_the_true_rank(p):
    """Over a small field there are few points and x^p = x: ranks agree and are wrong."""
    found = separation_rank("self-attention", depth=2, width=2, tokens=2, prime=p)
    assert found.rank <= 15
    assert found.exact == (found.rank == 15)
    known = separation_rank(SumOfSquares, features=8, terms=10, prime=p, max_points=300)
    assert known.rank == 10 or not known.exact


def test_the_given_prime_is_used():
    found = separation_rank("self-attention", depth=1, width=3, tokens=2, prime=8388593)
    assert found.primes == (8388593,) * 3
    assert found.rank == 4


def test_the_same_seed_gives_the_same_measurement():
    one, two, other = (
        separation_rank("self-attention", depth=2, width=2, heads=2, tokens=2, seed=s).to_json() for s in (4, 4, 5)
    )
    clock = ("seconds", "evaluate_seconds", "eliminate_seconds", "provenance")
    assert {k: v for k, v in one.items() if k not in clock} == {k: v for k, v in two.items() if k not in clock}
    assert one["primes"] != other["primes"]
    assert one["rank"] == other["rank"]


@given(
    surplus=st.integers(1, 70),
    rank=st.integers(0, 500),
    degree=st.integers(0, 300),
    p=st.sampled_from([101, 65537, 8388593]),
)
def test_failure_probability_is_the_bound_of_the_docstring(surplus, rank, degree, p):
    share = Fraction(2 * max(degree, 1), p)
    truth = 1.0 if share >= 1 else float(min(Fraction(1), math.comb(rank + surplus, surplus) * share**surplus))
    assert by_points(rank + surplus, rank, degree, p) == pytest.approx(truth, rel=1e-9)


def test_failure_probability_without_surplus_is_one():
    assert by_points(5, 5, 3, 8388593) == 1


def test_points_by_any_part_of_their_stream():
    subject = load("self-attention", tokens=5, features=3)
    sample = FieldSample.make(ScalarFunction.of(subject), Partition((0, 3), (1, 2, 4)), 2, 0, torch.device("cpu"))
    a = sample.points("a", 9)
    assert a.shape == (9, 2, 3)
    assert sample.points("b", 9).shape == (9, 3, 3)
    assert torch.equal(sample.points("a", 9, start=4), a[4:])
    assert torch.equal(sample.chosen("a", torch.tensor([1, 5, 6])), a[[1, 5, 6]])
    assert not torch.equal(sample.points("b", 9)[:, :2], a)


def test_progress_adds_up_to_the_whole():
    seen: dict[str, float] = {}

    def progress(label: str, share: float) -> None:
        seen[label] = seen.get(label, 0.0) + share

    separation_rank("self-attention", depth=1, width=3, tokens=4, repeats=2, progress=progress)
    evaluated = {label: share for label, share in seen.items() if "evaluating" in label}
    assert len(evaluated) == 2
    assert all(share == pytest.approx(1) for share in evaluated.values())


def test_a_result_is_a_measurement():
    import json

    from theodolite.measurement import Measurement

    found = separation_rank("self-attention", depth=2, width=2, tokens=2, max_points=10)
    row = found.to_measurement()
    assert (row.value, row.exact, row.interval) == (10, False, (10, 15))
    text = json.dumps(row.to_json(), allow_nan=False)
    assert Measurement.from_json(json.loads(text)).value == 10
    json.dumps(found.to_json(), allow_nan=False)
    assert separation_rank("self-attention", depth=1, width=2, tokens=2).to_measurement().interval is None


def test_a_small_prime_at_which_a_polynomial_vanishes_is_never_exact():
    """a^13 − a is 0 at every residue modulo 13, in every repeat, and is not the polynomial 0."""

    def vanishing(x):
        a, b = x[:, :4], x[:, 4:]
        return ((a**13 - a) * b).sum(-1)

    small = separation_rank(vanishing, features=8, prime=13, max_points=200)
    assert (small.rank, small.exact) == (0, False)
    drawn = separation_rank(vanishing, features=8, max_points=200)
    assert (drawn.rank, drawn.exact) == (4, True)
    assert drawn.failure_probability > 0
