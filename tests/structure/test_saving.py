"""A discovery in a folder reads back as the same network, and nothing else is taken for one."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.lab.checkpoint import read_checkpoint, write_checkpoint
from theodolite.structure.additive import fit_additive
from theodolite.structure.boosting import boosted, fold_trees
from theodolite.structure.discover import discover
from theodolite.structure.fit.effort import EFFORTS
from theodolite.structure.fit.fitting import Fitted, fit
from theodolite.structure.onnx_file import onnx_bytes
from theodolite.structure.predictions import predict
from theodolite.structure.process import fit_process
from theodolite.structure.result import Discovery
from theodolite.structure.saving import FILES, check_folder, load_predictor, save
from theodolite.structure.stacking import WeightedMean, alone

from .onnx_by_hand import run

GRAPH = CompositionalGraph(("a", "b", "c"), (Node("h", ("a", "b")), Node("y", ("h", "c"), "product")))
POINTS = np.random.default_rng(1).normal(size=(40, 3))


@pytest.fixture(scope="module")
def found() -> Discovery:
    effort = replace(EFFORTS["quick"], descent=5, polish=0, width=3)
    y = POINTS[:, 0] * POINTS[:, 1] * POINTS[:, 2]
    model = fit(GRAPH, POINTS, y, np.random.default_rng(0), effort=effort)
    edges = dict.fromkeys(GRAPH.edges, 0.9)
    return Discovery("y", "data", GRAPH, False, "because.", edges, {("a", "b"): 0.5}, 0.1, float("inf"), None, model)


def test_the_network_read_back_predicts_the_same_to_the_last_bit(found: Discovery, tmp_path: Path) -> None:
    assert found.model is not None
    written = save(found, tmp_path / "new", {"graph.svg": "<svg/>", "report.html": "<html/>"})
    assert sorted(path.name for path in written) == sorted(FILES)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(FILES)
    model = load_predictor(tmp_path / "new").model.models["graph"]
    assert isinstance(model, Fitted)
    written = json.loads((tmp_path / "new" / "graph.json").read_text())
    assert model.graph == CompositionalGraph.from_json(written) == GRAPH
    np.testing.assert_array_equal(model.predict(POINTS), found.model.predict(POINTS))
    np.testing.assert_array_equal(model.members, found.model.members)
    file = load_predictor(tmp_path / "new" / "model.safetensors")
    np.testing.assert_array_equal(file.model.predict(POINTS), found.model.predict(POINTS))
    document = json.loads((tmp_path / "new" / "discovery.json").read_text())
    assert document["dense_test_error"] is None, "infinities are no JSON"
    assert {(edge["from"], edge["to"]) for edge in document["edges"]} == set(GRAPH.edges)


def test_the_onnx_file_computes_what_the_network_does(tmp_path: Path) -> None:
    """Products, sums, several groups of a stage and columns that are not used; by another reader of the format."""
    graph = CompositionalGraph(
        ("a", "b", "c", "d"),
        (
            *(Node("u", ("a", "b")), Node("v", ("c",)), Node("p", ("a", "c"), "product")),
            *(Node("s", ("u", "v", "p"), "sum"), Node("y", ("s", "a", "b"))),
        ),
    )
    draw = np.random.default_rng(2)
    x = draw.normal(3, 2, size=(40, 4))
    effort = replace(EFFORTS["quick"], descent=5, polish=3, width=3)
    model = fit(graph, x, x[:, 0] * x[:, 1], draw, effort=effort)
    np.testing.assert_allclose(run(onnx_bytes(alone(model), 4), x), model.predict(x), rtol=1e-9)
    deep = fit(graph, x, x[:, 0] * x[:, 1], draw, effort=effort, depth=2)
    np.testing.assert_allclose(run(onnx_bytes(alone(deep), 4), x[:3]), deep.predict(x[:3]), rtol=1e-9)
    with pytest.raises(BadInput, match="'gelu' units cannot be written as ONNX"):
        onnx_bytes(alone(replace(model, activation="gelu")), 4)


def test_a_weighted_mean_of_every_kind_of_model_reads_back_and_is_written_as_onnx(
    found: Discovery, tmp_path: Path
) -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(200, 3))
    x[:, 2] = np.round(x[:, 2])
    y = np.abs(x[:, 0]) + (x[:, 1] > 0) * x[:, 2]
    fold = np.arange(200) % 4
    assert found.model is not None
    models = {
        "graph": found.model,
        "additive": fit_additive(x, y, fold),
        "boosting": fold_trees(x, y, fold, boosted(x, y, 0), 0),
        "process": fit_process(x, y, draw),
    }
    mean = WeightedMean(models, {"graph": 0.2, "additive": 0.3, "boosting": 0.3, "process": 0.1}, 0.1)
    new = 2 * draw.normal(size=(50, 3))
    said = 0.1 + sum(share * models[name].predict(new) for name, share in mean.weights.items())
    np.testing.assert_allclose(mean.predict(new), said)
    save(replace(found, returned=mean), tmp_path)
    read = load_predictor(tmp_path).model
    np.testing.assert_array_equal(read.predict(new), mean.predict(new))
    assert read.to_json() == mean.to_json()
    np.testing.assert_allclose(run((tmp_path / "model.onnx").read_bytes(), new), said, rtol=1e-9)
    tensors, metadata = read_checkpoint(tmp_path / "model.safetensors")
    for name, message in (("boosting.left", "lead to nodes"), ("additive.knots", "not of 3 variables")):
        changed = {**tensors, name: tensors[name][:-1] if name == "additive.knots" else tensors[name] + 10**6}
        write_checkpoint(tmp_path / "model.safetensors", changed, metadata)
        with pytest.raises(BadInput, match=message):
            load_predictor(tmp_path)


def test_a_saved_network_predicts_new_tables_with_intervals_and_names_strange_rows(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.uniform(0, 1, (90, 2)), columns=["a", "b"]).assign(kind=draw.choice(["u", "v"], 90))
    frame["y"] = frame["a"] + (frame["kind"] == "v") + 0.1 * draw.normal(size=90)
    found = discover(frame, "y", effort="quick", boosting=False)
    save(found, tmp_path)
    new = pd.DataFrame({"kind": ["v", "u", "w"], "b": 0.5, "a": [0.5, 0.25, 3.0]}, index=[7, 8, 9])
    told = predict(tmp_path, new)
    np.testing.assert_array_equal(told.value, found.predict(new).value)
    assert told.value[:2] == pytest.approx([1.5, 0.25], abs=0.15)
    assert told.low is not None
    assert told.high is not None
    assert np.all((told.low < told.value) & (told.value < told.high))
    assert list(told.to_frame().index) == [7, 8, 9]
    assert list(told.to_frame().columns) == ["y", "y low", "y high"]
    assert any(note.startswith("1 of 3 rows have a 'kind' such as 'w'") for note in told.notes)
    assert any(note.startswith("1 of 3 rows have a 'a' outside") for note in told.notes)
    (tmp_path / "new").mkdir()
    new.to_csv(tmp_path / "new" / "rows.csv", index=False)
    again = predict(tmp_path, tmp_path / "new" / "rows.csv", coverage=0.5)
    np.testing.assert_array_equal(again.value, told.value)
    assert again.high is not None
    assert np.all(again.high < told.high)
    yes_or_no = replace(found, residuals=None).predict(new)
    assert list(yes_or_no.columns()) == ["y"]
    assert yes_or_no.to_json()["rows"][0].keys() == {"value"}
    assert 0.7 < found.details["prediction_interval"]["share_of_test_rows"] <= 1
    with pytest.raises(BadInput, match="no column is called 'b'"):
        predict(tmp_path, new.drop(columns="b"))


def test_an_earlier_discovery_is_written_over_and_leaves_nothing_behind(found: Discovery, tmp_path: Path) -> None:
    save(found, tmp_path, {"report.html": "old"})
    save(replace(found, model=None), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["discovery.json", "graph.json"]
    with pytest.raises(BadInput, match=r"there is no '.*model\.safetensors'"):
        load_predictor(tmp_path)


def test_a_folder_with_anything_else_is_refused_and_untouched(found: Discovery, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(BadInput, match=r"holds something else \('thesis.tex'\)"):
        save(found, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(BadInput, match="is a file"):
        check_folder(tmp_path / "thesis.tex")


def test_damaged_and_foreign_files_are_refused_in_one_sentence(found: Discovery, tmp_path: Path) -> None:
    save(found, tmp_path / "good")
    whole = (tmp_path / "good" / "model.safetensors").read_bytes()
    flipped = bytearray(whole)
    flipped[-5] ^= 1
    header = int.from_bytes(whole[:8], "little")
    text = whole[8 : 8 + header]
    wider = text.replace(b'\\"width\\": 3', b'\\"width\\": 4')
    named = text.replace(b'\\"width\\"', b'\\"wodth\\"')
    assert wider != text != named
    files = {
        "cut": whole[:-40],
        "flipped": bytes(flipped),
        "wider": whole[:8] + wider + whole[8 + header :],
        "misnamed": whole[:8] + named + whole[8 + header :],
        "pickled": pickle.dumps({"members": 1}),
        "empty": b"",
    }
    for name, content in files.items():
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        with pytest.raises(BadInput, match=name) as raised:
            load_predictor(path)
        assert "\n" not in str(raised.value), name
    save_file({"members": POINTS}, tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match=r"other.safetensors' is no model that discover wrote"):
        load_predictor(tmp_path / "other.safetensors")
    tensors, metadata = read_checkpoint(tmp_path / "good" / "model.safetensors")
    document = json.loads(metadata["model"])
    for value in (None, "1", float("inf")):
        path = tmp_path / "scaled.safetensors"
        changed = {**document, "models": {"graph": {**document["models"]["graph"], "spread": value}}}
        write_checkpoint(path, tensors, {**metadata, "model": json.dumps(changed)})
        with pytest.raises(BadInput, match="its spread is"):
            load_predictor(path)
    assert load_predictor(tmp_path / "good").model.kind == "graph"
