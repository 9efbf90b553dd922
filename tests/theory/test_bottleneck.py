"""Parameter counts by hand."""

from __future__ import annotations

import pytest

from theodolite.errors import OutsideDomain
from theodolite.theory.bottleneck import T5_11B, TransformerShape, excess_share, heads_kept
from theodolite.theory.heads import heads_cap


def test_t5_11b_has_about_eleven_billion_parameters_and_the_share_by_hand():
    attention = 24 * 3 * 4 * 1024 * 16384  # encoder self, decoder self, decoder cross
    feed_forward = 48 * 2 * 1024 * 65536
    assert 11.2e9 < attention + feed_forward < 11.4e9
    assert excess_share(T5_11B) == pytest.approx(attention * (1 - 33 / 128) / (attention + feed_forward))
    assert 0.315 < excess_share(T5_11B) < 0.325


def test_attention_of_the_networks_width_lies_within_the_cap():
    assert excess_share(TransformerShape(768, 12, 64, 3072, 12)) == 0
    assert excess_share(TransformerShape(768, 12, 32, 3072, 12)) == 0


def test_a_decoder_alone_has_one_attention_a_layer():
    assert TransformerShape(8, 1, 8, 32, 0, 5).attentions == 5
    assert TransformerShape(8, 1, 8, 32, 2, 5).attentions == 12


def test_sizes_are_checked():
    with pytest.raises(OutsideDomain, match="width"):
        TransformerShape(0, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((1024, 128, 128), (33, 33)),
        ((1024, 16, 128), (16, 16)),  # wider than the network, and all of them read something new
        ((1024, 16, 128, 8), (8, 8)),
        ((1024, 64, 128, 40), (33, 33)),
        ((1024, 4, 128, 2), (4, 2)),
        ((3, 8, 1), (6, 6)),  # the ranks 49, 49, 49 of 6, 7 and 8 heads: docs/findings.md
    ],
)
def test_the_heads_that_have_the_cap_of_all(shape, kept):
    assert heads_kept(*shape) == kept
    if len(shape) == 3 and shape[0] < 10:
        assert heads_cap(2, shape[0], kept[0], shape[2]) == heads_cap(2, *shape)
        assert heads_cap(2, shape[0], kept[0] - 1, shape[2]) < heads_cap(2, *shape)
