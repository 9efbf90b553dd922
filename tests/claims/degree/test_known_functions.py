"""The ε-rank instrument against closed forms, the bias of tails, and Conclusion 4.3 with uniform approximations."""

import math

import pytest
import torch

from theodolite.claims.degree.known_functions import KnownFunction, value_of
from theodolite.claims.degree.template_bound import EXPANSIONS, Expansion
from theodolite.errors import BadInput
from theodolite.measures import measure
from theodolite.theory.operator_spectra import known_spectra


def test_a_known_function_as_a_net_reads_uniform_inputs_from_minus_one_to_one():
    x = torch.tensor([[-1.0, 1.0], [0.0, -0.5]], dtype=torch.float64)
    assert KnownFunction("brownian")(x).tolist() == [0.0, 0.25]
    assert KnownFunction("steps")(x).tolist() == [0.0, 0.0]
    assert KnownFunction("steps")(torch.tensor([[0.3, 0.4]])).tolist() == [1.0]


@pytest.mark.parametrize("name", known_spectra)
def test_the_measured_interval_contains_the_closed_form(name):
    row = measure("known-epsilon-rank", {"function": name, "epsilons": [0.3], "points": 64, "resamples": 2}, 5, "cpu")
    (case,) = row["cases"]
    low, high = case["interval"]
    assert low <= case["truth"] <= (high or math.inf)
    assert case["d1_interval"][0] <= case["d1_grid"][1]
    if case["d1_truth"] is not None:
        assert case["d1_interval"][0] <= case["d1_truth"] <= case["d1_interval"][1]


def test_tails_in_the_sample_are_too_small_and_held_out_ones_are_not():
    """Of n steps seen at few points: the last singular value, exactly known, is halved in the sample and more."""
    row = measure("tail-bias", {"function": "steps", "epsilon": 0.3, "points": 24, "samples": 60}, 0, "cpu")
    inside, outside = (sum(row[w]) / 60 for w in ("in_sample", "held_out"))
    assert row["rank"] == 7
    assert inside < 0.5
    assert outside > 0.9


@pytest.mark.parametrize("name", EXPANSIONS)
def test_the_uniform_error_of_an_expansion_is_attained_by_its_chebyshev_sum(name):
    """The series in a, summed at 64 nodes by a discrete cosine transform, misses by no more than the stated error."""
    expansion = Expansion(name)
    nodes = torch.cos(math.pi * (torch.arange(64, dtype=torch.float64) + 0.5) / 64)
    b = torch.linspace(-1, 1, 101, dtype=torch.float64)
    waves = torch.cos(torch.arange(64)[:, None] * nodes.arccos())  # T_k at the nodes
    series = waves @ expansion.values(nodes, b) * 2 / 64
    series[0] /= 2
    a = torch.linspace(-1, 1, 201, dtype=torch.float64)
    at_a = torch.cos(torch.arange(64)[:, None] * a.arccos())
    if name == "wave":
        assert torch.linalg.matrix_rank(expansion.values(a, b)) == 2
        return
    for r in (1, 2, 4):
        missed = float((expansion.values(a, b) - at_a[:r].T @ series[:r]).abs().max())
        assert missed == pytest.approx(expansion.error(r), rel=1e-3)


def test_the_least_rank_at_templates_never_exceeds_a_known_rank_and_reaches_it():
    row = measure("template-bound", {"function": "exponential", "templates": 8, "terms": 3, "draws": 1}, 0, "cpu")
    assert len(row["cases"]) == 6
    assert all(c["least_rank"][0] <= c["terms"] for c in row["cases"])
    assert [c["least_rank"][0] for c in row["cases"] if c["templates"] == "chebyshev"] == [1, 2, 3]


def test_a_function_of_rank_zero_at_all_templates_is_as_near_as_one_likes():
    """The stated distance against a fine grid on which the holes are cut out."""
    row = measure("template-bound", {"function": "wave", "templates": 4, "terms": 1, "draws": 0}, 0, "cpu")
    stated = row["relative_d2_of_rank_0_at_the_templates"]
    nodes = torch.cos(math.pi * (torch.arange(4, dtype=torch.float64) + 0.5) / 4)
    axis = (torch.arange(2000, dtype=torch.float64) + 0.5) / 1000 - 1
    near = ((axis[:, None] - nodes).abs() <= 0.01).any(1)
    y = Expansion("wave").values(axis, axis)
    lost = y * near[:, None] * near
    assert 0 < float((lost.square().mean() / y.square().mean()).sqrt()) <= stated["0.01"]
    assert stated["1e-06"] == pytest.approx(1e-4 * stated["0.01"])


def test_a_smooth_function_of_full_exact_rank_has_a_small_epsilon_rank():
    row = measure("certified-full-rank", {"points": 20, "epsilons": [0.1, 0.01]}, 0, "cpu")
    assert row["full"]
    assert row["float_rank"] < 20  # floating point does not see it
    assert row["epsilon_ranks"] == [2, 3]


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("template-bound", {"function": "sine"}, "no expansion is called 'sine'"),
        ("tail-bias", {"function": "flatt"}, "did you mean 'flat'"),
    ],
)
def test_an_unknown_function_is_named(name, config, message):
    with pytest.raises(BadInput, match=message):
        measure(name, config)
    with pytest.raises(BadInput, match="known spectrum"):
        value_of("unknown", torch.zeros(1, 1), torch.zeros(1, 1))
