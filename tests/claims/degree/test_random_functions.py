"""Random functions: quick matrices against single points, true spectra against samples, and what nonlinear means."""

import itertools
import math

import pytest
import torch

from theodolite.claims.degree.drawn_functions import KINDS, settings
from theodolite.claims.degree.random_functions import families, nonlinear_share, rank_exponent, turns
from theodolite.errors import BadInput
from theodolite.measures import measure


def drawn(family, seed=0, **options):
    return families[family](torch.Generator().manual_seed(seed), **options)


CASES = [
    ("field", {"variables": 1, "smoothness": 1.5}),
    ("field", {"variables": 2}),
    ("field", {"variables": 4, "smoothness": 0.5}),
    ("fourier", {"variables": 2, "scale": 0.05}),
    ("mlp", {"variables": 2, "activation": "relu"}),
    ("tent-of-sum", {}),
    ("tent-product", {}),
    ("wave", {}),
    ("coupled-maps", {}),
    ("noise", {}),
    ("bilinear", {"variables": 3}),
]


@pytest.mark.parametrize(("family", "options"), CASES)
def test_the_matrix_holds_the_values_at_pairs_of_points(family, options):
    function = drawn(family, **options)
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.rand(5, function.variables, generator=generator, dtype=torch.float64) for _ in range(2))
    matrix = function.matrix(a, b)
    for i, j in itertools.product(range(5), range(5)):
        assert float(matrix[i, j]) == pytest.approx(float(function.at(torch.cat([a[i], b[j]])[None])), abs=1e-9)
    assert torch.equal(drawn(family, **options).matrix(a, b), matrix)  # the generator decides all


@pytest.mark.parametrize(("variables", "smoothness", "points"), [(1, 2.5, 520), (2, math.inf, 26)])
def test_the_singular_values_of_a_field_are_those_of_its_values_on_a_fine_grid(variables, smoothness, points):
    function = drawn("field", variables=variables, smoothness=smoothness)
    axis = torch.arange(points, dtype=torch.float64) / points
    grid = torch.cartesian_prod(*[axis] * variables).reshape(-1, variables)
    found = torch.linalg.svdvals(function.matrix(grid, grid)) / len(grid)
    assert function.singular_values is not None
    assert torch.allclose(found[:40], function.singular_values[:40], atol=1e-10)


def test_a_power_law_has_its_exponent():
    errors = torch.arange(1, 400, dtype=torch.float64) ** -1.5
    errors = torch.cat([errors[:1], errors])  # the error of rank r is r^−1.5
    assert rank_exponent(errors) == pytest.approx(1 / 1.5, rel=1e-6)
    assert rank_exponent(torch.zeros(100)) is None


def test_smoother_fields_need_fewer_products_as_variables_over_smoothness_says():
    exponents = {}
    for smoothness in (1.5, 2.5):
        config = {"family": "field", "variables": 1, "options": {"smoothness": smoothness}, "points": [48],
                  "epsilons": [0.1, 0.01], "members": 1}  # fmt: skip
        (member,) = measure("random-function-rank", config, 0, "cpu")["members"]
        exponents[smoothness] = member["exponent"]
        for true, (low, high) in zip(member["true_ranks"], member["ranks"]["48"], strict=True):
            assert low - 1 <= true
            assert high is None or true <= high + 1
    assert exponents[1.5] == pytest.approx(1 / 1.5, rel=0.15)
    assert exponents[2.5] == pytest.approx(1 / 2.5, rel=0.15)


def test_turns_and_the_nonlinear_share_of_known_functions():
    generator = torch.Generator().manual_seed(2)
    assert nonlinear_share(drawn("noise", share=0.01), generator) == pytest.approx(0.01, rel=0.2)
    assert nonlinear_share(drawn("wave"), generator) > 0.95
    assert turns(drawn("bilinear", variables=1), generator) <= 1  # a parabola along every line
    assert turns(drawn("wave", frequency=0.1), generator) == 0
    few, many = (turns(drawn("tent-of-sum", depth=d), torch.Generator().manual_seed(3)) for d in (2, 6))
    assert many == pytest.approx(16 * few, rel=0.3)


def test_white_noise_is_white():
    values = drawn("noise").at(torch.rand(10_000, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64))
    assert float(values.mean()) == pytest.approx(0, abs=0.03)
    assert float(values.var()) == pytest.approx(1, abs=0.03)
    near = torch.full((1000, 2), 0.3, dtype=torch.float64)
    near[:, 0] += torch.arange(1000) * 1e-9
    beside = drawn("noise").at(near)
    assert abs(float(torch.corrcoef(torch.stack([beside[1:], beside[:-1]]))[0, 1])) < 0.12


@pytest.mark.parametrize(
    ("family", "options", "rank"), [("wave", {}, 2), ("tent-product", {}, 1), ("bilinear", {"variables": 5}, 5)]
)
def test_functions_of_known_rank(family, options, rank):
    variables = options.get("variables", 1)
    config = {"family": family, "variables": variables, "options": {}, "points": [40], "epsilons": [0.01], "members": 2}
    for member in measure("random-function-rank", config, 0, "cpu")["members"]:
        assert member["ranks"]["40"] == [[rank, rank]]


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("field", {"smoothness": -1}, "smoothness -1"),
        ("field", {"variables": 9}, "9 variables"),
        ("fourier", {"scale": 0}, "scale 0"),
        ("mlp", {"activation": "sine"}, "'sine' is unknown"),
        ("noise", {"share": 0}, "share 0 of noise"),
        ("feild", {}, "did you mean 'field'"),
    ],
)
def test_bad_settings_are_named(family, options, message):
    with pytest.raises(BadInput, match=message):
        drawn(family, **options)


def test_random_fourier_series_have_the_gaussian_kernel():
    """Over many draws E y(x)y(x′) = exp(−|x − x′|²/(2·scale²))."""
    x = torch.tensor([[0.2, 0.3], [0.25, 0.3], [0.3, 0.4], [0.9, 0.9]], dtype=torch.float64)
    values = torch.stack([drawn("fourier", seed=seed, scale=0.1, waves=64).at(x) for seed in range(4000)])
    kernel = torch.exp(-torch.cdist(x, x).square() / (2 * 0.1**2))
    assert torch.allclose(values.T @ values / len(values), kernel, atol=0.08)


def test_settings_are_drawn_evenly_and_the_stream_decides_all():
    drawn_settings = [settings(torch.Generator().manual_seed(seed)) for seed in range(400)]
    assert {one["kind"] for one in drawn_settings} == set(KINDS)
    for kind in KINDS:
        assert 70 <= sum(one["kind"] == kind for one in drawn_settings) <= 130
    scales = sorted(one["options"]["scale"] for one in drawn_settings if "scale" in one["options"])
    assert 0.005 <= scales[0] <= scales[-1] <= 0.3
    assert scales[len(scales) // 2] == pytest.approx(math.sqrt(0.005 * 0.3), rel=0.4)  # the middle of the logarithms
    config = {"stream": "a test", "first": 2, "count": 3, "points": 16, "epsilons": [0.1]}
    three = measure("drawn-function-ranks", config, 0, "cpu")["functions"]
    (third,) = measure("drawn-function-ranks", {**config, "first": 4, "count": 1}, 1, "cpu")["functions"]
    assert three[2] == third
    assert all(0 < one["ranks"][0][0] <= 16 for one in three)
