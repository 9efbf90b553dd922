"""The graph of a function that is composed of others: variables, constituent nodes, one output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

from theodolite.errors import BadInput
from theodolite.notebook import Shown

if TYPE_CHECKING:
    import networkx

Kind = Literal["general", "sum", "product"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SCHEMA = 1


@dataclass(frozen=True)
class Node:
    """A constituent function of its inputs, each a variable or another node.

    A `sum` adds functions of one input each, a `product` multiplies them; `general` is any function.
    """

    name: str
    inputs: tuple[str, ...]
    kind: Kind = "general"


@dataclass(frozen=True)
class CompositionalGraph(Shown):
    """Nodes stand in an order in which every input comes before its use; the last is the output.

    A node may feed several others (a DAG). A variable that feeds none is one the function does not depend on. Nodes are
    put in order here; a cycle, an unknown input and a node that feeds nothing are refused.
    """

    variables: tuple[str, ...]
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        nodes = tuple(Node(n.name, tuple(n.inputs), n.kind) for n in self.nodes)
        _check_names(self.variables, nodes)
        object.__setattr__(self, "nodes", _in_order(self.variables, nodes))
        _check_use(self.nodes)

    @property
    def output(self) -> Node:
        return self.nodes[-1]

    @cached_property
    def node(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def used(self) -> tuple[str, ...]:
        """The variables that the function depends on."""
        fed = {name for node in self.nodes for name in node.inputs}
        return tuple(name for name in self.variables if name in fed)

    @cached_property
    def reach(self) -> Mapping[str, frozenset[str]]:
        """The variables below every variable and node."""
        found: dict[str, frozenset[str]] = {name: frozenset({name}) for name in self.variables}
        for node in self.nodes:
            found[node.name] = frozenset().union(*(found[name] for name in node.inputs))
        return found

    @cached_property
    def level(self) -> Mapping[str, int]:
        """0 for variables; a node stands one above the highest of its inputs."""
        found = dict.fromkeys(self.variables, 0)
        for node in self.nodes:
            found[node.name] = 1 + max(found[name] for name in node.inputs)
        return found

    @property
    def depth(self) -> int:
        return self.level[self.output.name]

    @property
    def fan_ins(self) -> tuple[int, ...]:
        return tuple(len(node.inputs) for node in self.nodes)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(input, node), in the order of the nodes."""
        return tuple((name, node.name) for node in self.nodes for name in node.inputs)

    @property
    def is_tree(self) -> bool:
        """Whether every variable and every node feeds at most one node."""
        sources = [source for source, _ in self.edges]
        return len(sources) == len(set(sources))

    @classmethod
    def dense(cls, variables: Sequence[str]) -> CompositionalGraph:
        """One node that reads everything: a function of which no structure is known."""
        return cls(tuple(variables), (Node(free_name("y", variables), tuple(variables)),))

    @property
    def is_dense(self) -> bool:
        return len(self.nodes) == 1 and self.nodes[0].kind == "general"

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "variables": list(self.variables),
            "nodes": [{"name": n.name, "inputs": list(n.inputs), "kind": n.kind} for n in self.nodes],
        }

    @classmethod
    def from_json(cls, document: Any) -> CompositionalGraph:
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise BadInput(f"this is no compositional graph: it must be a JSON object with schema {SCHEMA}")
        unknown = sorted(set(document) - {"schema", "variables", "nodes"})
        if unknown:
            raise BadInput(f"a compositional graph has no field '{unknown[0]}': use schema, variables and nodes")
        variables, nodes = document.get("variables"), document.get("nodes")
        if not _texts(variables) or not isinstance(nodes, list):
            raise BadInput("a compositional graph needs 'variables', a list of names, and 'nodes', a list")
        return cls(tuple(variables), tuple(_node(entry) for entry in nodes))

    def to_networkx(self) -> networkx.DiGraph:
        """Nodes with `role` (variable or constituent) and `kind`, edges numbered by `position` among the inputs."""
        import networkx

        graph = networkx.DiGraph()
        for name in self.variables:
            graph.add_node(name, role="variable")
        for node in self.nodes:
            graph.add_node(node.name, role="constituent", kind=node.kind)
            for position, name in enumerate(node.inputs):
                graph.add_edge(name, node.name, position=position)
        return graph

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> CompositionalGraph:
        """Whatever has no predecessor is a variable unless its `role` says otherwise; names become text."""
        if not graph.is_directed():
            raise BadInput("a compositional graph is directed, from inputs to outputs: pass a networkx.DiGraph")
        variables, nodes = [], []
        for name, data in graph.nodes(data=True):
            inputs = sorted(graph.pred[name], key=lambda source: graph.edges[source, name].get("position", 0))
            role = data.get("role", "constituent" if inputs else "variable")
            if role == "variable" and not inputs:
                variables.append(str(name))
            else:
                nodes.append(Node(str(name), tuple(str(source) for source in inputs), data.get("kind", "general")))
        return cls(tuple(variables), tuple(nodes))


def _check_names(variables: Sequence[str], nodes: Sequence[Node]) -> None:
    if not variables:
        raise BadInput("a compositional graph needs at least one variable")
    if not nodes:
        raise BadInput("a compositional graph needs at least one node, the output")
    seen: set[str] = set()
    for name in (*variables, *(node.name for node in nodes)):
        if name in seen:
            raise BadInput(f"the name '{name}' is given twice in the graph: every variable and node needs its own")
        seen.add(name)
    for node in nodes:
        if node.kind not in KINDS:
            raise BadInput(f"the node '{node.name}' is of the unknown kind '{node.kind}': use {', '.join(KINDS)}")
        if not node.inputs:
            raise BadInput(f"the node '{node.name}' has no inputs: give it at least one, or leave it out")
        if len(set(node.inputs)) < len(node.inputs):
            raise BadInput(f"the node '{node.name}' names an input twice: name each once")
        for name in node.inputs:
            if name not in seen:
                raise BadInput(f"the node '{node.name}' reads '{name}', which is neither a variable nor a node")


def _in_order(variables: Sequence[str], nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Inputs first; among nodes that are ready the given order is kept."""
    waiting, known, ordered = list(nodes), set(variables), []
    while waiting:
        ready = next((node for node in waiting if known.issuperset(node.inputs)), None)
        if ready is None:
            named = ", ".join(f"'{node.name}'" for node in waiting[:3])
            raise BadInput(f"the graph has a cycle through or below {named}: an output cannot be its own input")
        waiting.remove(ready)
        known.add(ready.name)
        ordered.append(ready)
    return tuple(ordered)


def _check_use(nodes: Sequence[Node]) -> None:
    fed = {name for node in nodes for name in node.inputs}
    ends = [node.name for node in nodes if node.name not in fed]
    if len(ends) > 1:
        raise BadInput(
            f"the nodes {', '.join(repr(name) for name in ends[:3])} all feed nothing: only the output may, so connect "
            "or remove the others"
        )


def free_name(name: str, taken: Iterable[str]) -> str:
    used = set(taken)
    while name in used:
        name += "_"
    return name


def _texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _node(entry: Any) -> Node:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not _texts(entry.get("inputs")):
        raise BadInput(f"a node needs 'name', a text, and 'inputs', a list of names: {entry!r} has not")
    unknown = sorted(set(entry) - {"name", "inputs", "kind"})
    if unknown:
        raise BadInput(f"the node '{entry['name']}' has the unknown field '{unknown[0]}': use name, inputs and kind")
    return Node(entry["name"], tuple(entry["inputs"]), entry.get("kind", "general"))
