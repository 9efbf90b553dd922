"""The same arithmetic on a GPU: every kernel against the CPU, which the other tests hold against python-flint."""

from __future__ import annotations

import pytest
import torch

from theodolite.field import Modulus, draw_residues, eliminate, kernels, product
from theodolite.field.inverse import inverse
from theodolite.instruments.rank.certificate import verify
from theodolite.instruments.rank.separation import separation_rank

pytestmark = pytest.mark.gpu
PRIMES = (2, 3, 101, 65537, 8388449, 33554393)


@pytest.mark.parametrize("p", PRIMES)
def test_reduction_of_extreme_integers(p):
    m = Modulus(p)
    largest = min((1 << 53) - 2 * p, p << 30)
    x = torch.tensor([largest, -largest, largest - 1, p, -p, p // 2, p // 2 + 1, 0], dtype=torch.float64).repeat(300, 7)
    for view in (x.cuda(), x.cuda()[:, 3:40]):
        expected = torch.tensor([[int(v) % p for v in row] for row in view.tolist()])
        assert torch.equal(m.canonical(m.reduce_(view)).cpu(), expected)
        assert float(view.abs().max()) <= p / 2 + 2


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("n", [1, 5, 64, 65, 200, 512])
def test_inverse(p, n):
    m = Modulus(p)
    matrix = draw_residues(f"inverse/{n}", (n, n), m)
    here, there = inverse(matrix, m), inverse(matrix.cuda(), m)
    if here is None or there is None:
        # Different block sizes meet different leading minors: only a regular result can be compared.
        return
    identity = product(matrix, there.cpu(), m)
    assert torch.equal(m.canonical(identity), torch.eye(n, dtype=torch.int64))


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("sizes", [(2, 7, 2), (1, 1, 1), (4, 5, 4), (12, 5, 5), (3, 700, 2)])
@pytest.mark.parametrize("batch", [1, 16, 301])
def test_small_products(p, sizes, batch):
    m = Modulus(p)
    height, inner, width = sizes
    left = draw_residues("left", (batch, inner, height), m).transpose(1, 2)
    right = draw_residues("right", (batch, inner, width), m)
    assert torch.equal(m.canonical(product(left.cuda(), right.cuda(), m)).cpu(), m.canonical(product(left, right, m)))


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (700, 500, 333), (1200, 1200, 1100), (513, 2000, 513), (300, 300, 0)])
def test_elimination(p, shape):
    m = Modulus(p)
    height, width, inner = shape
    matrix = product(draw_residues("l", (height, max(inner, 1)), m), draw_residues("r", (max(inner, 1), width), m), m)
    matrix[::7] = 0.0
    matrix *= float(inner > 0)
    there = eliminate(matrix.cuda(), m)
    assert there.rank == eliminate(matrix, m).rank
    minor = matrix[there.pivot_rows][:, there.pivot_columns]
    right = draw_residues("b", (there.rank, 2), m)
    solution = there.solve(right.cuda()).cpu()
    assert torch.equal(m.canonical(product(minor, solution, m)), m.canonical(right))


def test_without_triton_the_results_are_the_same(monkeypatch):
    m = Modulus(8388449)
    matrix = draw_residues("plain", (700, 700), m).cuda()
    fast = eliminate(matrix, m)
    monkeypatch.setattr(kernels, "available", lambda: False)
    plain = eliminate(matrix, m)
    assert fast.rank == plain.rank
    assert torch.equal(m.canonical(fast.factors), m.canonical(plain.factors))


@pytest.mark.parametrize("mode", ["exact", "grid", "epsilon"])
def test_ranks_agree_with_the_cpu(mode):
    shape = {"depth": 2, "width": 3, "tokens": 4}
    here = separation_rank("self-attention", mode, **shape)
    there = separation_rank("self-attention", mode, device="cuda", **shape)
    assert here.rank == there.rank


def test_a_certificate_made_on_one_device_is_verified_on_the_other(monkeypatch):
    monkeypatch.setattr("theodolite.instruments.rank.certificate.BY_MINOR", 10)  # python-flint need not be there
    made = separation_rank("self-attention", depth=2, width=3, tokens=4, device="cuda", certificate=True)
    for device in ("cpu", "cuda"):
        assert verify(made.certificate, device=device).lower_bound == made.rank
