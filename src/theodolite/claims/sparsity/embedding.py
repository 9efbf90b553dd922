"""A convolution written as a fully connected layer of the same function, and trained on as one.

d'Ascoli, Sagun, Biroli and Bruna 2019: a convolutional network is a point in the space of fully connected ones, with
most weights 0 and the rest tied. Training from there, untied and free, starts from its locality and need not keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from theodolite.claims.sparsity import dense
from theodolite.claims.sparsity.images import labelled
from theodolite.claims.sparsity.penalties import Penalty
from theodolite.claims.sparsity.sparse_training import Examples, Plan, train_sparsely
from theodolite.device import resolve_device
from theodolite.training.step import Weights

SIDE = 8  # of the images
WINDOW = 3
PLACES = (SIDE - WINDOW + 1) ** 2


def measure_embedded_convolution(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """config: data (digits or patterns), examples, seeds, channels, pooled, steps, lr, batch, l2, early (steps of the
    convolutional network before it is embedded). Test accuracies: the convolutional network after all steps, the
    embedded one after the rest of them, and a fully connected one of the same size from scratch.
    """
    generator = torch.Generator(resolve_device(device)).manual_seed(seed)
    data = labelled(config["data"], config["seeds"], config["examples"], generator)
    penalty, plan = Penalty("l2", config["l2"]), Plan(config["steps"], config["lr"])
    examples = Examples(*data.train, config["batch"], generator)

    def train(weights: Weights, convolutional: bool, begin: int = 0, end: int | None = None) -> Weights:
        loss = _convolutional_loss if convolutional else dense.cross_entropy
        return train_sparsely(weights, loss, examples, plan, penalty, dense.matrices(weights), None, begin, end)

    initial = start_convolution(config["channels"], data.classes, config["seeds"], config["pooled"], generator)
    early = train(initial, True, 0, config["early"])
    embedded = embed(early)
    x, labels = data.test
    with torch.no_grad():
        gap = float((run_convolution(early, x) - dense.run(embedded, x)).abs().max())
    hidden = embedded["0.weight"].shape[-1]
    scratch = dense.start([data.inputs, hidden, data.classes], config["seeds"], generator)
    after = train(embedded, False, config["early"])
    return {
        "gap": gap,
        "units": hidden,
        "convolution": _score(train(early, True, config["early"]), x, labels, run_convolution),
        "early convolution": _score(early, x, labels, run_convolution),
        "embedded": _score(after, x, labels, dense.run),
        "scratch": _score(train(scratch, False), x, labels, dense.run),
        "weight outside the windows": _outside(after, embedded),
    }


def start_convolution(channels: int, classes: int, members: int, pooled: bool, generator: torch.Generator) -> Weights:
    """One layer of 3×3 windows without padding, then one output per class from what they say: of every place for
    itself, or `pooled`, which is the mean over places."""
    weights = dense.start([WINDOW**2, channels], members, generator)
    top = dense.start([channels * (1 if pooled else PLACES), classes], members, generator)
    return {**weights, "1.weight": top["0.weight"], "1.bias": top["0.bias"]}


def run_convolution(
    weights: Mapping[str, Tensor], x: Float[Tensor, "member example pixel"]
) -> Float[Tensor, "member example class"]:
    """Units stand channel by channel, those of a channel in reading order: as in the embedded layer."""
    members, examples, _ = x.shape
    windows = functional.unfold(x.reshape(-1, 1, SIDE, SIDE), WINDOW).view(members, examples, WINDOW**2, -1)
    said = torch.einsum("mexp,mxc->mecp", windows, weights["0.weight"]) + weights["0.bias"].unsqueeze(-1)
    return torch.baddbmm(weights["1.bias"], torch.relu(said).flatten(2), _readout(weights))


def embed(weights: Mapping[str, Tensor]) -> Weights:
    """The same function as a dense network: every unit of a window becomes a unit with weights of its own."""
    kernel = weights["0.weight"]  # (member, window, channel)
    members, _, channels = kernel.shape
    row = torch.arange(SIDE - WINDOW + 1, device=kernel.device)
    corners = (row[:, None] * SIDE + row).flatten()  # the first pixel of every window
    within = torch.arange(WINDOW**2, device=kernel.device)
    pixels = corners[:, None] + within // WINDOW * SIDE + within % WINDOW  # (place, window)
    matrix = torch.zeros(members, channels, len(corners), SIDE**2, device=kernel.device, dtype=kernel.dtype)
    values = kernel.mT.unsqueeze(2).expand(-1, -1, len(corners), -1)
    matrix.scatter_(3, pixels.expand(members, channels, -1, -1), values)
    return {
        "0.weight": matrix.flatten(1, 2).mT.contiguous(),
        "0.bias": weights["0.bias"].repeat_interleave(len(corners), dim=-1),
        "1.weight": _readout(weights),
        "1.bias": weights["1.bias"],
    }


def _readout(weights: Mapping[str, Tensor]) -> Tensor:
    """(member, unit, class): that of a pooled network is the same at all places."""
    top = weights["1.weight"]
    pooled = top.shape[1] == weights["0.weight"].shape[2]
    return top.repeat_interleave(PLACES, dim=1) / PLACES if pooled else top


def _convolutional_loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
    x, labels = batch
    return -run_convolution(weights, x).log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1).mean(-1)


@torch.no_grad()
def _score(weights: Weights, x: Tensor, labels: Tensor, run: Any) -> list[float]:
    return (run(weights, x).argmax(-1) == labels).float().mean(-1).tolist()


def _outside(after: Weights, before: Weights) -> list[float]:
    """The share of the first layer's squared weights that lies where the convolution had none."""
    squares = after["0.weight"].square()
    return ((squares * (before["0.weight"] == 0)).sum((1, 2)) / squares.sum((1, 2))).tolist()
