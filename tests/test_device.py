"""CPU threads: who says how many, and that what is set for a while is gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest
import torch

from theodolite.device import cpu_threads, threads_each


def test_threads_are_those_of_before_afterwards():
    before = torch.get_num_threads()
    seen = []
    with suppress(KeyError), cpu_threads(before + 1):
        seen.append(torch.get_num_threads())
        raise KeyError
    assert seen == [before + 1]
    assert torch.get_num_threads() == before
    with cpu_threads(None):
        assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("said", "cores", "processes", "expected"),
    [
        ("3", 2, 2, 3),
        ("5,2", 16, 2, 5),
        (None, 16, 2, 4),
        (None, 16, 8, 2),
        (None, 2, 8, 1),
        ("", 16, 2, 4),
        ("many", 16, 2, 4),
        ("0", 16, 2, 4),
    ],
)
def test_who_says_how_many_threads_a_worker_has(monkeypatch, said, cores, processes, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    if said is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    with cpu_threads(4):  # torch's own number is the most
        assert threads_each(processes) == expected


WORKER = """
from theodolite.lab.engines.by_name import make_engine
import torch
print(make_engine("local", 1, None, {}).threads, make_engine("local", 1, 2, {}).threads, torch.get_num_threads())
"""


def test_omp_num_threads_is_respected():
    """By this process and by its workers; `--threads` goes before it."""
    ran = subprocess.run(
        [sys.executable, "-c", WORKER],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["1", "2", "1"]
