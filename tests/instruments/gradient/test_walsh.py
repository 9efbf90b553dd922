"""The fast transform against scipy's Hadamard matrices and against parities multiplied out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard

from theodolite.errors import BadInput
from theodolite.instruments.gradient.walsh import cube, degrees, number_of, walsh_hadamard

CPU = torch.device("cpu")


def drawn(rows: int, inputs: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(inputs), dtype=dtype)


@pytest.mark.parametrize("bits", [1, 2, 4, 5, 6, 9, 10, 11, 12])
def test_the_transform_is_the_product_with_the_hadamard_matrix(bits):
    x = drawn(3, 2**bits)
    expected = x.numpy() @ hadamard(2**bits)
    assert np.allclose(walsh_hadamard(x).numpy(), expected, atol=1e-10)


def test_one_number_is_its_own_transform():
    assert walsh_hadamard(torch.tensor([[3.0]])).item() == 3.0


def test_rows_are_transformed_one_by_one_and_the_input_is_left_alone():
    x = drawn(70, 2**15, torch.float32)  # more rows than are taken at a time
    kept = x.clone()
    whole = walsh_hadamard(x)
    assert torch.equal(x, kept)
    assert torch.equal(whole[41:42], walsh_hadamard(x[41:42]))


def test_twice_is_the_identity_times_the_number_of_inputs():
    x = drawn(2, 2**13)
    assert torch.allclose(walsh_hadamard(walsh_hadamard(x)), 2**13 * x, rtol=1e-10, atol=1e-8)


def test_a_parity_has_one_coefficient_and_it_stands_at_its_number():
    signs = cube(7, torch.float64, CPU)
    for subset in ((), (0,), (6,), (1, 2, 5), tuple(range(7))):
        coefficients = walsh_hadamard(signs[:, list(subset)].prod(dim=1)[None])[0]
        assert coefficients.nonzero().flatten().tolist() == [number_of(subset)]
        assert coefficients[number_of(subset)] == 2**7


def test_the_degree_of_a_parity_is_the_number_of_ones_in_its_number():
    assert degrees(9, CPU).tolist() == [bin(number).count("1") for number in range(2**9)]


@pytest.mark.parametrize("bad", [torch.ones(2, 12), torch.ones(2, 8, dtype=torch.int64)])
@pytest.mark.usefixtures("unchecked")
def test_what_has_no_transform_is_refused(bad):
    with pytest.raises(BadInput, match="Walsh"):
        walsh_hadamard(bad)
