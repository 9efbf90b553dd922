"""`mamba-2`, `gated-delta-net` and `s4d` against their authors' equations, token by token, and others' code."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportIndexIssue=false, reportCallIssue=false

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.foreign.state_space import S4D as ExampleS4D
from theodolite.errors import BadInput
from theodolite.nets.gated_delta_net import GatedDeltaRule
from theodolite.nets.load import load
from theodolite.nets.mamba_2 import MambaMixer
from theodolite.nets.s4d import S4DBlock

TOKENS = 40  # more than a chunk


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def rms(x: Tensor, weight: Tensor) -> Tensor:
    return weight * x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def stirred(module):
    """Parameters that start at 1 are changed, or a factor that is left out would not be noticed."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module


def test_mamba_2_is_its_recurrence():
    """Dao and Gu 2024: Eq. 1 with a = exp(Δ A) scalar in every head, and the block of their Figure 6, right."""
    layer, x = stirred(MambaMixer(width=6, heads=3, state=5, kernel=4)), normal(2, TOKENS, 6)
    z, xbc, dt = (x @ layer.project.weight.T).split([12, 22, 3], dim=-1)
    window = F.conv1d(F.pad(xbc.mT, (3, 0)), layer.taps[:, None], layer.bias, groups=22)
    u, b, c = F.silu(window.mT).split([12, 5, 5], dim=-1)
    dt, a = F.softplus(dt + layer.step_bias), -layer.log_rate.exp()
    h, found = torch.zeros(2, 3, 4, 5, dtype=torch.float64), []
    for t in range(TOKENS):
        now = u[:, t].view(2, 3, 4)
        h = torch.exp(dt[:, t] * a)[..., None, None] * h + torch.einsum("bh,bhp,bn->bhpn", dt[:, t], now, b[:, t])
        found.append((torch.einsum("bhpn,bn->bhp", h, c[:, t]) + layer.direct * now).flatten(1))
    truth = rms(torch.stack(found, 1) * F.silu(z), layer.norm.weight) @ layer.combine.weight.T
    torch.testing.assert_close(layer(x), truth, rtol=1e-9, atol=1e-10)


def test_mamba_2_is_that_of_transformers():
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    ours = load("mamba-2", width=8, heads=4, state=6, depth=2, features=5, outputs=5).module
    config = transformers.Mamba2Config(
        num_heads=4, head_dim=4, hidden_size=8, state_size=6, expand=2, n_groups=1, num_hidden_layers=2, vocab_size=5,
        conv_kernel=4, layer_norm_epsilon=1e-5, chunk_size=8, use_bias=False, use_conv_bias=True,
        residual_in_fp32=False, tie_word_embeddings=False,
    )  # fmt: skip
    theirs = transformers.Mamba2ForCausalLM(config).eval()
    with torch.no_grad():
        ours.embed.bias.zero_()
        ours.read[1].bias.zero_()
        theirs.backbone.embeddings.weight.copy_(ours.embed.weight.T)
        theirs.backbone.norm_f.weight.copy_(ours.read[0].weight)
        theirs.lm_head.weight.copy_(ours.read[1].weight)
        for block, layer in zip(ours.blocks, theirs.backbone.layers, strict=True):
            mine, own = block.mix, layer.mixer
            layer.norm.weight.copy_(block.before_mix.weight)
            own.in_proj.weight.copy_(mine.project.weight)
            own.conv1d.weight.copy_(mine.taps[:, None])
            own.conv1d.bias.copy_(mine.bias)
            own.dt_bias.copy_(mine.step_bias)
            own.A_log.copy_(mine.log_rate)
            own.D.copy_(mine.direct[:, 0])
            own.norm.weight.copy_(mine.norm.weight)
            own.out_proj.weight.copy_(mine.combine.weight)
        ids = torch.randint(5, (2, 20), generator=torch.Generator().manual_seed(1))
        told = theirs(ids, use_cache=False).logits
        torch.testing.assert_close(ours(F.one_hot(ids, 5).float()), told, rtol=1e-3, atol=1e-4)


def test_a_gated_delta_net_is_its_recurrence():
    """Yang, Kautz and Hatamizadeh 2024: Eq. 10 and the block of their Figure 1; keys of ¾ of the width."""
    layer, x = stirred(GatedDeltaRule(width=8, heads=2, kernel=4)), normal(2, TOKENS, 8)
    assert layer.sizes == (6, 6, 12)
    mixed = F.conv1d(F.pad((x @ layer.project.weight.T).mT, (3, 0)), layer.taps[:, None], groups=24)
    q, k, v = F.silu(mixed.mT).split([6, 6, 12], dim=-1)
    q, k = (each.view(2, TOKENS, 2, 3) for each in (q, k))
    q, k = (each / (each.square().sum(-1, keepdim=True) + 1e-6).sqrt() for each in (q, k))
    beta = torch.sigmoid(x @ layer.rate.weight.T)
    alpha = torch.exp(-layer.log_decay.exp() * F.softplus(x @ layer.decay.weight.T + layer.decay_bias))
    s, found = torch.zeros(2, 2, 6, 3, dtype=torch.float64), []
    for t in range(TOKENS):
        key, value, rate = k[:, t], v[:, t].view(2, 2, 6), beta[:, t, :, None, None]
        reflected = torch.eye(3, dtype=torch.float64) - rate * key[..., :, None] * key[..., None, :]
        s = alpha[:, t, :, None, None] * s @ reflected + rate * value[..., :, None] * key[..., None, :]
        read = torch.einsum("bhvk,bhk->bhv", s, q[:, t]) / 3**0.5
        found.append(rms(read, layer.norm.weight).flatten(1))
    truth = (torch.stack(found, 1) * F.silu(x @ layer.gate.weight.T)) @ layer.combine.weight.T
    torch.testing.assert_close(layer(x), truth, rtol=1e-9, atol=1e-10)


def test_s4d_is_that_of_the_authors_example():
    theirs = ExampleS4D(d_input=3, d_output=2, d_model=6, n_layers=2).double()
    ours = load("s4d", width=6, depth=2, state=8, features=3, outputs=2).module.double()
    with torch.no_grad():
        ours.embed.load_state_dict(theirs.encoder.state_dict())
        ours.read[1].load_state_dict(theirs.decoder.state_dict())
        parts = zip(ours.blocks, theirs.kernels, theirs.D, theirs.mix, theirs.norms, strict=True)
        for block, kernel, direct, mix, norm in parts:
            block.log_step.copy_(kernel.log_dt[:, None])
            block.log_rate.copy_(kernel.log_A_real)
            block.frequency.copy_(kernel.A_imag)
            block.weight.copy_(kernel.C.movedim(-1, 0))
            block.direct.copy_(direct)
            block.both.weight.copy_(mix.weight[..., 0])
            block.both.bias.copy_(mix.bias)
            block.norm.load_state_dict(norm.state_dict())
        x = normal(2, TOKENS, 3)
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-8, atol=1e-9)


def test_they_start_as_published():
    rates = torch.stack([MambaMixer(8, 4, 4, 4).log_rate.detach().exp() for _ in range(100)])
    assert 1 <= float(rates.min()) < 1.5
    assert 15.5 < float(rates.max()) <= 16
    steps = torch.stack([F.softplus(MambaMixer(8, 4, 4, 4).step_bias.detach()) for _ in range(100)])
    assert 0.00099 < float(steps.min()) < 0.0015
    assert 0.07 < float(steps.max()) < 0.1001
    assert 14 < max(float(GatedDeltaRule(8, 4, 4).log_decay.detach().exp().max()) for _ in range(100)) <= 16
    block = S4DBlock(200, 16)
    assert tuple(block.weight.shape) == (2, 200, 8)
    assert 0.9 < float(block.weight.detach().square().sum(0).mean()) < 1.1, "normal complex numbers"
    assert float(block.frequency.detach()[0, 3]) == pytest.approx(3 * torch.pi)


def test_modes_come_in_pairs():
    with pytest.raises(BadInput, match=r"state=3 cannot be split into pairs of conjugate modes: use an even number"):
        load("s4d", state=3)
