"""Load on the page: requests at a steady rate, slow clients beside them, and a command that goes on writing rows.

    python benchmarks/page_load.py --seconds 60 --rate 200 --runs 10000 --out benchmarks/results/page-load.json

A store of so many runs is made in a temporary folder and served by `theodolite serve` in a process of its own. Readers
ask for the page, its folders, its runs (as an open page does: only for what is new) and, now and then, for something to
be computed. One that is refused because the server has too much to do asks again after a moment, as the page does, and
is lost if that comes to nothing within three minutes. Slow clients send their request a letter a second, or read what
they are sent as slowly. Meanwhile rows are added; at the end the page must list every one of them, and its memory must
not have grown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING
from theodolite.lab.group import Group
from theodolite.lab.store.store import Store

_BROKEN = ("ConnectionResetError", "IncompleteReadError", "BrokenPipeError")
_NETS = ("lstm", "rnn", "gru", "mlp")


def row(number: int) -> Row:
    config = {
        "net": _NETS[number % len(_NETS)],
        "net_version": 1,
        "source": None,
        "shape": {"width": 8 + number // 500 % 40, "depth": 1},
        "task": "parity-check",
        "task_version": 1,
        "task_args": {"shortest": 1, "longest": 40},
        "optimiser": {"name": "adamw", "momentum": 0.9, "betas": [0.9, 0.999], "clip": 1.0},
        "schedule": {"steps": 2000, "batch": 64, "every": 40, "rows": 32, "unseen": [50, 200], "to_the_end": False},
        "seed": number,
        "lr": 1e-3,
        "weight_decay": 0.0,
    }
    score = 0.5 + number % 50 / 100
    result = {
        "status": "unsolved",
        "score": "accuracy",
        "accuracy": score,
        "unseen": score - 0.1,
        "by_length": [[1, 1.0], [40, score], [200, score - 0.1]],
        "chance": 0.5,
        "threshold": 0.99,
        "steps": 2000,
        "solved_at": None,
        "curve": [],
        "parameters": 1378,
        "state_size": None,
    }
    return Row(Cell(TRAINING, config), result, None, {"seconds": 1.5, "device": "cpu", "batching": "alone"})


def write(folder: Path, first: int, count: int) -> None:
    rows = [row(number) for number in range(first, first + count)]
    cells = [one.cell for one in rows]
    with Store(folder) as store:
        store.plan(cells, lambda free: [Group.of(free)])
        group = store.claim([cell.key for cell in cells])
        assert group is not None
        store.record(group, rows, done=True)


class Server:
    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "theodolite", "serve", "--out", str(folder), "--port", "0", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        text = ""
        while True:
            text += self.process.stdout.readline()
            try:
                self.address = json.loads(text)["address"]
                break
            except ValueError:
                continue
        self.port = int(self.address.rpartition("/?")[0].rpartition(":")[2])
        self.token = self.address.partition("token=")[2]

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def head(self, path: str, tag: str = "") -> bytes:
        known = f"If-None-Match: {tag}\r\n" if tag else ""
        return (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nCookie: theodolite-{self.port}={self.token}\r\n"
            f"{known}\r\n"
        ).encode()


class Connections:
    """Kept open and used again, as browsers do."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, path: str, tag: str = "") -> tuple[int, dict[str, str], bytes]:
        while self._idle:
            pair = self._idle.pop()
            if not pair[0].at_eof():
                break
            pair[1].close()
        else:
            pair = None
        if pair is not None:
            try:
                return await self._over(*pair, path, tag)
            except (asyncio.IncompleteReadError, ConnectionError):  # closed meanwhile: browsers open another then
                pass
        return await self._over(*await asyncio.open_connection("127.0.0.1", self._server.port), path, tag)

    async def _over(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, tag: str
    ) -> tuple[int, dict[str, str], bytes]:
        try:
            writer.write(self._server.head(path, tag))
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode("latin-1").strip()
            lines = head.split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:])
            body = await asyncio.wait_for(reader.readexactly(int(headers.get("content-length", 0))), 60)
        except BaseException:
            writer.close()
            raise
        if headers.get("connection") == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return int(lines[0].split()[1]), headers, body

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


def kinds(generator: random.Random) -> tuple[str, str]:
    """What is asked, and its kind: mostly what open pages ask every two seconds."""
    chance = generator.random()
    if chance < 0.5:
        return "runs, if new", "/api/runs?place=runs"
    if chance < 0.7:
        return "page and its files", generator.choice(("/", "/page.css", "/page.js"))
    if chance < 0.8:
        return "folders", "/api/places"
    if chance < 0.9:
        return "runs of a network", f"/api/runs?place=runs&net={generator.choice(_NETS)}"
    if chance < 0.99:
        return "members", f"/api/runs?place=runs&lines=members&page={generator.randrange(100)}"
    return "computed", f"/api/part/sawtooth?folds={generator.randint(1, 7)}&depth={generator.randint(1, 10)}"


async def load(server: Server, folder: Path, seconds: float, rate: float, first: int, slow: int) -> dict[str, Any]:
    generator, tags, open_ones = random.Random(0), {"/api/runs?place=runs": ""}, Connections(server)
    times: dict[str, list[float]] = {}
    statuses: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    memory: list[float] = []
    written = first

    async def one(kind: str, path: str) -> None:
        """Asked as the page asks: again after a moment, longer every time, while the server is too busy; a few times if
        the connection breaks."""
        started, tries, outcome = time.perf_counter(), 0, "503"
        while (outcome == "503" and time.perf_counter() - started < 180) or (outcome in _BROKEN and tries < 4):
            if tries:
                await asyncio.sleep(min(3.0, 0.3 * tries) * generator.uniform(0.75, 1.25))
            tries += 1
            try:
                status, headers, body = await open_ones.ask(path, tags.get(path, ""))
                if path in tags and status == 200:
                    tags[path] = headers["etag"]
                outcome = str(status) if status in (200, 304, 503) else f"{status}: {body[:200].decode()}"
            except Exception as error:
                outcome = type(error).__name__
            statuses[outcome] += 1
        if outcome not in ("200", "304"):
            lost[outcome] += 1
        times.setdefault(kind, []).append(time.perf_counter() - started)

    async def watch() -> None:
        nonlocal written
        while True:
            memory.append(server.megabytes())
            await asyncio.to_thread(write, folder, written, 10)
            written += 10
            await asyncio.sleep(1)

    async def slow_sender() -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                for letter in server.head("/api/places").decode():
                    writer.write(letter.encode())
                    await asyncio.sleep(1)
                    if reader.at_eof():
                        break
            except OSError:
                pass
            finally:
                writer.close()

    async def slow_reader() -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=256)
            try:
                writer.write(server.head("/api/runs?place=runs&lines=members"))
                while await reader.read(64):
                    await asyncio.sleep(1)
            except OSError:
                pass
            finally:
                writer.close()

    beside = [asyncio.create_task(watch())]
    beside += [asyncio.create_task(slow_sender()) for _ in range(slow)]
    beside += [asyncio.create_task(slow_reader()) for _ in range(slow)]
    spent, started, sent, waiting = server.processor_seconds(), time.perf_counter(), 0, set()
    while (now := time.perf_counter() - started) < seconds:
        while sent < rate * now:
            task = asyncio.create_task(one(*kinds(generator)))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            sent += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*waiting)
    took = time.perf_counter() - started
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    _, _, body = await open_ones.ask("/api/runs?place=runs")
    open_ones.close()
    third = len(memory) // 3
    return {
        "requests": sent,
        "answered_a_second": round(sent / took, 1),
        "seconds_until_the_last_answer": round(took, 1),
        "processor_seconds_of_the_server": round(server.processor_seconds() - spent, 1),
        "statuses": dict(statuses),
        "refused_and_asked_again": statuses["503"] - lost["503"],
        "lost": dict(lost),
        "rows_written_meanwhile": written - first,
        "rows_listed_at_the_end": json.loads(body)["members"],
        "rows_that_should_be": written,
        "memory_mb": {
            "after_a_third": max(memory[:third]),
            "second_third": max(memory[third : 2 * third]),
            "last_third": max(memory[2 * third :]),
        },
        "milliseconds": {kind: quantiles(own) for kind, own in sorted(times.items())}
        | {"all": quantiles([t for own in times.values() for t in own])},
    }


async def first(server: Server, path: str) -> float:
    started, connections = time.perf_counter(), Connections(server)
    await connections.ask(path)
    connections.close()
    return time.perf_counter() - started


def quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = lambda share: round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)
    return {"count": len(ordered), "p50": at(0.5), "p99": at(0.99), "most": at(1.0)}


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--runs", type=int, default=10_000, help="in the store at the start")
    parser.add_argument("--slow", type=int, default=20, help="clients that send slowly, and as many that read slowly")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs"
        write(folder, 0, given.runs)
        server = Server(Path(place))
        try:
            first_page, first_runs = (asyncio.run(first(server, path)) for path in ("/", "/api/runs?place=runs"))
            found = asyncio.run(load(server, folder, given.seconds, given.rate, given.runs, given.slow))
        finally:
            server.process.terminate()
            server.process.wait(20)
    document = {
        "benchmark": "load on the page of theodolite serve",
        "hardware": f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} by others and this",
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "settings": {
            "seconds": given.seconds,
            "rate": given.rate,
            "runs": given.runs,
            "slow_senders": given.slow,
            "slow_readers": given.slow,
        },
        "first_page_ms": round(1000 * first_page, 1),
        "first_reading_of_the_store_ms": round(1000 * first_runs, 1),
        **found,
    }
    print(json.dumps(document, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
