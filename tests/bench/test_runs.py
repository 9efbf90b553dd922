"""What was trained comes back, whole, filtered by what it is, and in the formats of other tools."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections import Counter

import pytest

from tests.each import each
from theodolite.bench.runs import failures, runs
from theodolite.errors import BadInput, StoreError
from theodolite.lab.cell import Cell, Row
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store

from .members import member, stored

WIDE = {"width": 64, "depth": 2, "positions": "none"}
DYCK = {"depth": 3, "shortest": 2, "longest": 20}
ROWS = [
    *(member("lstm", seed=seed, lr=lr, solved_at=400) for seed in range(3) for lr in (1e-3, 3e-4)),
    *(member("transformer", seed=seed, shape=WIDE, accuracy=0.5 + seed / 10) for seed in range(4)),
    member("transformer", seed=9, shape=WIDE, accuracy=None),
    member("lstm", "dyck", task_args=DYCK, schedule={"steps": 500, "to_the_end": True}),
    member("mlp", "parity", shape={"width": 8}, task_args={"bits": 8}, unseen=None, optimiser={"clip": None}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("runs"), ROWS)


def found(folder, **filters) -> list[Row]:
    return list(runs(folder, **filters).rows)


def test_every_member_comes_back_in_the_order_of_finishing(folder):
    assert found(folder) == ROWS


@each(
    ("filters", "fits"),
    [
        ({"net": "lstm"}, lambda c, r: c["net"] == "lstm"),
        ({"net": "lstm, mlp"}, lambda c, r: c["net"] in ("lstm", "mlp")),
        ({"net": "lstm", "task": "dyck"}, lambda c, r: c["task"] == "dyck"),
        ({"status": "solved"}, lambda c, r: r["status"] == "solved"),
        ({"status": "solved,diverged"}, lambda c, r: r["status"] != "unsolved"),
        ({"where": {"lr": 0.001}}, lambda c, r: c["lr"] == 1e-3),
        ({"where": {"lr": "3e-4"}}, lambda c, r: c["lr"] == 3e-4),
        ({"where": {"width": 16}}, lambda c, r: c["shape"].get("width") == 16),
        ({"where": {"longest": 20}}, lambda c, r: c["task_args"].get("longest") == 20),
        ({"where": {"steps": 500}}, lambda c, r: c["schedule"]["steps"] == 500),
        ({"where": {"weight-decay": 0, "width": "64"}}, lambda c, r: c["shape"].get("width") == 64),
        ({"where": {"positions": "none"}}, lambda c, r: c["shape"].get("positions") == "none"),
        ({"where": {"to_the_end": "true"}}, lambda c, r: c["schedule"]["to_the_end"]),
        ({"where": {"clip": "none"}}, lambda c, r: c["optimiser"]["clip"] is None),
        ({"where": {"accuracy": None}}, lambda c, r: r["accuracy"] is None),
        ({"where": {"optimiser": "adamw"}}, lambda c, r: True),
        ({"where": {"optimiser": "sgd"}}, lambda c, r: False),
        ({"where": {"shape.depth": 2}}, lambda c, r: c["shape"].get("depth") == 2),
        ({"where": {"task.depth": 3}}, lambda c, r: c["task_args"].get("depth") == 3),
        ({"where": {"schedule.unseen": [50, 200]}}, lambda c, r: True),
        (
            {"where": {"seed": 2, "lr": 1e-3}, "net": "lstm"},
            lambda c, r: (c["seed"], c["lr"], c["net"]) == (2, 1e-3, "lstm"),
        ),
    ],
)
def test_filters_keep_what_fits(folder, filters, fits):
    expected = [row for row in ROWS if fits(row.cell.config, row.result)]
    assert found(folder, **filters) == expected


def test_filters_of_the_test_above_do_not_all_keep_everything(folder):
    counts = Counter(len(found(folder, where={key: value})) for key, value in (("lr", 3e-4), ("width", 8), ("seed", 0)))
    assert set(counts) == {3, 1, 5}


def test_a_member_is_found_by_the_beginning_of_its_key(folder):
    key = ROWS[4].cell.key
    assert found(folder, where={"key": key[:8]}) == [ROWS[4]]


@each(
    ("filters", "told"),
    [
        ({"net": "lsmt"}, r"no net of these runs is called 'lsmt': did you mean 'lstm'\?"),
        ({"task": "dick"}, r"did you mean 'dyck'\?"),
        ({"status": "solvd"}, r"no status is called 'solvd': did you mean 'solved'"),
        ({"where": {"widht": 16}}, r"no column of these runs is called 'widht': did you mean 'width'\?"),
        ({"where": {"lr": "fast"}}, "'lr' holds a number such as 0.001, and 'fast' is none"),
        ({"where": {"lr": True}}, "'lr' holds a number such as 0.001, and 'True' is none"),
        ({"where": {"net": 5}}, "'net' holds a text such as lstm, and '5' is none"),
        ({"where": {"net": "lsmt"}}, r"did you mean 'lstm'\?"),
        ({"where": {"status": "done"}}, "no status of these runs is called 'done'"),
        ({"where": {"to_the_end": "perhaps"}}, "'schedule.to_the_end' holds a true or false such as false"),
        ({"where": {"depth": 2}}, r"'depth' may be shape\.depth or task_args\.depth: write which"),
        ({"where": {"lr": 1e-3, "lr ": 1e-3}}, "asked for twice"),
        ({"net": " , "}, "names nothing"),
    ],
)
def test_what_no_member_has_is_refused_in_a_sentence(folder, filters, told):
    with pytest.raises(BadInput, match=told):
        runs(folder, **filters)


def test_a_column_is_that_of_the_chosen_net_and_task(folder):
    """`depth` may be the net's or the task's; among LSTMs on other tasks it can only be the net's."""
    assert len(found(folder, net="lstm", task="parity-check", where={"depth": 1})) == 6


def test_a_store_that_is_not_there_is_refused_and_not_made(tmp_path):
    for read in (runs, failures):
        with pytest.raises(StoreError, match="there is no store in"):
            read(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_store_without_members_gives_none_whatever_is_asked(tmp_path):
    Store(tmp_path).close()
    empty = runs(tmp_path, net="lstm", where={"lr": 1e-3})
    assert (empty.rows, empty.table, empty.summary) == ((), [], [])
    assert empty.to_csv() == ""


def test_rows_of_other_measures_are_no_members(tmp_path):
    stored(tmp_path, [Row(Cell("rank", {"net": "lstm"}), {"value": 3}), ROWS[0]])
    assert found(tmp_path) == [ROWS[0]]


def test_the_summary_counts_what_the_rows_say(folder):
    entries = {(e["net"], e["task"]): e for e in runs(folder).summary}
    assert {name: (e["solved"]["count"], e["solved"]["of"], e["diverged"]) for name, e in entries.items()} == {
        ("lstm", "parity-check"): (6, 6, 0),
        ("transformer", "parity-check"): (0, 5, 1),
        ("lstm", "dyck"): (0, 1, 0),
        ("mlp", "parity"): (0, 1, 0),
    }
    assert entries["transformer", "parity-check"]["accuracy"]["mean"] == pytest.approx(0.65)


def test_csv_reads_back(folder):
    chosen = runs(folder, net="transformer")
    lines = list(csv.DictReader(io.StringIO(chosen.to_csv())))
    assert len(lines) == 5
    for line, row in zip(lines, chosen.rows, strict=True):
        assert line["key"] == row.cell.key[:12]
        assert (line["net"], int(line["seed"]), float(line["lr"])) == ("transformer", row.cell.config["seed"], 1e-3)
        assert (float(line["accuracy"]) if line["accuracy"] else None) == row["accuracy"]


def test_json_is_plain(folder):
    document = json.loads(json.dumps(runs(folder).to_json(), allow_nan=False))
    assert len(document["members"]) == len(ROWS)
    assert [e["net"] for e in document["summary"]] == ["lstm", "transformer", "lstm", "mlp"]


def test_pandas_has_one_line_a_member(folder):
    pytest.importorskip("pandas", reason="the extra 'data' brings it")
    frame = runs(folder).to_pandas()
    assert len(frame) == len(ROWS)
    assert frame.groupby("net").size().to_dict() == Counter(row.cell.config["net"] for row in ROWS)
    assert frame["accuracy"].isna().sum() == 1  # pyright: ignore[reportGeneralTypeIssues]


def test_without_pandas_the_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BadInput, match="pandas is not installed: pip install"):
        runs(folder).to_pandas()


def test_failures_come_back_with_their_traceback(tmp_path):
    with Store(tmp_path) as store:
        cells = [ROWS[0].cell, ROWS[1].cell]
        store.plan(cells, lambda free: [Group.of(free)])
        group = store.claim([cell.key for cell in cells])
        store.fail(group, "it went wrong", "Traceback: here", retry=False)
    (failure,) = failures(tmp_path)
    assert (failure["sentence"], failure["traceback"]) == ("it went wrong", "Traceback: here")
    assert failure["cells"] == [cell.key[:12] for cell in cells]


def test_reading_runs_needs_no_torch(folder):
    code = (
        "import sys\nfrom theodolite.bench.runs import runs\nfrom theodolite.bench.compare import compare\n"
        f"assert runs({str(folder)!r}).summary\nassert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
