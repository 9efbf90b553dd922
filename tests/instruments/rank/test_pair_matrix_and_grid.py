"""The matrix of pairs, the grid tensor and its matricisation, against numpy and by definition."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import BadInput
from theodolite.instruments.rank.grid import grid_tensor, matricise
from theodolite.instruments.rank.pair_matrix import pair_matrix, tiles
from theodolite.instruments.rank.separation import separation_rank
from theodolite.partition import Partition

from .known import SumOfSquares, TwoTokens


def weighted(points: torch.Tensor) -> torch.Tensor:
    """A function that tells every site and feature apart."""
    sites, features = points.shape[1:]
    return (points * (1 + torch.arange(sites * features, dtype=torch.float64).view(sites, features)) ** 2).sum((1, 2))


@each("numbers", [1, 13, 60, 10**6])
@each("text", ["left-right", "interleaved", "3,0|1,2,4"])
def test_pair_matrix_by_definition(numbers, text):
    """Entry (i, j) is the function at point i of A and point j of B, whatever the tiles."""
    partition = Partition.parse(text, 5)
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(7, len(partition.a), 2, generator=generator, dtype=torch.float64)
    b = torch.randn(4, len(partition.b), 2, generator=generator, dtype=torch.float64)
    shares = []
    found = pair_matrix(weighted, a, b, partition, shares.append, numbers=numbers)
    for i, j in itertools.product(range(7), range(4)):
        x = torch.empty(5, 2, dtype=torch.float64)
        for k, site in enumerate(partition.a):
            x[site] = a[i, k]
        for k, site in enumerate(partition.b):
            x[site] = b[j, k]
        assert float(found[i, j]) == pytest.approx(float(weighted(x[None])[0]))
    assert sum(shares) == pytest.approx(1)
    covered = torch.zeros(7, 4)
    for top, left, tile in tiles(weighted, a, b, partition, numbers):
        covered[top : top + tile.shape[0], left : left + tile.shape[1]] += 1
        assert tile.numel() * 10 <= max(numbers, 10)
    assert bool((covered == 1).all())


@given(count=st.integers(1, 3), sites=st.integers(2, 5), data=st.data())
def test_matricise_is_transpose_and_reshape(count, sites, data):
    order = data.draw(st.permutations(range(sites)))
    cut = data.draw(st.integers(1, sites - 1))
    partition = Partition(tuple(order[:cut]), tuple(order[cut:]))
    tensor = np.arange(count**sites, dtype=np.float64).reshape([count] * sites)
    truth = tensor.transpose(partition.a + partition.b).reshape(count ** len(partition.a), -1)
    assert np.array_equal(matricise(torch.from_numpy(tensor), partition).numpy(), truth)


def test_grid_tensor_by_definition():
    templates = torch.tensor([[1.0, 2.0], [-3.0, 0.5], [7.0, -1.0]], dtype=torch.float64)
    found = grid_tensor(weighted, templates, 3)
    assert found.shape == (3, 3, 3)
    for place in itertools.product(range(3), repeat=3):
        assert float(found[place]) == pytest.approx(float(weighted(templates[list(place)][None])[0]))


@each("terms", [1, 3, 5])
@each("templates", [1, 2, 4, 7])
def test_grid_rank_of_a_function_of_known_rank(terms, templates):
    """One token a side: M templates show min(M, R) of a rank R, a bound from below (Claim 7.1)."""
    found = separation_rank(TwoTokens, mode="grid", templates=templates, features=3, tokens=2, terms=terms)
    assert found.rank == found.lower_bound == min(terms, templates)
    assert not found.exact
    assert found.mode == "grid"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("self-attention", {"depth": 1, "width": 2, "tokens": 4}),
        ("self-attention", {"depth": 2, "width": 2, "tokens": 2}),
        ("conv-circuit", {"tokens": 4, "width": 2}),
        ("recurrent-circuit", {"tokens": 4, "width": 2}),
        ("degree-attention", {"depth": 1, "width": 2, "degree": 4, "tokens": 4}),
        ("polynomial-mlp", {"features": 4, "width": 2, "depth": 1}),
    ],
)
def test_grid_rank_is_at_most_the_exact_rank_and_grows_to_it(name, shape):
    for partition in ("left-right", "interleaved"):
        exact = separation_rank(name, partition=partition, repeats=2, **shape)
        grid = {"mode": "grid", "partition": partition, "repeats": 1, **shape}
        ranks = [separation_rank(name, templates=m, **grid).rank for m in (1, 2, 4)]
        assert ranks == sorted(ranks)
        assert ranks[-1] <= exact.rank
        assert ranks[0] <= 1
        assert ranks[1] > 1


def test_grid_rank_reaches_the_exact_rank_with_enough_templates():
    assert separation_rank("self-attention", mode="grid", templates=18, depth=2, width=2, tokens=2).rank == 15
    found = separation_rank("self-attention", mode="grid", templates=3, depth=1, width=2, tokens=4)
    assert found.rank == separation_rank("self-attention", depth=1, width=2, tokens=4).rank
    assert found.exact == (found.rank == found.cap)
    assert separation_rank(SumOfSquares, mode="grid", templates=4, features=6, terms=4).rank == 4


def test_grid_rank_of_a_net_of_ids():
    """The first ids are the templates: y = Σ_k e(i)_k e(j)_k² has rank min(vocabulary, width)."""
    from torch import nn

    class Ids(nn.Module):
        def __init__(self, vocab: int, tokens: int, width: int) -> None:
            super().__init__()
            self.table = nn.Embedding(vocab, width)

        def forward(self, ids):
            x = self.table(ids)
            return (x[:, 0] * x[:, 1] ** 2).sum(-1)

    for width in (2, 4):
        assert separation_rank(Ids, mode="grid", templates=5, vocab=5, tokens=2, width=width).rank == width
    with pytest.raises(BadInput, match="5 ids"):
        separation_rank(Ids, mode="grid", templates=6, vocab=5, tokens=2, width=2)
    with pytest.raises(BadInput, match=r"integer ids.*grid or epsilon"):
        separation_rank(Ids, vocab=5, tokens=2, width=2)


@pytest.mark.parametrize("arguments", [{"templates": 0}, {"repeats": 0}, {"templates": 50, "tokens": 8}])
def test_grids_that_cannot_be_measured_are_refused(arguments):
    with pytest.raises(BadInput, match=r"at least 1|use fewer"):
        separation_rank("self-attention", **{"mode": "grid", "tokens": 2, "depth": 1, **arguments})
