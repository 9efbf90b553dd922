"""One attention head as a memory, its weights written down: how many pairs of a key and a value it tells apart.

Each pair is one token, its key beside its value (2d numbers). W_K reads the key, W_V the value, W_Q the key times a
sharpness; nothing is trained. A question is a token with no value and a key at a given cosine to the one it means; the
answer is the stored value nearest to what the head gives out. `theory.associative_memory` predicts both curves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy import optimize
from torch import Tensor

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.nets.contract import choice
from theodolite.nets.parts.attention_weights import sparsemax
from theodolite.nets.transformer import attention
from theodolite.statistics.bootstrap import percentile_interval, resampled_means
from theodolite.statistics.intervals import wilson
from theodolite.theory.associative_memory import linear_capacity, linear_recall, sharp_capacity, sharp_recall

KINDS = ("softmax", "sparsemax", "linear")
_RESAMPLES = 400  # of the draws, for the interval of the capacity

Mix = Callable[[Tensor, Tensor, Tensor], Tensor]


def measure_associative_memory(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: kind, width, likeness, pairs (a list, ascending), and optionally questions, draws, sharpness, recall.

    In every draw keys, values and questions are new; the memory of P pairs holds the first P. `sharpness` times the
    width is the inverse temperature of the two kinds that have one.
    """
    kind, width, likeness = config["kind"], config["width"], config["likeness"]
    choice("kind", kind, KINDS)
    pairs = list(config["pairs"])
    if not pairs or pairs != sorted(set(pairs)) or pairs[0] < 1:
        raise BadInput(f"pairs = {pairs} must be numbers from 1 on in ascending order")
    questions, draws, target = config.get("questions", 250), config.get("draws", 8), config.get("recall", 0.99)
    recall = linear_recall if kind == "linear" else sharp_recall
    capacity = linear_capacity if kind == "linear" else sharp_capacity
    predicted = [recall(p, width, likeness) for p in pairs]  # refuses a width or likeness that cannot be
    beta = width * config.get("sharpness", 4.0)
    device = resolve_device(device)
    right = []
    for draw in range(draws):
        generator = torch.Generator(device).manual_seed(seed_of([seed, draw]))
        right.append(recalled(kind, width, likeness, pairs, questions, beta, generator))
    asked = [draws * min(questions, p) for p in pairs]
    hits = [sum(each) for each in zip(*right, strict=True)]
    shares = [h / n for h, n in zip(hits, asked, strict=True)]
    resampled = resampled_means(right, np.random.default_rng(seed_of([seed, "resample"])), _RESAMPLES)
    crossings = [crossing(pairs, draws * each / asked, target) for each in resampled]
    found = [c for c in crossings if c is not None]
    return {
        "pairs": pairs,
        "recall": shares,
        "intervals": [wilson(h, n) for h, n in zip(hits, asked, strict=True)],
        "predicted": predicted,
        "capacity": crossing(pairs, shares, target),
        "interval": list(percentile_interval(found)) if len(found) == _RESAMPLES else None,
        "predicted_capacity": capacity(width, likeness, target),
    }


def recalled(
    kind: str,
    width: int,
    likeness: float,
    pairs: Sequence[int],
    questions: int,
    beta: float,
    generator: torch.Generator,
) -> list[int]:
    """How many questions are answered right with the first P pairs in memory, for every P; of min(questions, P)."""
    device = generator.device
    keys, values, noise = (
        _unit(torch.randn(count, width, generator=generator, device=device))
        for count in (pairs[-1], pairs[-1], min(questions, pairs[-1]))
    )
    meant = keys[: len(noise)]
    beside = _unit(noise - (noise * meant).sum(dim=-1, keepdim=True) * meant)
    asked = likeness * meant + math.sqrt(1 - likeness**2) * beside
    found = []
    for count in pairs:
        rows = min(questions, count)
        tokens = torch.cat((keys[:count], values[:count]), dim=-1)
        answers = head(asked[:rows], tokens, kind, beta) @ values[:count].T
        found.append(int((answers.argmax(dim=-1) == torch.arange(rows, device=device)).sum()))
    return found


def head(
    questions: Float[Tensor, "question width"], tokens: Float[Tensor, "pair both"], kind: str, beta: float
) -> Float[Tensor, "question width"]:
    """What one attention head gives out for every question over the tokens of a memory."""
    width = questions.shape[-1]
    eye, nothing = torch.eye(width, device=tokens.device), torch.zeros(width, width, device=tokens.device)
    reads_key, reads_value = torch.cat((eye, nothing)), torch.cat((nothing, eye))
    asking = torch.cat((questions, torch.zeros_like(questions)), dim=-1)
    mix = _MIXES[kind]
    scale = math.sqrt(width) * (beta if kind != "linear" else 1.0)  # attention divides by √d
    query, key, value = asking @ (scale * reads_key), tokens @ reads_key, tokens @ reads_value
    return mix(query[None, None], key[None, None], value[None, None])[0, 0]


def _hebbian(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Σ_j ⟨q, k_j⟩ v_j, all pairs in one matrix."""
    return query / math.sqrt(query.shape[-1]) @ (key.transpose(-1, -2) @ value)


_MIXES: dict[str, Mix] = {
    "softmax": attention,
    "sparsemax": partial(attention, weigh=sparsemax),
    "linear": _hebbian,
}


def crossing(pairs: Sequence[int], recall: Sequence[float] | np.ndarray, target: float) -> float | None:
    """The number of pairs at which recall falls below the target: interpolated over log pairs, made monotone before.

    None where it never does, or is below from the start: the numbers of pairs do not reach to the capacity.
    """
    falling = optimize.isotonic_regression(np.asarray(recall), increasing=False).x
    for (few, high), (many, low) in pairwise(zip(pairs, falling.tolist(), strict=True)):
        if high >= target > low:
            share = (high - target) / (high - low)
            return math.exp(math.log(few) + share * (math.log(many) - math.log(few)))
    return None


def _unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)
