"""`benchmarks/advise_memory.py` where there is no GPU: it says so, and counts tensors without content instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.advise_memory import CASES

from theodolite.advice.budget.training_memory import Setting, training_memory
from theodolite.advice.configs import read_config

ROOT = Path(__file__).parents[3]


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/advise_memory.py", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)


def test_it_needs_cuda_and_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    done = ran("--device", "cuda")
    assert done.returncode == 1
    assert "there is no CUDA device here: run it on one, or add --dry" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_case_at_full_size_without_content(tmp_path):
    pytest.importorskip("transformers")
    done = ran("--dry", "--only", "wide-shallow", "--out", str(tmp_path / "found.json"))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["rows"]
    assert row["params"] == 971_018_240
    assert row["ratio"] == pytest.approx(1, abs=0.02)


def test_the_formula_is_near_what_an_h200_allocated():
    """Every case of the benchmark, as it was measured; the formula has not moved since."""
    kept = ROOT / "benchmarks" / "results" / "advise-memory-nvidia-h200-2026-11-16.json"
    rows = {row["case"]: row for row in json.loads(kept.read_text(encoding="utf-8"))["rows"]}
    assert len(rows) == len(CASES) >= 6
    for case in CASES:
        shape = read_config({"model_type": case.family, **case.sizes}, case.name)
        formula = training_memory(shape, Setting(case.batch, case.sequence, case.recompute)).total
        assert rows[case.name]["measured"] == pytest.approx(formula, rel=0.03), case.name
