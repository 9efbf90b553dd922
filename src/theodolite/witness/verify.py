"""Whether a network answers as a task's independent solver does: on every input, or on drawn ones."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.tasks.contract import Task
from theodolite.witness.domain import MOST_INPUTS, SAMPLES, Block, domain_of

_EXACT = 1e-9  # of the targets' range, for real answers
_CELLS = 1 << 17  # entries of a batch that the network reads at once


@dataclass(frozen=True)
class Verification:
    """`right` is decided by `criterion`. `errors` counts inputs with a wrong answer; None where real answers are
    judged by the variance they explain. `margin` is how far the nearest answer is from being wrong: the least of
    output · sign, or of the logit above the others. Of `verified_on` inputs, `drawn` were drawn at random, the others
    listed. `error_bound` is about the drawn alone: with 95 % confidence at most this share of what they are drawn from
    is wrong; 0 where nothing was drawn, and None where no input counts as wrong."""

    right: bool
    criterion: str
    verified_on: int
    drawn: int
    exhaustive: bool
    domain: str
    errors: int | None
    margin: float | None
    error_bound: float | None
    largest_error: float | None = None
    explained_variance: float | None = None


@torch.no_grad()
def verify_network(
    module: nn.Module, task: Task, seed: int = 0, most: int = MOST_INPUTS, samples: int = SAMPLES
) -> Verification:
    """The network, in float64, against `task.solve` row by row; the domain is listed where it is small enough."""
    module = copy.deepcopy(module).double().eval()
    domain = domain_of(task, seed, most, samples)
    judge = (
        _Real(task.spec.solved) if task.spec.loss == "square" else _Sign() if task.spec.loss == "hinge" else _Class()
    )
    for block in domain.blocks():
        targets = torch.tensor([task.solve(row) for row in block.inputs.tolist()], dtype=torch.float64)
        judge.see(_answers(module, task, block), targets[:, block.mask], block.drawn)
    return judge.verdict(domain.words, domain.exhaustive)


def _answers(module: nn.Module, task: Task, block: Block) -> Tensor:
    """(row, scored position) for vectors, (row, scored position, class) for strings."""
    rows = max(1, _CELLS // block.inputs[0].numel())
    found = []
    for part in block.inputs.split(rows):
        one_hot = task.spec.vocab is not None
        out = module(F.one_hot(part, task.spec.vocab or 1).double() if one_hot else part)
        wanted = (len(part), part.shape[1], task.spec.outputs) if one_hot else (len(part), task.spec.outputs)
        if out.shape != wanted:
            raise BadInput(f"the network answers with the shape {tuple(out.shape)}, the task asks for {wanted}")
        found.append(out[:, block.mask])
    return torch.cat(found)


class _Sign:
    criterion = "the sign of every output"

    def __init__(self) -> None:
        self.rows, self.wrong, self.margin = Counter[bool](), Counter[bool](), float("inf")  # by whether they are drawn

    def see(self, answers: Tensor, targets: Tensor, drawn: bool) -> None:
        self._count(answers * targets, drawn)

    def _count(self, gaps: Tensor, drawn: bool) -> None:
        gaps = gaps.nan_to_num(nan=-torch.inf).flatten(1)
        self.rows[drawn] += len(gaps)
        self.wrong[drawn] += int((gaps <= 0).any(dim=1).sum())
        self.margin = min(self.margin, float(gaps.min()))

    def verdict(self, domain: str, exhaustive: bool) -> Verification:
        drawn, errors = self.rows[True], self.wrong.total()
        bound = upper_bound(self.wrong[True], drawn) if drawn else 0.0
        margin = self.margin if abs(self.margin) < float("inf") else None
        rows = self.rows.total()
        return Verification(errors == 0, self.criterion, rows, drawn, exhaustive, domain, errors, margin, bound)


class _Class(_Sign):
    criterion = "the largest logit at every scored position"

    def see(self, answers: Tensor, targets: Tensor, drawn: bool) -> None:
        places = targets.long().unsqueeze(-1)
        own = answers.gather(-1, places).squeeze(-1)
        others = answers.scatter(-1, places, -torch.inf).amax(dim=-1)
        self._count(own - others, drawn)


class _Real:
    def __init__(self, solved: float) -> None:
        self.solved = solved
        self.answers: list[Tensor] = []
        self.targets: list[Tensor] = []

    def see(self, answers: Tensor, targets: Tensor, _drawn: bool) -> None:
        self.answers.append(answers)
        self.targets.append(targets)

    def verdict(self, domain: str, exhaustive: bool) -> Verification:
        answers, targets = torch.cat(self.answers), torch.cat(self.targets)
        off = (answers - targets).nan_to_num(nan=torch.inf).abs()
        spread = float(targets.max() - targets.min())
        wrong = int((off > _EXACT * spread).any(dim=1).sum())
        explained = 1 - float((off**2).mean()) / float(targets.var(correction=0))
        finite = explained if abs(explained) < float("inf") else None
        largest = float(off.max()) if bool(off.isfinite().all()) else None
        rows = len(targets)  # real inputs: all are drawn
        if wrong == 0:
            rule, bound = f"every output to {_EXACT:g} of the range", upper_bound(0, rows)
            return Verification(True, rule, rows, rows, exhaustive, domain, 0, None, bound, largest, finite)
        rule = f"{self.solved:.0%} of the variance explained on drawn inputs"
        right = explained >= self.solved
        return Verification(right, rule, rows, rows, exhaustive, domain, None, None, None, largest, finite)


def upper_bound(errors: int, samples: int, confidence: float = 0.95) -> float:
    """Clopper and Pearson's upper bound on a share of which `errors` of `samples` were seen; near 3/n for none."""
    if errors >= samples:
        return 1.0
    from scipy.stats import beta

    return float(beta.ppf(confidence, errors + 1, samples - errors))
