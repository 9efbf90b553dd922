"""Networks with habits that harnesses trip over."""

import torch
import torch.nn.functional as F
from torch import nn


class BatchNormNet(nn.Module):
    """Vectors, batch norm, dropout."""

    def __init__(self, in_features, out_features, hidden_dim=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(in_features, hidden_dim), nn.BatchNorm1d(hidden_dim), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(hidden_dim, out_features),
        )

    def forward(self, x):
        return self.net(x)


class TemporalConvNet(nn.Module):
    """Bai et al. 2018: (batch, channel, token) inside, weight norm, chomps."""

    def __init__(self, input_size, output_size, num_channels=(16, 16), kernel_size=3):
        super().__init__()
        self.layers, last = nn.ModuleList(), input_size
        for i, width in enumerate(num_channels):
            conv = nn.Conv1d(last, width, kernel_size, padding=(kernel_size - 1) * 2**i, dilation=2**i)
            self.layers.append(nn.utils.parametrizations.weight_norm(conv))
            last = width
        self.linear = nn.Linear(last, output_size)

    def forward(self, inputs):
        x = inputs.transpose(1, 2)
        for layer in self.layers:
            x = F.relu(layer(x)[..., : inputs.shape[1]])
        return self.linear(x.transpose(1, 2))


class RunningMean(nn.Module):
    """Writes into a buffer in place while it trains."""

    def __init__(self, vocab_size, num_classes):
        super().__init__()
        self.emb, self.out = nn.Embedding(vocab_size, 24), nn.Linear(24, num_classes)
        self.register_buffer("mean", torch.zeros(24))

    def forward(self, x):
        h = self.emb(x)
        if self.training:
            self.mean.mul_(0.99).add_(0.01 * h.detach().mean(dim=(0, 1)))
        counts = torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]
        return self.out(torch.tanh((h - self.mean).cumsum(dim=1) / counts.sqrt()))


class _Round(torch.autograd.Function):
    """Rounds, and lets the gradient through as if it had not."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class StraightThrough(nn.Module):
    def __init__(self, n_in, n_out, width=32):
        super().__init__()
        self.a, self.b = nn.Linear(n_in, width), nn.Linear(width, n_out)

    def forward(self, x):
        return self.b(_Round.apply(4 * torch.sigmoid(self.a(x).cumsum(1))))


class AdaptiveDepth(nn.Module):
    """Goes round until nothing changes much: control flow on data."""

    def __init__(self, num_tokens, dim, num_classes, max_steps=6):
        super().__init__()
        self.emb, self.step, self.out, self.max_steps = nn.Embedding(num_tokens, dim), nn.Linear(2 * dim, dim), nn.Linear(dim, num_classes), max_steps

    def forward(self, x):
        e = self.emb(x).cumsum(1)
        h = torch.zeros_like(e)
        for _ in range(self.max_steps):
            new = torch.tanh(self.step(torch.cat([h, e], -1)))
            if (new - h).abs().max().item() < 1e-3:
                break
            h = new
        return self.out(h)


class MixtureOfExperts(nn.Module):
    """Top-1 routing with boolean indices; answers in a named tuple of sorts, the load beside it."""

    def __init__(self, vocab_size, d_model, num_experts=3):
        super().__init__()
        self.emb, self.router, self.head = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, num_experts), nn.Linear(d_model, vocab_size)
        self.experts = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(num_experts))

    def forward(self, x):
        h = self.emb(x).cumsum(1)
        weight, chosen = self.router(h).softmax(-1).max(-1)
        out = torch.zeros_like(h)
        for i, expert in enumerate(self.experts):
            here = chosen == i
            out[here] = weight[here].unsqueeze(-1) * expert(h[here])
        load = torch.bincount(chosen.flatten(), minlength=len(self.experts))
        return load, self.head(out)


class Frozen(nn.Module):
    """A reservoir: the recurrence is random and stays so, float64 in its buffer."""

    def __init__(self, input_dim, output_dim, reservoir=32):
        super().__init__()
        self.win = nn.Linear(input_dim, reservoir).requires_grad_(False)
        w = torch.randn(reservoir, reservoir)
        self.register_buffer("w", 0.9 * w / torch.linalg.matrix_norm(w, 2))
        self.out = nn.Linear(reservoir, output_dim)

    def forward(self, x):
        h, hs = x.new_zeros(x.shape[0], self.w.shape[0]), []
        for t in range(x.shape[1]):
            h = torch.tanh(self.win(x[:, t]) + h @ self.w)
            hs.append(h)
        return self.out(torch.stack(hs, 1))


class WeightTied(nn.Module):
    """An embedding that is the readout too, by F.linear, positions by a parameter."""

    def __init__(self, vocab_size, max_length, embed_size=32):
        super().__init__()
        self.embedding, self.pos = nn.Embedding(vocab_size, embed_size), nn.Parameter(torch.zeros(max_length, embed_size))
        self.mix = nn.Linear(embed_size, embed_size)

    def forward(self, x):
        h = self.embedding(x) + self.pos[: x.shape[1]]
        return F.linear(h + torch.tanh(self.mix(h.cumsum(1))), self.embedding.weight)


class PooledClassifier(nn.Module):
    """One answer for a whole sequence: bag of words."""

    def __init__(self, vocab_size, embed_dim, num_class=4):
        super().__init__()
        self.embedding, self.fc = nn.EmbeddingBag(vocab_size, embed_dim), nn.Linear(embed_dim, num_class)

    def forward(self, text):
        return self.fc(self.embedding(text))


class Fourier(nn.Module):
    """Random features of a vector, a factory beside it."""

    def __init__(self, dim_in, dim_out, features_count=64):
        super().__init__()
        self.register_buffer("B", torch.randn(dim_in, features_count))
        self.out = nn.Linear(2 * features_count, dim_out)

    def forward(self, x):
        phase = x @ self.B
        return self.out(torch.cat([phase.sin(), phase.cos()], -1))


def build_model(vocab_size, num_classes, hidden_size=24, **unused):
    """A factory, as training scripts have them."""
    return nn.Sequential(nn.Embedding(vocab_size, hidden_size), _Cumulative(), nn.Linear(hidden_size, num_classes))


class _Cumulative(nn.Module):
    def forward(self, x):
        return torch.tanh(x.cumsum(dim=1))
