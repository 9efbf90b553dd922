"""Finished members as runs of trackers: read back with each tracker's own library, where it is installed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from theodolite.bench.export import run_name
from theodolite.bench.learn import learn
from theodolite.bench.runs import Runs, runs
from theodolite.errors import BadInput, UnknownName


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    learn("mlp", "majority", seeds=2, steps=20, every=10, shape={"width": 4}, task_args={"bits": 5}, out=folder)
    return runs(folder)


def test_tensorboard_reads_curves_and_settings(found, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert found.export("tensorboard", tmp_path) == 2
    assert found.export("tensorboard", tmp_path) == 0, "written twice"
    for row in found.rows:
        [events] = [
            EventAccumulator(str(place)) for place in (tmp_path / "mlp" / "majority").glob(f"*{row.cell.key[:8]}")
        ]
        events.Reload()
        assert [(e.step, e.value) for e in events.Scalars("accuracy")] == [
            (step, pytest.approx(score)) for step, _, score in row["curve"]
        ]
        assert [e.value for e in events.Scalars("final/accuracy")] == [pytest.approx(row["accuracy"])]
        assert "_hparams_/session_start_info" in events.SummaryMetadata.__self__.summary_metadata


def test_wandb_writes_offline_runs(found, tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed")
    assert found.export("wandb", tmp_path) == 2
    assert found.export("wandb", tmp_path) == 0, "written twice"
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2
    for row in found.rows:
        [file] = [file for file in files if row.cell.key[:16] in file.name]
        limit = time.monotonic() + 60
        while b"accuracy" not in file.read_bytes() and time.monotonic() < limit:
            time.sleep(0.1)  # its service writes when it likes
        assert b"accuracy" in file.read_bytes()


def test_mlflow_reads_curves_and_settings(found, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    assert found.export("mlflow", tmp_path) == 2
    assert found.export("mlflow", tmp_path) == 0, "written twice"
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("theodolite")
    shown = {run.data.tags["theodolite.key"]: run for run in client.search_runs([experiment.experiment_id])}
    for row in found.rows:
        run = shown[row.cell.key]
        assert run.data.params["schedule.steps"] == "20"
        assert run.data.metrics["final_accuracy"] == pytest.approx(row["accuracy"])
        curve = client.get_metric_history(run.info.run_id, "accuracy")
        assert [(m.step, m.value) for m in curve] == [(step, pytest.approx(score)) for step, _, score in row["curve"]]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_library_that_is_missing_is_told(found, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BadInput, match=f"{name} is not installed"):
        found.export(name, tmp_path)


def test_other_formats_and_places_are_refused(found, tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'mlflow'"):
        found.export("mlflo", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be made"):
        found.export("tensorboard", tmp_path / "file" / "x")


def test_no_name_leads_out_of_the_folder():
    config = {"net": "../../x.py:Net", "task": "..", "lr": 0.1, "weight_decay": 0.0, "seed": 1}
    place = (Path("/a/b") / run_name("k" * 64, config)).resolve()
    assert place.is_relative_to("/a/b")
    assert len(place.parts) == 6
