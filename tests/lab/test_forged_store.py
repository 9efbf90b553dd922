"""A store may be somebody else's, or edited: a command runs what its own arguments name, and nothing the file says.

Every forgery starts from an honest store with an open group that was begun, and ends with an ordinary `learn`.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from theodolite.bench.learn import learn
from theodolite.bench.runs import runs
from theodolite.lab.campaign import Listener, run_campaign
from theodolite.lab.cell import Cell
from theodolite.lab.checkpoint import write_checkpoint
from theodolite.lab.engines.pool import Here
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store
from theodolite.lab.work import Context

from .small_runs import MLP, asked, keyed, net_file, open_groups, rows_of

RUN = {**MLP, "lr": 1e-6, "steps": 60}  # nobody solves it: both members are in the group to its end


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> dict[str, Any]:
    return rows_of(RUN, tmp_path_factory.mktemp("honest"))


@pytest.fixture
def begun(tmp_path) -> Path:
    """A folder with one open group at step 40, its checkpoint beside it."""
    folder = tmp_path / "runs"

    def stop(group: Group, news: Any) -> None:
        if news.step >= 40:
            raise Stop

    with pytest.raises(Stop):
        learn(**RUN, out=folder, listener=Listener(update=stop))
    [(step, checkpoint, owner)] = open_groups(folder)
    assert (step > 0, checkpoint is not None, owner) == (True, True, None)
    return folder


def bait(tmp_path: Path) -> tuple[str, Path]:
    """A net whose file leaves a mark when it is run, however that comes about."""
    mark = tmp_path / "was run"
    name = net_file(tmp_path / "evil")
    path = Path(name.rpartition(":")[0])
    path.write_text(f"open({str(mark)!r}, 'w').close()\n{path.read_text()}")
    return name, mark


def change(folder: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    db = sqlite3.connect(folder / "store.db")
    for statement, values in statements:
        db.execute(statement, values)
    db.commit()
    db.close()


def with_configs(folder: Path, edit: Callable[[dict[str, Any]], object], rehash: bool) -> None:
    """Edit what the store says of every cell; with `rehash` keys and the group's name follow, as a forger would do."""
    cells = asked(folder, "SELECT cells.key, measure, config FROM members JOIN cells USING (key) ORDER BY place")
    new = []
    for key, measure, text in cells:
        config = json.loads(text)
        edit(config)
        cell = Cell(measure, config)
        new.append(cell)
        change(folder, ("UPDATE cells SET config = ? WHERE key = ?", (json.dumps(config), key)))
        if rehash:
            change(folder, ("INSERT INTO cells VALUES (?, ?, ?)", (cell.key, measure, json.dumps(config))))
    if rehash:  # the command's own keys lead into a group of other cells
        settings = json.loads(asked(folder, "SELECT settings FROM groups")[0][0])
        own = [Cell(measure, json.loads(text)) for _, measure, text in cells]
        group = Group.of([own[0], *new], settings)
        change(
            folder,
            ("UPDATE cells SET config = ? WHERE key = ?", (cells[0][2], cells[0][0])),
            ("UPDATE groups SET id = ?", (group.id,)),
            ("DELETE FROM members", ()),
            *(("INSERT INTO members VALUES (1, ?, ?)", (i, cell.key)) for i, cell in enumerate(group.cells)),
        )


def refused(folder: Path, caplog: pytest.LogCaptureFixture, told: str) -> None:
    """An ordinary `learn` runs nothing of the group, leaves it open and says so."""
    before = asked(folder, "SELECT * FROM groups"), asked(folder, "SELECT * FROM members")
    with caplog.at_level(logging.WARNING):
        found = learn(**RUN, out=folder)
    assert not found.rows
    assert sum(len(failure.cells) for failure in found.failures) == found.asked == 2
    assert all(told in failure.sentence and failure.expected for failure in found.failures)
    assert told in caplog.text
    assert (asked(folder, "SELECT * FROM groups"), asked(folder, "SELECT * FROM members")) == before
    assert not asked(folder, "SELECT * FROM rows")


def test_without_a_forgery_the_group_goes_on(begun, honest):
    [(step, *_)] = open_groups(begun)
    reached = []
    found = learn(**RUN, out=begun, listener=Listener(update=lambda group, news: reached.append(news.step)))
    assert min(reached) >= step > 0
    assert keyed(found.rows) == honest


@pytest.mark.parametrize("name", ["net", "shape", "task_args"])
def test_a_cell_that_does_not_follow_from_its_key_is_not_run(begun, tmp_path, caplog, name):
    evil, mark = bait(tmp_path)
    edits = {"net": {"net": evil}, "shape": {"shape": {"width": 64}}, "task_args": {"task_args": {"bits": 5}}}
    with_configs(begun, lambda config: config.update(edits[name]), rehash=False)
    refused(begun, caplog, "was changed by another program")
    assert not mark.exists()


def test_a_net_beside_ours_under_a_key_of_its_own_is_not_run(begun, tmp_path, caplog):
    evil, mark = bait(tmp_path)
    with_configs(begun, lambda config: config.update(net=evil), rehash=True)
    found = learn(**RUN, out=begun)
    assert not mark.exists()
    [failure] = found.failures  # the one of ours in that group; the other was free, and is trained
    assert "holds other cells beside it" in failure.sentence
    assert len(found.rows) == len(failure.cells) == 1
    assert {cell.config["net"] for cell in failure.cells} == {"mlp"}


def test_another_measure_is_not_run(begun, caplog):
    change(begun, ("UPDATE cells SET measure = 'cost'", ()))
    refused(begun, caplog, "was changed by another program")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("settings", '{"device": "cuda:7"}'),
        ("settings", "[]"),
        ("id", "../../evil"),
        ("checkpoint", "../outside.safetensors"),
        ("checkpoint", "/etc/hostname"),
        ("step", "far"),
    ],
)
def test_a_group_that_is_not_what_its_name_says_is_not_run(begun, tmp_path, caplog, column, value):
    outside = tmp_path / "runs" / "outside.safetensors"
    write_checkpoint(outside, {}, {"session": "{}"})
    change(begun, (f"UPDATE groups SET {column} = ?", (value,)))
    refused(begun, caplog, "was changed by another program")
    assert outside.exists()


def test_settings_are_the_commands_own(begun, honest):
    """A forger who also renames the group gains nothing: it runs where the command says."""
    [(order,)] = asked(begun, "SELECT json_group_array(key) FROM (SELECT key FROM members ORDER BY place)")
    cells = [honest[key].cell for key in json.loads(order)]
    settings = {"device": "cuda:7", "chunk": 1}
    change(begun, ("UPDATE groups SET id = ?, settings = ?", (Group.of(cells, settings).id, json.dumps(settings))))
    found = learn(**RUN, out=begun)
    assert not found.failures
    assert keyed(found.rows) == honest
    assert {row.facts["provenance"]["device"] for row in found.rows} == {"cpu"}


def test_members_of_another_net_are_not_trained_as_ours(begun, caplog):
    """Both nets are the command's own, but a group is trained as its first cell says."""
    other = learn(**{**RUN, "shape": {"width": 6}}, out=begun).rows[0].cell
    change(begun, ("DELETE FROM rows", ()))
    [(key,)] = asked(begun, "SELECT key FROM members WHERE place = 0")
    first = Cell("training", json.loads(asked(begun, f"SELECT config FROM cells WHERE key = '{key}'")[0][0]))
    settings = json.loads(asked(begun, "SELECT settings FROM groups")[0][0])
    change(
        begun,
        ("UPDATE groups SET id = ?", (Group.of([first, other], settings).id,)),
        ("UPDATE members SET key = ? WHERE place = 1", (other.key,)),
    )
    found = learn(**RUN, out=begun)
    assert [failure.cells for failure in found.failures] == [(first,)]
    assert [row.cell.config["shape"]["width"] for row in found.rows] == [8]


def test_a_measured_cell_brings_no_other_with_it(tmp_path, caplog):
    """Cells that are measured and not trained run one by one, each only for a command that names it."""
    evil, mark = bait(tmp_path)
    shape = {"depth": 1, "width": 2, "tokens": 2}
    ours, theirs = (
        Cell("line-degree", {"net": net, "net_version": 1, "source": None, "shape": shape})
        for net in ("self-attention", evil)
    )
    folder = tmp_path / "runs"
    with Store(folder) as store:
        store.plan([ours, theirs], lambda free: [Group.of(free, {"device": "cpu"})])
        change(folder, ("UPDATE groups SET step = 1", ()))
        outcome = run_campaign([ours], store, Here(), Context(store.checkpoints), {"device": "cpu"})
        assert not outcome.rows
        assert "holds other cells beside it" in outcome.failures[0].sentence
    with Store(folder) as store:  # even a cell of the command's own plan runs no file that the command does not locate
        outcome = run_campaign([ours, theirs], store, Here(), Context(store.checkpoints), {"device": "cpu"})
    assert outcome.rows[ours.key].result == {"degree": 3}
    assert "does not name the net" in str(outcome.rows[theirs.key].error)
    assert not mark.exists()


def test_a_row_of_another_cell_is_not_handed_out(tmp_path, caplog, honest):
    folder = tmp_path / "runs"
    rows_of(RUN, folder)
    first, second = honest
    change(
        folder,
        ("UPDATE cells SET config = (SELECT config FROM cells WHERE key = ?) WHERE key = ?", (second, first)),
        ("UPDATE rows SET result = json_set(result, '$.status', 'solved') WHERE key = ?", (first,)),
    )
    assert [row.cell.key for row in runs(folder).rows] == [second]
    found = learn(**RUN, out=folder)
    assert keyed(found.rows) == {second: honest[second]}
    [failure] = found.failures
    assert [cell.key for cell in failure.cells] == [first]
    assert "its row in" in failure.sentence
    assert "was changed by another program" in caplog.text
    change(folder, ("DELETE FROM cells WHERE key = ?", (first,)))  # a row that says nothing of its cell
    assert [row.cell.key for row in learn(**RUN, out=folder).rows] == [second]
