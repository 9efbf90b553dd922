"""Parameter counts by hand."""

from __future__ import annotations

import pytest

from theodolite.errors import OutsideDomain
from theodolite.theory.bottleneck import T5_11B, TransformerShape, excess_share


def test_t5_11b_has_about_eleven_billion_parameters_and_the_share_by_hand():
    attention = 24 * 3 * 4 * 1024 * 16384  # encoder self, decoder self, decoder cross
    feed_forward = 48 * 2 * 1024 * 65536
    assert 11.2e9 < attention + feed_forward < 11.4e9
    assert excess_share(T5_11B) == pytest.approx(attention * (1 - 1024 / 16384) / (attention + feed_forward))
    assert 0.39 < excess_share(T5_11B) < 0.41


def test_attention_of_the_networks_width_wastes_nothing():
    assert excess_share(TransformerShape(768, 12, 64, 3072, 12)) == 0
    assert excess_share(TransformerShape(768, 12, 32, 3072, 12)) == 0


def test_a_decoder_alone_has_one_attention_a_layer():
    assert TransformerShape(8, 1, 8, 32, 0, 5).attentions == 5
    assert TransformerShape(8, 1, 8, 32, 2, 5).attentions == 12


def test_sizes_are_checked():
    with pytest.raises(OutsideDomain, match="width"):
        TransformerShape(0, 1, 1, 1, 1)
