"""Nets a user may bring: files that tests write, and what each is."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''
import torch
from torch import nn


class Square(nn.Module):
    """A sum of squares, polynomial, reads vectors: q(A) + q(B) + Σ a·b over the smaller side."""

    def __init__(self, features, outputs=1, hidden=64):
        super().__init__()
        self.into, self.out = nn.Linear(features, hidden), nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.out(self.into(x) ** 2)


class Mean(nn.Module):
    """Reads sequences without saying so: every token gets the mean of all."""

    def __init__(self, features, outputs, hidden=8):
        super().__init__()
        self.into, self.out = nn.Linear(features, hidden), nn.Linear(hidden, outputs)

    def forward(self, x):
        h = torch.tanh(self.into(x))
        return self.out(h + h.mean(dim=1, keepdim=True))


class Needs(nn.Module):
    def __init__(self, features, rooms, outputs=1):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(features, rooms), nn.Tanh(), nn.Linear(rooms, outputs))

    def forward(self, x):
        return self.f(x)


class Ids(nn.Module):
    def __init__(self, vocab, outputs):
        super().__init__()
        self.table = nn.Embedding(vocab, outputs)

    def forward(self, x):
        return self.table(x).cumsum(dim=1)


class Recurrent(nn.Module):
    """Reads (batch, token, feature), and would take a batch of vectors for one sequence."""

    def __init__(self, features, outputs):
        super().__init__()
        self.core, self.out = nn.GRU(features, 8, batch_first=True), nn.Linear(8, outputs)

    def forward(self, x):
        return self.out(self.core(x)[0])


class Pooled(nn.Module):
    """One output for all tokens, whatever their order."""

    def __init__(self, features, outputs):
        super().__init__()
        self.f = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.tanh(self.f(x)).mean(dim=1)


class Said(Recurrent):
    def forward(self, x):
        return "done", None


class Crash(Pooled):
    def forward(self, x):
        raise RuntimeError("no such thing")


class NoModule:
    def __init__(self, features):
        pass


class Short(nn.Module):
    """Takes eight tokens and no more."""

    def __init__(self, features, outputs, tokens):
        super().__init__()
        self.into, self.out = nn.Linear(features, 6), nn.Linear(6, outputs)

    def forward(self, x):
        if x.shape[1] > 8:
            raise RuntimeError("more than eight tokens")
        return self.out(torch.tanh(self.into(x)).cumsum(dim=1))
'''


def write(folder: Path) -> Path:
    path = folder / "nets.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path
