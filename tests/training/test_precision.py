"""Products in fewer digits: who multiplies how, and what comes of it."""

from __future__ import annotations

import pytest
import torch

from tests.training.plain import CPU, LOOP, batches, program, weights
from theodolite.errors import BadInput
from theodolite.nets.contract import nets
from theodolite.tasks import make_task
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.precision import check_precision, full, multiplying
from theodolite.training.program import Batching

TASKS = {"sequence": make_task("copy", {"shortest": 3, "longest": 4}), "vector": make_task("majority", {"bits": 3})}
RULE = Rule(name="sgd", momentum=0.0, clip=None)
DOES_NOT_FIT = ("conv-circuit", "polynomial-mixer", "sum-of-products")


@pytest.mark.parametrize("batching", [Batching(2, batched=True), LOOP], ids=str)
@pytest.mark.parametrize("net", [name for name in nets if name not in DOES_NOT_FIT])
def test_every_net_trains_with_products_in_bfloat16_as_it_does_in_float32_to_two_digits(net, batching):
    pairing = pair(net, TASKS[nets[net].kind])
    rates = [Rates(1.0)] * 2
    moves = {}
    for precision in ("float32", "bf16"):
        trained = program(pairing, rates, RULE, batching)
        before = weights(trained)
        with multiplying(precision, CPU), torch.random.fork_rng([]):
            torch.manual_seed(0)
            trained.train(batches(pairing, 2, count=1), 1)
        after = weights(trained)
        assert all(t.dtype == before[n].dtype for n, t in after.items())
        moves[precision] = torch.cat([(after[n] - before[n]).flatten() for n in before])
    difference = (moves["bf16"] - moves["float32"]).norm() / moves["float32"].norm()
    assert difference < 0.2
    if net != "equilibrium":  # which solves in float32 whatever is asked
        assert difference > 1e-6, "products were not in bfloat16"


def test_what_was_set_before_is_set_afterwards():
    before = torch.backends.cuda.matmul.allow_tf32

    def broken():
        with multiplying("tf32", CPU):
            assert torch.backends.cuda.matmul.allow_tf32
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert torch.backends.cuda.matmul.allow_tf32 == before
    assert not torch.is_autocast_enabled("cpu")


def test_what_there_is_not_is_refused():
    with pytest.raises(BadInput, match="no precision 'fp8': use float32, tf32 or bf16"):
        check_precision("fp8", "cpu")
    with pytest.raises(BadInput, match="tf32 is a mode of CUDA devices and this runs on cpu: use float32 or bf16"):
        check_precision("tf32", "cpu")
    assert check_precision("bf16", "cpu") == "bf16"
    assert check_precision("tf32", "cuda:1") == "tf32"


def test_scores_are_never_computed_in_fewer_digits():
    assert full(torch.zeros(2, dtype=torch.bfloat16)).dtype == torch.float32
    assert full(torch.zeros(2, dtype=torch.float64)).dtype == torch.float64
