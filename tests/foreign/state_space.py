"""State spaces and their relatives."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class S4DKernel(nn.Module):
    """As in the authors' minimal example: a convolution by FFT."""

    def __init__(self, d_model, N=8, dt_min=0.001, dt_max=0.1):
        super().__init__()
        log_dt = torch.rand(d_model) * (math.log(dt_max) - math.log(dt_min)) + math.log(dt_min)
        self.C = nn.Parameter(torch.view_as_real(torch.randn(d_model, N // 2, dtype=torch.cfloat)))
        self.log_dt, self.log_A_real = nn.Parameter(log_dt), nn.Parameter(torch.log(0.5 * torch.ones(d_model, N // 2)))
        self.A_imag = nn.Parameter(math.pi * torch.arange(N // 2).repeat(d_model, 1).float())

    def forward(self, L):
        dt, C = torch.exp(self.log_dt), torch.view_as_complex(self.C)
        A = -torch.exp(self.log_A_real) + 1j * self.A_imag
        dtA = A * dt.unsqueeze(-1)
        K = dtA.unsqueeze(-1) * torch.arange(L, device=A.device)
        return 2 * torch.einsum("hn,hnl->hl", C * (torch.exp(dtA) - 1.0) / A, torch.exp(K)).real


class S4D(nn.Module):
    """The whole model of the example: d_input, d_output, GLU and residual."""

    def __init__(self, d_input, d_output=10, d_model=16, n_layers=1, dropout=0.0):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(d_input, d_model), nn.Linear(d_model, d_output)
        self.kernels = nn.ModuleList(S4DKernel(d_model) for _ in range(n_layers))
        self.D = nn.ParameterList(nn.Parameter(torch.randn(d_model)) for _ in range(n_layers))
        self.mix = nn.ModuleList(nn.Conv1d(d_model, 2 * d_model, 1) for _ in range(n_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(n_layers))

    def forward(self, x):
        x = self.encoder(x)
        for kernel, D, mix, norm in zip(self.kernels, self.D, self.mix, self.norms):
            u = x.transpose(-1, -2)
            L = u.size(-1)
            k_f, u_f = torch.fft.rfft(kernel(L), n=2 * L), torch.fft.rfft(u, n=2 * L)
            y = torch.fft.irfft(u_f * k_f, n=2 * L)[..., :L] + u * D.unsqueeze(-1)
            x = norm(x + F.glu(mix(F.gelu(y)), dim=-2).transpose(-1, -2))
        return self.decoder(x)


class RWKV(nn.Module):
    """Version 4's time mixing, the loop written out, numbers kept in a safe range."""

    def __init__(self, vocab_size, n_embd, ctx_len=1024):
        super().__init__()
        self.emb, self.ln, self.head = nn.Embedding(vocab_size, n_embd), nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size)
        self.time_decay, self.time_first = nn.Parameter(torch.linspace(-5, 1, n_embd)), nn.Parameter(torch.zeros(n_embd))
        self.mix = nn.Parameter(torch.full((3, n_embd), 0.5))
        self.key, self.value, self.receptance = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(3))

    def forward(self, idx):
        x = self.ln(self.emb(idx))
        before = F.pad(x, (0, 0, 1, -1))
        k, v, r = (f(x * m + before * (1 - m)) for f, m in zip((self.key, self.value, self.receptance), self.mix))
        w, u = -torch.exp(self.time_decay), self.time_first
        a = b = torch.zeros_like(x[:, 0])
        p, out = torch.full_like(a, -1e38), []
        for t in range(x.shape[1]):
            q = torch.maximum(p, u + k[:, t])
            e1, e2 = torch.exp(p - q), torch.exp(u + k[:, t] - q)
            out.append((e1 * a + e2 * v[:, t]) / (e1 * b + e2))
            q = torch.maximum(p + w, k[:, t])
            e1, e2 = torch.exp(p + w - q), torch.exp(k[:, t] - q)
            a, b, p = e1 * a + e2 * v[:, t], e1 * b + e2, q
        return self.head(x + torch.sigmoid(r) * torch.stack(out, 1))


class RetNet(nn.Module):
    """Retention in its parallel form, a decay per head."""

    def __init__(self, vocab_size, hidden_size=32, heads=4, num_layers=1):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab_size, hidden_size), nn.Linear(hidden_size, vocab_size)
        self.qkvg = nn.ModuleList(nn.Linear(hidden_size, 4 * hidden_size) for _ in range(num_layers))
        self.norm = nn.ModuleList(nn.GroupNorm(heads, hidden_size) for _ in range(num_layers))
        self.heads, self.gamma = heads, 1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), heads))

    def forward(self, ids):
        x = self.embed(ids)
        n = torch.arange(ids.shape[1], device=ids.device)
        apart = n[:, None] - n[None]
        decay = (self.gamma.to(x)[:, None, None] ** apart.clamp(min=0)) * (apart >= 0)
        for qkvg, norm in zip(self.qkvg, self.norm):
            q, k, v, g = qkvg(x).chunk(4, -1)
            q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
            y = ((q @ k.transpose(-1, -2) * decay) @ v).transpose(1, 2).flatten(2)
            x = x + norm(y.flatten(0, 1)).view_as(y) * F.silu(g)
        return self.head(x)


class Mamba(nn.Module):
    """The selective scan of mamba-minimal, a block of one width to the same width."""

    def __init__(self, d_model, d_state=8, expand=2, d_conv=4):
        super().__init__()
        inner = expand * d_model
        self.in_proj, self.out_proj = nn.Linear(d_model, 2 * inner, bias=False), nn.Linear(inner, d_model, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, d_conv, groups=inner, padding=d_conv - 1)
        self.x_proj, self.dt_proj = nn.Linear(inner, 1 + 2 * d_state, bias=False), nn.Linear(1, inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float().repeat(inner, 1)))
        self.D, self.d_state = nn.Parameter(torch.ones(inner)), d_state

    def forward(self, x):
        l = x.shape[1]
        u, res = self.in_proj(x).chunk(2, -1)
        u = F.silu(self.conv1d(u.transpose(1, 2))[..., :l].transpose(1, 2))
        delta, B, C = self.x_proj(u).split([1, self.d_state, self.d_state], -1)
        delta, A = F.softplus(self.dt_proj(delta)), -torch.exp(self.A_log)
        h, ys = u.new_zeros(u.shape[0], u.shape[2], self.d_state), []
        for t in range(l):
            h = torch.exp(delta[:, t, :, None] * A) * h + (delta[:, t] * u[:, t])[..., None] * B[:, t, None]
            ys.append(torch.einsum("bdn,bn->bd", h, C[:, t]))
        return self.out_proj((torch.stack(ys, 1) + u * self.D) * F.silu(res))


class HGRN(nn.Module):
    """A gated linear recurrence whose forget gate has a floor; in_channels and out_channels."""

    def __init__(self, in_channels, out_channels, channels=32, lower_bound=0.2):
        super().__init__()
        self.inp, self.gates, self.out = nn.Linear(in_channels, channels), nn.Linear(channels, 3 * channels), nn.Linear(channels, out_channels)
        self.lower_bound = lower_bound

    def forward(self, x):
        f, i, o = self.gates(self.inp(x)).chunk(3, -1)
        f = self.lower_bound + (1 - self.lower_bound) * f.sigmoid()
        h, hs = torch.zeros_like(f[:, 0]), []
        for t in range(x.shape[1]):
            h = f[:, t] * h + (1 - f[:, t]) * i[:, t].tanh()
            hs.append(h)
        return self.out(torch.stack(hs, 1) * o.sigmoid())


class Hyena(nn.Module):
    """A long convolution whose filter a small net of the place makes."""

    def __init__(self, d_model, vocab_size, l_max=1024):
        super().__init__()
        self.embed, self.proj, self.head = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, vocab_size)
        self.filter = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, d_model))
        t = torch.linspace(0, 1, l_max)[:, None]
        self.register_buffer("z", torch.cat([t, torch.cos(8 * t), torch.sin(8 * t)], dim=1))

    def forward(self, ids):
        q, k, v = self.proj(self.embed(ids)).chunk(3, -1)
        L = ids.shape[1]
        h = self.filter(self.z[:L]) * torch.exp(-torch.arange(L, device=ids.device)[:, None] / 16)
        y = torch.fft.irfft(torch.fft.rfft(k * v, n=2 * L, dim=1) * torch.fft.rfft(h, n=2 * L, dim=0), n=2 * L, dim=1)
        return self.head(q * y[:, :L])
