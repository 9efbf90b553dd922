"""`theodolite predict`: new rows in, predictions out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from theodolite.cli.predict import predict
from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.structure.fit.effort import Effort
from theodolite.structure.regressor import CompositionalRegressor
from theodolite.structure.saving import save

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(predict)


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of a known graph, as discover would save it."""
    x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    known = CompositionalGraph.dense(("a", "b"))
    tiny = Effort(2, 1, 20, 6, 1e9, 4, None)
    found = CompositionalRegressor(known, effort=tiny, random_state=0).fit(x, x.sum(axis=1)).discovery_
    place = tmp_path_factory.mktemp("found")
    save(found, place)
    return place


def test_predictions_are_printed_written_and_given_as_json(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("b,a,other\n0.5,0.25,x\n5,0,y\n")
    done = call(folder, table)
    assert done.exit_code == 0, done.output
    header, first, _ = done.stdout.splitlines()
    assert header == "y,y low,y high"
    value, low, high = map(float, first.split(","))
    assert low < value < high
    assert value == pytest.approx(0.75, abs=0.1)
    assert "rows have a 'b' outside" in done.stderr
    told = json.loads(call(folder, table, "--json").stdout)
    assert told["rows"][0]["value"] == pytest.approx(value)
    assert told["coverage"] == 0.9
    out = tmp_path / "told.csv"
    assert call(folder, table, "--out", out).stdout.strip() == str(out)
    assert out.read_text() == done.stdout


def test_what_cannot_be_predicted_is_refused_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("a\n0.25\n")
    for words, told in [
        ((folder, table), "no column is called 'b'"),
        ((tmp_path / "nothing", table), "there is no"),
        ((folder, tmp_path / "none.csv"), "there is no file"),
        ((folder, table, "--out", tmp_path / "a.txt"), "no .csv file"),
        ((folder, table, "--coverage", 2), r"coverage of 2|no column"),
    ]:
        done = call(*words)
        assert isinstance(done.exception, BadInput), (words, done.output)
        with pytest.raises(BadInput, match=told):
            raise done.exception
