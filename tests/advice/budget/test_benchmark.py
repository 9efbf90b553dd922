"""`benchmarks/advise_memory.py` where there is no GPU: it says so, and counts tensors without content instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

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
