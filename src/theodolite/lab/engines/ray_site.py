"""Workers as Ray actors. Runs in a process of its own (see `ray_engine`), which is the driver that Ray knows."""

from __future__ import annotations

import logging
import os
import queue
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from theodolite.errors import BadInput, TheodoliteError
from theodolite.lab.engines.fleet import Fleet, Gone, Left, Link
from theodolite.lab.engines.parcel import Delivery, Hello, News, Parcel, run_parcel

_LONGEST = 10.0  # seconds a worker holds an unanswered question
_TICK = 0.05
_LONGEST_FOLDER = 40  # characters: Ray puts sockets below it, and their paths are limited


class Worker:
    """An actor: one group at a time in a thread, so that it can be asked for news and to stop meanwhile."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._stopping = threading.Event()

    def hello(self) -> list[Hello]:
        return [Hello.here()]

    def start(self, parcel: Parcel) -> list[News]:
        threading.Thread(target=self._run, args=(parcel,), daemon=True).start()
        return []

    def news(self, longest: float) -> list[News]:
        """What there is, at least one word unless nothing comes for `longest` seconds."""
        found: list[News] = []
        with suppress(queue.Empty):
            found.append(self._news.get(timeout=longest))
            while True:
                found.append(self._news.get_nowait())
        return found

    def stop(self) -> None:
        self._stopping.set()

    def _run(self, parcel: Parcel) -> None:
        import torch

        torch.set_num_threads(self._threads)
        for one in run_parcel(parcel, self._stopping.is_set):
            self._news.put(one)


class RayLink:
    """One actor and the question it has not answered yet."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.question: Any = actor.hello.remote()

    def send(self, parcel: Parcel) -> None:
        self.question = self._actor.start.remote(parcel)

    def news(self) -> Sequence[Hello | News | Left]:
        if self.question is None or not self._ray.wait([self.question], timeout=0)[0]:
            return []
        try:
            found = self._ray.get(self.question)
        except Exception as error:  # Ray's own, of many kinds, or what the actor raised: either way it is of no use
            raise Gone(_reason(error)) from None
        last = found[-1] if found else None
        rests = isinstance(last, Hello) or not (last is None or (isinstance(last, Delivery) and not last.update.done))
        self.question = None if rests else self._actor.news.remote(_LONGEST)
        return found

    def ask_to_stop(self) -> None:
        self._actor.stop.remote()

    def end(self) -> None:
        self._ray.kill(self._actor)


class RaySite:
    """A Ray that is there (`address`), or one started on this machine for as long as the command takes."""

    def __init__(self, ray: Any, address: str | None, workers: int | None, threads: int, device: str) -> None:
        self._ray = ray
        self._needs = {"CPU": float(threads), **({"GPU": 1.0} if device.startswith("cuda") else {})}
        self._gcs = ray.get_runtime_context().gcs_address
        self._where = f"no node of the Ray cluster at '{address}'" if address else "no node of the Ray on this machine"
        fitting = self._fitting()
        if not fitting:
            raise BadInput(self._nowhere())
        self.workers = workers or fitting
        self._actor = ray.remote(
            num_cpus=threads,
            num_gpus=self._needs.get("GPU", 0),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,
            scheduling_strategy="SPREAD",
        )(Worker)
        self._threads = threads

    def start(self) -> RayLink:
        return RayLink(self._ray, self._actor.remote(self._threads))

    def wait(self, links: Sequence[Link], timeout: float) -> None:
        questions = [link.question for link in links if isinstance(link, RayLink) and link.question is not None]
        if questions:
            self._ray.wait(questions, timeout=timeout)
        else:
            time.sleep(timeout)

    def trouble(self) -> str | None:
        if not answers(self._gcs):
            return "the head of the Ray cluster does not answer any more: start the command again once it does"
        return None if self._fitting() else self._nowhere()

    def close(self) -> None:
        self._ray.shutdown()

    def _fitting(self) -> int:
        """How many workers the living nodes have room for when nothing else runs there."""
        rooms = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(min(int(room.get(name, 0) // amount) for name, amount in self._needs.items()) for room in rooms)

    def _nowhere(self) -> str:
        if "GPU" in self._needs:
            return f"{self._where} has a GPU for Ray: use --device cpu, or add a node that has one"
        return f"{self._where} has {int(self._needs['CPU'])} CPUs for Ray: give fewer --threads, or add nodes"


def answers(address: str, timeout: float = 3.0) -> bool:
    """Whether someone listens at host:port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=timeout).close()
    except (OSError, ValueError):
        return False
    return True


def serve_ray(pipe: Connection, address: str | None, workers: int | None, threads: int, device: str) -> None:
    """The life of the process between a command and Ray: parcels in, lists of news out.

    A sentence instead of a list means that it is over, a pair is a line of the log. Before all that: True, once this
    process itself is there, and then the number of workers.
    """
    _be_silent()
    logger = logging.getLogger("theodolite")
    logger.addHandler(_Telling(pipe))
    logger.setLevel(logging.INFO)
    try:
        pipe.send(True)
        with _connected(address, workers, threads) as ray:
            fleet = Fleet(RaySite(ray, address, workers, threads, device))
            pipe.send(fleet.workers)
            _serve(pipe, fleet)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except TheodoliteError as error:
        pipe.send(str(error))
    except Exception as error:
        pipe.send(f"Ray cannot be used: {_reason(error)}")


class _Telling(logging.Handler):
    """The log of this process is the command's."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            self._pipe.send((record.levelno, record.getMessage()))


def _serve(pipe: Connection, fleet: Fleet) -> None:
    while True:
        while pipe.poll(0):
            order = pipe.recv()
            if order is None:
                pipe.send(fleet.stop())
                return
            if isinstance(order, Parcel):
                fleet.submit(order)
            else:
                fleet.drop(order)
        if news := fleet.poll(_TICK):
            pipe.send(news)


@contextmanager
def _connected(address: str | None, workers: int | None, threads: int) -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.CRITICAL}
    folder = None
    if address is None and "RAY_AUTH_MODE" not in os.environ:
        # A password for this once; Ray would leave one in the home folder otherwise.
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    import ray

    try:
        if address is not None:
            _connect(ray, address, quiet)
        else:
            folder = tempfile.mkdtemp(prefix="ray-")
            where = {"_temp_dir": folder} if len(folder) <= _LONGEST_FOLDER else {}
            cores = max(os.cpu_count() or 1, (workers or 1) * threads)
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **where, **quiet)
        yield ray
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _connect(ray: Any, address: str, quiet: dict[str, Any]) -> None:
    try:
        ray.init(address=address, **quiet)
    except ConnectionError as error:
        if address == "auto":
            message = "no Ray runs on this machine: start it with 'ray start', or give --address host:port"
        else:
            message = f"Ray at '{address}' cannot be reached: run the command on a node of that cluster"
        raise BadInput(message) from error


def _be_silent() -> None:
    """Ray prints what its nodes say into our output, from several languages; nobody can turn all of that off."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nothing, stream)


def _reason(error: Exception) -> str:
    """One line of what Ray tells in twenty."""
    text = str(error).strip()
    if "creation task" in text or "ModuleNotFoundError" in text:
        return text.splitlines()[-1].strip()
    if "node" in text and "died" in text.lower() and "its node" in text:
        return "its node is gone"
    if type(error).__name__ in ("ActorDiedError", "ActorUnavailableError", "RayActorError"):
        return "its process or its node is gone"
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
