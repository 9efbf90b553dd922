"""How long commands take from the shell: advice, beside Python's own start and `--version`; and, asked for, a survey.

python benchmarks/commands.py --json
python benchmarks/commands.py --survey standard --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from timing import hardware

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
ROUNDS = 11


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--survey", choices=("quick", "standard"), help="time a whole survey of the default nets, too")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(GPT2), encoding="utf-8")
        commands = {
            "python": ["-c", "pass"],
            "version": ["-m", "theodolite", "--version"],
            "advise a budget": ["-m", "theodolite", "advise", "--params", "1.3e9", "--vocab", "50257", "--json"],
            "advise a config": ["-m", "theodolite", "advise", str(config), "--json"],
            "advise with a plot": ["-m", "theodolite", "advise", str(config), "--plot", str(Path(folder) / "p.svg")],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):  # in turns, so that a busy moment falls on all
            for name, words in commands.items():
                seconds[name].append(timed(words))
        result = {name: {"median": statistics.median(s), "most": max(s)} for name, s in seconds.items()}
        if asked.survey:
            words = ["-m", "theodolite", "survey", "--preset", asked.survey, "--out", str(Path(folder) / "survey")]
            result[f"survey, {asked.survey}"] = {"once": timed(words)}
    document = {"hardware": hardware(torch.device("cpu")), "rounds": ROUNDS, "seconds": result}
    if asked.json:
        print(json.dumps(document, indent=2))
        return
    for name, found in result.items():
        print(f"{name:24}", "  ".join(f"{what} {value:.2f} s" for what, value in found.items()))


def timed(words: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
