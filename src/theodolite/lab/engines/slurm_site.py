"""Workers as Slurm jobs, through submitit: each runs one group after another, as long as its time lasts.

Command and jobs talk through a folder on a file system that both see.
"""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput
from theodolite.lab.engines.fleet import Gone, Left, Link
from theodolite.lab.engines.mailbox import Mailbox
from theodolite.lab.engines.parcel import Hello, News, Parcel
from theodolite.lab.engines.slurm_job import ALIVE, INBOX, OUTBOX, STOP, serve
from theodolite.lab.engines.starting import deaf_to_interrupts
from theodolite.registry import unknown

_MINUTES = 60  # a job's time, unless `time` is given
_LATE = 10.0  # seconds that the last words of a job may be late on a network's file system
_LEAVE = 3.0
_BEAT = 2.0
_NAP = 0.1


class JobLink:
    """One job and its folder."""

    def __init__(self, job: Any, folder: Path, local: bool) -> None:
        self._job, self._folder, self._local = job, folder, local
        self._pid: int | None = None
        self._groups, self._news = Mailbox(folder / INBOX), Mailbox(folder / OUTBOX)
        self._ended: float | None = None

    @property
    def waiting(self) -> bool:
        return self._news.waiting

    def send(self, parcel: Parcel) -> None:
        self._groups.put(parcel)

    def news(self) -> Sequence[Hello | News | Left]:
        ended = self._job.done()  # asked first: what it wrote before its end is there afterwards
        found = self._news.take()
        self._pid = next((one.pid for one in found if isinstance(one, Hello)), self._pid)
        if ended and not found:
            now = time.monotonic()
            self._ended = self._ended or now
            if self._local or now - self._ended >= _LATE:
                raise Gone(self._reason())
        return found

    def ask_to_stop(self) -> None:
        with suppress(OSError):
            (self._folder / STOP).touch()

    def end(self) -> None:
        self.ask_to_stop()
        if not self._local:
            self._job.cancel(check=False)
        elif self._pid is not None:  # submitit's own way prints a traceback; one that still starts finds `STOP`
            limit = time.monotonic() + _LEAVE
            while not self._job.done() and time.monotonic() < limit:
                time.sleep(_NAP)
            if not self._job.done():
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)

    def _reason(self) -> str:
        lines = [line.strip() for line in (self._job.stderr() or "").splitlines() if line.strip()]
        last = f", its last line: {lines[-1]}" if lines else ""
        return f"job {self._job.job_id} ended{last}"


class SlurmSite:
    """Jobs of one CPU per thread, and of one GPU on CUDA; `options` are those of sbatch, as submitit names them."""

    def __init__(
        self, shared: Path, workers: int, threads: int, device: str, options: Mapping[str, Any], local: bool
    ) -> None:
        self.workers = workers
        self._threads = threads
        self._local = local
        self._numbers = itertools.count()
        self._beats = itertools.count()
        self._beaten = -_BEAT
        if not local and shutil.which("sbatch") is None:
            raise BadInput(
                "--engine slurm needs Slurm and there is no 'sbatch' here: run it on a login node, or use slurm-local"
            )
        try:
            shared.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix="jobs-", dir=shared)).resolve()
        except OSError as error:
            raise BadInput(f"the folder '{shared}' cannot be used ({error.strerror}): give another --shared") from error
        try:
            self._executor = _executor(self._folder / "submitit", threads, device, options, local)
        except BaseException:
            self.close()
            raise

    def start(self) -> JobLink:
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        self._beat()
        try:
            with deaf_to_interrupts():  # a local job would hear Ctrl-C itself; the command tells it what to do
                job = self._executor.submit(serve, folder, self._threads)
        except Exception as error:  # submitit's own kinds, or what sbatch said
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            answer = next(
                (line for line in lines if "error" in line.lower()), lines[-1] if lines else type(error).__name__
            )
            raise BadInput(f"Slurm did not take a job: {answer}; see 'sinfo' and give --slurm KEY=VALUE") from error
        logging.getLogger(__name__).info("job %s submitted", job.job_id)
        return JobLink(job, folder, self._local)

    def wait(self, links: Sequence[Link], timeout: float) -> None:
        limit = time.monotonic() + timeout
        while True:
            self._beat()
            left = limit - time.monotonic()
            if left <= 0 or any(isinstance(link, JobLink) and link.waiting for link in links):
                return
            time.sleep(min(_NAP, left))

    def trouble(self) -> str | None:
        return None  # a job may wait in the queue for as long as it likes

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _beat(self) -> None:
        """A sign of life for jobs whose command is killed outright."""
        now = time.monotonic()
        if now - self._beaten >= _BEAT:
            self._beaten = now
            unfinished = self._folder / f"{ALIVE}.part"
            unfinished.write_text(str(next(self._beats)))
            unfinished.replace(self._folder / ALIVE)


def _executor(folder: Path, threads: int, device: str, options: Mapping[str, Any], local: bool) -> Any:
    import submitit

    gpus = {"gpus_per_node": 1} if device.startswith("cuda") else {}
    if local:
        known = {"time"}
    else:
        known = submitit.SlurmExecutor._valid_parameters() - {"map_count", "array_parallelism", "nodes"}
    for name in options:
        if name not in known:
            raise BadInput(f"--slurm {name}: {unknown('option of a job', name, sorted(known))}")
    minutes = options.get("time", _MINUTES)
    if isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1:
        raise BadInput(f"--slurm time={minutes} is not a number of minutes: give a whole one, such as time=120")
    if local:
        executor: Any = submitit.LocalExecutor(folder)
        executor.update_parameters(timeout_min=minutes, **gpus)
        return executor
    if any(name in options for name in ("gres", "num_gpus", "gpus_per_task")):
        gpus = {}
    executor = submitit.SlurmExecutor(folder)
    settings = {"job_name": "theodolite", "cpus_per_task": threads, **gpus, **options, "time": minutes}
    try:
        executor.update_parameters(**settings)
    except (TypeError, ValueError) as error:
        raise BadInput(f"submitit refuses the options of --slurm: {str(error).splitlines()[0]}") from error
    return executor
