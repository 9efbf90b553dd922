"""Targets whose partners are known, attention read against them, and shares of matrices that are known."""

from __future__ import annotations

import pytest
import torch

from theodolite.claims.sparsity.selected_inputs import (
    IDLE,
    TAG,
    TARGETS,
    attention_weights,
    draw,
    positive_share,
    symmetric_share,
)
from theodolite.errors import BadInput
from theodolite.measures import measure
from theodolite.nets.transformer import Transformer


@pytest.mark.parametrize("target", TARGETS)
def test_outputs_depend_on_token_and_partner_alone(target):
    x, y, partner = draw(target, 2, 5, 8, torch.Generator().manual_seed(0))
    own = torch.arange(8).expand_as(partner)
    assert (partner != own).all()
    if target != "before":
        assert torch.equal(torch.take_along_dim(partner, partner, dim=-1), own)  # a partner's partner
    for m in range(2):
        for b in range(5):
            for i in range(8):
                assert y[m, b, i, 0] == x[m, b, i, 0] * x[m, b, partner[m, b, i], 0]


def test_partners_by_content_have_the_nearest_tags_and_stand_anywhere():
    x, _, partner = draw("content", 1, 400, 8, torch.Generator().manual_seed(0))
    tags = x[0, :, :, 1 : 1 + TAG]
    distance = torch.cdist(tags, tags) + 1e9 * torch.eye(8)
    assert (distance.argmin(dim=-1) == partner[0]).double().mean() > 0.95
    assert x.shape[-1] == 1 + TAG + IDLE
    counts = torch.bincount(partner[0, :, 0], minlength=8)
    assert counts[0] == 0
    assert (counts[1:] > 25).all()


def test_attention_that_is_read_is_that_of_the_forward_pass():
    """With the value of every token its own one-hot, what comes out of the head is the attention itself."""
    torch.manual_seed(0)
    net = Transformer(features=3, width=8, heads=1, depth=1, positions="none", causal=False, attention="entmax")
    x = torch.randn(4, 5, 3)
    seen, block = [], net.blocks[0]
    plain, places = block.mix, torch.eye(5, 8).expand(4, 1, 5, 8)

    def mix(query, key, value, hidden):
        seen.append(plain(query, key, places, hidden)[:, 0, :, :5])  # pyright: ignore[reportCallIssue]
        return plain(query, key, value, hidden)  # pyright: ignore[reportCallIssue]

    block.mix = mix
    net(x)
    assert torch.allclose(seen[0], attention_weights(net, x, "entmax"), atol=1e-6)


def test_shares_of_known_matrices():
    half = torch.diag(torch.tensor([3.0, -1.0]))
    skew = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    assert positive_share(half) == pytest.approx(0.75)
    assert positive_share(torch.eye(4) + 5 * torch.block_diag(skew, skew)) == pytest.approx(1)
    assert symmetric_share(skew) == 0
    assert symmetric_share(half) == 1
    random = torch.randn(200, 200, generator=torch.Generator().manual_seed(0))
    assert positive_share(random) == pytest.approx(0.5, abs=0.05) == symmetric_share(random)


def test_a_short_training_selects_by_place():
    config = {"target": "sibling", "attention": "softmax", "tokens": 4, "width": 16, "seeds": 2, "steps": 200,
              "batch": 32, "rate": 1e-2}  # fmt: skip
    row = measure("selected-inputs", config, 1, "cpu")
    assert row["uniform"] == 0.5
    for member in row["members"]:
        assert member["unexplained"] < 0.8
        assert member["auc"] > 0.9 > member["start_auc"]
        assert member["effective"] < member["start_effective"]


def test_an_odd_number_of_tokens_and_an_unknown_target_are_refused():
    with pytest.raises(BadInput, match="over 7 tokens"):
        draw("content", 1, 1, 7, torch.Generator())
    with pytest.raises(BadInput, match="'near'"):
        draw("near", 1, 1, 8, torch.Generator())
