"""Boolean circuits: from a graph, a truth table or an expression, and evaluated gate by gate."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from theodolite.errors import BadInput
from theodolite.registry import unknown

if TYPE_CHECKING:
    import networkx as nx

# Kind of gate: how many inputs it takes at least and at most, and what it says when `ones` of `count` are true.
_KINDS: Mapping[str, tuple[int, int | None, Callable[[np.ndarray, int, int], np.ndarray]]] = {
    "and": (1, None, lambda ones, count, least: ones == count),
    "or": (1, None, lambda ones, count, least: ones >= 1),
    "nand": (1, None, lambda ones, count, least: ones < count),
    "nor": (1, None, lambda ones, count, least: ones == 0),
    "xor": (1, None, lambda ones, count, least: ones % 2 == 1),
    "xnor": (1, None, lambda ones, count, least: ones % 2 == 0),
    "majority": (1, None, lambda ones, count, least: 2 * ones > count),
    "threshold": (1, None, lambda ones, count, least: ones >= least),
    "not": (1, 1, lambda ones, count, least: ones == 0),
    "copy": (1, 1, lambda ones, count, least: ones == 1),
    "true": (0, 0, lambda ones, count, least: np.ones_like(ones, dtype=bool)),
    "false": (0, 0, lambda ones, count, least: np.zeros_like(ones, dtype=bool)),
}


@dataclass(frozen=True)
class Gate:
    """`kind` and the names it reads; `least` is how many must be true for a `threshold` gate."""

    kind: str
    reads: tuple[str, ...] = ()
    least: int = 0


@dataclass(frozen=True)
class Circuit:
    """Gates by name, without a cycle; an output may be a gate or an input."""

    inputs: tuple[str, ...]
    gates: Mapping[str, Gate]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        known = [*self.inputs, *self.gates]
        twice = sorted({name for name in known if known.count(name) > 1}) if len(set(known)) < len(known) else []
        if twice:
            raise BadInput(f"the name '{twice[0]}' stands for two things in the circuit: give every one its own name")
        defined = set(known)
        for name, gate in self.gates.items():
            if gate.kind not in _KINDS:
                raise BadInput(f"for the gate '{name}': {unknown('kind of gate', gate.kind, _KINDS)}")
            low, high, _ = _KINDS[gate.kind]
            if len(gate.reads) < low or (high is not None and len(gate.reads) > high):
                wanted = f"{low} or more" if high is None else str(low)
                raise BadInput(
                    f"the gate '{name}' is of kind '{gate.kind}', which reads {wanted}, but it has {len(gate.reads)} "
                    "inputs: change its kind or its inputs"
                )
            missing = [read for read in gate.reads if read not in defined]
            if missing:
                raise BadInput(
                    f"the gate '{name}' reads '{missing[0]}', neither a gate nor an input: add one of that name"
                )
        absent = [name for name in self.outputs if name not in defined]
        if absent or not self.outputs:
            what = f"'{absent[0]}' is neither a gate nor an input" if absent else "none is named"
            raise BadInput(f"the circuit has no such output, {what}: name one of its gates or inputs")
        _ = self.order

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The gates, each after those it reads."""
        waiting = {name: {r for r in gate.reads if r in self.gates} for name, gate in self.gates.items()}
        readers: dict[str, list[str]] = {name: [] for name in self.gates}
        for name, reads in waiting.items():
            for read in reads:
                readers[read].append(name)
        ready = [name for name, reads in waiting.items() if not reads]
        order = []
        while ready:
            name = ready.pop()
            order.append(name)
            for reader in readers[name]:
                waiting[reader].discard(name)
                if not waiting[reader]:
                    ready.append(reader)
        if len(order) < len(self.gates):
            raise BadInput(f"the circuit has a cycle ({_cycle(waiting)}): remove one of these connections")
        return tuple(order)

    @property
    def depth(self) -> int:
        """Gates on the longest way from an input to an output."""
        level = dict.fromkeys(self.inputs, 0)
        for name in self.order:
            level[name] = 1 + max((level[read] for read in self.gates[name].reads), default=0)
        return max(level[name] for name in self.outputs)

    def evaluate(self, bits: np.ndarray) -> np.ndarray:
        """(…, inputs) of 0/1 or booleans to (…, outputs) booleans."""
        bits = _bits(bits)
        if bits.shape[-1] != len(self.inputs):
            raise BadInput(f"the circuit has {len(self.inputs)} inputs, not {bits.shape[-1]}: give one bit to each")
        values = {name: bits[..., place] for place, name in enumerate(self.inputs)}
        nothing = np.zeros(bits.shape[:-1], dtype=np.int64)
        for name in self.order:
            gate = self.gates[name]
            ones = sum((values[read].astype(np.int64) for read in gate.reads), nothing)
            values[name] = _KINDS[gate.kind][2](ones, len(gate.reads), gate.least)
        return np.stack([values[name] for name in self.outputs], axis=-1)

    @staticmethod
    def from_graph(graph: nx.DiGraph, outputs: Sequence[str] | None = None) -> Circuit:
        """A directed graph whose nodes have a `kind` ("input", "and", …); outputs are the nodes nobody reads.

        A `threshold` gate has `least` too. Names become text; gates and inputs keep the order of the graph.
        """
        if not graph.is_directed():
            raise BadInput(
                "the edges of an undirected graph do not say which gate reads which: pass a networkx.DiGraph"
            )
        inputs, gates = [], {}
        for node, about in graph.nodes(data=True):
            kind = about.get("kind", "input" if graph.in_degree(node) == 0 else None)
            if kind is None:
                raise BadInput(f"the node '{node}' has no kind: give it one of input, {', '.join(_KINDS)}")
            reads = tuple(str(source) for source in graph.predecessors(node))
            if kind == "input":
                if reads:
                    raise BadInput(f"the input '{node}' reads '{reads[0]}': an input reads nothing")
                inputs.append(str(node))
            else:
                gates[str(node)] = Gate(str(kind), reads, int(about.get("least", 0)))
        last = [str(node) for node in graph if graph.out_degree(node) == 0]
        if not last and outputs is None:
            last = [str(next(iter(graph)))] if len(graph) else []  # every node is read: the cycle is named below
        return Circuit(tuple(inputs), gates, tuple(map(str, outputs)) if outputs is not None else tuple(last))

    @staticmethod
    def from_truth_table(answers: Sequence[int | bool], names: Sequence[str] | None = None) -> Circuit:
        """Answers for 0 … 2^n − 1, the first input the highest bit. Equal subfunctions are shared."""
        table = tuple(bool(answer) for answer in _bits(answers))
        bits = len(table).bit_length() - 1
        if not table or len(table) != 2**bits:
            raise BadInput(f"a truth table has 2^n answers, not {len(table)}: give one for every input")
        inputs = tuple(names) if names is not None else tuple(f"x{i}" for i in range(bits))
        if len(inputs) != bits:
            raise BadInput(f"a truth table of {len(table)} answers has {bits} inputs, not {len(inputs)}")
        gates: dict[str, Gate] = {}
        output = _decide(table, inputs, gates, {})
        return Circuit(inputs, gates, (output,))

    @staticmethod
    def from_expression(text: str) -> Circuit:
        """Names joined by & | ^ ~ or and, or, not, with parentheses; 0 and 1 are constants. Nothing is evaluated."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
            reader = _Reader()
            output = reader.read(tree)
        except (SyntaxError, ValueError):
            raise BadInput(f"'{text}' is not a Boolean expression: write for example (a & b) | ~c") from None
        except (RecursionError, MemoryError):
            raise BadInput("the Boolean expression is nested too deeply: split it into several gates") from None
        return Circuit(tuple(reader.inputs), reader.gates, (output,))


def _cycle(waiting: Mapping[str, set[str]]) -> str:
    """Walk backwards among the gates that never became ready until one comes again."""
    name, path = next(n for n, reads in waiting.items() if reads), []
    while name not in path:
        path.append(name)
        name = next(iter(sorted(waiting[name])))
    loop = [*path[path.index(name) :], name]
    return " → ".join(reversed(loop))


def _decide(
    table: tuple[bool, ...], inputs: Sequence[str], gates: dict[str, Gate], made: dict[tuple[bool, ...], str]
) -> str:
    """The gate that computes the table, split on its first input: f = (x and f₁) or (not x and f₀)."""
    if table in made:  # its length says which inputs it is about
        return made[table]

    def gate(kind: str, *reads: str) -> str:
        name = f"g{len(gates)}"
        gates[name] = Gate(kind, reads)
        return name

    if len(set(table)) == 1:
        made[table] = gate("true" if table[0] else "false")
        return made[table]
    half, x = len(table) // 2, inputs[0]
    low, high = table[:half], table[half:]
    if low == high:
        found = _decide(low, inputs[1:], gates, made)
    elif len(set(low)) == 1 and len(set(high)) == 1:
        found = x if high[0] else gate("not", x)
    elif len(set(low)) == 1:
        one = _decide(high, inputs[1:], gates, made)
        found = gate("or", gate("not", x), one) if low[0] else gate("and", x, one)
    elif len(set(high)) == 1:
        zero = _decide(low, inputs[1:], gates, made)
        found = gate("or", x, zero) if high[0] else gate("and", gate("not", x), zero)
    else:
        zero, one = (_decide(part, inputs[1:], gates, made) for part in (low, high))
        if all(a != b for a, b in zip(low, high, strict=True)):
            found = gate("xor", x, zero)
        else:
            found = gate("or", gate("and", x, one), gate("and", gate("not", x), zero))
    made[table] = found
    return found


class _Reader:
    """Turns the syntax tree of an expression into gates; whatever is not Boolean algebra is refused by name."""

    _JOINS: Mapping[type, str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.And: "and", ast.Or: "or"}

    def __init__(self) -> None:
        self.inputs: list[str] = []
        self.gates: dict[str, Gate] = {}

    def read(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            if node.id not in self.inputs:
                self.inputs.append(node.id)
            return node.id
        if isinstance(node, ast.BinOp) and type(node.op) in self._JOINS:
            return self._gate(self._JOINS[type(node.op)], self.read(node.left), self.read(node.right))
        if isinstance(node, ast.BoolOp):
            return self._gate(self._JOINS[type(node.op)], *map(self.read, node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
            return self._gate("not", self.read(node.operand))
        if isinstance(node, ast.Constant) and node.value in (0, 1):
            return self._gate("true" if node.value else "false")
        raise BadInput(f"'{ast.unparse(node)}' is not Boolean algebra: use names, & | ^ ~ and parentheses")

    def _gate(self, kind: str, *reads: str) -> str:
        name = f"({kind} {len(self.gates)})"
        self.gates[name] = Gate(kind, reads)
        return name


def _bits(values: Sequence[int | bool] | np.ndarray) -> np.ndarray:
    """As booleans; anything but 0 and 1 is refused, since ±1 would be all true."""
    given = np.asarray(values)
    if given.dtype != bool and not np.isin(given, (0, 1)).all():
        other = given[~np.isin(given, (0, 1))].flat[0]
        raise BadInput(f"bits are 0 and 1, not {other}: turn signs into bits first, such as (1 − sign) / 2")
    return given.astype(bool)
