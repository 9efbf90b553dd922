"""Every foreign network meets a task without a wrapper, and answers what its author's own call answers."""

# pyright: reportArgumentType=false

from __future__ import annotations

import copy

import pytest
import torch

from tests.foreign.corpus import CORPUS, theirs
from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.training.pairing import pair, sample

CHECK = make_task("parity-check", {"longest": 6})
VECTOR = make_task("majority", {"bits": 5})


def test_there_are_thirty_and_more() -> None:
    assert len({one.name for one in CORPUS}) == len(CORPUS) >= 30


@pytest.mark.parametrize("foreign", CORPUS, ids=lambda one: one.name)
def test_a_foreign_net_is_taken_as_it_is(foreign):
    task = VECTOR if foreign.kind == "vector" else CHECK
    if foreign.pooled:
        with pytest.raises(BadInput, match=r"returned the shape .*, and .* is needed"):
            pair(foreign.net, task, foreign.args, longest=6)
        return
    found = pair(foreign.net, task, foreign.args, longest=None if foreign.kind == "vector" else 6)
    assert found.reads_ids == (foreign.reads == "ids")
    ours = found.build(0).eval()
    inputs = sample(task, None if foreign.kind == "vector" else 6).inputs[0]
    read = found.feed(inputs, found.one_hot(torch.device("cpu")))
    own = theirs(copy.deepcopy(ours))
    with torch.no_grad():
        answer = ours(read)
        wide = read if foreign.reads == "ids" else _filled(own, foreign, read)
        expected = foreign.call(own, wide)
    assert torch.equal(answer, expected[..., : answer.shape[-1]])
    assert answer.shape[-1] == task.spec.outputs


def _filled(module, foreign, x):
    """Numbers as the author would fill them up: zeros to the width that the module reads."""
    width = {"FixedLSTM": 16, "Mamba": 32}.get(type(module).__name__, x.shape[-1])
    return torch.nn.functional.pad(x, (0, width - x.shape[-1]))
