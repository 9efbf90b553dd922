"""`scale`, as a function and as a command."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from theodolite import scale
from theodolite.cli.main import app
from theodolite.errors import BadInput
from theodolite.lab.running import Running

SMALL = {"sizes": [2000], "depths": [1, 2], "seeds": 2, "rates": [4e-3], "tokens": 1, "context": 16, "batch": 8}


@pytest.fixture
def text(tmp_path):
    words = random.Random(0).choices(["rank", "depth", "width", "and", "of", "the"], k=4000)
    path = tmp_path / "text.txt"
    path.write_text("\n".join(" ".join(words[i : i + 8]) for i in range(0, 4000, 8)), encoding="utf-8")
    return path


def test_losses_are_those_of_the_rows_and_what_is_finished_is_not_trained_again(text, tmp_path):
    store = Running(out=tmp_path / "kept")
    found = scale(str(text), **SMALL, running=store, rows=32)
    (only,) = found.valleys
    assert [p.shape.depth for p in only.points] == [1, 2]
    assert all(1 < bits < 8 for p in only.points for bits in p.bits)
    assert found.reused == 0
    again = scale(str(text), **SMALL, running=store, rows=32)
    assert again.reused == 4
    assert again.valleys == found.valleys
    more = scale(str(text), **{**SMALL, "depths": [1, 2, 3]}, running=store, rows=32)
    assert more.reused == 4


def test_the_command_prints_a_table_and_writes_a_page(text, tmp_path):
    out = tmp_path / "out"
    options = ["--sizes", "2k", "--depths", "1,2,48", "--seeds", "2", "--lr", "4e-3", "--tokens", "1"]
    options += ["--context", "16", "--batch", "8", "--rows", "32", "--out", str(out), "--workers", "1"]
    shown = CliRunner().invoke(app, ["scale", str(text), *options])
    assert shown.exit_code == 0, shown.output
    assert "Best depth" in shown.output
    assert "left out: size 2,000: depth 48 is too deep" in " ".join(shown.output.split())
    assert "all of them are finished" not in shown.output
    assert "report.html" in shown.output
    assert "The valley of every size" in (out / "report.html").read_text(encoding="utf-8")
    told = CliRunner().invoke(app, ["scale", str(text), *options, "--json"])
    assert "all of them are finished" in told.stderr
    document = json.loads(told.stdout)
    assert document["reused"] == 4
    assert document["sizes"][0]["points"][0]["shape"]["depth"] == 1
    assert document["published_transition"]["slope"] == 0.0555


def test_a_rate_at_which_networks_diverge_is_told_and_the_others_decide(text, tmp_path):
    store = Running(out=tmp_path / "kept")
    found = scale(str(text), **{**SMALL, "rates": [4e-3, 1e30]}, running=store, rows=32)
    assert found.diverged == ("size 2,000: at a rate of 1e+30 4 networks of depths 1, 2 diverged",)
    assert [p.rate for p in found.valleys[0].points] == [4e-3, 4e-3]
    with pytest.raises(BadInput, match=r"every network diverged at a rate of 1e\+30: give lower ones"):
        scale(str(text), **{**SMALL, "rates": [1e30]}, running=store, rows=32)
    assert scale(str(text), **SMALL, running=store, rows=32).reused == 4


def test_what_another_device_has_finished_is_read_here(text, tmp_path, monkeypatch):
    store = Running(out=tmp_path / "kept")
    with pytest.raises(BadInput, match="tf32 is a mode of CUDA devices"):
        scale(str(text), **SMALL, running=store, rows=32, precision="tf32")
    with monkeypatch.context() as elsewhere:
        for place in ("theodolite.lab.running", "theodolite.lab.work"):
            elsewhere.setattr(f"{place}.check_precision", lambda precision, device: "float32")
        trained = scale(str(text), **SMALL, running=store, rows=32, precision="tf32")
    again = scale(str(text), **SMALL, running=store, rows=32, precision="tf32")
    assert again.reused == 4
    assert again.valleys == trained.valleys


def test_the_estimate_counts_what_is_left_alone(text, tmp_path):
    told = []
    store = Running(out=tmp_path / "kept")
    for _ in range(2):
        scale(str(text), **SMALL, running=store, rows=32, before=lambda planned, seconds: told.append(seconds))
    assert told[0] > 0
    assert told[1] == 0


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"sizes": [100]}, "no depth fits a size of 100"),
        ({"sizes": []}, "no sizes are given"),
        ({"sizes": ["many"]}, "many"),
        ({"depths": [0]}, "depths are whole numbers from 1 on"),
        ({"seeds": 0}, "seeds = 0 trains nothing"),
        ({"tokens": 0}, "train nothing"),
        ({"net": "mlp"}, "mlp"),
        ({"net": "nothing"}, "nothing"),
        ({"vocabulary": 5000}, "supports a vocabulary of"),
        ({"context": 10_000_000}, "too short for a context"),
    ],
)
def test_what_cannot_be_trained_is_told_in_a_sentence(text, changed, sentence):
    with pytest.raises(BadInput, match=sentence):
        scale(str(text), **{**SMALL, **changed})


@pytest.mark.parametrize("options", [["--depths", "1.5"], ["--depths", "a"], ["--sizes", "x"], ["--lr", ""]])
def test_nonsense_ends_the_command_with_a_sentence(text, tmp_path, options):
    shown = CliRunner().invoke(app, ["scale", str(text), "--out", str(tmp_path / "o"), *options])
    assert isinstance(shown.exception, BadInput)
    assert options[0] in str(shown.exception) or options[1] in str(shown.exception)
