"""The power of the logarithm, against nested averages whose change is an exact harmonic sum."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from torch import nn

from theodolite.claims.expressivity.log_law import amplified, first_symbol_changes, log_law
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.random_nets import random_net
from theodolite.nets.load import blueprint


class NestedMeans(nn.Module):
    """`depth` causal averages on end: attention with logits of 0, without a residual."""

    def __init__(self, features: int = 2, tokens: int = 8, depth: int = 2) -> None:
        super().__init__()
        self.depth = depth
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale
        for _ in range(self.depth):
            x = x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype).unsqueeze(-1)
        return x


def harmonic(depth: int, n: int) -> list[float]:
    """n times the share that the first of n tokens has at the last, by the recursion: means of means."""
    shares = [1.0] + [0.0] * (n - 1)
    for _ in range(depth):
        total, following = 0.0, []
        for number, share in enumerate(shares, start=1):
            total += share
            following.append(total / number)
        shares = following
    return [number * share for number, share in enumerate(shares, start=1)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nested_averages_follow_the_power_of_the_logarithm(depth):
    found = log_law(NestedMeans, depth=depth, longest=1024, draws=2, inputs=1, powers=4)
    assert found.diagnostics["chosen"] == depth - 1
    assert found.value == pytest.approx(depth - 1, abs=0.4)  # lower powers bend the plain slope
    curve = found.diagnostics["curve"]
    exact = harmonic(depth, 1024)
    growth = math.log(curve[-1]["change_times_n"] / curve[0]["change_times_n"])
    last, first = (statistics.median_low(exact[n - 1 : 2 * n - 1]) for n in (512, 8))
    assert growth == pytest.approx(math.log(last / first), abs=1e-9)


def test_one_input_gives_the_change_at_every_length():
    """Against inputs that are cut off, one length at a time; and the fused attention against the plain one."""
    plan = blueprint("transformer", causal=True, positions="none", outputs=3)
    module = random_net(plan, 0, 0, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 40, 4, generator=generator, dtype=torch.float64)
    fresh = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    truth = []
    for n in range(1, 41):
        cut, other = x[:, :n], x[:, :n].clone()
        other[:, 0] = fresh
        with torch.no_grad():
            truth.append((module(other)[:, -1] - module(cut)[:, -1]).norm(dim=-1))
    found = first_symbol_changes(plan, amplified(module, 1.0), x, fresh)
    assert torch.allclose(found, torch.stack(truth, dim=1), rtol=1e-9, atol=1e-12)


def test_causal_attention_gains_a_logarithm_with_its_second_layer():
    shape = {"positions": "none", "heads": 1, "outputs": 32}
    one, two = (
        log_law("transformer", longest=512, draws=6, inputs=1, gain=4.0, powers=depth, depth=depth, **shape)
        for depth in (1, 2)
    )
    assert (one.diagnostics["chosen"], one.diagnostics["predicted"]) == (0, 0)
    assert (two.diagnostics["chosen"], two.diagnostics["predicted"]) == (1, 1)
    assert one.interval[1] < two.interval[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: log_law("transformer", causal=False, longest=64), "is not causal"),
        (lambda: log_law("mlp"), "reads vectors"),
        (lambda: log_law("convolution", depth=1, kernel=3, longest=64), "does not feel its first token"),
    ],
)
def test_networks_without_such_a_law_are_not_applicable(call, words):
    with pytest.raises(NotApplicable, match=words):
        call()


def test_too_little_to_fit_is_refused():
    with pytest.raises(BadInput, match="use at least 64"):
        log_law("transformer", longest=16)
