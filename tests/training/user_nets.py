"""Networks as users write them, some of them badly."""

# pyright: reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false, reportOperatorIssue=false

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrent(nn.Module):
    """(batch, token, feature), causal: a running mean through a layer."""

    def __init__(self, features: int, outputs: int, width: int = 6) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(features, width), nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        counts = torch.arange(1, x.shape[1] + 1, device=x.device).view(-1, 1)
        return self.leave(torch.tanh(self.enter(x).cumsum(dim=1) / counts))


class Normed(nn.Module):
    """Batch statistics are buffers, one of them a whole number, that forward writes into."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(features, 5), nn.BatchNorm1d(5), nn.Linear(5, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.relu(self.norm(self.enter(x))))


class Dropping(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 32), nn.Tanh(), nn.Dropout(0.5), nn.Linear(32, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Waiting(nn.Module):
    """Waits for the device in every call, which no graph can hold."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cuda:
            torch.cuda.synchronize()
        return self.layer(x)


class Frozen(nn.Module):
    """The first layer is random and stays so."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(features, 8).requires_grad_(False), nn.Linear(8, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.tanh(self.enter(x)))


class Tied(nn.Module):
    """One matrix in two places."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, features), nn.Linear(features, features)
        self.second.weight = self.first.weight
        self.leave = nn.Linear(features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.tanh(self.second(torch.tanh(self.first(x)))))


class Odd(nn.Module):
    """A parameter without axes, one that nothing reads, a buffer of whole numbers, one of truth values."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)
        self.gain, self.unused = nn.Parameter(torch.tensor(1.5)), nn.Parameter(torch.ones(3))
        self.register_buffer("order", torch.randperm(features))
        self.register_buffer("chosen", torch.ones(features, dtype=torch.bool), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * self.layer(x[..., self.order] * self.chosen)


class Counting(nn.Module):
    """Replaces a buffer in every call instead of writing into it, and computes with it."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.calls = self.calls + 1
        return self.layer(x) * (1 + 0.1 * self.calls)


class Peeking(nn.Module):
    """A branch on a number: fine alone, impossible when batched."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if x.sum().item() > 0 else 2 * self.layer(x)


class Wordless(nn.Module):
    """Refuses to be batched and does not say why."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        assert not torch._C._functorch.is_batchedtensor(x)
        return self.layer(x)


class _WrongWhenBatched(torch.autograd.Function):
    """tanh; under vmap its outputs are right and its gradient is a tenth too large."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.tanh(x)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return gradient * (1 - y * y)

    @staticmethod
    def vmap(info, in_dims, x: Tensor):
        return 1.1 * torch.tanh(x) - 0.1 * torch.tanh(x).detach(), in_dims[0]


class WrongWhenBatched(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(features, 5), nn.Linear(5, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(_WrongWhenBatched.apply(self.enter(x)))


class QuietlyWrongWhenBatched(WrongWhenBatched):
    """Gradients far smaller than the weights: how far a step moves them is what has to be compared."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        self.leave.weight.data *= 1e-2
        self.enter.weight.data *= 1e2


class Ids(nn.Module):
    """Naming `vocab`, it reads whole numbers."""

    def __init__(self, vocab: int, outputs: int) -> None:
        super().__init__()
        self.embed, self.leave = nn.Embedding(vocab, 6), nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.int64
        return self.leave(self.embed(x).cumsum(dim=1))


class Positions(nn.Module):
    """A table of positions, as long as it was told or shorter."""

    def __init__(self, features: int, outputs: int, tokens: int, table: int = 0) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(features, 6), nn.Linear(6, outputs)
        self.places = nn.Parameter(torch.randn(table or tokens, 6))

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(torch.tanh(self.enter(x) + self.places[torch.arange(x.shape[1])]).cumsum(dim=1))


class Mean(nn.Module):
    """Every token reads all: with `present` the mean can leave padding out, if it cares to."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(features, 6), nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.enter(x))
        return self.leave(hidden + hidden.mean(dim=1, keepdim=True))


class MeanOfPresent(Mean):
    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        hidden = torch.tanh(self.enter(x))
        if present is None:
            return self.leave(hidden + hidden.mean(dim=1, keepdim=True))
        there = present.unsqueeze(-1).to(hidden.dtype)
        return self.leave(hidden + (hidden * there).sum(1, keepdim=True) / there.sum(1, keepdim=True))


class NoNumberAtPadding(MeanOfPresent):
    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        found = super().forward(x, present)
        return found if present is None else found / present.unsqueeze(-1).to(found.dtype)


class MeanOfAll(Mean):
    """Takes `present` and does not look at it."""

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        return super().forward(x)


class SilentMean(Mean):
    """As `Mean`, with a readout that starts at zero: fresh weights hide that padding enters."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(features, outputs)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
