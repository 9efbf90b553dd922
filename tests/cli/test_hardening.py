"""Input that no command means: a sentence and a clean end, from the script itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FULL = Path("/dev/full")
COMMAND = [sys.executable, "-m", "theodolite"]


def ended(*words, **options):
    done = subprocess.run([*COMMAND, *words], capture_output=True, timeout=120, check=False, **options)
    text = done.stderr.decode("utf-8", "replace") + done.stdout.decode("utf-8", "replace")
    assert "Traceback" not in text
    assert "internal error" not in text
    return done.returncode, text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("learn", "--net", "mlp", "--task", "parity", "--save-every", "nan"), "--save-every cannot be nan"),
        (("learn", "--net", "mlp", "--task", "parity", "--clip", "inf"), "--clip cannot be inf"),
        (("learn", "--net", "mlp", "--task", "parity", "--steps", "１０"), "not written in the digits 0 to 9"),
        (("learn", "--net", "mlp", "--task", "parity", "--arg", f"width={'1' * 5000}"), "too long or nested too deep"),
        (("learn", "--net", "mlp", "--task", "parity", "--arg", f"width={'[' * 90000}"), "too long or nested too deep"),
        (("learn", "--net", "mlp", "--task", "parity", "--arg", f"width={10**30}"), "too large to count with"),
        (("learn", "--net", "mlp", "--task", "parity", "--task-arg", "bits=NaN"), "not finite"),
        (("signal", "--width", str(10**30)), "--width cannot be as large as 1e+30"),
        (("new", "net", "Mine", "--out", "9" * 5000), "cannot be used (File name too long)"),
        (("signal", "--arg", "bits=3"), "'bits' is no argument of a net"),
        (("signal", "--members", "3"), "--members has no part in parities"),
        (("signal", "--class", "random", "--radius", "3"), "--radius has no part in the class 'random'"),
        (("advise", "--params", "1B", "--vocab", "50000", "--device", "foo"), "--device foo is for timing alone"),
        (("advise", "--params", "1B", "--vocab", "50000", "--threads", "2"), "--threads 2 is for timing alone"),
        (("express", "copy", "--net", "mlp"), "'mlp' reads a vector and 'copy' gives a sequence"),
    ],
)
def test_what_no_option_means_is_refused_by_a_sentence(theodolite, words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = theodolite(*words)
    assert told.code == 2
    assert said in " ".join(told.err.split())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_our_letters_shows_what_it_can(encoding):
    code, text = ended("nets", env={**os.environ, "PYTHONIOENCODING": encoding})
    assert code == 0
    assert "transformer" in text


@pytest.mark.skipif(not FULL.exists(), reason="no device that is full")
def test_an_output_that_is_full_is_said_once():
    with FULL.open("wb") as full:
        done = subprocess.run([*COMMAND, "nets"], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().strip().count("\n") == 0
    assert "no space left" in done.stderr.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_command_that_is_stopped_while_it_starts_ends_in_a_word(number):
    for seconds in (0.25, 0.6):
        process = subprocess.Popen([*COMMAND, "claims", "list"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(seconds)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said or b"site.py" in said  # the interpreter itself may still be starting
