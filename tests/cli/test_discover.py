"""`theodolite discover`: what it prints and writes, from a table and from a black box."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from theodolite.cli.discover import discover, parse_ranges
from theodolite.errors import BadInput
from theodolite.structure.saving import FILES, load_predictor

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(discover)


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).uniform(-1, 1, (120, 3))
    rows = [f"{a},{b},{c},Ulm,{np.sin(2 * a * b) + c}" for a, b, c in x]
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,city,y\n" + "\n".join(rows) + "\n")
    return path


def test_a_table_gives_a_verdict_a_folder_and_one_json_document(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call(table, "--target", "y", "--drop", "city", "--effort", "quick", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {"graph", "abstained", "test_error", "dense_test_error", "boosting_test_error", "reason"} <= set(told)
    assert sorted(told["files"]) == sorted(FILES) == sorted(path.name for path in out.iterdir())
    assert told["graph"] == json.loads((out / "graph.json").read_text())
    assert told["graph"]["variables"] == ["a", "b", "c"]
    kept = json.loads((out / "discovery.json").read_text())
    assert kept["test_error"] == told["test_error"]
    page = (out / "report.html").read_text()
    assert "theodolite discover" in page
    assert "--drop city" in page
    x = np.random.default_rng(1).uniform(-1, 1, (50, 3))
    truth = np.sin(2 * x[:, 0] * x[:, 1]) + x[:, 2]
    assert np.mean((load_predictor(out).model.predict(x) - truth) ** 2) < 0.1 * np.var(truth)


def test_a_black_box_prints_its_graph(tmp_path: Path) -> None:
    box = tmp_path / "box.py"
    box.write_text("import numpy as np\n\n\ndef energy(x):\n    return np.tanh(x[:, 0] * x[:, 1]) * x[:, 2]\n")
    done = call(f"{box}:energy", "--range", "p=-1:1", "--range", "q=0:1", "--range", "r=1:2", "--graph-only")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("graph found:")
    assert "energy = " in done.stdout
    assert all(name in done.stdout for name in "pqr")
    box.write_text(box.read_text() + "\n\ndef loud(x):\n    print('called')\n    return energy(x)\n")
    one = call(f"{box}:loud", "--variables", 3, "--range", "-1:1", "--graph-only", "--json")
    assert json.loads(one.stdout)["graph"]["variables"] == ["x1", "x2", "x3"]


def test_bad_input_is_told_before_anything_is_fitted(table: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years")
    for words, told in [
        ((table,), "--target"),
        ((table, "--target", "z"), "no column is called 'z'"),
        ((table, "--target", "city"), "'city' is 'Ulm' in every row"),
        ((table, "--target", "y", "--category", "town"), "no column is called 'town'"),
        ((table, "--target", "y", "--out", tmp_path / "full"), "holds something else"),
        ((table, "--target", "y", "--drop", "city", "--effort", "heroic"), "effort must be"),
        ((table, "--target", "y", "--drop", "city", "--graph-only"), "goes with a black box"),
        ((table, "--target", "y", "--drop", "city", "--seconds", "nan"), "--seconds nan"),
        (("box.py:f", "--variables", "-1", "--range", "0:1"), "--variables -1 cannot"),
        (("box.py:f", "--variables", "100000000", "--range", "0:1"), "1 to 1,000"),
        ((tmp_path / "none.csv", "--target", "y"), "there is no file"),
    ]:
        done = call(*words)
        assert isinstance(done.exception, BadInput), (words, done.output)
        with pytest.raises(BadInput, match=told):
            raise done.exception
        assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "full"]


def test_ranges_are_read_by_name_or_for_all() -> None:
    assert parse_ranges(None) is None
    assert parse_ranges(["-1:2.5"]) == (-1.0, 2.5)
    assert parse_ranges(["a=0:1", "b of=it=-3:1e2"]) == {"a": (0.0, 1.0), "b of=it": (-3.0, 100.0)}
    for texts, told in [
        (["a=0"], "is not"),
        (["a=0:1:2"], "is not"),
        (["a=x:1"], "is not"),
        (["0:1", "a=0:1"], "all variables and for single"),
        (["a=0:1", "a=0:2"], "twice for 'a'"),
        (["0:1", "0:2"], "twice for 'all variables'"),
    ]:
        with pytest.raises(BadInput, match=told):
            parse_ranges(texts)


def test_the_command_is_loaded_without_torch() -> None:
    heavy = "import sys, theodolite.cli.discover; print({'torch', 'numpy', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_second_target_is_not_passed_over_in_silence(table: Path) -> None:
    done = call(table, "--target", "y", "--target", "c")
    assert isinstance(done.exception, BadInput)
    assert "one column is explained at a time" in str(done.exception)
