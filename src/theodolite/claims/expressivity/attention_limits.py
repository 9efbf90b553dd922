"""Cross-entropy of explicit attention networks over the length: right at every length, and how surely (claim G14)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.witness.dyck_attention import DyckAttention
from theodolite.witness.soft_attention import Language, SoftAttention, predicted_logit, target

ALL_UP_TO = 12  # bits up to which every input is tried
_AT_ONCE = 2**22  # numbers computed at once


def soft_attention_curve(
    language: Language,
    epsilon: float | None = None,
    lengths: Sequence[int] = (10, 100, 1000),
    inputs: int = 256,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> list[dict[str, Any]]:
    """By length: cross-entropy in bits over uniform inputs (all of them up to 12 bits), the accuracy over these and
    over extreme ones (no one, a single one at either end, all ones), and the least size of a logit, with theory's."""
    _check(lengths, inputs)
    device = resolve_device(device)
    module = SoftAttention(language, epsilon).to(device)
    rows = []
    for n in lengths:
        generator = torch.Generator().manual_seed(seed_of(["soft attention", seed, n]))
        every = n <= ALL_UP_TO
        bits = _every(n) if every else torch.randint(2, (inputs, n), generator=generator)
        scores = _signed(module, bits.to(device), language)
        extreme = _signed(module, _extreme(n).to(device), language)
        both = torch.cat((scores, extreme))
        predicted = [predicted_logit(language, n, answer, epsilon) for answer in (False, True)]
        rows.append(
            {
                "tokens": n,
                "cross_entropy": float((-F.logsigmoid(scores) / math.log(2)).mean()),
                "accuracy": float((both > 0).double().mean()),
                "least_logit": float(both.min()),
                "predicted_logit": None if predicted[0] is None else min(p for p in predicted if p is not None),
                "inputs": len(bits),
                "all_inputs": every,
            }
        )
    return rows


def dyck_curve(
    bounded: bool,
    types: int = 2,
    lengths: Sequence[int] = (11, 101, 1001),
    inputs: int = 64,
    sharpness: float = 60.0,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> list[dict[str, Any]]:
    """By length: how surely the last token tells the type of the bracket opened first, with pairs of drawn types
    closed in between. `bounded`: one sharpness for all lengths; otherwise one that grows with the length."""
    _check(lengths, inputs)
    device = resolve_device(device)
    rows = []
    for n in lengths:
        generator = torch.Generator().manual_seed(seed_of(["dyck", seed, n]))
        first = torch.arange(inputs) % types
        inner = torch.randint(types, (inputs, (n - 1) // 2), generator=generator)
        ids = torch.cat((first.unsqueeze(1), torch.stack((inner, inner + types), dim=-1).flatten(1)), dim=1)
        net = DyckAttention(types, 2, 0.0, sharpness) if bounded else DyckAttention.exact(types, 2, n)
        with torch.no_grad():
            parts = [
                net(F.one_hot(part.to(device), 2 * types).double())[:, -1] for part in _parts(ids, ids.shape[1] ** 2)
            ]
        scores, answers = torch.cat(parts), first.to(device)
        rows.append(
            {
                "tokens": ids.shape[1],
                "cross_entropy": float(F.cross_entropy(scores[:, :types], answers) / math.log(2)),
                "accuracy": float((scores.argmax(dim=-1) == answers).double().mean()),
                "inputs": inputs,
            }
        )
    return rows


def _signed(module: SoftAttention, bits: Tensor, language: Language) -> Tensor:
    """Logits, positive where they are right."""
    with torch.no_grad():
        scores = torch.cat([module(part) for part in _parts(bits, 40 * (bits.shape[1] + 1))])
    return torch.where(target(language, bits), scores, -scores)


def _parts(rows: Tensor, each: int) -> Iterator[Tensor]:
    """`each`: numbers that one row needs at once."""
    yield from rows.split(max(1, _AT_ONCE // each))


def _every(n: int) -> Tensor:
    return torch.tensor(list(itertools.product((0, 1), repeat=n)))


def _extreme(n: int) -> Tensor:
    rows = torch.zeros(6, n, dtype=torch.long)
    rows[1], rows[2, 0], rows[3, -1], rows[4, 1:], rows[5, :-1] = 1, 1, 1, 1, 1
    return rows


def _check(lengths: Sequence[int], inputs: int) -> None:
    if not lengths or min(lengths) < 2 or inputs < 2:
        raise BadInput(f"lengths {list(lengths)} and {inputs} inputs measure nothing: use lengths and inputs from 2 on")


def measure_soft_attention(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: language, epsilon, and any option of `soft_attention_curve`."""
    return {"curve": soft_attention_curve(seed=seed, device=device, **config)}


def measure_dyck_attention(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: any option of `dyck_curve`."""
    return {"curve": dyck_curve(seed=seed, device=device, **config)}
