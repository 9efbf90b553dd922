"""A fleet with workers in this process: who gets which group, and what is told when workers or nodes fail."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from theodolite.errors import BadInput, StoreError
from theodolite.lab.campaign import Listener, run_campaign
from theodolite.lab.engines import fleet as fleets
from theodolite.lab.engines.fleet import Fleet, Gone, Left, Link, Remote
from theodolite.lab.engines.parcel import Delivery, Hello, News, Parcel, pack, receive, run_parcel
from theodolite.lab.engines.pool import Failed, Here
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context, Update

from .small_runs import MLP, checkpoints, net_file, open_groups, rows_of

HERE = Hello.here()


class Thread:
    """A worker without a thread: every look at it runs one more update. `start` is its first word, or its last."""

    def __init__(self, start: Hello | str = HERE) -> None:
        self.start: Hello | str | None = start
        self.running: Iterator[News] = iter(())
        self.groups: list[str] = []
        self.stopping = self.ended = False
        self.last: str | None = None  # its last words, once it shall die

    def send(self, parcel: Parcel) -> None:
        self.groups.append(parcel.group.id)
        self.running = run_parcel(parcel, lambda: self.stopping)

    def news(self) -> Sequence[Hello | News | Left]:
        first, self.start = self.start, None
        told = first if isinstance(first, str) else self.last
        if told is not None:
            raise Gone(told)
        if first is not None:
            return [HERE if isinstance(first, str) else first]
        return [one for one in [next(self.running, None)] if one is not None]

    def ask_to_stop(self) -> None:
        self.stopping = True

    def end(self) -> None:
        self.ended = True


class Place:
    """Starts the workers it is given, one after another, and then good ones."""

    def __init__(self, workers: int, *first: Thread) -> None:
        self.workers = workers
        self.first = list(first)
        self.started: list[Thread] = []
        self.told: str | None = None
        self.closed = False

    def start(self) -> Thread:
        self.started.append(self.first.pop(0) if self.first else Thread())
        return self.started[-1]

    def wait(self, links: Sequence[Link], timeout: float) -> None: ...

    def trouble(self) -> str | None:
        return self.told

    def close(self) -> None:
        self.closed = True


def campaign(folder: Path, run: dict, place: Place, listener: Listener | None = None, device: str = "cpu", **more):
    cells = [row.cell for row in rows_of(run, folder / "here").values()]
    with Store(folder / "there") as store:
        context = Context(store.checkpoints.resolve(), save_every=0.0, **more)
        settings = {"device": device, "chunk": 2}
        return run_campaign(cells, store, Remote(Fleet(place)), context, settings, listener)


def test_a_stop_saves_what_runs_and_this_machine_goes_on_with_it(tmp_path):
    run = {**MLP, "steps": 100}

    def interrupt(group: Group, news: Update) -> None:
        if news.step > 30:
            raise KeyboardInterrupt

    place = Place(1)
    with pytest.raises(KeyboardInterrupt):
        campaign(tmp_path, run, place, Listener(update=interrupt))
    [(step, checkpoint, owner)] = open_groups(tmp_path / "there")
    assert step > 30
    assert checkpoints(tmp_path / "there") == [checkpoint]
    assert owner is None
    assert place.closed
    assert all(worker.ended for worker in place.started)
    steps: list[int] = []
    expected = rows_of(run, tmp_path / "again")
    with Store(tmp_path / "there") as store:
        context = Context(store.checkpoints.resolve())
        cells = [row.cell for row in expected.values()]
        told = Listener(update=lambda group, news: steps.append(news.step))
        found = run_campaign(cells, store, Here(), context, {"device": "cpu", "chunk": 2}, told)
    assert found.rows == expected
    assert min(steps) > step


def test_a_group_goes_on_elsewhere_and_the_other_worker_takes_it_when_no_new_one_can_start(tmp_path):
    run = {**MLP, "steps": 100, "task": ["parity", "majority"], "task_args": {"bits": 5, "parity.relevant": 2}}
    never = Thread()
    never.news = lambda: []  # asked for, and never there: no room for it on the node that is left
    place = Place(2, Thread(), Thread(), never)

    def kill(group: Group, news: Update) -> None:
        if news.checkpoint and len(place.started) == 2 and place.started[1].groups:
            place.started[1].last = "its node is gone"

    found = campaign(tmp_path, run, place, Listener(update=kill))
    assert found.rows == rows_of(run, tmp_path / "again")
    assert len(place.started) == 3
    assert len(set(place.started[0].groups)) == 2


def test_a_node_with_another_version_is_left_out_and_told_when_it_is_the_only_kind(tmp_path):
    old = replace(HERE, version="0.0.1", host="far")
    place = Place(2, Thread(old))
    found = campaign(tmp_path, {**MLP, "steps": 40}, place)
    assert len(found.rows) == 4
    assert not found.failures
    assert place.started[0].groups == []
    alone = Place(2, *(Thread(old) for _ in range(9)))
    with pytest.raises(BadInput, match=r"theodolite is 0\.0\.1 on the node 'far' .* install the same version"):
        campaign(tmp_path / "alone", {**MLP, "steps": 40}, alone)
    assert len(alone.started) <= 4
    assert alone.closed


def test_a_cluster_that_cannot_run_anything_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(fleets, "_PATIENCE", 0.0)
    monkeypatch.setattr(fleets, "_LOOK", 0.0)
    place = Place(1)
    place.told = "no node of the cluster has a GPU: add one"
    with pytest.raises(BadInput, match="no node of the cluster has a GPU"):
        campaign(tmp_path, {**MLP, "steps": 100}, place)
    assert open_groups(tmp_path / "there")[0][2] is None, "its group stays open for the next command"


def test_a_node_without_the_device_fails_the_group_with_a_sentence_that_names_it(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    found = campaign(tmp_path, {**MLP, "steps": 40}, Place(1), device="cuda")
    assert not found.rows
    [failure] = found.failures
    assert failure.expected
    assert failure.sentence.startswith(f"on the node '{HERE.host}': --device cuda was asked for")


def test_a_parcel_carries_only_the_files_of_its_group_and_a_damaged_one_is_not_taken(tmp_path):
    run = {**MLP, "net": net_file(tmp_path / "mine"), "steps": 40}
    expected = rows_of(run, tmp_path / "here")
    cells = [row.cell for row in expected.values()]
    group = Group.of(cells, {"device": "cpu", "chunk": 2})
    from theodolite.lab.run_cells import place

    (tmp_path / "checkpoints").mkdir()
    key = place(cells[0].config)
    context = Context(tmp_path / "checkpoints", {key: run["net"], "another": f"{tmp_path}/secret.py:Net"})
    parcel = pack(group, context)
    assert set(parcel.nets) == {key}
    assert parcel.nets[key][:2] == ("net.py", (tmp_path / "mine" / "net.py").read_bytes())
    (tmp_path / "mine" / "net.py").unlink()  # the other machine has none
    news = list(run_parcel(parcel, lambda: False))
    assert {row.cell.key: row for one in news for row in one.update.rows} == expected
    with pytest.raises(BadInput, match="cannot be read any more"):
        pack(group, context)
    changed = replace(parcel, nets={key: ("net.py", b"# other\n" + parcel.nets[key][1], "Net", {})})
    [refused] = run_parcel(changed, lambda: False)
    assert isinstance(refused, Failed)
    assert refused.expected
    assert "was changed since this run was planned" in refused.sentence
    with pytest.raises(StoreError, match="was lost on its way"):
        receive(Delivery(Update(group.id, checkpoint=group.checkpoint_name(3))), context)
