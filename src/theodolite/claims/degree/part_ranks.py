"""The separation rank of deep attention part by part: a rank far too large for one matrix, from small ones.

One head of attention, L layers deep, is y = e_pᵀ F_L(S_A + S_B) x with F_L homogeneous of degree C = (3^L − 1)/2
(docs/cap.md). Its parts y_c of degree c in S_B live in independent spaces, so sep(y) = Σ_c sep(y_c). The values of
F_L(S_A + t·S_B) x = Σ_c t^c y_c at C + 1 numbers t give all parts at once, by interpolation modulo a prime above C.
Their ranks at drawn points add up to a lower bound for almost all real weights (Claim 7.2); equal to the cap, it is the
rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from theodolite.claims.tensors.graded_blocks import AttentionForms, Side
from theodolite.device import require_memory, resolve_device
from theodolite.errors import BadInput
from theodolite.field import Modulus, draw_prime, eliminate, product
from theodolite.theory.attention import hops
from theodolite.theory.cap import attention_cap

_PAIRS = 1 << 14  # at a time: their small matrices stay near a processor's cache


def measure_part_ranks(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: depth, width, tokens (a side), points (a side)."""
    depth, width, tokens, count = (config[name] for name in ("depth", "width", "tokens", "points"))
    place, total = resolve_device(device), hops(depth)
    modulus = Modulus(draw_prime(f"{seed}/0/prime"))
    if total + 2 >= modulus.p:
        raise BadInput(f"degree {total} is too high for the prime {modulus.p}: use fewer layers")
    require_memory(16 * (total + 1) * count * count, place, f"{total + 1:,} parts at {count:,} × {count:,} points")
    forms = AttentionForms.drawn(
        f"{seed}/0/weights", modulus, place, depth, width, heads=1, attention_width=width, features=width
    )
    a, b = (Side.drawn(f"{seed}/0/{side}", count, tokens, width, modulus, place) for side in "ab")
    nodes = list(range(1, total + 2))
    inverse = interpolation(nodes, modulus).to(place)
    parts = torch.empty(total + 1, count * count, dtype=torch.float64, device=place)
    for pairs in torch.arange(count * count, device=place).split(_PAIRS):
        i, j = pairs // count, pairs % count
        here, there, x = a.gram[i].permute(1, 2, 0), b.gram[j].permute(1, 2, 0), a.token[i].T
        values = [
            forms.part([modulus.reduce(here + t * there)[:, :, :, None]], x[:, :, None], 0).flatten() for t in nodes
        ]
        parts[:, pairs] = product(inverse, torch.stack(values), modulus)
    blocks = parts.view(total + 1, count, count)
    ranks = [eliminate(block.clone(), modulus, overwrite=True).rank for block in blocks]
    return {"rank": sum(ranks), "cap": attention_cap(depth, width, tokens, tokens), "largest_part": max(ranks)}


def interpolation(nodes: list[int], modulus: Modulus) -> Tensor:
    """The matrix that takes the values of a polynomial at the nodes to its coefficients, the constant first."""
    p, size = modulus.p, len(nodes)
    whole = [1]  # Π (t − node)
    for node in nodes:
        whole = [(high - node * low) % p for high, low in zip([0, *whole], [*whole, 0], strict=True)]
    columns = []
    for node in nodes:
        quotient, carry = [0] * size, 0  # of the product by t − node
        for power in range(size, 0, -1):
            carry = (whole[power] + node * carry) % p
            quotient[power - 1] = carry
        value = 0
        for coefficient in reversed(quotient):
            value = (value * node + coefficient) % p
        scale = pow(value, -1, p)
        columns.append([coefficient * scale % p for coefficient in quotient])
    return modulus.centred(torch.tensor(columns)).T.contiguous()
