"""Input that no command means: a sentence and a clean end, from the script itself."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from theodolite.cli.terminal import near
from theodolite.files import write_text
from theodolite.report.answer import MARKS

from ..docs.blocks import command_tree

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
        (
            ("learn", "--net", "mlp", "--task", "parity", "--steps", "9" * 5000),
            "has 5,000 digits: give a shorter number",
        ),
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


def test_marks_stay_apart_in_a_terminal_that_does_not_have_them():
    spelt = lambda text: text.encode("ascii", "near").decode()
    codecs.register_error("near", near)
    marks = [spelt(mark) for mark, _ in MARKS.values()]
    assert len(set(marks)) == len(marks)
    assert spelt("n⁻² ≥ 4 → 0.5–0.6 µs, 数") == "n-2 >= 4 -> 0.5-0.6 us, ?"


@pytest.mark.skipif(not FULL.exists(), reason="no device that is full")
@pytest.mark.parametrize(
    ("words", "said"), [(("nets",), b"no space left on the device"), (("advise", "--json"), b"give a configuration")]
)
def test_an_output_that_is_full_is_said_once(words, said):
    with FULL.open("wb") as full:
        done = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().strip().count("\n") == 0
    assert said in done.stderr


def test_a_device_or_a_link_that_is_written_to_stays_what_it_is(tmp_path):
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to(file)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "through")
    reader.join(60)
    assert read == ["through"]
    assert pipe.is_fifo()
    write_text(link, "behind")
    assert link.is_symlink()
    assert file.read_text() == "behind"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_command_that_is_stopped_while_it_starts_ends_in_a_word(number):
    for seconds in (0.25, 0.6):
        process = subprocess.Popen([*COMMAND, "claims", "list"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(seconds)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said or b"site.py" in said  # the interpreter itself may still be starting


def test_what_fails_because_it_was_stopped_is_said_to_be_stopped():
    """As libraries do that catch an interrupt in the middle of an import, and then miss a half of themselves."""
    script = (
        "import os, signal, sys, time\nfrom theodolite.cli import main\n\n"
        "def broken():\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n        time.sleep(9)\n"
        "    except KeyboardInterrupt:\n        raise ImportError('half of it') from None\n\n"
        "main.app.command('broken')(broken)\nsys.argv = ['theodolite', 'broken']\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nmain.run()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False, text=True)
    assert (done.returncode, done.stderr.strip()) == (130, "stopped")


# Calls that are fine and quick; an option of theirs gets a value that nobody means.
QUICK = {
    "advise": ["--params", "1B", "--vocab", "50000"],
    "rank": ["self-attention", "--depth", "1", "--width", "2", "--tokens", "2"],
    "express": ["majority", "--net", "mlp", "--task-arg", "bits=3"],
    "signal": ["--bits", "3", "--width", "2"],
    "degree": ["--budget", "6", "--width", "2"],
    "fixed-points": ["tanh", "--size", "2", "--steps", "20"],
    "learn": ["--net", "mlp", "--task", "parity", "--steps", "1", "--seeds", "1", "--workers", "nobody"],
    "runs": [],
    "compare": ["mlp", "rnn"],
    "nets": [],
}
FLAGS = {"--json", "--plain"}
OPTIONS = [
    (command, option)
    for command in QUICK
    for parameter in command_tree()[f"theodolite {command}"].params
    if not getattr(parameter, "is_flag", False)
    for option in parameter.opts[:1]
    if option.startswith("--")
]
# No digits of ours: a number that is one may be large, and then it works for long.
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="0123456789\0"), max_size=12) | st.sampled_from(
    [
        "nan",
        "inf",
        "-1",
        "1e400",
        "１２",
        "9" * 5000,
        "[" * 3000,
        "[red]",
        "a,b",
        "x=[",
        "=",
        "-",
        "--",
        "/",
        "..",
        "%s",
    ]
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(OPTIONS), VALUES, st.sets(st.sampled_from(sorted(FLAGS)), max_size=1))
def test_whatever_an_option_is_given_the_command_ends_in_a_sentence(
    theodolite, tmp_path, monkeypatch, option, value, flags
):
    monkeypatch.chdir(tmp_path)
    command, name = option
    outcome = theodolite(command, *QUICK[command], f"{name}={value}", *flags)
    assert outcome.code in (0, 1, 2)
    assert "Traceback" not in outcome.err
    assert "internal error" not in outcome.err
    lines = outcome.err.splitlines()
    ours = sum(line.startswith("error:") for line in lines) == 1
    assert outcome.code == 0 or ours or lines[0].startswith(("Usage:", "╭─ Error"))  # or the parser's
