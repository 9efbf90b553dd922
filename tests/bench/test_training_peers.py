"""The peers of benchmarks/training.py train the nets that we train: from the same weights and batches, the loss after
three steps is ours."""

from __future__ import annotations

import pytest
import torch
from benchmarks.compiled_peer import CompiledPeer

from theodolite.tasks import make_task
from theodolite.tasks.contract import Batch
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import Pairing, pair
from theodolite.training.program import Batching, Program
from theodolite.training.scoring import losses

CPU = torch.device("cpu")
MEMBERS, STEPS = 3, 3
RULE, RATES = Rule(clip=None), Rates(lr=1e-2, weight_decay=0.1)
NETS = {
    "mlp": {"depth": 3, "width": 7},
    "rnn": {"depth": 2, "width": 5},
    "lstm": {"depth": 2, "width": 5},
    "transformer": {"depth": 2, "width": 20, "heads": 4},  # heads of odd width: one number is in no pair
}


def fitted(net: str) -> Pairing:
    task = make_task("parity", {"bits": 6}) if net == "mlp" else make_task("copy", {"shortest": 4, "longest": 4})
    return pair(net, task, NETS[net])


def start(pairing: Pairing) -> tuple[Program, list[Batch]]:
    stacked = Members(pairing, [pairing.build(seed) for seed in range(MEMBERS)], CPU, batched=True)
    optimiser = Optimiser(RULE, [RATES] * MEMBERS, stacked.parameters)
    generator = torch.Generator().manual_seed(0)
    length = None if pairing.task.spec.lengths is None else 4
    batches = [pairing.task.sample(MEMBERS, 8, length, generator) for _ in range(STEPS + 1)]
    return Program(stacked, optimiser, Batching(MEMBERS, batched=True), CPU), batches


def ours(program: Program, batches: list[Batch]) -> torch.Tensor:
    """The losses of the last batch after one step on each of the others."""
    program.train(batches[:-1], 1)
    outputs = torch.cat([found for _, _, found in program.outputs(batches[-1].inputs)])
    return losses(program.members.pairing.task.spec, outputs, batches[-1])


@pytest.mark.parametrize("unrolled", [False, True])
@pytest.mark.parametrize("net", NETS)
def test_jax_trains_the_same_net(net, unrolled):
    pytest.importorskip("jax")
    from benchmarks.jax_peer import RECURRENT, JaxPeer

    if unrolled and net not in RECURRENT:
        pytest.skip("there is no loop over tokens")
    pairing = fitted(net)
    program, batches = start(pairing)
    spec, weights = pairing.task.spec, program.members.parameters
    peer = JaxPeer(net, pairing.shape, spec, weights, batches, RULE, RATES, CPU, unrolled=unrolled)
    peer.run()
    torch.testing.assert_close(torch.tensor(peer.losses()[-1]), ours(program, batches), rtol=1e-4, atol=0)


@pytest.mark.parametrize("net", NETS)
def test_a_compiled_step_trains_the_same_net(net):
    pairing = fitted(net)
    program, batches = start(pairing)
    peer = CompiledPeer(pairing, program.members.parameters, batches, RULE, RATES, CPU, backend="aot_eager")
    peer.run()
    torch.testing.assert_close(peer.losses()[-1], ours(program, batches), rtol=1e-4, atol=0)
