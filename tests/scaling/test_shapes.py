"""Shapes of equal size, counted by building them."""

from __future__ import annotations

import pytest

from theodolite.errors import BadInput
from theodolite.nets.load import load
from theodolite.scaling.shapes import inner_parameters, shapes_of

DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)


def counted(net: str, vocabulary: int, **shape: int) -> int:
    """Of the built network, without whatever has the vocabulary in its shape."""
    module = load(net, seed=0, features=vocabulary, outputs=vocabulary, **shape).module
    return sum(p.numel() for p in module.parameters() if vocabulary not in p.shape)


@pytest.mark.parametrize("size", [10_000, 30_000, 100_000, 1_000_000])
def test_decoders_are_of_the_size_within_one_per_cent_at_every_depth(size):
    found, _ = shapes_of("decoder", size, DEPTHS)
    assert len(found) >= 7
    for shape in found:
        assert counted("decoder", 251, **shape.arguments) == shape.parameters
        assert abs(shape.parameters - size) <= 0.01 * size
        head, ratio = shape.width / shape.arguments["heads"], shape.arguments["hidden"] / shape.width
        assert head == int(head)
        assert head % 2 == 0
        assert 2.5 < ratio < 5.5


@pytest.mark.parametrize("net", ["lstm", "gru", "linear-transformer", "transformer", "delta-net", "state-space"])
def test_other_nets_come_as_near_as_their_width_lets_them(net):
    found, reasons = shapes_of(net, 300_000, (1, 2, 4), within=0.1)
    assert not reasons
    for shape in found:
        step = 1 if net in ("lstm", "gru") else 4  # heads
        around = [counted(net, 251, **{**shape.arguments, "width": shape.width + d}) for d in (-step, 0, step)]
        assert around[1] == shape.parameters
        assert min(around, key=lambda count: abs(count - 300_000)) == shape.parameters


def test_the_count_does_not_depend_on_the_vocabulary():
    expected = counted("decoder", 997, depth=2, width=24, heads=2, hidden=90)
    assert inner_parameters("decoder", depth=2, width=24, heads=2, hidden=90) == expected


def test_arguments_that_are_given_are_kept():
    found, _ = shapes_of("decoder", 30_000, (1, 2, 4), {"rank": 5, "heads": 2})
    assert found
    assert all(shape.arguments["rank"] == 5 and shape.arguments["heads"] == 2 for shape in found)


@pytest.mark.parametrize("head_width", [8, 32])
def test_attention_can_be_narrower_or_wider_than_the_network_at_the_same_size(head_width):
    found, reasons = shapes_of("decoder", 100_000, (1, 2, 4, 8), {"head_width": head_width})
    assert not reasons
    for shape in found:
        assert counted("decoder", 251, **shape.arguments) == shape.parameters
        assert abs(shape.off) <= 0.01
        assert shape.arguments["heads"] * head_width / shape.width == pytest.approx(head_width / 16, rel=0.35)
        assert 2.5 < shape.arguments["hidden"] / shape.width < 5.5


def test_heads_that_divide_no_width_are_the_reason_that_is_told():
    _, reasons = shapes_of("decoder", 2_000, (1, 2), {"heads": 3})
    assert reasons == ["depth 2 has no shape of 2,000 parameters: 3 heads divide no even width near 9"]


def test_depths_that_do_not_fit_are_told_and_a_size_without_any_is_refused():
    found, reasons = shapes_of("decoder", 4_000, (1, 2, 48))
    assert [shape.depth for shape in found] == [1, 2]
    assert "depth 48 is too deep for 4,000 parameters" in reasons[0]
    with pytest.raises(BadInput, match="no depth fits a size of 500"):
        shapes_of("decoder", 500, (24, 48))
    with pytest.raises(BadInput, match="allow more with --within"):
        shapes_of("transformer", 300_000, (3,), within=1e-6)
    with pytest.raises(BadInput, match="needs a net that has both"):
        shapes_of("equilibrium", 30_000, (1, 2))
