"""From logits to weights, against another library and definitions; positions that fall off or start anywhere."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false

from __future__ import annotations

import copy
import math

import entmax as reference
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.nets import nets
from theodolite.nets.load import load, seeded
from theodolite.nets.parts.attention_weights import entmax, softmax, sparsemax, thresholded, weighing
from theodolite.nets.parts.positions import RandomOffset, distance_bias, sinusoidal
from theodolite.nets.transformer import attention
from theodolite.tasks.contract import make_task
from theodolite.training.pairing import pair
from theodolite.training.trial import agreement

MAPS = {kind: weighing(kind, 0.1) for kind in ("softmax", "thresholded", "sparsemax", "entmax")}
SPARSE = {"sparsemax": (sparsemax, reference.sparsemax), "entmax": (entmax, reference.entmax15)}
ROWS = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.floats(-4, 4, width=16), min_size=n, max_size=n), min_size=1, max_size=4)
)
KINDS = pytest.mark.parametrize("kind", list(MAPS))


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def gradient(weigh, logits: Tensor, incoming: Tensor) -> Tensor:
    leaf = logits.detach().clone().requires_grad_()
    return torch.autograd.grad((weigh(leaf) * incoming).sum(), leaf)[0]


@pytest.mark.parametrize("kind", list(SPARSE))
@given(ROWS, st.integers(0, 5))
def test_weights_and_gradients_are_those_of_the_entmax_package(kind, rows, seed):
    ours, theirs = SPARSE[kind]
    logits = torch.tensor(rows, dtype=torch.float64)
    logits = logits + normal(*logits.shape, seed=seed, scale=1e-3)  # at a tie on the edge there is no gradient
    torch.testing.assert_close(ours(logits), theirs(logits, dim=-1), rtol=0, atol=1e-9)
    incoming = normal(*logits.shape, seed=seed + 1)
    truth = gradient(lambda z: theirs(z, dim=-1), logits, incoming)
    torch.testing.assert_close(gradient(ours, logits, incoming), truth, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", list(SPARSE))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_long_rows_are_exact_and_close_to_it_in_single_precision(kind, scale):
    ours, theirs = SPARSE[kind]
    logits = normal(50, 1000, scale=scale)
    truth = theirs(logits, dim=-1)
    torch.testing.assert_close(ours(logits), truth, rtol=0, atol=1e-13)
    assert ((ours(logits) > 0) == (truth > 0)).all()
    torch.testing.assert_close(ours(logits.float()).double(), truth, rtol=0, atol=1e-5)
    assert torch.autograd.gradcheck(ours, normal(3, 7, scale=scale).requires_grad_())


@KINDS
@given(ROWS)
def test_weights_lie_on_the_simplex_keep_the_order_and_do_not_see_a_shift(kind, rows):
    logits = torch.tensor(rows, dtype=torch.float64)
    weights = MAPS[kind](logits)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(rows), dtype=torch.float64), rtol=0, atol=1e-12)
    order = logits.argsort(dim=-1)
    assert (weights.gather(-1, order).diff(dim=-1) >= -1e-12).all()
    torch.testing.assert_close(MAPS[kind](logits + 2.5), weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(MAPS[kind](logits.flip(-1)).flip(-1), weights, rtol=0, atol=1e-12)


@KINDS
@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_hidden_key_has_weight_and_gradient_zero_and_the_others_do_not_notice(kind, scale, dtype):
    logits, seen = normal(1, 9, scale=scale).to(dtype), torch.tensor([0, 2, 3, 7])
    hidden = torch.full_like(logits, -math.inf)
    hidden[:, seen] = logits[:, seen]
    found, incoming = MAPS[kind](hidden), normal(1, 9, seed=3).to(dtype)
    others = [i for i in range(9) if i not in seen]
    assert (found[:, others] == 0).all()
    torch.testing.assert_close(found[:, seen], MAPS[kind](logits[:, seen]), rtol=1e-5, atol=1e-6)
    slopes = gradient(MAPS[kind], hidden, incoming)
    assert (slopes[:, others] == 0).all()
    truth = gradient(MAPS[kind], logits[:, seen], incoming[:, seen])
    torch.testing.assert_close(slopes[:, seen], truth, rtol=1e-4, atol=1e-5)


@KINDS
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_weights_and_gradients_batched_along_any_axis_are_those_one_by_one(kind, axis):
    logits, incoming = normal(3, 3, 3, 5, scale=2.0), normal(3, 3, 5, seed=1)
    step = torch.func.grad(lambda z: (MAPS[kind](z) * incoming).sum())
    together = torch.func.vmap(step, in_dims=axis)(logits)
    values = torch.func.vmap(MAPS[kind], in_dims=axis, out_dims=axis)(logits)
    torch.testing.assert_close(values, MAPS[kind](logits), rtol=0, atol=1e-14)
    for i in range(3):
        alone = gradient(MAPS[kind], logits.select(axis, i), incoming)
        torch.testing.assert_close(together[i], alone, rtol=0, atol=1e-14)


@KINDS
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_logit_that_is_no_number_spoils_its_own_row_and_no_other(kind, wrong, dtype):
    logits, incoming = normal(3, 4, 6, scale=2.0).to(dtype), normal(3, 4, 6, seed=1).to(dtype)
    spoilt = logits.clone()
    spoilt[1, 2, 3], spoilt[2, 0, :] = wrong, wrong
    fine = torch.ones(3, 4, dtype=torch.bool)
    fine[1, 2] = fine[2, 0] = False
    step = torch.func.vmap(torch.func.grad(lambda z, form: (MAPS[kind](z) * form).sum()))
    for found, truth in (
        (MAPS[kind](spoilt), MAPS[kind](logits)),
        (torch.func.vmap(MAPS[kind])(spoilt), MAPS[kind](logits)),
        (step(spoilt, incoming), step(logits, incoming)),
    ):
        assert found[~fine].isnan().any(dim=-1).all()
        assert torch.equal(found[fine], truth[fine])


@given(ROWS, st.floats(1e-6, 1.0))
def test_thresholded_weights_are_softmax_weights_cut_off_and_scaled_up(rows, threshold):
    for row, found in zip(rows, thresholded(torch.tensor(rows, dtype=torch.float64), threshold).tolist(), strict=True):
        total = sum(math.exp(z) for z in row)
        weights = [math.exp(z) / total for z in row]
        if any(abs(w - threshold * max(weights)) < 1e-12 for w in weights):
            continue  # on the threshold rounding decides
        kept = [w if w >= threshold * max(weights) else 0.0 for w in weights]
        assert found == pytest.approx([w / sum(kept) for w in kept], abs=1e-12)
        assert [w == 0 for w in found] == [w == 0 for w in kept]


def test_a_lead_of_a_few_makes_one_token_of_many_seen_alone_but_not_by_softmax():
    logits = torch.zeros(2000, dtype=torch.float64)
    logits[700] = 2.5
    for kind in ("thresholded", "sparsemax", "entmax"):
        assert MAPS[kind](logits)[700] == 1.0
    assert softmax(logits)[700] < 0.01


@pytest.mark.parametrize("kind", list(SPARSE))
@pytest.mark.parametrize("causal", [False, True])
def test_a_sparse_transformer_is_the_softmax_one_with_the_packages_weights(kind, causal):
    net = load("transformer", attention=kind, causal=causal, width=8, heads=2).module.double()
    other = load("transformer", causal=causal, width=8, heads=2).module.double()
    x, present = normal(3, 6, 4), torch.arange(6) < torch.tensor([[6], [2], [4]])
    assert not torch.allclose(net(x), other(x))
    for block in other.blocks:
        with torch.no_grad():
            block.project.weight.mul_(4)
        block.mix = lambda *given: attention(*given, weigh=lambda z: SPARSE[kind][1](z, dim=-1))
    for block in net.blocks:
        with torch.no_grad():
            block.project.weight.mul_(4)  # so that some weights are 0
    torch.testing.assert_close(net(x, present)[present], other(x, present)[present], rtol=1e-9, atol=1e-10)


def test_alibi_falls_by_the_published_slopes_and_by_distance_in_both_directions():
    bias = distance_bias(5, 8, torch.zeros((), dtype=torch.float64))
    assert (-bias[:, 1, 0]).tolist() == [2.0**-h for h in range(1, 9)]  # Press et al., Section 3
    for head, i, j in [(0, 4, 0), (3, 1, 3), (7, 2, 2)]:
        assert bias[head, i, j] == -(2.0 ** -(head + 1)) * abs(i - j)
    slopes = -distance_bias(2, 6, torch.zeros(()))[:, 1, 0]
    torch.testing.assert_close(slopes[1:] / slopes[:-1], torch.full((5,), 2 ** (-8 / 6)))


@pytest.mark.parametrize("causal", [False, True])
def test_an_alibi_transformer_is_one_whose_logits_have_that_bias(causal):
    net = load("alibi-transformer", causal=causal, width=8, heads=2, depth=1).module.double()
    plain = copy.deepcopy(net)
    plain.places.kind = "none"
    x = normal(2, 6, 4)
    assert not torch.allclose(net(x), plain(x))

    def by_hand(query, key, value, bias=None):
        found = torch.empty_like(value)
        for head, slope in enumerate((2.0**-4, 2.0**-8)):
            for i in range(6):
                keys = range(i + 1) if causal else range(6)
                scores = [(query[:, head, i] * key[:, head, j]).sum(-1) / 2 - slope * abs(i - j) for j in keys]
                weights = torch.softmax(torch.stack(scores, -1), dim=-1)
                found[:, head, i] = (weights[..., None] * value[:, head, : len(scores)]).sum(1)
        return found

    plain.blocks[0].mix = by_hand
    torch.testing.assert_close(net(x), plain(x), rtol=1e-11, atol=1e-12)


def test_random_offsets_are_sinusoidal_positions_that_start_anywhere_while_training_and_at_zero_otherwise():
    places, x = RandomOffset(6, 20), torch.zeros(4000, 5, 6, dtype=torch.float64)
    table = sinusoidal(25, 6, x)
    windows = table.unfold(0, 5, 1).transpose(1, 2)  # (start, token, width)
    with seeded(0):
        drawn = places(x)
    starts = (drawn[:, None] - windows).abs().amax(dim=(2, 3)).argmin(dim=1)
    torch.testing.assert_close(drawn, windows[starts], rtol=0, atol=1e-12)
    counts = torch.bincount(starts, minlength=21)
    assert len(counts) == 21
    assert (counts - 4000 / 21).abs().max() < 5 * math.sqrt(4000 / 21)
    before = torch.random.get_rng_state()
    assert torch.equal(places.eval()(x), table[:5])
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_random_offset_transformer_is_the_sinusoidal_one_where_it_is_not_trained():
    net, other = (load("transformer", positions=p, seed=3).module for p in ("random-offset", "sinusoidal"))
    x = torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(net(x), other(x))
    assert not torch.equal(net.train()(x), other(x))
    one = x[:1].expand(64, -1, -1)
    with seeded(0):
        assert len(net(one)[:, -1].unique()) > 50, "every row has an offset of its own"
    net.places.offset.most = 0
    torch.testing.assert_close(net(x), other(x))


def test_members_of_an_ensemble_draw_offsets_of_their_own_and_those_are_reproducible():
    net, x = load("random-offset-transformer").module.train(), torch.zeros(3, 4, 2, 4)
    weights = {n: p.expand(3, *p.shape) for n, p in net.named_parameters()}

    def run():
        with seeded(1):
            return torch.func.vmap(lambda w, x: torch.func.functional_call(net, w, (x,)), randomness="different")(
                weights, x
            )

    assert len(run()[:, :, -1].unique()) == 12
    assert torch.equal(run(), run())


@pytest.mark.parametrize("name", ["random-offset-transformer", "universal-transformer"])
def test_nets_that_draw_offsets_are_found_to_be_batchable(name):
    assert agreement(pair(name, make_task("parity-check", {})), torch.device("cpu")) == (True, None)


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        *((f"{kind}-transformer", "attention", kind) for kind in ("thresholded", "sparsemax", "entmax")),
        *((f"{kind}-transformer", "positions", kind) for kind in ("alibi", "random-offset")),
    ],
)
def test_a_variant_is_the_transformer_with_that_argument_however_it_is_built(name, argument, value):
    truth = load("transformer", seed=4, **{argument: value}).module
    assert nets[name].arguments[argument] == value
    x = 3 * torch.randn(4, 9, 4, generator=torch.Generator().manual_seed(0))
    with seeded(4):
        direct = nets[name].build().eval()
    for net in (load(name, seed=4).module, direct):
        assert torch.equal(net(x), truth(x))
    plain = load("transformer", seed=4, attention="softmax", positions="rotary").module
    assert torch.equal(load(name, seed=4, attention="softmax", positions="rotary").module(x), plain(x))
    law = truth.influence().law
    assert law == ("power" if name == "random-offset-transformer" else "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attention": "hardmax"}, "attention must be softmax, thresholded, sparsemax or entmax, not 'hardmax'"),
        ({"threshold": 0}, r"threshold must be a share above 0 and at most 1, not 0\.0"),
        ({"threshold": 1.5}, r"threshold must be a share above 0 and at most 1, not 1\.5"),
        ({"threshold": "much"}, r"threshold of 'transformer' is a number, such as 0\.1, not 'much'"),
        ({"threshold": True}, "threshold of 'transformer' is a number"),
        ({"threshold": math.nan}, "threshold of 'transformer' is a number"),
        ({"offset_range": 0}, "offset_range of .transformer. must be a whole number of at least 1, not 0"),
    ],
)
def test_what_no_attention_has_is_refused_in_a_sentence(arguments, message):
    with pytest.raises(BadInput, match=message):
        load("transformer", **arguments)
