"""Networks of blocks of several degrees at one budget, against expanded polynomials, closed forms and brute force."""

# pyright: reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product as cartesian
from pathlib import Path

import flint
import pytest
import torch

from tests.each import each
from theodolite.errors import BadInput, NotPolynomial
from theodolite.instruments.degree import effort as degree_effort
from theodolite.instruments.degree.equal_budget import Family, designs
from theodolite.instruments.degree.product_shapes import shape_of
from theodolite.instruments.degree.trained import train_degrees
from theodolite.instruments.degree.which_degree import degree, spelt
from theodolite.theory.degree import COUNTS, best_degree

Polynomial = dict[tuple[int, ...], int]

OWN = """
import torch
from torch import nn

class Product(nn.Module):
    def __init__(self, features, depth=1, width=2, degree=2):
        super().__init__()
        self.embed = nn.Linear(features, width, bias=False)
        self.layers = nn.ModuleList(nn.Linear(width, width * degree, bias=False) for _ in range(depth))
        self.degree = degree

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x).unflatten(-1, (self.degree, -1)).prod(dim=-2)
        return x

class Rectified(Product):
    def forward(self, x):
        return torch.relu(super().forward(x))

class Fixed(nn.Module):
    def __init__(self, features, depth=1, width=2):
        super().__init__()
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    found: Polynomial = defaultdict(int)
    for (a, x), (b, y) in cartesian(left.items(), right.items()):
        found[tuple(i + j for i, j in zip(a, b, strict=True))] += x * y
    return found


def _mixed_up(vectors: list[Polynomial], rows: int, draw: torch.Generator) -> list[Polynomial]:
    """A random integer matrix times a vector of polynomials."""
    result = []
    for weights in torch.randint(-9, 10, (rows, len(vectors)), generator=draw).tolist():
        total: Polynomial = defaultdict(int)
        for weight, polynomial in zip(weights, vectors, strict=True):
            for exponents, value in polynomial.items():
                total[exponents] += weight * value
        result.append(total)
    return result


def _expanded_rank(degrees: tuple[int, ...], count: str, width: int, inputs: int) -> int:
    """Rank of the coefficient matrix of one output entry, written out term by term with integer weights."""
    draw = torch.Generator().manual_seed(3)
    unit = [tuple(int(i == j) for j in range(2 * inputs)) for i in range(2 * inputs)]
    x = [{exponents: 1} for exponents in unit]
    x = x if 2 * inputs == width else _mixed_up(x, width, draw)
    for factors in degrees:
        block = x if count == "d-1" else _mixed_up(x, width, draw)
        for _ in range(factors - 1):
            block = [_times(p, q) for p, q in zip(block, _mixed_up(x, width, draw), strict=True)]
        x = _mixed_up(block, width, draw) if count == "d+1" else block
    terms = {(e[:inputs], e[inputs:]): value for e, value in x[0].items() if value}
    left, right = (sorted({key[side] for key in terms}) for side in (0, 1))
    return flint.fmpz_mat([[terms.get((a, b), 0) for b in right] for a in left]).rank()


@pytest.mark.parametrize(("count", "budget", "degrees"), [("d-1", 3, {2, 4}), ("d", 6, {2, 3, 6}), ("d+1", 6, {2, 5})])
def test_the_rank_is_that_of_the_polynomial_written_out(count, budget, degrees):
    rows = degree(budget, 3, matrices=count, inputs=2)
    assert {row.degree for row in rows} == degrees
    for row in rows:
        assert row.exact
        assert row.rank == _expanded_rank(row.degrees, count, 3, 2)


def test_the_order_of_mixed_blocks_is_the_order_they_are_applied_in():
    rows = [row for row in degree(5, 3, degrees=[2, 3], inputs=2, mixed=True) if row.degree is None]
    assert {row.degrees for row in rows} == {(2, 3), (3, 2)}
    for row in rows:
        assert row.rank == _expanded_rank(row.degrees, "d", 3, 2)


def test_one_wide_block_has_the_rank_of_a_product_of_sums_below_its_cap():
    (row,) = degree(5, 6, degrees=[5], inputs=6)
    space = [math.comb(6 + c - 1, c) for c in range(6)]
    assert row.cap == sum(min(space[c], space[5 - c]) for c in range(6))
    assert row.rank == 2**5 < row.cap  # Σ over sets of factors, all of them independent in 6 variables
    assert row.exact
    assert row.saturated is False
    assert len(set(row.ranks)) == 1
    assert len(row.ranks) == 3


@pytest.mark.parametrize("family", ["fully-connected", "attention", "mixer"])
def test_all_networks_of_a_budget_have_equally_many_measured_parameters(family):
    tokens = None if family == "fully-connected" else 3
    blocks = Family.named(family, 3, 2 if tokens is None else None, tokens)
    found, _ = designs(blocks, [12, 24], blocks.counts("all"), None)
    for budget in (12, 24):
        own = [design for design in found if design.budget == budget]
        assert len({design.degrees for design in own}) >= 4
        assert len({design.parameters for design in own}) == 1
        assert {design.matrices for design in own} == {budget}


@pytest.mark.parametrize(("count", "best"), [("d-1", 2), ("d", 3), ("d+1", 4)])
def test_the_count_of_matrices_moves_the_degree_with_the_largest_total(count, best):
    found, _ = designs(Family.named("fully-connected", 2), [60], [count], None)
    assert len(found) >= 4
    assert max(found, key=lambda design: design.total_degree).degrees[0] == best == best_degree(count)


def test_a_degree_beyond_the_prime_field_has_no_rank_and_still_its_total():
    rows = degree("48,2004", 2, degrees="2,3")
    assert [row.rank for row in rows] == [None] * 4
    assert not any(row.exact for row in rows)
    assert [row.total_degree for row in rows] == [2**24, 3**16, None, None]
    for row in rows:
        assert math.isclose(row.log10_total_degree, row.depth * math.log10(row.degree), rel_tol=1e-5)


@pytest.mark.parametrize(("budget", "count"), [(7, "d"), (12, "d"), (9, "d-1"), (13, "d+1")])
def test_mixed_degrees_are_the_best_of_all_orders_that_spend_the_budget(budget, count):
    cost = {d: d + COUNTS.index(count) - 1 for d in range(2, 7)}

    def every(left: int) -> list[tuple[int, ...]]:
        return [()] if left == 0 else [(d, *rest) for d in cost if cost[d] <= left for rest in every(left - cost[d])]

    mixtures = {order for order in every(budget) if len(set(order)) > 1}
    best = max(map(math.prod, mixtures))
    blocks = Family.named("fully-connected", 2)
    found, _ = designs(blocks, [budget], [count], None, mixed=1000)
    orders = [design.degrees for design in found if len(set(design.degrees)) > 1]
    assert orders
    assert len(orders) == len(set(orders))
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(m)) for m in mixtures if math.prod(m) == best}
    few, notes = designs(blocks, [budget], [count], None, mixed=2)
    assert sum(len(set(design.degrees)) > 1 for design in few) == 2
    total = sum(math.prod(m) == best for m in mixtures)
    assert (f"2 of {total}" in notes[-1]) == (total > 2)


def test_wide_nets_get_fewer_points_by_themselves_and_it_is_told(monkeypatch):
    monkeypatch.setitem(degree_effort._WORK, "cpu", 2e7)  # so that a width of 6 is wide
    notes: list[str] = []
    rows = degree(12, 6, degrees=[2, 3], on_note=notes.append)
    (points,) = {row.points for row in rows}
    assert 16 <= points < 256
    assert {row.rank for row in rows} == {points}
    assert f"with {points} points a side instead of 2,048" in notes[-1]
    assert {row.points for row in degree(12, 6, degrees=[2, 3], max_points=70)} == {70}


def test_points_fall_with_the_width_so_that_their_cost_does_not_rise():
    costs = []
    for width in (32, 64, 128, 256):
        chosen, _ = designs(Family.named("fully-connected", width), [12], ["d"], None)
        (points,) = set(degree_effort.affordable_points(chosen, torch.device("cpu")))
        costs.append(len(chosen) * points**2 * chosen[0].parameters)
    assert max(costs) <= 4e10
    assert min(costs) > 1e10


def test_the_cap_is_known_without_a_measurement():
    for row in degree(12, 2, family="attention", degrees=[2, 3], max_points=20):
        assert Family.named("attention", 2).cap(row.degrees, "d") == row.cap


def test_ranks_that_a_cap_holds_keep_their_points_beside_larger_ones():
    chosen, _ = designs(Family.named("fully-connected"), [12, 24, 36], ["d"], None)
    points = degree_effort.affordable_points(chosen, torch.device("cpu"))
    few = {design.budget: most for design, most in zip(chosen, points, strict=True) if design.degrees[0] == 3}
    assert few[12] == 2048 > few[24] == few[36]  # caps of 1,722 and of far more


def test_the_default_width_is_smaller_for_nets_of_tokens(own):
    assert [Family.named(name).width for name in ("fully-connected", "attention", "mixer")] == [4, 2, 2]
    assert Family.named(f"{own}:Product", 6).shape == {"features": 6}
    assert Family.named(f"{own}:Product", 6, inputs=1).shape == {"features": 2}


def test_real_degrees_are_those_of_the_built_net():
    shape = replace(shape_of("e", 12, 8, 8, 1), width=8)
    assert list(shape.blocks().degrees) == shape.build(8, 1).block_degrees() == [2.75] * shape.depth
    effort = {"seeds": 2, "steps": 3, "task": "diabetes"}
    (row,) = degree(8, 2, degrees=[2.5], train=True, **effort)
    assert row.degrees == (2.5,) * 3
    assert row.total_degree == 27
    assert row.matrices == 7.5
    assert row.degree == 2.5


def test_training_takes_only_degrees_that_divide_the_budget_unless_they_are_asked_for():
    effort = {"seeds": 2, "steps": 3, "task": "diabetes", "train": True}
    assert [row.degree for row in degree(4, 2, **effort)] == [2, 4]
    notes: list[str] = []
    (row,) = degree(4, 2, degrees=[3], on_note=notes.append, **effort)
    assert row.rank is None
    assert row.error is not None
    assert any("trained degree 3 at budget 4 has" in note for note in notes)


def test_degrees_restrict_the_mix_and_a_note_says_so():
    notes: list[str] = []
    rows = degree(4, 2, degrees=[2], mixed=True, on_note=notes.append)
    assert [row.degrees for row in rows] == [(2, 2)]
    assert notes[-1].endswith("--degrees restricts the mix, here to 2")


def test_too_few_points_leave_a_lower_bound_and_say_so():
    (row,) = degree(12, 4, degrees=[3], max_points=100)
    assert (row.rank, row.lower_bound, row.points) == (100, 100, 100)
    assert not row.exact
    assert row.saturated is None  # it may be, with more points
    assert row.to_json()["saturated"] is None
    assert row.cap == 1722


def test_a_degree_that_does_not_divide_the_budget_is_left_out_with_a_sentence():
    notes: list[str] = []
    rows = degree(6, 2, on_note=notes.append)
    assert [row.degree for row in rows] == [2, 3, 6]
    assert len(notes) == 1
    assert "4, 5 (budget 6, d matrices a block)" in notes[0]


def test_a_net_of_the_users_own_gets_the_ranks_of_the_built_in_one(own):
    mine = degree(6, 2, family=f"{own}:Product", degrees=[2, 3], inputs=2)
    built_in = degree(6, 2, degrees=[2, 3], inputs=2)
    for one, other in zip(mine, built_in, strict=True):
        assert (one.rank, one.total_degree, one.parameters) == (other.rank, other.total_degree, other.parameters)
        assert one.exact
        assert one.cap is None
        assert one.saturated is None
        assert one.count == "own"


def test_errors_are_those_of_training_and_real_degrees_have_no_rank():
    effort = {"seeds": 2, "steps": 3, "task": "diabetes"}
    rows = degree(6, 2, degrees=[2, 4, 2.5], train=True, **effort)
    assert [row.degree for row in rows] == [2, 2.5, 4]  # 4 does not divide 6: trained at a width of its own
    assert [row.rank for row in rows] == [9, None, None]
    trained = train_degrees([2, 2.5, 4], budget=6, width=2, **effort)
    for row, reached in zip(rows, trained, strict=True):
        assert row.error == reached["error"]
        assert list(row.interval) == reached["interval"]
        assert row.interval_kind == "range"  # of two seeds
        assert row.to_json()["training"]["rate"] == reached["rate"]


@each(
    ("options", "sentence"),
    [
        ({"budget": 1}, "a budget of 1 is smaller than one block of degree 2, which has 2 square matrices"),
        ({"budget": "many"}, "budget must be numbers"),
        ({"budget": 2.5}, "whole number of square matrices"),
        ({"degrees": [1]}, "degree 1 makes a linear net"),
        ({"degrees": "0"}, "a block of degree 0 is no polynomial"),
        ({"degrees": [2.5]}, "exact mode needs whole degrees and 2.5 is not one: use --train"),
        ({"degrees": [5]}, "degree 5 has 5 square matrices"),
        ({"family": "atention"}, "did you mean 'attention'"),
        ({"matrices": "d+2"}, "did you mean 'd+1'"),
        ({"width": 0}, "width must be a whole number of at least 1"),
        ({"width": 10**6}, "12,000,000,000,000 parameters needs"),
        ({"max_points": 10**6}, "1,000,000 × 1,000,000 points needs"),
        ({"tokens": 3}, "the family is fully-connected: use --inputs"),
        ({"inputs": 3, "family": "attention"}, "the family is attention: use --tokens"),
        ({"mixed": True, "family": "mixer"}, "--mixed is for"),
        ({"mixed": True, "budget": 120}, "up to a budget of 60"),
        ({"steps": 0}, "--steps is for training: add --train"),
        ({"train": True, "family": "attention"}, "--train is for fully connected nets"),
        ({"train": True, "degrees": "e", "budget": 2}, "smaller than one block of degree e: raise"),
        ({"train": True, "degrees": "1,1.5"}, "is linear: with --train use degrees above 1, real ones too"),
        ({"degrees": "1.5"}, "use --train for real degrees, any above 1"),
        ({"train": True, "seeds": 1}, "--seeds must be at least 2, not 1"),
        ({"width": 3000}, "use a smaller --width or --budget, or say with --max-points"),
        ({"device": "tpu"}, "there is no device 'tpu'"),
    ],
)
def test_bad_input_is_told_in_one_sentence(options, sentence):
    with pytest.raises(BadInput) as raised:
        degree(**options)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_block_that_is_not_polynomial_has_no_exact_rank(own):
    with pytest.raises(NotPolynomial, match="'transformer' are not polynomial"):
        degree(family="transformer")
    for budget in (4, 1):  # the operation, not the budget, is at fault
        with pytest.raises(NotPolynomial, match="the operation 'relu'"):
            degree(budget, 2, family=f"{own}:Rectified")
    with pytest.raises(BadInput, match="has 2 square matrices: use a budget of at least 2"):
        degree(1, 2, family=f"{own}:Product")
    with pytest.raises(BadInput, match="no argument is called 'degree'"):
        degree(4, 2, family=f"{own}:Fixed")


def test_long_lists_of_degrees_are_spelt_shortly():
    assert [spelt(d) for d in ((3, 3), (3, 2, 2), (2,) * 9 + (3,), (2.5,))] == ["3", "3,2,2", "2×9,3", "2.5"]
