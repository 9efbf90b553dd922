"""AdamW of stacked members by its kernel beside `torch.optim.AdamW` and `clip_grad_norm_` of each member alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import torch
from torch import Tensor, nn

from tests.kernels.interpreted import mend_interpreter
from theodolite.kernels.update import AdamUpdate
from theodolite.training.optimiser import Optimiser, Pace, Rates, Rule

SHAPES = {"matrix": (33, 40), "vector": (1030,), "scalar": (), "cube": (2, 3, 4), "row": (1, 40)}
RATES = [Rates(1e-2), Rates(3e-2, 0.1), Rates(1e-3, 0.3)]
MEMBERS, STEPS = len(RATES), 3
CLIPPED = Rule()

Laid = Callable[[Tensor], Tensor]


def plain(values: Tensor) -> Tensor:
    return values.contiguous()


def transposed(values: Tensor) -> Tensor:
    return values.mT.contiguous().mT if values.dim() > 2 else values.contiguous()


def members_last(values: Tensor) -> Tensor:
    return values.movedim(0, -1).contiguous().movedim(-1, 0)


@dataclass(frozen=True)
class Case:
    rule: Rule = CLIPPED
    parameters: Laid = plain
    gradients: Laid = plain
    borders: tuple[int, ...] = (0, MEMBERS)
    factor: float | Tensor = 1.0
    shapes: tuple[str, ...] = tuple(SHAPES)


CASES = {
    "in order": Case(),
    "not clipped, both transposed": Case(Rule(clip=None, betas=(0.8, 0.95), epsilon=1e-4), transposed, transposed),
    "no momentum, parameters transposed": Case(Rule(betas=(0.0, 0.999)), transposed, factor=0.5),
    "gradients transposed, a factor on the device": Case(gradients=transposed, factor=torch.tensor(0.5)),
    "members last, in chunks": Case(parameters=transposed, gradients=members_last, borders=(0, 1, MEMBERS)),
    "one tensor": Case(shapes=("matrix",), gradients=transposed),
}


def drawn(case: Case, draw: torch.Generator, device: str, scale: float = 1.0) -> dict[str, Tensor]:
    return {n: (scale * torch.randn(MEMBERS, *SHAPES[n], generator=draw)).to(device) for n in case.shapes}


def errors(device: str) -> dict[str, float]:
    """The largest difference of an entry after several steps, some of them with gradients too long."""
    return {name: error(case, device) for name, case in CASES.items()}


def error(case: Case, device: str) -> float:
    draw = torch.Generator().manual_seed(0)
    rule, factor = case.rule, case.factor.to(device) if isinstance(case.factor, Tensor) else case.factor
    stacked = {n: case.parameters(p) for n, p in drawn(case, draw, device).items()}
    alone = [[nn.Parameter(p[k].clone()) for p in stacked.values()] for k in range(MEMBERS)]
    theirs = [
        torch.optim.AdamW(own, r.lr * float(factor), rule.betas, rule.epsilon, r.weight_decay, foreach=False)
        for own, r in zip(alone, RATES, strict=True)
    ]
    mine = Optimiser(rule, RATES, stacked)
    with patch.object(AdamUpdate, "step", autospec=True, side_effect=AdamUpdate.step) as ran:
        for step in range(1, STEPS + 1):
            gradients = drawn(case, draw, device, scale=0.01 if step % 2 else 1.0)
            for k in range(MEMBERS):
                for parameter, gradient in zip(alone[k], gradients.values(), strict=True):
                    parameter.grad = gradient[k].clone()
                if rule.clip is not None:
                    nn.utils.clip_grad_norm_(alone[k], rule.clip)
                theirs[k].step()
            for start, stop in zip(case.borders, case.borders[1:], strict=False):
                own = [case.gradients(g[start:stop]) for g in gradients.values()]
                mine.update(start, stop, own, Pace(torch.full((), float(step), device=device), factor))
    assert ran.call_count == STEPS * (len(case.borders) - 1), "another way was taken"
    pairs = [(p[k], q.detach()) for k in range(MEMBERS) for p, q in zip(stacked.values(), alone[k], strict=True)]
    return max((p - q).abs().max().item() for p, q in pairs)


def early(device: str) -> float:
    """Early ε against the same rule tensor by tensor, and members that are kept."""
    rule, found = Rule(early_epsilon=True, epsilon=0.1), []
    for by_kernel in (True, False):
        draw, case = torch.Generator().manual_seed(1), Case()
        own = drawn(case, draw, device)
        optimiser = Optimiser(rule, RATES, own)
        with patch.object(AdamUpdate, "usable", lambda _, yes=by_kernel: yes):
            for step in range(1, STEPS + 1):
                if step == STEPS:
                    kept = torch.tensor([2, 0], device=device)
                    own = {n: p[kept] for n, p in own.items()}
                    optimiser.keep(kept, own)
                gradients = [g[: len(optimiser.rates)] for g in drawn(case, draw, device).values()]
                optimiser.update(0, len(optimiser.rates), gradients, Pace(torch.full((), float(step), device=device)))
        found.append(own)
    return max((found[0][n] - found[1][n]).abs().max().item() for n in SHAPES)


def spoilt(device: str) -> list[bool]:
    """Which members are no numbers after a gradient of one was none."""
    own = {n: torch.ones(3, 4, device=device) for n in "ab"}
    gradient = torch.ones(3, 4, device=device)
    gradient[1, 2] = torch.nan
    Optimiser(Rule(), [Rates(0.1)] * 3, own).update(0, 3, [gradient, torch.ones_like(gradient)], _first(device))
    return own["b"].isnan().all(dim=1).tolist()


def _first(device: str) -> Pace:
    return Pace(torch.ones((), device=device))


if __name__ == "__main__":
    mend_interpreter()
    print(json.dumps({"errors": errors("cpu"), "early": early("cpu"), "spoilt": spoilt("cpu")}))
