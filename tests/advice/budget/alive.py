"""What torch keeps, counted as it runs: an independent truth for the formulas of memory."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from theodolite.advice.alive import AliveBytes

_KEPT = (
    torch.ops.aten.mm.default,
    torch.ops.aten.addmm.default,
    torch.ops.aten.bmm.default,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
)


def _policy(ctx: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if operation in _KEPT else CheckpointPolicy.PREFER_RECOMPUTE


class Passed(NamedTuple):
    kept: int  # bytes alive after the forward pass, beyond weights and gradients
    most: int  # and at most until the backward pass is over


def saved_bytes(model: Any, ids: torch.Tensor) -> int:
    """What autograd saves in a forward pass with its loss: each storage once, parameters and buffers left out."""
    known = {one.untyped_storage()._cdata for one in (*model.parameters(), *model.buffers())}
    found: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            found[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(ids, labels=ids, use_cache=False)
    return sum(storage.nbytes() for storage in found.values())


def pass_bytes(model: Any, ids: torch.Tensor, recompute: str) -> Passed:
    """A forward and a backward pass; gradients are there before, as where they are accumulated."""
    arguments: dict[str, Any] = {"use_reentrant": False}
    if recompute == "selective":
        arguments["context_fn"] = functools.partial(create_selective_checkpoint_contexts, _policy)
    if recompute != "none":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=arguments)
    assert isinstance(model, nn.Module)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    with AliveBytes() as alive:
        loss = model(ids, labels=ids, use_cache=False).loss
        kept = alive.now
        loss.backward()
    return Passed(kept, alive.most)
