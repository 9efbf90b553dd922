"""Outcomes, periods, exponents and basins against maps of which they are known."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

from theodolite.errors import BadInput
from theodolite.instruments.fixed_points.fixed_points import basin, fixed_points
from theodolite.instruments.fixed_points.maps import MAPS, named_map
from theodolite.report.svg.basin import draw_basin

QUICK = {"starts": 12, "steps": 400}


def logistic(r: float):
    return lambda z: r * z * (1 - z)


def test_the_logistic_map_converges_to_its_fixed_point_at_the_rate_of_its_slope():
    r = 2.5
    found = fixed_points(logistic(r), size=1, within=(0.05, 0.95), **QUICK)
    assert (found.outcome, found.period) == ("converges", 1)
    assert found.attractors[0].point == pytest.approx((1 - 1 / r,), abs=1e-8)
    assert found.spectral_radius == pytest.approx(abs(2 - r), abs=1e-7)
    assert found.lyapunov == pytest.approx(math.log(abs(2 - r)), abs=1e-4)
    assert found.steps_to_tolerance < 60
    assert found.interval[0] <= found.lyapunov <= found.interval[1] + 1e-12  # pyright: ignore[reportOperatorIssue]


def test_how_far_it_is_is_told():
    told = []
    fixed_points("logistic", r=2.5, starts=4, steps=200, progress=lambda label, share: told.append(share))
    assert len(told) > 200
    assert 0.4 < sum(told) < 2


def test_its_cycle_of_two_has_the_known_multiplier():
    """f²' on the 2-cycle is 4 + 2r − r²."""
    r = 3.2
    found = fixed_points(logistic(r), size=1, within=(0.05, 0.95), **QUICK)
    assert (found.outcome, found.period) == ("period", 2)
    assert found.spectral_radius == pytest.approx(abs(4 + 2 * r - r * r), abs=1e-6)
    assert found.lyapunov == pytest.approx(math.log(abs(4 + 2 * r - r * r)) / 2, abs=1e-3)
    low = (r + 1 - math.sqrt((r - 3) * (r + 1))) / (2 * r)
    assert found.attractors[0].point == pytest.approx((low,), abs=1e-7)


@pytest.mark.parametrize(("r", "period"), [(3.5, 4), (3.83, 3), (3.55, 8)])
def test_further_periods_of_the_logistic_map(r, period):
    found = fixed_points(logistic(r), size=1, within=(0.05, 0.95), starts=8, steps=1500)
    assert (found.outcome, found.period) == ("period", period)
    assert found.shares == {f"period {period}": 1.0}


def test_chaos_has_the_known_exponents():
    four = fixed_points(logistic(4.0), size=1, within=(0.05, 0.95), starts=24, steps=1000)
    assert four.outcome == "chaos"
    assert four.lyapunov == pytest.approx(math.log(2), abs=0.01)  # conjugate to the tent map of slope 2
    tent = fixed_points(named_map("tent", slope=1.7)[0], size=1, within=(-0.9, 0.9), **QUICK)
    assert tent.outcome == "chaos"
    assert tent.lyapunov == pytest.approx(math.log(1.7), abs=1e-9)
    henon = fixed_points(named_map("henon")[0], size=2, within=(-0.1, 0.1), starts=32, steps=1000)
    assert henon.outcome == "chaos"
    assert henon.lyapunov == pytest.approx(0.4192, abs=0.02)


def test_a_rotation_is_neutral_and_an_expansion_diverges():
    turn = fixed_points(named_map("rotation")[0], size=2, **QUICK)
    assert turn.outcome == "quasi-periodic"
    assert abs(turn.lyapunov) < 1e-9
    gone = fixed_points(lambda z: 1.5 * z + 1, size=3, **QUICK)
    assert (gone.outcome, gone.lyapunov, gone.attractors) == ("diverges", None, [])


def test_a_rotation_by_a_fifth_of_a_turn_repeats_after_five():
    found = fixed_points(named_map("rotation", angle=2 * math.pi / 5)[0], size=2, **QUICK)
    assert (found.outcome, found.period) == ("period", 5)
    assert found.spectral_radius == pytest.approx(1.0)


def test_a_contraction_converges_and_a_strong_random_network_does_not():
    weight = torch.randn(40, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = weight * 0.8 / torch.linalg.matrix_norm(weight, 2)
    x = torch.randn(40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    drawn_in = fixed_points(lambda z, x: torch.tanh(z @ weight.T + x), x, size=40, **QUICK)
    assert drawn_in.outcome == "converges"
    assert len(drawn_in.attractors) == 1
    point = torch.tensor(drawn_in.attractors[0].point, dtype=torch.float64)
    jacobian = (1 - point**2).unsqueeze(1) * weight  # of tanh(W z + x) at its fixed point
    assert drawn_in.spectral_radius == pytest.approx(float(torch.linalg.eigvals(jacobian).abs().max()), rel=1e-6)
    wild = fixed_points(named_map("tanh", 100, gain=3.0)[0], size=100, **QUICK)
    assert wild.outcome == "chaos"
    assert wild.lyapunov > 0.1


def test_a_module_and_a_map_without_derivatives_are_measured_too():
    torch.default_generator.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    with torch.no_grad():
        net[0].weight.mul_(0.5)  # pyright: ignore[reportCallIssue]
    assert fixed_points(net, size=4, **QUICK).outcome == "converges"

    def by_numpy(z: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(3.2 * z.numpy() * (1 - z.numpy()))

    found = fixed_points(by_numpy, size=1, within=(0.05, 0.95), **QUICK)
    assert found.period == 2
    assert found.lyapunov == pytest.approx(math.log(0.16) / 2, abs=1e-3)


def test_two_fixed_points_share_the_starts():
    """z ← z − (z³ − z)/2 is drawn to −1 and 1; the sign decides."""
    found = fixed_points(lambda z: z - (z**3 - z) / 2, size=1, starts=40, steps=400)
    points = sorted(attractor.point[0] for attractor in found.attractors)
    assert points == pytest.approx([-1, 1], abs=1e-7)
    assert sum(attractor.share for attractor in found.attractors) == pytest.approx(1)


def test_newtons_basins_are_those_of_the_nearest_root_far_from_the_boundary():
    plane = basin(named_map("newton")[0], size=2, within=(-2.0, 2.0), grid=41, steps=100)
    roots = [attractor.point for attractor in plane.attractors]
    expected = [(1.0, 0.0), (-0.5, math.sqrt(0.75)), (-0.5, -math.sqrt(0.75))]
    assert len(roots) == 3
    for root in expected:
        assert any(math.dist(root, found) < 1e-7 for found in roots)
    near = 0
    for row in range(41):
        for column in range(41):
            start = (-2 + column / 10, -2 + row / 10)
            for root in expected:
                if math.dist(start, root) < 0.35:
                    near += 1
                    assert math.dist(roots[plane.label[row][column]], root) < 1e-7
    assert near > 50


def test_where_nothing_moves_every_start_is_an_attractor_of_its_own():
    """A turn by nothing; thousands of them took minutes when each was compared with each."""
    plane = basin("rotation", grid=31, steps=4, angle=0.0)
    assert sorted(number for row in plane.label for number in row) == list(range(31 * 31))
    line = [-1 + 2 * place / 30 for place in range(31)]
    for row, column in ((0, 0), (30, 3), (17, 22)):
        found = plane.attractors[plane.label[row][column]]
        assert found.point == pytest.approx((line[column], line[row]), abs=1e-12)
        assert found.spectral_radius == pytest.approx(1)


def test_the_picture_has_one_colour_per_attractor():
    svg = draw_basin([[0, 0, 1], [0, -1, 1], [-2, -1, 1]], ["left & low", "right"], (-1.0, 1.0), "three <ends>")
    assert svg.count("#4c78a8") == 2 + 1  # two runs and the legend
    assert "left &amp; low" in svg
    assert "&lt;ends&gt;" in svg
    assert "diverges" in svg
    assert "href" not in svg


def test_rows_are_plain_json():
    found = fixed_points(lambda z: z * 3, size=1, **QUICK)
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fixed_points(lambda z: z[..., :1], size=3, **QUICK), r"shape \(12, 3\) and gives \(12, 1\)"),
        (lambda: fixed_points(lambda z: z / 0, size=2, **QUICK), "not finite at any of its 12 starts"),
        (lambda: fixed_points(lambda: 1, size=2, **QUICK), "could not be applied to z"),
        (lambda: fixed_points(lambda z: z * z.mean(), size=2, **QUICK), "mixes the starts"),
        (lambda: fixed_points(lambda z: [z], size=2, **QUICK), "returns list"),
        (lambda: fixed_points(3, size=2, **QUICK), "not a int"),
        (lambda: fixed_points(lambda z: z, size=0, **QUICK), "size must be a whole number"),
        (lambda: fixed_points(lambda z: z, size=1, within=(1, 1)), "between two numbers"),
        (lambda: named_map("logistc"), "did you mean 'logistic'"),
        (lambda: named_map("logistic", q=1), "no argument is called 'q'"),
        (lambda: named_map("henon", 3), "has z of size 2, not 3"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, words):
    with pytest.raises(BadInput, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", list(MAPS))
def test_every_named_map_gives_back_its_shape(name):
    f, size, (low, high) = named_map(name, 5 if MAPS[name].size is None else None)
    z = torch.linspace(low, high, 3 * size, dtype=torch.float64).view(3, size) + 1e-3
    assert f(z).shape == z.shape
