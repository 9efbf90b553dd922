"""Training in two checkouts: python benchmarks/before_after.py --before DIR --after DIR [--device cuda] [--only a,b].

Every case runs in a process of its own, the two trees in turn; wall and CPU seconds of the second of two runs (the
first warms up), medians over the rounds, and the ratio after/before. `figures` are numbers that must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def first(*names: str):
    """The first that can be imported: module:name."""
    import importlib

    for name in names:
        module, _, attribute = name.partition(":")
        try:
            return getattr(importlib.import_module(f"theodolite.{module}"), attribute)
        except (ImportError, AttributeError):
            continue
    raise ImportError(" or ".join(names))


def case_discover_readme(device):
    import numpy as np

    from theodolite import discover

    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (300, 10))
    y = np.sin(3 * x[:, 0] * x[:, 1]) + x[:, 2] * x[:, 3] + x[:, 4] ** 2 + 0.1 * draw.normal(size=300)
    found = discover((x, y))
    return {
        "nodes": [list(n.inputs) for n in found.graph.nodes],
        "error": found.test_error,
        "dense": found.dense_test_error,
    }


def case_discover_rows(device):
    import numpy as np

    from theodolite import discover

    draw = np.random.default_rng(1)
    x = draw.uniform(-1, 1, (1200, 5))
    y = np.exp(x[:, 0] * x[:, 1]) * x[:, 2] + x[:, 3] * x[:, 4] + 0.01 * draw.normal(size=1200)
    found = discover((x, y), effort="quick")
    return {
        "nodes": [list(n.inputs) for n in found.graph.nodes],
        "error": found.test_error,
        "dense": found.dense_test_error,
    }


def case_processes(device):
    import numpy as np
    import torch

    fit = first("structure.surrogate.gaussian_process:fit_processes", "structure.gaussian_process:fit_processes")
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.normal(size=(300, 10)))
    y = (x[:, 0] * x[:, 1]).sin()
    found = fit(x, (y - y.mean()) / y.std(), torch.arange(300) % 5, torch.Generator().manual_seed(0))
    return {"kind": found.kind, "lengths": found.lengths.tolist()}


def case_ensemble(device):
    import torch

    fit = first("structure.surrogate.ensemble:train_ensemble", "structure.ensemble:train_ensemble")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 6, generator=generator)
    y = (x[:, 0] * x[:, 1]).sin() + x[:, 2]
    found = fit(x, (y - y.mean()) / y.std(), torch.arange(2000) % 5, generator, steps=400)
    return {"output": float(found.everywhere(x[:50]).detach().mean())}


def case_fit_descent(device):
    import numpy as np

    from theodolite.graphs.families import binary_tree

    fit = first("structure.fit.fitting:fit", "structure.fitting:fit")
    effort = first("structure.fit.effort:Effort", "structure.effort:Effort")
    draw = np.random.default_rng(0)
    x = draw.uniform(-1, 1, (600, 8))
    y = np.tanh(x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3]) * np.sin(x[:, 4] + x[:, 5] * x[:, 6] - x[:, 7])
    found = fit(binary_tree(8), x, y, np.random.default_rng(0), effort=effort(4, 3, 400, 0, 1e10, 8, None))
    return {"validation": found.validation_error}


def case_degree(device):
    import torch

    base = "instruments.degree.descent", "instruments.degree_descent"
    examples, member, descent = (first(*(f"{b}:{n}" for b in base)) for n in ("Examples", "Member", "Descent"))
    train = first(f"{base[0]}:train_members", f"{base[0]}:descend", f"{base[1]}:descend")
    net = first("nets.product_net:ProductNet")
    where = torch.device(device)
    generator = torch.Generator().manual_seed(0)
    steps = 1500 if device != "cpu" else 200

    def part(rows):
        x = torch.randn(3, rows, 16, generator=generator)
        y = (x[..., :1] * x[..., 1:2] * x[..., 2:3]).tanh()
        return x.to(where), (y / y.std()).to(where)

    data = examples(part(steps * 128), part(500), part(500), "square", 1, True, 1.0, 1.0)
    members = [member(s % 3, s, r) for r in (0.001, 0.003, 0.01, 0.03) for s in range(6)]
    build = lambda: net(16, 1, width=16, degrees=[3, 3, 3])
    reached = train(build, members, data, descent(steps, 128, 5), where, 0)
    return {"errors": [r.error for r in reached][:8]}


def failure(kind, device, **settings):
    run = first(f"claims.expressivity.failures.{kind}:run", f"instruments.failures.{kind}:run")
    name = kind.capitalize()
    own = first(f"claims.expressivity.failures.{kind}:{name}", f"instruments.failures.{kind}:{name}")
    return run(own(**settings), 0, device)["quantities"]


def case_failures_parity(device):
    return failure("parity", device, bits=10, seeds=5, steps=20_000 if device != "cpu" else 3_000)


def case_failures_activations(device):
    return failure("activations", device, variant="end to end", seeds=5, steps=5_000 if device != "cpu" else 500)


def case_failures_curves(device):
    return failure("curves", device, variant="autoencoder", seeds=2, steps=5_000 if device != "cpu" else 500)


def case_failures_filter(device):
    return failure("curves", device, variant="filter", seeds=3, steps=5_000 if device != "cpu" else 1_500)


def case_failures_stocks(device):
    return failure("stocks", device, stocks=200, decompose=False, seeds=2, steps=2_500 if device != "cpu" else 200)


def case_failures_tuples(device):
    return failure("tuples", device, images=1, decompose=True, seeds=1, batch=50, steps=400 if device != "cpu" else 40)


def program(net, members, rates, device, blocks, batched=True):
    import torch

    from theodolite.tasks import make_task

    base = "training", "instruments.training"
    get = lambda module, name: first(*(f"{b}.{module}:{name}" for b in base))
    Members, Optimiser, Rates, Rule = (
        get("members", "Members"),
        get("optimiser", "Optimiser"),
        get("optimiser", "Rates"),
        get("optimiser", "Rule"),
    )
    pair, Batching, Program = get("pairing", "pair"), get("program", "Batching"), get("program", "Program")
    where = torch.device(device)
    task = make_task("parity", {"bits": 20}) if net == "mlp" else make_task("copy", {"shortest": 10, "longest": 10})
    pairing = pair(net, task, {"width": 16})
    chunk = members if device != "cpu" else 8
    batching = Batching(chunk if batched else 1, batched, batched and device != "cpu")
    stacked = Members(pairing, [pairing.build(s) for s in range(members)], where, batched)
    own = sorted((Rates(rates[s % len(rates)], 0.0) for s in range(members)), key=lambda r: r.lr)
    one = Program(stacked, Optimiser(Rule(), own, stacked.parameters), batching, where)
    generator = torch.Generator(where).manual_seed(0)
    length = None if task.spec.lengths is None else 10
    batches = [task.sample(members, 32, length, generator) for _ in range(16)]
    if device != "cpu":  # captured before the clock runs
        for _ in range(2):
            one.train(batches, 1)
        torch.cuda.synchronize()
    tick, cpu = time.perf_counter(), time.process_time()
    for block in range(blocks):
        one.train(batches, 1 + 16 * block)
    if device != "cpu":
        torch.cuda.synchronize()
    spent = time.perf_counter() - tick, time.process_time() - cpu
    return {"spent": spent, "weight": float(next(iter(one.members.parameters.values())).abs().mean())}


def case_bench_mlp(device):
    return program("mlp", 512 if device != "cpu" else 64, [1e-3], device, 60 if device != "cpu" else 20)


def case_bench_mlp_rates(device):
    rates = [1e-4 * 1.3**k for k in range(16)]
    return program("mlp", 512 if device != "cpu" else 64, rates, device, 60 if device != "cpu" else 20)


def case_bench_lstm(device):
    return program("lstm", 512 if device != "cpu" else 16, [1e-3, 3e-3], device, 20 if device != "cpu" else 3)


def case_bench_transformer(device):
    return program("transformer", 256 if device != "cpu" else 16, [1e-3, 3e-3], device, 20 if device != "cpu" else 3)


def case_bench_loop(device):
    return program("mlp", 8, [1e-3], device, 10, batched=False)


def measured(name, config, device, old):
    try:
        from theodolite.measures import measure

        return measure(name, config, 0, device)
    except ImportError:
        import importlib

        importlib.import_module(f"theodolite.instruments.{old.split(':')[0]}")
        return first("instruments.measures:measures")[name](config, 0, device)


TREE = {
    "truth": "binary-tree",
    "variables": 8,
    "graph": "true",
    "draw": 0,
    "width": 8,
    "depth": 1,
    "points": 200,
    "seeds": 4,
    "targets": 3,
    "restarts": 2,
    "steps": 300,
    "lr": 0.01,
    "loss": "square",
}


def case_graph_l1(device):
    config = {**TREE, "penalty": "l1", "strengths": [0.001, 0.01]}
    found = measured("graph-training", config, device, "sparsity.graph_study:measure_graph_training")
    return {k: found[k] for k in ("test", "zero")}


def case_graph_l2(device):
    config = {**TREE, "penalty": "l2", "strengths": [0.001, 0.01]}
    return {"test": measured("graph-training", config, device, "sparsity.graph_study:measure_graph_training")["test"]}


def case_masks(device):
    config = {
        "data": "digits",
        "random": False,
        "examples": 500,
        "seeds": 3,
        "widths": [100],
        "steps": 200,
        "lr": 0.003,
        "batch": 64,
        "l2": 1e-4,
        "rounds": 4,
        "share": 0.3,
    }
    found = measured("accuracy-by-density", config, device, "sparsity.density_study:measure_accuracy_by_density")
    return {"test": [r["test"] for r in found["rounds"]], "density": [r["density"] for r in found["rounds"]]}


def case_superposition(device):
    config = {
        "target": "smooth",
        "shape": "superposition",
        "width": 16,
        "depth": 1,
        "seeds": 4,
        "steps": 200,
        "batch": 128,
        "rate": 0.01,
    }
    return [
        m["unexplained"]
        for m in measured("superposition", config, device, "superposition:measure_superposition")["members"]
    ]


def case_selected(device):
    config = {
        "target": "content",
        "attention": "softmax",
        "tokens": 8,
        "width": 16,
        "seeds": 3,
        "steps": 150,
        "batch": 64,
        "rate": 0.003,
    }
    return [
        m["unexplained"]
        for m in measured("selected-inputs", config, device, "selected_inputs:measure_selected_inputs")["members"]
    ]


def case_approximation(device):
    config = {
        "variables": 4,
        "smoothness": 2.0,
        "shape": "graph",
        "widths": [4, 8],
        "seeds": 3,
        "steps": 300,
        "batch": 128,
        "rate": 0.01,
    }
    return measured("trained-approximation", config, device, "trained_approximation:measure_trained_approximation")[
        "errors"
    ]


def case_bounds(device):
    config = {
        "kind": "graph",
        "tokens": 8,
        "width": 8,
        "samples": 500,
        "seeds": 4,
        "steps": 300,
        "batch": 64,
        "rate": 0.01,
        "decays": [0.0, 0.1],
    }
    found = measured("generalisation-bounds", config, device, "generalisation_bounds:measure_generalisation_bounds")
    return [[m["train_error"], m["margin"], m["test_error"]] for m in found["members"]]


def case_sawtooth(device):
    config = {"folds": 3, "widths": [16, 16], "seeds": 4, "steps": 500, "batch": 128, "rate": 0.01}
    found = measured("sawtooth-training", config, device, "sawtooth_training:measure_sawtooth_training")
    return [found["explained"], found["pieces"]]


def case_isometry(device):
    import torch

    weights = first("claims.sparsity.attention_isometry:key_weights", "instruments.attention_isometry:key_weights")
    generator = torch.Generator(device).manual_seed(0)
    x = torch.randn(12, 10, generator=generator, dtype=torch.float64, device=device)
    return weights(x, 5, generator, 120).abs().mean().item()


def case_loss_minimiser(device):
    return measured("loss-minimiser", {"energy": 0.5, "members": 4}, device, "loss_distance:measure_loss_minimiser")


def case_signal_along(device):
    along = first("claims.expressivity.signal_along_training:signal_along", "instruments.signal_along:signal_along")
    found = along("mlp", 8, 3, 400, checkpoints=2, width=32, device=device, optimiser="adam", learning_rate=0.01)
    return [[c.accuracy, c.loss] for c in found.checkpoints]


CASES = {name.removeprefix("case_"): run for name, run in list(globals().items()) if name.startswith("case_")}


def worker(case: str, device: str) -> None:
    import torch

    torch.set_num_threads(1)
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    once = case.startswith("discover")
    spent: list[tuple[float, float]] = []
    found = None
    for _ in range(1 if once else 2):
        wait()
        tick, cpu = time.perf_counter(), time.process_time()
        found = CASES[case](device)
        wait()
        spent.append((time.perf_counter() - tick, time.process_time() - cpu))
    if isinstance(found, dict) and "spent" in found:
        spent = [found.pop("spent")]
    print("RESULT" + json.dumps({"wall": spent[-1][0], "cpu": spent[-1][1], "first": spent[0][0], "figures": found}))


def start_up(tree: str, *arguments: str) -> dict:
    tick = time.perf_counter()
    before = os.times()
    subprocess.run([sys.executable, *arguments], env=environment(tree), capture_output=True, check=True)
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return {"wall": time.perf_counter() - tick, "cpu": cpu, "first": 0.0, "figures": None}


STARTS = {
    "start_help": ("-m", "theodolite", "--help"),
    "start_version": ("-m", "theodolite", "--version"),
    "import_discover": ("-c", "from theodolite import discover, CompositionalRegressor"),
}


def environment(tree: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{tree}/src", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def run(case: str, tree: str, device: str) -> dict:
    if case in STARTS:
        return start_up(tree, *STARTS[case])
    command = [sys.executable, __file__, "--worker", case, "--device", device]
    done = subprocess.run(command, env=environment(tree), capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    if not lines:
        return {"error": done.stderr.strip().splitlines()[-3:]}
    row = json.loads(lines[-1].removeprefix("RESULT"))
    if "cannot be captured" in done.stderr:
        row["refused"] = True
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before")
    parser.add_argument("--after")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.device)
        return
    table = {}
    for case in filter(None, options.only.split(",")) if options.only else [*STARTS, *CASES]:
        rows: dict[str, list[dict]] = {"before": [], "after": []}
        for _ in range(options.rounds):
            for side in rows:
                rows[side].append(run(case, getattr(options, side), options.device))
        if any("error" in row for side in rows.values() for row in side):
            table[case] = {
                side: next((r["error"] for r in found if "error" in r), None) for side, found in rows.items()
            }
        else:
            median = lambda side, key, rows=rows: statistics.median(row[key] for row in rows[side])
            table[case] = {
                f"{key}_{side}": round(median(side, key), 4) for key in ("wall", "cpu") for side in ("before", "after")
            } | {
                "wall_ratio": round(median("after", "wall") / median("before", "wall"), 3),
                "cpu_ratio": round(median("after", "cpu") / median("before", "cpu"), 3),
                "refused": [side for side in rows if any(r.get("refused") for r in rows[side])],
                "figures": {side: rows[side][0]["figures"] for side in rows},
            }
        shown = {k: v for k, v in table[case].items() if k != "figures"}
        print(case, json.dumps(shown), file=sys.stderr, flush=True)
    print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
