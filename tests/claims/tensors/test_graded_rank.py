"""Ranks degree by degree beside the rank of the whole, and beside the registered net taken apart by interpolation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from theodolite import separation_rank
from theodolite.claims.tensors.graded_blocks import AttentionForms, Side, block_matrix
from theodolite.claims.tensors.graded_rank import BlockRank, graded_rank
from theodolite.errors import BadInput
from theodolite.field import Modulus
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.measures import measure
from theodolite.nets.load import load
from theodolite.partition import Partition
from theodolite.theory.attention import hops

from ...field.truth import flint_matrix

SHAPES = [  # depth, width, heads, attention width, tokens with the output, other tokens, embedding rank
    (1, 3, 1, 3, 2, 2, None),
    (1, 4, 3, 1, 1, 5, None),
    (2, 1, 2, 1, 1, 1, None),
    (2, 2, 2, 1, 2, 2, None),
    (2, 3, 1, 3, 1, 2, None),  # below the cap: the output token alone against two
    (2, 4, 4, 1, 4, 4, None),
    (2, 4, 3, 2, 2, 3, None),
    (2, 3, 5, 2, 1, 1, None),  # more heads than entries
    (2, 4, 2, 2, 3, 3, 2),
    (2, 3, 1, 3, 2, 2, 5),  # an embedding wider than the width
    (3, 2, 2, 1, 1, 2, None),
]


def side_by_side(n: int, m: int) -> str:
    return ",".join(map(str, range(n))) + "|" + ",".join(map(str, range(n, n + m)))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_ranks_of_the_parts_sum_to_the_rank_of_the_whole(shape):
    depth, width, heads, inner, n, m, r = shape
    graded = graded_rank(depth, width, heads, inner, n, m, r)
    arguments = {} if r is None else {"embedding_rank": r}
    whole = separation_rank(
        "self-attention",
        partition=side_by_side(n, m),
        token=0,
        repeats=1,
        depth=depth,
        width=width,
        heads=heads,
        attention_width=inner,
        tokens=n + m,
        **arguments,
    )
    assert graded.total == whole.rank
    assert graded.complete
    assert graded.exact
    assert all(block.rank <= min(block.cap, block.heads_cap) for block in graded.blocks)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "inner", "n", "m", "r"), [(2, 3, 2, 2, 2, 3, None), (2, 3, 4, 1, 1, 2, 2)]
)
def test_each_part_is_the_coefficient_that_interpolation_finds_in_the_registered_net(
    depth, width, heads, inner, n, m, r
):
    arguments = {} if r is None else {"embedding_rank": r}
    subject = load(
        "self-attention", depth=depth, width=width, heads=heads, attention_width=inner, tokens=n + m, **arguments
    )
    split = Partition.parse(side_by_side(n, m), n + m)
    sample = FieldSample.make(ScalarFunction.of(subject, 0), split, 7, 0, torch.device("cpu"))
    modulus, total, points = sample.modulus, hops(depth), 5
    a, b = sample.points("a", points), sample.points("b", points)
    scales = range(1, total + 2)  # of the tokens; S_B is scaled by their squares
    values = torch.stack([pair_matrix(sample.evaluate(), a, modulus.reduce(t * b), split).flatten() for t in scales])
    vandermonde = modulus.centred(torch.tensor([[t ** (2 * c) for c in range(total + 1)] for t in scales]))
    solved = flint_matrix(vandermonde, modulus).solve(flint_matrix(values, modulus))
    coefficients = torch.tensor([int(v) for v in solved.entries()]).view(total + 1, points, points)
    weights = {name: weight.residues for name, weight in sample.weights().items()}
    forms = AttentionForms.of(weights, modulus, depth, heads)
    grams = [torch.einsum("pnf,png->pfg", side, side) for side in (a, b)]
    sides = [Side(modulus.reduce(gram), side[:, 0]) for gram, side in zip(grams, (a, b), strict=True)]
    for c in range(total + 1):
        ours = modulus.canonical(block_matrix(forms, *sides, c, total))  # pyright: ignore[reportCallIssue]
        assert torch.equal(ours, coefficients[c])
        assert ours.any()


def test_tiles_and_long_sums_give_the_same_matrix(monkeypatch):
    device = torch.device("cpu")
    for p in (8388449, 33554393):  # sums of 512 terms, and of 32
        modulus = Modulus(p)
        forms = AttentionForms.drawn("tiles", modulus, device, 2, 9, 5, 2, 9)
        a, b = (Side.drawn(f"tiles/{side}", 7, 9, 9, modulus, device) for side in "ab")
        at_once = block_matrix(forms, a, b, 2, 4)
        integers = _part_in_integers(forms, a.gram[3], b.gram[5], a.token[3])
        assert int(at_once[3, 5]) % p == integers[2] % p
        with monkeypatch.context() as patch:
            patch.setattr("theodolite.claims.tensors.graded_blocks._CPU_NUMBERS", 81 * 3)
            assert torch.equal(at_once, block_matrix(forms, a, b, 2, 4))


def _part_in_integers(forms: AttentionForms, s_a: torch.Tensor, s_b: torch.Tensor, x: torch.Tensor) -> list[int]:
    """The coefficients of y in t, in Python's integers and dictionaries."""

    def matrix(tensor):
        return [[int(v) for v in row] for row in tensor]

    def times(left, right):
        out = {}
        for i, a in left.items():
            for j, b in right.items():
                product = [
                    [sum(u * v for u, v in zip(row, column, strict=True)) for column in zip(*b, strict=True)]
                    for row in a
                ]
                old = out.get(i + j)
                out[i + j] = (
                    product
                    if old is None
                    else [[u + v for u, v in zip(r, s, strict=True)] for r, s in zip(old, product, strict=True)]
                )
        return out

    s, form = {0: matrix(s_a), 1: matrix(s_b)}, {0: matrix(forms.start)}
    for left, right in forms.layers:
        turned = {c: [list(column) for column in zip(*f, strict=True)] for c, f in form.items()}
        gram, total = times(times(form, s), turned), {}
        for p, r in zip(left, right, strict=True):
            for c, m in times(times({0: matrix(p)}, gram), times({0: matrix(r)}, form)).items():
                old = total.get(c, [[0] * len(m[0])] * len(m))
                total[c] = [[u + v for u, v in zip(a, b, strict=True)] for a, b in zip(old, m, strict=True)]
        form = total
    return [sum(int(v) * w for v, w in zip(x, form[c][0], strict=True)) for c in sorted(form)]


def test_the_two_missing_ranks_of_a_lone_output_token_are_found_in_the_middle():
    assert graded_rank(2, 3, 1, 3, 1, 2).deficits == {2: 2}


def test_four_heads_lose_where_few_points_suffice_to_see_it():
    only = graded_rank(2, 4, 4, degrees=[3], max_points=110)
    assert [(b.degree, b.rank, b.cap, b.exact) for b in only.blocks] == [(3, 36, 40, True)]
    assert not only.complete


def test_too_few_points_give_a_lower_bound_only():
    short = graded_rank(2, 4, degrees=[2], max_points=20)
    assert short.total == 20
    assert not short.exact
    assert short.failure_probability == 1.0


def test_a_proven_part_needs_no_second_draw_and_no_probability():
    graded = graded_rank(2, 3, repeats=3)
    assert graded.proven
    assert graded.failure_probability == 0.0
    assert all(len(block.ranks) == 1 for block in graded.blocks)
    assert graded.total == graded.cap == 49


def test_repeats_are_needed_below_the_cap():
    assert not graded_rank(2, 5, 1, 3, degrees=[1], repeats=1).exact
    assert graded_rank(2, 5, 1, 3, degrees=[1], repeats=2).exact


def test_block_properties():
    block = BlockRank(2, 19, 21, 20, True, 84, (19, 19))
    assert (block.deficit, block.surplus, block.proven) == (2, 65, False)
    assert replace(block, rank=20).proven


def test_the_measure_returns_plain_json():
    row = measure("graded-rank", {"depth": 2, "width": 4, "heads": 2}, 3, "cpu")
    assert row["total"] == 107
    assert row["cap"] == 110
    assert row["proven"]
    assert [b["deficit"] for b in row["blocks"]] == [0, 0, 3, 0, 0]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"degrees": [5]}, "degree 5"),
        ({"degrees": []}, "no degree"),
        ({"repeats": 0}, "repeats"),
        ({"max_points": 0}, "max points"),
        ({"heads": 3}, "3 heads"),
        ({"tokens_other": 0}, "tokens"),
    ],
)
def test_bad_input_is_named(wrong, named):
    with pytest.raises(BadInput, match=named):
        graded_rank(2, 4, **wrong)
