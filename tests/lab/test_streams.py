"""Groups side by side in one process: the rows of one after another, and a group that fails, fails alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from theodolite.bench.learn import learn
from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener
from theodolite.lab.engines.streams import Streams
from theodolite.lab.group import Group
from theodolite.lab.work import Context, Update

from .small_runs import MLP, RNN, checkpoints, keyed, net_file, rows_of

SIDE_BY_SIDE = {**MLP, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}, "steps": 120}


def test_groups_take_turns_and_give_the_rows_of_this_process(tmp_path):
    order: list[str] = []
    listener = Listener(update=lambda group, update: order.append(group.id))
    found = learn(**SIDE_BY_SIDE, out=tmp_path / "streams", engine="streams", workers=2, listener=listener)
    assert keyed(found.rows) == rows_of(SIDE_BY_SIDE, tmp_path / "here")
    first, second = sorted(set(order))
    turns = sum(a != b for a, b in pairwise(order))
    assert turns > min(order.count(first), order.count(second)), "the groups were run one after the other"
    assert checkpoints(tmp_path / "streams") == []


def test_a_group_that_fails_fails_alone(tmp_path):
    bad = net_file(tmp_path, "if self.calls > 5: raise ValueError('no more')")
    run = {**MLP, "steps": 40, "lr": 1e-2, "net": [bad, "mlp"]}
    found = learn(**run, out=tmp_path / "runs", engine="streams", workers=2)
    assert [failure.sentence for failure in found.failures] == ["ValueError: no more"]
    assert keyed(found.rows) == rows_of(run, tmp_path / "here", net="mlp")


def test_what_runs_saves_its_state_when_stopped(tmp_path):
    cells = [row.cell for row in rows_of(RNN, tmp_path / "rows").values()]
    (tmp_path / "checkpoints").mkdir()
    group = Group.of(cells, {"device": "cpu", "chunk": 2})
    engine = Streams(1)
    engine.submit(group, Context(tmp_path / "checkpoints", save_every=1e9))
    assert engine.free == 0
    assert engine.poll(0)
    last = [message for message in engine.stop() if isinstance(message, Update)][-1]
    assert last.checkpoint is not None
    assert (Path(tmp_path) / "checkpoints" / last.checkpoint).exists()
    assert engine.free == 1


def test_none_at_once_is_refused():
    with pytest.raises(BadInput, match="workers must be at least 1"):
        learn(**MLP, engine="streams", workers=0)


@pytest.mark.gpu
def test_groups_on_streams_of_one_gpu_learn_what_they_learn_one_after_another(tmp_path):
    """Not bit for bit: with several streams cuBLAS may sum in another order."""
    run = {**MLP, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}, "steps": 240}
    found = learn(**run, out=tmp_path / "streams", device="cuda", engine="streams", workers=2)
    alone = rows_of({**run, "device": "cuda"}, tmp_path / "here")
    assert not found.failures
    assert {key: row["status"] for key, row in keyed(found.rows).items()} == {k: r["status"] for k, r in alone.items()}
    assert {row["status"] for row in found.rows} == {"solved", "unsolved"}
