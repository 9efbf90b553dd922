"""Running out of memory halves the chunk and changes nothing else; torch is made to run out where a test says so."""

from __future__ import annotations

import logging
import weakref

import pytest
import torch

from theodolite.errors import NotEnoughMemory
from theodolite.tasks.contract import make_task
from theodolite.training.members import Members
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.pairing import pair
from theodolite.training.program import Batching

from .plain import LOOP, batches, program, weights

RATES = [Rates(1e-2, 0.0)] * 3 + [Rates(3e-2, 0.1)] * 5
PAIRING = pair("mlp", make_task("parity", {"bits": 6, "relevant": 2}), {"width": 8})
DRAWN = batches(PAIRING, 8, count=6)
WHOLE = Batching(8, batched=True)


class Memory:
    """Holds `room` members in a call, from call number `since` on; keeps the sizes of the calls that fitted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, since: int = 0, words: str | None = None):
        self.calls, self.sizes = 0, []
        self.left: list[weakref.ref] = []
        real = Members.outputs

        def outputs(members, weights, start, stop, inputs, present):
            self.calls += 1
            assert not [left for left in self.left if left() is not None], "what the failed call held is still there"
            if self.calls > since and stop - start > room:
                activations = torch.zeros(3)
                self.left.append(weakref.ref(activations))
                raise RuntimeError(words) if words else torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
            self.sizes.append(stop - start)
            return real(members, weights, start, stop, inputs, present)

        monkeypatch.setattr(Members, "outputs", outputs)


def trained_without_trouble(rule: Rule) -> dict[str, torch.Tensor]:
    undisturbed = program(PAIRING, RATES, rule, WHOLE)
    undisturbed.train(DRAWN, 1)
    return weights(undisturbed)


@pytest.mark.parametrize("since", [0, 1, 4], ids=["at once", "at the second step", "late in the block"])
@pytest.mark.parametrize("room", [1, 2, 3, 5])
@pytest.mark.parametrize("rule", [Rule("adamw", epsilon=1e-3), Rule("sgd")], ids=["adamw", "sgd"])
def test_a_smaller_chunk_gives_the_same_weights(monkeypatch, caplog, rule, room, since):
    expected = trained_without_trouble(rule)
    found = program(PAIRING, RATES, rule, WHOLE)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        memory = Memory(patch, room, since)
        found.train(DRAWN, 1)
    assert max(memory.sizes[since:]) <= room
    assert sum(memory.sizes) == 8 * len(DRAWN), "every member takes every step once"
    assert found.batching.chunk <= room
    assert found.batching.batched
    assert "out of memory with 8 members at once: going on with 4" in caplog.text
    for name, tensor in weights(found).items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6)


def test_the_smaller_chunk_is_remembered(monkeypatch):
    found = program(PAIRING, RATES, Rule("sgd"), WHOLE)
    memory = Memory(monkeypatch, room=3)
    found.train(DRAWN, 1)
    failed = memory.calls - len(memory.sizes)
    found.train(DRAWN, 7)
    assert memory.calls - len(memory.sizes) == failed
    assert str(found.batching) == "ensemble of 2"


def test_evaluation_shrinks_too(monkeypatch):
    found = program(PAIRING, RATES, Rule("sgd"), WHOLE)
    expected = torch.cat([o for _, _, o in found.outputs(DRAWN[0].inputs)])
    memory = Memory(monkeypatch, room=3)
    parts = list(found.outputs(DRAWN[0].inputs))
    assert [b - a for a, b, _ in parts] == [2, 2, 2, 2] == memory.sizes
    torch.testing.assert_close(torch.cat([o for _, _, o in parts]), expected, rtol=1e-5, atol=1e-6)


def test_a_member_that_does_not_fit_alone_is_told_in_a_sentence(monkeypatch):
    found = program(PAIRING, RATES, Rule("sgd"), WHOLE)
    Memory(monkeypatch, room=0)
    with pytest.raises(NotEnoughMemory, match=r"one member of 'mlp' alone does not fit .* cpu: use a smaller"):
        found.train(DRAWN, 1)
    with pytest.raises(NotEnoughMemory, match="one member of 'mlp'"):
        list(found.outputs(DRAWN[0].inputs))


def test_so_it_is_in_the_loop(monkeypatch):
    found = program(PAIRING, RATES, Rule("sgd"), LOOP)

    def forward(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(found.members.module, "forward", forward)
    with pytest.raises(NotEnoughMemory, match="one member of 'mlp'"):
        found.train(DRAWN, 1)
    with pytest.raises(NotEnoughMemory, match="one member of 'mlp'"):
        list(found.outputs(DRAWN[0].inputs))


def test_the_allocator_of_the_cpu_is_understood(monkeypatch):
    words = "[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried"
    found = program(PAIRING, RATES, Rule("sgd"), WHOLE)
    memory = Memory(monkeypatch, room=4, words=words)
    found.train(DRAWN, 1)
    assert set(memory.sizes) == {4}


def test_torch_really_says_so_on_the_cpu():
    """The words above, from the allocator itself."""
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        torch.empty(1 << 60, dtype=torch.int8)


@pytest.mark.parametrize("batching", [WHOLE, LOOP], ids=str)
def test_other_errors_pass_through(monkeypatch, batching):
    found = program(PAIRING, RATES, Rule("sgd"), batching)

    def forward(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(found.members.module, "forward", forward)
    for run in (lambda: found.train(DRAWN, 1), lambda: list(found.outputs(DRAWN[0].inputs))):
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            run()
    assert found.batching == batching
