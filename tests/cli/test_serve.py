"""`theodolite serve` from its start to Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

from theodolite.errors import BadInput
from theodolite.serving.serve import serve


def test_it_prints_its_address_answers_and_ends_cleanly_at_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "theodolite", "serve", "--out", str(tmp_path), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            text += line
        said = json.loads(text)
        assert said["out"] == str(tmp_path)
        with urllib.request.urlopen(said["address"], timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()


def test_without_its_libraries_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(BadInput, match=r"pip install 'theodolite\[page\]'"):
        serve(tmp_path, port=0, wait=False)
