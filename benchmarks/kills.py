"""Writers of one store that are killed, stopped and out of disk: python -m benchmarks.kills [--kills 48] [--writers 3].

Several `theodolite learn` share a store. One after the other is killed with -9 at random moments and started again;
then whole commands are stopped and continued, and the disk fills up and is emptied. Counted are rows that are lost,
doubled (a finished member that was run again) or different, against a run that nobody disturbed, and the seconds until
the workers of a killed command are gone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from benchmarks.timing import hardware
from tests.lab.commands import TASKS, Running, command, until_a_row
from tests.lab.small_runs import MLP, asked, held, keyed, net_file, rows_of

from theodolite.lab.cell import Row
from theodolite.lab.store.store import Store

SEEDS = 6
Facts = dict[str, str]


def killed(folder: Path, kills: int, writers: int, generator: random.Random) -> dict[str, Any]:
    """Every kill takes one of the writers that are at work; the others go on."""
    steps, gate = 200 * kills, folder / "go"
    net = net_file(folder, held(gate))
    given = ["--net", net, "--workers", 1, "--threads", 1, "--save-every", 0, "--json"]
    call = command(folder / "store", *given, steps=steps, seeds=SEEDS)
    running = [Running(call) for _ in range(writers)]
    seen: list[Facts] = []
    seconds: list[float] = []
    until_a_row(folder / "store", running[0])
    for _ in range(kills):
        time.sleep(generator.uniform(0.2, 4.0))
        victim = generator.randrange(writers)
        assert running[victim].process.poll() is None, running[victim].ended()
        running[victim].process.kill()
        died = time.monotonic()
        running[victim].process.wait()
        alive = running[victim].all_gone()
        seconds.append(time.monotonic() - died)
        assert alive, "workers outlived their command"
        seen.append(facts(folder / "store"))
        running[victim] = Running(call)
    gate.touch()
    codes = [one.ended()[0] for one in running]
    expected = rows_of({**MLP, **TASKS, "net": net, "steps": steps, "seeds": SEEDS}, folder / "alone")
    gone = sorted(seconds)
    return {
        "kills": kills,
        "writers": writers,
        "exit_codes": dict(Counter(codes)),
        **counted(folder / "store", expected, seen),
        "seconds_until_workers_are_gone": {"median": round(gone[len(gone) // 2], 2), "longest": round(gone[-1], 2)},
    }


def stopped(folder: Path, writers: int) -> dict[str, Any]:
    """A whole command, workers too, stands still for some seconds while the others go on."""
    gate, times = folder / "go", 6
    net = net_file(folder, held(gate, calls=40, pause=0.02))
    given = ["--net", net, "--workers", 1, "--threads", 1, "--save-every", 0, "--json"]
    call = command(folder / "store", *given, steps=400, seeds=SEEDS)
    running = [Running(call) for _ in range(writers)]
    until_a_row(folder / "store", running[0])
    seen = []
    for number in range(times):
        one = running[number % writers]
        os.killpg(one.process.pid, signal.SIGSTOP)
        time.sleep(2.0)
        seen.append(facts(folder / "store"))
        os.killpg(one.process.pid, signal.SIGCONT)
    gate.touch()
    codes = [one.ended()[0] for one in running]
    expected = rows_of({**MLP, **TASKS, "net": net, "steps": 400, "seeds": SEEDS}, folder / "alone")
    about = {"stopped": times, "writers": writers, "exit_codes": dict(Counter(codes))}
    return {**about, **counted(folder / "store", expected, seen)}


def full(folder: Path, writers: int) -> dict[str, Any]:
    """A disk of a megabyte, filled; emptied, the same commands end as if nothing had been."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        return {"skipped": "mounting a file system is not permitted here"}
    try:
        (disk / "ballast").write_bytes(bytes(700_000))
        given = ["--workers", 1, "--threads", 1, "--save-every", 0, "--keep-weights", "--json"]
        call = command(disk / "store", *given, steps=40, lr="2e-2", seeds=12)
        first = [Running(call) for _ in range(writers)]
        ends = [one.ended() for one in first]
        seen = [facts(disk / "store")]
        (disk / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=40m", disk], check=True)
        second = [Running(call) for _ in range(writers)]
        codes = [one.ended()[0] for one in second]
        expected = rows_of({**MLP, **TASKS, "steps": 40, "lr": 2e-2, "seeds": 12}, folder / "alone")
        return {
            "writers": writers,
            "exit_codes_when_full": dict(Counter(code for code, *_ in ends)),
            "sentences": sorted({err.strip().splitlines()[-1] for _, _, err in ends if err.strip()}),
            "kept_when_full": len(seen[0]),
            "exit_codes": dict(Counter(codes)),
            **counted(disk / "store", expected, seen),
        }
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def facts(store: Path) -> Facts:
    return dict(asked(store, "SELECT key, facts FROM rows"))


def counted(store: Path, expected: dict[str, Row], seen: list[Facts]) -> dict[str, int]:
    """A row that was there once is there at the end as it was, and all rows are those of the undisturbed run."""
    with Store(store, must_exist=True) as left:
        rows = keyed(left.rows())
    last = facts(store)
    return {
        "rows": len(rows),
        "lost": len(expected.keys() - rows.keys()) + len({key for one in seen for key in one} - last.keys()),
        "doubled": sum(last.get(key, fact) != fact for one in seen for key, fact in one.items()),
        "different": sum(rows[key] != expected[key] for key in expected.keys() & rows.keys())
        + len(rows.keys() - expected.keys()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=48)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {"benchmark": "kills", "hardware": hardware(torch.device("cpu")), "seed": options.seed}
    with tempfile.TemporaryDirectory() as place:
        for name in ("killed", "stopped", "full"):
            folder = Path(place) / name
            folder.mkdir()
            if name == "killed":
                found[name] = killed(folder, options.kills, options.writers, random.Random(options.seed))
            else:
                found[name] = (stopped if name == "stopped" else full)(folder, options.writers)
            print(name, json.dumps(found[name]), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
