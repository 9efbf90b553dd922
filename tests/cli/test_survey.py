"""`theodolite survey`: what it prints, what it leaves under --out, and nothing else."""

from __future__ import annotations

import json


def test_report_and_rows_are_written_under_out_only(theodolite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = theodolite("survey", "polynomial-mlp", "conv-circuit", "--out", tmp_path / "here")
    assert outcome.code == 0
    assert sorted(p.name for p in (tmp_path / "here").iterdir()) == ["report.html", "rows.jsonl"]
    assert [p.name for p in tmp_path.iterdir()] == ["here"]
    rows = [json.loads(line) for line in (tmp_path / "here" / "rows.jsonl").read_text().splitlines()]
    assert {row["config"]["net"] for row in rows} == {"polynomial-mlp", "conv-circuit"}
    assert all(row["error"] is None and row["result"]["rank"] > 0 for row in rows)
    page = (tmp_path / "here" / "report.html").read_text()
    assert "polynomial-mlp" in page
    assert "leaved" in outcome.out


def test_json(theodolite, tmp_path):
    outcome = theodolite("survey", "conv-circuit", "--out", tmp_path / "here", "--json")
    document = json.loads(outcome.out)
    assert document["nets"] == ["conv-circuit"]
    assert {row["partition"] for row in document["rows"]} == {"left-right", "interleaved"}


def test_a_net_that_does_not_fit_says_why(theodolite, tmp_path):
    outcome = theodolite("survey", "transformer", "--out", tmp_path / "here")
    assert outcome.code == 0
    assert "not applicable" in outcome.out
    assert "not polynomial" in outcome.out


def test_bad_input(theodolite, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for arguments, word in (
        (["nosuchnet"], "nosuchnet"),
        (["--preset", "slow"], "quick, standard, full"),
        (["--out", blocked / "below"], "choose another --out"),
        (["--device", "tpu"], "cpu or cuda"),
    ):
        outcome = theodolite("survey", *arguments, *([] if "--out" in arguments else ["--out", tmp_path / "here"]))
        assert outcome.code == 2
        assert word in outcome.err
        assert outcome.err.count("\n") == 1
