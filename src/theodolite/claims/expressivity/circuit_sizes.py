"""Exact sizes of circuits, machines and automata, and whether what is compiled from them answers as they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch

from theodolite.nets.size import count_parameters
from theodolite.theory import boolean as theory
from theodolite.witness.automata import BALANCED, automaton_of, balanced_words
from theodolite.witness.circuit import Circuit, Gate
from theodolite.witness.compile import to_relu, to_threshold
from theodolite.witness.dnf import minimal_dnf
from theodolite.witness.gates import Example, every_input, full_adder, half_adder, nand_only, parity, xor
from theodolite.witness.machines import machines
from theodolite.witness.minimal_circuits import minimal_sizes
from theodolite.witness.threshold import UnitNetwork
from theodolite.witness.turing import compile_machine, quadratic_through

_EXAMPLES = {"xor": xor, "half adder": half_adder, "full adder": full_adder}


def measure_gates(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: example (xor, half adder, full adder, parity), basis (threshold, relu, nand), for parity bits and form.

    Wrong answers of the compiled network on all inputs, against arithmetic, with its size.
    """
    if config["example"] == "parity":
        example = parity(config["bits"], config.get("form", "two-layer"))
    else:
        example = _EXAMPLES[config["example"]]()
    circuit = nand_only(example.circuit) if config["basis"] == "nand" else example.circuit
    network = to_relu(circuit) if config["basis"] == "relu" else to_threshold(circuit)
    bits = every_input(len(circuit.inputs))
    wanted = np.array([example.truth(row) for row in bits.tolist()])
    return {
        "inputs": len(bits),
        "errors": _wrong(network, bits, wanted) + Example(circuit, example.truth).errors(),
        "units": network.units,
        "depth": network.depth,
        "parameters": count_parameters(network),
    }


def measure_random_circuits(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: circuits, inputs, gates. Random circuits of all kinds of gates, compiled; wrong answers of the networks
    on all inputs, against the circuit evaluated gate by gate."""
    random = np.random.default_rng(seed)
    bits = every_input(config["inputs"])
    wrong, units = {"threshold": 0, "relu": 0}, {"threshold": 0, "relu": 0}
    for _ in range(config["circuits"]):
        circuit = random_circuit(random, config["inputs"], config["gates"])
        wanted = circuit.evaluate(bits)
        for basis, compiler in (("threshold", to_threshold), ("relu", to_relu)):
            for layered in (False, True):
                network = compiler(circuit, layered=layered)
                wrong[basis] += _wrong(network, bits, wanted)
                units[basis] += 0 if layered else network.units
    return {"checked": 2 * config["circuits"] * len(bits), "wrong": wrong, "units": units}


def measure_minimal_dnf(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: bits. The smallest DNF of the parity of all of them."""
    table = every_input(config["bits"]).sum(axis=1) % 2 == 1
    found = minimal_dnf(table.tolist())
    return {
        "terms": len(found.terms),
        "primes": found.primes,
        "minimal": found.minimal,
        "errors": int((found.evaluate() != table).sum()),
    }


def measure_turing_agreement(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: machine, steps (a list), length. Words up to that length on which outcome or tape of the compiled network
    differ from the machine run step by step."""
    named = machines[config["machine"]]
    words = ["".join(w) for n in range(config["length"] + 1) for w in product(named.letters, repeat=n)]
    wrong, checked = 0, 0
    for steps in config["steps"]:
        compiled = compile_machine(named.machine, steps, config["length"])
        answers = compiled.network(compiled.encode(words))
        said = zip(words, compiled.outcomes(answers), compiled.tapes(answers), strict=True)
        for word, outcome, tape in said:
            right, left, _ = named.machine.run(word, steps)
            # Cells T or further away cannot be read or written in T steps: the network leaves them out.
            near = {place: symbol for place, symbol in left.items() if abs(place) < steps}
            wrong += outcome != right or tape != near
        checked += len(words)
    return {"words": len(words), "checked": checked, "wrong": wrong}


def measure_turing_size(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: machine, steps (a list), length. Units, depth and parameters over the number of steps, and the quadratic
    through them."""
    named = machines[config["machine"]]
    rows = []
    for steps in config["steps"]:
        network = compile_machine(named.machine, steps, config["length"]).network
        parameters = count_parameters(network)
        rows.append({"steps": steps, "units": network.units, "depth": network.depth, "parameters": parameters})
    fit = {name: quadratic_through({row["steps"]: row[name] for row in rows}) for name in ("units", "parameters")}
    return {"sizes": rows, "fit": {name: None if abc is None else list(abc) for name, abc in fit.items()}}


def measure_minimal_circuits(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: bits, basis. How many functions need how many gates, from 0 on."""
    found = minimal_sizes(config["bits"], config["basis"])
    odd = sum(1 << i for i in range(2 ** config["bits"]) if i.bit_count() % 2)
    return {"functions": list(found.functions), "most": found.most, "parity": found.sizes[odd]}


def measure_circuit_counts(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: bits. Counting bounds, computed in whole numbers; the share is at half of Shannon's 2^n / n gates."""
    bits = config["bits"]
    half = int(theory.shannon_gates(bits) / 2)
    return {
        "fan_in_two_gates": theory.fan_in_two_gates(bits),
        "half": half,
        "share": theory.fan_in_two_share(bits, half),
        "threshold_units": theory.threshold_units(bits),
    }


def measure_automaton_size(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: most, length. Sizes of descriptions of aⁿbⁿ with n ≤ most, and words on which the automaton, or the
    grammar of two rules, is wrong: of all up to that length, and all aᵐbᵏ with m, k ≤ most + 2."""
    words = balanced_words(config["most"])
    automaton = automaton_of(words).minimal()
    strings = {"".join(w) for n in range(config["length"] + 1) for w in product("ab", repeat=n)}
    strings |= {"a" * m + "b" * k for m, k in product(range(config["most"] + 3), repeat=2)}
    return {
        "live": automaton.live,
        "states": automaton.states,
        "alternatives": len(words),
        "rules": len(BALANCED.rules),
        "checked": len(strings),
        "wrong automaton": sum(automaton.accepts(w) != (w in words) for w in strings),
        "wrong grammar": sum(BALANCED.generates(w) != _balanced(w) for w in strings),
    }


def random_circuit(random: np.random.Generator, inputs: int, gates: int) -> Circuit:
    """Gates of random kinds that read one to four of the nodes before them; the last gate is the output."""
    names = [f"x{i}" for i in range(inputs)]
    kinds = ("and", "or", "nand", "nor", "xor", "xnor", "majority", "threshold", "not", "copy", "true", "false")
    made: dict[str, Gate] = {}
    for number in range(gates):
        kind = str(random.choice(kinds))
        count = {"true": 0, "false": 0, "not": 1, "copy": 1}.get(kind, int(random.integers(1, 5)))
        known = [*names, *made]
        reads = tuple(known[i] for i in random.choice(len(known), size=min(count, len(known)), replace=False))
        made[f"g{number}"] = Gate(kind, reads, int(random.integers(0, 6)))
    return Circuit(tuple(names), made, (f"g{gates - 1}",))


def _wrong(network: UnitNetwork, bits: np.ndarray, wanted: np.ndarray) -> int:
    """Inputs on which an answer is not exactly the wanted 0 or 1."""
    with torch.no_grad():
        said = network(torch.from_numpy(bits).double()).numpy()
    return int((said != np.asarray(wanted, dtype=float)).any(axis=-1).sum())


def _balanced(word: Sequence[str] | str) -> bool:
    half = len(word) // 2
    return "".join(word) == "a" * half + "b" * half
