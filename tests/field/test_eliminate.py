"""Rank, pivots and solves against python-flint, over shapes and matrices that make leading minors vanish."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import BadInput
from theodolite.field import Modulus, eliminate, product, rank

from .truth import NEAR_2_23, NEAR_2_25, PRIMES, flint_matrix, flint_rank


def random_matrix(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(p // 2), p // 2 + 1, (rows, columns), generator=generator).double()


def of_rank(p: int, rows: int, columns: int, r: int, seed: int = 0) -> torch.Tensor:
    """A matrix of rank at most r, and of rank r with high probability."""
    return product(random_matrix(p, rows, r, seed), random_matrix(p, r, columns, seed + 1), Modulus(p))


def sparse(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    keep = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed + 7)) < 1.5 / max(rows, columns)
    return random_matrix(p, rows, columns, seed) * keep


def extreme(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Entries at the ends of what a residue may be; below 5 the slack would meet p itself."""
    bound = p // 2 + (2 if p > 5 else 0)
    signs = torch.randint(0, 2, (rows, columns), generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return (signs * bound).double()


def zero_corner(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    matrix = random_matrix(p, rows, columns, seed)
    matrix[: rows // 2, : columns // 2] = 0
    return matrix


def repeated_columns(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """Panels that hold few pivots, then none, then new ones."""
    matrix = random_matrix(p, rows, columns, seed)
    matrix[:, : columns // 3] = matrix[:, :1]
    matrix[:, columns // 3 : columns // 2] = 0
    return matrix


def anti_identity(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.eye(rows, columns, dtype=torch.float64).flip(1)


def permutation(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    order = torch.randperm(columns, generator=torch.Generator().manual_seed(seed))
    return torch.eye(rows, columns, dtype=torch.float64)[:, order]


def last_row_only(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    matrix = torch.zeros(rows, columns, dtype=torch.float64)
    matrix[-1, -1] = 1
    return matrix


def low_rank(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return of_rank(p, rows, columns, max(1, min(rows, columns) // 3), seed)


def zeros(p: int, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.zeros(rows, columns, dtype=torch.float64)


KINDS = [
    random_matrix,
    low_rank,
    sparse,
    extreme,
    zero_corner,
    repeated_columns,
    anti_identity,
    permutation,
    last_row_only,
    zeros,
]
SHAPES = [(1, 1), (1, 5), (5, 1), (2, 2), (31, 33), (40, 40), (70, 30), (30, 70), (65, 65)]


def assert_elimination(matrix: torch.Tensor, m: Modulus, done) -> None:
    """The rank is flint's, and the pivots name a regular minor that `solve` solves."""
    r = flint_rank(matrix, m)
    assert done.rank == r
    rows, columns = done.pivot_rows, done.pivot_columns
    assert len(rows) == len(columns) == r
    assert sorted(done.rows.tolist()) == list(range(matrix.shape[0]))
    assert sorted(done.columns.tolist()) == list(range(matrix.shape[1]))
    if not r:
        return
    minor = matrix[rows][:, columns]
    assert flint_rank(minor, m) == r
    right = random_matrix(m.p, r, 3, seed=99)
    before = right.clone()
    x = done.solve(right)
    assert torch.equal(right, before)
    found = flint_matrix(minor, m) * flint_matrix(x, m)
    assert found == flint_matrix(right, m)


@each("kind", KINDS)
@each("p", PRIMES)
def test_small_matrices_of_every_kind(kind, p):
    m = Modulus(p)
    for rows, columns in SHAPES:
        matrix = kind(p, rows, columns, seed=rows)
        before = matrix.clone()
        assert_elimination(matrix, m, eliminate(matrix, m))
        assert torch.equal(matrix, before), "without overwrite the matrix stays as it is"


@each("kind", KINDS)
@each("block", [1, 2, 5, 16, 17, 64])
def test_block_sizes_give_the_same_answer(kind, block):
    m = Modulus(101)
    for rows, columns in [(40, 40), (70, 30), (33, 65)]:
        matrix = kind(101, rows, columns, seed=block)
        assert_elimination(matrix, m, eliminate(matrix, m, block=block))


@each(
    ("kind", "p", "size"),
    [
        *((random_matrix, NEAR_2_23, n) for n in (511, 512, 513, 530)),
        (low_rank, NEAR_2_23, 530),
        (zero_corner, NEAR_2_23, 530),
        (anti_identity, NEAR_2_23, 513),
        (permutation, NEAR_2_23, 530),
        (repeated_columns, 65537, 530),
        (sparse, NEAR_2_23, 530),
        (extreme, NEAR_2_23, 513),
        (random_matrix, 2, 530),
        (random_matrix, NEAR_2_25, 200),
    ],
)
def test_across_block_boundaries(kind, p, size):
    m = Modulus(p)
    matrix = kind(p, size, size, seed=size)
    assert_elimination(matrix, m, eliminate(matrix, m))


@pytest.mark.parametrize(("rows", "columns"), [(600, 40), (40, 600), (600, 520)])
def test_tall_and_wide(rows, columns):
    m = Modulus(NEAR_2_23)
    for kind in (random_matrix, low_rank, repeated_columns):
        matrix = kind(m.p, rows, columns)
        assert_elimination(matrix, m, eliminate(matrix, m))


def test_rank_just_below_full_across_a_boundary():
    """One dependency among 514 columns: the surplus of points of a measurement, at its smallest."""
    m = Modulus(NEAR_2_23)
    assert rank(of_rank(m.p, 514, 514, 513), m) == 513
    assert rank(of_rank(m.p, 600, 600, 512), m) == 512


def test_overwrite_destroys_the_matrix_and_says_the_same():
    m = Modulus(NEAR_2_23)
    matrix = low_rank(m.p, 60, 60)
    before = matrix.clone()
    done = eliminate(matrix, m, overwrite=True)
    assert done.factors.data_ptr() == matrix.data_ptr(), "overwrite is there to save the copy"
    assert_elimination(before, m, done)
    turned = before.clone().T
    assert_elimination(before.T, m, eliminate(turned, m, overwrite=True))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_matrices_have_rank_0(shape):
    assert rank(torch.zeros(shape, dtype=torch.float64), Modulus(7)) == 0


@pytest.mark.parametrize("bad", [torch.zeros(3), torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.int64)])
def test_what_is_no_matrix_of_residues_is_refused(bad):
    with pytest.raises(BadInput, match="float64 matrix"):
        eliminate(bad, Modulus(7))


@given(
    p=st.sampled_from(PRIMES),
    rows=st.integers(1, 24),
    columns=st.integers(1, 24),
    inner=st.integers(0, 24),
    density=st.sampled_from([0.1, 0.4, 1.0]),
    block=st.sampled_from([None, 1, 3, 16]),
    seed=st.integers(0, 10**6),
)
def test_rank_is_invariant(p, rows, columns, inner, density, block, seed):
    """Under transposition, permutation, scaling by units and elementary row operations; and it is flint's."""
    m = Modulus(p)
    generator = torch.Generator().manual_seed(seed)
    matrix = of_rank(p, rows, columns, inner, seed) * (torch.rand(rows, columns, generator=generator) < density)
    truth = flint_rank(matrix, m)
    row_order, column_order = (torch.randperm(n, generator=generator) for n in (rows, columns))
    scaled = m.reduce(matrix * -1.0 if p == 2 else matrix * 2.0)
    mixed = matrix.clone()
    mixed[0] = m.reduce(mixed[0] + mixed[-1]) if rows > 1 else mixed[0]
    changed = [matrix, matrix.T, matrix[row_order], matrix[:, column_order], scaled, mixed]
    assert [eliminate(x, m, block=block).rank for x in changed] == [truth] * len(changed)
