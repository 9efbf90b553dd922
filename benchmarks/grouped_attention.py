"""Attention whose heads share keys and values, or make them from a few numbers of a token: a net for certificates.

`grouped-attention.jsonl` names this file by its SHA-256; whoever changes it makes the certificates anew
(`python benchmarks/certificates.py --grouped`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GroupedAttention(nn.Module):
    """Two layers without softmax, `heads` in `groups` of shared keys and values, each `inner` wide; with `latent`, keys
    and values are made from that many numbers of a token."""

    def __init__(self, width: int, heads: int, groups: int, inner: int, latent: int | None = None) -> None:
        super().__init__()
        self.groups, self.inner = groups, inner
        maps = [(width, latent)] if latent else []
        maps += [(width, heads * inner), *[(latent or width, groups * inner)] * 2, (heads * inner, width)]
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(*sizes, bias=False) for sizes in maps) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        for layer in self.layers:
            *down, query, key, value, out = layer  # type: ignore[misc]
            source = down[0](x) if down else x
            queries = query(x).view(batch, tokens, self.groups, -1, self.inner)
            keys, values = (one(source).view(batch, tokens, self.groups, self.inner) for one in (key, value))
            blocks = torch.einsum("bngi,bngj->bgij", keys, values)
            x = out(torch.einsum("bngri,bgij->bngrj", queries, blocks).reshape(batch, tokens, -1))
        return x
