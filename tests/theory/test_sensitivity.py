"""Laws of influence against matrices of averaging, and windows against a walk over the layers."""

import itertools
import math

import numpy as np
import pytest

from tests.each import each
from theodolite.errors import OutsideDomain
from theodolite.theory.sensitivity import attention_law, convolution_law, first_symbol_exponents, no_law


def averaging(tokens: int, depth: int) -> np.ndarray:
    """Attention with equal logits: token i has the mean of tokens 0 … i, `depth` times over."""
    layer = np.tril(np.ones((tokens, tokens))) / np.arange(1, tokens + 1)[:, None]
    return np.linalg.matrix_power(layer, depth)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_first_symbol_lies_between_the_two_exponents(depth):
    """Equal logits, where the share of the first symbol is a sum over paths: 1/n up to (log n)^(L−1)/n."""
    shares = {n: averaging(n, depth)[-1, 0] for n in (16, 64, 256, 1024)}
    for shortest, longest in itertools.combinations(shares, 2):
        slope = math.log(shares[longest] / shares[shortest]) / math.log(longest / shortest)
        low, high = first_symbol_exponents(depth, shortest, longest)
        assert low - 1e-12 <= slope <= high + 1e-12
        if depth > 1:
            assert slope > low + 0.1, "the logarithm is there"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_symbol_at_a_fixed_share_of_the_length_has_the_exponent_alone(depth):
    law = attention_law(depth, causal=True)
    shares = [averaging(n, depth)[-1, n // 2] for n in (512, 1024)]
    assert math.log2(shares[1] / shares[0]) == pytest.approx(law.exponent, abs=0.01)
    assert law.log_power == depth - 1


def test_attention_without_a_mask_has_no_logarithm():
    law = attention_law(3, causal=False)
    assert (law.law, law.exponent, law.log_power, law.window) == ("power", -1.0, 0, None)
    assert "Hahn" in law.reason
    assert "features" in attention_law(3, causal=False, softmax=False).reason
    assert no_law("because").law == "none"


@each("depth", [1, 2, 3])
@each(("kernel", "dilation"), [(1, 2), (2, 2), (3, 1), (3, 2), (5, 3)])
@each("causal", [True, False])
def test_windows_reach_as_far_as_a_walk_over_the_layers(depth, kernel, dilation, causal):
    if not causal and kernel % 2 == 0:
        kernel += 1
    taps = range(1 - kernel, 1) if causal else range(-(kernel // 2), kernel // 2 + 1)
    places = {0}
    for layer in range(depth):
        places = {place + tap * dilation**layer for place in places for tap in taps}
    assert convolution_law(depth, kernel, dilation, causal).window == -min(places)


@pytest.mark.parametrize(
    "call",
    [
        lambda: attention_law(0, True),
        lambda: first_symbol_exponents(2, 8, 8),
        lambda: first_symbol_exponents(2, 1, 8),
        lambda: convolution_law(2, 0, 1, True),
    ],
)
def test_shapes_outside_the_domain_are_refused(call):
    with pytest.raises(OutsideDomain, match="outside the domain"):
        call()
