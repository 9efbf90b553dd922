"""Networks as others write them through `survey`, `learn` and `rank`: python benchmarks/foreign_nets.py --json FILE.

Each is taken from the corpus of the tests as it stands; families of transformers are built small by their
configurations. Tiny settings, one thread. What is said is held against what is known or found another way:

- `learn`: the score of the kept weights at the longest length of training, by the author's own call on fresh rows, in
  plain PyTorch. Wrong where it differs by more than five standard errors of the two samples.
- `rank`: the ε-rank, relative to the spread, of a matrix of outputs that this script makes with the author's own
  call, by NumPy. Wrong where it is outside the interval that is said, widened by a third.
- the state that `learn` reports, where it is known by construction: wrong where another is said; "not resolved" is
  no wrong answer, and is counted.
- `survey` (leakage, symmetry, sensitivity, cost and what else is asked for): whether an output sees later tokens or
  earlier calls, its symmetries, how far back it sees and the state that it carries, each held against what follows from
  the definition, where something does; "not resolved" is no wrong answer, and is counted.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.foreign.corpus import CORPUS, Foreign, hugging_face, theirs

from theodolite import learn, survey
from theodolite.errors import TheodoliteError
from theodolite.instruments.rank.separation import separation_rank
from theodolite.nets.explain import explain
from theodolite.nets.load import load
from theodolite.nets.weights import read_checkpoint
from theodolite.tasks import make_task
from theodolite.training.pairing import pair
from timing import hardware

STEPS, ROWS, POINTS, EPSILON, LONGEST = 60, 256, 24, 0.1, 6
SECTIONS = ["leakage", "symmetry", "sensitivity", "cost"]  # `--sections` names others: those that train take minutes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="of the survey")
    options = parser.parse_args()
    SECTIONS[:] = options.sections.split(",")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        corpus = [one for one in (*CORPUS, *hugging_face(Path(folder))) if options.only in one.name]
        rows = [_one(foreign, Path(folder)) for foreign in corpus]
    summary = _summary(rows)
    document = {"hardware": hardware(torch.device("cpu")), "settings": _settings(), "summary": summary, "rows": rows}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    print(json.dumps(summary, ensure_ascii=False, indent=1))
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    parts = ("survey", "learn", "rank")
    return {
        "nets": len(rows),
        "taken by all three": sum(all("error" not in row[part] for part in parts) for row in rows),
        "checks of the survey": _counted(row["survey"].get("checks", {}) for row in rows),
        "wrong": [f"{row['net']} {part}" for row in rows for part in parts if row[part].get("right") is False]
        + [f"{row['net']} state" for row in rows if row["learn"].get("state", {}).get("right") is False],
        "state right": sum(row["learn"].get("state", {}).get("right") is True for row in rows),
        "state not resolved": [
            row["net"]
            for row in rows
            if (state := row["learn"].get("state", {})).get("known") and state["right"] is None
        ],
        "seconds": round(sum(row[part]["seconds"] for row in rows for part in parts)),
    }


def _counted(checks: Iterable[dict[str, Any]]) -> dict[str, int]:
    verdicts = [one["right"] for each in checks for one in each.values()]
    words = {"right": True, "not resolved or not applicable": None, "wrong": False}
    return {word: sum(verdict is value for verdict in verdicts) for word, value in words.items()}


def _settings() -> dict[str, Any]:
    learnt = {
        "task": "dyck, longest 6; majority of 5 bits for vectors; parity-check for one answer a sequence",
        "steps": STEPS,
        "lr": 3e-3,
        "seeds": 1,
    }
    ranked = {"points": POINTS, "epsilon": EPSILON, "relative_to": "spread", "resamples": 1}
    return {"learn": learnt, "rank": ranked, "survey": {"sections": list(SECTIONS), "alone": True}}


def _one(foreign: Foreign, folder: Path) -> dict[str, Any]:
    foreign = replace(foreign)
    row: dict[str, Any] = {"net": foreign.name.rpartition("/")[2]}
    try:
        row["assumed"] = explain(foreign.net, **foreign.args).replace(f"{folder}/", "")
    except TheodoliteError as error:
        row["assumed"] = f"refused: {error}"
    for name, part in (("rank", _rank), ("learn", _learn), ("survey", _survey)):
        row[name] = _timed(lambda part=part: part(foreign))
    told = {name: {k: v for k, v in row[name].items() if k != "said"} for name in ("survey", "learn", "rank")}
    print(row["net"], told, file=sys.stderr, flush=True)
    return row


def _timed(part: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        found = part()
    except TheodoliteError as error:
        found = {"error": str(error)}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}", "right": False}
    return {**found, "seconds": round(time.perf_counter() - started, 1)}


def _learn(foreign: Foreign) -> dict[str, Any]:
    vector = foreign.kind == "vector"
    task, fields = ("majority", {"bits": 5}) if vector else ("dyck", {"longest": LONGEST})
    task = "parity-check" if foreign.pooled else task
    with tempfile.TemporaryDirectory() as out:
        found = learn(
            foreign.net, task, task_args=fields, shape=foreign.args, seeds=1, steps=STEPS, rows=ROWS, unseen="none",
            to_the_end=True, lr=3e-3, keep_weights=True, chunk=1, out=out,
        )  # fmt: skip
        if found.failures:
            return {"error": found.failures[0].sentence}
        weights, _ = read_checkpoint(next((Path(out) / "weights").iterdir()))
    made = make_task(task, fields)
    pairing = pair(foreign.net, made, foreign.args, longest=None if vector else LONGEST)
    module = pairing.build(0).eval()
    module.load_state_dict(weights)
    said = found.rows[0]["accuracy"] if vector else dict(found.rows[0]["by_length"])[LONGEST]
    batch = made.sample(1, 8 * ROWS, None if vector else LONGEST, torch.Generator().manual_seed(7))
    read = pairing.feed(batch.inputs[0], pairing.one_hot(torch.device("cpu")))
    with torch.no_grad():
        logits = foreign.call(theirs(module), _filled(module, foreign, read))[..., : made.spec.outputs]
    if foreign.pooled:
        logits = logits[:, None].expand(-1, read.shape[1], -1)
    if vector:
        right = logits.sign() == batch.targets[0]
    else:
        right = logits.argmax(-1) == batch.targets[0]
    share = float(right[batch.mask[0]].float().mean())
    error = 5 * math.sqrt(0.25 / ROWS + 0.25 / (8 * ROWS))
    return {"said": said, "found": share, "chance": made.spec.chance, "right": abs(said - share) <= error} | {
        "state": _state(foreign, found.rows[0]["state_size"])
    }


def _filled(module: torch.nn.Module, foreign: Foreign, x: torch.Tensor) -> torch.Tensor:
    if foreign.reads == "ids":
        return x
    width = {"FixedLSTM": 16, "Mamba": 32}.get(type(module).__name__, x.shape[-1])
    return torch.nn.functional.pad(x, (0, width - x.shape[-1]))


def _rank(foreign: Foreign) -> dict[str, Any]:
    settings: dict[str, Any] = {"points": POINTS, "repeats": 1, "epsilon": EPSILON, "relative_to": "spread"}
    found = separation_rank(foreign.net, "epsilon", **settings, **foreign.args)
    low, high = found.details["interval"]
    low, high = sorted((low, POINTS if high is None else high))
    subject = load(foreign.net, **{**foreign.args, **found.shape})
    double = found.details["dtype"] == "float64"
    module = theirs(copy.deepcopy(subject.module)).to(torch.float64 if double else torch.float32).eval()
    generator, sites = torch.Generator().manual_seed(5), subject.sites
    shape = (2, POINTS, sites, subject.features) if subject.vocab is None else (2, POINTS, sites)
    if subject.vocab is not None:
        points = torch.randint(subject.vocab, shape, generator=generator)
    else:
        points = torch.randn(shape, generator=generator, dtype=torch.float64 if double else torch.float32)
    if subject.kind == "vector":
        points = points.squeeze(-1)
    half = sites // 2
    left = points[0][:, None].expand(-1, POINTS, *points.shape[2:])
    right = points[1][None].expand(POINTS, *points.shape[1:])
    x = torch.cat([left[:, :, :half], right[:, :, half:]], dim=2).flatten(0, 1)
    with torch.no_grad():
        y = foreign.call(module, x)
    values = (y if y.dim() == 1 else y[:, -1, 0] if y.dim() == 3 else y[:, 0]).view(POINTS, POINTS).double().numpy()
    values = values - values.mean()
    sigma = np.linalg.svd(values, compute_uv=False)
    tails = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1] / np.sum(sigma**2))
    own = int(np.argmax(np.append(tails, 0.0) <= EPSILON))
    inside = math.floor(low * 2 / 3) - 1 <= own <= math.ceil(high * 4 / 3) + 1
    return {"said": [low, high], "found": own, "right": bool(inside)}


def _survey(foreign: Foreign) -> dict[str, Any]:
    found = survey(foreign.net, args=dict(foreign.args), alone=True, only=SECTIONS)
    if found.failures:
        return {"error": found.failures[0]}
    rows = {section.id: section.rows[0] for section in found.sections if section.rows}
    checks = _checks(foreign, rows)
    wrong = [name for name, check in checks.items() if check["right"] is False]
    said = {answer.question: [answer.standing, answer.text] for answer in found.answers}
    return {"said": said, "checks": checks, **({"right": False, "wrong": wrong} if wrong else {"right": True})}


def _checks(foreign: Foreign, rows: dict[str, Any]) -> dict[str, Any]:
    """By what is asked: said, known from the definition, and whether the two agree; None where nothing was said."""
    checks: dict[str, Any] = {}

    def compare(name: str, said: Any, known: Any) -> None:
        checks[name] = {"said": said, "known": known, "right": None if said is None else said == known}

    if "leakage" in rows:
        told = rows["leakage"]["diagnostics"]
        compare("leaks", bool(told["says"]), foreign.leaks)
        if foreign.kind == "sequence" and not foreign.pooled:
            compare("causal", told["causal"], foreign.causal)
    for group in ("translation", "permutation", "time-shift") if "symmetry" in rows else ():
        told = rows["symmetry"][group]
        holds = None if "not_applicable" in told else told["diagnostics"]["holds"]
        compare(group, holds, group in foreign.alike)
    if "sensitivity" in rows and foreign.reach is not None:
        compare("reach", rows["sensitivity"]["diagnostics"]["reach"], foreign.reach)
    if "cost" in rows and foreign.state is not None and "state_size" in rows["cost"].result:
        told = rows["cost"]["state_size"]
        checks["state"] = _state(foreign, {"size": told["value"], **told["diagnostics"]})
    return checks


def _state(foreign: Foreign, told: dict[str, Any] | None) -> dict[str, Any]:
    """What `learn` says of the state, beside what is known; no verdict where it says that it does not know."""
    if foreign.state is None or told is None:
        return {"said": told, "known": foreign.state, "right": None}
    grows = told["size"] is None and bool(told.get("growth_per_token"))
    if told["size"] is None and not grows:
        right = None
    elif foreign.state == "grows":
        right = grows
    else:
        bound = told.get("at_most") is None and not grows  # said as "at least so many"
        right = (
            True
            if told["size"] == foreign.state
            else None
            if bound and int(told["size"] or 0) < int(foreign.state)
            else False
        )
    return {"said": told, "known": foreign.state, "right": right}


if __name__ == "__main__":
    main()
