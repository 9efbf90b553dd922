"""`reproduce`, as a function and as a command: published beside measured, resumable, refusals in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from theodolite.claims import reproduce as module
from theodolite.claims.expressivity.failures.curves import Curves
from theodolite.claims.expressivity.failures.parity import Parity
from theodolite.claims.reproduce import remedies, reproduce
from theodolite.claims.tables.experiment import Experiment, Part, experiments
from theodolite.claims.tables.failures import compared
from theodolite.cli.reproduce import reproduce as command
from theodolite.errors import BadInput

SMALL = {
    "parity": (Part("failure-parity", Parity(5, 2, seeds=2, steps=300)),),
    "curves": tuple(
        Part("failure-curves", Curves(variant, seeds=2, steps=500, train=300, test=100, points=30))
        for variant in ("linear", "conditioned")
    ),
}


@pytest.fixture(autouse=True)
def small_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, parts in SMALL.items():
        tiny = Experiment(name, name, "§", {"quick": parts, "full": parts})
        monkeypatch.setitem(experiments._items, name, tiny)
    table = replace(module.tables["failures"], experiments=lambda: list(SMALL))
    monkeypatch.setitem(module.tables._items, "failures", table)


def run(*arguments: str):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


def test_published_figures_stand_beside_the_measured_median():
    parity, linear, conditioned = reproduce(seeds=3)
    assert (parity["experiment"], parity["setting"], parity["seeds"]) == ("parity", "d = 5, k = 2", 3)
    rows = {r["quantity"]: r for r in parity["rows"]}
    reached = rows["iterations to 100 %"]
    assert (reached["published"], reached["published_to"], reached["origin"]) == (200, 400, "re-run")
    values = parity["result"]["quantities"]["final accuracy"]
    assert rows["final accuracy"]["measured"] == sorted(values)[1]
    assert (rows["final accuracy"]["lowest"], rows["final accuracy"]["highest"]) == (min(values), max(values))
    assert parity["shorter"] == "300 of 50,000 iterations"
    assert {r["quantity"]: r["published"] for r in linear["rows"]}["loss at 500"] == 13.25
    assert conditioned["shorter"] is None
    assert parity["seconds"] > 0
    json.dumps([parity, linear, conditioned], allow_nan=False)


def test_what_was_never_reached_has_no_median():
    row = compared("x", [100, None, None], None)
    assert (row["measured"], row["lowest"], row["reached"], row["seeds"]) == (None, 100, 1, 3)
    assert compared("x", [100, 300, None], None)["measured"] == 300
    assert compared("x", [None], None)["lowest"] is None


def test_remedies_are_drawn_from_the_results():
    (line,) = remedies(reproduce(experiments=["curves"]))
    assert line["remedy"] == "geometry"
    assert float(line["after"]) < 1e-3 < float(line["before"])


def test_a_folder_keeps_what_is_finished_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    first = reproduce(experiments=["curves"], out=folder)
    ran = []
    from theodolite.claims.expressivity.failures import curves, parity

    monkeypatch.setattr(curves, "run", lambda *a, **k: ran.append("curves"))
    real = parity.run
    monkeypatch.setattr(parity, "run", lambda *a, **k: ran.append("parity") or real(*a, **k))
    again = reproduce(out=folder)
    assert ran == ["parity"]
    assert [r["result"] for r in again[1:]] == [r["result"] for r in first]


def test_another_seed_is_another_run():
    one, two = (reproduce(experiments=["parity"], seed=seed)[0]["result"]["quantities"] for seed in (0, 1))
    assert one["mean accuracy"] != two["mean accuracy"]


def test_progress_ends_with_everything_done():
    seen = []
    reproduce(experiments=["curves"], watch=lambda done, total, label: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"table": "failers"}, "no table is called 'failers': did you mean 'failures'"),
        ({"experiments": ["party"]}, "no experiment is called 'party': did you mean 'parity'"),
        ({"preset": "quik"}, "preset 'quik' is unknown: use quick or full"),
        ({"seeds": 0}, "seeds = 0 trains nothing"),
        ({"device": "tpu"}, "tpu"),
    ],
)
def test_bad_input_is_one_sentence(options, told):
    with pytest.raises(BadInput, match=told):
        reproduce(**options)


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match="holds something else"):
        reproduce(out=tmp_path)


def test_the_command_prints_one_json_document():
    done = run("failures", "--only", "parity,curves", "--seeds", "2", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["table"], document["preset"]) == ("failures", "quick")
    assert [r["experiment"] for r in document["results"]] == ["parity", "curves", "curves"]
    assert document["remedies"][0]["remedy"] == "geometry"


def test_the_command_prints_tables_with_what_is_shorter():
    done = run("failures", "--only", "parity, curves")
    assert done.exit_code == 0, done.output
    for part in (
        "d = 5, k = 2 (2 seeds)",
        "200–400ʳ",
        "published",
        "measured",
        "Shorter than published: 300 of 50,000",
    ):
        assert part in done.stdout
    assert "geometry: linear → conditioned" in done.stdout


def test_the_command_refuses_an_unknown_table():
    done = run("failurs")
    assert isinstance(done.exception, BadInput)
    assert done.exception.exit_code == 2
    assert "did you mean 'failures'" in str(done.exception)
