"""What is taken out of a Transformer is out, and nothing else changes."""

from __future__ import annotations

import pytest
import torch

from theodolite.bench.learn import learn
from theodolite.claims.degree.ablated import KINDS, NET, ablated, plain_attention
from theodolite.errors import BadInput
from theodolite.nets.load import seeded
from theodolite.nets.size import count_parameters
from theodolite.nets.transformer import Transformer

SHAPE = {"features": 3, "outputs": 2, "depth": 2, "width": 8, "heads": 2}


def built(without: str) -> torch.nn.Module:
    with seeded(5):
        return ablated(**SHAPE, without=without)


def test_without_nothing_it_is_the_transformer_and_all_have_its_parameters():
    with seeded(5):
        whole = Transformer(**SHAPE)
    x = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(built("nothing")(x), whole(x))
    answers = [built(kind)(x) for kind in KINDS]
    assert {count_parameters(built(kind)) for kind in KINDS} == {count_parameters(whole)}
    for i, one in enumerate(answers):
        assert all(not torch.allclose(one, other, atol=1e-4) for other in answers[:i])


def test_attention_without_softmax_is_a_mean_over_what_is_seen():
    query, key, value = torch.randn(3, 1, 1, 4, 2, generator=torch.Generator().manual_seed(1)).unbind(0)
    hidden = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf)
    found = plain_attention(query, key, value, hidden)[0, 0]
    for i in range(4):
        seen = [float(query[0, 0, i] @ key[0, 0, j]) * value[0, 0, j] / 2**0.5 for j in range(i + 1)]
        assert torch.allclose(found[i], torch.stack(seen).mean(dim=0), atol=1e-6)
    whole = plain_attention(query, key, value)
    assert torch.allclose(whole[0, 0, -1], found[-1], atol=1e-6)


@pytest.mark.parametrize("without", ["activations", "both"])
def test_without_activations_the_perceptrons_are_affine(without):
    mlp = built(without).get_submodule("blocks.0.mlp")
    x, y = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(2)).unbind(0)
    assert torch.allclose(mlp(x) + mlp(y), mlp(x + y) + mlp(torch.zeros(5, 8)), atol=1e-6)
    kept = built("softmax").get_submodule("blocks.0.mlp")
    assert not torch.allclose(kept(x) + kept(y), kept(x + y) + kept(torch.zeros(5, 8)), atol=1e-4)


def test_one_with_neither_trains_on_what_a_polynomial_can_do():
    run = {"shape": {"width": 8, "depth": 1, "heads": 2, "without": "both"}, "task_args": {"bits": 5}}
    found = learn(NET, "majority", **run, seeds=2, lr=1e-2, steps=200, batch=32, every=100, chunk=2)
    assert min(row["accuracy"] for row in found.rows) > 0.95
    with pytest.raises(BadInput, match="softmax"):
        learn(NET, "majority", shape={"without": "norms"})
