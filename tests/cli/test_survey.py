"""`theodolite survey`: what it prints, what it leaves under --out, and nothing else."""

from __future__ import annotations

import json

import pytest

NEEDS = """
from torch import nn

class Needs(nn.Module):
    def __init__(self, features, whatever, outputs=1):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(features, whatever), nn.Tanh(), nn.Linear(whatever, outputs))

    def forward(self, x):
        return self.f(x)
"""


def test_a_report_and_the_store_are_left_under_out_and_nothing_elsewhere(theodolite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    outcome = theodolite("survey", "sum-of-products", "--out", "here", "--json", "--workers", 1)
    one_json_document(outcome.out)
    outcome = theodolite("survey", "sum-of-products", "--out", "here", "--workers", 1)
    assert outcome.code == 0
    assert {p.name for p in (tmp_path / "here").iterdir()} == {"report.html", "store.db", "checkpoints", "survey.json"}
    assert [p.name for p in tmp_path.iterdir()] == ["here"]
    assert outcome.out.count("sum-of-products") == 1
    for said in ("✓ yes", "separation rank (exact)", "at most 3", "3 of 3", "here/report.html"):
        assert said in outcome.out
    page = (tmp_path / "here" / "report.html").read_text()
    assert "sum-of-products" in page
    again = theodolite("survey", "sum-of-products", "--out", "here", "--workers", 1, "--tables")
    assert "from an earlier run" in again.out
    assert "Equivariance errors" in again.out
    assert "not applicable: Learnability and length generalisation" in again.out


def test_plain_is_a_line_a_finding_and_against_says_what_changed(theodolite, tmp_path):
    common = ("survey", "sum-of-products", "--only", "separation-rank,symmetry", "--workers", 1)
    first = theodolite(*common, "--out", tmp_path / "old", "--plain")
    assert "sum-of-products\tseparation rank (exact)\tyes\trank 3 (as built, left-right)\tat most 3\t✓ agrees" in (
        first.out.splitlines()
    )
    assert "estimating: getting ready" in first.err.splitlines()[0]
    assert "estimating: 3 measurements in 2 sections, about a minute on one core" in first.err.splitlines()[1]
    changed = ("--arg", "terms=2", "--out", tmp_path / "new", "--against", tmp_path / "old")
    lines = theodolite(*common, *changed, "--plain").out.splitlines()
    assert "sum-of-products, separation rank (exact): ✓ 3 → ✗ 2" in lines
    page = (tmp_path / "new" / "report.html").read_text()
    assert page.index('id="section-against"') < page.index('id="section-separation-rank"')
    told = json.loads(theodolite(*common, *changed, "--json").out)["against"]
    assert [change["verdict"] for change in told["changes"]].count("changed") == 1
    refused = theodolite(*common, "--out", tmp_path / "x", "--against", tmp_path)
    assert refused.code == 2
    assert "holds no survey" in refused.err


def one_json_document(text: str) -> None:
    document = json.loads(text)
    assert document["nets"] == ["sum-of-products"]
    (exact,) = [a for a in document["answers"] if "exactly" in a["question"]]
    assert exact["standing"] == "yes"
    assert exact["agrees"] is True
    (section,) = [s for s in document["sections"] if s["id"] == "separation-rank"]
    assert [row["result"]["rank"] for row in section["rows"]] == [3, 3]
    assert document["reused"] == 0
    assert document["asked"] == sum(len(s["rows"]) for s in document["sections"])
    assert document["failures"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuchnet"], "nosuchnet"),
        (["mlp", "--preset", "slow"], "quick, standard, full"),
        (["mlp", "--device", "tpu"], "cpu or cuda"),
        (["mlp", "--engine", "rya"], "no engine is called 'rya'"),
        (["mlp", "--arg", "dpeth=2"], "depth"),
        (["--arg", "depth=2"], "name one, or leave --arg out"),
        (["mlp", "--params", "many"], "write 64k, 1.5M, 7B or 64000"),
        (["{file}:Needs"], "give --arg whatever=VALUE"),
        (["{file}:Nothing"], "Needs"),
        (["{file}.txt:Needs"], "there is no file"),
    ],
)
def test_bad_input_is_one_sentence(theodolite, tmp_path, arguments, words):
    file = tmp_path / "net.py"
    file.write_text(NEEDS)
    outcome = theodolite("survey", *(a.format(file=file) for a in arguments), "--out", tmp_path / "here")
    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "here" / "report.html").exists()


def test_a_folder_that_holds_something_else_is_left_alone(theodolite, tmp_path):
    file, full = tmp_path / "file", tmp_path / "full"
    file.write_text("kept")
    full.mkdir()
    (full / "report.html").write_text("kept")
    for out, words in (
        (file, "is a file"),
        (file / "below", "choose another"),
        (full, "holds something else ('report.html')"),
    ):
        outcome = theodolite("survey", "mlp", "--out", out)
        assert outcome.code == 2
        assert words in outcome.err
    assert file.read_text() == (full / "report.html").read_text() == "kept"
    assert len(list(full.iterdir())) == 1


def test_a_survey_that_could_measure_nothing_says_why_and_leaves_nothing(theodolite, tmp_path):
    outcome = theodolite("survey", "transformer", "--params", "200", "--only", "matrix", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "nothing could be measured: Expressivity, gradient signal, learnability: a budget of 200" in outcome.err
    assert not (tmp_path / "out" / "report.html").exists()
