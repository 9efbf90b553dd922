"""One network trained the way everybody trains one: the truth that stacked members are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.tasks.contract import Batch, TaskSpec
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import Pairing
from theodolite.training.program import Batching, Program

CPU = torch.device("cpu")
LOOP = Batching(1, batched=False)


def lively(pairing: Pairing, scale: float = 3.0) -> Pairing:
    """With larger weights: fresh ones of a polynomial net have hardly any gradient to compare."""

    def build(seed: int) -> nn.Module:
        module = pairing.build(seed)
        for parameter in module.parameters():
            parameter.data *= scale
        return module

    return replace(pairing, build=build)


def batches(pairing: Pairing, members: int, count: int = 4, rows: int = 6, device: torch.device = CPU) -> list[Batch]:
    """Lengths go up and down over the range of training."""
    generator = torch.Generator(device).manual_seed(7)
    spec = pairing.task.spec
    drawn = []
    for i in range(count):
        length = None if spec.lengths is None else spec.lengths[0] + (3 * i) % (spec.lengths[1] - spec.lengths[0] + 1)
        drawn.append(pairing.task.sample(members, rows, length, generator))
    return drawn


def program(
    pairing: Pairing,
    rates: Sequence[Rates],
    rule: Rule,
    batching: Batching,
    device: torch.device = CPU,
) -> Program:
    members = Members(pairing, [pairing.build(seed) for seed in range(len(rates))], device, batching.batched)
    return Program(members, Optimiser(rule, rates, members.parameters), batching, device)


def weights(program: Program) -> dict[str, Tensor]:
    return {n: t.clone() for n, t in (program.members.parameters | program.members.buffers).items()}


def train_single(pairing: Pairing, member: int, rates: Rates, rule: Rule, drawn: Sequence[Batch]) -> nn.Module:
    """`torch.optim`, `backward` and `clip_grad_norm_`."""
    module = pairing.build(member).train()
    trained = [p for p in module.parameters() if p.requires_grad]
    if rule.name == "adamw":
        optimiser = torch.optim.AdamW(
            trained, rates.lr, betas=rule.betas, eps=rule.epsilon, weight_decay=rates.weight_decay
        )
    else:
        optimiser = torch.optim.SGD(trained, rates.lr, momentum=rule.momentum, weight_decay=rates.weight_decay)
    for batch in drawn:
        optimiser.zero_grad(set_to_none=False)
        inputs, targets, mask = (t[member] for t in (batch.inputs, batch.targets, batch.mask))
        vocab = pairing.task.spec.vocab
        read = inputs if vocab is None or pairing.reads_ids else F.one_hot(inputs, vocab).float()
        plain_loss(pairing.task.spec, module(read), targets, mask).backward()
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if rule.clip is not None:
            nn.utils.clip_grad_norm_(trained, rule.clip)
        optimiser.step()
    return module


def plain_loss(spec: TaskSpec, outputs: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Of one network, over the scored positions alone."""
    if spec.loss == "cross-entropy":
        return F.cross_entropy(outputs[mask], targets[mask])
    if spec.loss == "hinge":
        return (1 - outputs[mask] * targets[mask]).clamp(min=0).mean()
    return F.mse_loss(outputs[mask], targets[mask])


def assert_same_moves(found: Program, singles: Sequence[nn.Module], pairing: Pairing, close: float = 2e-4) -> None:
    """Weights after training agree, measured against how far training moved them: standing still would not pass."""
    for member, single in enumerate(singles):
        before = dict(pairing.build(member).named_parameters())
        after = {n: p.detach() for n, p in single.named_parameters()}
        moved = {n: after[n] - before[n].detach() for n in found.members.trained}
        scale = max(float(m.abs().max()) for m in moved.values())
        assert scale > 1e-4, "training did not move the weights, so there is nothing to compare"
        for name in found.members.trained:
            mine = found.members.parameters[name][member].cpu() - before[name].detach()
            torch.testing.assert_close(mine, moved[name], rtol=0, atol=close * scale, msg=lambda m, n=name: f"{n}: {m}")
        for name, buffer in found.members.buffers.items():
            told = after.get(name, dict(single.named_buffers()).get(name))
            assert told is not None
            torch.testing.assert_close(buffer[member].cpu(), told, rtol=1e-5, atol=1e-6)
