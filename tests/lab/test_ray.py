"""Ray executes and nothing else: same rows, nothing lost when a node is killed, one sentence when it is not there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from theodolite.bench.learn import learn, weights_file
from theodolite.errors import BadInput
from theodolite.lab.campaign import Listener
from theodolite.lab.checkpoint import read_checkpoint
from theodolite.lab.engines.by_name import Cluster
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store
from theodolite.lab.work import Update

from .small_runs import MLP, checkpoints, held, keyed, net_file, rows_of

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray")

SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
SWIFT = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
TWO_LANES = {**MLP, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Two nodes of one CPU each, on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        both = pytest.importorskip("ray.cluster_utils").Cluster(
            initialize_head=True, head_node_args={**SMALL, "_system_config": SWIFT}
        )
        try:
            both.add_node(**SMALL)
            yield both
        finally:
            both.shutdown()


def test_no_node_with_a_gpu_is_told_before_anything_waits_for_one(nodes, tmp_path):
    with pytest.raises(BadInput, match=r"no node of the Ray cluster at .* has a GPU for Ray: use --device cpu"):
        learn(**MLP, out=tmp_path, engine="ray", cluster=Cluster(address=nodes.address), device="cuda")


def test_a_cluster_gives_the_rows_of_this_machine_also_when_one_of_its_nodes_is_killed(nodes, tmp_path):
    net = net_file(tmp_path / "mine", held(tmp_path / "go"))
    run = {**TWO_LANES, "net": net, "steps": 300, "every": 100, "keep_weights": True}
    [worker] = [node for node in nodes.list_all_nodes() if node is not nodes.head_node]
    saved: dict[str, int] = {}
    killed: list[bool] = []
    resumed: list[tuple[str, int]] = []
    after = threading.Thread(target=_let_go_once_told, args=(tmp_path / "ray", tmp_path / "go"))

    def kill(group: Group, news: Update) -> None:
        if killed and news.number == 0:
            resumed.append((group.id, news.step))
        if news.checkpoint and not killed:
            saved[group.id] = news.step
        if len(saved) == 2 and not killed:  # one on each node: told while they run, not at their end
            killed.append(True)
            nodes.remove_node(worker, allow_graceful=False)
            after.start()

    at = Cluster(address=nodes.address)
    found = learn(**run, out=tmp_path / "ray", engine="ray", cluster=at, listener=Listener(update=kill))
    assert killed
    after.join()
    assert not found.failures
    expected = rows_of(run, tmp_path / "here")
    assert keyed(found.rows) == expected
    assert len(expected) == 8
    for key in expected:
        ours, theirs = (read_checkpoint(weights_file(tmp_path / where, key)) for where in ("ray", "here"))
        assert ours[1] == theirs[1]
        assert ours[0].keys() == theirs[0].keys()
        assert all(torch.equal(ours[0][name], theirs[0][name]) for name in ours[0])
    with Store(tmp_path / "ray", must_exist=True) as left:
        told = [(failure["sentence"], failure["retried"]) for failure in left.failures()]
    [(sentence, retried)] = told
    assert retried
    assert sentence.endswith("node is gone); its group is tried again")
    [(group, step)] = resumed
    assert step > saved[group] > 0, "it began again"
    assert checkpoints(tmp_path / "ray") == []


def _let_go_once_told(folder: Path, gate: Path, longest: float = 60.0) -> None:
    """Opens the gate when the death is written down: a process outlives its node for a moment and could still end."""
    limit = time.monotonic() + longest
    with Store(folder, must_exist=True) as store:
        while not store.failures() and time.monotonic() < limit:
            time.sleep(0.05)
    gate.touch()


def test_a_ray_of_its_own_is_started_and_gone_afterwards_and_a_bad_net_is_told_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    bad = net_file(tmp_path, 'assert self.calls < 3, "out of luck"')
    run = {**MLP, "net": [bad, "mlp"], "steps": 40, "chunk": 1}
    told: list[str] = []
    listener = Listener(failure=lambda failure: told.append(failure.sentence))
    before = set(os.environ.items())
    found = learn(**run, out=tmp_path / "ray", engine="ray", workers=1, threads=1, listener=listener)
    assert told == ["AssertionError: out of luck"]
    assert keyed(found.rows) == rows_of(run, tmp_path / "here", net="mlp")
    assert set(os.environ.items()) == before
    assert not (tmp_path / "home").exists(), "Ray wrote into the home folder"
    assert not _raylets_of_ours()


def _raylets_of_ours() -> list[str]:
    """Processes of a Ray that lives below this one; the cluster of the other tests has another folder."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = line.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "raylet" in text and "/ray-" in text:
            found.append(text)
    return found


def test_an_address_where_nobody_is_and_one_that_is_no_ray_are_refused(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(BadInput, match=f"nobody answers at --address '{nobody}'"):
        learn(**MLP, out=tmp_path, engine="ray", cluster=Cluster(address=nobody))
    for text in ("here", "ray://head:10001", "head:"):
        with pytest.raises(BadInput, match="is not host:port"):
            learn(**MLP, out=tmp_path, engine="ray", cluster=Cluster(address=text))
    monkeypatch.setattr("theodolite.lab.engines.ray_engine._CONNECT", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        threading.Thread(target=lambda: [mute.accept() for _ in range(3)], daemon=True).start()
        silent = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(BadInput, match=r"Ray at '.*' did not answer in time|Ray cannot be used"):
            learn(**MLP, out=tmp_path, engine="ray", cluster=Cluster(address=silent))


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path, monkeypatch):
    class Own(nn.Linear):
        def __init__(self, features: int, outputs: int) -> None:
            super().__init__(features, outputs)

    with pytest.raises(BadInput, match="an object cannot be sent"):
        learn(**{**MLP, "net": Own, "shape": {}}, out=tmp_path, engine="ray")
    with pytest.raises(BadInput, match="did you mean 'ray'"):
        learn(**MLP, out=tmp_path, engine="rai")
    with pytest.raises(BadInput, match="is Ray's: use it with --engine ray"):
        learn(**MLP, out=tmp_path, cluster=Cluster(address="auto"))
    with pytest.raises(BadInput, match="names a device of one machine"):
        learn(**MLP, out=tmp_path, engine="ray", device="cuda:1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install 'theodolite\[ray\]'"):
        learn(**MLP, out=tmp_path, engine="ray")
