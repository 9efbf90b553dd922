"""`theodolite runs` and `theodolite compare`: tables of 80 columns, one document with --json, one sentence if wrong."""

from __future__ import annotations

import csv
import io
import json

import pytest
from scipy import stats

from tests.bench.members import member, stored
from theodolite.lab.cell import Row
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store

LONG = "experiments_of_ours.py:GatedDeltaNetwork[v2]"  # brackets are markup to rich


def rows() -> list[Row]:
    found = []
    for seed in range(16):
        found.append(
            member("lstm", seed=seed, accuracy=1.0 if seed < 13 else 0.7, solved_at=400 if seed < 13 else None)
        )
        found.append(member("transformer", seed=seed, accuracy=0.5 + seed / 100))
    found += [member(LONG, "linear-periodic", accuracy=-250.0, unseen=None), member("mlp", "copy", accuracy=None)]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("runs"), rows())


@pytest.mark.parametrize("command", [["runs"], ["runs", "--members"], ["compare", "lstm", "transformer"]])
def test_what_is_printed_fits_into_80_columns(theodolite, folder, command):
    outcome = theodolite(*command, "--out", folder)
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_the_table_says_how_many_members_solved_what(theodolite, folder):
    shown = theodolite("runs", "--out", folder).out
    lines = shown.splitlines()
    (line,) = [line for line in lines if line.startswith("lstm")]
    scores = stats.ttest_1samp([1.0] * 13 + [0.7] * 3, 0).confidence_interval()
    share = stats.binomtest(13, 16).proportion_ci(method="wilson")
    told = f"13/16 ({100 * share.low:.0f}–{100 * share.high:.0f} %)", f"0.944 ± {(scores.high - scores.low) / 2:.3f}"
    assert " ".join(line.split()) == f"lstm {told[0]} {told[1]} 0.700–1.000 0.600 400"
    (line,) = [line for line in lines if line.startswith("transformer")]
    assert "0/16 (0–19 %)" in line
    assert LONG in lines
    assert "-250" in shown
    assert "1 diverged" in shown
    assert "Wilson" in shown


def test_filters_members_and_csv_agree_with_the_store(theodolite, folder, tmp_path):
    shown = theodolite("runs", "--out", folder, "--members", "--net", "lstm", "--status", "unsolved").out
    assert sum(line.startswith("lstm") for line in shown.splitlines()) == 3
    filters = ("--net", "lstm", "--where", "seed=2", "--where", "lr=1e-3")
    (line,) = csv.DictReader(io.StringIO(theodolite("runs", "--out", folder, *filters, "--csv", "-").out))
    assert (line["net"], line["seed"], line["status"]) == ("lstm", "2", "solved")
    file = tmp_path / "members.csv"
    outcome = theodolite("runs", "--out", folder, "--csv", file)
    assert (outcome.code, outcome.out) == (0, "")
    assert len(list(csv.DictReader(io.StringIO(file.read_text())))) == len(rows())


def test_json_is_one_document_also_beside_a_file(theodolite, folder, tmp_path):
    outcome = theodolite("runs", "--out", folder, "--json", "--csv", tmp_path / "members.csv")
    document = json.loads(outcome.out)
    assert set(document) == {"summary", "members"}
    assert len(document["members"]) == len(rows())
    assert document["summary"][0]["solved"]["count"] == 13
    assert (tmp_path / "members.csv").exists()


def test_failures_are_shown_with_the_traceback_if_asked(theodolite, tmp_path):
    assert "nothing failed" in theodolite("runs", "--out", stored(tmp_path / "fine", rows()[:1]), "--failures").out
    with Store(tmp_path / "failed") as store:
        cell = rows()[0].cell
        store.plan([cell], lambda free: [Group.of(free)])
        store.fail(store.claim([cell.key]), "the net [b]raised[/b]", "Traceback\n  deep inside", retry=False)
    command = ("runs", "--out", tmp_path / "failed", "--failures")
    short, long = theodolite(*command).out, theodolite(*command, "-v").out
    assert "the net [b]raised[/b]" in short
    assert cell.key[:12] in short
    assert "deep inside" not in short
    assert "deep inside" in long
    (failure,) = json.loads(theodolite(*command, "--json").out)["failures"]
    assert failure["sentence"] == "the net [b]raised[/b]"


def test_a_comparison_says_who_is_higher(theodolite, folder):
    shown = theodolite("compare", "lstm", "transformer", "--out", folder).out
    assert "A higher; 16 pairs" in shown
    assert "solved: A 13/16, B 0/16, B − A −81 points" in shown
    document = json.loads(theodolite("compare", "lstm", "transformer", "--out", folder, "--json").out)
    (task,) = document["tasks"]
    assert (task["task"], task["pairs"], task["verdict"]) == ("parity-check", 16, "first")
    assert task["difference"] == pytest.approx(0.575 - 0.94375)


def test_steps_speak_of_steps_and_a_lone_pair_of_too_few(theodolite, tmp_path):
    def seeds(count: int, name: str):
        pairs = [member(n, seed=s, solved_at=100 * w + s) for s in range(count) for n, w in (("lstm", 1), ("mlp", 2))]
        return stored(tmp_path / name, pairs)

    shown = theodolite("compare", "lstm", "mlp", "--metric", "steps", "--out", seeds(6, "six")).out
    assert "B needs more steps; 6 pairs" in shown
    assert "0/0/6" in shown
    shown = theodolite("compare", "lstm", "mlp", "--out", seeds(1, "one")).out
    assert "too few pairs for an interval; 1 pair" in shown


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["runs", "--where", "lr"], "--where 'lr' is not KEY=VALUE"),
        (["runs", "--where", "lr=1", "--where", "lr=2"], "--where 'lr' is given twice"),
        (["runs", "--where", "sede=1"], "did you mean 'seed'"),
        (["runs", "--where", "seed=one"], "'seed' holds a number such as 0, and 'one' is none"),
        (["runs", "--status", "lost"], "no status is called 'lost'"),
        (["runs", "--failures", "--net", "lstm"], "--failures shows all that failed"),
        (["runs", "--csv", "-", "--json"], "would both write to stdout"),
        (["runs", "--csv", "/nowhere/at/all.csv"], "the folder '/nowhere/at' is not there"),
        (["compare", "lstm", "gru"], "no net of these runs is called 'gru'"),
        (["compare", "lstm", "mlp"], "have no pair of members"),
        (["compare", "lstm", "transformer", "--metric", "loss"], "no metric is called 'loss'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_in_one_sentence(theodolite, folder, command, told):
    outcome = theodolite(*command, "--out", folder)
    assert outcome.code == 2
    assert bool(outcome.out) == ("--json" in command)
    assert told in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("command", [["runs"], ["compare", "lstm", "mlp"]])
def test_a_store_that_is_not_there_is_not_made(theodolite, tmp_path, command):
    outcome = theodolite(*command, "--out", tmp_path / "nothing")
    assert outcome.code == 2
    assert "there is no store in" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_is_said_to_be_empty(theodolite, tmp_path):
    Store(tmp_path).close()
    assert "no trained member" in theodolite("runs", "--out", tmp_path).out
    outcome = theodolite("compare", "lstm", "mlp", "--out", tmp_path)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
