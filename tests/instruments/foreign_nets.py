"""Layers as their authors publish them, small, whose state is known: written from the papers' definitions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class S4D(nn.Module):
    """Gu, Gupta, Goel and Ré 2022, as the minimal version: `d_state` real numbers for each channel, by convolution."""

    def __init__(self, features: int, outputs: int, d_model: int = 8, d_state: int = 4) -> None:
        super().__init__()
        self.embed, self.norm = nn.Linear(features, d_model), nn.LayerNorm(d_model)
        self.log_dt = nn.Parameter(torch.rand(d_model) * math.log(100) + math.log(0.001))
        self.c = nn.Parameter(torch.randn(d_model, d_state // 2, 2))
        self.log_a_real = nn.Parameter(torch.log(0.5 * torch.ones(d_model, d_state // 2)))
        self.a_imag = nn.Parameter(math.pi * torch.arange(d_state // 2).float().repeat(d_model, 1))
        self.d, self.read = nn.Parameter(torch.randn(d_model)), nn.Linear(d_model, outputs)
        self.mix = nn.Linear(d_model, 2 * d_model)

    def forward(self, x: Tensor) -> Tensor:
        h, length = self.embed(x), x.shape[1]
        u = self.norm(h).transpose(1, 2)
        a = -torch.exp(self.log_a_real) + 1j * self.a_imag
        step = a * torch.exp(self.log_dt)[:, None]
        c = torch.view_as_complex(self.c) * (torch.exp(step) - 1) / a
        kernel = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(step[..., None] * torch.arange(length))).real
        y = torch.fft.irfft(torch.fft.rfft(kernel, n=2 * length) * torch.fft.rfft(u, n=2 * length), n=2 * length)
        y = F.gelu(y[..., :length] + u * self.d[:, None]).transpose(1, 2)
        return self.read(F.glu(self.mix(y)) + h)


class RetNet(nn.Module):
    """Sun et al. 2023, retention in parallel: keys by values of a head, whose group norm takes a value's mean away."""

    def __init__(self, features: int, outputs: int, d_model: int = 8, n_head: int = 2) -> None:
        super().__init__()
        self.heads, self.embed, self.norm = n_head, nn.Linear(features, d_model), nn.LayerNorm(d_model)
        self.query, self.key, self.value, self.gate, self.out = (
            nn.Linear(d_model, d_model, bias=False) for _ in "qkvgo"
        )
        self.group, self.read = nn.GroupNorm(n_head, d_model), nn.Linear(d_model, outputs)
        self.gamma = nn.Buffer(1 - 2.0 ** (-5 - torch.arange(n_head).float()))

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        u = self.norm(h)
        batch, length, width = u.shape
        query, key, value = (
            each(u).view(batch, length, self.heads, -1).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        place = torch.arange(length)
        distance = place[:, None] - place
        decay = self.gamma[:, None, None] ** distance.clamp(min=0) * (distance >= 0)
        y = (query @ key.transpose(-1, -2) * key.shape[-1] ** -0.5 * decay) @ value
        y = self.group(y.transpose(1, 2).reshape(-1, width)).view(batch, length, width)
        return self.read(h + self.out(F.silu(self.gate(u)) * y))


class RWKV(nn.Module):
    """Peng et al. 2023, time mixing of RWKV-4: numerator, denominator, and the token before less its mean."""

    def __init__(self, features: int, outputs: int, d_model: int = 8) -> None:
        super().__init__()
        self.embed, self.norm, self.read = (
            nn.Linear(features, d_model),
            nn.LayerNorm(d_model),
            nn.Linear(d_model, outputs),
        )
        self.decay, self.bonus = nn.Parameter(torch.linspace(-2, 1, d_model)), nn.Parameter(torch.randn(d_model) / 3)
        self.mixes = nn.Parameter(torch.rand(3, d_model))
        self.key, self.value, self.gate, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in "kvro")

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        u = self.norm(h)
        before = F.pad(u, (0, 0, 1, -1))
        key, value, gate = (
            layer(u * mix + before * (1 - mix))
            for layer, mix in zip((self.key, self.value, self.gate), self.mixes, strict=True)
        )
        fade = torch.exp(-torch.exp(self.decay))
        above = below = torch.zeros_like(key[:, 0])
        out = []
        for t in range(x.shape[1]):
            now, kept = torch.exp(self.bonus + key[:, t]), torch.exp(key[:, t])
            out.append((above + now * value[:, t]) / (below + now))
            above, below = fade * above + kept * value[:, t], fade * below + kept
        return self.read(h + self.out(torch.sigmoid(gate) * torch.stack(out, 1)))


class Mamba(nn.Module):
    """Gu and Dao 2023: 2·d·N numbers of the recurrence, and three tokens of the convolution less their means."""

    def __init__(self, features: int, outputs: int, d_model: int = 4, d_state: int = 4) -> None:
        super().__init__()
        inner, self.states = 2 * d_model, d_state
        self.embed, self.norm, self.read = (
            nn.Linear(features, d_model),
            nn.LayerNorm(d_model),
            nn.Linear(d_model, outputs),
        )
        self.inner, self.out = nn.Linear(d_model, 2 * inner, bias=False), nn.Linear(inner, d_model, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.select, self.step = nn.Linear(inner, 1 + 2 * d_state, bias=False), nn.Linear(1, inner)
        self.a_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float().repeat(inner, 1)))
        self.d = nn.Parameter(torch.ones(inner))

    def forward(self, x: Tensor) -> Tensor:
        h, length = self.embed(x), x.shape[1]
        u, gate = self.inner(self.norm(h)).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
        step, b, c = self.select(u).split([1, self.states, self.states], -1)
        step = F.softplus(self.step(step))[..., None]
        fade, brought = torch.exp(step * -torch.exp(self.a_log)), step * b[:, :, None] * u[..., None]
        state, out = torch.zeros_like(brought[:, 0]), []
        for t in range(length):
            state = fade[:, t] * state + brought[:, t]
            out.append((state * c[:, t, None]).sum(-1))
        return self.read(h + self.out((torch.stack(out, 1) + u * self.d) * F.silu(gate)))


class Stacked(nn.Module):
    """torch's own recurrent layers."""

    def __init__(
        self, features: int, outputs: int, hidden_size: int = 8, num_layers: int = 3, cell: str = "LSTM"
    ) -> None:
        super().__init__()
        self.layers = getattr(nn, cell)(features, hidden_size, num_layers, batch_first=True)
        self.read = nn.Linear(hidden_size, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self.layers(x)[0])


class Attention(nn.Module):
    """torch's own Transformer layers, causal; over the last `window` tokens only where there is one."""

    def __init__(
        self, features: int, outputs: int, d_model: int = 8, n_head: int = 2, n_layer: int = 1, window: int = 10**6
    ) -> None:
        super().__init__()
        self.window, self.embed, self.read = window, nn.Linear(features, d_model), nn.Linear(d_model, outputs)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_head, 4 * d_model, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(n_layer)
        )

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        distance = place[:, None] - place
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h, src_mask=(distance < 0) | (distance >= self.window))
        return self.read(h)
