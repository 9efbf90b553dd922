"""Steps of stacked perceptrons by their kernels beside plain torch: autograd, `clip_grad_norm_` and `torch.optim.AdamW`
of each member alone, in float64."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from tests.kernels.interpreted import mend_interpreter
from theodolite.kernels.launch import fusing
from theodolite.kernels.perceptron import Layer, Moving, PerceptronDescent
from theodolite.kernels.update import Adam
from theodolite.tasks import make_task
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching, Program

RATES = ((1e-2, 0.0), (3e-2, 0.1), (1e-3, 0.3))  # of a member, and its decay
MEMBERS, STEPS = len(RATES), 3


@dataclass(frozen=True)
class Case:
    sizes: tuple[int, ...] = (5, 7, 7, 1)
    rows: int = 12
    loss: str = "hinge"
    clip: float | None = 0.3
    masked: bool = False
    borders: tuple[int, ...] = (0, MEMBERS)
    early: bool = False


CASES = {
    "hinge, clipped": Case(),
    "square, not clipped, in chunks": Case(loss="square", clip=None, borders=(0, 1, MEMBERS), early=True),
    "classes, some rows do not count": Case((20, 31, 17, 5), 33, "cross-entropy", 0.1, masked=True),
    "several outputs, one hidden layer": Case((3, 32, 18), 1, "square", 1e-3, masked=False),
}


def error(case: Case, device: str, typical: bool = False) -> float:
    """The largest difference of a weight from float64, or the median one, over the largest move, of the tensor for
    which that is most."""
    draw = torch.Generator().manual_seed(0)
    sizes = list(zip(case.sizes, case.sizes[1:], strict=False))
    normal = lambda *shape: torch.randn(MEMBERS, *shape, generator=draw)
    own = [(normal(b, a) / a**0.5, normal(b)) for a, b in sizes]
    betas, epsilon = (0.8, 0.95), 1e-4
    stacked = [(w.to(device).mT.contiguous().mT, b.to(device)) for w, b in own]
    zeros = torch.zeros_like
    layers = [Layer(Moving(w, zeros(w), zeros(w)), Moving(b, zeros(b), zeros(b))) for w, b in stacked]
    descent = PerceptronDescent(Adam(betas, epsilon, case.early, case.clip), layers, case.loss)
    alone = [[nn.Parameter(p[k].double()) for pair in own for p in pair] for k in range(MEMBERS)]
    start = [[p.detach().clone() for p in each] for each in alone]
    theirs = [
        torch.optim.AdamW(each, lr, betas, epsilon, decay, foreach=False)
        for each, (lr, decay) in zip(alone, RATES, strict=True)
    ]
    lrs, decays = torch.tensor(RATES, device=device).unbind(dim=1)
    number = torch.ones((), device=device)
    for step in range(STEPS):
        inputs, targets, mask = _batch(case, draw)
        for k in range(MEMBERS):
            theirs[k].zero_grad()
            _loss(case, alone[k], inputs[k].double(), targets[k], mask[k]).backward()
            if case.clip is not None:
                nn.utils.clip_grad_norm_(alone[k], case.clip)
            if case.early:  # ε beside √v before its correction: a smaller one after it
                group, t = theirs[k].param_groups[0], step + 1
                group["eps"] = epsilon / (1 - betas[1] ** t) ** 0.5
            theirs[k].step()
        for first, last in zip(case.borders, case.borders[1:], strict=False):
            x, y, counts = (t[first:last].to(device) for t in (inputs, targets, mask))
            with fusing():
                assert descent.takes(x)
                number.fill_(step + 1)
                descent.step(first, x, y, counts, number, lrs.contiguous(), decays.contiguous())
            assert float(number) == step + 2
    mine, after = [p for pair in stacked for p in pair], [[p.detach() for p in each] for each in alone]
    most = (lambda each: each.median()) if typical else (lambda each: each.max())
    return max(
        float(most((mine[place][k].cpu() - after[k][place]).abs()) / (start[k][place] - after[k][place]).abs().max())
        for k in range(MEMBERS)
        for place in range(len(mine))
    )


def _batch(case: Case, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    shape, count = (MEMBERS, case.rows), case.sizes[-1]
    inputs = torch.randn(*shape, case.sizes[0], generator=draw)
    if case.loss == "cross-entropy":
        targets, mask = torch.randint(count, shape, generator=draw), torch.ones(shape, dtype=torch.bool)
    else:
        targets, mask = torch.randn(*shape, count, generator=draw), torch.ones(*shape, count, dtype=torch.bool)
        targets = targets.sign() if case.loss == "hinge" else targets
    if case.masked:
        mask[:, 1::3] = False
    return inputs, targets, mask


def _loss(case: Case, parameters: list[nn.Parameter], x: Tensor, targets: Tensor, mask: Tensor) -> Any:
    for place in range(0, len(parameters), 2):
        x = (x.relu() if place else x) @ parameters[place].T + parameters[place + 1]
    if case.loss == "cross-entropy":
        each = nn.functional.cross_entropy(x, targets, reduction="none")
    elif case.loss == "hinge":
        each = (1 - x * targets).relu()
    else:
        each = (x - targets).square()
    return each[mask].mean()


def spoilt(device: str) -> list[bool]:
    """Which of three members have weights that are no numbers after a step in which the second reads one."""
    weights = [torch.ones(3, b, a, device=device).mT.contiguous().mT for a, b in ((4, 6), (6, 1))]
    biases = [torch.zeros(3, b, device=device) for b in (6, 1)]
    zeros = torch.zeros_like
    layers = [
        Layer(Moving(w, zeros(w), zeros(w)), Moving(b, zeros(b), zeros(b)))
        for w, b in zip(weights, biases, strict=True)
    ]
    inputs = torch.ones(3, 8, 4, device=device)
    inputs[1, 2, 3] = torch.nan
    rates = torch.full((3,), 0.1, device=device)
    with fusing():
        PerceptronDescent(Adam((0.9, 0.999), 1e-8, False, 1.0), layers, "hinge").step(
            0, inputs, -torch.ones(3, 8, 1, device=device), torch.ones(3, 8, 1, dtype=torch.bool, device=device),
            torch.ones((), device=device), rates, zeros(rates),
        )  # fmt: skip
    return [bool(weights[0][k].isnan().any()) for k in range(3)]


def apart(net: str | type[nn.Module], device: str) -> tuple[bool, float]:
    """Whether a program takes its steps by the kernels, and how far its members are then from the same trained one by
    one, over the largest move."""
    pairing = pair(net, make_task("parity", {"bits": 6}), {"width": 9} if isinstance(net, str) else {})
    batches = [pairing.task.sample(2, 8, None, torch.Generator(device).manual_seed(1)) for _ in range(3)]
    found, taken = [], []
    for batching in (Batching(2, batched=True), Batching(1, batched=False)):
        members = Members(pairing, [pairing.build(k) for k in range(2)], torch.device(device), batching.batched)
        before = {n: p.clone() for n, p in members.parameters.items()}
        program = Program(
            members, Optimiser(Rule(), [Rates(1e-2), Rates(3e-3)], members.parameters), batching, torch.device(device)
        )
        program.train(batches, 1)
        found.append({n: p - before[n] for n, p in members.parameters.items()})
        taken.append(program.kernels is not None and program.kernels.taken)
    together, alone = found
    return taken[0], max(float((together[n] - move).abs().max() / move.abs().max()) for n, move in alone.items())


def wrong() -> tuple[bool, float]:
    """The same with a kernel that is wrong: its gradient is of other targets."""
    step = PerceptronDescent.step
    shifted = lambda self, start, x, y, *rest: step(self, start, x, -y, *rest)
    with patch.object(PerceptronDescent, "step", shifted):
        return apart("mlp", "cpu")


class Plain(nn.Sequential):
    """A user's own class: it may do anything."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__(nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, outputs))


if __name__ == "__main__":
    mend_interpreter()
    errors = {name: error(case, "cpu") for name, case in CASES.items()}
    nets = {"net": apart("mlp", "cpu"), "user": apart(Plain, "cpu"), "wrong": wrong()}
    print(json.dumps({"errors": errors, "spoilt": spoilt("cpu"), **nets}))
