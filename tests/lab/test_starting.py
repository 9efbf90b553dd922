"""What happens to a command while it starts a worker: heard afterwards, and without a word of the worker's."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from theodolite.lab.engines.starting import deaf_to_interrupts
from theodolite.lab.store import owner

# A command that is killed after its worker began and before it has told it what to do.
KILLED = """
import multiprocessing, os, signal
from multiprocessing import util
from theodolite.lab.engines.starting import deaf_to_interrupts

begin = util.spawnv_passfds
def spawn_and_die(*given):
    begin(*given)
    os.kill(os.getpid(), signal.SIGKILL)

util.spawnv_passfds = spawn_and_die
with deaf_to_interrupts():
    multiprocessing.get_context("spawn").Process(target=print).start()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_another_thread_takes_is_raised_after_the_start(name):
    number, over, done = getattr(signal, name), threading.Event(), []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    other = threading.Thread(target=over.wait)
    other.start()

    def start() -> None:
        with deaf_to_interrupts():
            signal.pthread_kill(other.ident or 0, number)
            over.set()
            other.join()  # it has taken the signal
            done.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, before)
    assert done


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with deaf_to_interrupts():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_worker_whose_command_is_killed_before_it_was_told_what_to_do_says_nothing():
    killed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, "", "")


# A command whose worker imports for a minute and more, without leaving the interpreter to any other thread.
IMPORTING = """
import multiprocessing, sys, time
from theodolite.lab.engines.starting import deaf_to_interrupts

sys.path.insert(0, sys.argv[1])
if __name__ == "__main__":
    import slow
    with deaf_to_interrupts():
        worker = multiprocessing.get_context("spawn").Process(target=slow.target)
        worker.start()
    print(worker.pid, flush=True)
    time.sleep(600)
"""
SLOW = """
import pathlib, sys
if "--multiprocessing-fork" in sys.orig_argv:
    pathlib.Path(__file__).with_name("importing").touch()
    sum(range(10**11))

def target():
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for it")
def test_a_worker_ends_with_its_command_also_while_it_imports(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "command.py").write_text(IMPORTING)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "command.py"), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        worker = int(command.stdout.readline())
        try:
            until(lambda: (tmp_path / "importing").exists())
            assert alive(worker)
        finally:
            command.kill()
    until(lambda: not alive(worker))


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """One that is dead and not yet waited for is not."""
    state, _ = owner._state_and_start(pid)
    return state not in (None, "Z", "X")
