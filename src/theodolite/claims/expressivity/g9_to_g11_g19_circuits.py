"""Claims G9–G11 and G19: what circuits, machines, automata and grammars need to describe a function."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from theodolite.claims.contract import EXPRESSIVITY, claim
from theodolite.claims.rule import Verdict, outcome
from theodolite.lab.cell import Cell, Row
from theodolite.theory import boolean as theory

_PARITY_BITS = (2, 3, 4, 6, 8, 12)
_FORMS = ("two-layer", "iterated", "tree")


# G9 — XOR, adders, parity, NAND, DNF


def _gates(example: str, basis: str, **config: Any) -> Cell:
    return Cell("gates", {"example": example, "basis": basis, **config})


def _g9_cells() -> list[Cell]:
    small = [_gates(name, basis) for name in ("xor", "half adder", "full adder") for basis in ("threshold", "nand")]
    chains = [_gates("parity", "threshold", bits=n, form=form) for form in _FORMS for n in _PARITY_BITS]
    nands = [_gates("parity", "nand", bits=n, form="two-layer") for n in _PARITY_BITS]
    linear = [_parity("linear", n) for n in (2, 3, 4, 6)]
    recurrent = [_parity("recurrent-threshold", n) for n in _PARITY_BITS]
    dnf = [Cell("minimal-dnf", {"bits": n}) for n in range(1, 9)]
    return small + chains + nands + linear + recurrent + dnf


def _parity(net: str, bits: int) -> Cell:
    return Cell("express", {"task": "parity", "task_args": {"bits": bits, "relevant": bits}, "net": net})


def _parity_size(basis: str, form: str, n: int) -> tuple[int, int]:
    """Units and depth that theory counts."""
    if basis == "nand":
        return 4 * (n - 1), 3 * (n - 1)
    if form == "two-layer":
        return theory.parity_units(n), 2
    return 3 * (n - 1), 2 * (n - 1) if form == "iterated" else 2 * (n - 1).bit_length()


@claim(
    "G9",
    "XOR needs a hidden layer; adders and n-bit parity are small threshold or NAND networks; a DNF of parity needs "
    "2^(n−1) terms.",
    EXPRESSIVITY + "XOR circuit complexity, half adder, iterated XOR, NAND; Håstad's setting",
    "XOR, half and full adder and parity of n = 2 … 12 bits, of threshold units and of NAND gates alone: no error on "
    "any input. Parity in n + 1 units of two layers, in 3(n − 1) units by iterated XORs (depth 2(n − 1), or twice the "
    "logarithm as a tree), in 4(n − 1) NAND gates, and in one recurrence of 2 units for every n. No linear unit for "
    "n = 2, 3, 4, 6: the linear program is infeasible and its certificate holds in whole numbers. The smallest DNF "
    "has 2^(n−1) terms, proven, for n = 1 … 8.",
    _g9_cells,
    quote="N-Bit Parity can be solved with iterated XORs; Any Constant-depth Circuit Computing Parity Requires "
    "Exponential Size",
    kind="theorem",
)
def _g9(rows: Sequence[Row]) -> Verdict:
    gates = [r for r in rows if r.cell.measure == "gates"]
    parities = [r for r in gates if r.cell.config["example"] == "parity"]
    linear = [r for r in rows if r.cell.config.get("net") == "linear"]
    recurrent = [r for r in rows if r.cell.config.get("net") == "recurrent-threshold"]
    dnf = [r for r in rows if r.cell.measure == "minimal-dnf"]
    errors = sum(r["errors"] for r in gates)
    sizes = {
        _name(r): ([r["units"], r["depth"]], list(_parity_size(r.cell.config["basis"], r.cell.config["form"], n)))
        for r in parities
        for n in (r.cell.config["bits"],)
    }
    off = [name for name, (counted, predicted) in sizes.items() if counted != predicted]
    refused = [r for r in linear if r["expressible"] is False and r["checked"]["holds"]]
    constant = all(r["expressible"] and r["exhaustive"] and r["units"] == 2 for r in recurrent) and (
        len({r["parameters"] for r in recurrent}) == 1
    )
    terms = [r["terms"] for r in dnf]
    wanted = [theory.parity_dnf_terms(r.cell.config["bits"]) for r in dnf]
    proven = all(r["minimal"] and r["errors"] == 0 for r in dnf)
    good = errors == 0 and not off and len(refused) == len(linear) and constant and terms == wanted and proven
    return Verdict(
        outcome(good),
        predicted={"units and depth": {n: p for n, (_, p) in sizes.items()}, "DNF terms": wanted},
        measured={
            "units and depth": {n: c for n, (c, _) in sizes.items()},
            "DNF terms": terms,
            "adders": {_name(r): r["units"] for r in gates if r not in parities},
            "recurrent parameters": sorted({r["parameters"] for r in recurrent}, key=str),
        },
        detail=f"{len(gates)} networks on all their inputs: {errors} errors, {len(off)} sizes off theory's; no linear "
        f"unit in {len(refused)} of {len(linear)} cases, proven in whole numbers; DNF terms {terms} for n = 1 to "
        f"{len(terms)}, {'all proven least' if proven else 'not all proven least'}.",
    )


def _name(row: Row) -> str:
    config = row.cell.config
    bits = f" {config['bits']} bits {config['form']}" if "bits" in config else ""
    return f"{config['example']}{bits}, {config['basis']}"


# G10 — circuits and Turing machines as threshold networks

_MACHINES = ("parity", "anbn", "increment")
_SIZE_STEPS = (4, 8, 12, 16, 20, 30, 40)


def _g10_cells() -> list[Cell]:
    circuits = [Cell("random-circuits", {"circuits": 20, "inputs": n, "gates": g}) for n, g in ((4, 12), (6, 30))]
    steps = {"parity": [1, 2, 4, 7, 9], "increment": [1, 3, 6, 9, 14], "anbn": [1, 4, 9, 16, 28]}
    agree = [Cell("turing-agreement", {"machine": m, "steps": steps[m], "length": 6}) for m in _MACHINES]
    size = [Cell("turing-size", {"machine": m, "steps": list(_SIZE_STEPS), "length": 3}) for m in _MACHINES]
    return circuits + agree + size


@claim(
    "G10",
    "Any Boolean circuit, and any Turing machine for T steps in size O(T²), is a threshold network.",
    EXPRESSIVITY + "Theorem 20.3 of Understanding Machine Learning",
    "40 random circuits of all kinds of gates, compiled to threshold and to ReLU networks: no error on any input. "
    "Three machines, compiled for several T, the last of them long enough to halt: outcome and tape equal those of the "
    "machine on all words of up to 6 letters. For T = 4 … 40 the units lie exactly on one polynomial a·T² + b·T + c.",
    _g10_cells,
    quote="there exist constants b, c ∈ ℝ₊ such that for every n, there is a graph (V_n, E_n) of size at most c·T(n)² "
    "+ b such that H_(V_n, E_n, sign) contains F_n",
    kind="theorem",
)
def _g10(rows: Sequence[Row]) -> Verdict:
    circuits = [r for r in rows if r.cell.measure == "random-circuits"]
    agree = [r for r in rows if r.cell.measure == "turing-agreement"]
    size = [r for r in rows if r.cell.measure == "turing-size"]
    wrong = {basis: sum(r["wrong"][basis] for r in circuits) for basis in ("threshold", "relu")}
    differ = {r.cell.config["machine"]: r["wrong"] for r in agree}
    fits = {r.cell.config["machine"]: r["fit"]["units"] for r in size}
    largest = {r.cell.config["machine"]: r["sizes"][-1]["units"] for r in size}
    good = not any(wrong.values()) and not any(differ.values()) and all(fits.values())
    growth = ", ".join(f"{m} {_polynomial(fits[m])}" for m in fits)
    return Verdict(
        outcome(good),
        predicted={"wrong": 0, "units": "a·T² + b·T + c"},
        measured={"wrong": {**wrong, **differ}, "a, b, c": fits, f"units at T = {_SIZE_STEPS[-1]}": largest},
        detail=f"Compiled circuits: {sum(wrong.values())} wrong of {sum(r['checked'] for r in circuits)} answers a "
        f"compiler. Compiled machines: {sum(differ.values())} wrong of {sum(r['checked'] for r in agree)}. "
        f"Units: {growth}.",
    )


def _polynomial(fit: Sequence[float] | None) -> str:
    if fit is None:
        return "no quadratic"
    a, b, c = fit
    return f"{a:g}·T² {'−' if b < 0 else '+'} {abs(b):g}·T + {c:g}"


# G11 — counting

_COUNTED = tuple(range(5, 15))


def _g11_cells() -> list[Cell]:
    exact = [Cell("minimal-circuits", {"bits": n, "basis": "fan-in-2"}) for n in (1, 2, 3)]
    exact += [Cell("minimal-circuits", {"bits": n, "basis": "and-or"}) for n in (2, 3)]
    return exact + [Cell("circuit-counts", {"bits": n}) for n in _COUNTED]


@claim(
    "G11",
    "Almost all Boolean functions need circuits of exponential size.",
    EXPRESSIVITY
    + "Shannon 1949 (gates of two inputs); Theorem 20.2 of Understanding Machine Learning (threshold units)",
    "Gates of two inputs: the count of functions of at most s gates is never below the true number, found by search "
    "for n ≤ 3 and published for n = 4, and the largest smallest circuits found equal the published 1 and 4 (3 and 6 "
    "without XOR). By that "
    "count the share of functions with at most half of 2^n/n gates is below 1 % from n = 6 to 14 and falls with n. "
    "Threshold units: what some function needs, by counting, at least doubles from n to n + 3 for n = 8 to 11.",
    _g11_cells,
    quote="Most Boolean Functions Require Exponential Circuit Complexity; s(n) is exponential in n",
    kind="theorem",
)
def _g11(rows: Sequence[Row]) -> Verdict:
    exact = {
        r.cell.config["bits"]: r["functions"]
        for r in rows
        if r.cell.measure == "minimal-circuits" and r.cell.config["basis"] == "fan-in-2"
    }
    counts = {r.cell.config["bits"]: r for r in rows if r.cell.measure == "circuit-counts"}
    tables = {**exact, 4: list(theory.FUNCTIONS_BY_GATES_OF_FOUR)}
    broken = [
        f"n = {n}, s = {s}"
        for n, functions in tables.items()
        for s in range(len(functions))
        if theory.fan_in_two_count(n, s) < sum(functions[: s + 1])
    ]
    most = {n: len(functions) - 1 for n, functions in exact.items()}
    shares = [counts[n]["share"] for n in _COUNTED if n >= 6]
    falls = max(shares) < 0.01 and all(b <= a for a, b in pairwise(shares))
    units = {n: counts[n]["threshold_units"] for n in _COUNTED}
    doubles = all(units[n + 3] >= 2 * units[n] for n in range(8, 12))
    gates = {n: counts[n]["fan_in_two_gates"] for n in _COUNTED}
    other = {
        r.cell.config["bits"]: r["functions"]
        for r in rows
        if r.cell.measure == "minimal-circuits" and r.cell.config["basis"] == "and-or"
    }
    agree = all(most[n] == theory.MOST_GATES[n] for n in (2, 3))
    agree = agree and all(len(other[n]) - 1 == theory.MOST_GATES_WITHOUT_XOR[n] for n in (2, 3))
    return Verdict(
        outcome(not broken and agree and falls and doubles),
        predicted={
            "most gates": {n: theory.MOST_GATES[n] for n in (2, 3)},
            "most without XOR": {n: theory.MOST_GATES_WITHOUT_XOR[n] for n in (2, 3)},
            "2^n/n": 2**14 / 14,
        },
        measured={
            "functions by gates": {"fan-in 2": exact, "and, or, free negation": other},
            "gates some function needs": gates,
            "threshold units some function needs": units,
            "share within half of 2^n/n gates": shares,
        },
        detail=f"Largest smallest circuit of n = 1, 2, 3 bits: {', '.join(str(most[n]) for n in sorted(most))} gates "
        f"of two inputs; the count is below the truth at {len(broken)} sizes. Some function of 14 bits needs "
        f"{gates[14]} such gates (2^n/n = {2**14 / 14:.0f}) or {units[14]} threshold units; within "
        f"half of 2^n/n gates lies at most a share of {shares[0]:.1g} at n = 6, {shares[2]:.1g} at n = 8.",
    )


# G19 — aⁿbⁿ

_MOST = (0, 1, 2, 3, 4, 6, 8, 12)


@claim(
    "G19",
    "aⁿbⁿ with n ≤ N: N + 1 regular alternatives, a smallest automaton of 2N + 1 live states; two context-free rules "
    "for every n.",
    EXPRESSIVITY + "aⁿbⁿ, regular against context-free",
    "For N = 0 … 12 the smallest automaton has 2N + 1 live states and the list N + 1 words; the automaton and the "
    "grammar of two rules are right on all words of up to 9 letters and all aᵐbᵏ with m, k ≤ N + 2.",
    lambda: [Cell("automaton-size", {"most": n, "length": 9}) for n in _MOST],
    quote="Take aⁿbⁿ, if in practice n ≤ N: Regular Language (N+1 rules), CFG (2 rules)",
    kind="theorem",
)
def _g19(rows: Sequence[Row]) -> Verdict:
    most = [r.cell.config["most"] for r in rows]
    live, alternatives = [r["live"] for r in rows], [r["alternatives"] for r in rows]
    wanted = [theory.automaton_states(n) for n in most], [theory.regular_alternatives(n) for n in most]
    wrong = sum(r["wrong automaton"] + r["wrong grammar"] for r in rows)
    rules = {r["rules"] for r in rows}
    good = (live, alternatives) == wanted and wrong == 0 and rules == {theory.CONTEXT_FREE_RULES}
    return Verdict(
        outcome(good),
        predicted={"live states": wanted[0], "alternatives": wanted[1], "rules": theory.CONTEXT_FREE_RULES},
        measured={"live states": live, "alternatives": alternatives, "rules": sorted(rules)},
        detail=f"N = {', '.join(map(str, most))}: {', '.join(map(str, live))} live states, "
        f"{', '.join(map(str, alternatives))} alternatives, {max(rules)} rules; {wrong} wrong of "
        f"{2 * sum(r['checked'] for r in rows)} answers.",
    )
