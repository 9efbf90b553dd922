"""The decoder's own sizes: what is given as it would be anyway changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from theodolite.errors import BadInput
from theodolite.nets.load import load

SIZES = {"features": 5, "outputs": 3, "depth": 2, "width": 24, "heads": 3}


def test_heads_as_wide_as_they_are_anyway_change_nothing():
    plain, given = (load("decoder", seed=1, **SIZES, **more).module for more in ({}, {"head_width": 8, "hidden": 96}))
    x = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(plain(x), given(x))


@pytest.mark.parametrize(("heads", "head_width"), [(5, 2), (1, 64), (7, 16)])
def test_attention_is_as_wide_as_its_heads_together(heads, head_width):
    module: Any = load("decoder", seed=0, **{**SIZES, "heads": heads}, head_width=head_width).module
    block = module.blocks[0]
    assert block.project.out_features == 3 * heads * head_width
    assert block.combine.in_features == heads * head_width
    x = torch.randn(1, 6, 5, generator=torch.Generator().manual_seed(0))
    later = x.clone()
    later[:, 4:] = 0
    assert torch.allclose(module(x)[:, :4], module(later)[:, :4], atol=1e-6)  # causal


@pytest.mark.parametrize("head_width", [0, 7, -2])
def test_heads_that_no_rotation_takes_are_refused(head_width):
    with pytest.raises(BadInput, match="head_width"):
        load("decoder", seed=0, **SIZES, head_width=head_width)
