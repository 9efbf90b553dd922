"""Are efficiently computable functions compositionally sparse? Fan-in and size of the graph of a compiled machine.

A machine's acceptance after T steps becomes a network of threshold units; each unit is a constituent function. A unit
that reads more than the asked fan-in is written as a tree of partial sums. That every Boolean function has such a graph
says little: with random truth tables as the control, it is the number of nodes that tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from theodolite.graphs.graph import CompositionalGraph, Node
from theodolite.witness.circuit import Circuit
from theodolite.witness.compile import to_threshold
from theodolite.witness.machines import machines
from theodolite.witness.threshold import Affine, UnitNetwork
from theodolite.witness.turing import compile_machine

Form = tuple[bool, Affine]  # whether a step follows, and what is summed


def forms_of(network: UnitNetwork) -> list[Form]:
    """What every unit of a threshold network sums, in the order of its nodes."""
    found: list[Form] = []
    for layer in network.layers:
        (rows, cols), first = layer.get_buffer("indices").tolist(), int(getattr(layer, "first"))  # noqa: B009
        weights, biases = (layer.get_parameter(name).tolist() for name in ("weight", "bias"))
        sums: list[dict[int, int]] = [{} for _ in biases]
        for row, col, weight in zip(rows, cols, weights, strict=True):
            sums[row][col + first] = int(weight)
        found += [(True, Affine(int(bias), form)) for bias, form in zip(biases, sums, strict=True)]
    return found


def bounded(forms: Sequence[Form], inputs: int, output: int, most: int) -> tuple[list[Form], int]:
    """The units that the output depends on, none reading more than `most` numbers, and the number of the output.

    A longer sum is added up `most` terms at a time; the partial sums are nodes of their own.
    """
    needed = {output}
    for node in range(inputs + len(forms) - 1, inputs - 1, -1):
        if node in needed:
            needed.update(forms[node - inputs][1].weights)
    number = {node: node for node in range(inputs)}
    built: list[Form] = []

    def add(form: Form) -> int:
        built.append(form)
        return inputs + len(built) - 1

    for place, (step, form) in enumerate(forms):
        if inputs + place not in needed:
            continue
        terms = [(number[node], weight) for node, weight in form.weights.items()]
        while len(terms) > most:
            groups = [terms[i : i + most] for i in range(0, len(terms), most)]
            terms = [g[0] if len(g) == 1 else (add((False, Affine(0, dict(g)))), 1) for g in groups]
        number[inputs + place] = add((step, Affine(form.constant, dict(terms))))
    return built, number[output]


def evaluate(forms: Sequence[Form], inputs: np.ndarray) -> np.ndarray:
    """(row, node): the inputs, then what every unit gives."""
    values = np.zeros((len(inputs), inputs.shape[1] + len(forms)))
    values[:, : inputs.shape[1]] = inputs
    for place, (step, form) in enumerate(forms, inputs.shape[1]):
        total = form.constant + sum(weight * values[:, node] for node, weight in form.weights.items())
        values[:, place] = total >= 0 if step else total
    return values


def graph_of(forms: Sequence[Form], inputs: int, output: int) -> CompositionalGraph:
    """The graph of these forms; units that read nothing, or constants alone, are constants and no inputs of others."""
    known: set[int] = set(range(inputs))
    nodes = []
    for place, (step, form) in enumerate(forms[: output - inputs + 1], inputs):
        reads = tuple(_name(node, inputs) for node in form.weights if node in known)
        if reads:
            known.add(place)
            nodes.append(Node(_name(place, inputs), reads, "general" if step else "sum"))
    return CompositionalGraph(tuple(_name(i, inputs) for i in range(inputs)), tuple(nodes))


def _name(node: int, inputs: int) -> str:
    return f"x{node}" if node < inputs else f"u{node - inputs}"


def measure_compiled_graph(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: machine, steps (a list), length, fan_in. For every T: nodes and largest fan-in of the graph of
    acceptance, as compiled and with fan-in bounded, and words of up to `length` letters on which the bounded one is
    wrong."""
    named = machines[config["machine"]]
    words = ["".join(w) for n in range(config["length"] + 1) for w in product(named.letters, repeat=n)]
    sizes = []
    for steps in config["steps"]:
        compiled = compile_machine(named.machine, steps, config["length"])
        inputs, forms = compiled.network.inputs, forms_of(compiled.network)
        accept = inputs + len(forms) - 2  # accept and reject are the last layer
        small, output = bounded(forms, inputs, accept, config["fan_in"])
        said = evaluate(small, compiled.encode(words).numpy())[:, output]
        right = [named.machine.run(word, steps)[0] == "accept" for word in words]
        graph = graph_of(small, inputs, output)
        wide = [len(form.weights) for _, form in forms]
        sizes.append({
            "steps": steps, "nodes": len(graph.nodes), "fan_in": max(graph.fan_ins), "units": len(forms),
            "depth": compiled.network.depth, "inner_fan_in": max(wide[:-2]), "accept_fan_in": wide[-2],
            "words": len(words), "wrong": int(sum(bool(a) != b for a, b in zip(said, right, strict=True))),
        })  # fmt: skip
    steps, nodes = [s["steps"] for s in sizes], [s["nodes"] for s in sizes]
    return {"sizes": sizes, "exponents": exponents(steps, nodes)}


def measure_random_function_graph(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: bits (a list), draws, fan_in. Random truth tables as graphs of bounded fan-in: nodes, mean over draws."""
    random = np.random.default_rng(seed)
    sizes = []
    for bits in config["bits"]:
        counts, widest, wrong = [], 0, 0
        every = np.array(list(product((0, 1), repeat=bits)))
        for _ in range(config["draws"]):
            table = random.integers(0, 2, 2**bits).astype(bool)
            circuit = Circuit.from_truth_table(table.tolist())
            network = to_threshold(circuit)
            forms = forms_of(network)
            last = int(network.chosen[0])
            small, output = bounded(forms, bits, last, config["fan_in"])
            wrong += int((evaluate(small, every)[:, output].astype(bool) != table).sum())
            counts.append(len(small))
            widest = max(widest, *(len(form.weights) for _, form in small))
        sizes.append({"bits": bits, "nodes": float(np.mean(counts)), "fan_in": widest, "wrong": wrong})
    growth = [(math.log2(b["nodes"]) - math.log2(a["nodes"])) / (b["bits"] - a["bits"]) for a, b in pairwise(sizes)]
    return {"sizes": sizes, "doublings": growth}


def exponents(steps: Sequence[int], sizes: Sequence[int]) -> list[float]:
    """log(size)/log(T) between one T and the next: the last is nearest to the exponent of growth."""
    pairs = list(zip(steps, sizes, strict=True))
    return [math.log(b / a) / math.log(t / s) for (s, a), (t, b) in pairwise(pairs)]
