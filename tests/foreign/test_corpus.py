"""Every foreign network meets a task without a wrapper, and answers what its author's own call answers."""

# pyright: reportArgumentType=false

from __future__ import annotations

import copy

import pytest
import torch

from tests.foreign.corpus import CORPUS, theirs
from theodolite.bench.learn import learn
from theodolite.errors import BadInput
from theodolite.instruments.leakage import leakage
from theodolite.instruments.sensitivity.one_symbol import sensitivity
from theodolite.instruments.state_size import state_size
from theodolite.instruments.symmetry import symmetries
from theodolite.measurement import Measurement
from theodolite.tasks import make_task
from theodolite.training.pairing import pair, sample

CHECK = make_task("parity-check", {"longest": 6})
VECTOR = make_task("majority", {"bits": 5})


def test_there_are_thirty_and_more() -> None:
    assert len({one.name for one in CORPUS}) == len(CORPUS) >= 30


@pytest.mark.parametrize("foreign", CORPUS, ids=lambda one: one.name)
def test_a_foreign_net_is_taken_as_it_is(foreign):
    task = VECTOR if foreign.kind == "vector" else CHECK
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
    if foreign.pooled:  # its one answer stands at the last token
        assert not answer[:, :-1].any()
        answer = answer[:, -1]
    assert torch.equal(answer, expected[..., : answer.shape[-1]])
    assert answer.shape[-1] == task.spec.outputs


def test_one_answer_for_a_sequence_meets_tasks_that_ask_for_one():
    net = next(one.net for one in CORPUS if one.pooled)
    found = learn(net, "parity-check", task_args={"longest": 2}, seeds=1, steps=2, chunk=1, unseen="3")
    assert "its one answer for a whole sequence is read at the last token" in found.assumed[0]
    assert [length for length, _ in found.rows[0]["by_length"]] == [1, 2, 3]
    with pytest.raises(BadInput, match="gives one answer for a whole sequence and 'copy' asks at several places"):
        learn(net, "copy", seeds=1, steps=1)


KNOWN = [one for one in CORPUS if isinstance(one.state, int)]


@pytest.mark.parametrize("foreign", KNOWN, ids=lambda one: one.name)
def test_its_state_is_what_it_carries(foreign):
    """A group norm takes the mean of every head's values away, so that RetNet carries one number less for each key."""
    found = state_size(foreign.net, tokens=8, seconds=3.0, **foreign.args)
    assert not found.diagnostics["growth_per_token"]
    assert found.diagnostics["at_least"] <= foreign.state
    assert found.value == foreign.state if found.diagnostics["resolved"] else found.diagnostics["at_most"] is None


@pytest.mark.parametrize("foreign", [one for one in CORPUS if not one.pooled], ids=lambda one: one.name)
def test_it_sees_only_what_its_author_says(foreign):
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2} if "GPT" in foreign.name else {}
    sizes = {} if foreign.kind == "vector" else {"tokens": 8}
    found = leakage(foreign.net, **sizes, **foreign.args, **shape).diagnostics
    assert found["causal"] in (None, foreign.causal)
    assert bool(found["says"]) == foreign.leaks, "a mean goes on from call to call"


@pytest.mark.parametrize("foreign", CORPUS, ids=lambda one: one.name)
def test_its_symmetries_are_those_of_its_definition(foreign):
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2} if "GPT" in foreign.name else {}
    sizes = {} if foreign.kind == "vector" else {"tokens": 6}
    found = symmetries(foreign.net, draws=1, **sizes, **foreign.args, **shape)
    held = [name for name, one in found.items() if isinstance(one, Measurement) and one.diagnostics["holds"]]
    assert tuple(held) == foreign.alike


@pytest.mark.parametrize("foreign", [one for one in CORPUS if one.reach is not None], ids=lambda one: one.name)
def test_it_sees_as_far_back_as_its_definition_says(foreign):
    found = sensitivity(foreign.net, lengths=(8, 16, 32), draws=2, tokens=8, **foreign.args)
    assert found.diagnostics["reach"] == foreign.reach


def _filled(module, foreign, x):
    """Numbers as the author would fill them up: zeros to the width that the module reads."""
    width = {"FixedLSTM": 16, "Mamba": 32}.get(type(module).__name__, x.shape[-1])
    return torch.nn.functional.pad(x, (0, width - x.shape[-1]))
