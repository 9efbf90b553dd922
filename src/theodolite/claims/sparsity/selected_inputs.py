"""Does self-attention select the variables of a constituent function? Targets whose inputs are known, token by token.

Every token's output is x_i · x_j of its own number and that of one partner j, and nothing else counts. Which token is
the partner is told by content (the two partners' tags are near each other in four coordinates, and four more
coordinates say nothing: a metric has to be learnt) or by place (the sibling in a binary tree over the places, or the
token before). One block of the registered Transformer is trained, all seeds side by side; then its attention is
compared with the partners it should have found, and W_Q W_Kᵀ with a metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils import vector_to_parameters

from theodolite.device import resolve_device
from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.nets.load import seeded
from theodolite.nets.parts.attention_weights import weighing
from theodolite.nets.transformer import Transformer, TransformerBlock, logits
from theodolite.training.loop import singly, train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine
from theodolite.training.stacked import stack

TARGETS = ("content", "sibling", "before")
TAG, IDLE = 4, 4  # coordinates of a tag that tell the partner, and that say nothing
_THRESHOLD = 0.1
_NOISE = 0.1  # of the second partner's tag


def draw(
    target: str, members: int, batch: int, tokens: int, generator: torch.Generator
) -> tuple[
    Float[Tensor, "member batch token feature"],
    Float[Tensor, "member batch token 1"],
    Int[Tensor, "member batch token"],
]:
    """Inputs, targets, and the partner of every token.

    features: a number, its tag, idle coordinates, and where places count a one-hot of the place.
    """
    if target not in TARGETS or tokens % 2:
        raise BadInput(
            f"the target '{target}' over {tokens} tokens is unknown: use {', '.join(TARGETS)}, an even number"
        )
    device = generator.device

    def normal(*shape: int) -> Tensor:
        return torch.randn(members, batch, *shape, generator=generator, device=device)

    number, place = normal(tokens, 1), torch.arange(tokens, device=device)
    if target == "content":
        order = torch.rand(members, batch, tokens, generator=generator, device=device).argsort(dim=-1)
        partner = torch.empty_like(order).scatter_(-1, order, order.unflatten(-1, (-1, 2)).flip(-1).flatten(-2))
        pairs = normal(tokens // 2, TAG).repeat_interleave(2, dim=2)
        tags = torch.empty_like(pairs).scatter_(2, order[..., None].expand_as(pairs), pairs)
        tags = tags + _NOISE * normal(tokens, TAG)
        x = torch.cat((number, tags, normal(tokens, IDLE)), dim=-1)
    else:
        other = place ^ 1 if target == "sibling" else (place - 1) % tokens
        partner = other.expand(members, batch, tokens)
        places = torch.eye(tokens, device=device).expand(members, batch, tokens, tokens)
        x = torch.cat(
            (number, places * math.sqrt(tokens / 2), normal(IDLE)[:, :, None].expand(-1, -1, tokens, -1)), dim=-1
        )
    return x, number * torch.take_along_dim(number, partner[..., None], dim=2), partner


def measure_selected_inputs(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """config: target, attention (softmax, thresholded, sparsemax, entmax), tokens, width, seeds, steps, batch, rate."""
    device = resolve_device(device)
    tokens, seeds = config["tokens"], config["seeds"]
    generator = torch.Generator(device).manual_seed(seed)
    features = draw(config["target"], 1, 1, tokens, torch.Generator(device).manual_seed(0))[0].shape[-1]
    members = []
    for member in range(seeds):
        with seeded(seed_of([seed, member])):
            members.append(
                Transformer(
                    features=features, depth=1, width=config["width"], heads=1, positions="none", causal=False,
                    attention=config["attention"], threshold=_THRESHOLD,
                ).to(device)
            )  # fmt: skip
    net, start = stack(members, device)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        return (net.outputs(weights["parameters"], batch[0]) - batch[1]).square().mean(dim=(1, 2, 3))

    weights = train(
        {"parameters": start},
        loss,
        singly(lambda: draw(config["target"], seeds, config["batch"], tokens, generator)[:2]),
        steps=config["steps"],
        rule=ADAM,
        rates=Rates(config["rate"]),
        schedule=cosine(config["steps"]),
        block=16,
    )
    x, y, partner = draw(config["target"], seeds, 256, tokens, generator)
    with torch.no_grad():
        error = loss(weights, (x, y)) / y.var(dim=(1, 2, 3))
    rows = []
    for member, module in enumerate(members):
        before = {f"start_{k}": v for k, v in _metric(module).items()}
        untrained = _selection(module, x[member], partner[member], config["attention"])
        vector_to_parameters(weights["parameters"][member], module.parameters())
        after = _selection(module, x[member], partner[member], config["attention"])
        rows.append({
            "unexplained": float(error[member]), **after, **_metric(module), **before,
            **{f"start_{k}": v for k, v in untrained.items()},
        })  # fmt: skip
    return {"members": rows, "uniform": 2 / tokens}


def attention_weights(
    module: Transformer, x: Float[Tensor, "batch token feature"], kind: str
) -> Float[Tensor, "batch token token"]:
    """Of the first block's first head."""
    block = _block(module)
    query, key, _ = block.split(block.before_attention(module.embed(x)), None)
    return weighing(kind, _THRESHOLD)(logits(query, key))[:, 0]


def _block(module: Transformer) -> TransformerBlock:
    block = module.blocks[0]
    assert isinstance(block, TransformerBlock)
    return block


def _selection(module: Transformer, x: Tensor, partner: Tensor, kind: str) -> dict[str, float]:
    """Attention against the constituent's variables, the token itself and its partner: its mass on both, on the
    partner, the chance that the partner has more of it than a token that is neither (AUC), and how many tokens it
    reads: exp(entropy), and those with at least a tenth of the largest weight."""
    with torch.no_grad():
        weights = attention_weights(module, x, kind)
    true = torch.zeros_like(weights).scatter_(2, partner[..., None], 1.0).bool()
    itself = torch.eye(weights.shape[-1], dtype=torch.bool, device=x.device)
    wrong = ~true & ~itself
    own = weights.masked_fill(~true, 0.0).sum(dim=-1, keepdim=True)
    above = ((own > weights) + 0.5 * (own == weights)).masked_fill(~wrong, 0.0).sum() / wrong.sum()
    entropy = -torch.where(weights > 0, weights * weights.clamp(min=1e-30).log(), 0.0).sum(dim=-1)
    return {
        "mass": float(own.mean() + weights.diagonal(dim1=1, dim2=2).mean()),
        "partner_mass": float(own.mean()),
        "auc": float(above),
        "effective": float(entropy.exp().mean()),
        "above_threshold": float((weights >= _THRESHOLD * weights.amax(dim=-1, keepdim=True)).double().sum(-1).mean()),
    }


def _metric(module: Transformer) -> dict[str, float]:
    """How far W_Q W_Kᵀ is a metric: in the block's own space, and on the tag's coordinates of the input (through the
    embedding and the norm's gains); and the idle coordinates' share of it."""
    block = _block(module)
    with torch.no_grad():
        query, key, _ = block.project.weight.double().chunk(3)
        inner = query.T @ key
        gains = block.before_attention.weight.double()
        embed = gains[:, None] * module.embed.weight.double()  # features enter by columns
        embed = embed - embed.mean(dim=0)  # the norm takes the mean away
        outer = embed.T @ inner @ embed
    tag, idle = outer[1 : 1 + TAG, 1 : 1 + TAG], outer[-IDLE:, -IDLE:]
    return {
        "positive": positive_share(inner),
        "symmetric": symmetric_share(inner),
        "tag_positive": positive_share(tag),
        "tag_symmetric": symmetric_share(tag),
        "idle": float(idle.norm() / (idle.norm() + tag.norm())),
    }


def positive_share(matrix: Float[Tensor, "n n"]) -> float:
    """Of the symmetric part: the positive eigenvalues' share of Σ|λ|; 1 for a metric, ½ on average for a random "
    "matrix."""
    values = torch.linalg.eigvalsh((matrix + matrix.T) / 2)
    return float(values.clamp(min=0).sum() / values.abs().sum())


def symmetric_share(matrix: Float[Tensor, "n n"]) -> float:
    """The symmetric part's share of ‖·‖_F²; ½ on average for a large random matrix."""
    return float(((matrix + matrix.T) / 2).square().sum() / matrix.square().sum())
